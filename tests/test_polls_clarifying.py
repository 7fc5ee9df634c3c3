"""Asking until rankings are clear: whom each pass asks, and when there is an end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from builders import answered, category, failed

from store.polls.clarifying import Standing, at_most, levels, passes
from store.polls.due import DuePolls, Pair
from store.rankings.poll_states import PollStates
from store.records import Assistant

if TYPE_CHECKING:
    from collections.abc import Mapping

    from store.records import Poll

AT = "2026-11-20T06:00:00Z"


class World:
    """Categories whose answers come as told; each is clear with so many answers of everybody.

    ``fails`` are assistants that bring no answer, ``pauses`` those that are to be left alone.
    """

    def __init__(self, clear_at: Mapping[str, int], models: str = "AB", **windows: str) -> None:
        self.clear_at = clear_at
        self.pairs = [Pair(s, category(), Assistant(name=m, api="sample"))
                      for s in clear_at for m in models]  # fmt: skip
        self.polls: dict[str, list[Poll]] = {
            slug: [answered(model, ["X"], AT, served_model="v") for model in windows.get(slug, "")]
            for slug in clear_at
        }
        self.fails: set[str] = set()
        self.pauses: set[str] = set()
        self.versions = ["v"]

    def standing_of(self, slug: str) -> Standing:
        """How a category stands by what was answered so far."""
        states = PollStates.of(self.polls[slug], category()).present
        window = {name: state.of_version for name, state in states.items() if state.answers}
        least = min(window.get(pair.assistant.name, 0) for pair in self.pairs)
        if least > 1:
            return Standing("clear" if least >= self.clear_at[slug] else "open", window)
        return Standing(answers=window)

    def look(self) -> DuePolls:
        """How polling stands now."""
        return DuePolls({s: PollStates.of(p, category()) for s, p in self.polls.items()})

    def asked(self, most: int) -> list[str]:
        """Whom each pass asked in which category, the answers given in between."""
        told = []
        for turn, chosen in enumerate(passes(self.pairs, most, self.standing_of, self.look)):
            told.append(" ".join(f"{pair.slug}{pair.assistant.name}" for pair in chosen))
            for pair in chosen:
                self.polls[pair.slug].append(self._reply(pair.assistant.name, turn))
        return told

    def _reply(self, model: str, turn: int) -> Poll:
        if model in self.pauses:
            return failed(model, "auth", AT, cooldown_until=AT)
        if model in self.fails:
            return failed(model, "refusal", AT)
        version = self.versions[turn % len(self.versions)]
        return answered(model, [f"X{turn}"], AT, served_model=version)


def test_it_ends_when_clear() -> None:
    """Every pass asks what is not clear yet; a category that is clear is left alone."""
    world = World({"p": 2, "q": 4, "r": 9})
    assert world.asked(5) == ["pA pB qA qB rA rB"] * 2 + ["qA qB rA rB"] * 2 + ["rA rB"]
    assert levels(world.pairs, world.standing_of) == "Categories: 2 clear, 1 open."


def test_nothing_is_asked_of_what_is_clear() -> None:
    """Nor of what has as many answers as are to be."""
    world = World({"p": 2, "q": 9}, p="AABB", q="AAABBB")
    assert world.asked(3) == []
    assert at_most(world.pairs, 3, world.standing_of) == []


def test_those_with_the_fewest_answers_are_asked_first() -> None:
    """A category is no clearer than its least asked assistant allows."""
    world = World({"p": 9}, p="AAAB")
    assert len(at_most(world.pairs, 4, world.standing_of)) == 4
    assert world.asked(4) == ["pB", "pB", "pA pB"]


def test_open_categories_come_first() -> None:
    """A cap that ends the run has decided as many as it could."""
    world = World({"p": 9, "q": 9, "r": 9}, p="AB", q="AABB")
    assert world.asked(2) == ["pA pB rA rB", "rA rB"]
    assert world.asked(3)[0] == "pA pB qA qB rA rB"
    world = World({"p": 9, "q": 9}, p="AB", q="AABB")
    assert world.asked(3) == ["qA qB pA pB", "pA pB"]


@pytest.mark.parametrize(("names", "expected"), [
    ("fails", ["pA pB qA qB", "pA qA", "pA qA"]),
    ("pauses", ["pA pB qA qB", "pA qA", "pA qA"]),
])  # fmt: skip
def test_who_brings_no_answer_is_asked_no_more(names: str, expected: list[str]) -> None:
    """The others go on; nothing is asked again that was refused in this run."""
    world = World({"p": 9, "q": 9})
    getattr(world, names).add("B")
    assert world.asked(3) == expected


def test_who_is_to_rest_is_left_alone_everywhere() -> None:
    """A bad key in one category is not tried in the next."""
    world = World({"p": 9, "q": 9}, p="A", q="AAB")
    world.pauses.add("B")
    assert world.asked(3) == ["pB qB", "pA qA", "pA"]
    world = World({"p": 9, "q": 9}, p="AB", q="AAABB")
    world.pauses.add("B")
    assert world.asked(4) == ["qB pA pB", "qA pA", "pA"]


def test_a_provider_that_serves_many_versions_has_an_end() -> None:
    """Nobody is asked more often than the most answers that are wanted."""
    world = World({"p": 9})
    world.versions = ["v", "w"]
    assert world.asked(5) == ["pA pB"] * 5
