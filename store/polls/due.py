"""When each pair of category and assistant is due (store/README.md, Polls)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise, takewhile

from msgspec import Struct

from store.counting import CLOCK_TOLERANCE, history_files, latest_time, states_of
from store.disk import signature_at
from store.files import Catalogue
from store.history import History, HistoryError
from store.polls.clocks import Clock
from store.rankings.poll_states import Pause, PollState, PollStates, recorded_pause, usd_on
from store.records import Assistant, Category, Site

RETRIED_SOONER = frozenset({"network", "timeout", "http", "rate_limited", "quota", "auth"})
FIRST_RETRY = timedelta(hours=6)
ALWAYS = datetime.min.replace(tzinfo=UTC)


Key = tuple[str, str]
"""A pair's category and assistant."""


class Pair(Struct, frozen=True):
    """One question to one assistant."""

    slug: str
    category: Category
    assistant: Assistant

    @property
    def key(self) -> Key:
        """The slug and the assistant's name."""
        return self.slug, self.assistant.name


class Rounds(Struct, frozen=True):
    """How often a pair is asked: so many days between rounds, so many answers in each.

    A round is what answers of a pair lie less than ``every_days`` apart. It takes ``samples``
    answers, and ``at_first`` while its question or served model has had fewer than these.
    """

    every_days: int
    samples: int = 1
    at_first: int = 1

    @classmethod
    def of(cls, site: Site, samples: int | None = None) -> Rounds:
        """Those of site.json, or with so many answers in every round."""
        return cls(
            site.poll_every_days,
            samples or site.samples_per_round,
            samples or site.samples_at_first,
        )

    @property
    def most(self) -> int:
        """How many answers a round can take."""
        return max(self.samples, self.at_first)

    def taken(self, state: PollState | None, now: datetime | None = None) -> int:
        """How many answers there are in a pair's newest round; none if it is over ``now``."""
        if state is None or not state.answers:
            return 0
        times = [datetime.fromisoformat(time) for time in reversed(state.answers)]
        later = times if now is None else [now, *times]
        gaps = (newer - older for newer, older in pairwise(later))
        regular = timedelta(days=self.every_days)
        following = sum(1 for _ in takewhile(lambda gap: gap < regular, gaps))
        return following + (now is None)

    def lacking(self, state: PollState | None, now: datetime | None = None) -> int:
        """How many answers that round still takes, if the served model stays what it is."""
        taken, of_version = self.taken(state, now), state.of_version if state else 0
        return min(self.most - taken, max(self.samples - taken, self.at_first - of_version))

    def due_at(self, state: PollState | None) -> datetime:
        """The time from which a pair is due again.

        At once without a poll, after an interrupted one, and after an answer whose round takes
        more; soon after failures of the line, later with each in a row; else after the regular
        interval.
        """
        if state is None or state.failure == "interrupted":
            return ALWAYS
        regular = timedelta(days=self.every_days)
        last = datetime.fromisoformat(state.polled_at)
        if state.failure is None and self.lacking(state) > 0:
            return last - CLOCK_TOLERANCE  # a record's time may lie so far ahead
        if state.failure not in RETRIED_SOONER:
            return last + regular
        return last + min(regular, FIRST_RETRY * (1 << min(len(state.failed_at) - 1, 16)))


class DuePolls(Struct, frozen=True):
    """What is to be asked, from how polling stands in each category that is known.

    ``unread`` says why it is not known of others.
    """

    states: Mapping[str, PollStates]
    unread: Sequence[HistoryError] = ()

    def of(self, pair: Pair) -> PollState | None:
        """How a pair stands with the present question: another wording is due at once."""
        states = self.states.get(pair.slug)
        return states.present.get(pair.assistant.name) if states else None

    def of_model(self, model: str) -> list[PollState]:
        """How an assistant's pairs stand with whatever question, those that were ever polled."""
        return [held.ever[model] for held in self.states.values() if model in held.ever]

    def usd_on(self, model: str, day: str) -> float:
        """Return what an assistant's polls of a UTC day cost, if no later day has polls."""
        return sum(state.usd for state in self.of_model(model) if state.polled_at[:10] == day)

    def pause_of(self, model: str, now: datetime) -> Pause | None:
        """Return the pause that an assistant's polls call for, if one lasts."""
        return recorded_pause(self.of_model(model), now)

    def known(self, pairs: Iterable[Pair]) -> list[Pair]:
        """The pairs whose history could be read; of others nobody knows what was asked."""
        return [pair for pair in pairs if pair.slug in self.states]

    def due(self, pairs: Iterable[Pair], rounds: Rounds, now: datetime) -> list[Pair]:
        """The pairs known to be due, those waiting longest first."""
        times = [(rounds.due_at(self.of(p)), p.slug, p) for p in self.known(pairs)]
        return [pair for time, _, pair in sorted(times, key=lambda t: t[:2]) if time <= now]

    def rest_of_rounds(self, pairs: Sequence[Pair], rounds: Rounds, now: datetime) -> list[Pair]:
        """Pairs that are due as often as their rounds take answers; each first comes once."""
        missing = [(max(rounds.lacking(self.of(pair), now), 1), pair) for pair in pairs]
        return [pair for turn in range(rounds.most) for times, pair in missing if turn < times]

    def longest_waiting_first(self, pairs: Iterable[Pair]) -> list[Pair]:
        """The same pairs, those never asked first, then by their last poll's time."""

        def last(pair: Pair) -> str:
            state = self.of(pair)
            return state.polled_at if state else ""

        return sorted(pairs, key=last)


class PollLog:
    """How polling of each category stands, by its history as appended; read again if it changed."""

    def __init__(self, history: History, clock: Clock) -> None:
        self.history = history
        self.clock = clock
        self._states: dict[str, tuple[object, PollStates]] = {}

    def states_of(self, slug: str, catalogue: Catalogue) -> PollStates:
        """Return how polling of a category stands.

        Raises:
            HistoryError: nobody knows; see :func:`store.counting.states_of`.
        """
        now = self.clock.now()
        files = history_files(slug, catalogue.categories)
        signatures = tuple(signature_at(self.history.path(file)) for file in files)
        category = catalogue.categories[slug]
        basis = (signatures, category, catalogue.withheld, catalogue.former_names)
        known = self._states.get(slug)
        is_same = None not in signatures and known and known[0] == basis
        if known and is_same and known[1].latest_time <= latest_time(now):
            return known[1]
        states = states_of(self.history, slug, catalogue, now)
        self._states[slug] = basis, states
        return states

    def usd_on(self, day: str) -> float:
        """Return what the polls of a UTC day cost, as of the last look at each category."""
        return usd_on(day, (states for _, states in self._states.values()))

    def look(self, catalogue: Catalogue) -> DuePolls:
        """Return how polling of all categories stands."""
        self.history.signatures()  # it looks at the ledger
        states: dict[str, PollStates] = {}
        unread: list[HistoryError] = []
        for slug in catalogue.categories:
            try:
                states[slug] = self.states_of(slug, catalogue)
            except HistoryError as error:
                unread.append(error)
        return DuePolls(states, unread)
