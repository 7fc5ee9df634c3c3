"""Mentions: how often products are named, and whether that moves (store/README.md, Figures).

A trend compares like with like. The windows are the 7 days that end with the newest poll's day
and the 7 before. Only cells (one category, one model, one wording, one instrument) with a
successful poll in both count, each by its newest poll in either window; raw counts would "move"
whenever polling gets denser. So many products are tried at once that some would move by chance
alone: of those called up or down one in twenty may be (Benjamini and Hochberg).
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from fractions import Fraction
from math import comb
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
FALSE_DISCOVERIES = Fraction(1, 20)
"""The share of false ones, at most, that is expected among the products called up or down."""


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


class WindowCounts:
    """How many cells list each product in either window, as of the newest poll's day."""

    def __init__(
        self, cells: Mapping[str, Cells], today: dt.date, before: WindowCounts | None = None
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

    def trends(self, first_mentions: Mapping[ProductId, dt.date]) -> dict[ProductId, Trend]:
        """Return the trend of each product, by when it was first named.

        It is ``new`` if that is in the current window; all others with enough cells are tried.
        """
        tried = {
            product: p
            for product, first in first_mentions.items()
            if first < self._window_start and (p := self._chance(product)) is not None
        }
        beyond_chance = discoveries(tried)
        trends = {}
        for product, first in first_mentions.items():
            now, before = self._now[product], self._before[product]
            cells = now + before - self._both[product]
            direction: Direction = "up" if now > before else "down"
            if first >= self._window_start:
                direction = "new"
            elif product not in beyond_chance:
                direction = "flat" if product in tried else "insufficient"
            delta = round(100 * (now - before) / cells, 1) if cells else None
            trends[product] = Trend(now, before, cells, delta, direction)
        return trends

    def _chance(self, product: ProductId) -> Fraction | None:
        """Return how often cells would change as unevenly by chance; ``None`` if they are few."""
        both = self._both[product]
        only_now, only_before = self._now[product] - both, self._before[product] - both
        discordant = only_now + only_before
        if both + discordant < MIN_CELLS or discordant < MIN_DISCORDANT:
            return None
        return sign_test(only_now, only_before)


def sign_test(ups: int, downs: int) -> Fraction:
    """Return the exact two-sided p of so many moves up and down, were both equally likely.

    >>> sign_test(6, 0), sign_test(3, 4)
    (Fraction(1, 32), Fraction(1, 1))
    """
    n = ups + downs
    tail = sum(comb(n, k) for k in range(min(ups, downs) + 1))
    return min(Fraction(1), Fraction(2 * tail, 2**n))


def discoveries(tried: Mapping[ProductId, Fraction]) -> set[ProductId]:
    """Return the products whose p is beyond chance among all that were tried.

    By Benjamini and Hochberg: of m the k with the smallest p, for the largest k whose p is at
    most k/m of :data:`FALSE_DISCOVERIES`.
    """
    order = sorted(tried, key=tried.__getitem__)
    step = FALSE_DISCOVERIES / max(len(order), 1)
    most = max((k for k, product in enumerate(order, 1) if tried[product] <= k * step), default=0)
    return set(order[:most])


def _compared(
    cell: Sequence[CellPoll], start: dt.date, today: dt.date
) -> tuple[set[ProductId], set[ProductId]] | None:
    """What the newest poll of a cell names in the window from ``start`` and in the one before.

    ``None`` where one of them has no poll.
    """
    now = next((poll for poll in cell if start <= poll.day <= today), None)
    before = next((poll for poll in cell if start - WINDOW <= poll.day < start), None)
    return (set(now.products), set(before.products)) if now and before else None
