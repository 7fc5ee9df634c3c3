"""What a reply's headers say of time: its date, how long to leave the provider alone. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

DAY = 86_400.0
LONGEST = 7 * DAY
"""A wait of more than a week, in seconds, is not believed: there is then no hint."""

_NUMBER = re.compile(r"[0-9]{1,15}(\.[0-9]{1,12})?")
_PART = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,12})?)(ms|h|m|s)")
_DURATION = re.compile(rf"({_PART.pattern})+")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def date(headers: Mapping[str, str]) -> datetime | None:
    """When a reply says that it was made, in UTC; source: RFC 9110, section 6.6.1."""
    return _time(headers.get("date", ""), parsedate_to_datetime)


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """The seconds that a reply asks to wait (RFC 9110, 10.2.3); ``retry-after-ms`` is OpenAI's."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None and (wait := believed(milliseconds / 1000)) is not None:
        return wait
    return _wait(headers.get("retry-after", "").strip(), parsedate_to_datetime, now)


def limit_reset(headers: Mapping[str, str], now: datetime) -> float | None:
    """The seconds until every used-up limit that a reply tells of is fresh again.

    Sources: https://platform.openai.com/docs/guides/rate-limits#rate-limits-in-headers (a
    duration such as ``6m0s``), https://docs.claude.com/en/api/rate-limits#response-headers (a
    time in RFC 3339); other servers give the time in Unix seconds or milliseconds.
    """
    return max((wait for wait in _resets(headers, now) if wait is not None), default=None)


def believed(seconds: float) -> float | None:
    """A wait in seconds, at least 0; ``None`` if it is implausibly long."""
    return max(seconds, 0.0) if seconds <= LONGEST else None


def _resets(headers: Mapping[str, str], now: datetime) -> Iterator[float | None]:
    for name, left in headers.items():
        if "ratelimit" not in name or _number(left) != 0:
            continue
        reset = headers.get(name.replace("remaining", "reset"), "").strip()
        if _DURATION.fullmatch(reset):
            yield believed(sum(float(n) * _SECONDS[unit] for n, unit in _PART.findall(reset)))
        else:
            yield _wait(reset, datetime.fromisoformat, now)


def _wait(text: str, parse: Callable[[str], datetime], now: datetime) -> float | None:
    """The wait that a number means, or a time in the format that ``parse`` reads."""
    if (number := _number(text)) is not None:
        return _duration_or_time(number, now)
    time = _time(text, parse)
    return None if time is None else believed((time - now).total_seconds())


def _duration_or_time(number: float, now: datetime) -> float | None:
    """The wait a number means: seconds, or a Unix time (s, ms) a day ago to a week ahead."""
    if number <= LONGEST:
        return number
    waits = (number - now.timestamp(), number / 1000 - now.timestamp())
    return next((max(wait, 0.0) for wait in waits if -DAY <= wait <= LONGEST), None)


def _time(text: str, parse: Callable[[str], datetime]) -> datetime | None:
    """A time in UTC, as that of no zone is taken; ``None`` if the text is none."""
    try:
        time = parse(text)
        aware = time if time.tzinfo else time.replace(tzinfo=UTC)
        return aware.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _number(text: str | None) -> float | None:
    return float(text) if text and _NUMBER.fullmatch(text.strip()) else None
