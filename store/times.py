"""Times as history and answers write them."""

from __future__ import annotations

from datetime import UTC, datetime


def rfc3339(time: datetime) -> str:
    """A time that carries its zone, in UTC and whole seconds.

    >>> rfc3339(datetime.fromisoformat("2026-11-20T07:00:00.9+01:00"))
    '2026-11-20T06:00:00Z'
    """
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
