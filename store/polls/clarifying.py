"""Asking until rankings are clear: whom to ask once more today."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct

from store.polls.due import DuePolls, Pair
from store.rankings.certainty import Level
from store.rankings.leaderboards import Leaderboard

CLEAR: Level = "clear"
URGENCY: tuple[Level, ...] = ("open", "contradicted", "unmeasured")
"""Levels that are not clear, in the order in which they are asked: an open one is decided soonest,
so a cap decides most."""


class Standing(Struct, frozen=True):
    """How sure a ranking of the present question is, and on how many days each assistant spoke."""

    level: Level = "unmeasured"
    days: Mapping[str, int] = {}

    @classmethod
    def of(cls, board: Leaderboard) -> Standing:
        """Of a category's leaderboard; one of an older wording says nothing of the present one."""
        certainty = board.certainty
        return cls() if board.next_question else cls(certainty.level, certainty.runs)


def to_ask(
    pairs: Sequence[Pair],
    most: int,
    standings: Mapping[str, Standing],
    stands: DuePolls,
    today: str,
) -> list[Pair]:
    """Return whom to ask once more on a UTC day: where it is not clear, those of open ones first.

    Nobody is asked twice on one day, for repeats of a day tell nothing of others, nor beyond
    ``most`` days. A level may be looked at every day, so the asking may stop once it is clear.
    """
    standings = {pair.slug: standings.get(pair.slug, Standing()) for pair in pairs}
    chosen = []
    for pair in pairs:
        standing, state = standings[pair.slug], stands.of(pair)
        was_asked = state is not None and state.polled_at[:10] >= today
        few = standing.days.get(pair.assistant.name, 0) < most
        if standing.level != CLEAR and few and not was_asked:
            chosen.append(pair)
    return sorted(chosen, key=lambda pair: URGENCY.index(standings[pair.slug].level))


def levels(pairs: Sequence[Pair], standings: Mapping[str, Standing]) -> str:
    """Return how many categories have each level, for people."""
    counts = Counter(standings.get(slug, Standing()).level for slug in {p.slug for p in pairs})
    parts = [f"{counts[level]} {level}" for level in (CLEAR, *URGENCY) if counts[level]]
    return f"Categories: {', '.join(parts)}."
