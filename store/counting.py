"""Which polls of a category's history files count as records, in which order, and as whose."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import chain, groupby
from operator import itemgetter
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from store.history import HistoryError, Stored, damage
from store.rankings.poll_states import PollStates
from store.records import Problem, is_slug
from store.times import rfc3339

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

    from store.files import Catalogue
    from store.history import History, Log
    from store.records import Category, Poll

Row = tuple[int, Stored]
"""The number of the file that a poll stands in, and the poll."""

LEEWAY = timedelta(minutes=10)
"""How far two clocks may differ before one of them is taken to be wrong."""


class Logs(Struct, frozen=True):
    """A category's history files in the order in which they were written, former slugs first."""

    files: tuple[str, ...]
    logs: tuple[Log, ...]

    @property
    def unread(self) -> bool:
        """Whether nobody knows what a file of it held."""
        return bool(self.losses)

    @property
    def losses(self) -> list[Problem]:
        """Why nobody knows what files of it held."""
        return [problem for log in self.logs if log.unread for problem in log.problems]


def history_files(slug: str, categories: Mapping[str, Category]) -> list[str]:
    """The history files of a category, or of what was one: those of its former slugs, its own."""
    category = categories.get(slug)
    former = category.former_slugs if category else ()
    return [*(each for each in former if each not in categories), slug]


def read_logs(history: History, slug: str, catalogue: Catalogue) -> Logs:
    """A category's history files as they are now."""
    files = history_files(slug, catalogue.categories)
    return Logs(tuple(files), tuple(history.read(file) for file in files))


def deleted_slugs(catalogue: Catalogue, held: Iterable[str]) -> set[str]:
    """The slugs among those that history holds which are neither a category's nor a former one."""
    former = {slug for c in catalogue.categories.values() for slug in c.former_slugs}
    others = set(held) - former - catalogue.categories.keys()
    return {slug for slug in others if is_slug(slug)}


def latest_time(now: datetime) -> str:
    """The latest time that a poll can bear; one beyond it was made under a wrong clock."""
    return rfc3339(now + LEEWAY)


def beyond(
    files: Sequence[str], rows: Iterable[Row], withheld: Container[str], now: datetime
) -> Iterator[Problem]:
    """Every poll later than now that is not withheld; nobody knows when it was really made."""
    latest = latest_time(now)
    for number, stored in rows:
        poll = stored.poll
        if poll.polled_at > latest and poll.id not in withheld:
            message = (
                f"a poll of {poll.polled_at}, which is yet to come (it is {now:%Y-%m-%d %H:%M} "
                "UTC): its clock was wrong, or this machine's is; it counts, and its category is "
                f'not polled, until it is withheld: flask withhold {poll.id} --reason "wrong clock"'
            )
            yield Problem(f"history/{files[number]}.jsonl", stored.line, 1, message)


def records(files: Sequence[str], logs: Sequence[Log]) -> tuple[list[Row], list[Problem]]:
    """The polls that count, file by file as listed, and all damage in a category's files.

    Beside what cannot be read, a line is damage that is another category's or whose id stood
    before, in this file or in one listed earlier.
    """
    problems = [problem for log in logs for problem in log.problems]
    rows: dict[str, Row] = {}
    for number, (file, log) in enumerate(zip(files, logs, strict=True)):
        for stored in log.polls:
            row = number, stored
            if stored.poll.slug not in files:
                what = f'"{stored.poll.slug}"' if is_slug(stored.poll.slug) else "something else"
                why = f"it is a poll of {what}, which is not what this file is about"
                problems.append(damage(file, stored.line, why))
            elif (first := rows.setdefault(stored.poll.id, row)) is not row:
                line, before = first[1].line, files[first[0]]
                why = f"its id stands already in line {line} of history/{before}.jsonl"
                problems.append(damage(file, stored.line, why))
    return list(rows.values()), problems


def in_order(rows: Sequence[Row], withheld: Container[str]) -> list[Row]:
    """The same polls in the order in which they were appended, over all files of a category.

    In one file that is the order of its lines. Between files times decide, but never those of
    polls that are withheld: these stay beside their neighbours.
    """
    if not rows or rows[0][0] == rows[-1][0]:  # one file, as nearly always
        return list(rows)
    files = (list(own) for _, own in groupby(rows, key=itemgetter(0)))
    times = chain.from_iterable(_times(own, withheld) for own in files)
    keyed = sorted(zip(times, rows, strict=True), key=itemgetter(0))
    return [row for _, row in keyed]


def _times(rows: Sequence[Row], withheld: Container[str]) -> Iterator[str]:
    """When each poll of one file was appended, never earlier than the one before it."""
    own = [None if s.poll.id in withheld else s.poll.polled_at for _, s in rows]
    known = next(filter(None, own), rows[0][1].poll.polled_at)
    for time in own:
        known = max(known, time or known)
        yield known


def states_of(history: History, slug: str, catalogue: Catalogue, now: datetime) -> PollStates:
    """How polling of a category stands by its files; a withheld poll beyond ``now`` never was.

    Raises:
        HistoryError: a file cannot be read, or holds a poll beyond ``now`` that is not withheld,
            so that nobody knows what was asked and when.
    """
    logs = read_logs(history, slug, catalogue)
    if logs.unread:
        raise HistoryError(str(logs.losses[0]))
    rows, _ = records(logs.files, logs.logs)
    for problem in beyond(logs.files, rows, catalogue.withheld, now):
        raise HistoryError(str(problem))
    latest = latest_time(now)
    ordered = in_order(rows, catalogue.withheld)
    polls = (stored.poll for _, stored in ordered if stored.poll.polled_at <= latest)
    known = as_known(polls, catalogue.former_names)
    return PollStates.of(known, catalogue.categories[slug])


def as_known(polls: Iterable[Poll], former_names: Mapping[str, str]) -> list[Poll]:
    """Polls under their assistants' present names, to which ``former_names`` lead."""
    if not former_names:
        return list(polls)
    return [
        msgspec.structs.replace(poll, model=former_names.get(poll.model, poll.model))
        for poll in polls
    ]
