"""Batches whose process is killed at any moment, at a provider that knows what it bills."""

import os
import random
import signal
import traceback
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest
from batching import Batching, serving
from conftest import Report
from polling_world import NOW, PollingWorld

NAMES = ("GPT", "Claude")
MICROS = 2200
"""What the provider bills for an answer of a batch."""

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


class Story:
    """One assistant's batches, one round a week, each of them killed once."""

    def __init__(self, directory: Path, server: Batching, name: str) -> None:
        self.data = PollingWorld(directory, server.url, 3, batch=True, daily_usd=100)
        self.server, self.name = server, name
        self.kills = self.weeks = 0

    def order(self, do: str, after: float = 0) -> None:
        """Have a child do something, to its end or until an alarm kills it."""
        child = os.fork()
        if child == 0:
            try:
                signal.setitimer(signal.ITIMER_REAL, after)
                getattr(self.data, do)(self.name)
                os._exit(0)
            except BaseException:  # noqa: BLE001 - a child ends here, whatever it met
                traceback.print_exc()
                os._exit(1)
        _, status = os.waitpid(child, 0)
        assert status in (0, signal.SIGALRM)
        self.kills += status == signal.SIGALRM

    def bills(self) -> list[str]:
        """The products of all answers that were billed, once every batch has ended."""
        self.server.finish()
        return [f"Bill {number}" for number in range(1, len(self.server.bills) + 1)]

    def check(self, before: int) -> None:
        """No answer is recorded twice, none that was downloaded is lost, all is in the ledger."""
        picks = Counter(poll.pick for poll in self.data.polls() if poll.succeeded)
        assert set(picks.values()) <= {1}
        assert picks.keys() <= set(self.bills())
        assert not any(batch.is_open for batch in self.data.batches())
        lost = [b for b in self.data.batches() if b.failed_at and b.reserved]
        unrecorded = len(self.bills()) - len(picks)
        assert unrecorded <= 3 * (len(lost) + self.forgotten), "of a batch without a clear create"
        assert self.data.spent() * 1e6 >= MICROS * (len(self.bills()) - before) - 1

    forgotten = 0
    """Batches without a clear create that a later success made forgotten."""

    def week(self, do: str, after: float) -> None:
        """Begin and collect a round, of which one order dies."""
        before = len(self.bills())
        self.weeks += 1
        self.data.now = NOW + timedelta(days=8 * self.weeks)  # at six: a round is of one day
        unclear = sum(bool(b.failed_at and b.reserved) for b in self.data.batches())
        if do == "follow":
            self.order("begin")
        self.order(do, after)
        for _ in range(3):
            self.order("follow")
            self.data.later(minutes=16)
        still = sum(bool(b.failed_at and b.reserved) for b in self.data.batches())
        self.forgotten += max(unclear - still, 0)
        self.check(before)


def tell(tmp_path: Path, name: str, kills: int, seed: int) -> Story:
    """Kill so often, at random moments of sending and of collecting."""
    draw = random.Random(seed)
    with serving() as server:
        story = Story(tmp_path / "data", server, name)
        while story.kills < kills and story.weeks < 12 * kills:
            story.week(draw.choice(("begin", "follow")), draw.uniform(0.001, 0.06))
        answers = len([poll for poll in story.data.polls() if poll.succeeded])
        bills = len(story.bills())
    assert story.kills >= kills
    assert answers <= bills
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
