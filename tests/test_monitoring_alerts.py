"""An operator without a monitoring system learns of what is wrong, once, and of its end."""

from __future__ import annotations

import http.server
import json
import shlex
import sys
import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from builders import answered, app_over, append, failed, write_data
from test_web_health import State

from store.monitoring.alerts import LOOKS_UNTIL_OVER, Alerts
from store.rankings.poll_states import Pause
from store.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOW = datetime(2026, 11, 10, 6, tzinfo=UTC)
UNTIL = datetime(2026, 11, 10, 12, tzinfo=UTC)
SECRET = "T0K3N"  # noqa: S105 - no real one


class Hook(http.server.BaseHTTPRequestHandler):
    """A web hook that keeps what it is sent."""

    told: list[dict[str, Any]]
    status = 200

    def do_POST(self) -> None:
        """Take an alert."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        assert body.count(b"\n") == 1
        if self.status == 200:
            self.told.append(json.loads(body))
        self.send_response(self.status)
        self.end_headers()

    def log_message(self, *args: object) -> None:
        """Say nothing."""


class Site:
    """A site whose alerts go to a hook, and whose scheduler says what a test wants."""

    def __init__(self, data: Path, url: str) -> None:
        self.data = data
        self.state = State()
        self.settings = Settings(
            data_dir=data, base_url="https://rankings.example", environ={"ALERT_URL": url}
        )
        self.alerts = self.restarted()

    def restarted(self) -> Alerts:
        """The same over a new process."""
        self.store = app_over(self.data).extensions["store"]
        return Alerts(self.store, self.settings, lambda: self.state, NOW.timestamp)

    def look(self, times: int = 1) -> None:
        """Look at the files and at health."""
        for _ in range(times):
            self.store.reload()
            self.store.looked_at = NOW.timestamp()
            self.alerts.look()


@pytest.fixture
def hook() -> Iterator[type[Hook]]:
    class Own(Hook):
        told: list[dict[str, Any]] = []  # noqa: RUF012 - one for each test

    server = http.server.HTTPServer(("127.0.0.1", 0), Own)
    Own.url = f"http://127.0.0.1:{server.server_port}/{SECRET}"  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
    yield Own
    server.shutdown()
    server.server_close()


@pytest.fixture
def site(tmp_path: Path, hook: Any) -> Site:
    polls = [answered(model, ["X"], "2026-11-09T07:00:00Z") for model in "AB"]
    categories = {slug: {"title": f"Best {slug}"} for slug in ("crm-software", "vpn")}
    data = write_data(tmp_path / "data", categories=categories, models="AB", polls=polls)
    return Site(data, hook.url)


def paused(*names: str) -> State:
    """A scheduler that leaves assistants alone."""
    reasons = tuple(f"{name} is paused until 2026-11-10T12:00:00Z: no key" for name in names)
    return State(reasons=reasons, pauses={name: Pause(UNTIL, "no key") for name in names})


def test_a_state_is_told_once_and_so_is_its_end(site: Site, hook: type[Hook]) -> None:
    """Nothing while all is well; one line when it changes, whatever the number of looks."""
    site.look(2)
    assert hook.told == []
    site.state = paused("A")
    site.look(5)
    [told] = hook.told
    assert told["status"] == "degraded"
    assert told["affected"] == ["A"]
    assert told["reasons"] == ["A is paused until 2026-11-10T12:00:00Z: no key"]
    assert told["health"] == "https://rankings.example/healthz"
    assert told["time"] == "2026-11-10T06:00:00Z"
    site.state = State()
    site.look(LOOKS_UNTIL_OVER - 1)
    assert len(hook.told) == 1, "a pause that ends is often followed by the next"
    site.look(5)
    assert [told["status"] for told in hook.told] == ["degraded", "ok"]


def test_what_comes_on_top_is_told(site: Site, hook: type[Hook]) -> None:
    """A second assistant is news, and the alert names both."""
    site.state = paused("A")
    site.look()
    site.state = paused("A", "B")
    site.look(3)
    assert [told["affected"] for told in hook.told] == [["A"], ["A", "B"]]


def test_it_is_over_only_when_the_assistant_answers(site: Site, hook: type[Hook]) -> None:
    """After a pause the same failure may come again: silence is no recovery."""
    append(site.data, [failed("A", "auth", "2026-11-09T08:00:00Z")])
    site.state = paused("A")
    site.look()
    site.state = State()
    site.look(LOOKS_UNTIL_OVER + 2)
    assert len(hook.told) == 1
    append(site.data, [answered("A", ["X"], "2026-11-09T14:00:00Z")])
    site.look(LOOKS_UNTIL_OVER)
    assert [told["status"] for told in hook.told] == ["degraded", "ok"]


def test_a_provider_that_cannot_be_reached_is_told_at_once(site: Site, hook: type[Hook]) -> None:
    """Health waits for ten failures; nobody at the other end, in several attempts, is told sooner.

    Once, however many polls follow; other failures may be chance.
    """
    append(site.data, [failed("A", "timeout", "2026-11-09T08:00:00Z")])
    site.look(2)
    assert hook.told == []
    for minute in (1, 2):
        append(site.data, [failed("A", "network", f"2026-11-09T08:0{minute}:00Z", slug="vpn")])
        site.look(2)
        [told] = hook.told
        assert told["reasons"] == ["A could not be reached in its last poll."]


def test_a_restart_repeats_nothing(site: Site, hook: type[Hook]) -> None:
    """What was told is kept beside the locks."""
    site.state = paused("A")
    site.look()
    site.alerts = site.restarted()
    site.look(2)
    assert len(hook.told) == 1


def test_what_could_not_be_delivered_is_tried_again(
    site: Site, hook: type[Hook], caplog: pytest.LogCaptureFixture
) -> None:
    """A hook that is down gets the alert when it is back; the log says so once, without its URL."""
    hook.status = 503
    site.state = paused("A")
    site.look(3)
    assert [r.getMessage() for r in caplog.records if "alert" in r.getMessage()] == [
        "an alert could not be delivered, and is tried again: ALERT_URL answered 503"
    ]
    hook.status = 200
    site.look(2)
    assert len(hook.told) == 1
    assert SECRET not in caplog.text


def test_one_process_tells(site: Site, hook: type[Hook]) -> None:
    """Where several stand ready to poll, the one that polls, and knows the pauses, tells."""
    site.state = msgspec.structs.replace(paused("A"), polling=False)
    site.look(2)
    assert hook.told == []
    site.state = msgspec.structs.replace(site.state, alive=False)
    site.look()
    assert len(hook.told) == 1, "one whose schedule has ended speaks for itself"


def test_a_command_can_be_told(site: Site, tmp_path: Path) -> None:
    """It gets the line on its standard input; no shell reads it."""
    target = tmp_path / "told"
    code = f"import sys; open({str(target)!r}, 'a').write(sys.stdin.read())"
    command = shlex.join([sys.executable, "-c", code])
    site.settings = Settings(data_dir=site.data, alert_command=command)
    site.alerts = site.restarted()
    site.state = paused("A")
    site.look(2)
    assert json.loads(target.read_text())["affected"] == ["A"]
