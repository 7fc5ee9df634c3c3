"""Repeatability: how alike the answers to one question are when it is asked again."""

from __future__ import annotations

from itertools import combinations
from math import fsum
from typing import TYPE_CHECKING

from msgspec import Struct

from store.rankings.agreement import average_overlap
from store.rankings.merging import first_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from store.rankings.names import ProductId
    from store.rankings.runs import LoggedAnswer


class Repeats(Struct, frozen=True):
    """Pairs of one assistant's answers; ``overlap`` is their mean average overlap, 0 to 1."""

    pairs: int
    same_first: int
    same_list: int
    overlap: float


class Repeatability(Struct, frozen=True):
    """How alike the windowed answers of a category are.

    ``repeats`` are those of each assistant that answered twice. Overlaps are means over pairs of
    answers, 0 to 1: of one assistant's, and of two assistants'. ``same_winner`` says whether the
    answers of the days before had the same #1.
    """

    repeats: Mapping[str, Repeats]
    own_overlap: float
    cross_overlap: float | None
    same_winner: bool | None

    @property
    def relative_overlap(self) -> float | None:
        """The overlap of two assistants, as a share of one's with itself; at most 1."""
        if self.cross_overlap is None or not self.own_overlap:
            return None
        return min(1.0, self.cross_overlap / self.own_overlap)


def measure(
    windows: Mapping[str, Sequence[LoggedAnswer]], slugs: Mapping[ProductId, str]
) -> Repeatability | None:
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
        same_winner=_same_winner(list(windows.values()), slugs),
    )


def _repeats(window: Sequence[LoggedAnswer], overlaps: Sequence[float]) -> Repeats:
    pairs = [(one.places, other.places) for one, other in combinations(window, 2)]
    return Repeats(
        pairs=len(pairs),
        same_first=sum(one[0] == other[0] for one, other in pairs),
        same_list=sum(one == other for one, other in pairs),
        overlap=fsum(overlaps) / len(overlaps),
    )


def _same_winner(
    windows: Sequence[Sequence[LoggedAnswer]], slugs: Mapping[ProductId, str]
) -> bool | None:
    """Return whether a round of days before had the same #1; ``None`` if somebody has none."""
    newest = [window[0] for window in windows]
    previous = [
        next((a for a in window if a.polled_at[:10] < window[0].polled_at[:10]), None)
        for window in windows
    ]
    before = [answer.places for answer in previous if answer]
    if len(before) < len(newest):
        return None
    return first_of([a.places for a in newest], slugs)[0] == first_of(before, slugs)[0]
