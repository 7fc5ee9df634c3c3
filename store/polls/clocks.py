"""Times that providers state, and whether this machine's clock can be believed.

By a clock that does not fit nothing is sent, and no day is closed.
"""

import re
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from store.category_history import CLOCK_TOLERANCE
from store.text import rfc3339

RETESTED_AFTER = 3600.0
"""Seconds after which a misfit is put to the test: it may have been that provider's clock."""
EARLIEST = datetime(2020, 1, 1, tzinfo=UTC)
LATEST = datetime(9000, 1, 1, tzinfo=UTC)
"""Bounds outside which a clock was never set (store/README.md, Time)."""
DAY = 86_400.0
LONGEST = 7 * DAY
"""A wait of more than a week, in seconds, is not believed: there is then no hint."""

_NUMBER = re.compile(r"[0-9]{1,15}(\.[0-9]{1,12})?")
_PART = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,12})?)(ms|h|m|s)")
_DURATION = re.compile(rf"({_PART.pattern})+")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def utc_now() -> datetime:
    """Return the time by this machine's clock."""
    return datetime.now(UTC)


class Clock:
    """A clock in UTC, compared with the ``Date`` of providers' replies; shared by threads.

    ``confirmed`` is the newest time at which a provider's agreed with it.
    """

    def __init__(
        self,
        now: Callable[[], datetime] = utc_now,
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        self.now = now
        self._elapsed = elapsed
        self.confirmed: datetime | None = None
        self._misfit: tuple[datetime, float, str] | None = None
        self._lock = threading.Lock()

    def fault(self) -> str | None:
        """Return why nothing may be sent by this clock, in a sentence; ``None`` while it fits.

        For an hour after a ``Date`` that did not fit, it must agree with that and the time since.
        """
        now = self.now()
        if now < EARLIEST:
            return f"This machine's clock says {rfc3339(now)}; nothing is sent until it is set."
        with self._lock:
            if self._misfit is None:
                return None
            date, at, sentence = self._misfit
            passed = self._elapsed() - at
            theirs = date + timedelta(seconds=passed)
            if abs(now - theirs) <= CLOCK_TOLERANCE or passed > RETESTED_AFTER:
                self._misfit = None
                return None
        return (
            f"{sentence} Nothing is sent until they agree, or for an hour: `timedatectl` says "
            "whether this machine's follows a time server."
        )

    def compare(self, date: datetime | None, began: datetime, name: str) -> str | None:
        """Hold the ``Date`` of a reply from an assistant's provider against our clock.

        Returns a sentence if it does not fit the attempt's time, and remembers that.
        """
        # a provider without a clock of its own says nothing of ours
        if date is None or not EARLIEST <= date < LATEST:
            return None
        now = self.now()
        fits = began - CLOCK_TOLERANCE <= date <= now + CLOCK_TOLERANCE
        sentence = _differ(now, date, name)  # as it was then: a log says it once
        with self._lock:
            self._misfit = None if fits else (date, self._elapsed(), sentence)
            if fits:
                earlier = min(date, now)
                self.confirmed = max(earlier, self.confirmed or earlier)
        return None if fits else f"{sentence} The answer was not counted."


def _differ(ours: datetime, theirs: datetime, name: str) -> str:
    return (
        f"This machine's clock says {rfc3339(ours)}, that of {name}'s provider {rfc3339(theirs)}."
    )


def date(headers: Mapping[str, str]) -> datetime | None:
    """Return when a reply says that it was made, in UTC (RFC 9110, section 6.6.1)."""
    return _time(headers.get("date", ""), parsedate_to_datetime)


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the seconds that a reply asks to wait (RFC 9110, section 10.2.3).

    ``retry-after-ms`` is OpenAI's.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None and (wait := believed(milliseconds / 1000)) is not None:
        return wait
    return _wait(headers.get("retry-after", ""), parsedate_to_datetime, now)


def limit_reset(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the seconds until every used-up limit that a reply tells of is fresh again.

    Sources: https://platform.openai.com/docs/guides/rate-limits#rate-limits-in-headers (a
    duration such as ``6m0s``), https://docs.claude.com/en/api/rate-limits#response-headers (a
    time in RFC 3339); other servers give the time in Unix seconds or milliseconds.
    """
    waits = []
    for name, left in headers.items():
        if not ("ratelimit" in name and "remaining" in name and _number(left) == 0):
            continue
        reset = headers.get(name.replace("remaining", "reset"), "").strip()
        if _DURATION.fullmatch(reset):
            seconds = sum(float(n) * _SECONDS[unit] for n, unit in _PART.findall(reset))
            waits.append(believed(seconds))
        else:
            waits.append(_wait(reset, datetime.fromisoformat, now))
    return max((wait for wait in waits if wait is not None), default=None)


def believed(seconds: float) -> float | None:
    """Return a wait in seconds, at least 0; ``None`` if it is implausibly long."""
    return max(seconds, 0.0) if seconds <= LONGEST else None


def _wait(text: str, parse: Callable[[str], datetime], now: datetime) -> float | None:
    """Return the wait that a number means, or a time in the format that ``parse`` reads.

    A number is in seconds, or a Unix time (s, ms) between a day ago and a week ahead.
    """
    number = _number(text)
    if number is None:
        time = _time(text, parse)
        return None if time is None else believed((time - now).total_seconds())
    if number <= LONGEST:
        return number
    waits = (number - now.timestamp(), number / 1000 - now.timestamp())
    return next((max(wait, 0.0) for wait in waits if -DAY <= wait <= LONGEST), None)


def _time(text: str, parse: Callable[[str], datetime]) -> datetime | None:
    """Return a time in UTC, which one without a zone is taken to be in; ``None`` if it is none."""
    try:
        time = parse(text)
        aware = time if time.tzinfo else time.replace(tzinfo=UTC)
        return aware.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _number(text: str | None) -> float | None:
    return float(text) if text and _NUMBER.fullmatch(text.strip()) else None
