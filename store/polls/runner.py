"""Running polls: each assistant at its own pace, every poll sent recorded exactly once.

A pair of category and assistant is leased from before its due-ness is read until its record is
appended, so that two pollers never ask it at the same time.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct, field

from store.history import HistoryError
from store.polls.asking import Asked, ask, key_of
from store.polls.due import Pair, due_at
from store.polls.sending import Limits, Sender, Skipped
from store.polls.spending import Budget
from store.records import Poll
from store.times import rfc3339

if TYPE_CHECKING:
    from store.polls.clocks import Clock
    from store.polls.leases import Leases
    from store.polls.spending import Account
    from store.rankings.poll_states import PollStates
    from store.records import Assistant

Record = Callable[[Sequence[Poll], str], Sequence[Poll]]

ANSWERED = "answered"
NOT_DUE = "not due any more"
LEFT = "left for next time"

THREADS = 2
"""Threads for each request that may be on its way, so that one records while another is asked."""


class RunSummary(Struct):
    """What became of an assistant's pairs.

    ``outcomes`` counts them by name, ``reasons`` gives the first sentence for each name that has
    one, ``paused`` says why no more were asked, ``rest`` for how many seconds none should be,
    ``usd`` what the answered and failed ones cost as far as is known.
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    reasons: dict[str, str] = field(default_factory=dict)
    paused: str | None = None
    rest: float | None = None
    usd: float = 0

    @property
    def polled(self) -> int:
        """How many polls were made and recorded."""
        return sum(n for outcome, n in self.outcomes.items() if outcome not in (NOT_DUE, LEFT))

    @property
    def failures(self) -> list[str]:
        """The kinds of the polls that failed, by name."""
        return sorted(self.outcomes.keys() - {ANSWERED, NOT_DUE, LEFT})

    def __str__(self) -> str:
        """The counts and the cost, for people."""
        order = [ANSWERED, *self.failures, NOT_DUE, LEFT]
        counted = [f"{self.outcomes[o]} {o}" for o in order if self.outcomes[o]]
        counted += [f"{self.usd:.4f} USD"] if self.usd else []
        return ", ".join(counted)


class NotAsked(Struct, frozen=True):
    """A pair that was not asked: ``NOT_DUE`` or ``LEFT``, and why if that needs saying."""

    outcome: str
    why: str | None = None


class Dependencies(Struct, frozen=True, kw_only=True):
    """What polling touches: history, locks, keys, the line, the clock and the money.

    ``record`` appends polls to history. ``states_of`` says how polling of a category stands now, or
    raises :class:`HistoryError` where nobody knows.
    """

    record: Record
    states_of: Callable[[str], PollStates]
    leases: Leases
    secret: Callable[[str], str | None]
    stop: threading.Event
    clock: Clock
    accounts: Sequence[Account] = ()
    proxy: str | None = None
    limits: Limits = Limits()


def run(
    pairs: Iterable[Pair],
    deps: Dependencies,
    every_days: int | None = None,
    *,
    in_order: bool = False,
    done: Callable[[], None] = lambda: None,
) -> dict[str, RunSummary]:
    """Poll pairs, each assistant with its own threads, and record what comes of them.

    With ``every_days`` only those still due at that interval. ``in_order`` polls one after the
    other, so that a run can be repeated exactly. ``done`` is called after each.

    Raises:
        HistoryError: a poll could not be recorded; no further pair was asked.
        OSError: the leases could not be taken.
        Unready: an assistant's key is missing or cannot be sent.
    """
    queues: dict[str, deque[Pair]] = {}
    for pair in pairs:
        queues.setdefault("" if in_order else pair.assistant.name, deque()).append(pair)
    started = _Run(deps, queues, every_days, done)
    with ExitStack() as pools:
        futures = []
        for name, queue in queues.items():
            threads = min(THREADS * queue[0].assistant.concurrency, len(queue)) if name else 1
            pool = pools.enter_context(ThreadPoolExecutor(threads, f"poll {name}"))
            futures += [pool.submit(started.work, queue) for _ in range(threads)]
    for future in futures:
        future.result()
    return started.summaries


class _Run:
    """One run's shared state: what its threads work off, and what came of it so far."""

    def __init__(
        self,
        deps: Dependencies,
        queues: dict[str, deque[Pair]],
        every_days: int | None,
        done: Callable[[], None],
    ) -> None:
        self._deps = deps
        self._every_days = every_days
        self._done = done
        self._lock = threading.Lock()
        self._broken = False
        self._budget = Budget(deps.accounts)
        assistants = {pair.assistant.name: pair.assistant for q in queues.values() for pair in q}
        self.summaries = {name: RunSummary() for name in assistants}
        self._senders = {name: _sender(a, deps) for name, a in assistants.items()}

    def work(self, queue: deque[Pair]) -> None:
        """Poll pairs until none is left; after a fault nothing more is asked by any thread."""
        while True:
            with self._lock:
                if not queue or self._broken:
                    return
                pair = queue.popleft()
                summary = self.summaries[pair.assistant.name]
            came: Asked | Skipped | NotAsked = Skipped()
            try:
                if not (self._deps.stop.is_set() or summary.paused):
                    came = self._poll(pair)
            except BaseException:
                self._broken = True
                raise
            with self._lock:
                _count(summary, came)
                self._done()

    def _poll(self, pair: Pair) -> Asked | Skipped | NotAsked:
        """Poll one pair and record it, unless another poller has it or it should not be asked."""
        deps, name = self._deps, pair.assistant.name
        with deps.leases.lease(pair.slug, name) as leased:
            if not leased:
                return NotAsked(NOT_DUE)
            if barred := self._barred(pair):
                return barred
            came = ask(pair, deps.clock.now(), self._senders[name], self._budget)
            if isinstance(came, Asked):
                now = _recorded_at(came, deps.clock.now())
                deps.record([_dated(came, now)], rfc3339(now))
            return came

    def _barred(self, pair: Pair) -> NotAsked | Skipped | None:
        """Why a pair is not to be asked, if so.

        Where history cannot be read, or has a record yet to come, nobody knows when it was asked,
        so it is left for another time.
        """
        if why := self._deps.clock.fault():
            return Skipped(why)
        if self._every_days is None and pair.assistant.api == "sample":
            return None
        try:
            states = self._deps.states_of(pair.slug)
        except HistoryError as error:
            return NotAsked(LEFT, str(error))
        if self._every_days is None:
            return None
        state = states.present.get(pair.assistant.name)
        is_due = due_at(state, self._every_days) <= self._deps.clock.now()
        return None if is_due else NotAsked(NOT_DUE)


def _sender(assistant: Assistant, deps: Dependencies) -> Sender:
    return Sender(
        deps.stop,
        rpm=assistant.rpm,
        concurrency=assistant.concurrency,
        secret=key_of(assistant, deps.secret),
        proxy=deps.proxy,
        limits=deps.limits,
        clock=deps.clock,
    )


def _count(summary: RunSummary, came: Asked | Skipped | NotAsked) -> None:
    """Add what became of one pair."""
    if isinstance(came, NotAsked):
        outcome, reason = came.outcome, came.why
    elif isinstance(came, Skipped):
        outcome, reason = LEFT, None
        summary.paused = summary.paused or came.why
    else:
        poll = came.poll
        outcome, reason = poll.failure or ANSWERED, poll.error
        summary.usd += (poll.usage.usd or 0) if poll.usage else 0
        if came.rest is not None:
            summary.paused = summary.paused or poll.error
            summary.rest = max(summary.rest or 0, came.rest)
    summary.outcomes[outcome] += 1
    if reason:
        summary.reasons.setdefault(outcome, reason)


def _recorded_at(came: Asked, now: datetime) -> datetime:
    """The time a poll is recorded at: the provider's if the clocks differ.

    Unless it says a day beyond ours: one wrong reply would then keep a category from being asked.
    """
    return came.at if came.at and came.at <= now + timedelta(days=1) else now


def _dated(came: Asked, now: datetime) -> Poll:
    """The poll, with the end of the cooldown if it is the reason for one."""
    if came.rest is None:
        return came.poll
    until = rfc3339(now + timedelta(seconds=came.rest))
    return msgspec.structs.replace(came.poll, cooldown_until=until)
