"""How long a provider asks to be left alone, read from a reply's headers. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

LONGEST = 7 * 86_400.0
"""No hint is believed beyond a week, in seconds."""

_NUMBER = re.compile(r"[0-9]{1,12}(\.[0-9]{1,12})?")
_PART = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,12})?)(ms|h|m|s)")
_DURATION = re.compile(rf"({_PART.pattern})+")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """The wait in seconds that a reply asks for outright; header names are in lower case.

    Source: RFC 9110, section 10.2.3; ``retry-after-ms`` is OpenAI's.
    """
    if (milliseconds := _number(headers.get("retry-after-ms"))) is not None:
        return _bounded(milliseconds / 1000)
    asked = headers.get("retry-after", "").strip()
    if (seconds := _number(asked)) is not None:
        return _bounded(seconds)
    return _until(asked, now, parsedate_to_datetime)


def limit_reset(headers: Mapping[str, str], now: datetime) -> float | None:
    """The seconds until every used-up limit that a reply tells of is fresh again.

    Sources: https://platform.openai.com/docs/guides/rate-limits#rate-limits-in-headers (a
    duration such as ``6m0s``), https://docs.claude.com/en/api/rate-limits#response-headers (a
    time in RFC 3339).
    """
    return max(_resets(headers, now), default=None)


def _resets(headers: Mapping[str, str], now: datetime) -> Iterator[float]:
    for name, left in headers.items():
        if "ratelimit" not in name or _number(left) != 0:
            continue
        reset = headers.get(name.replace("remaining", "reset"), "").strip()
        if _DURATION.fullmatch(reset):
            yield _bounded(sum(float(n) * _SECONDS[unit] for n, unit in _PART.findall(reset)))
        elif (seconds := _number(reset)) is not None:
            yield _bounded(seconds)
        elif (wait := _until(reset, now, datetime.fromisoformat)) is not None:
            yield wait


def _until(text: str, now: datetime, parse: Callable[[str], datetime]) -> float | None:
    """The seconds from now to a time, none if it has passed."""
    try:
        time = parse(text)
    except ValueError:
        return None
    aware = time if time.tzinfo else time.replace(tzinfo=UTC)
    return _bounded((aware - now).total_seconds())


def _number(text: str | None) -> float | None:
    return float(text) if text and _NUMBER.fullmatch(text.strip()) else None


def _bounded(seconds: float) -> float:
    return min(max(seconds, 0.0), LONGEST)
