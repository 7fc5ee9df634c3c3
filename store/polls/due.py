"""Whom to ask and when: what is due, and what is worth asking until rankings are clear.

What an operator is told of them: store/cli/README.md, On schedule.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise, takewhile

from msgspec import Struct

from store.category_history import (
    CLOCK_TOLERANCE,
    from_the_future,
    history_files,
    in_order,
    latest_time,
    losses,
    sound_polls,
    under_present_names,
)
from store.disk import signature_at
from store.files import Catalogue
from store.history import History, HistoryError, PollLine
from store.polls.clocks import Clock
from store.polls.sending import RateLimiter
from store.rankings.certainty import Certainty, Level
from store.rankings.poll_states import CategoryStates, PairState, Pause, recorded_pause, usd_on
from store.records import Assistant, Category, Poll, Site

RETRIED_SOONER = frozenset({"network", "timeout", "http", "rate_limited", "quota", "auth"})
"""Failures that say nothing of the question: retried after 6, 12, 24 … hours, at most after the
regular interval."""
FIRST_RETRY = timedelta(hours=6)
AT_ONCE = datetime.min.replace(tzinfo=UTC)

CLEAR: Level = "clear"
UNMEASURED: Level = "unmeasured"
URGENCY: tuple[Level, ...] = ("open", "contradicted", UNMEASURED)
"""Levels that are not clear, in the order in which they are asked: an open one needs the fewest
further answers, so a capped budget settles most."""

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


def most_answers(site: Site) -> int:
    """Return the answers that a series can take at most.

    A series is a pair's answers in a row, each less than ``poll_every_days`` after the one before.
    It takes ``samples_per_round`` answers, and ``samples_at_first`` where the wording or the served
    model is new, until that has had so many.
    """
    return max(site.samples_per_round, site.samples_at_first)


def series_length(site: Site, state: PairState | None, now: datetime | None = None) -> int:
    """Return how many answers a pair's newest series has; 0 if it had ended by ``now``."""
    if state is None or not state.answer_times:
        return 0
    times = [datetime.fromisoformat(time) for time in reversed(state.answer_times)]
    later = times if now is None else [now, *times]
    gaps = (newer - older for newer, older in pairwise(later))
    regular = timedelta(days=site.poll_every_days)
    following = sum(1 for _ in takewhile(lambda gap: gap < regular, gaps))
    return following + (now is None)


def lacking(site: Site, state: PairState | None, now: datetime | None = None) -> int:
    """Return how many answers a pair's newest series still lacks; may be 0 or less.

    The next one is taken to come from the same served model.
    """
    taken, of_version = series_length(site, state, now), state.answers_of_version if state else 0
    of_round, at_first = site.samples_per_round - taken, site.samples_at_first - of_version
    return min(most_answers(site) - taken, max(of_round, at_first))


def due_at(site: Site, state: PairState | None) -> datetime:
    """Return the time from which a pair is due again.

    At once without a poll, after an interrupted one, and after an answer whose series lacks more;
    soon after failures of the connection or account, later with each in a row; else after the
    regular interval.
    """
    if state is None or state.failure == "interrupted":
        return AT_ONCE
    regular = timedelta(days=site.poll_every_days)
    last = datetime.fromisoformat(state.polled_at)
    if state.failure is None and lacking(site, state) > 0:
        # at once, even if its record is dated ahead by what we tolerate of clocks
        return last - CLOCK_TOLERANCE
    if state.failure not in RETRIED_SOONER:
        return last + regular
    # bounded, for a timedelta of 2 ** 40 cannot be
    return last + min(regular, FIRST_RETRY * (1 << min(len(state.failed_at) - 1, 16)))


class PollingState(Struct, frozen=True):
    """The state of polling in each category whose history could be read, and what follows from it.

    ``unread`` says why others could not be.
    """

    states: Mapping[str, CategoryStates]
    unread: Sequence[HistoryError] = ()

    def of(self, pair: Pair) -> PairState | None:
        """Return how a pair stands with the present question: another wording is due at once."""
        states = self.states.get(pair.slug)
        return states.current.get(pair.assistant.name) if states else None

    def of_assistant(self, assistant: str) -> list[PairState]:
        """Return how an assistant's pairs stand that were ever polled, with whatever question."""
        return [s.ever[assistant] for s in self.states.values() if assistant in s.ever]

    def failures_of(self, assistant: str) -> int:
        """Return how many polls of an assistant failed since its newest answer."""
        states = self.of_assistant(assistant)
        answered = max((one.answered_at for one in states if one.answered_at), default="")
        return sum(time > answered for one in states for time in one.failed_at)

    def pause_of(self, assistant: str, now: datetime) -> Pause | None:
        """Return the pause that an assistant's polls call for, if one lasts; all go by it."""
        return recorded_pause(self.of_assistant(assistant), now)

    def due(self, pairs: Iterable[Pair], site: Site, now: datetime) -> list[Pair]:
        """Return the pairs that are due, those waiting longest first.

        Those of a category whose history could not be read are left out: nobody knows of them.
        """
        times = [(due_at(site, self.of(p)), p.slug, p) for p in pairs if p.slug in self.states]
        return [pair for time, _, pair in sorted(times, key=lambda t: t[:2]) if time <= now]

    def rest_of_series(self, pairs: Sequence[Pair], site: Site, now: datetime) -> list[Pair]:
        """Return pairs that are due, each as often as its series still lacks answers."""
        return [pair for p in pairs for pair in [p] * max(lacking(site, self.of(p), now), 1)]

    def longest_waiting_first(self, pairs: Iterable[Pair]) -> list[Pair]:
        """Return the same pairs, those never asked first, then by their last poll's time."""

        def last(pair: Pair) -> str:
            state = self.of(pair)
            return state.polled_at if state else ""

        return sorted(pairs, key=last)

    def unclear(
        self, pairs: Iterable[Pair], most: int, certainties: Mapping[str, Certainty], today: str
    ) -> list[Pair]:
        """Return the pairs whose category has no clear lead, to be asked once more ``today``.

        Open ones come first.

        Left out are those polled on that day, for a second answer of a day says nothing of other
        days, and those whose assistant has answers of ``most`` days already. A level may be looked
        at every day, so the asking may stop once it is clear.
        """
        chosen = []
        for pair in pairs:
            certainty, state = certainties.get(pair.slug), self.of(pair)
            was_polled = state is not None and state.polled_at[:10] >= today
            may_ask_more = certainty is None or certainty.runs.get(pair.assistant.name, 0) < most
            if level_of(pair, certainties) != CLEAR and may_ask_more and not was_polled:
                chosen.append(pair)
        return sorted(chosen, key=lambda pair: URGENCY.index(level_of(pair, certainties)))


def level_of(pair: Pair, certainties: Mapping[str, Certainty]) -> Level:
    """Return how clear it is who leads in a pair's category."""
    certainty = certainties.get(pair.slug)
    return certainty.level if certainty else UNMEASURED


def describe_levels(pairs: Iterable[Pair], certainties: Mapping[str, Certainty]) -> str:
    """Return how many categories have each level, for people."""
    counts = Counter({pair.slug: level_of(pair, certainties) for pair in pairs}.values())
    parts = [f"{counts[level]} {level}" for level in (CLEAR, *URGENCY) if counts[level]]
    return f"Categories: {', '.join(parts)}."


class FuturePollError(HistoryError):
    """The newest poll of a category is later than now, so that nobody knows when it was made."""

    def __init__(self, slug: str, newest: PollLine, now: datetime) -> None:
        self.slug = slug
        self.time = newest.poll.polled_at
        super().__init__(
            f"history/{newest.file}.jsonl:{newest.line}:1: a poll of {self.time}, which is yet to "
            f"come (it is {now:%Y-%m-%d %H:%M} UTC); `flask check` says what to do"
        )


class PollingReader:
    """Reads how polling of each category stands; keeps it while its files are unchanged.

    ``paces`` has the pace of each assistant in this process, by its name and ``rpm``.
    """

    def __init__(self, history: History, clock: Clock) -> None:
        self.history = history
        self.clock = clock
        self.paces: dict[tuple[str, int], RateLimiter] = {}
        self._states: dict[str, tuple[object, CategoryStates]] = {}

    def states_of(self, slug: str, catalogue: Catalogue) -> CategoryStates:
        """Return how polling of a category stands; a withheld poll beyond now never was.

        Raises:
            HistoryError: a file cannot be read, so that nobody knows what was asked and when.
            FuturePollError: likewise, for it holds a poll beyond now that is not withheld.
        """
        now = self.clock.now()
        files = history_files(slug, catalogue.categories)
        signatures = tuple(signature_at(self.history.path(file)) for file in files)
        category = catalogue.categories[slug]
        basis = (signatures, category, catalogue.withheld, catalogue.former_names)
        before = self._states.get(slug)
        is_same = None not in signatures and before and before[0] == basis
        if before and is_same and before[1].latest_time <= latest_time(now):
            return before[1]
        states = CategoryStates.of(self._counted(slug, catalogue, now), category)
        self._states[slug] = basis, states
        return states

    def _counted(self, slug: str, catalogue: Catalogue, now: datetime) -> list[Poll]:
        logs = [self.history.read(file) for file in history_files(slug, catalogue.categories)]
        for problem in losses(logs):
            raise HistoryError(str(problem))
        stored, _ = sound_polls(logs, catalogue.withheld)
        if ahead := from_the_future(stored, catalogue.withheld, now):
            raise FuturePollError(slug, max(ahead, key=lambda late: late.poll.polled_at), now)
        latest, ordered = latest_time(now), in_order(stored, catalogue.withheld)
        polls = (line.poll for line in ordered if line.poll.polled_at <= latest)
        return under_present_names(polls, catalogue.former_names)

    def usd_on(self, day: str) -> dict[str, float]:
        """Return what each assistant's polls cost on a UTC day, as each category was last read."""
        kept = tuple(self._states.values())  # another assistant's thread may add to them meanwhile
        return usd_on(day, (states.ever for _, states in kept))

    def read(self, catalogue: Catalogue) -> PollingState:
        """Return how polling of all categories stands.

        Deleted ones are not among them, though their polls cost money, too.
        """
        self.history.signatures()  # looks at the ledger, once for all categories
        states: dict[str, CategoryStates] = {}
        unread: list[HistoryError] = []
        for slug in catalogue.categories:
            try:
                states[slug] = self.states_of(slug, catalogue)
            except HistoryError as error:
                unread.append(error)
        return PollingState(states, unread)
