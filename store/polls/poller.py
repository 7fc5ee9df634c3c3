"""A turn with one assistant: its lock, its batches, its questions, each of them one record.

A turn is at most ``QUESTIONS_PER_TURN`` questions, asked while the assistant's lock is held. What
is due and what is paused is read from history after the lock is had, so that two pollers never ask
the same. Each question has a daemon thread of its own, abandoned when it hangs, because Python
cannot kill a thread; its late answer is dropped.
"""

import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from msgspec import Struct
from msgspec.structs import replace

from store.history import HistoryError
from store.polls import sample
from store.polls.asking import ask, estimate_reserve, keep_instrument, poll_of
from store.polls.batches import CANCEL_AFTER, WORTH_ANOTHER, AssistantBatches, follow_batches
from store.polls.due import Pair
from store.polls.locks import turn
from store.polls.providers.wire import Reply
from store.polls.session import IN_BATCH, MOST_FAILURES, SKIPPED, PollSession, Summary
from store.polls.spending import Charge
from store.rankings.poll_states import IN_A_ROW, NOT_COUNTED
from store.records import Assistant, Failure
from store.text import rfc3339

log = logging.getLogger(__name__)

QUESTIONS_PER_TURN = 20
"""Questions to one assistant for which its lock is held at a time."""
STOP_CHECK_INTERVAL = 0.1
"""Seconds between two looks at the stop event while questions are on their way."""
GRACE = 1.0
"""Seconds beyond its deadline that a question is waited for, or after a stop."""


class Plan(Struct, kw_only=True):
    """The questions to put to an assistant in its turns, ``most`` in each.

    ``waiting``: exactly these pairs, emptied while asking, never in batches. ``None``: whatever is
    due in ``slugs`` (empty: everywhere), in a batch where the assistant takes batches.
    ``gathers``: while a batch is on its way, what falls due waits until it is ``WORTH_ANOTHER``
    pairs; each would else be a batch of its own.
    ``probes_pause``: ask a paused assistant one question all the same, unless the provider named
    the end of the pause.
    ``follow``: look after the assistant's batches first. ``cancel``: end them, and ask nothing.
    """

    waiting: deque[Pair] | None = None
    slugs: tuple[str, ...] = ()
    most: int = QUESTIONS_PER_TURN
    gathers: bool = False
    probes_pause: bool = False
    follow: bool = True
    cancel: bool = False


def take_turn(
    session: PollSession,
    name: str,
    plan: Plan,
    summary: Summary,
    notify: Callable[[], None] = lambda: None,
) -> bool:
    """Wait for an assistant's lock, then take a turn; return ``False`` if stopped before that.

    What becomes of it is added to the ``summary``, which has the earlier turns of the run;
    ``notify`` is called while somebody else has the lock.

    Raises:
        HistoryError, OSError: it cannot be known what was asked, or a lock or batch not be used.
        SettingsError: the assistant lacks what it needs.
    """
    with turn(session.locks, name, session.stop, notify) as has_lock:
        if not has_lock:
            return False
        if plan.follow:
            follow_batches(session, name, summary, cancel=plan.cancel)
        assistant = next((a for a in session.catalogue.assistants if a.name == name), None)
        if assistant and not (plan.cancel or session.stop.is_set()):
            Questions(session, assistant, plan, summary).ask()
        return True


class Questions:
    """The questions to an assistant in one turn, asked by who holds its lock."""

    def __init__(
        self, session: PollSession, assistant: Assistant, plan: Plan, summary: Summary
    ) -> None:
        session.check_prices(assistant)
        self._session = session
        self._assistant = assistant
        self._plan = plan
        self._summary = summary
        self._sender = session.sender(assistant)
        self._state = session.polling.read(session.catalogue)
        self._waiting = self._due() if plan.waiting is None else plan.waiting
        self._in_batches = session.batches.under_way(session.catalogue)
        self._instrument: str | None = None
        self._failures = self._state.failures_of(assistant.name)
        self._to_start = 0
        self._in_flight: dict[Charge, Pair] = {}
        """The questions on their way, or waiting for the pace."""
        self._collected: queue.SimpleQueue[tuple[Charge, Reply | None]] = queue.SimpleQueue()

    def _due(self) -> deque[Pair]:
        """Return what is due."""
        pairs = self._session.pairs(self._assistant, self._plan.slugs)
        due = self._session.due(pairs, self._state)
        return deque(pair for pair in due if pair.key not in self._summary.skipped)

    def ask(self) -> None:
        """Ask what is waiting, in a batch or directly, unless the assistant is paused."""
        session, assistant, summary = self._session, self._assistant, self._summary
        summary.due, now = len(self._waiting), session.clock.now()
        pause = self._state.pause_of(assistant.name, now)
        if pause and (pause.stated or not self._plan.probes_pause):
            summary.pause = pause
        if summary.pause or not self._waiting:
            return
        directory = session.settings.data_dir
        try:
            self._instrument = keep_instrument(directory, assistant, self._sender.secret)
        except OSError as error:
            summary.fault = f"what it is asked with cannot be kept: {error.strerror}"
            return
        may_be_batched = self._plan.waiting is None and not pause
        if not (may_be_batched and session.asks_in_batches(assistant, self._state)):
            self._ask_directly(1 if pause else self._plan.most)
            return
        # one that is late or cancelled holds nothing back
        is_open = any(
            batch.age(now) < CANCEL_AFTER and not batch.cancelled_at
            for batch in session.batches.open_of(assistant.name, session.catalogue)
        )
        if not (self._plan.gathers and is_open and len(self._waiting) < WORTH_ANOTHER):
            batches = AssistantBatches(session, assistant, summary)
            batches.send(list(self._waiting), self._instrument)

    def _ask_directly(self, most: int) -> None:
        """Ask at most so many pairs, until a limit, a fault or a stop; wait for the answers.

        After a stop they are waited for a little, then what was sent is recorded as interrupted.
        """
        self._to_start = most
        stop, concurrency = self._session.stop, self._assistant.concurrency
        # a dead main thread sets no stop, and the interpreter would wait for this loop for ever
        while not stop.is_set() and threading.main_thread().is_alive():
            may_start = self._waiting and self._to_start and not self._summary.is_over
            if may_start and len(self._in_flight) < concurrency:
                self._start()
            elif self._in_flight:
                self._collect()
            else:
                break
        end = time.monotonic() + GRACE / 2
        while self._in_flight and time.monotonic() < end:
            self._collect()
        stopped = Failure("interrupted", "The poll was stopped while it was on its way.")
        for charge in tuple(self._in_flight):
            is_sent = charge.sent_at is not None
            self._conclude(charge, Reply(outcome=stopped) if is_sent else None)

    def _start(self) -> None:
        """Start the first question; drop it if it must not be asked, or leave it waiting."""
        # Every direct question passes here, batches pass `AssistantBatches.send`; a limit in money
        # is one of `Budget._limits`.
        pair, session = self._waiting[0], self._session
        now = session.clock.now()
        if fault := session.clock.fault():
            self._summary.fault = fault
            return
        if pair.key in self._in_batches:
            self._waiting.popleft()
            self._summary.count(IN_BATCH)
            return
        try:
            states = session.polling.states_of(pair.slug, session.catalogue)
            session.polling.history.check_appendable(pair.slug, rfc3339(now))
        except HistoryError as error:
            # unreadable: we may ask twice; unwritable: we would pay for an answer and lose it
            self._waiting.popleft()
            self._summary.skipped.add(pair.key)
            self._summary.count(SKIPPED, f"{error}")
            return
        name = self._assistant.name
        if self._assistant.api == "sample":
            self._waiting.popleft()
            self._to_start -= 1
            repeat = states.asked_on(rfc3339(now)[:10], name)
            self._record(pair, sample.reply(pair.slug, pair.category, name, now, repeat))
            return
        reserve = estimate_reserve(self._assistant, pair.category.question)
        charge = Charge(session.budget, reserve, name)

        def ask_and_land() -> None:
            self._collected.put((charge, ask(pair, self._sender, charge)))

        try:
            if charge.reserve():
                self._waiting.popleft()
                self._to_start -= 1
                self._in_flight[charge] = pair
                threading.Thread(target=ask_and_land, name=f"poll {name}", daemon=True).start()
            elif self._in_flight:
                # answers that land give back part of their reserve, so this one may fit then
                self._collect()
            else:
                # no limit any more: another process may have freed money since
                limit = session.budget.reached(charge.amount, name)
                self._summary.limit = limit or self._summary.limit
        except OSError as error:
            self._summary.fault = f"the day's spending cannot be kept: {error.strerror}"

    def _collect(self) -> None:
        """Wait a moment for a question to come back, and give up those that are late."""
        with suppress(queue.Empty):
            charge, reply = self._collected.get(timeout=STOP_CHECK_INTERVAL)
            if charge in self._in_flight:
                self._conclude(charge, reply)
        earliest = self._sender.elapsed() - self._sender.limits.total - GRACE
        late = [one for one in self._in_flight if (one.sent_at or earliest) < earliest]
        for charge in late:
            sentence = f"The poll took over {self._sender.limits.total:g} seconds."
            self._conclude(charge, Reply(outcome=Failure("timeout", sentence)))

    def _conclude(self, charge: Charge, reply: Reply | None) -> None:
        """Record what came of a question that was on its way, and count it."""
        pair = self._in_flight.pop(charge)
        self._summary.unknown_usd += charge.unknown / 1e6
        self._record(pair, reply)

    def _record(self, pair: Pair, reply: Reply | None) -> None:
        if reply is None:
            self._summary.count(SKIPPED)
            self._summary.fault = self._summary.fault or self._session.clock.fault()
            return
        question, key = pair.category.question, self._sender.secret
        poll = poll_of(pair.assistant, pair.slug, question, reply, key)
        if poll.succeeded:
            self._failures = 0
        elif poll.failure not in NOT_COUNTED:
            self._failures += 1
            if self._failures >= MOST_FAILURES and reply.pause is None:
                self._sender.rest()
                reply = replace(reply, pause=self._sender.limits.pause)
                poll = replace(poll, notes=(*poll.notes, IN_A_ROW))
        try:
            self._session.append(poll, reply, self._summary, self._instrument)
        except (HistoryError, OSError) as error:
            log.error("%s about %s: %s", pair.assistant.name, pair.slug, error)  # noqa: TRY400
            self._summary.fault = f"an answer could not be recorded: {error}"
