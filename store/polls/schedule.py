"""Polling on schedule: one process of all, one APScheduler job for each assistant.

The process that holds the scheduler's lock runs the jobs; the others try the lock every second and
take over when it falls free, as it does when its holder dies. Each job now and then polls a few of
the pairs that are due, so that a full round is spread over a day. The jobs live in memory: what is
due follows from history, so a restart forgets nothing.
"""

from __future__ import annotations

import logging
import math
import signal
import threading
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.base import JobLookupError
from apscheduler.schedulers.background import BackgroundScheduler
from filelock import FileLock, Timeout

from store.history import HistoryError
from store.polls.asking import Unready
from store.polls.due import Agenda, Pair
from store.polls.edges import daily_account, edges_of, locks_in, other_owner, pasts_of
from store.polls.runner import Runner, rfc3339
from store.settings import SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from store.files import Catalogue
    from store.memory import Store
    from store.polls.runner import Tally
    from store.records import Assistant
    from store.settings import Settings

log = logging.getLogger(__name__)

LOCK = "schedule.lock"
DAY = 86_400
HOUR = 3600.0
"""Seconds without polls when a cap is reached, a key is missing or a poll cannot be recorded: what
cannot be recorded must not be paid for."""
GOODBYE = 8.0
"""Seconds that a stopping process gives its last polls to be recorded."""


class Schedule:
    """Runs the polls of one data directory whenever this process is the one to do it."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._locks = locks_in(settings)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._stand_by, name="schedule", daemon=True)
        self._agenda = Agenda(store.history)
        self._elected = False

    def start(self) -> None:
        """Begin to stand for election, and to poll once elected."""
        self._thread.start()

    def status(self) -> dict[str, bool]:
        """Whether this process stands ready to poll, and whether it is the one that does."""
        return {"alive": self._thread.is_alive(), "polling": self._elected}

    def stop(self, wait: float = GOODBYE) -> None:
        """End every wait and poll, and give what is under way so many seconds to be recorded."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(wait)

    def stop_on(self, *signals: signal.Signals) -> None:
        """Stop when one of these signals comes, then do what the process would have done."""
        for number in signals:
            signal.signal(number, self._ending(signal.getsignal(number)))

    def _ending(self, before: Any) -> Callable[[int, FrameType | None], None]:
        def end(number: int, frame: FrameType | None) -> None:
            self._stop.set()
            if callable(before):
                before(number, frame)
                return
            self.stop()
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)

        return end

    def _stand_by(self) -> None:
        """Try to be the one process that polls, until stopped."""
        lock: FileLock | None = None
        while not self._stop.is_set():
            try:
                self._locks.mkdir(exist_ok=True)
                lock = FileLock(self._locks / LOCK)
                with lock.acquire(timeout=0):
                    log.info("this process polls on schedule")
                    if owner := other_owner(self._settings):
                        log.warning("%s, whose data it is, cannot use what root adds", owner)
                    self._serve()
            except Timeout:
                pass
            except OSError as error:
                log.error("%s cannot be locked: %s", self._locks, error.strerror)  # noqa: TRY400
            self._wait_a_second()

    def _serve(self) -> None:
        """Keep a job for each assistant of models.json until stopped."""
        scheduler = BackgroundScheduler(
            timezone=UTC,
            executors={"default": ThreadPoolExecutor(64)},
            job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None},
        )
        scheduler.start()
        self._elected = True
        try:
            looked = -math.inf
            while not self._stop.is_set():
                if time.monotonic() >= looked + self._settings.poll_tick:
                    looked = time.monotonic()
                    self._keep_jobs(scheduler)
                self._wait_a_second()
        finally:
            self._elected = False
            scheduler.shutdown(wait=True)

    def _wait_a_second(self) -> None:
        """Wait a moment; when the main thread has ended, by whatever way, stop as well."""
        self._stop.wait(min(1.0, self._settings.poll_tick))
        if not threading.main_thread().is_alive():
            self._stop.set()

    def _keep_jobs(self, scheduler: BackgroundScheduler) -> None:
        """Give every assistant a job, and none to what is no assistant any more."""
        self._store.keep_current()
        wanted = {assistant.name for assistant in self._store.snapshot.catalogue.assistants}
        running = {job.id for job in scheduler.get_jobs()}
        for name in sorted(running - wanted):
            scheduler.remove_job(name)
        for name in sorted(wanted - running):
            scheduler.add_job(
                self._poll,
                "interval",
                seconds=self._settings.poll_tick,
                id=name,
                args=[scheduler, name],
                next_run_time=datetime.now(UTC),
            )

    def _poll(self, scheduler: BackgroundScheduler, name: str) -> None:
        """One assistant's job: poll a few of its due pairs, or rest if that is of no use."""
        catalogue = self._store.snapshot.catalogue
        assistant = next((a for a in catalogue.assistants if a.name == name), None)
        if assistant is None or self._stop.is_set():
            return
        try:
            tally = self._run(catalogue, assistant)
        except (Unready, SettingsError, HistoryError, OSError) as error:
            self._rest(scheduler, name, HOUR, str(error))
            return
        if tally and tally.rest is not None:
            self._rest(scheduler, name, tally.rest, tally.paused or "")
        elif tally and tally.paused:
            self._rest(scheduler, name, HOUR, tally.paused)

    def _run(self, catalogue: Catalogue, assistant: Assistant) -> Tally | None:
        pairs = [Pair(slug, category, assistant) for slug, category in catalogue.categories.items()]
        self._agenda.look(pasts_of(catalogue), datetime.now(UTC))
        due = self._agenda.due(pairs, catalogue.site.poll_every_days, datetime.now(UTC))
        share = math.ceil(len(pairs) * self._settings.poll_tick / DAY)
        edges = edges_of(
            self._settings,
            catalogue,
            self._store.history,
            self._store.record,
            stop=self._stop,
            accounts=daily_account(self._settings, catalogue, self._agenda),
        )
        runner = Runner(edges, catalogue.site.poll_every_days)
        return runner.run(due[:share], only_due=True).get(assistant.name)

    def _rest(self, scheduler: BackgroundScheduler, name: str, seconds: float, reason: str) -> None:
        """Leave an assistant alone for a while, and say so in one line."""
        until = datetime.now(UTC) + timedelta(seconds=seconds)
        log.warning("%s is paused until %s: %s", name, rfc3339(until), reason)
        try:
            scheduler.modify_job(name, next_run_time=until)
        except JobLookupError:
            log.info("%s left models.json while it was polled", name)
