"""Whether an assistant still answers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from store.rankings.outages import FAILURES, outage

NOW = datetime(2026, 11, 20, 6, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def at(**ago: float) -> str:
    """A time before now, as history writes it."""
    return (NOW - timedelta(**ago)).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_ten_failures_in_a_row_are_an_outage() -> None:
    """Those before the last answer, which other categories hold, are not of the row."""
    failures = [at(hours=n) for n in range(1, FAILURES + 1)]
    assert (
        outage(at(hours=11), failures, 7, NOW, NOW)
        == f"failed in its last 10 polls, since {at(hours=10)}"
    )
    assert outage(at(hours=10), failures, 7, NOW, NOW) is None
    assert outage(at(hours=11), failures[1:], 7, NOW, NOW) is None


def test_silence_for_twice_the_interval_is_an_outage() -> None:
    """It is counted from the last answer, else from the first poll, else from the beginning."""
    since = NOW - timedelta(days=14) - SECOND
    assert outage(at(days=14), (), 7, since, NOW) is None
    assert outage(at(days=14, seconds=1), (), 7, NOW, NOW) == "has not answered for 14 days"
    assert outage(None, [at(days=1), at(days=14)], 7, since, NOW) is None
    assert outage(None, [at(days=1), at(days=15)], 7, NOW, NOW) == "has not answered for 15 days"
    assert outage(None, (), 7, since, NOW) == "has not answered for 14 days"
    assert outage(None, (), 7, since + SECOND, NOW) is None
