"""Times that providers state, and whether this machine's clock can be believed."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.category_history import CLOCK_TOLERANCE
from store.polls.clocks import LONGEST, Clock, date, limit_reset, retry_after

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


@pytest.mark.parametrize("sign", [1, -1])
def test_a_date_ten_minutes_off_is_a_misfit(sign: int) -> None:
    """Ten minutes are forgiven, either way; a second more is not."""
    clock = Hands().clock
    assert clock.compare(NOW + sign * CLOCK_TOLERANCE, NOW, "A") is None
    assert clock.compare(NOW + sign * (CLOCK_TOLERANCE + SECOND), NOW, "A") is not None


def test_a_date_may_be_from_any_moment_of_the_exchange() -> None:
    """A reply that took five minutes was dated when it began."""
    hands = Hands()
    hands.pass_by(timedelta(minutes=9))
    assert hands.clock.compare(NOW - CLOCK_TOLERANCE, NOW, "A") is None


def test_after_a_misfit_nothing_is_sent_until_the_clock_agrees() -> None:
    """The provider's date and the time since then are what the clock must come to."""
    hands = Hands()
    theirs = NOW + timedelta(days=1)
    assert hands.clock.compare(theirs, NOW, "A") == (
        "This machine's clock says 2026-11-20T06:00:00Z, that of A's provider "
        "2026-11-21T06:00:00Z. The answer was not counted."
    )
    hands.pass_by(timedelta(hours=1))
    assert hands.clock.fault() == (
        "This machine's clock says 2026-11-20T06:00:00Z, that of A's provider "
        "2026-11-21T06:00:00Z. Nothing is sent until they agree, or for an hour: `timedatectl` "
        "says whether this machine's follows a time server."
    )
    hands.now += timedelta(days=1)
    assert hands.clock.fault() is None
    hands.now -= timedelta(days=1)
    assert hands.clock.fault() is None, "it is believed again until another date does not fit"


def test_a_date_that_fits_ends_a_misfit() -> None:
    """The newest word counts, whoever's it is."""
    clock = Hands().clock
    clock.compare(NOW + timedelta(days=1), NOW, "A")
    assert clock.compare(NOW, NOW, "A") is None
    assert clock.fault() is None


@pytest.mark.parametrize("year", [1970, 2019, 9000, 9999])
def test_a_provider_without_a_clock_says_nothing_of_ours(year: int) -> None:
    """A date that no record may have is not compared, so that none gets it."""
    clock = Hands().clock
    assert clock.compare(datetime(year, 1, 1, tzinfo=UTC), NOW, "A") is None
    assert clock.fault() is None


def test_an_hour_after_a_misfit_another_reply_may_tell() -> None:
    """One provider with a wrong clock stops the others no longer than that."""
    hands = Hands()
    hands.clock.compare(NOW + timedelta(days=9), NOW, "A")
    hands.pass_by(timedelta(minutes=60))
    assert hands.clock.fault() is not None
    hands.pass_by(SECOND)
    assert hands.clock.fault() is None


# ------------------------------------------------------------------ headers

HEADERS_AT = datetime(2026, 11, 21, 10, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7),
        ({"retry-after": " 7 "}, 7),
        ({"retry-after": "0"}, 0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "604800"}, LONGEST),
        ({"retry-after": "604801"}, None),
        ({"retry-after": "999999999999"}, None),
        ({"retry-after": "1795255230"}, 30),  # 2026-11-21T10:00:30Z in Unix seconds
        ({"retry-after": "1795255230000"}, 30),
        ({"retry-after": "1795251600"}, 0),
        ({"retry-after": "1700000000"}, None),
        ({"retry-after": "Sat, 21 Nov 99999999999 10:00:30 GMT"}, None),
        ({"retry-after": "Sat, 21 Nov 2026 10:00:30 +99999999999999"}, None),
        ({"retry-after": "Fri, 31 Dec 9999 23:59:59 -2300"}, None),
        ({"retry-after": "Sat, 21 Nov 2099 10:00:30 GMT"}, None),
        ({"retry-after-ms": "1795255230000", "retry-after": "9"}, 9),
        ({"retry-after": "Sat, 21 Nov 2026 10:00:30 GMT"}, 30),
        ({"retry-after": "Sat, 21 Nov 2026 10:00:30 -0000"}, 30),
        ({"retry-after": "Sat, 21 Nov 2026 09:00:00 GMT"}, 0),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after-ms": "x", "retry-after": "9"}, 9),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "1e9"}, None),
        ({"retry-after": "٣"}, None),
    ],
)
def test_outright_hints(headers: dict[str, str], wait: float | None) -> None:
    """Seconds, milliseconds and HTTP dates are understood; what is no wait is no hint."""
    assert retry_after(headers, HEADERS_AT) == wait


@pytest.mark.parametrize(
    ("reset", "wait"),
    [
        ("1s", 1),
        ("6m0s", 360),
        ("20ms", 0.02),
        ("1h2m3.5s", 3723.5),
        ("59.84s", 59.84),
        ("45", 45),
        ("1795255260", 60),
        ("1795255260000", 60),
        ("1795255260.5", 60.5),
        ("1795000000", None),
        ("99999999999999999999", None),
        ("9999h", None),
        ("9999-12-31T23:59:59-23:59", None),
        ("0001-01-01T00:00:00+23:59", None),
        ("2026-11-21T10:01:00Z", 60),
        ("2026-11-21T11:01:00+01:00", 60),
        ("2026-11-21T10:01:00", 60),
        ("2026-11-21T09:00:00Z", 0),
        ("soon", None),
        ("", None),
        ("5 parsecs", None),
    ],
)
def test_resets_of_a_used_up_limit(reset: str, wait: float | None) -> None:
    """OpenAI's durations and Anthropic's times both tell when a limit is fresh again."""
    openai = {"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": reset}
    anthropic = {
        "anthropic-ratelimit-tokens-remaining": "0",
        "anthropic-ratelimit-tokens-reset": reset,
    }
    assert limit_reset(openai, HEADERS_AT) == limit_reset(anthropic, HEADERS_AT) == wait


def test_only_used_up_limits_count_and_the_longest_wins() -> None:
    """A limit with something left asks for no wait; of several used up, all must be fresh."""
    headers = {
        "x-ratelimit-limit-requests": "60",
        "x-ratelimit-remaining-requests": "0",
        "x-ratelimit-reset-requests": "2s",
        "x-ratelimit-remaining-tokens": "0",
        "x-ratelimit-reset-tokens": "9s",
        "x-ratelimit-remaining-images": "1",
        "x-ratelimit-reset-images": "99s",
        "x-other-remaining": "0",
        "x-other-reset": "100s",
        "x-ratelimit-remaining-audio": "0",
    }
    assert limit_reset(headers, HEADERS_AT) == 9
    assert limit_reset({}, HEADERS_AT) is None
    nothing_used = {"x-ratelimit-used": "0", "x-ratelimit-reset": "0"}
    assert limit_reset(nothing_used, HEADERS_AT) is None, "a used-up limit has nothing remaining"


PIECES = st.sampled_from(
    ["Sat, ", "21 ", "Nov ", "2026 ", "10:00:30", " GMT", "+0100", "-", "T", "9" * 20, "99", " "]
)
TIMES = st.text() | st.lists(PIECES, max_size=9).map("".join) | st.integers().map(str)


def test_the_date_of_a_reply() -> None:
    """HTTP's date is a time in UTC; what is none is none."""
    assert date({"date": "Sat, 21 Nov 2026 10:00:00 GMT"}) == HEADERS_AT
    assert date({}) is date({"date": "today"}) is None


@given(st.dictionaries(st.sampled_from(["retry-after", "retry-after-ms", "date"]), TIMES), TIMES)
def test_no_header_raises(headers: dict[str, str], reset: str) -> None:
    """Any text in a hint is a wait within bounds or none; any date is a time in UTC or none."""
    more = {"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": reset}
    made = date(headers)
    assert made is None or made.tzinfo is UTC
    for wait in (retry_after(headers, HEADERS_AT), limit_reset(more, HEADERS_AT)):
        assert wait is None or 0 <= wait <= LONGEST
