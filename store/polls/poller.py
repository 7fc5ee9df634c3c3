"""Polling one assistant: its lock, its questions under way at once, each of them one record.

A turn is at most ``MOST`` questions that are asked while the assistant's lock is held. What is due
and what is paused is read from history after the lock is had, so that two pollers never ask the
same. Each question has a daemon thread of its own, which is left to itself when its provider
answers neither yes nor no: nothing waits for it.
"""

from __future__ import annotations

import errno
import logging
import queue
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import msgspec
from msgspec import Struct, field

from store.counting import history_files, latest_time, states_of
from store.disk import signature_at
from store.files import Catalogue
from store.history import History, HistoryError
from store.polls.asking import Outcome, ask, ask_sample, charge_for, given_up
from store.polls.assistant_checks import key_of
from store.polls.batch_files import BatchFiles
from store.polls.clocks import Clock
from store.polls.due import DuePolls, Key, Pair, Rounds
from store.polls.instruments import keep_instrument
from store.polls.sending import FLEX_LIMITS, Limits, Sender, Unsent
from store.polls.spending import Budget, Charge
from store.rankings.poll_states import Pause, PollStates, pause_reason, usd_on
from store.records import Assistant, Failure, Poll
from store.times import rfc3339

log = logging.getLogger(__name__)

Record = Callable[[Sequence[Poll], str], Sequence[Poll]]

SHORT_OF_FILES = (errno.EMFILE, errno.ENFILE)
RECORD_SECONDS = 10
"""How long it is tried to record what was paid for while no file can be opened: other questions of
the process, on their way, soon give theirs back."""

MOST = 20
"""Questions to one assistant for which its lock is held at a time."""
UNREACHABLE = 10
"""Failures to reach a provider, without an answer between, after which it is paused."""
OUT_OF_REACH = frozenset({"network", "timeout"})
LOOK = 0.1
"""Seconds between two looks at the stop event while questions are on their way."""
GRACE = 1.0
"""Seconds beyond its deadline that a question is waited for, or after a stop."""

ANSWERED = "answered"
NOT_DUE = "not due any more"
LEFT = "left for next time"
NOT_ASKED = (NOT_DUE, LEFT)


class Summary(Struct):
    """What became of an assistant's questions in the turns so far.

    ``outcomes`` counts them by name, ``reasons`` has the first sentence for each name. ``paused``
    says why it is left alone, ``limit`` which limit of money is reached, ``fault`` what keeps it
    from being asked; ``usd`` is the known cost. Of ``due`` pairs ``batched`` were sent in batches
    that reserved ``batched_usd``. ``pause`` is the one that was met, ``wrong`` says in sentences
    what may need a person.
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    reasons: dict[str, str] = field(default_factory=dict)
    paused: str | None = None
    limit: str | None = None
    fault: str | None = None
    usd: float = 0
    due: int = 0
    batched: int = 0
    batched_usd: float = 0
    pause: Pause | None = None
    wrong: list[str] = field(default_factory=list)

    def count(self, name: str, reason: str | None = None) -> None:
        """Count one question."""
        self.outcomes[name] += 1
        if reason:
            self.reasons.setdefault(name, reason)

    def take_in(self, outcome: Outcome) -> None:
        """Count a question that was asked."""
        poll = outcome.poll
        self.count(poll.failure or ANSWERED, poll.error)
        self.usd += (poll.usage.usd or 0) if poll.usage else 0
        if outcome.pause is not None and self.paused is None:
            self.paused = pause_reason(poll)

    @property
    def is_over(self) -> bool:
        """Whether nothing more should be asked of the assistant now."""
        return bool(self.paused or self.limit or self.fault)

    @property
    def looked_at(self) -> int:
        """How many questions something became of."""
        return sum(self.outcomes.values()) + self.batched

    @property
    def polled(self) -> int:
        """How many polls were made and recorded."""
        return sum(n for name, n in self.outcomes.items() if name not in NOT_ASKED)

    def __str__(self) -> str:
        """Return the counts and the cost, for people."""
        failures = sorted(self.outcomes.keys() - {ANSWERED, *NOT_ASKED})
        order = [ANSWERED, *failures, *NOT_ASKED]
        counts = [f"{self.outcomes[name]} {name}" for name in order if self.outcomes[name]]
        counts += [f"{self.batched} sent in batches"] if self.batched else []
        counts += [f"{self.usd:.4f} USD"] if self.usd else []
        return ", ".join(counts)


class PollLog:
    """How polling of each category stands, by its history as appended; read again if it changed."""

    def __init__(self, history: History, clock: Clock) -> None:
        self.history = history
        self._clock = clock
        self._states: dict[str, tuple[object, PollStates]] = {}

    def states_of(self, slug: str, catalogue: Catalogue) -> PollStates:
        """Return how polling of a category stands.

        Raises:
            HistoryError: nobody knows; see :func:`store.counting.states_of`.
        """
        now = self._clock.now()
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

    def look(self, catalogue: Catalogue) -> tuple[DuePolls, list[HistoryError]]:
        """Return how polling of all categories stands, and why that of others is not known."""
        self.history.signatures()  # it looks at the ledger
        states: dict[str, PollStates] = {}
        unknown: list[HistoryError] = []
        for slug in catalogue.categories:
            try:
                states[slug] = self.states_of(slug, catalogue)
            except HistoryError as error:
                unknown.append(error)
        return DuePolls(states), unknown


class Desk(Struct, frozen=True, kw_only=True):
    """What polling touches: history, batches, locks, keys, the network, the clock and money.

    ``record`` appends polls to history; what it would refuse, ``log.history.check_appendable``
    refuses before anything is asked.
    """

    record: Record
    log: PollLog
    files: BatchFiles
    catalogue: Catalogue
    directory: Path
    locks: Path
    secret: Callable[[str], str | None]
    stop: threading.Event
    clock: Clock
    budget: Budget
    proxy: str | None = None
    limits: Limits = Limits()

    def sender(self, assistant: Assistant, *, size: int = 0) -> Sender:
        """Return what sends an assistant's requests.

        Raises:
            Unready: its key is missing or cannot be sent.
            SettingsError: the file of its key cannot be read.
        """
        limits = self.limits
        if assistant.tier == "flex":
            limits = msgspec.structs.replace(limits, read=FLEX_LIMITS.read, total=FLEX_LIMITS.total)
        return Sender(
            assistant,
            self.stop,
            secret=key_of(assistant, self.secret),
            proxy=self.proxy,
            limits=msgspec.structs.replace(limits, size=max(limits.size, size)),
            clock=self.clock,
        )

    def keep_instrument(self, assistant: Assistant) -> str | None:
        """Return the id of what an assistant is asked with; see :mod:`store.polls.instruments`.

        Raises:
            OSError: its text could not be written.
            Unready, SettingsError: as :meth:`sender`.
        """
        return keep_instrument(self.directory, assistant, key_of(assistant, self.secret))


class Turn:
    """At most ``most`` questions to one assistant, by who holds its lock.

    What was looked at is taken off ``waiting``. With ``rounds`` only what is due is asked. ``skip``
    are pairs that a batch asks; ``refused`` those whose history cannot be read or written.
    """

    def __init__(  # noqa: PLR0913 - what to ask and by which rules
        self,
        desk: Desk,
        sender: Sender,
        waiting: deque[Pair],
        stands: DuePolls,
        summary: Summary,
        *,
        rounds: Rounds | None = None,
        skip: Collection[Key] = (),
        most: int = MOST,
    ) -> None:
        self.summary = summary
        self.refused: set[Key] = set()
        self._desk = desk
        self._sender = sender
        self._waiting = waiting
        self._rounds = rounds
        self._skip = skip
        self._left = most
        self._flights: dict[int, _Flight] = {}
        self._landed: queue.SimpleQueue[tuple[int, Outcome | Unsent]] = queue.SimpleQueue()
        self._instrument: str | None = None
        self._out_of_reach = unreached(stands, sender.assistant.name)

    def take(self) -> None:
        """Ask until the turn or the queue ends, something forbids it, or all is to stop."""
        stop, concurrency = self._desk.stop, self._sender.assistant.concurrency
        while not stop.is_set() and threading.main_thread().is_alive():
            if self._may_start() and len(self._flights) < concurrency:
                self._start()
            elif self._flights:
                self._land()
            else:
                break
        self._give_up()

    def _may_start(self) -> bool:
        """Return whether another question is to be asked."""
        return bool(self._waiting and self._left and not self.summary.is_over)

    def _start(self) -> None:
        """Begin to ask the first pair, unless it is not to be asked; or leave it for later."""
        pair = self._waiting[0]
        name = pair.assistant.name
        if fault := self._desk.clock.fault():
            self.summary.fault = fault
            return
        try:
            if pair.key in self._skip or not self._is_due(pair):
                self._drop(NOT_DUE)
                return
            now = self._desk.clock.now()
            self._desk.log.history.check_appendable(pair.slug, rfc3339(now))
        except HistoryError as error:  # nobody knows when it was asked, or its answer is lost
            self.refused.add(pair.key)
            self._drop(LEFT, f"{error}")
            return
        if pair.assistant.api == "sample":
            states = self._desk.log.states_of(pair.slug, self._desk.catalogue)
            self._drop_first()
            self._conclude(pair, ask_sample(pair, now, states.asked_on(rfc3339(now)[:10], name)))
            return
        charge = charge_for(pair.assistant, pair.category.question, self._desk.budget)
        if self._is_prepared(pair.assistant, charge):
            self._drop_first()
            self._fly(pair, charge)

    def _is_due(self, pair: Pair) -> bool:
        states = self._desk.log.states_of(pair.slug, self._desk.catalogue)
        if self._rounds is None:
            return True
        state = states.present.get(pair.assistant.name)
        return self._rounds.due_at(state) <= self._desk.clock.now()

    def _is_prepared(self, assistant: Assistant, charge: Charge) -> bool:
        """Return whether a question may be sent: its instrument is kept, its money reserved."""
        what = "what it is asked with"
        try:
            self._instrument = self._instrument or self._desk.keep_instrument(assistant)
            what = "the day's spending"
            if charge.reserve():
                return True
            self._wait_for_money(charge)
        except OSError as error:
            self.summary.fault = f"{what} cannot be kept: {error.strerror}"
        return False

    def _wait_for_money(self, charge: Charge) -> None:
        """Wait for a question on its way, most of which cost less than their reserve; or end."""
        if self._flights:
            self._land()
        else:
            self.summary.limit = self._desk.budget.reached(charge.amount) or self.summary.limit

    def _fly(self, pair: Pair, charge: Charge) -> None:
        number = self._left
        flight = _Flight(pair, charge, time.monotonic() + self._sender.limits.total + GRACE)
        self._flights[number] = flight

        def ask_and_land() -> None:
            self._landed.put((number, ask(pair, self._sender, self._desk.budget, charge)))

        threading.Thread(target=ask_and_land, name=f"poll {pair.key[1]}", daemon=True).start()

    def _land(self, seconds: float = LOOK) -> None:
        """Wait a moment for a question to come back, and give up those that are late."""
        with suppress(queue.Empty):
            number, outcome = self._landed.get(timeout=seconds)
            if flight := self._flights.pop(number, None):
                self._conclude(flight.pair, outcome)
        now = time.monotonic()
        for number in [n for n, flight in self._flights.items() if flight.deadline < now]:
            sentence = f"The poll took over {self._sender.limits.total:g} seconds."
            pair = self._flights.pop(number).pair
            self._conclude(pair, given_up(pair, Failure("timeout", sentence)))

    def _give_up(self) -> None:
        """Wait a little for what is on its way, then record that what was sent is given up."""
        end = time.monotonic() + GRACE / 2
        while self._flights and time.monotonic() < end:
            self._land()
        failure = Failure("interrupted", "The poll was stopped while it was on its way.")
        for flight in self._flights.values():
            is_sent = flight.charge.is_sent
            self._conclude(flight.pair, given_up(flight.pair, failure) if is_sent else Unsent())
        self._flights.clear()

    def _conclude(self, pair: Pair, outcome: Outcome | Unsent) -> None:
        """Record what came of a question and count it."""
        if isinstance(outcome, Unsent):
            self.summary.count(LEFT)
            self.summary.fault = self.summary.fault or outcome.reason
        else:
            outcome = self._with_pause(outcome)
            try:
                record(outcome, self._desk, self._instrument)
            except (HistoryError, OSError) as error:
                log.error("%s about %s: %s", pair.assistant.name, pair.slug, error)  # noqa: TRY400
                self.summary.fault = f"an answer could not be recorded: {error}"
            else:
                self.summary.take_in(outcome)

    def _with_pause(self, outcome: Outcome) -> Outcome:
        """Return the outcome, with a pause if it is one failure to connect too many."""
        if outcome.poll.succeeded:
            self._out_of_reach = 0
        elif outcome.poll.failure in OUT_OF_REACH:
            self._out_of_reach += 1
        else:
            return outcome
        if self._out_of_reach < UNREACHABLE or outcome.pause is not None:
            return outcome
        return msgspec.structs.replace(outcome, pause=self._sender.limits.pause)

    def _drop_first(self) -> None:
        self._waiting.popleft()
        self._left -= 1

    def _drop(self, name: str, reason: str | None = None) -> None:
        self._waiting.popleft()
        self.summary.count(name, reason)


class _Flight(Struct, frozen=True):
    """A question on its way, given up at ``deadline``, in seconds of the monotonic clock."""

    pair: Pair
    charge: Charge
    deadline: float


def unreached(stands: DuePolls, model: str) -> int:
    """Return how many categories an assistant could not be reached for since its last answer."""
    states = stands.of_model(model)
    answered = max((state.answered_at for state in states if state.answered_at), default="")
    return sum(s.failure in OUT_OF_REACH and s.polled_at > answered for s in states)


def record(outcome: Outcome, desk: Desk, instrument: str | None) -> None:
    """Append a poll to history, with what it was asked with and the pause that it calls for.

    Where the clocks differ its time is the provider's, unless that is over a day beyond ours: one
    wrong reply would then keep a category from being asked.
    """
    poll, now = outcome.poll, desk.clock.now()
    poll = msgspec.structs.replace(poll, instrument=instrument or msgspec.UNSET)
    if outcome.at and outcome.at <= now + timedelta(days=1):
        now = outcome.at
    if outcome.pause is not None:
        until = rfc3339(now + timedelta(seconds=outcome.pause))
        poll = msgspec.structs.replace(poll, cooldown_until=until)
    end = time.monotonic() + RECORD_SECONDS
    while True:
        try:
            desk.record([poll], rfc3339(now))
        except HistoryError as error:
            number = getattr(error.__cause__, "errno", None)
            if number not in SHORT_OF_FILES or time.monotonic() > end:
                raise
            desk.stop.wait(0.1)
        else:
            return
