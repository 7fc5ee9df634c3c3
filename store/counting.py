"""Which polls of a category's history files count as records, in which order, and as whose."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from itertools import chain, groupby
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING

import msgspec

from store.history import HistoryError, damage
from store.rankings.poll_states import PollStates
from store.records import Problem, is_slug
from store.times import rfc3339

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

    from store.files import Catalogue
    from store.history import History, Log, Stored
    from store.records import Category, Poll, Site

CLOCK_TOLERANCE = timedelta(minutes=10)
"""How far two clocks may differ before one of them is taken to be wrong."""


def history_files(slug: str, categories: Mapping[str, Category]) -> list[str]:
    """The history files of a category, or of what was one: those of its former slugs, its own."""
    category = categories.get(slug)
    former = category.former_slugs if category else ()
    return [*(each for each in former if each not in categories), slug]


def read_logs(history: History, slug: str, catalogue: Catalogue) -> tuple[Log, ...]:
    """A category's history files as they are now, in the order in which they were written."""
    return tuple(history.read(file) for file in history_files(slug, catalogue.categories))


def losses(logs: Iterable[Log]) -> list[Problem]:
    """Why nobody knows what some of these files held."""
    return [problem for log in logs if log.unread for problem in log.problems]


def deleted_slugs(catalogue: Catalogue, held: Iterable[str]) -> set[str]:
    """The slugs among those that history holds which are neither a category's nor a former one."""
    former = {slug for c in catalogue.categories.values() for slug in c.former_slugs}
    others = set(held) - former - catalogue.categories.keys()
    return {slug for slug in others if is_slug(slug)}


def latest_time(now: datetime) -> str:
    """The latest time that a poll can bear; one beyond it was made under a wrong clock."""
    return rfc3339(now + CLOCK_TOLERANCE)


class AheadError(HistoryError):
    """The newest poll of a category is later than now, so that nobody knows when it was made."""

    def __init__(self, slug: str, newest: Stored, now: datetime) -> None:
        self.slug = slug
        self.time = newest.poll.polled_at
        super().__init__(
            f"history/{newest.file}.jsonl:{newest.line}:1: a poll of {self.time}, which is yet to "
            f"come (it is {now:%Y-%m-%d %H:%M} UTC); `flask check` says what to do"
        )


def beyond(polls: Iterable[Stored], withheld: Container[str], now: datetime) -> list[Stored]:
    """Every poll later than now that is not withheld; nobody knows when it was really made."""
    latest = latest_time(now)
    return [s for s in polls if s.poll.polled_at > latest and s.poll.id not in withheld]


def doubt_clock(ahead: Mapping[str, str], polled: int, now: datetime) -> str | None:
    """Return a sentence that doubts this machine's clock, where it is rather that than a record.

    ``ahead`` has the newest poll's time of each category where that is later than now. It is the
    clock if these are several, or all of those that were ``polled``.
    """
    if not ahead or len(ahead) == 1 < polled:
        return None
    newest = max(ahead.values())
    minutes = math.ceil((datetime.fromisoformat(newest) - now).total_seconds() / 60)
    size, unit = next((s, u) for s, u in _UNITS if minutes >= 2 * s)
    slugs = ", ".join(sorted(ahead)[:_NAMED]) + (", …" if len(ahead) > _NAMED else "")
    return (
        f"This machine's clock is probably wrong, by {minutes // size} {unit} or more: it says "
        f"{rfc3339(now)}, and history has an answer of {newest}. Set it: `timedatectl` says "
        "whether it follows a time server, `timedatectl set-ntp true` lets it. Not polled until "
        f"then: {len(ahead):,} of {polled:,} categories ({slugs})"
    )


_UNITS = ((1440, "days"), (60, "hours"), (1, "minutes"))
"""Spans in minutes by which a clock may be wrong, where it is two of them at least."""
_NAMED = 5  # slugs that a message spells out


def invented(polls: int, site: Site) -> Problem | None:
    """Return what is wrong where polls of sample assistants are in a history said to be real."""
    if site.sample or not polls:
        return None
    message = (
        f'"sample" is not true, and history holds {polls:,} invented answers of sample assistants: '
        "begin the real site in a directory of its own (`flask init DIR`), or write "
        '"sample": true; until then nothing is polled or published'
    )
    return Problem("site.json", 1, 1, message)


def records(
    logs: Sequence[Log], withheld: Container[str] = ()
) -> tuple[list[Stored], list[Problem]]:
    """Return the polls that count, file by file as listed, and all damage in a category's files.

    Beside what cannot be read, a line is damage that is another category's, whose id stood before,
    in this file or in one listed earlier, or whose time is before that of the nearest earlier line
    which is neither damage nor ``withheld``: nobody can add an answer to the past.
    """
    problems = [problem for log in logs for problem in log.problems]
    files = [log.file for log in logs]
    counted: dict[str, Stored] = {}
    for log in logs:
        before: Stored | None = None
        for stored in log.polls:
            if why := _fault(stored, files, counted, before, withheld):
                problems.append(damage(log.file, stored.line, why))
                continue
            counted[stored.poll.id] = stored
            if stored.poll.id not in withheld:
                before = stored
    return list(counted.values()), problems


def _fault(
    stored: Stored,
    files: Sequence[str],
    counted: Mapping[str, Stored],
    before: Stored | None,
    withheld: Container[str],
) -> str | None:
    """Why a line is damage; ``before`` is the nearest earlier line that is not, nor withheld."""
    poll = stored.poll
    if poll.slug not in files:
        what = f'"{poll.slug}"' if is_slug(poll.slug) else "something else"
        return f"it is a poll of {what}, which is not what this file is about"
    if first := counted.get(poll.id):
        return f"its id stands already in line {first.line} of history/{first.file}.jsonl"
    if before and poll.polled_at < before.poll.polled_at and poll.id not in withheld:
        return (
            f"its time, {poll.polled_at}, is before that of line {before.line}, "
            f"{before.poll.polled_at}"
        )
    return None


def in_order(polls: Sequence[Stored], withheld: Container[str]) -> list[Stored]:
    """The same polls in the order in which they were appended, over all files of a category.

    In one file that is the order of its lines. Between files times decide, but never those of
    polls that are withheld: these stay beside their neighbours.
    """
    if not polls or polls[0].file == polls[-1].file:  # one file, as nearly always
        return list(polls)
    files = (list(own) for _, own in groupby(polls, key=attrgetter("file")))
    times = chain.from_iterable(_times(own, withheld) for own in files)
    keyed = sorted(zip(times, polls, strict=True), key=itemgetter(0))
    return [stored for _, stored in keyed]


def _times(polls: Sequence[Stored], withheld: Container[str]) -> Iterator[str]:
    """When each poll of one file was appended, never earlier than the one before it."""
    own = [None if s.poll.id in withheld else s.poll.polled_at for s in polls]
    known = next(filter(None, own), polls[0].poll.polled_at)
    for time in own:
        known = max(known, time or known)
        yield known


def states_of(history: History, slug: str, catalogue: Catalogue, now: datetime) -> PollStates:
    """How polling of a category stands by its files; a withheld poll beyond ``now`` never was.

    Raises:
        HistoryError: a file cannot be read, so that nobody knows what was asked and when.
        AheadError: likewise, for it holds a poll beyond ``now`` that is not withheld.
    """
    logs = read_logs(history, slug, catalogue)
    for problem in losses(logs):
        raise HistoryError(str(problem))
    stored, _ = records(logs, catalogue.withheld)
    if ahead := beyond(stored, catalogue.withheld, now):
        raise AheadError(slug, max(ahead, key=lambda each: each.poll.polled_at), now)
    latest = latest_time(now)
    ordered = in_order(stored, catalogue.withheld)
    polls = (each.poll for each in ordered if each.poll.polled_at <= latest)
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
