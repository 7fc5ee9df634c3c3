"""Assistants over all categories: what each recommends, and how alike two of them are."""

from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import fmean

from msgspec import Struct

from store.rankings.aggregates import CategoryAggregate
from store.rankings.agreement import Repeats
from store.rankings.leaderboards import Leaderboard
from store.rankings.names import ProductId
from store.rankings.poll_states import Tally, total


class AssistantProfile(Struct, frozen=True):
    """An assistant over all categories.

    ``counted`` are the rankings that count it, ``stale`` those where its answer is old. Of those
    with other assistants, ``shared``, it ranks the most frequent #1 first in ``agreeing``.
    ``firsts`` and ``named`` are products by how many rankings it puts them first in, or names
    them in. ``noise`` says how alike its answers to one question are.
    """

    model: str
    tally: Tally
    counted: int
    stale: int
    agreeing: int
    shared: int
    firsts: Counter[ProductId]
    named: Counter[ProductId]
    noise: Repeats | None


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


def profile(
    model: str,
    leaderboards: Iterable[Leaderboard],
    aggregates: Iterable[CategoryAggregate],
    repeats: Sequence[Repeats],
) -> AssistantProfile:
    """Return one assistant over all categories; polls of deleted ones count in its tally."""
    own = [(board, a) for board in leaderboards for a in board.counted if a.model == model]
    agreeing = [
        answer.answered.first == board.agreement.product for board, answer in own if board.agreement
    ]
    return AssistantProfile(
        model=model,
        tally=total(a.tallies[model] for a in aggregates if model in a.tallies),
        counted=len(own),
        stale=sum(answer.stale for _, answer in own),
        agreeing=sum(agreeing),
        shared=len(agreeing),
        firsts=Counter(answer.answered.first for _, answer in own),
        named=Counter(product for _, answer in own for product in answer.picks),
        noise=Repeats.mean(repeats),
    )


def pair(
    leaderboards: Sequence[Leaderboard], one: str, other: str, most: int
) -> AssistantPair | None:
    """Return how alike two assistants are; ``None`` where no category counts both."""
    key = (min(one, other), max(one, other))
    shared = [
        (board, board.agreement.overlaps[key])
        for board in leaderboards
        if board.agreement and key in board.agreement.overlaps
    ]
    if not shared:
        return None
    firsts = [firsts_of(board) for board, _ in shared]
    order = sorted(shared, key=lambda pair: (pair[1], pair[0].slug))
    return AssistantPair(
        same=sum(of_board[one] == of_board[other] for of_board in firsts),
        of=len(shared),
        overlap=fmean(overlap for _, overlap in shared),
        closest=tuple(order[: -most - 1 : -1]),
        furthest=tuple(order[:most]),
    )


def firsts_of(board: Leaderboard) -> dict[str, ProductId]:
    """Return the #1 of each counted assistant."""
    return {answer.model: answer.answered.first for answer in board.counted}
