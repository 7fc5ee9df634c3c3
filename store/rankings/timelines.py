"""Timelines: a category's merged ranking and each model's #1 on every day on which it was polled.

Counting and merging are those of the leaderboards, applied to the answers known at the end of each
day and to the wording that was current then.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Literal, Self

from msgspec import Struct

from store.rankings.merging import ResolvedAnswer, Wordings, count, merge, places, standing
from store.rankings.names import ProductId, Spelling
from store.rankings.rounds import LeaderChange, Round
from store.rankings.runs import VersionChange
from store.records import Category, Poll, Site

Obstacle = Literal["question", "assistants", "instrument"]
"""An obstacle to comparing two rankings: what was asked, who answered, how it was asked."""


class Basis(Struct, frozen=True):
    """The question and the assistants of a ranking, each with the instrument."""

    question: str
    instruments: Mapping[str, str | None]

    @classmethod
    def of(cls, answers: Sequence[ResolvedAnswer]) -> Self:
        """Return that of a ranking, by the answers that it counts."""
        instruments = {answer.model: answer.poll.instrument or None for answer in answers}
        return cls(answers[0].question, instruments)

    def obstacle(self, other: "Basis") -> Obstacle | None:
        """Return what keeps places from being compared, like with like."""
        if self.question != other.question:
            return "question"
        if self.instruments.keys() != other.instruments.keys():
            return "assistants"
        return None if self == other else "instrument"


class DayPick(Struct, frozen=True):
    """The outcome of a model's polls of one day; ``product`` is its #1 if one succeeded."""

    poll: Poll
    kind: Literal["first", "failed", "withheld"]
    product: ProductId | None = None


class Day(Struct, frozen=True):
    """One day with polls: the merged ranking at its end, and what came of each model's polls.

    ``ranks`` are positions, ``places`` the same with a tie's best rank for all it holds.
    ``versions`` are the models that another version served than on the day of their last answer.
    ``basis`` is the ranking's, if there is one.
    """

    date: str
    ranks: Mapping[ProductId, int]
    places: Mapping[ProductId, int]
    marks: Mapping[str, DayPick]
    versions: Sequence[VersionChange]
    leader: LeaderChange | None
    basis: Basis | None

    @property
    def answered(self) -> bool:
        """Return whether any poll of the day brought an answer."""
        return any(mark.kind == "first" for mark in self.marks.values())


def follow(
    polls: Sequence[Poll],
    category: Category,
    resolved: Mapping[Spelling, ProductId],
    models: Sequence[str],
    site: Site,
    slugs: Mapping[ProductId, str],
    rounds: Sequence[Round],
) -> Iterator[Day]:
    """Yield the days of a category's polls, oldest first; ``rounds`` are those of the category.

    A failure never hides an answer of its day. A withheld poll shows on its day, unless it is later
    than the poll after it.
    """
    wordings: Wordings[ResolvedAnswer] = Wordings(category.question)
    leaders = {round_.date: round_.leader for round_ in rounds}
    newest: str | None = None
    served: dict[str, ResolvedAnswer] = {}
    for date, group in groupby(_in_time(polls), key=lambda poll: poll.polled_at[:10]):
        marks: dict[str, DayPick] = {}
        before = dict(served)
        for poll in group:
            if poll.succeeded:
                answered = ResolvedAnswer.of(poll, category, resolved)
                wordings.add(answered)
                served[poll.model] = answered
                newest = poll.polled_at
                marks[poll.model] = DayPick(poll, "first", answered.first)
            elif poll.model not in marks or marks[poll.model].kind != "first":
                marks[poll.model] = DayPick(poll, "withheld" if poll.withheld is True else "failed")
        stands = standing(wordings.all(), newest, models, site)
        entries = merge(count(stands.answers), slugs) if stands else ()
        ranks = {entry.product: entry.rank for entry in entries}
        yield Day(
            date=date,
            ranks=ranks,
            places=places(entries),
            marks=marks,
            versions=[v for m in before if (v := VersionChange.between(before[m], served[m]))],
            leader=leaders.get(date),
            basis=Basis.of([answer for answer, _ in stands.answers]) if stands else None,
        )


def _in_time(polls: Sequence[Poll]) -> list[Poll]:
    """Return the polls but for those withheld that are later than what was appended after them."""
    shown: list[Poll] = []
    for poll in reversed(polls):
        after = shown[-1].polled_at if shown else poll.polled_at
        if poll.withheld is not True or poll.polled_at <= after:
            shown.append(poll)
    return shown[::-1]
