"""Agreement: how alike lists are, those of two assistants and those of one that is asked again.

Also whether other usual rules of counting have the same #1.
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate, combinations
from math import fsum
from statistics import fmean
from typing import Literal, Self

from msgspec import Struct

from store.rankings.merging import PLACES, CountedAnswer, Entry, LoggedAnswer
from store.rankings.names import ProductId

Label = Literal["unanimous", "majority", "split"]

# Told by name in `shapes.Rules`, labs.json, dataset.md and methodology.html.
POINTS = {
    "5-4-3-2-1": (5, 4, 3, 2, 1),
    "plurality": (1, 0, 0, 0, 0),
    "top three": (1, 1, 1, 0, 0),
    "named at all": (1, 1, 1, 1, 1),
    "Dowdall": (60, 30, 20, 15, 12),
    "Formula 1": (25, 18, 15, 12, 10),
}
"""Points by rule for ranks 1 to 5; Dowdall's are 1, 1/2, 1/3, 1/4 and 1/5, times 60."""

CONDORCET = "Condorcet"
"""The rule by which a product is first that beats every other one in pairs; often there is none."""


class Agreement(Struct, frozen=True):
    """The product with most first places, ``votes`` of ``of``, and the mean overlap, 0 to 1.

    ``overlaps`` holds each pair of models, its names in alphabetical order.
    """

    product: ProductId
    votes: int
    of: int
    label: Label
    overlap: float
    overlaps: Mapping[tuple[str, str], float]


class Repeats(Struct, frozen=True):
    """The likeness of answers when a question is asked again; means over ``n``, 0 to 1.

    ``n`` counts pairs of answers where made by :meth:`of`, questions where made by :meth:`mean`.
    """

    n: int
    same_first: float
    same_list: float
    overlap: float

    @classmethod
    def mean(cls, repeats: Sequence["Repeats"]) -> "Repeats | None":
        """Return the mean over questions, if any was asked twice.

        A question that was asked more often weighs no more than others: this is the one figure for
        noise, wherever it is quoted.
        """
        if not repeats:
            return None
        return cls(
            n=len(repeats),
            same_first=fmean([of_one.same_first for of_one in repeats]),
            same_list=fmean([of_one.same_list for of_one in repeats]),
            overlap=fmean([of_one.overlap for of_one in repeats]),
        )

    @classmethod
    def of(cls, window: Sequence[LoggedAnswer], overlaps: Sequence[float]) -> Self:
        """Return the figures of one assistant's answers; ``overlaps`` are those of every two."""
        pairs = [(one.places, other.places) for one, other in combinations(window, 2)]
        return cls(
            n=len(pairs),
            same_first=sum(one[0] == other[0] for one, other in pairs) / len(pairs),
            same_list=sum(one == other for one, other in pairs) / len(pairs),
            overlap=fsum(overlaps) / len(overlaps),
        )


class Repeatability(Struct, frozen=True):
    """The likeness of the windowed answers of a category.

    ``repeats`` are those of each assistant that answered twice, ``own_overlap`` the mean over all
    pairs of one assistant's answers. ``relative_overlap`` is that of two assistants' as a share of
    it, at most 1.
    """

    repeats: Mapping[str, Repeats]
    own_overlap: float
    relative_overlap: float | None


def average_overlap(first: Sequence[ProductId], second: Sequence[ProductId]) -> float:
    """Return how alike two ranked lists are, from 0 (disjoint) to 1 (identical).

    The top weighs most: AO = (1/D) Σ_{d=1..D} |A₁..d ∩ B₁..d| / d, D the longer list's length.
    Neither list holds a product twice.

    >>> average_overlap("abcde", "bacde"), average_overlap("abc", "xyz")
    (0.8, 0.0)
    """
    depth = max(len(first), len(second))
    joined = [0] * depth  # products that are in both from this depth on
    for at, product in enumerate(second):
        if product in first:
            joined[max(at, first.index(product))] += 1
    shares = [common / d for d, common in enumerate(accumulate(joined), start=1)]
    return sum(shares) / depth


def measure(counted: Sequence[CountedAnswer], entries: Sequence[Entry]) -> Agreement | None:
    """Return the agreement of the counted models; ``None`` for fewer than two."""
    if len(counted) < 2:  # noqa: PLR2004 - it takes two to agree
        return None
    firsts = [answer.answer.first for answer in counted]
    top = max((entry.product for entry in entries), key=firsts.count)  # of equals, the higher one
    votes, of = firsts.count(top), len(firsts)
    lists = {answer.model: list(answer.answer.picks) for answer in counted}
    overlaps = {  # by name, so that the order of the configuration changes nothing
        (first, second): average_overlap(lists[first], lists[second])
        for first, second in combinations(sorted(lists), 2)
    }
    return Agreement(
        product=top,
        votes=votes,
        of=of,
        label="unanimous" if votes == of else "majority" if votes > of / 2 else "split",
        overlap=round(fmean(overlaps.values()), 4),
        overlaps=overlaps,
    )


def repeatability(windows: Mapping[str, Sequence[LoggedAnswer]]) -> Repeatability | None:
    """Compare every two windowed answers; ``None`` where nobody answered twice."""
    lists = {
        model: [[product for product in answer.places if product] for answer in window]
        for model, window in windows.items()
    }
    own = {
        model: [average_overlap(one, other) for one, other in combinations(answers, 2)]
        for model, answers in lists.items()
    }
    overlaps = [overlap for of_one in own.values() for overlap in of_one]
    if not overlaps:
        return None
    own_overlap = fsum(overlaps) / len(overlaps)  # fsum: in whatever order assistants stand
    cross = [
        average_overlap(one, other)
        for mine, its in combinations(lists.values(), 2)
        for one in mine
        for other in its
    ]
    return Repeatability(
        repeats={model: Repeats.of(windows[model], own[model]) for model in own if own[model]},
        own_overlap=own_overlap,
        relative_overlap=min(1.0, fsum(cross) / len(cross) / own_overlap)
        if cross and own_overlap
        else None,
    )


def compare_rules(entries: Sequence[Entry]) -> dict[str, bool]:
    """Return by rule whether it puts nothing before the first of a merged ranking.

    Every rule counts the same lists; what a list does not name gets nothing from it, and what is
    level with the first does not stand before it. Condorcet's rule is only there where some product
    beats every other: where more lists rank it higher than rank it lower.
    """
    ranks_by_entry = [entry.model_ranks for entry in entries]
    agreeing = {}
    for rule, worth in POINTS.items():
        points = [sum([worth[rank - 1] for rank in ranks.values()]) for ranks in ranks_by_entry]
        agreeing[rule] = points[0] == max(points)
    for ranks in ranks_by_entry:
        if all(_beats(ranks, other) for other in ranks_by_entry if other is not ranks):
            agreeing[CONDORCET] = ranks is ranks_by_entry[0]  # one product at most beats all others
    return agreeing


def _beats(one: Mapping[str, int], other: Mapping[str, int]) -> bool:
    """Return whether more assistants rank one product above another than below it."""
    last = PLACES + 1  # where a list that does not name a product has it
    leads = [one.get(model, last) - other.get(model, last) for model in {*one, *other}]
    return sum(lead < 0 for lead in leads) > sum(lead > 0 for lead in leads)
