"""Rounds: the #1 and its level as of every day with answers; changes of leader; our own record.

The raw #1 changes in 28 to 61 of 100 simulated rounds without any real change; a leader that must
be ahead of every other product by more than chance, in 0.1 at most. That is slow: where no change
is told, there may have been one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import groupby, pairwise

from msgspec import Struct

from store.rankings.certainty import Comparison, Level
from store.rankings.merging import (
    LoggedAnswer,
    RunKey,
    Wordings,
    merged_winners,
)
from store.rankings.names import ProductId
from store.rankings.runs import AnswerLog, Run, VersionChange
from store.records import Site

Means = dict["ProductId", Fraction]
"""Mean points of one assistant by product."""


class LeaderChange(Struct, frozen=True):
    """A change of the clear leader, seen on a UTC date over so many ``answers``.

    ``since`` is the last date on which the leader before it led alone. ``cause`` is the change of
    version with which it coincides, of the assistant whose answers are over half of the shift.
    """

    date: str
    before: ProductId
    after: ProductId
    since: str
    answers: int
    cause: VersionChange | None


class Round(Struct, frozen=True):
    """A UTC day with answers: the #1 at its end, its level, the change of leader if there was one.

    ``winners`` are the #1 and what was tied with it. ``question`` is the wording that the ranking
    answers, ``instruments`` what each counted assistant was asked with.
    """

    date: str
    question: str
    instruments: Mapping[str, str | None]
    winners: tuple[ProductId, ...]
    level: Level
    leader_change: LeaderChange | None


def replay_rounds(
    log: AnswerLog,
    question: str,
    models: Sequence[str],
    site: Site,
    slugs: Mapping[ProductId, str],
) -> Iterator[Round]:
    """Replay a category's answers; yield its rounds, oldest first.

    ``question`` is the present wording. The log does not show where history was lost: rounds before
    an accepted loss rest on the lines that are left.
    """
    wordings: Wordings[LoggedAnswer] = Wordings(question)
    runs: dict[tuple[str, str], Run] = {}
    newest: dict[str, RunKey] = {}
    leaders: dict[str, LeaderTracker] = {}
    for date, answers in groupby(log, key=lambda answer: answer.polled_at[:10]):
        for answer in answers:
            wordings.add(answer)
            before = newest.get(answer.model)
            newest[answer.model] = answer.key
            pair = answer.question, answer.model
            if before != answer.key:
                runs[pair] = Run(answer.key, before)  # whatever changed begins one anew
            runs[pair].add(answer)
        standing = wordings.standing(models, site)
        if standing is None:
            continue
        places = {answer.model: answer.answer.places for answer in standing.answers}
        winners = merged_winners(places.values(), slugs)
        current = {model: runs[standing.question, model] for model in places}
        comparison = Comparison(list(current.values()), slugs)
        level = comparison.level(winners[0], tied=len(winners) > 1)
        # Leaders of another question are another succession.
        leader = leaders.setdefault(standing.question, LeaderTracker())
        change = leader.next(date, current, comparison)
        instruments = {answer.model: answer.answer.key.instrument for answer in standing.answers}
        yield Round(date, standing.question, instruments, winners, level, change)


def first_place_change(rounds: Sequence[Round], since: str) -> tuple[Round, Round] | None:
    """Return the last round before a UTC day and the newest one, if they have no #1 in common.

    Others come first by chance, too. Only rounds of the same assistants that answer one question,
    asked in the same way, are compared.
    """
    before = next((one for one in reversed(rounds) if one.date < since), None)
    if before is None:
        return None
    now = rounds[-1]
    is_comparable = (before.question, before.instruments) == (now.question, now.instruments)
    return (before, now) if is_comparable and {*before.winners}.isdisjoint(now.winners) else None


class TrackRecord(Struct, frozen=True):
    """The track record of levels: by that of a round, whether each next one ``agreed`` on the #1.

    ``until`` is the day of the last round, empty without any.
    """

    agreed: Mapping[Level, Sequence[bool]]
    until: str


def track_record(categories: Iterable[Sequence[Round]], closed: str) -> TrackRecord:
    """Compare the rounds of each category, up to the last ``closed`` day, with the next ones.

    Rounds that answer different questions are not compared.
    """
    agreed: dict[Level, list[bool]] = {}
    until = ""
    for rounds in categories:
        for one, following in pairwise(rounds):
            if following.date <= closed and one.question == following.question:
                agreed.setdefault(one.level, []).append(one.winners == following.winners)
                until = max(until, following.date)
    return TrackRecord(agreed, until)


class LeaderTracker:
    """The last clear leader, and the means by which it led; rounds come oldest first."""

    def __init__(self) -> None:
        self._leader: ProductId | None = None
        self._date = ""
        self._means: Mapping[str, Means] = {}
        self._keys: Mapping[str, RunKey] = {}

    def next(
        self, date: str, runs: Mapping[str, Run], comparison: Comparison
    ) -> LeaderChange | None:
        """Return the change since the last clear leader; ``None`` while no product leads alone.

        Nothing is said to have changed where an assistant is asked with another instrument since.
        """
        if not comparison.is_measured or not comparison.stands_alone:
            return None
        before, since, leader = self._leader, self._date, comparison.order[0]
        means, keys = self._means, self._keys
        self._leader, self._date = leader, date
        self._means = {m: {p: run.mean_points(p) for p in run.named} for m, run in runs.items()}
        self._keys = {model: run.key for model, run in runs.items()}
        if before in (None, leader) or any(
            key.instrument != self._keys.get(model, key).instrument for model, key in keys.items()
        ):
            return None
        model = _mover(before, leader, means, self._means)
        cause = None
        if model in means and model in self._means:
            cause = VersionChange.of(model, keys[model].version, self._keys[model].version)
        answers = sum(len(day) for run in runs.values() for day in run.days)
        return LeaderChange(date, before, leader, since, answers, cause)


def _mover(
    before: ProductId, after: ProductId, then: Mapping[str, Means], now: Mapping[str, Means]
) -> str:
    """Return the assistant that brought over half of the shift; empty if none did.

    Assistants that came or went since brought, or took, all of their lead.
    """
    nothing: Means = {}
    shifts = {
        model: _lead(after, before, now.get(model, nothing))
        - _lead(after, before, then.get(model, nothing))
        for model in now.keys() | then.keys()
    }
    model = max(sorted(shifts), key=shifts.__getitem__)  # of equals the first by name
    return model if 2 * shifts[model] > sum(shifts.values()) else ""


def _lead(one: ProductId, other: ProductId, means: Means) -> Fraction:
    """Return how many points one product has more than another on average."""
    return means.get(one, Fraction(0)) - means.get(other, Fraction(0))
