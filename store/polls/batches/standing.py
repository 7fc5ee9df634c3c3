"""Whether an assistant can be asked in batches now, and how its batches stand in words. Pure."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from operator import attrgetter
from typing import TYPE_CHECKING

from msgspec import Struct

from store.polls.batches.files import seconds_since
from store.polls.batches.following import CANCEL_AFTER, HOUR, stuck
from store.polls.batches.submitting import MOST_ITEMS
from store.polls.providers.batches.queues import queue_of, why_not
from store.times import rfc3339

if TYPE_CHECKING:
    from collections.abc import Sequence

    from store.polls.batches.files import Batch
    from store.records import Assistant

REST = HOUR
"""Seconds without a new batch after one that was not made: queues have limits that pass."""
LATE_REST = 24 * HOUR
"""Seconds without a new batch after a late one, so that what it left is asked directly."""


_MODEL = attrgetter("api", "base_url", "model", "extra")
"""What is equal in two entries of models.json that ask one model of one provider."""


class Standing(Struct, frozen=True):
    """How many questions the next batch may have, or why none.

    ``waits`` while the trial batch, of one question, is out: due pairs are held back for batches.
    """

    most: int
    why: str | None = None
    waits: bool = False


def standing(assistant: Assistant, batches: Sequence[Batch], now: datetime) -> Standing:
    """How an assistant stands by its batches so far, oldest first; the first has one question."""
    if why := why_not(assistant):
        return Standing(0, f"it is asked directly: {why}")
    own = [b for b in batches if _MODEL(b.assistant) == _MODEL(assistant)]
    proven = any(batch.state == "collected" for batch in own)
    if not proven and any(batch.is_open for batch in own):
        return Standing(0, "the first batch, of one question, is on its way", waits=True)
    for batch in reversed(own):
        since = seconds_since(batch.over_at, now) if batch.over_at else math.inf
        if batch.refused and not proven:
            return Standing(0, f"batches are off, for the first was refused: {batch.why}")
        if batch.late and since < LATE_REST:
            return Standing(0, "batches rest for a day, for one came late or was cancelled")
        if batch.state in ("void", "lost") and since < REST:
            return Standing(0, f"batches rest for an hour: {batch.why}")
    return Standing(min(MOST_ITEMS, queue_of(assistant).MAX_REQUESTS) if proven else 1)


def why_none(assistant: Assistant, batches: Sequence[Batch], now: datetime) -> str | None:
    """Why due pairs are asked directly though ``batch`` is set; ``None`` during a trial batch."""
    stand = standing(assistant, batches, now)
    return stand.why if assistant.batch and not stand.waits else None


class OpenBatches(Struct, frozen=True, rename="camel"):
    """An assistant's batches on their way; after ``direct_after`` the first is cancelled."""

    count: int
    asked: int
    done: int
    since: str
    direct_after: str
    usd_at_most: float
    hours: float

    def __str__(self) -> str:
        """A phrase for people."""
        count = "1 batch" if self.count == 1 else f"{self.count} batches"
        passed = f"{self.hours:.0f} h" if self.hours >= 1 else f"{60 * self.hours:.0f} min"
        direct = f"{self.direct_after[5:10]} {self.direct_after[11:16]}Z"
        return (
            f"{count}: {self.asked} asked {passed} ago, {self.done} done, direct after {direct}, "
            f"at most {self.usd_at_most:.2f} USD"
        )


def open_batches(batches: Sequence[Batch], now: datetime) -> OpenBatches | None:
    """How those of an assistant's batches stand that are on their way, if any are."""
    there = [batch for batch in batches if batch.is_open]
    if not there:
        return None
    first = min(there, key=lambda batch: batch.intended_at)
    direct = datetime.fromisoformat(first.intended_at) + timedelta(seconds=CANCEL_AFTER)
    return OpenBatches(
        count=len(there),
        asked=sum(len(batch.items) for batch in there),
        done=sum(batch.done for batch in there),
        since=first.intended_at,
        direct_after=rfc3339(direct),
        usd_at_most=sum(batch.reserved for batch in there) / 1e6,
        hours=round(first.age(now) / HOUR, 2),
    )


def late_ones(batches: Sequence[Batch], now: datetime) -> list[str]:
    """A sentence for each batch that should have ended."""
    return [stuck(b) for b in batches if b.is_open and b.age(now) > CANCEL_AFTER]
