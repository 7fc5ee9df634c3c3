"""Agreement: how far the models' lists agree (store/README.md, Figures)."""

from __future__ import annotations

from itertools import accumulate, combinations
from statistics import fmean
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from store.rankings.merging import CountedAnswer, Entry
    from store.rankings.names import ProductId

Label = Literal["unanimous", "majority", "split"]


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


def average_overlap(first: Sequence[ProductId], second: Sequence[ProductId]) -> float:
    """How alike two ranked lists are, from 0 (disjoint) to 1 (identical), the top weighing most.

    AO = (1/D) Σ_{d=1..D} |A₁..d ∩ B₁..d| / d, D the longer list's length; neither list holds a
    product twice.

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
    """The agreement of the counted models; ``None`` for fewer than two."""
    if len(counted) < 2:  # noqa: PLR2004 - it takes two to agree
        return None
    firsts = [answer.answered.first for answer in counted]
    top = max((entry.product for entry in entries), key=firsts.count)  # of equals, the higher one
    lists = {answer.model: list(answer.picks) for answer in counted}
    overlaps = {
        (first, second): average_overlap(lists[first], lists[second])
        for first, second in combinations(sorted(lists), 2)
    }
    return Agreement(
        product=top,
        votes=firsts.count(top),
        of=len(firsts),
        label=_label(firsts.count(top), len(firsts)),
        overlap=round(fmean(overlaps.values()), 4),
        overlaps=overlaps,
    )


def by_pair(agreements: Iterable[Agreement | None]) -> dict[tuple[str, str], list[float]]:
    """Return by pair of models the overlaps of their lists, one for each category of both."""
    overlaps: dict[tuple[str, str], list[float]] = {}
    for agreement in agreements:
        for pair, overlap in agreement.overlaps.items() if agreement else ():
            overlaps.setdefault(pair, []).append(overlap)
    return overlaps


def _label(votes: int, of: int) -> Label:
    if votes == of:
        return "unanimous"
    return "majority" if votes > of / 2 else "split"
