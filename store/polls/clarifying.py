"""Asking until rankings are clear: whom to ask once more today."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from store.polls.due import DuePolls, Pair
from store.rankings.certainty import Certainty, Level
from store.rankings.leaderboards import Leaderboard

CLEAR: Level = "clear"
UNMEASURED: Level = "unmeasured"
URGENCY: tuple[Level, ...] = ("open", "contradicted", UNMEASURED)
"""Levels that are not clear, in the order in which they are asked: an open one is decided soonest,
so a cap decides most."""


def certainties(boards: Mapping[str, Leaderboard]) -> dict[str, Certainty]:
    """Return how sure rankings are; one of an older wording says nothing of the present one."""
    return {slug: board.certainty for slug, board in boards.items() if not board.next_question}


def to_ask(
    pairs: Sequence[Pair],
    most: int,
    known: Mapping[str, Certainty],
    stands: DuePolls,
    today: str,
) -> list[Pair]:
    """Return whom to ask once more on a UTC day: where it is not clear, those of open ones first.

    Nobody is asked twice on one day, for repeats of a day tell nothing of others, nor beyond
    ``most`` days. A level may be looked at every day, so the asking may stop once it is clear.
    """
    chosen = []
    for pair in pairs:
        certainty, state = known.get(pair.slug), stands.of(pair)
        was_asked = state is not None and state.polled_at[:10] >= today
        few = certainty is None or certainty.runs.get(pair.assistant.name, 0) < most
        if _level(pair, known) != CLEAR and few and not was_asked:
            chosen.append(pair)
    return sorted(chosen, key=lambda pair: URGENCY.index(_level(pair, known)))


def levels(pairs: Sequence[Pair], known: Mapping[str, Certainty]) -> str:
    """Return how many categories have each level, for people."""
    counts = Counter({pair.slug: _level(pair, known) for pair in pairs}.values())
    parts = [f"{counts[level]} {level}" for level in (CLEAR, *URGENCY) if counts[level]]
    return f"Categories: {', '.join(parts)}."


def _level(pair: Pair, known: Mapping[str, Certainty]) -> Level:
    return known[pair.slug].level if pair.slug in known else UNMEASURED
