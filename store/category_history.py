"""A category's history files read as one: which polls count, in which order, as whose."""

from __future__ import annotations

import sys
from array import array
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import groupby
from operator import attrgetter, itemgetter

import msgspec
from msgspec import Struct

from store.disk import Signature
from store.files import Catalogue
from store.history import Log, PollLine, damaged_line
from store.ledger import LedgerEntry
from store.rankings import aggregates
from store.rankings.aggregates import CategoryAggregate
from store.rankings.names import Names
from store.rankings.poll_states import PairState, poll_states
from store.records import Category, Poll, Problem, Site, Withholding
from store.text import is_slug, rfc3339

CLOCK_TOLERANCE = timedelta(minutes=10)
"""How far two clocks may differ before one of them is taken to be wrong."""


class PollIndex(Struct, frozen=True):
    """The places of a category's sound polls in its history files, oldest first.

    Damaged lines are not in it, though the chains of the ledger go over them. Arrays by position:
    ``models`` (the assistant's present name), ``ids`` (the poll's id as a number), ``file`` (index
    into ``files``), ``start`` and ``end`` (bytes), ``line`` (from 1). ``withheld`` maps positions
    of withheld polls to the reasons.
    ``outcomes`` counts polls by model and recorded outcome, ``invented`` those of sample
    assistants.
    ``open_entries`` are the ledger entries that closing the open days would add.
    """

    files: tuple[str, ...]
    file: array[int]  # numbers in arrays: a long history has hundreds of thousands of lines
    start: array[int]
    end: array[int]
    line: array[int]
    models: tuple[str, ...]
    ids: array[int]
    withheld: Mapping[int, Withholding]
    outcomes: Mapping[tuple[str, str], int]
    invented: int
    open_entries: tuple[LedgerEntry, ...] = ()

    def newest(self, model: str | None, limit: int, before: int | None = None) -> list[int]:
        """Return at most ``limit`` positions, newest first.

        They are those of one assistant, and older than the position ``before``, where given.
        """
        positions = range((len(self.models) if before is None else before) - 1, -1, -1)
        if model is None:
            return list(positions[:limit])
        return [i for i in positions if self.models[i] == model][:limit]

    def position(self, poll: str) -> int | None:
        """Return the position of the poll with an id of 16 hexadecimal digits, if there is one."""
        with suppress(ValueError):
            return self.ids.index(int(poll, 16))
        return None


class HistoryBasis(Struct, frozen=True):
    """Everything that a reading follows from except the bytes of its files and products' names."""

    files: tuple[str, ...]
    category: Category
    former_names: Mapping[str, str]
    withheld: Mapping[str, Withholding]


class CategoryHistory(Struct, frozen=True):
    """All that was read from the history files of one category, or of a deleted one.

    ``signatures`` are those of the files when they were read, ``None`` for a file that is not
    there. ``poll_states`` are of all polls, withheld ones too. While a file cannot be read or has
    lost lines, ``signatures`` itself is ``None``, and so is ``poll_states``; the other fields keep
    their last values, or are empty where an edit since then would change them.
    """

    signatures: tuple[Signature | None, ...] | None
    basis: HistoryBasis
    damage: tuple[Problem, ...]
    poll_index: PollIndex | None = None
    aggregate: CategoryAggregate | None = None
    poll_states: Mapping[str, PairState] | None = None

    def is_valid_for(self, basis: HistoryBasis, names: Names) -> bool:
        """Return whether all that was read would be the same on this basis and by these names."""
        aggregate = self.aggregate
        return (
            aggregate is not None
            and self.basis == basis
            and aggregates.still_holds(aggregate, names)
        )


def read_category(
    slug: str,
    basis: HistoryBasis,
    names: Names,
    read: Callable[[str], Log],
    before: CategoryHistory | None,
) -> CategoryHistory:
    """Read the history files of a category; ``before`` is the last reading of them."""
    logs = [read(file) for file in basis.files]
    stored, problems = sound_polls(logs, basis.withheld)
    lost = losses(logs)
    damage = tuple(dict.fromkeys([*lost, *problems]))
    if lost:  # what was known stays, unless an edit has made it another answer
        if before is None or not before.is_valid_for(basis, names):
            return CategoryHistory(None, basis, damage)
        if before.signatures is None and before.damage == damage:
            return before
        return msgspec.structs.replace(before, signatures=None, damage=damage, poll_states=None)
    ordered = in_order(stored, basis.withheld)
    polls = under_present_names((stored.poll for stored in ordered), basis.former_names)
    poll_index = _poll_index(logs, ordered, polls, basis)
    withheld = poll_index.withheld
    counted = [poll for i, poll in enumerate(polls) if i not in withheld] if withheld else polls
    aggregate = aggregates.gather(slug, basis.category, counted, names)
    return CategoryHistory(
        signatures=tuple(log.signature for log in logs),
        basis=basis,
        damage=damage,
        poll_index=poll_index,
        aggregate=aggregate,
        poll_states=aggregate.states if counted is polls else poll_states(polls),
    )


def _poll_index(
    logs: Sequence[Log], ordered: Sequence[PollLine], polls: Sequence[Poll], basis: HistoryBasis
) -> PollIndex:
    files, withheld = basis.files, basis.withheld
    return PollIndex(
        files=files,
        file=array("H", [files.index(stored.file) for stored in ordered]),
        start=array("Q", [stored.start for stored in ordered]),
        end=array("Q", [stored.end for stored in ordered]),
        line=array("I", [stored.line for stored in ordered]),
        models=tuple(sys.intern(poll.model) for poll in polls),
        ids=array("Q", [int(poll.id, 16) for poll in polls]),
        withheld={i: withheld[poll.id] for i, poll in enumerate(polls) if poll.id in withheld},
        outcomes=Counter((poll.model, poll.failure or "answered") for poll in polls),
        invented=sum(poll.is_invented for poll in polls),
        open_entries=tuple(entry for log in logs for entry in log.open_entries),
    )


def history_files(slug: str, categories: Mapping[str, Category]) -> list[str]:
    """Return the history files of a category or deleted one: those of its former slugs, its own."""
    category = categories.get(slug)
    former = category.former_slugs if category else ()
    return [*(other for other in former if other not in categories), slug]


def losses(logs: Iterable[Log]) -> list[Problem]:
    """Return the problems of the files that cannot be read or have lost lines."""
    return [problem for log in logs if log.is_lost for problem in log.problems]


def deleted_slugs(catalogue: Catalogue, files: Iterable[str]) -> set[str]:
    """Return the slugs of history files that are neither a category's nor a former one."""
    former = {slug for c in catalogue.categories.values() for slug in c.former_slugs}
    others = set(files) - former - catalogue.categories.keys()
    return {slug for slug in others if is_slug(slug)}


def latest_time(now: datetime) -> str:
    """Return the latest time that a poll can bear; one beyond it was made under a wrong clock."""
    return rfc3339(now + CLOCK_TOLERANCE)


def from_the_future(
    polls: Iterable[PollLine], withheld: Container[str], now: datetime
) -> list[PollLine]:
    """Return the polls later than now that are not withheld: made under a wrong clock."""
    latest = latest_time(now)
    return [s for s in polls if s.poll.polled_at > latest and s.poll.id not in withheld]


def doubt_clock(ahead: Mapping[str, str], polled: int, now: datetime) -> str | None:
    """Return a sentence that doubts this machine's clock, where it is likelier wrong than records.

    ``ahead`` has the newest poll's time of each category where that is later than now. It is
    doubted where several categories are ahead, or the only one of those ``polled``.
    """
    if not ahead or len(ahead) == 1 < polled:
        return None
    return (
        f"This machine's clock is probably wrong: it says {rfc3339(now)}, and history has an "
        f"answer of {max(ahead.values())}. Set it: `timedatectl` says whether it follows a time "
        "server, `timedatectl set-ntp true` lets it. Not polled until then: "
        f"{len(ahead):,} of {polled:,} categories"
    )


def undeclared_sample(polls: int, site: Site) -> Problem | None:
    """Return what is wrong where polls of sample assistants are in a history said to be real."""
    if site.sample or not polls:
        return None
    message = (
        f'"sample" is not true, and history holds {polls:,} invented answers of sample assistants: '
        "begin the real site in a directory of its own (`flask init DIR`), or write "
        '"sample": true; until then nothing is polled or published'
    )
    return Problem("site.json", 1, 1, message)


def sound_polls(
    logs: Sequence[Log], withheld: Container[str] = ()
) -> tuple[list[PollLine], list[Problem]]:
    """Return the sound polls, file by file as listed, and all damage in a category's files.

    A line is damaged if it

    - cannot be read;
    - is of another category;
    - repeats the id of a line before it, in this file or one listed earlier;
    - is dated before the nearest earlier line that counts, unless it is ``withheld``: nobody can
      add an answer to the past.
    """
    problems = [problem for log in logs for problem in log.problems]
    files = [log.file for log in logs]
    sound: dict[str, PollLine] = {}
    for log in logs:
        before: PollLine | None = None
        for stored in log.polls:
            if why := _fault(stored, files, sound, before, withheld):
                problems.append(damaged_line(log.file, stored.line, why))
                continue
            sound[stored.poll.id] = stored
            if stored.poll.id not in withheld:
                before = stored
    return list(sound.values()), problems


def _fault(
    stored: PollLine,
    files: Sequence[str],
    sound: Mapping[str, PollLine],
    before: PollLine | None,
    withheld: Container[str],
) -> str | None:
    """Return why a line is damaged, if it is; ``before`` is the nearest sound one, not withheld."""
    poll = stored.poll
    if poll.slug not in files:
        what = f'"{poll.slug}"' if is_slug(poll.slug) else "something else"
        return f"it is a poll of {what}, which is not what this file is about"
    if first := sound.get(poll.id):
        return f"its id stands already in line {first.line} of history/{first.file}.jsonl"
    if before and poll.polled_at < before.poll.polled_at and poll.id not in withheld:
        return (
            f"its time, {poll.polled_at}, is before that of line {before.line}, "
            f"{before.poll.polled_at}"
        )
    return None


def in_order(polls: Sequence[PollLine], withheld: Container[str]) -> list[PollLine]:
    """Return the same polls in the order in which they were appended, over all files of a category.

    In one file that is the order of its lines. Between files times decide, but never those of
    polls that are withheld: these stay beside their neighbours.
    """
    rows: list[tuple[str, PollLine]] = []
    for _, lines in groupby(polls, key=attrgetter("file")):  # a file is never sorted in itself
        own = list(lines)
        times = (s.poll.polled_at for s in own if s.poll.id not in withheld)
        time = next(times, own[0].poll.polled_at)
        for stored in own:
            if stored.poll.id not in withheld:
                time = max(time, stored.poll.polled_at)
            rows.append((time, stored))
    return [stored for _, stored in sorted(rows, key=itemgetter(0))]


def under_present_names(polls: Iterable[Poll], former_names: Mapping[str, str]) -> list[Poll]:
    """Return polls under their assistants' present names, to which ``former_names`` lead."""
    if not former_names:
        return list(polls)
    return [
        msgspec.structs.replace(poll, model=former_names.get(poll.model, poll.model))
        for poll in polls
    ]
