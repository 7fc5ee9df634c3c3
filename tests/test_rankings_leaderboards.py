"""Leaderboards: a category's ranking as it stands, or none, and which wording it answers."""

from collections.abc import Sequence

import pytest
from builders import SITE, answered, category
from hypothesis import given
from hypothesis import strategies as st
from leaderboards import board_of

from store.rankings.leaderboards import Leaderboard
from store.records import Poll, Site

RULES = Site(version=1, name=str(SITE["name"]), stale_after_days=10, drop_after_days=20)
NEW = category().question
MODELS = ("A", "B", "C")


def poll(model: str, day: int, question: str = NEW, product: str = "X") -> Poll:
    """An answer of a day of October."""
    return answered(model, [product], f"2026-10-{day:02}T06:00:00Z", question=question)


def board(*polls: Poll, models: Sequence[str] = MODELS) -> Leaderboard | None:
    """The board of a category whose file now asks ``NEW``."""
    return board_of(polls, models, RULES)


def stands(*polls: Poll, models: Sequence[str] = MODELS) -> str | None:
    """The wording whose answers are ranked."""
    found = board(*polls, models=models)
    return found.question if found else None


OLD = [poll("A", 1, "Old?"), poll("B", 1, "Old?")]


@pytest.mark.parametrize(
    ("later", "question"),
    [
        ([], "Old?"),
        ([poll("A", 2)], "Old?"),  # B, which counts, has not answered the new one
        ([poll("C", 2), poll("C", 3)], "Old?"),  # nor has either of those that count
        ([poll("A", 2), poll("B", 3)], NEW),
        ([poll("Retired", 1, "Old?"), poll("A", 2), poll("B", 3)], NEW),  # who counts no more
        ([poll("A", 2), poll("A", 8)], "Old?"),  # six days after the first answer
        ([poll("A", 2), poll("A", 9)], NEW),  # seven
        ([poll("C", 2), poll("A", 9, "Old?")], NEW),  # any answer shows that time has passed
        ([poll("Retired", 2), poll("A", 9, "Old?")], "Old?"),  # no answer that could count
    ],
)
def test_an_older_wording_stands_until_the_new_one_is_answered(
    later: list[Poll], question: str
) -> None:
    """By everybody who counts for the older one, or for seven days of history."""
    found = board(*OLD, *later)
    assert found
    assert found.question == question
    assert found.next_question == (None if question == NEW else NEW)


def test_an_abandoned_wording_gives_way_as_any_other() -> None:
    """Of three the one answered longest ago stands until the next has taken over from it."""
    abandoned = [*OLD, poll("A", 2, "Abandoned?")]
    assert stands(*abandoned) == "Old?"
    assert stands(*abandoned, poll("B", 3)) == "Old?"
    assert stands(*abandoned, poll("B", 3), poll("A", 4)) == NEW


@given(
    st.lists(st.tuples(st.sampled_from("ABCR"), st.integers(1, 28), st.sampled_from("NOP"))),
    st.permutations(MODELS),
)
def test_which_wording_stands_is_independent_of_the_order_of_models(
    said: list[tuple[str, int, str]], order: list[str]
) -> None:
    """It follows from the answers; and where anything was answered, something stands."""
    wording = {"N": NEW, "O": "Old?", "P": "Older?"}
    polls = [poll(model, day, wording[w]) for model, day, w in sorted(said, key=lambda s: s[1])]
    found = stands(*polls)
    assert found == stands(*polls, models=order)
    assert (found is None) == (not {model for model, *_ in said} & {*MODELS})
