"""How sure a ranking is, once more, from the definitions alone: naive, exact, nothing of ours.

An answer is a mapping from product to rank; windows are by assistant, newest answer first.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, product
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

Answer = dict[str, int]
Windows = dict[str, list[Answer]]

STUDENT = {
    1: 12.706,
    2: 4.303,
    3: 3.182,
    4: 2.776,
    5: 2.571,
    6: 2.447,
    7: 2.365,
    8: 2.306,
    9: 2.262,
    10: 2.228,
    11: 2.201,
    12: 2.179,
    13: 2.160,
    14: 2.145,
    15: 2.131,
    16: 2.120,
    17: 2.110,
    18: 2.101,
    19: 2.093,
    20: 2.086,
    21: 2.080,
    22: 2.074,
    23: 2.069,
    24: 2.064,
}


def wilson(p: float, n: float) -> list[float]:
    """Wilson's interval, solved as the quadratic equation that defines it."""
    z = 1.959964
    a, b, c = 1 + z * z / n, -(2 * p + z * z / n), p * p
    root = math.sqrt(max(b * b - 4 * a * c, 0))
    low, high = (-b - root) / (2 * a), (-b + root) / (2 * a)
    return [0.0 if p == 0 else low, 1.0 if p == 1 else high]


def points(answer: Answer, item: str) -> int:
    return 6 - answer[item] if item in answer else 0


def first_of(answers: list[Answer], slug: Callable[[str], str]) -> str:
    """Who is #1 when these answers are merged."""
    named = {item for answer in answers for item in answer}

    def merit(item: str) -> tuple[Any, ...]:
        ranks = [answer[item] for answer in answers if item in answer]
        counts = [-ranks.count(place) for place in (1, 2, 3, 4, 5)]
        return (-sum(6 - rank for rank in ranks), -len(ranks), *counts, slug(item))

    return min(named, key=merit)


class Figures:
    """The figures of one category."""

    def __init__(self, windows: Windows, slug: Callable[[str], str]) -> None:
        self.windows = list(windows.values())
        self.names = list(windows)
        self.slug = slug
        self.items = {item for answers in self.windows for a in answers for item in a}
        self.measured = all(len(answers) > 1 for answers in self.windows)

    def mean(self, item: str) -> Fraction:
        """The mean points of a product, summed over assistants."""
        return sum(
            (Fraction(sum(points(a, item) for a in each), len(each)) for each in self.windows),
            Fraction(),
        )

    def ahead(self, one: str, other: str) -> bool:
        """The t test of the definition, on the differences of the two in each answer."""
        apart = [[points(a, one) - points(a, other) for a in each] for each in self.windows]
        sizes = [len(each) for each in apart]
        freedom = sum(sizes) - len(sizes)
        lead = sum((Fraction(sum(each), len(each)) for each in apart), Fraction())
        if lead <= 0:
            return False
        squares = [sum((d - Fraction(sum(each), len(each))) ** 2 for d in each) for each in apart]
        pooled = max(Fraction(1), Fraction(sum(squares)) / freedom)
        own = [Fraction(s) / (n - 1) for s, n in zip(squares, sizes, strict=True) if n > 1]
        variance = sum((pooled if n == max(sizes) else max(pooled, *own)) / n for n in sizes)
        return float(lead) > STUDENT[freedom] * math.sqrt(variance)

    @property
    def leader(self) -> str:
        """The product with the most mean points."""
        return min(self.items, key=lambda item: (-self.mean(item), self.slug(item)))

    @property
    def contenders(self) -> list[str]:
        """The leader and all that it is not ahead of."""
        leader = self.leader
        found = [item for item in self.items if not self.ahead(leader, item)]
        return sorted(found, key=lambda item: (-self.mean(item), self.slug(item)))

    def range(self, item: str) -> list[int]:
        """The ranks that a product may have."""
        others = self.items - {item}
        above = sum(self.ahead(other, item) for other in others)
        below = sum(self.ahead(item, other) for other in others)
        return [1 + above, len(self.items) - below]

    def share(self, holds: Callable[[Answer], bool]) -> dict[str, Any]:
        """How many answers hold something, with its interval."""
        named = [sum(map(holds, each)) for each in self.windows]
        sizes = [len(each) for each in self.windows]
        p = sum(Fraction(k, n) for k, n in zip(named, sizes, strict=True)) / len(sizes)
        n = len(sizes) ** 2 / sum(Fraction(1, size) for size in sizes)
        interval = wilson(float(p), float(n))
        return {"named": sum(named), "of": sum(sizes), "share": float(p), "interval": interval}

    def level(self, published: list[str]) -> str:
        """How sure a published #1 is, or those that are tied there."""
        if not self.measured:
            return "unmeasured"
        alone = len(self.contenders) == 1
        if not {*published} & {*self.contenders}:
            return "contradicted"
        return "clear" if alone else "open"

    def first_share(self, item: str) -> dict[str, Any] | None:
        """Every combination merged, one after the other."""
        most = max((k for k in (1, 2, 3, 4, 5) if k ** len(self.windows) <= 1024), default=1)
        last = [each[:most] for each in self.windows]
        if min(map(len, last)) < 3:
            return None
        won = [first_of(list(answers), self.slug) == item for answers in product(*last)]
        n = len(last) / sum(1 / len(each) for each in last)
        share = sum(won) / len(won)
        return {
            "combinations": len(won),
            "firstIn": sum(won),
            "firstShare": share,
            "interval": wilson(share, n),
        }

    def overlaps(self) -> tuple[float | None, float | None]:
        """How alike one assistant's answers are, and two assistants' as a share of that."""
        lists = [[sorted(a, key=a.__getitem__) for a in each] for each in self.windows]
        own = [overlap(a, b) for each in lists for a, b in combinations(each, 2)]
        cross = [overlap(a, b) for x, y in combinations(lists, 2) for a in x for b in y]
        if not own or not self.measured:
            return None, None
        mean = sum(own) / len(own)
        return mean, min(1.0, sum(cross) / len(cross) / mean) if mean and cross else None


def overlap(one: list[str], other: list[str]) -> float:
    depth = max(len(one), len(other))
    return (
        sum(
            len({*one[:d]} & {*other[:d]}) / max(len(one[:d]), len(other[:d]))
            for d in range(1, depth + 1)
        )
        / depth
    )
