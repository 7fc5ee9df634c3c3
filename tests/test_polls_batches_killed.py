"""Batches whose process is killed at any moment, at a provider that knows what it bills."""

import json
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from conftest import Report
from polling_world import NOW, PollingWorld
from processes import ROOT, call

from store.text import rfc3339

NAMES = ("GPT", "Claude")
MICROS = 2200
"""What the provider bills for an answer of a batch."""


@contextmanager
def worker(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    """A process that answers lines with lines."""
    environ = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"}
    process = subprocess.Popen(
        [sys.executable, *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=environ,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def line_from(process: subprocess.Popen[str]) -> str:
    """What a worker says next."""
    assert process.stdout
    return process.stdout.readline().strip()


class Story:
    """One assistant's batches, one round a week, each of them killed once."""

    def __init__(self, directory: Path, url: str, hand: subprocess.Popen[str]) -> None:
        self.data = PollingWorld(directory, url, 3, batch=True, daily_usd=100)
        self.url, self.hand = url, hand
        self.now: datetime = NOW
        self.kills = self.weeks = 0

    def order(self, do: str, after: float = 0) -> str:
        """Have something done, to its end or for so long."""
        assert self.hand.stdin
        order = {"do": do, "now": rfc3339(self.now), "after": after}
        self.hand.stdin.write(json.dumps(order) + "\n")
        self.hand.stdin.flush()
        outcome = line_from(self.hand)
        assert outcome in ("done", "died")
        self.kills += outcome == "died"
        return outcome

    def bills(self) -> list[str]:
        """The products of all answers that were billed, once every batch has ended."""
        call(f"{self.url}/finish")
        bills = call(f"{self.url}/told")["bills"]
        return [f"Bill {number}" for number in range(1, len(bills) + 1)]

    def check(self, before: int) -> None:
        """No answer is recorded twice, none that was downloaded is lost, all is in the ledger."""
        picks = Counter(poll.pick for poll in self.data.polls() if poll.succeeded)
        assert set(picks.values()) <= {1}
        assert picks.keys() <= set(self.bills())
        assert not any(batch.is_open for batch in self.data.batches())
        lost = [b for b in self.data.batches() if b.failed_at and b.reserved]
        unrecorded = len(self.bills()) - len(picks)
        assert unrecorded <= 3 * (len(lost) + self.forgotten), "of a batch without a clear create"
        self.data.now = self.now
        assert self.data.spent() * 1e6 >= MICROS * (len(self.bills()) - before) - 1

    forgotten = 0
    """Batches without a clear create that a later success made forgotten."""

    def week(self, do: str, after: float) -> None:
        """Begin and collect a round, of which one order dies."""
        before = len(self.bills())
        self.weeks += 1
        self.now = NOW + timedelta(days=8 * self.weeks)  # at six, so that a round is of one day
        unclear = sum(bool(b.failed_at and b.reserved) for b in self.data.batches())
        if do == "follow":
            self.order("begin")
        self.order(do, after)
        for _ in range(3):
            self.order("follow")
            self.now += timedelta(minutes=16)
        still = sum(bool(b.failed_at and b.reserved) for b in self.data.batches())
        self.forgotten += max(unclear - still, 0)
        self.check(before)


def tell(tmp_path: Path, name: str, kills: int, seed: int) -> Story:
    """Kill so often, at random moments of sending and of collecting."""
    draw = random.Random(seed)
    with worker(["tests/batching.py", str(tmp_path / "book.json")]) as provider:
        url = f"http://127.0.0.1:{line_from(provider)}"
        with worker(["tests/dying.py", str(tmp_path / "data"), url, name]) as hand:
            story = Story(tmp_path / "data", url, hand)
            weeks = 0
            while story.kills < kills and weeks < 12 * kills:
                weeks += 1
                story.week(draw.choice(("begin", "follow")), draw.uniform(0.001, 0.06))
            answers = len([poll for poll in story.data.polls() if poll.succeeded])
            bills = len(story.bills())
    assert story.kills >= kills
    assert answers <= bills
    print(f"{name}: {story.kills} kills, {bills} bills, {answers} recorded")  # noqa: T201
    return story


def test_killed_at_any_moment_nothing_is_recorded_twice_or_lost(tmp_path: Path) -> None:
    """Neither while a batch is made nor while it is collected; the ledger has all of it."""
    tell(tmp_path, "GPT", 3, 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_killed_fifty_times(tmp_path: Path, name: str, report: Report) -> None:
    """The same fifty times in each vendor's imitation."""
    story = tell(tmp_path, name, 50, 50)
    report(f"{name}: {story.kills} kills, {len(story.data.polls())} answers recorded")
