"""Mentions: how often products are named, and whether that moves (store/README.md, Figures).

A trend compares like with like. The windows are the 7 days that end with the newest poll's day
and the 7 before. Only cells (one category, one model, one wording, one instrument) with a
successful poll in both count, each by its newest poll in either window; raw counts would "move"
whenever polling gets denser.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from store.rankings.merging import ResolvedAnswer
    from store.rankings.names import ProductId

Direction = Literal["new", "insufficient", "up", "down", "flat"]

WINDOW = dt.timedelta(days=7)
"""One polling round at the default ``poll_every_days``."""
_DAY = dt.timedelta(days=1)
MIN_CELLS = 8
"""Cells under which a trend is ``insufficient``; a published rule (store/README.md, Figures)."""
MIN_DISCORDANT = 6
"""Changed cells under which it is, too; the least for a two-sided sign test at 5 % (2 / 2⁶)."""
CHI_SQUARE_95 = 3.84
"""The 95 % point of χ² with one degree of freedom, for McNemar's test."""


class CellPoll(Struct, frozen=True, gc=False):
    """One model's answer to one category as far as a trend needs it: its day and the products."""

    day: dt.date
    products: tuple[ProductId, ...]


Cells = tuple[tuple[CellPoll, ...], ...]
"""The recent polls of each cell of a category."""


class Trend(Struct, frozen=True):
    """A product's mentions in each window, counted in cells; ``delta`` is in percentage points.

    The cells are those that list the product in either window, so both windows have as many.
    """

    mentions: int
    mentions_before: int
    cells: int
    delta: float | None
    direction: Direction


def recent(answers: Sequence[ResolvedAnswer]) -> Cells:
    """By cell, the polls of its last two windows, newest first: all that a trend may need."""
    cells: dict[tuple[str, str, str | None], list[CellPoll]] = {}
    oldest: dict[tuple[str, str, str | None], str] = {}
    for answered in reversed(answers):
        poll = answered.poll
        cell, date = (
            (answered.model, answered.question, poll.instrument or None),
            poll.polled_at[:10],
        )
        if date >= oldest.get(cell, ""):
            day = dt.date.fromisoformat(date)
            if cell not in oldest:
                oldest[cell] = (day - 2 * WINDOW + _DAY).isoformat()
            cells.setdefault(cell, []).append(CellPoll(day, answered.products))
    return tuple(map(tuple, cells.values()))


class Trends:
    """The trend of every product, from all cells' recent polls and the newest poll's day."""

    def __init__(
        self, cells: Mapping[str, Cells], today: dt.date, before: Trends | None = None
    ) -> None:
        """Count the cells of each category; of ``before``, of the same day, those that differ."""
        self._today, self._cells = today, cells
        self._window_start = today - WINDOW + _DAY
        self._now, self._before, self._both = Counter[str](), Counter[str](), Counter[str]()
        known: Mapping[str, Cells] = {}
        if before and before._today == today:  # noqa: SLF001 - of the same class
            known = before._cells  # noqa: SLF001
            self._now, self._before, self._both = map(Counter, before._counts)  # noqa: SLF001
        for slug in known.keys() | cells.keys():
            if known.get(slug) is not cells.get(slug):
                self._count(known.get(slug, ()), -1)
                self._count(cells.get(slug, ()), 1)

    @property
    def _counts(self) -> tuple[Counter[ProductId], ...]:
        return self._now, self._before, self._both

    def _count(self, cells: Cells, by: int) -> None:
        for cell in cells:
            if pair := _compared(cell, self._window_start, self._today):
                now, before = pair
                for counter, found in zip(self._counts, (now, before, now & before), strict=True):
                    for product in found:
                        counter[product] += by

    def of(self, product: ProductId, first_mention: dt.date) -> Trend:
        """The trend of one product; it is ``new`` if ``first_mention`` is in the current window."""
        now, before, both = self._now[product], self._before[product], self._both[product]
        cells = now + before - both
        delta = round(100 * (now - before) / cells, 1) if cells else None
        if first_mention >= self._window_start:
            direction: Direction = "new"
        else:
            direction = _direction(cells, now - both, before - both)
        return Trend(now, before, cells, delta, direction)


def _compared(
    cell: Sequence[CellPoll], start: dt.date, today: dt.date
) -> tuple[set[ProductId], set[ProductId]] | None:
    """What the newest poll of a cell names in the window from ``start`` and in the one before.

    ``None`` where one of them has no poll.
    """
    now = next((poll for poll in cell if start <= poll.day <= today), None)
    before = next((poll for poll in cell if start - WINDOW <= poll.day < start), None)
    return (set(now.products), set(before.products)) if now and before else None


def _direction(cells: int, only_now: int, only_before: int) -> Direction:
    discordant = only_now + only_before
    if cells < MIN_CELLS or discordant < MIN_DISCORDANT:
        return "insufficient"
    if (only_now - only_before) ** 2 / discordant < CHI_SQUARE_95:
        return "flat"
    return "up" if only_now > only_before else "down"
