"""A turn with one assistant: its lock, its batches, its questions, each of them one record.

A turn is at most ``MOST`` questions that are asked while the assistant's lock is held. What is due
and what is paused is read from history after the lock is had, so that two pollers never ask the
same. Each question has a daemon thread of its own, which is left to itself when its provider
answers neither yes nor no: nothing waits for it.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress

import msgspec
from msgspec import Struct

from store.history import HistoryError
from store.polls.asking import Outcome, ask, ask_sample, charge_for, given_up
from store.polls.batches import WORTH_IT, Batching, share
from store.polls.desk import LEFT, NOT_DUE, Desk, Summary
from store.polls.due import DuePolls, Key, Pair, Rounds
from store.polls.instruments import keep_instrument
from store.polls.locks import turn
from store.polls.sending import Unsent
from store.polls.spending import Charge
from store.records import Assistant, Failure
from store.text import rfc3339

log = logging.getLogger(__name__)

MOST = 20
"""Questions to one assistant for which its lock is held at a time."""
UNREACHABLE = 10
"""Failures to reach a provider, without an answer between, after which it is paused."""
OUT_OF_REACH = frozenset({"network", "timeout"})
LOOK = 0.1
"""Seconds between two looks at the stop event while questions are on their way."""
GRACE = 1.0
"""Seconds beyond its deadline that a question is waited for, or after a stop."""


class Plan(Struct, kw_only=True):
    """What to ask an assistant in one turn.

    ``waiting`` are the pairs to ask, taken off as they are looked at; without them it is what is
    due by ``rounds``, in batches where that is worth it. With ``rounds`` only what is due is asked,
    and at most ``most``. A paused assistant is asked one of them if ``through``, but not where its
    provider set the time. ``follow`` looks after its batches first, ``cancel`` ends them.
    """

    waiting: deque[Pair] | None = None
    rounds: Rounds | None = None
    most: int = MOST
    through: bool = False
    follow: bool = True
    cancel: bool = False


def take_turn(
    desk: Desk, name: str, plan: Plan, summary: Summary, notify: Callable[[], None] = lambda: None
) -> bool:
    """Wait for an assistant's lock, then look after it; return ``False`` if stopped before that.

    What becomes of it goes into the ``summary``, which has what the run spent on it already;
    ``notify`` is called if somebody else has the lock.

    Raises:
        HistoryError, OSError: it cannot be known what was asked, or a lock or batch not be used.
        Unready, SettingsError: the assistant lacks what it needs.
    """
    with turn(desk.locks, name, desk.stop, notify) as is_held:
        if not is_held:
            return False
        batching = Batching(desk, name, summary)
        if plan.cancel:
            batching.cancel()
        if plan.follow:
            batching.follow()
        assistant = next((a for a in desk.catalogue.assistants if a.name == name), None)
        if assistant and not (plan.cancel or desk.stop.is_set()):
            _ask(desk, assistant, plan, batching)
        return True


def _ask(desk: Desk, assistant: Assistant, plan: Plan, batching: Batching) -> None:
    """Read what is paused and due, and ask it."""
    key, summary = desk.check_ready(assistant), batching.summary
    stands = desk.log.look(desk.catalogue)
    waiting = plan.waiting
    if waiting is None:
        rounds = plan.rounds or Rounds.of(desk.catalogue.site)
        due = desk.due(desk.pairs(assistant), stands, rounds)
        waiting = deque(pair for pair in due if pair.key not in summary.left)
    summary.due = len(waiting)
    now = desk.clock.now()
    pause = stands.pause_of(assistant.name, now)
    if pause and (pause.stated or not plan.through):
        summary.pause = pause
        return
    try:
        instrument = keep_instrument(desk.settings.data_dir, assistant, key) if waiting else None
    except OSError as error:
        summary.fault = f"what it is asked with cannot be kept: {error.strerror}"
        return
    is_worth_it = plan.waiting is None and assistant.batch and len(waiting) >= WORTH_IT
    if is_worth_it and not (pause or desk.files.pause_of(assistant, now)):
        batching.begin(list(waiting), instrument, share(desk, assistant, stands, summary))
        return
    plan = msgspec.structs.replace(plan, waiting=waiting, most=1 if pause else plan.most)
    Turn(desk, assistant, plan, stands, summary, instrument).take()


class _Flight(Struct, frozen=True):
    """A question on its way, given up at ``deadline``, in seconds of the monotonic clock."""

    pair: Pair
    charge: Charge
    deadline: float


class Turn:
    """The questions of one turn, asked by who holds the assistant's lock."""

    def __init__(
        self,
        desk: Desk,
        assistant: Assistant,
        plan: Plan,
        stands: DuePolls,
        summary: Summary,
        instrument: str | None,
    ) -> None:
        self._instrument = instrument
        self._desk = desk
        self._sender = desk.sender(assistant)
        self._waiting = plan.waiting or deque()
        self._rounds = plan.rounds
        self._left = plan.most
        self._summary = summary
        self._skip = desk.files.under_way(desk.catalogue)
        self._flights: dict[Key, _Flight] = {}
        self._landed: queue.SimpleQueue[tuple[Key, Outcome | Unsent]] = queue.SimpleQueue()
        self._out_of_reach = unreached(stands, assistant.name)

    def take(self) -> None:
        """Ask until the turn or the queue ends, something forbids it, or all is to stop."""
        stop, concurrency = self._desk.stop, self._sender.assistant.concurrency
        while not stop.is_set() and threading.main_thread().is_alive():
            may_start = self._waiting and self._left and not self._summary.is_over
            if may_start and len(self._flights) < concurrency:
                self._start()
            elif self._flights:
                self._land()
            else:
                break
        self._give_up()

    def _start(self) -> None:
        """Begin to ask the first pair, unless it is not to be asked; or leave it for later."""
        pair, desk = self._waiting[0], self._desk
        if fault := desk.clock.fault():
            self._summary.fault = fault
            return
        now = desk.clock.now()
        try:
            states = desk.log.states_of(pair.slug, desk.catalogue)
            due_at = self._rounds and self._rounds.due_at(states.present.get(pair.assistant.name))
            if pair.key in self._skip or (due_at and due_at > now):
                self._waiting.popleft()
                self._summary.count(NOT_DUE)
                return
            desk.log.history.check_appendable(pair.slug, rfc3339(now))
        except HistoryError as error:  # nobody knows when it was asked, or its answer is lost
            self._waiting.popleft()
            self._summary.left.add(pair.key)
            self._summary.count(LEFT, f"{error}")
            return
        if pair.assistant.api == "sample":
            self._take_first()
            repeat = states.asked_on(rfc3339(now)[:10], pair.assistant.name)
            self._conclude(pair, ask_sample(pair, now, repeat))
            return
        charge = charge_for(pair.assistant, pair.category.question, desk.budget)
        try:
            if charge.reserve():
                self._take_first()
                self._fly(pair, charge)
            elif self._flights:  # most of them cost less than their reserve
                self._land()
            else:
                self._summary.limit = desk.budget.reached(charge.amount) or self._summary.limit
        except OSError as error:
            self._summary.fault = f"the day's spending cannot be kept: {error.strerror}"

    def _take_first(self) -> None:
        self._waiting.popleft()
        self._left -= 1

    def _fly(self, pair: Pair, charge: Charge) -> None:
        deadline = time.monotonic() + self._sender.limits.total + GRACE
        self._flights[pair.key] = _Flight(pair, charge, deadline)

        def ask_and_land() -> None:
            self._landed.put((pair.key, ask(pair, self._sender, charge)))

        threading.Thread(target=ask_and_land, name=f"poll {pair.key[1]}", daemon=True).start()

    def _land(self) -> None:
        """Wait a moment for a question to come back, and give up those that are late."""
        with suppress(queue.Empty):
            key, outcome = self._landed.get(timeout=LOOK)
            if flight := self._flights.pop(key, None):
                self._conclude(flight.pair, outcome)
        now = time.monotonic()
        for key in [key for key, flight in self._flights.items() if flight.deadline < now]:
            sentence = f"The poll took over {self._sender.limits.total:g} seconds."
            pair = self._flights.pop(key).pair
            self._conclude(pair, given_up(pair, Failure("timeout", sentence)))

    def _give_up(self) -> None:
        """Wait a little for what is on its way, then record that what was sent is given up."""
        end = time.monotonic() + GRACE / 2
        while self._flights and time.monotonic() < end:
            self._land()
        failure = Failure("interrupted", "The poll was stopped while it was on its way.")
        for flight in self._flights.values():
            is_sent = flight.charge.sent_at is not None
            self._conclude(flight.pair, given_up(flight.pair, failure) if is_sent else Unsent())
        self._flights.clear()

    def _conclude(self, pair: Pair, outcome: Outcome | Unsent) -> None:
        """Record what came of a question and count it."""
        if isinstance(outcome, Unsent):
            self._summary.count(LEFT)
            self._summary.fault = self._summary.fault or outcome.reason
            return
        if outcome.poll.succeeded:
            self._out_of_reach = 0
        elif outcome.poll.failure in OUT_OF_REACH:
            self._out_of_reach += 1
            if self._out_of_reach >= UNREACHABLE and outcome.pause is None:
                outcome = msgspec.structs.replace(outcome, pause=self._sender.limits.pause)
        try:
            self._desk.append(outcome, self._summary, self._instrument)
        except (HistoryError, OSError) as error:
            log.error("%s about %s: %s", pair.assistant.name, pair.slug, error)  # noqa: TRY400
            self._summary.fault = f"an answer could not be recorded: {error}"


def unreached(stands: DuePolls, model: str) -> int:
    """Return how many categories an assistant could not be reached for since its last answer."""
    states = stands.of_model(model)
    answered = max((state.answered_at for state in states if state.answered_at), default="")
    return sum(s.failure in OUT_OF_REACH and s.polled_at > answered for s in states)
