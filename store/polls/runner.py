"""Running polls: each assistant at its own pace, every poll sent recorded exactly once.

A pair of category and assistant is leased from before its due-ness is read until its record is
appended, so that two pollers never ask it at the same time.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct, field

from store.history import HistoryError
from store.polls.asking import Asked, ask, key_of
from store.polls.sending import Limits, Sender, Skipped
from store.polls.spending import Budget
from store.rankings.poll_states import pause_reason
from store.records import Poll
from store.times import rfc3339

if TYPE_CHECKING:
    from store.polls.clocks import Clock
    from store.polls.due import Key, Pair, Rounds
    from store.polls.leases import Leases
    from store.polls.spending import Account
    from store.rankings.poll_states import PollStates
    from store.records import Assistant

Record = Callable[[Sequence[Poll], str], Sequence[Poll]]

ANSWERED = "answered"
NOT_DUE = "not due any more"
IN_A_BATCH = "in a batch"
LEFT = "left for next time"
NOT_ASKED = (NOT_DUE, IN_A_BATCH, LEFT)

THREADS = 2
"""Threads for each request that may be on its way, so that one records while another is asked."""


class RunSummary(Struct):
    """What became of an assistant's pairs.

    ``outcomes`` counts them by name, ``reasons`` has the first sentence for each name, ``paused``
    says why no more were asked, ``rest`` for how many seconds, ``usd`` the known cost.
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    reasons: dict[str, str] = field(default_factory=dict)
    paused: str | None = None
    rest: float | None = None
    usd: float = 0

    def count(self, came: Asked | Skipped | NotAsked) -> None:
        """Take in what became of one pair."""
        if isinstance(came, NotAsked):
            outcome, reason = came.outcome, came.why
        elif isinstance(came, Skipped):
            outcome, reason = LEFT, None
            self.paused = self.paused or came.why
        else:
            poll = came.poll
            outcome, reason = poll.failure or ANSWERED, poll.error
            self.usd += (poll.usage.usd or 0) if poll.usage else 0
            if came.rest is not None:
                if self.rest is None:
                    self.paused = pause_reason(poll)
                self.rest = max(self.rest or 0, came.rest)
        self.outcomes[outcome] += 1
        if reason:
            self.reasons.setdefault(outcome, reason)

    def add(self, later: RunSummary) -> None:
        """Take in what became of others of its pairs in a later run."""
        self.outcomes += later.outcomes
        self.reasons = {**later.reasons, **self.reasons}
        self.paused = self.paused or later.paused
        self.rest = later.rest if self.rest is None else self.rest
        self.usd += later.usd

    @property
    def polled(self) -> int:
        """How many polls were made and recorded."""
        return sum(n for outcome, n in self.outcomes.items() if outcome not in NOT_ASKED)

    def __str__(self) -> str:
        """The counts and the cost, for people."""
        failures = sorted(self.outcomes.keys() - {ANSWERED, *NOT_ASKED})
        order = [ANSWERED, *failures, *NOT_ASKED]
        counted = [f"{self.outcomes[o]} {o}" for o in order if self.outcomes[o]]
        counted += [f"{self.usd:.4f} USD"] if self.usd else []
        return ", ".join(counted)


class NotAsked(Struct, frozen=True):
    """A pair that was not asked: one of ``NOT_ASKED``, and why if that needs saying."""

    outcome: str
    why: str | None = None


class Dependencies(Struct, frozen=True, kw_only=True):
    """What polling depends on: history, leases, API keys, the network, the clock and the budgets.

    ``record`` appends polls to history; what it would refuse, ``check_appendable`` does before
    anything is asked. ``states_of`` says how polling of a category stands now, or raises
    :class:`HistoryError` where nobody knows. ``under_way`` are the pairs that a batch asks.
    """

    record: Record
    check_appendable: Callable[[str, str], None]
    states_of: Callable[[str], PollStates]
    leases: Leases
    secret: Callable[[str], str | None]
    stop: threading.Event
    clock: Clock
    accounts: Sequence[Account] = ()
    proxy: str | None = None
    limits: Limits = Limits()
    under_way: Callable[[], Collection[Key]] = frozenset


def run(
    pairs: Iterable[Pair],
    deps: Dependencies,
    rounds: Rounds | None = None,
    *,
    in_order: bool = False,
    done: Callable[[], None] = lambda: None,
) -> dict[str, RunSummary]:
    """Poll pairs, each assistant with its own threads, and record what comes of them.

    A pair that is given several times is asked as often, after the others were. With ``rounds``
    only those still due are, and none that has failed is asked once more. ``in_order`` polls one
    after the other, so that a run can be repeated exactly. ``done`` is called after each.

    Raises:
        HistoryError: a poll could not be recorded; no further pair was asked.
        OSError: the leases could not be taken.
        Unready: an assistant's key is missing or cannot be sent.
    """
    queues: dict[str, deque[Pair]] = {}
    times: Counter[Key] = Counter()
    for pair in pairs:
        if not times[pair.key]:
            queues.setdefault("" if in_order else pair.assistant.name, deque()).append(pair)
        times[pair.key] += 1
    started = _Run(deps, queues, times, rounds, done)
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
        times: Counter[Key],
        rounds: Rounds | None,
        done: Callable[[], None],
    ) -> None:
        self._deps = deps
        self._times = times
        self._rounds = rounds
        self._done = done
        self._lock = threading.Lock()
        self._broken = False
        self._budget = Budget(deps.accounts)
        assistants = {pair.assistant.name: pair.assistant for q in queues.values() for pair in q}
        self.summaries = {name: RunSummary() for name in assistants}
        self._senders = {name: sender_for(a, deps) for name, a in assistants.items()}

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
                self._conclude(summary, pair, came)
                if self._times[pair.key]:
                    queue.append(pair)

    def _conclude(self, summary: RunSummary, pair: Pair, came: Asked | Skipped | NotAsked) -> None:
        """Count what became of a pair, and so its repeats that are not asked for any more."""
        turns: list[Asked | Skipped | NotAsked] = [came]
        left = self._times[pair.key] - 1
        failed = isinstance(came, Asked) and not came.poll.succeeded
        if failed and self._rounds:
            turns += [Skipped()] * left
        elif not isinstance(came, Asked):
            turns += [came] * left
        for each in turns:
            summary.count(each)
            self._done()
        self._times[pair.key] -= len(turns)

    def _poll(self, pair: Pair) -> Asked | Skipped | NotAsked:
        """Poll one pair and record it, unless another poller has it or it should not be asked."""
        deps, name = self._deps, pair.assistant.name
        with deps.leases.lease(pair.slug, name) as leased:
            if not leased:
                return NotAsked(NOT_DUE)
            if why := deps.clock.fault():
                return Skipped(why)
            try:
                if pair.key in deps.under_way():
                    return NotAsked(IN_A_BATCH)
                states = deps.states_of(pair.slug)
                now = deps.clock.now()
                deps.check_appendable(pair.slug, rfc3339(now))
            except HistoryError as error:  # nobody knows when it was asked, or an answer is lost
                return NotAsked(LEFT, str(error))
            if self._rounds and self._rounds.due_at(states.present.get(name)) > now:
                return NotAsked(NOT_DUE)
            repeat = states.asked_on(rfc3339(now)[:10], name)
            came = ask(pair, now, self._senders[name], self._budget, repeat)
            if isinstance(came, Asked):
                record(came, deps)
            return came


def sender_for(assistant: Assistant, deps: Dependencies) -> Sender:
    """What sends an assistant's requests.

    Raises:
        Unready: its key is missing or cannot be sent.
    """
    return Sender(
        deps.stop,
        rpm=assistant.rpm,
        concurrency=assistant.concurrency,
        secret=key_of(assistant, deps.secret),
        proxy=deps.proxy,
        limits=deps.limits,
        clock=deps.clock,
    )


def record(came: Asked, deps: Dependencies) -> None:
    """Append a poll to history, with the end of the cooldown if it is the reason for one.

    Where the clocks differ its time is the provider's, unless that is over a day beyond ours: one
    wrong reply would then keep a category from being asked.
    """
    poll, now = came.poll, deps.clock.now()
    if came.at and came.at <= now + timedelta(days=1):
        now = came.at
    if came.rest is not None:
        until = rfc3339(now + timedelta(seconds=came.rest))
        poll = msgspec.structs.replace(poll, cooldown_until=until)
    deps.record([poll], rfc3339(now))
