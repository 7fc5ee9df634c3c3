"""Running polls: each assistant at its own pace, every poll sent recorded exactly once.

A pair of category and assistant is claimed by a lock from before its due-ness is read until its
record is appended, so that two pollers never ask it at the same time.
"""

from __future__ import annotations

import hashlib
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout
from msgspec import Struct, field

from store.polls.asking import ask
from store.polls.due import due_at
from store.records import Assistant, Category, Poll

if TYPE_CHECKING:
    from pathlib import Path

    from store.polls.sending import Sender

PAUSING = frozenset({"auth", "quota"})

Record = Callable[[Sequence[Poll], str], Sequence[Poll]]


class Pair(Struct, frozen=True):
    """One question to one assistant."""

    slug: str
    category: Category
    assistant: Assistant


class Tally(Struct):
    """What became of an assistant's pairs: outcomes by name, and why it was paused if it was."""

    outcomes: Counter[str] = field(default_factory=Counter)
    paused: str | None = None

    @property
    def polled(self) -> int:
        """How many polls were made and recorded."""
        return sum(n for outcome, n in self.outcomes.items() if outcome not in (SKIPPED, LEFT))


ANSWERED = "answered"
SKIPPED = "not due any more"
LEFT = "left for next time"


class Runner:
    """Polls pairs and records what comes of them.

    ``record`` appends polls to history, ``polls_of`` reads a category's polls back, ``now`` is the
    time in UTC. ``in_order`` polls one pair after the other, so that a run can be repeated exactly.
    """

    def __init__(  # noqa: PLR0913 - each is one of the runner's edges
        self,
        *,
        record: Record,
        polls_of: Callable[[str], Sequence[Poll]],
        locks: Path,
        secret: Callable[[str], str | None],
        sender: Sender,
        stop: threading.Event,
        every_days: int,
        now: Callable[[], datetime],
        in_order: bool = False,
    ) -> None:
        self._record = record
        self._polls_of = polls_of
        self._locks = locks
        self._secret = secret
        self._sender = sender
        self._stop = stop
        self._every_days = every_days
        self._now = now
        self._in_order = in_order

    def run(
        self, pairs: Iterable[Pair], *, only_due: bool, done: Callable[[], None]
    ) -> dict[str, Tally]:
        """Poll all pairs, each assistant with its own threads; ``done`` is called after each."""
        self._locks.mkdir(exist_ok=True)
        lanes: dict[str, deque[Pair]] = {}
        for pair in pairs:
            lanes.setdefault("" if self._in_order else pair.assistant.name, deque()).append(pair)
        tallies = {pair.assistant.name: Tally() for lane in lanes.values() for pair in lane}
        lock = threading.Lock()

        def work(lane: deque[Pair]) -> None:
            while True:
                with lock:
                    if not lane:
                        return
                    pair = lane.popleft()
                    tally = tallies[pair.assistant.name]
                if self._stop.is_set() or tally.paused:
                    outcome, pause = LEFT, None
                else:
                    outcome, pause = self._poll(pair, only_due=only_due)
                with lock:
                    tally.outcomes[outcome] += 1
                    tally.paused = tally.paused or pause
                    done()

        with ExitStack() as pools:
            futures = []
            for name, lane in lanes.items():
                threads = min(lane[0].assistant.concurrency, len(lane)) if name else 1
                pool = pools.enter_context(ThreadPoolExecutor(threads, f"poll {name}"))
                futures += [pool.submit(work, lane) for _ in range(threads)]
            for future in futures:
                future.result()
        return tallies

    def _poll(self, pair: Pair, *, only_due: bool) -> tuple[str, str | None]:
        """Poll one pair; its outcome, and the sentence if its assistant must be paused."""
        assistant = pair.assistant
        claim = FileLock(self._locks / claim_name(pair.slug, assistant.name), timeout=0)
        try:
            with claim:
                if only_due and not self._is_due(pair):
                    return SKIPPED, None
                now = self._now()
                key = self._secret(assistant.key_env) if assistant.key_env else None
                poll = ask(pair.slug, pair.category, assistant, now, self._sender, key)
                self._record([poll], rfc3339(self._now()))
        except Timeout:
            return SKIPPED, None
        if poll.failure in PAUSING:
            return poll.failure, poll.error
        return poll.failure or ANSWERED, None

    def _is_due(self, pair: Pair) -> bool:
        mine = [poll for poll in self._polls_of(pair.slug) if poll.model == pair.assistant.name]
        return due_at(mine, self._every_days) <= self._now()


def due_pairs(
    pairs: Iterable[Pair], polls: Mapping[str, Sequence[Poll]], every_days: int, now: datetime
) -> list[Pair]:
    """The pairs that are due, those waiting longest first."""
    times = []
    for pair in pairs:
        mine = [poll for poll in polls.get(pair.slug, ()) if poll.model == pair.assistant.name]
        times.append((due_at(mine, every_days), pair.slug, pair))
    return [pair for time, _, pair in sorted(times, key=lambda t: t[:2]) if time <= now]


def claim_name(slug: str, model: str) -> str:
    """The lock file of a pair."""
    return f"{slug}.{hashlib.sha256(model.encode()).hexdigest()[:8]}.lock"


def rfc3339(time: datetime) -> str:
    """A time as history writes it: UTC, whole seconds, ``Z``."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
