"""Asking until rankings are clear: whom to ask once more today."""

from __future__ import annotations

from builders import answered, category

from store.polls.due import DuePolls, Pair, levels
from store.rankings.certainty import Certainty, Level
from store.rankings.poll_states import PollStates
from store.records import Assistant


def certainty(level: Level, **runs: int) -> Certainty:
    """One of this level, where each assistant spoke on so many days."""
    return Certainty(level, sum(runs.values()), runs, "", "", {}, (), ())


KNOWN = {
    "p": certainty("clear", A=9, B=9),
    "q": certainty("unmeasured", A=1),
    "r": certainty("open", A=5, B=4),
    "s": certainty("contradicted", A=4, B=4),
}
PAIRS = [Pair(s, category(), Assistant(name=m, api="sample")) for s in KNOWN for m in "AB"]


def chosen(most: int, today: str = "2026-11-21") -> str:
    """Whom to ask, where all answered on the 20th."""
    polls = [answered(model, ["X"], "2026-11-20T06:00:00Z") for model in "AB"]
    states = PollStates.of(polls, category())
    stands = DuePolls(dict.fromkeys(KNOWN, states))
    pairs = stands.unclear(PAIRS, most, KNOWN, today)
    return " ".join(f"{pair.slug}{pair.assistant.name}" for pair in pairs)


def test_what_is_clear_is_left_alone_and_open_categories_come_first() -> None:
    """A cap that ends the run has decided as many as it could."""
    assert chosen(9) == "rA rB sA sB qA qB"


def test_nobody_is_asked_beyond_so_many_days() -> None:
    """Those who answered on fewer days are."""
    assert chosen(5) == "rB sA sB qA qB"
    assert chosen(1) == "qB"


def test_nobody_is_asked_twice_on_one_day() -> None:
    """Another answer of the same day would say nothing of other days."""
    assert chosen(9, today="2026-11-20") == ""


def test_the_levels_are_told_in_one_line() -> None:
    """Each level with its number."""
    told = levels(PAIRS, KNOWN)
    assert told == "Categories: 1 clear, 1 open, 1 contradicted, 1 unmeasured."
