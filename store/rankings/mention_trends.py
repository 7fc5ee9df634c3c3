"""Mentions: how often products are named, and whether that moves.

A trend compares like with like. The windows are the 7 days that end with the newest poll's day
and the 7 before. Only cells (one category, one model, one wording, one instrument) with a
successful poll in both count, each by its newest poll in either window; raw counts would "move"
whenever polling gets denser. So many products are tried at once that some would move by chance
alone: of those called up or down at most one in twenty is expected to (Benjamini and Hochberg).
"""

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from math import comb
from typing import Literal

from msgspec import Struct

from store.rankings.merging import ProductsByRank
from store.rankings.names import ProductId
from store.rankings.runs import AnswerLog

Direction = Literal["new", "insufficient", "up", "down", "flat"]

TREND_WINDOW = dt.timedelta(days=7)
"""One polling interval at the default ``poll_every_days``."""
_DAY = dt.timedelta(days=1)
MIN_CELLS = 8
"""Cells under which a trend is ``insufficient``; `/methodology` tells it."""
MIN_DISCORDANT = 6
"""Cells that list a product in one week alone, under which its trend is ``insufficient``, too.

With fewer no two-sided sign test reaches 5 % (2 / 2⁶).
"""
FALSE_DISCOVERIES = Fraction(1, 20)
"""The share of false ones, at most, that is expected among the products called up or down."""


Cell = tuple[str, str, str | None]
"""The model, the wording and the instrument of answers to one category that can be compared."""


class Trend(Struct, frozen=True):
    """A product's mentions in each window, counted in cells; ``delta`` is in percentage points.

    The cells are those that list the product in either window: one number of them for both.
    """

    mentions: int
    mentions_before: int
    cells: int
    delta: float | None
    direction: Direction


def trends(
    categories: Iterable[AnswerLog], today: dt.date, first_mentions: Mapping[ProductId, dt.date]
) -> dict[ProductId, Trend]:
    """Return the trend of each product, by when it was first named; ``today`` ends the window.

    One first named in the window is ``new``; all others with enough cells are tried.
    """
    start = today - TREND_WINDOW + _DAY
    now, before, both = Counter[str](), Counter[str](), Counter[str]()  # cells by product
    for log in categories:
        for named_now, named_before in _compared(log, start, today):
            now.update(named_now)
            before.update(named_before)
            both.update(named_now & named_before)
    tried = {
        product: sign_test(now[product] - both[product], before[product] - both[product])
        for product, first in first_mentions.items()
        if first < start and _can_tell(now[product], before[product], both[product])
    }
    beyond_chance = discoveries(tried)
    by_product = {}
    for product, first in first_mentions.items():
        delta = now[product] - before[product]
        cells = now[product] + before[product] - both[product]
        direction: Direction = "up" if delta > 0 else "down"
        if first >= start:
            direction = "new"
        elif product not in beyond_chance:
            direction = "flat" if product in tried else "insufficient"
        points = round(100 * delta / cells, 1) if cells else None  # of the rates: one denominator
        by_product[product] = Trend(now[product], before[product], cells, points, direction)
    return by_product


def _can_tell(now: int, before: int, both: int) -> bool:
    """Return whether enough cells list a product, and enough of them in one window alone."""
    return now + before - both >= MIN_CELLS and now + before - 2 * both >= MIN_DISCORDANT


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
    log: AnswerLog, start: dt.date, today: dt.date
) -> Iterator[tuple[set[ProductId], set[ProductId]]]:
    """Yield what the newest answer of each cell names in the window from ``start``, and before it.

    Cells without an answer in either window are left out.
    """
    now: dict[Cell, ProductsByRank] = {}
    before: dict[Cell, ProductsByRank] = {}
    for answer in log.since(start - TREND_WINDOW):
        day = dt.date.fromisoformat(answer.polled_at[:10])
        if day <= today:  # of a window the last one appended stays
            window = now if day >= start else before
            window[answer.model, answer.question, answer.key.instrument] = answer.places
    for cell in now.keys() & before.keys():
        yield set(filter(None, now[cell])), set(filter(None, before[cell]))
