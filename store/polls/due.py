"""When a pair of category and assistant is due (CONTRACT section 6)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from store.records import Poll

RETRIED_SOONER = frozenset({"network", "timeout", "http", "rate_limited", "quota", "auth"})
FIRST_RETRY = timedelta(hours=6)

ALWAYS = datetime.min.replace(tzinfo=UTC)


def due_at(polls: Sequence[Poll], every_days: int) -> datetime:
    """The time from which a pair with these polls, oldest first, is due again.

    At once without a poll or after an interrupted one; sooner after a failure of the line, later
    with each one in a row; else after the regular interval.
    """
    if not polls or polls[-1].failure == "interrupted":
        return ALWAYS
    regular = timedelta(days=every_days)
    last = datetime.fromisoformat(polls[-1].polled_at)
    if polls[-1].failure not in RETRIED_SOONER:
        return last + regular
    failures = 0
    for poll in reversed(polls):
        if poll.failure is None:
            break
        failures += 1
    return last + min(regular, FIRST_RETRY * (1 << min(failures - 1, 16)))
