"""Turns with an assistant: each question one record, nothing twice, nothing while it is paused."""

import errno
import os
import threading
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from polling_world import CANARY, NOW, PollingWorld
from processes import at_once, until
from replaying import CUT, DROPPED, Replaying, Step, answer_text, envelope

from store.history import History, HistoryError
from store.ledger import Proof
from store.polls import answers
from store.polls.poller import Plan, take_turn
from store.polls.sending import Limits, RateLimiter
from store.polls.session import Summary


def failures(session: PollingWorld) -> list[str | None]:
    """How each record of GPT's went, by category."""
    return [poll.failure for poll in session.polls("GPT")]


def test_an_answer_outlasts_a_moment_without_file_descriptors(
    session: PollingWorld, provider: Replaying, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is recorded when a file can be opened again, not asked and paid for once more."""
    append_poll, refusals = History.append, iter(range(5))

    def append_late(history: History, *arguments: Any, **options: Any) -> Any:
        if next(refusals, None) is not None:
            raise HistoryError("no file") from OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return append_poll(history, *arguments, **options)

    monkeypatch.setattr(History, "append", append_late)
    session.due()
    assert (len(session.polls("GPT")), len(provider.seen)) == (3, 3)


def test_two_pollers_never_ask_the_same(session: PollingWorld, provider: Replaying) -> None:
    """Who comes second reads what is due after the first has let go."""
    at_once(*[session.due] * 4)
    assert len(provider.seen) == len(session.polls()) == 3


@pytest.mark.parametrize(
    ("step", "failure"),
    [
        ({"status": 500, "body": {}}, "http"),
        ({"text": "no JSON"}, "parse"),
        ({"text": ""}, "empty"),
        (DROPPED, "network"),
    ],
)
def test_ten_failures_of_any_kind_pause(
    tmp_path: Path, provider: Replaying, step: Step, failure: str
) -> None:
    """A provider that answers garbage, and may bill it, is not asked about every category."""
    provider.follow({"gpt": [step]})
    session = PollingWorld(tmp_path / "data", provider.url, 14, concurrency=1)
    result = session.due()
    assert result.outcomes == {failure: 10}
    assert result.pause
    assert result.pause.until == NOW + timedelta(hours=6)
    assert not result.pause.stated, "so one question may be asked before"
    assert session.due().polled == 0
    assert session.due(probes_pause=True).outcomes == {failure: 1}
    session.later(hours=12, minutes=1)
    assert session.due().outcomes == {failure: 1}, "one more is enough for the next pause"


def test_ten_failures_of_few_categories_pause(tmp_path: Path, provider: Replaying) -> None:
    """Each counts, though they are of three pairs, and weeks lie between."""
    provider.follow({"gpt": [{"text": "no JSON"}]})
    session = PollingWorld(tmp_path / "data", provider.url, 3, concurrency=1)
    for _ in range(3):
        assert session.due().pause is None
        session.later(days=8)
    tenth = session.due()
    assert (tenth.outcomes, bool(tenth.pause)) == ({"parse": 1}, True)


@pytest.mark.parametrize("status", [429, 503, 529])
def test_nobody_asks_before_the_hour_that_a_provider_named(
    session: PollingWorld, provider: Replaying, status: int
) -> None:
    """Whatever the failure that bore it, no question goes through that pause."""
    body = {"error": {"message": "maintenance"}}
    provider.follow({"gpt": [{"status": status, "headers": {"Retry-After": "3600"}, "body": body}]})
    session.ask("GPT", "c-000")
    session.later(minutes=59)
    summary = session.ask("GPT", "c-001", probes_pause=True)
    assert (summary.polled, len(provider.seen)) == (0, 1)
    assert summary.pause
    assert summary.pause.stated


def test_the_pace_outlasts_a_turn(session: PollingWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else each turn of a process would begin it anew, and forget a wait that was asked for."""
    paces: list[RateLimiter] = []

    def wait(pace: RateLimiter, _: threading.Event) -> bool:
        paces.append(pace)
        return True

    monkeypatch.setattr(RateLimiter, "wait", wait)
    one = session.session()
    for slug in session.slugs:
        assert take_turn(one, "GPT", Plan(waiting=session.pairs(one, "GPT", slug)), Summary())
    assert (len(paces), len({*map(id, paces)})) == (3, 1)


def test_who_waits_for_the_pace_is_not_late(
    tmp_path: Path, provider: Replaying, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A question's time begins when it is sent: the last of these four is, after 1.5 seconds."""
    monkeypatch.setattr("store.polls.poller.GRACE", 0.0)
    session = PollingWorld(tmp_path / "data", provider.url, 4, rpm=120, concurrency=4)
    session.limits = Limits(attempts=1, total=1)
    assert session.ask("GPT").outcomes == {"answered": 4}


def test_an_answer_between_begins_the_count_anew(tmp_path: Path, provider: Replaying) -> None:
    """Nine failures, an answer, nine failures: no pause."""
    provider.follow({"gpt": [CUT] * 9 + [{"picks": ["A"]}] + [CUT] * 9 + [{"picks": ["A"]}]})
    session = PollingWorld(tmp_path / "data", provider.url, 20, concurrency=1)
    session.limits = Limits(attempts=1)
    summary = session.due()
    assert (summary.outcomes, summary.pause) == ({"network": 18, "answered": 2}, None)


def test_a_limit_of_money_is_used_up_and_not_passed(session: PollingWorld) -> None:
    """A question that does not fit beside those on their way waits for them."""
    result = session.ask("GPT", run_usd=0.05)
    assert (result.polled, result.limit) == (2, "--max-usd 0.05 is reached")
    assert result.pause is None


def test_the_parts_of_a_limit_are_equal(tmp_path: Path, provider: Replaying) -> None:
    """Who answers fast gets no more than the others: a fourth of it, with four to ask."""
    alone = PollingWorld(tmp_path / "a", provider.url, 20, concurrency=1).ask("GPT", run_usd=0.08)
    one = PollingWorld(tmp_path / "b", provider.url, 20, concurrency=1).due("GPT", run_usd=0.32)
    assert alone.limit == "--max-usd 0.08 is reached"
    assert one.limit == "its equal share of --max-usd 0.32 is reached"
    day = PollingWorld(tmp_path / "c", provider.url, 20, concurrency=1, daily_usd=0.32).due("GPT")
    share = "its equal share of daily_usd 0.32 of site.json is reached"
    assert day.limit == f"{share} until 00:00 UTC"
    assert 0 < alone.polled == one.polled == day.polled < 20


def test_a_limit_is_shared_among_those_that_can_be_asked(
    tmp_path: Path, provider: Replaying
) -> None:
    """Who is paused, lacks a key or has nothing due leaves its part to the others."""
    provider.follow({"claude": [{"status": 401, "body": {"error": {"message": "no"}}}]})
    world = PollingWorld(tmp_path / "data", provider.url, 2)
    assert world.due("Claude").pause
    session = world.session()
    state = session.polling.read(session.catalogue)

    def able(later: timedelta = timedelta()) -> list[str]:
        time = session.clock.now() + later
        assistants = session.catalogue.assistants
        return [who.name for who in assistants if session.can_be_asked(who, state, time)]

    assert able() == ["GPT", "Gemini", "Grok"]
    assert able(timedelta(hours=7)) == ["GPT", "Claude", "Gemini", "Grok"]
    environ = session.settings.environ
    assert isinstance(environ, dict)
    environ.clear()
    assert able() == []


def test_a_stop_records_what_was_sent_and_nothing_else(tmp_path: Path, provider: Replaying) -> None:
    """What is on its way is one ``interrupted`` record each; the others leave none."""
    provider.follow({"gpt": [{"gate": "never"}]})
    session = PollingWorld(tmp_path / "data", provider.url, 6, concurrency=2)
    turn = threading.Thread(target=session.due)
    turn.start()
    until(lambda: len(provider.seen) == 2)
    session.stop.set()
    turn.join()
    assert failures(session) == ["interrupted", "interrupted"]
    provider.gate("never").set()


def test_a_provider_that_drips_is_given_up(tmp_path: Path, provider: Replaying) -> None:
    """Headers without end keep no poll alive beyond its time, and no process."""
    provider.follow({"gpt": [{"raw": b"HTTP/1.1 200 OK\r\nX-Slow: ", "endless": b"a"}]})
    session = PollingWorld(tmp_path / "data", provider.url, 1)
    session.limits = Limits(attempts=1, total=0.1)
    assert session.due().outcomes == {"timeout": 1}
    assert all(t.daemon for t in threading.enumerate() if t.name.startswith("poll GPT"))
    assert session.polls()[0].error == "The poll took over 0.1 seconds."


def test_a_fault_of_the_program_is_one_failed_poll(
    session: PollingWorld, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It ends nothing; its trace is in the log, without the key."""

    def broken(_: str) -> object:
        raise ZeroDivisionError(CANARY)

    monkeypatch.setattr(answers, "read", broken)
    assert session.due().outcomes == {"http": 3}
    assert failures(session) == ["http"] * 3
    assert "ZeroDivisionError: [redacted]" in caplog.text
    assert CANARY not in caplog.text


@pytest.mark.parametrize(("hours", "pauses"), [(-3, True), (3, True), (0, False)])
def test_a_clock_that_does_not_fit_the_providers_asks_nothing_more(
    tmp_path: Path, provider: Replaying, hours: int, *, pauses: bool
) -> None:
    """The reply is a failure at the earlier of the two times, and the process sends nothing."""
    date = format_datetime(NOW + timedelta(hours=hours), usegmt=True)
    body = envelope("responses", answer_text(["A"]), "gpt")
    provider.follow({"gpt": [{"body": body, "headers": {"Date": date}}]})
    session = PollingWorld(tmp_path / "data", provider.url, concurrency=1)
    summary = session.due()
    assert (len(provider.seen) == 1, bool(summary.fault)) == (pauses, pauses)
    if pauses:
        [poll] = session.polls()
        assert poll.failure == "http"
        assert datetime.fromisoformat(poll.polled_at) == NOW + timedelta(hours=min(hours, 0))


def test_a_time_of_a_closed_day_is_not_recorded_as_such(
    session: PollingWorld, provider: Replaying
) -> None:
    """That day is over, whatever a provider's clock says: the failure is of the day after it."""
    session.later(days=-1)
    session.ask("Claude", "c-000")
    session.later(days=1)
    Proof(session.directory).close("2026-11-19")
    date = format_datetime(NOW - timedelta(days=2), usegmt=True)
    body = envelope("responses", answer_text(["A"]), "gpt")
    provider.follow({"gpt": [{"body": body, "headers": {"Date": date}}]})
    session.ask("GPT", "c-001")
    [poll] = session.polls("GPT")
    assert (poll.failure, poll.polled_at) == ("http", "2026-11-20T00:00:00Z")


def test_a_clock_that_was_never_set_asks_nobody(session: PollingWorld) -> None:
    """It says a time before 2020, and would date answers so, invented ones too."""
    file = session.directory / "models.json"
    file.write_text(file.read_text().replace('"responses"', '"sample"'))
    session.now = datetime(2019, 12, 31, 23, 59, 59, tzinfo=UTC)
    summary = session.ask("GPT")
    says = "This machine's clock says 2019-12-31T23:59:59Z; nothing is sent until it is set."
    assert (summary.polled, summary.fault) == (0, says)
    assert session.polls() == []
