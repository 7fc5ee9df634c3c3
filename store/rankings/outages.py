"""Whether an assistant still answers, computed from the times of its polls."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

FAILURES = 10
"""Failed polls in a row at which health is ``degraded`` (store/README.md, Publishing)."""


def outage(
    answered: str | None, failed: Sequence[str], every_days: int, since: datetime, now: datetime
) -> str | None:
    """Why an assistant needs a person, as the end of a sentence; ``None`` while it answers.

    ``answered`` is when it last did, ``failed`` when polls failed that no answer of the same
    category followed, ``since`` when polling began, for one that was never asked.
    """
    after = sorted(time for time in failed if time > (answered or ""))
    if len(after) >= FAILURES:
        return f"failed in its last {len(after)} polls, since {after[0]}"
    begun = answered or (after[0] if after else None)
    silent = now - (datetime.fromisoformat(begun) if begun else since)
    if silent > timedelta(days=2 * every_days):
        return f"has not answered for {silent.days} days"
    return None
