"""Where each pair of category and assistant stands, and when it is due (CONTRACT section 6)."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from msgspec import Struct

from store import counting
from store.history import HistoryError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from store.history import History
    from store.listing import Signature
    from store.records import Assistant, Category, FailureKind, Poll, Withholding

RETRIED_SOONER = frozenset({"network", "timeout", "http", "rate_limited", "quota", "auth"})
FIRST_RETRY = timedelta(hours=6)
ALWAYS = datetime.min.replace(tzinfo=UTC)

RESTS = "the assistant rests until "
"""How a poll's note begins that tells until when its assistant is left alone."""


class Pair(Struct, frozen=True):
    """One question to one assistant."""

    slug: str
    category: Category
    assistant: Assistant


class Past(Struct, frozen=True):
    """What beside history decides how a category's pairs stand; ``files`` are its history files."""

    files: Sequence[str]
    category: Category
    former_names: Mapping[str, str]
    withheld: Mapping[str, Withholding]

    def answers_now(self, poll: Poll) -> bool:
        """Whether a poll was asked the category's present question, or one that means the same."""
        return self.category.wording(poll.question) == self.category.question


class Standing(Struct, frozen=True):
    """A pair's last poll, the failures in a row it ends, and the newest success's time.

    ``failed_at`` are the times of those failures; ``usd`` is what the pair's polls cost on the UTC
    day of the last one.
    """

    polled_at: str
    failure: FailureKind | None
    error: str | None
    rests_until: str | None
    failed_at: tuple[str, ...]
    answered_at: str | None
    usd: float

    @property
    def failures(self) -> int:
        """How many failures in a row the last poll ends."""
        return len(self.failed_at)


def standing(polls: Sequence[Poll]) -> Standing | None:
    """Where a pair stands after these polls, oldest first; ``None`` after none."""
    if not polls:
        return None
    last = polls[-1]
    answered = [i for i, poll in enumerate(polls) if poll.failure is None]
    day = last.polled_at[:10]
    costs = (poll.usage.usd or 0 for poll in polls if poll.usage and poll.polled_at[:10] == day)
    notes = [note.removeprefix(RESTS) for note in last.notes if note.startswith(RESTS)]
    return Standing(
        polled_at=last.polled_at,
        failure=last.failure,
        error=last.error,
        rests_until=notes[0] if notes else None,
        failed_at=tuple(poll.polled_at for poll in polls[answered[-1] + 1 if answered else 0 :]),
        answered_at=polls[answered[-1]].polled_at if answered else None,
        usd=sum(costs),
    )


def due_at(stands: Standing | None, every_days: int) -> datetime:
    """The time from which a pair is due again.

    At once without a poll or after an interrupted one; sooner after a failure of the line, later
    with each one in a row; else after the regular interval.
    """
    if stands is None or stands.failure == "interrupted":
        return ALWAYS
    regular = timedelta(days=every_days)
    last = datetime.fromisoformat(stands.polled_at)
    if stands.failure not in RETRIED_SOONER:
        return last + regular
    return last + min(regular, FIRST_RETRY * (1 << min(stands.failures - 1, 16)))


class Agenda:
    """Where every pair stands; only history files that changed are read again.

    A pair stands by its polls of the present question: another wording is due at once.
    """

    def __init__(self, history: History) -> None:
        self._history = history
        self._read: dict[str, tuple[Past, tuple[Signature | None, ...]]] = {}
        self._standings: Mapping[str, Mapping[str, Standing]] = {}
        self._ever: Mapping[str, Mapping[str, Standing]] = {}
        self._unread: AbstractSet[str] = frozenset()
        self._lock = threading.Lock()

    def look(self, pasts: Mapping[str, Past], now: datetime) -> list[HistoryError]:
        """Bring the agenda up to date, for each category of which there is a past.

        Returns what could not be read, or holds a poll beyond ``now``: its category stands as it
        last did, if it did, is not due, and is read again at the next look.
        """
        found = self._history.signatures()
        errors: list[HistoryError] = []
        with self._lock:
            # Others read meanwhile what is there, so it is replaced and never changed.
            standings, ever, unread = dict(self._standings), dict(self._ever), set(self._unread)
            for slug, past in pasts.items():
                state = past, tuple(found.get(name) for name in past.files)
                if self._read.get(slug) != state:
                    try:
                        polls = polls_in(self._history, past, now)
                        ever[slug] = by_model(polls)
                        standings[slug] = by_model(filter(past.answers_now, polls))
                        self._read[slug] = state
                        unread.discard(slug)
                    except HistoryError as error:
                        unread.add(slug)
                        errors.append(error)
            self._standings, self._ever, self._unread = standings, ever, unread
        return errors

    def of(self, slug: str, model: str) -> Standing | None:
        """Where a pair stands with the present question."""
        return self._standings.get(slug, {}).get(model)

    def of_model(self, model: str) -> list[Standing]:
        """Where an assistant's pairs stand with whatever question, those that were ever polled."""
        return [held[model] for held in self._ever.values() if model in held]

    def usd_on(self, day: str) -> float:
        """What the polls of a UTC day cost, as far as it is known, if no later day has polls."""
        return sum(
            stands.usd
            for held in self._ever.values()
            for stands in held.values()
            if stands.polled_at[:10] == day
        )

    def known(self, pairs: Iterable[Pair]) -> list[Pair]:
        """The pairs whose history could be read; of others nobody knows what was asked."""
        known = self._standings.keys() - self._unread
        return [pair for pair in pairs if pair.slug in known]

    def due(self, pairs: Iterable[Pair], every_days: int, now: datetime) -> list[Pair]:
        """The pairs known to be due, those waiting longest first."""
        times = [
            (due_at(self.of(pair.slug, pair.assistant.name), every_days), pair.slug, pair)
            for pair in self.known(pairs)
        ]
        return [pair for time, _, pair in sorted(times, key=lambda t: t[:2]) if time <= now]

    def longest_waiting_first(self, pairs: Iterable[Pair]) -> list[Pair]:
        """The same pairs, those never asked first, then by their last poll's time."""

        def last(pair: Pair) -> str:
            stands = self.of(pair.slug, pair.assistant.name)
            return stands.polled_at if stands else ""

        return sorted(pairs, key=last)


def polls_in(history: History, past: Past, now: datetime) -> list[Poll]:
    """Every poll in a category's history files, oldest first, under present names.

    One that is withheld counts as asked, unless it lies beyond ``now``.

    Raises:
        HistoryError: a file cannot be read, or holds a poll beyond ``now`` that is not withheld,
            so that nobody knows what was asked and when.
    """
    logs = [history.read(file) for file in past.files]
    for log in logs:
        if log.unread:
            raise HistoryError(str(log.problems[0]))
    rows, _ = counting.records(past.files, logs)
    for problem in counting.beyond(past.files, rows, past.withheld, now):
        raise HistoryError(str(problem))
    latest = counting.latest_time(now)
    polls = (stored.poll for _, stored in counting.in_order(rows, past.withheld))
    return counting.as_known((p for p in polls if p.polled_at <= latest), past.former_names)


def by_model(polls: Iterable[Poll]) -> dict[str, Standing]:
    """Where each assistant stands after a category's polls, oldest first."""
    held: dict[str, list[Poll]] = {}
    for poll in polls:
        held.setdefault(poll.model, []).append(poll)
    return {model: stands for model, own in held.items() if (stands := standing(own))}
