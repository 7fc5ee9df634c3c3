"""Comparing two products, or two assistants, over all rankings that hold both."""

from __future__ import annotations

from collections import Counter
from statistics import fmean
from typing import TYPE_CHECKING

from msgspec import Struct

from store.rankings.certainty import Comparison
from store.rankings.timelines import places

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from store.rankings.leaderboards import Leaderboard
    from store.rankings.merging import Entry
    from store.rankings.names import ProductId


class Meeting(Struct, frozen=True):
    """A ranking that holds two products; ``places`` are theirs, a tie's best rank for both.

    ``ahead`` is the one that the assistants' last answers put ahead by more than chance; ``None``
    with ``measured`` says that they cannot be told apart.
    """

    board: Leaderboard
    entries: tuple[Entry, Entry]
    places: tuple[int, int]
    ahead: ProductId | None
    measured: bool

    @property
    def higher(self) -> ProductId | None:
        """The product with the better place; ``None`` for a tie."""
        first, second = self.places
        if first == second:
            return None
        return self.entries[0 if first < second else 1].product


class AssistantPair(Struct, frozen=True):
    """Two assistants over the categories in which both are counted; ``same`` #1s of ``of``.

    ``overlap`` is the mean average overlap of their lists, 0 to 1. ``closest`` and ``furthest``
    are categories with the overlap of their two lists, the most and the least alike first.
    """

    same: int
    of: int
    overlap: float
    closest: tuple[tuple[Leaderboard, float], ...]
    furthest: tuple[tuple[Leaderboard, float], ...]


def meet(shared: Iterable[tuple[Leaderboard, Entry, Entry]]) -> list[Meeting]:
    """How two products stand to each other on the leaderboards that hold both."""
    return [_meeting(board, first, second) for board, first, second in shared]


def _meeting(board: Leaderboard, first: Entry, second: Entry) -> Meeting:
    runs = list(board.runs().values())
    comparison = Comparison(runs, board.slugs)
    ahead = None
    for one, other in ((first.product, second.product), (second.product, first.product)):
        if comparison.is_measured and comparison.is_ahead(one, other):
            ahead = one
    at = places(board.entries)
    return Meeting(
        board=board,
        entries=(first, second),
        places=(at[first.product], at[second.product]),
        ahead=ahead,
        measured=comparison.is_measured,
    )


def preferences(
    meetings: Iterable[Meeting], one: ProductId, other: ProductId
) -> dict[str, tuple[int, int]]:
    """Per assistant, in how many of the rankings it puts either product higher.

    A product that it names stands above one that it does not.
    """
    counts: dict[str, tuple[int, int]] = {}
    for meeting in meetings:
        for answer in meeting.board.counted:
            order = [product for product in answer.picks if product in (one, other)]
            if order:
                mine, its = counts.get(answer.model, (0, 0))
                counts[answer.model] = (mine + (order[0] == one), its + (order[0] == other))
    return counts


def rivals(
    standings: Iterable[tuple[Leaderboard, Entry]], product: ProductId, most: int
) -> list[ProductId]:
    """The products that share most leaderboards with one, at most so many."""
    met = Counter(entry.product for board, _ in standings for entry in board.entries)
    del met[product]
    return sorted(met, key=lambda other: (-met[other], other))[:most]


def pair(
    leaderboards: Sequence[Leaderboard], one: str, other: str, most: int
) -> AssistantPair | None:
    """How alike two assistants are; ``None`` where no category counts both."""
    key = (min(one, other), max(one, other))
    found = [
        (board, board.agreement.overlaps[key])
        for board in leaderboards
        if board.agreement and key in board.agreement.overlaps
    ]
    if not found:
        return None
    firsts = [firsts_of(board) for board, _ in found]
    order = sorted(found, key=lambda each: (each[1], each[0].slug))
    return AssistantPair(
        same=sum(each[one] == each[other] for each in firsts),
        of=len(found),
        overlap=fmean(overlap for _, overlap in found),
        closest=tuple(order[: -most - 1 : -1]),
        furthest=tuple(order[:most]),
    )


def firsts_of(board: Leaderboard) -> dict[str, ProductId]:
    """The #1 of each counted assistant."""
    return {answer.model: answer.answered.first for answer in board.counted}
