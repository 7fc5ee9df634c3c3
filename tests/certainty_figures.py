"""How sure a ranking is, once more, from the definitions alone: naive, exact, nothing of ours.

An answer is a mapping from product to rank; runs are by assistant, each a list of answers with the
day that it was given on, newest first.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache, cached_property
from itertools import combinations
from typing import Any

Answer = dict[str, int]
Runs = dict[str, list[tuple[str, Answer]]]


def wilson(p: float, n: float) -> list[float]:
    """Wilson's interval, solved as the quadratic equation that defines it."""
    z = 1.959964
    a, b, c = 1 + z * z / n, -(2 * p + z * z / n), p * p
    root = math.sqrt(max(b * b - 4 * a * c, 0))
    low, high = (-b - root) / (2 * a), (-b + root) / (2 * a)
    return [0.0 if p == 0 else low, 1.0 if p == 1 else high]


def points(answer: Answer, item: str) -> int:
    return 6 - answer[item] if item in answer else 0


def average(numbers: list[Fraction] | list[int]) -> Fraction:
    return Fraction(sum(numbers), len(numbers))


class Figures:
    """The figures of one category."""

    def __init__(self, runs: Runs, slug: Callable[[str], str]) -> None:
        self.slug = slug
        self.days = [self._by_day(run) for run in runs.values()]
        self.sizes = {model: len(self._by_day(run)) for model, run in runs.items()}
        self.answers = sum(len(day) for days in self.days for day in days)
        self.windows = [[answer for _, answer in run[:5]] for run in runs.values()]
        self.items = {item for days in self.days for day in days for a in day for item in a}
        n = self.sizes.values()
        self.measured = min(n) >= 3 and sum(n) >= 12
        # Exact fractions are slow, and every figure asks for these again.
        self.mean, self.ahead = cache(self._mean), cache(self._ahead)

    @staticmethod
    def _by_day(run: list[tuple[str, Answer]]) -> list[list[Answer]]:
        dates = sorted({date for date, _ in run})[-260:]
        return [[answer for own, answer in run if own == date] for date in dates]

    def _mean(self, item: str) -> Fraction:
        """The mean points of a product over the days, summed over assistants."""
        return sum(
            (
                average([average([points(a, item) for a in day]) for day in days])
                for days in self.days
            ),
            Fraction(),
        )

    def lead_of(self, model: str, one: str, other: str) -> Fraction:
        """How many mean points one has more than another with a model; 0 if it is not there."""
        days = dict(zip(self.sizes, self.days, strict=True)).get(model, [])
        apart = [average([points(a, one) - points(a, other) for a in day]) for day in days]
        return average(apart) if apart else Fraction()

    def _ahead(self, one: str, other: str) -> bool:
        """Whether one's lead exceeds what may be chance, by the definition."""
        apart = [
            [average([points(a, one) - points(a, other) for a in day]) for day in days]
            for days in self.days
        ]
        means = [average(own) for own in apart]
        lead = sum(means)
        squares = [sum((d - m) ** 2 for d in own) for own, m in zip(apart, means, strict=True)]
        sizes = [len(own) for own in apart]
        inverse = sum(Fraction(1, n) for n in sizes)
        pooled = (25 + sum(squares)) / (1 + sum(n - 1 for n in sizes))
        each = [Fraction(s) / (n - 1) / n for s, n in zip(squares, sizes, strict=True) if n > 1]
        variance = max(inverse, pooled * inverse, sum(each))
        v = 0.1 * min(sizes) + 1
        factor = 2 * v / (0.1 * min(sizes)) * math.log(math.sqrt(v) / 0.05)
        return float(lead) > math.sqrt(float(variance) * factor)

    @cached_property
    def leader(self) -> str:
        """The product with the most mean points."""
        return min(self.items, key=lambda item: (-self.mean(item), self.slug(item)))

    def by_mean(self, items: set[str]) -> list[str]:
        """Products with most mean points first."""
        return sorted(items, key=lambda item: (-self.mean(item), self.slug(item)))

    @cached_property
    def contenders(self) -> list[str]:
        """The leader and all that it is not ahead of."""
        leader = self.leader
        return self.by_mean({item for item in self.items if not self.ahead(leader, item)})

    def above(self, item: str) -> list[str]:
        """All that are ahead of a product."""
        return self.by_mean({other for other in self.items if self.ahead(other, item)})

    def range(self, item: str) -> list[int]:
        """The ranks that a product may have."""
        below = sum(self.ahead(item, other) for other in self.items)
        return [1 + len(self.above(item)), len(self.items) - below]

    def share(self, holds: Callable[[Answer], bool]) -> dict[str, Any]:
        """How many windowed answers hold something, with its interval."""
        named = [sum(map(holds, window)) for window in self.windows]
        sizes = [len(window) for window in self.windows]
        p = average([Fraction(k, n) for k, n in zip(named, sizes, strict=True)])
        n = len(sizes) ** 2 / sum(Fraction(1, size) for size in sizes)
        interval = wilson(float(p), float(n))
        return {"named": sum(named), "of": sum(sizes), "share": float(p), "interval": interval}

    def level(self, first: str, *, tied: bool) -> str:
        """How sure a published #1 is."""
        if not self.measured:
            return "unmeasured"
        best, worst = self.range(first)
        if best > 1:
            return "contradicted"
        return "clear" if worst == 1 and not tied else "open"

    def overlaps(self) -> tuple[float | None, float | None]:
        """How alike one assistant's answers are, and two assistants' as a share of that."""
        lists = [[sorted(a, key=a.__getitem__) for a in window] for window in self.windows]
        own = [overlap(a, b) for each in lists for a, b in combinations(each, 2)]
        cross = [overlap(a, b) for x, y in combinations(lists, 2) for a in x for b in y]
        if not own or not self.measured:
            return None, None
        mean = sum(own) / len(own)
        relative = min(1.0, float(sum(cross) / len(cross) / mean)) if mean and cross else None
        return float(mean), relative


def overlap(one: list[str], other: list[str]) -> Fraction:
    """Average overlap down to the longer list's end."""
    depth = max(len(one), len(other))
    shares = [
        Fraction(len({*one[:d]} & {*other[:d]}), max(len(one[:d]), len(other[:d])))
        for d in range(1, depth + 1)
    ]
    return sum(shares, Fraction()) / depth
