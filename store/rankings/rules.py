"""Rules: whether other usual ways of counting have the same #1 (store/README.md, Figures).

Every rule counts the same lists, those that the ranking counts; a product that a list does not name
gets nothing from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from store.rankings.merging import PLACES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from store.rankings.merging import Entry

POINTS = {
    "5-4-3-2-1": (5, 4, 3, 2, 1),
    "plurality": (1, 0, 0, 0, 0),
    "top three": (1, 1, 1, 0, 0),
    "named at all": (1, 1, 1, 1, 1),
    "Dowdall": (60, 30, 20, 15, 12),
    "Formula 1": (25, 18, 15, 12, 10),
}
"""What each rule gives for ranks 1 to 5; Dowdall's are 1, 1/2, 1/3, 1/4 and 1/5, times 60."""

CONDORCET = "Condorcet"
"""The rule by which a product is first that beats every other one in pairs; often there is none."""


def compare(entries: Sequence[Entry]) -> dict[str, bool]:
    """Return by rule whether it puts nothing before the first of a merged ranking.

    What is level with it does not stand before it. Condorcet's rule is only there where some
    product beats every other: where more lists rank it higher than rank it lower.
    """
    lists = [entry.model_ranks for entry in entries]
    votes = {rule: [_points(ranks, worth) for ranks in lists] for rule, worth in POINTS.items()}
    agreeing = {rule: points[0] == max(points) for rule, points in votes.items()}
    winner = next((ranks for ranks in lists if _beats_all(ranks, lists)), None)
    return agreeing if winner is None else {**agreeing, CONDORCET: winner is lists[0]}


def _points(ranks: Mapping[str, int], worth: Sequence[int]) -> int:
    return sum([worth[rank - 1] for rank in ranks.values()])


def _beats_all(ranks: Mapping[str, int], lists: Sequence[Mapping[str, int]]) -> bool:
    return all(_beats(ranks, other) for other in lists if other is not ranks)


def _beats(one: Mapping[str, int], other: Mapping[str, int]) -> bool:
    """Return whether more assistants rank one product above another than below it."""
    last = PLACES + 1  # where a list that does not name a product has it
    leads = [one.get(model, last) - other.get(model, last) for model in {*one, *other}]
    return sum(lead < 0 for lead in leads) > sum(lead > 0 for lead in leads)
