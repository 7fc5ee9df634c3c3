"""Asking until rankings are clear: pass by pass, those first who have answered least."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from store.polls.due import DuePolls, Pair
    from store.rankings.certainty import Level
    from store.rankings.leaderboards import Leaderboard

CLEAR: Level = "clear"
URGENCY: tuple[Level, ...] = ("open", "contradicted", "unmeasured")
"""Levels that are not clear, in the order in which they are asked: an open one is decided soonest
(in simulation after 3.5 to 4.6 answers each, where three are there), so a cap decides most."""


class Standing(Struct, frozen=True):
    """How sure a ranking of the present question is, and by how many answers of each assistant."""

    level: Level = "unmeasured"
    answers: Mapping[str, int] = {}

    @classmethod
    def of(cls, board: Leaderboard | None) -> Standing:
        """Of a category's leaderboard; one of an older wording says nothing of the present one."""
        if board is None or board.next_question:
            return cls()
        answers = {model: len(window.answers) for model, window in board.windows.items()}
        return cls(board.certainty.level, answers)


StandingOf = Callable[[str], Standing]
"""How a category stands now."""


def unclear(pairs: Sequence[Pair], standing_of: StandingOf) -> list[Pair]:
    """The pairs whose category is not clear, those of open ones first."""
    levels = {pair.slug: standing_of(pair.slug).level for pair in pairs}
    found = [pair for pair in pairs if levels[pair.slug] != CLEAR]
    return sorted(found, key=lambda pair: URGENCY.index(levels[pair.slug]))


def levels(pairs: Sequence[Pair], standing_of: StandingOf) -> str:
    """How many categories have each level, for people."""
    found = Counter(standing_of(slug).level for slug in {pair.slug for pair in pairs})
    counts = [f"{found[level]} {level}" for level in (CLEAR, *URGENCY) if found[level]]
    return f"Categories: {', '.join(counts)}."


def at_most(pairs: Sequence[Pair], most: int, standing_of: StandingOf) -> list[Pair]:
    """The most that asking until clear can take: each unclear pair as often as it lacks answers."""
    return [
        pair
        for pair in unclear(pairs, standing_of)
        for _ in range(_answers(pair, standing_of), most)
    ]


def passes(
    pairs: Sequence[Pair], most: int, standing_of: StandingOf, look: Callable[[], DuePolls]
) -> Iterator[list[Pair]]:
    """Whom to ask in each pass, until all is clear or each has ``most`` answers.

    A pass is to be asked before the next is taken. In an unclear category it holds those with the
    fewest answers. Who brings none is left alone there, and everywhere if it is to rest.
    """
    asked: Counter[tuple[str, str]] = Counter()
    resting: set[str] = set()
    stands = look()
    while chosen := _fewest(
        [
            pair
            for pair in unclear(pairs, standing_of)
            if pair.assistant.name not in resting
            and max(asked[pair.key], _answers(pair, standing_of)) < most
        ],
        standing_of,
    ):
        yield chosen
        before, stands = stands, look()
        for pair in chosen:
            state = stands.of(pair)
            asked[pair.key] += 1
            if state is None or state.failure or state == before.of(pair):
                asked[pair.key] = most
            if state and state.cooldown and state.cooldown.since == state.polled_at:
                resting.add(pair.assistant.name)


def _fewest(pairs: Sequence[Pair], standing_of: StandingOf) -> list[Pair]:
    least: dict[str, int] = {}
    for pair in pairs:
        answers = _answers(pair, standing_of)
        least[pair.slug] = min(answers, least.get(pair.slug, answers))
    return [pair for pair in pairs if _answers(pair, standing_of) == least[pair.slug]]


def _answers(pair: Pair, standing_of: StandingOf) -> int:
    return standing_of(pair.slug).answers.get(pair.assistant.name, 0)
