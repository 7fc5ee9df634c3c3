"""Certainty: how far a ranking can be trusted, from the history alone (store/README.md, Certainty).

Exact and without random numbers. One relation, "ahead", is behind every figure; it holds at every
look, so that a ranking may be watched from day to day (a confidence sequence: Robbins' normal
mixture). Assumed is that an assistant's answers are independent from day to day and that it does
not drift within a run. Answers of near days resemble each other, so true intervals are somewhat
wider.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import combinations
from math import fsum, lcm, log, sqrt
from typing import Annotated, Literal

from msgspec import Meta, Struct

from store.rankings.merging import PLACES, ProductsByRank
from store.rankings.names import ProductId
from store.rankings.runs import Renewal, Run

# Told by sentences.py, answer_box.py, home.py, parts.html, mcp.md and tables.json.
Level = Literal["unmeasured", "clear", "open", "contradicted"]

Interval = tuple[float, float]
"""A confidence interval at 95 %."""

Z = 1.959964
"""97.5 % quantile of the normal distribution."""

T = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
"""97.5 % quantiles of Student's t for 1 to 30 degrees of freedom, as tables print them."""

DECIMALS = 4
"""Decimals of a share: a hundredth of a percent, far below any interval's width."""

ALPHA = 0.05
"""The chance, at most, that a product is ever called ahead of one that it is not ahead of."""

MIXTURE = 0.1
"""Robbins' mixing variance: the relation is sharpest after some twenty days."""

PRIOR_SQUARES = PLACES**2
"""Prior sum of squares: one pseudo-observation, five points off, so that equal answers do not give
zero variance."""

FEWEST_DAYS = 3
"""Days of each assistant's run under which nothing is measured."""

FEWEST_DAYS_IN_ALL = 12
"""Days of all runs together under which nothing is measured."""


class Certainty(Struct, frozen=True):
    """The certainty of a ranking's first place.

    ``answers`` is the number of answers in all runs, ``runs`` of days in each, ``since`` and
    ``until`` the UTC dates of the first and the last. ``began_anew`` if any run did, ``renewed``
    says why, by assistant, where that is known. ``contenders`` are the product with most mean
    points and those that it is not ahead of; ``rivals`` those that may be first in place of the
    published #1; ``ahead_of_first`` the products ahead of it. All are sorted by mean points, most
    first, and empty while the level is ``unmeasured``.
    """

    level: Level
    answers: int
    runs: Mapping[str, int]
    since: str
    until: str
    renewed: Mapping[str, Renewal]
    contenders: tuple[ProductId, ...]
    rivals: tuple[ProductId, ...]
    began_anew: bool
    ahead_of_first: tuple[ProductId, ...]

    @property
    def is_asked_once(self) -> bool:
        """Return whether each assistant was asked once, and never before in another way."""
        return self.answers == len(self.runs) and not self.began_anew

    @property
    def leader(self) -> ProductId | None:
        """The product with most mean points."""
        return self.contenders[0] if self.contenders else None


class Share(Struct, frozen=True):
    """A share of the assistants' windowed answers, as it is published."""

    named: Annotated[
        int,
        Meta(ge=0, description="In `presence` answers that name it, in `firsts` that rank it #1."),
    ]
    of: Annotated[int, Meta(ge=1, description="Answers in all windows.")]
    share: Annotated[float, Meta(ge=0, le=1, description="The mean of the assistants' shares.")]
    interval: Annotated[
        tuple[float, ...],
        Meta(min_length=2, max_length=2, description="95 % interval: its lower and upper end."),
    ]


class Comparison:
    """The relation "ahead" between the products that some runs name."""

    def __init__(self, runs: Sequence[Run], slugs: Mapping[ProductId, str]) -> None:
        self._runs = runs
        self._slugs = slugs
        sizes = [len(run.days) for run in runs]
        self._inverse = fsum(1 / n for n in sizes)
        self._freedom = 1 + sum(sizes) - len(sizes)  # degrees of freedom
        # The shortest run decides: a longer one proves less than it seems.
        mixed = MIXTURE * min(sizes)
        self._factor = 2 * (mixed + 1) / mixed * log(sqrt(mixed + 1) / ALPHA)
        self.is_measured = min(sizes) >= FEWEST_DAYS and sum(sizes) >= FEWEST_DAYS_IN_ALL

    @cached_property
    def _denominator(self) -> int:
        """The common denominator of all mean points."""
        return lcm(*[run.scale * len(run.days) for run in self._runs])

    @cached_property
    def _totals(self) -> dict[ProductId, int]:
        """The mean points of every product that is named, as numerators over ``_denominator``."""
        runs = [(run.sums, self._denominator // (run.scale * len(run.days))) for run in self._runs]
        return {
            product: sum(sums.get(product, 0) * weight for sums, weight in runs)
            for product in dict.fromkeys(p for run in self._runs for p in run.named)
        }

    @cached_property
    def order(self) -> list[ProductId]:
        """Every product that is named, most mean points first, then by slug."""
        return sorted(
            self._totals, key=lambda product: (-self._totals[product], self._slugs[product])
        )

    def mean_points(self, product: ProductId) -> float:
        """Return the sum over assistants of a product's mean points."""
        return self._totals[product] / self._denominator

    def is_ahead(self, one: ProductId, other: ProductId) -> bool:
        """Return whether a product's mean points exceed another's by more than chance."""
        lead = self.lead(one, other)  # first, for the threshold is costly
        return lead > 0 and lead > self.threshold(one, other)

    def lead(self, one: ProductId, other: ProductId) -> float:
        """Return by how much a product's mean points exceed another's."""
        return (self._totals[one] - self._totals[other]) / self._denominator

    def threshold(self, one: ProductId, other: ProductId) -> float:
        """Return what a lead has to exceed, at any look, not to be chance.

        The variance of the difference is the largest of three: one point squared a day, the pooled
        one, and that of each assistant by itself.
        """
        squares = [run.squared_deviations(one, other) for run in self._runs]
        pooled = (PRIOR_SQUARES + fsum(squares)) / self._freedom
        own = [
            square / ((n - 1) * n)
            for square, run in zip(squares, self._runs, strict=True)
            if (n := len(run.days)) > 1
        ]
        variance = max(self._inverse, pooled * self._inverse, fsum(own))
        return sqrt(variance * self._factor)

    @cached_property
    def stands_alone(self) -> bool:
        """Return whether the product with most mean points is ahead of every other."""
        return all(self.is_ahead(self.order[0], product) for product in self.order[1:])

    @property
    def contenders(self) -> list[ProductId]:
        """The product with most mean points, and all that it is not ahead of."""
        top = self.order[0]
        return [product for product in self.order if not self.is_ahead(top, product)]

    def level(self, first: ProductId, *, tied: bool) -> Level:
        """Return how sure it is that a published #1 is first."""
        if not self.is_measured:
            return "unmeasured"
        if self.ahead_of(first):
            return "contradicted"
        is_clear = not tied and first == self.order[0] and self.stands_alone
        return "clear" if is_clear else "open"

    def ahead_of(self, product: ProductId) -> list[ProductId]:
        """Return the products that are ahead of one, most mean points first."""
        better = self.order[: self.order.index(product)]  # nothing lower can be ahead
        return [other for other in better if self.is_ahead(other, product)]

    def ranges(self) -> dict[ProductId, tuple[int, int]]:
        """Return the best and the worst rank of every product: how many are ahead, and behind."""
        above: Counter[ProductId] = Counter()
        below: Counter[ProductId] = Counter()
        for better, worse in combinations(self.order, 2):
            if self.is_ahead(better, worse):
                above[worse] += 1
                below[better] += 1
        return {p: (1 + above[p], len(self.order) - below[p]) for p in self.order}


def wilson(successes: float, n: float) -> Interval:
    """Return Wilson's interval for a share: ``successes`` of ``n`` trials, either fractional.

    No success gives a lower end of exactly 0, nothing else an upper end of exactly 1.

    >>> [round(end, 4) for end in wilson(10, 12)]
    [0.552, 0.953]
    """
    p, spread = successes / n, Z * Z / n
    middle = (p + spread / 2) / (1 + spread)
    half = Z / (1 + spread) * sqrt(p * (1 - p) / n + spread / (4 * n))
    return (
        0.0 if successes <= 0 else middle - half,  # rounding would leave a speck
        1.0 if successes >= n else middle + half,
    )


def student(freedom: int) -> float:
    """Return the 97.5 % quantile of Student's t; beyond the table within 0.002 of it.

    >>> student(8), round(student(60), 3)
    (2.306, 2.001)
    """
    return T[freedom - 1] if freedom <= len(T) else Z + 2.45 / freedom


def assess(
    runs: Mapping[str, Run], slugs: Mapping[ProductId, str], first: ProductId, *, tied: bool
) -> Certainty:
    """Return how sure a published #1 is, by the runs of the counted assistants."""
    comparison = Comparison(list(runs.values()), slugs)
    contenders = comparison.contenders if comparison.is_measured else []
    dates = [day[0].polled_at[:10] for run in runs.values() for day in (run.days[0], run.days[-1])]
    return Certainty(
        level=comparison.level(first, tied=tied),
        answers=sum(len(day) for run in runs.values() for day in run.days),
        runs={model: len(run.days) for model, run in runs.items()},
        since=min(dates),
        until=max(dates),
        renewed={model: run.renewal for model, run in runs.items() if run.renewal},
        began_anew=any(run.before for run in runs.values()),
        contenders=tuple(contenders),
        # "Ahead" is not transitive: the #1 may be ahead of one that the leader is not ahead of.
        rivals=tuple(p for p in contenders if p != first and not comparison.ahead_of(p))
        or tuple(p for p in contenders if p != first and not comparison.is_ahead(first, p)),
        ahead_of_first=tuple(comparison.ahead_of(first)) if comparison.is_measured else (),
    )


def presence(windows: Sequence[Sequence[ProductsByRank]], product: ProductId) -> Share:
    """Return how often a product is named, at any rank."""
    return _share(windows, [sum(product in places for places in window) for window in windows])


def firsts(windows: Sequence[Sequence[ProductsByRank]], product: ProductId) -> Share:
    """Return how often a product is ranked #1."""
    return _share(windows, [sum(product == places[0] for places in window) for window in windows])


def _share(windows: Sequence[Sequence[ProductsByRank]], named: Sequence[int]) -> Share:
    """Return the mean of the assistants' shares, with Wilson's interval.

    Conservative: with equally many answers of each, a stratified variance is never larger.
    """
    sizes = [len(window) for window in windows]
    n = len(sizes) ** 2 / fsum(1 / size for size in sizes)  # answers of equal weight
    share = fsum(part / size for part, size in zip(named, sizes, strict=True)) / len(sizes)
    ends = [round(end, DECIMALS) for end in wilson(share * n, n)]
    return Share(sum(named), sum(sizes), round(share, DECIMALS), tuple(ends))
