"""Certainty: how far a ranking can be trusted, from the history alone (store/README.md, Certainty).

Exact and without random numbers. Assumed is that an assistant's answers are independent draws and
that it does not drift within a window; rounds cluster, so the truth is somewhat wider.
"""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from itertools import combinations
from math import lcm, prod
from struct import Struct as Packing
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from store.rankings.intervals import student, wilson
from store.rankings.merging import PLACES, merit
from store.rankings.windows import MAX_ANSWERS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from store.rankings.intervals import Interval
    from store.rankings.names import ProductId
    from store.rankings.windows import Places, Window

Level = Literal["unmeasured", "clear", "open", "contradicted"]

UNIT = lcm(*range(1, MAX_ANSWERS + 1))
"""Parts of a point: means of one to five answers are whole numbers of them, so ties are exact."""

LEAST_VARIANCE = 1
"""Points squared below which no variance is believed: five equal answers do not prove none."""

MOST_COMBINATIONS = 1024
"""Combinations that are enumerated at most: four assistants with five answers each have 625."""

LEAST_ANSWERS = 3
"""Answers of each assistant under which a first share's interval does not cover what it says."""


_MERIT = [
    sum(-part << 48 - 8 * place for place, part in enumerate(merit([rank])[:6]))
    for rank in range(1, PLACES + 1)
]
"""What each rank adds to a product's 64 bits in :func:`winners`: all that decides of its merit."""


class Certainty(Struct, frozen=True):
    """How sure a ranking's first place is.

    ``first`` is the published #1; of products truly tied there, the one with the most mean points.
    ``contenders`` are the product with the most mean points of all and those it is not ahead of by
    more than chance, most mean points first. While ``once``, the assistants of which only one
    answer can be compared, holds any, nothing is measured, and there are none.
    """

    level: Level
    first: ProductId
    contenders: tuple[ProductId, ...]
    once: tuple[str, ...]


class Share(Struct, frozen=True):
    """In how many answers a product is named; ``share`` is the mean of the assistants' shares."""

    named: int
    of: int
    share: float
    interval: Interval


class FirstShare(Struct, frozen=True):
    """In how many combinations of one answer per assistant a product comes first."""

    combinations: int
    first_in: int
    interval: Interval

    @property
    def share(self) -> float:
        """The share of the combinations, 0 to 1."""
        return self.first_in / self.combinations


class PointTable:
    """The points that products have in windowed answers, and which are ahead by more than chance.

    ``mean`` is the sum over assistants of a product's mean points, in parts of :data:`UNIT`.
    """

    def __init__(self, windows: Sequence[Sequence[Places]], slugs: Mapping[ProductId, str]) -> None:
        self._sizes = [len(answers) for answers in windows]
        self._slugs = slugs
        self.mean: dict[ProductId, int] = {}
        self._deviations: dict[ProductId, list[int]] = {}
        for product, rows in _points(windows).items():
            means = [sum(row) * UNIT // len(row) for row in rows]
            self.mean[product] = sum(means)
            self._deviations[product] = [
                points * UNIT - mean
                for row, mean in zip(rows, means, strict=True)
                for points in row
            ]

    @cached_property
    def order(self) -> list[ProductId]:
        """All products, most mean points first, then by slug."""
        return sorted(self.mean, key=lambda product: (-self.mean[product], self._slugs[product]))

    def is_ahead(self, one: ProductId, other: ProductId) -> bool:
        """Whether a product's mean points exceed another's by more than chance.

        A two-sided t test at 95 % on the sum over assistants of the mean paired difference, with
        pooled variance; an assistant with fewer answers than another counts with the largest
        variance that any has.
        """
        lead = self.mean[one] - self.mean[other]
        freedom = sum(self._sizes) - len(self._sizes)
        if lead <= 0 or not freedom:
            return False
        pairs = zip(self._deviations[one], self._deviations[other], strict=True)
        squares = [(mine - its) ** 2 for mine, its in pairs]
        pooled = max(LEAST_VARIANCE * UNIT**2, sum(squares) / freedom)
        fullest = max(self._sizes)
        largest = max(pooled, self._largest_variance(squares)) if min(self._sizes) < fullest else 0
        error = sum((largest if n < fullest else pooled) / n for n in self._sizes)
        return lead**2 > student(freedom) ** 2 * error

    def _largest_variance(self, squares: Sequence[int]) -> float:
        """The largest variance that any one assistant has."""
        found, start = 0.0, 0
        for n in self._sizes:
            if n > 1:
                found = max(found, sum(squares[start : start + n]) / (n - 1))
            start += n
        return found

    @property
    def contenders(self) -> list[ProductId]:
        """The product with the most mean points, and all that it is not ahead of."""
        leader = self.order[0]
        return [product for product in self.order if not self.is_ahead(leader, product)]

    @cached_property
    def ranges(self) -> dict[ProductId, tuple[int, int]]:
        """The best and the worst rank of every product: how many are ahead of it, and behind."""
        above: Counter[ProductId] = Counter()
        below: Counter[ProductId] = Counter()
        for better, worse in combinations(self.order, 2):
            if self.is_ahead(better, worse):
                above[worse] += 1
                below[better] += 1
        return {
            product: (1 + above[product], len(self.order) - below[product])
            for product in self.order
        }


def assess(
    windows: Mapping[str, Window], slugs: Mapping[ProductId, str], firsts: Sequence[ProductId]
) -> Certainty:
    """How sure it is that one of ``firsts``, the published #1 and what is truly tied with it, is.

    Windows are by counted model.
    """
    once = [model for model, window in windows.items() if len(window.answers) == 1]
    if once:
        return Certainty("unmeasured", firsts[0], (), tuple(once))
    table = PointTable(places_of(windows), slugs)
    first = min(firsts, key=table.order.index)
    contenders = table.contenders
    if first not in contenders:
        level: Level = "contradicted"
    else:
        level = "open" if len(contenders) > 1 else "clear"
    return Certainty(level, first, tuple(contenders), ())


def presence(windows: Sequence[Sequence[Places]], product: ProductId) -> Share:
    """How often a product is named, at any rank."""
    return _share(windows, [sum(product in places for places in answers) for answers in windows])


def firsts(windows: Sequence[Sequence[Places]], product: ProductId) -> Share:
    """How often a product is ranked #1."""
    return _share(windows, [sum(product == places[0] for places in answers) for answers in windows])


def _share(windows: Sequence[Sequence[Places]], named: Sequence[int]) -> Share:
    """The mean of the assistants' shares, and Wilson's interval for it.

    Conservative: with equally many answers of each, a stratified variance is never larger.
    """
    sizes = [len(answers) for answers in windows]
    n = len(sizes) ** 2 / sum(1 / size for size in sizes)
    share = sum(part * UNIT // size for part, size in zip(named, sizes, strict=True)) / (
        len(sizes) * UNIT
    )
    return Share(sum(named), sum(sizes), share, wilson(share * n, n))


def first_share(
    windows: Sequence[Sequence[Places]], slugs: Mapping[ProductId, str], product: ProductId
) -> FirstShare | None:
    """How often a product comes first if one answer of each assistant is merged with the others'.

    Every combination is merged by the order of the rankings; the interval counts rounds, not
    combinations. ``None`` where an assistant has under three answers, or where no three of each
    can be combined in 1,024 ways.
    """
    most = max(
        k for k in range(1, MAX_ANSWERS + 1) if k == 1 or k ** len(windows) <= MOST_COMBINATIONS
    )
    newest = [answers[:most] for answers in windows]
    if min(map(len, newest)) < LEAST_ANSWERS:
        return None
    n = len(newest) / sum(1 / len(answers) for answers in newest)
    total = prod(map(len, newest))
    first_in = winners(newest, slugs)[product]
    return FirstShare(total, first_in, wilson(first_in / total * n, n))


def winners(
    windows: Sequence[Sequence[Places]], slugs: Mapping[ProductId, str]
) -> Counter[ProductId]:
    """How often each product comes first over all combinations of one answer per assistant.

    An answer is one number with 64 bits a product: points, appearances, #1s, #2s, #3s and #4s, 8
    bits each from bit 48 on down, and the order of slugs in the lowest. Adding the answers merges
    them, and the largest 64 bits are the first place.
    """
    able = sorted(_possible_winners(windows), key=slugs.__getitem__)
    shifts = {product: 64 * number for number, product in enumerate(able)}
    totals = [sum((len(able) - number) << shifts[p] for number, p in enumerate(able))]
    for answers in windows:
        packed = [_packed(places, shifts) for places in answers]
        totals = [total + answer for total in totals for answer in packed]
    size, unpack = 8 * len(able), Packing(f"<{len(able)}Q").unpack
    first = Counter([max(unpack(total.to_bytes(size, "little"))) & 0xFF for total in totals])
    return Counter({able[len(able) - lowest]: times for lowest, times in first.items()})


def _packed(places: Places, shifts: Mapping[ProductId, int]) -> int:
    """An answer as one number; products that cannot be first are left out."""
    return sum(
        _MERIT[at] << shifts[product]
        for at, product in enumerate(places)
        if product and product in shifts
    )


def _possible_winners(windows: Sequence[Sequence[Places]]) -> list[ProductId]:
    """The products whose most points reach the least that any product has."""
    rows = _points(windows)
    least = max(sum(map(min, by_assistant)) for by_assistant in rows.values())
    return [p for p, by_assistant in rows.items() if sum(map(max, by_assistant)) >= least]


def places_of(windows: Mapping[str, Window]) -> list[list[Places]]:
    """The windowed answers of each assistant, newest first."""
    return [[answer.places for answer in window.answers] for window in windows.values()]


def named(windows: Sequence[Sequence[Places]]) -> dict[ProductId, None]:
    """Every product that an answer names, once, in the order of their first naming."""
    return dict.fromkeys(p for answers in windows for places in answers for p in places if p)


def _points(windows: Sequence[Sequence[Places]]) -> dict[ProductId, list[list[int]]]:
    """By product, assistant and answer: the points it got, none where it is not named."""
    rows = {product: [[0] * len(answers) for answers in windows] for product in named(windows)}
    for i, answers in enumerate(windows):
        for j, places in enumerate(answers):
            for at, product in enumerate(places):
                if product:
                    rows[product][i][j] = PLACES - at
    return rows
