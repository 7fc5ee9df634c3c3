"""Repeatability: how alike the answers to one question are when it is asked again.

How noisy assistants are is one figure wherever it is told, :class:`Noise`.
"""

from __future__ import annotations

from itertools import combinations
from math import fsum
from statistics import fmean
from typing import TYPE_CHECKING

from msgspec import Struct

from store.rankings.agreement import average_overlap

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from store.rankings.leaderboards import Leaderboard
    from store.rankings.runs import LoggedAnswer


class Repeats(Struct, frozen=True):
    """Pairs of one assistant's answers to a question; figures are means over pairs, 0 to 1."""

    pairs: int
    same_first: float
    same_list: float
    overlap: float


class Noise(Struct, frozen=True):
    """How alike answers to one question are: means over ``n`` questions, each to one assistant.

    A question that was asked more often weighs no more than others.
    """

    n: int
    same_first: float
    same_list: float
    overlap: float

    @classmethod
    def of(cls, repeats: Sequence[Repeats]) -> Noise | None:
        """Return the means, if anything was asked twice."""
        if not repeats:
            return None
        return cls(
            n=len(repeats),
            same_first=fmean([each.same_first for each in repeats]),
            same_list=fmean([each.same_list for each in repeats]),
            overlap=fmean([each.overlap for each in repeats]),
        )


class Repeatability(Struct, frozen=True):
    """How alike the windowed answers of a category are.

    ``repeats`` are those of each assistant that answered twice. Overlaps are means over pairs of
    answers, 0 to 1: of one assistant's, and of two assistants'.
    """

    repeats: Mapping[str, Repeats]
    own_overlap: float
    cross_overlap: float | None

    @property
    def relative_overlap(self) -> float | None:
        """The overlap of two assistants, as a share of one's with itself; at most 1."""
        if self.cross_overlap is None or not self.own_overlap:
            return None
        return min(1.0, self.cross_overlap / self.own_overlap)


def by_model(leaderboards: Iterable[Leaderboard]) -> dict[str, list[Repeats]]:
    """Return how alike each assistant's answers are in every category that it answered twice."""
    repeats: dict[str, list[Repeats]] = {}
    for board in leaderboards:
        for model, own in board.repeatability.repeats.items() if board.repeatability else ():
            repeats.setdefault(model, []).append(own)
    return repeats


def measure(windows: Mapping[str, Sequence[LoggedAnswer]]) -> Repeatability | None:
    """Compare every two windowed answers; ``None`` where nobody answered twice."""
    lists = {
        model: [[product for product in answer.places if product] for answer in window]
        for model, window in windows.items()
    }
    own = {
        model: [average_overlap(one, other) for one, other in combinations(answers, 2)]
        for model, answers in lists.items()
    }
    every = [overlap for overlaps in own.values() for overlap in overlaps]
    if not every:
        return None
    cross = [
        average_overlap(one, other)
        for mine, its in combinations(lists.values(), 2)
        for one in mine
        for other in its
    ]
    return Repeatability(
        repeats={
            model: _repeats(windows[model], overlaps) for model, overlaps in own.items() if overlaps
        },
        own_overlap=fsum(every) / len(every),
        cross_overlap=fsum(cross) / len(cross) if cross else None,
    )


def _repeats(window: Sequence[LoggedAnswer], overlaps: Sequence[float]) -> Repeats:
    pairs = [(one.places, other.places) for one, other in combinations(window, 2)]
    return Repeats(
        pairs=len(pairs),
        same_first=sum(one[0] == other[0] for one, other in pairs) / len(pairs),
        same_list=sum(one == other for one, other in pairs) / len(pairs),
        overlap=fsum(overlaps) / len(overlaps),
    )
