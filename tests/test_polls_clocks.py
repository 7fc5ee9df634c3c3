"""Whether this machine's clock can be believed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from store.counting import CLOCK_TOLERANCE
from store.polls.clocks import EARLIEST, Clock

NOW = datetime(2026, 11, 20, 6, tzinfo=UTC)
SECOND = timedelta(seconds=1)


class Hands:
    """A clock that somebody sets, beside one that nobody can."""

    def __init__(self) -> None:
        self.now = NOW
        self.elapsed = 1000.0
        self.clock = Clock(lambda: self.now, lambda: self.elapsed)

    def pass_by(self, time: timedelta) -> None:
        """Time goes by, for both."""
        self.now += time
        self.elapsed += time.total_seconds()


def test_a_clock_that_was_never_set_sends_nothing() -> None:
    """Before 2020 nothing is sent, and a sentence says what the clock says."""
    hands = Hands()
    assert hands.clock.fault() is None
    hands.now = EARLIEST - SECOND
    assert hands.clock.fault() == (
        "This machine's clock says 2019-12-31T23:59:59Z; nothing is sent until it is set."
    )


@pytest.mark.parametrize("sign", [1, -1])
def test_a_date_ten_minutes_off_is_a_misfit(sign: int) -> None:
    """Ten minutes are forgiven, either way; a second more is not."""
    clock = Hands().clock
    assert clock.compare(NOW + sign * CLOCK_TOLERANCE, NOW) is None
    assert clock.compare(NOW + sign * (CLOCK_TOLERANCE + SECOND), NOW) is not None


def test_a_date_may_be_from_any_moment_of_the_exchange() -> None:
    """A reply that took five minutes was dated when it began."""
    hands = Hands()
    hands.pass_by(timedelta(minutes=9))
    assert hands.clock.compare(NOW - CLOCK_TOLERANCE, NOW) is None


def test_after_a_misfit_nothing_is_sent_until_the_clock_agrees() -> None:
    """The provider's date and the time since then are what the clock must come to."""
    hands = Hands()
    theirs = NOW + timedelta(days=1)
    assert hands.clock.compare(theirs, NOW) == (
        "This machine's clock says 2026-11-20T06:00:00Z, the provider's 2026-11-21T06:00:00Z. "
        "The answer was not counted."
    )
    hands.pass_by(timedelta(hours=1))
    assert hands.clock.fault() == (
        "This machine's clock says 2026-11-20T07:00:00Z, the provider's 2026-11-21T07:00:00Z. "
        "Nothing is sent until they agree."
    )
    hands.now += timedelta(days=1)
    assert hands.clock.fault() is None
    hands.now -= timedelta(days=1)
    assert hands.clock.fault() is None, "it is believed again until another date does not fit"


def test_a_date_that_fits_ends_a_misfit() -> None:
    """The newest word counts, whoever's it is."""
    clock = Hands().clock
    clock.compare(NOW + timedelta(days=1), NOW)
    assert clock.compare(NOW, NOW) is None
    assert clock.fault() is None


@pytest.mark.parametrize("year", [1970, 2019, 9000, 9999])
def test_a_provider_without_a_clock_says_nothing_of_ours(year: int) -> None:
    """A date that no record may have is not compared, so that none gets it."""
    clock = Hands().clock
    assert clock.compare(datetime(year, 1, 1, tzinfo=UTC), NOW) is None
    assert clock.fault() is None


def test_an_hour_after_a_misfit_another_reply_may_tell() -> None:
    """One provider with a wrong clock stops the others no longer than that."""
    hands = Hands()
    hands.clock.compare(NOW + timedelta(days=9), NOW)
    hands.pass_by(timedelta(minutes=60))
    assert hands.clock.fault() is not None
    hands.pass_by(SECOND)
    assert hands.clock.fault() is None
