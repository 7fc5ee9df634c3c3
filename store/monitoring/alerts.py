"""Alerts: one line of JSON to a web hook or a command when what is wrong changes.

What is new is told at once, what is over once the assistant has answered and stayed well for
:data:`LOOKS_UNTIL_OVER` looks, since a pause that ends is often followed by the next. What was
told is kept in ``.locks/alerts.json``, so that a restart repeats nothing. What stays wrong for
another reason is not told again; what could not be delivered is, at the next look.
"""

from __future__ import annotations

import logging
import shlex
import subprocess
import threading
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec
import requests
from msgspec import Struct

from store.disk import atomic_write
from store.polls.leases import leased, locks_in
from store.settings import SettingsError
from store.times import rfc3339
from store.web.health import examine

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from store.memory import Store
    from store.rankings.poll_states import ScheduleState
    from store.settings import Settings
    from store.web.health import Health

log = logging.getLogger(__name__)

LOCK, TOLD = "alerts.lock", "alerts.json"
TIMEOUT = 10.0
"""Seconds that a web hook or a command may take; a tick of polling is longer."""
LOOKS = 4
"""In each tick of polling: with two, an alert could come later than two ticks."""
LOOKS_UNTIL_OVER = 6
"""Looks in a row, a tick and a half, that must be well before all is said to be well: a paused
assistant is asked again within one tick, and is then well or paused anew."""


class Alert(Struct, frozen=True):
    """What is sent: ``reasons`` on what is ``affected``; ``text`` says it all in one string."""

    site: str
    health: str
    status: str
    time: str
    affected: tuple[str, ...]
    reasons: tuple[str, ...]
    text: str


_TOLD = msgspec.json.Decoder(tuple[str, ...])


class Alerts:
    """Looks at the health of a store again and again, and tells when it changes."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        schedule: Callable[[], ScheduleState] | None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._settings = settings
        self._schedule = schedule
        self._clock = clock
        self._locks = locks_in(settings)
        self._calm: dict[str, int] = {}
        self._failed: str | None = None

    def look(self) -> None:
        """Tell what changed, unless another process of this data directory is the one to do so."""
        state = self._schedule() if self._schedule else None
        if state and state.alive and not state.polling:
            return
        with leased(self._locks / LOCK) as had:
            if had:
                self._look()

    def run(self, stop: threading.Event) -> None:
        """Look several times in every tick until stopped, or until the main thread has ended."""
        every = min(self._settings.poll_tick, 60.0) / LOOKS
        while not stop.wait(every) and threading.main_thread().is_alive():
            try:
                self.look()
            except Exception:  # else one odd state would end all alerts, unseen
                log.exception("the health of the service could not be looked at")

    def _look(self) -> None:
        found = examine(self._store, self._clock(), self._schedule)
        wrong, told = _wrong(found), self._told()
        failing = {one.name for one in found.assistants if one.failures}
        quiet = told - wrong.keys() - failing  # what was told of these may not be over
        self._calm = {subject: self._calm.get(subject, 0) + 1 for subject in quiet}
        over = {subject for subject, looks in self._calm.items() if looks >= LOOKS_UNTIL_OVER}
        if (over or wrong.keys() - told) and self._send(self._alert(wrong)):
            told = (told | wrong.keys()) - over
            atomic_write(self._locks / TOLD, msgspec.json.encode(sorted(told)))

    def _alert(self, wrong: Mapping[str, str]) -> Alert:
        site = self._store.snapshot.catalogue.site
        base_url = self._settings.address(site.base_url) or ""
        return Alert(
            site=site.name,
            health=f"{base_url}/healthz",
            status="degraded" if wrong else "ok",
            time=rfc3339(datetime.fromtimestamp(self._clock(), UTC)),
            affected=tuple(wrong),
            reasons=tuple(wrong.values()),
            text=f"{site.name}: {' '.join(wrong.values()) or 'all is well again.'}",
        )

    def _send(self, alert: Alert) -> bool:
        """Deliver one alert everywhere; what fails is logged once until it works again."""
        line = msgspec.json.encode(alert) + b"\n"
        failed = None
        try:
            if url := self._settings.secret("ALERT_URL"):
                _post(url, line)
            if command := self._settings.alert_command:
                _call(command, line)
        except (OSError, ValueError, subprocess.SubprocessError, SettingsError) as error:
            failed = f"an alert could not be delivered, and is tried again: {_why(error)}"
            if failed != self._failed:
                log.error("%s", failed)  # noqa: TRY400 - a sentence, not a trace
        self._failed = failed
        return failed is None

    def _told(self) -> frozenset[str]:
        try:
            return frozenset(_TOLD.decode((self._locks / TOLD).read_bytes()))
        except (OSError, ValueError):
            return frozenset()


def begin(store: Store, settings: Settings, schedule: Callable[[], ScheduleState] | None) -> None:
    """Watch over the store in a thread."""
    alerts = Alerts(store, settings, schedule)
    stop = threading.Event()
    threading.Thread(target=alerts.run, args=[stop], name="alerts", daemon=True).start()


def _wrong(found: Health) -> dict[str, str]:
    """What is wrong, by what it is about; sooner than health, an assistant nobody can reach."""
    wrong: dict[str, str] = {}
    for subject, reason in zip(found.affected, found.reasons, strict=True):
        wrong[subject] = f"{wrong[subject]} {reason}" if subject in wrong else reason
    for one in found.assistants:
        if one.unreachable and found.scheduler:
            wrong.setdefault(one.name, f"{one.name} could not be reached in its last poll.")
    return wrong


def _post(url: str, line: bytes) -> None:
    """Send to a web hook; neither the environment's proxies nor redirects are followed."""
    with requests.Session() as session:
        session.trust_env = False
        headers = {"Content-Type": "application/json"}
        answer = session.post(
            url, data=line, headers=headers, timeout=TIMEOUT, allow_redirects=False
        )
        if not answer.ok or answer.is_redirect:
            raise ValueError(f"ALERT_URL answered {answer.status_code}")


def _call(command: str, line: bytes) -> None:
    """Run a command with the line on its standard input; no shell reads either."""
    subprocess.run(  # noqa: S603 - the operator's own command
        shlex.split(command), input=line, timeout=TIMEOUT, check=True, stdout=subprocess.DEVNULL
    )


def _why(error: Exception) -> str:
    """What went wrong, without the address, which may hold a secret."""
    if isinstance(error, requests.RequestException):
        return f"ALERT_URL: {type(error).__name__}"
    if isinstance(error, subprocess.CalledProcessError):
        return f"ALERT_COMMAND ended with {error.returncode}"
    if isinstance(error, subprocess.TimeoutExpired):
        return f"ALERT_COMMAND took more than {TIMEOUT:g} s"
    if isinstance(error, OSError):
        return f"ALERT_COMMAND: {error.strerror}"
    return str(error)
