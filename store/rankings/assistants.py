"""Assistants over all categories: how each answers, and how steadily."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from store.rankings.aggregates import CategoryAggregate
from store.rankings.agreement import Repeats
from store.rankings.leaderboards import Leaderboard
from store.rankings.poll_states import Tally, total


class AssistantProfile(Struct, frozen=True):
    """An assistant over all categories.

    ``counted`` are the rankings that count it. Of those with other assistants, ``shared``, it ranks
    the most frequent #1 first in ``agreeing``. ``noise`` says how alike its answers to one question
    are.
    """

    model: str
    tally: Tally
    counted: int
    agreeing: int
    shared: int
    noise: Repeats | None


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
        agreeing=sum(agreeing),
        shared=len(agreeing),
        noise=Repeats.mean(repeats),
    )
