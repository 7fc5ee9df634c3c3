"""Batches whose process is killed between two steps, at a provider that survives its own end."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from batch_desk import APIS, NOW, Desk
from dying import CAP
from msgspec import Struct
from processes import CANARY, ROOT, call

from store.times import rfc3339

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from conftest import Report


class BatchProvider:
    """The provider of ``batching.py`` as a process that can be killed and started again."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.start()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def book(self) -> dict[str, Any]:
        """What it knows."""
        found: dict[str, Any] = call(f"{self.url}/told")
        return found

    def tell(self, **told: Any) -> None:
        """Set what it does."""
        call(f"{self.url}/told", told)

    def start(self, port: int = 0) -> None:
        """Begin to listen."""
        command = [sys.executable, str(ROOT / "tests" / "batching.py"), str(self._file), str(port)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())

    def kill(self) -> None:
        """End it at once."""
        self.process.kill()
        self.process.wait(10)
        if self.process.stdout:
            self.process.stdout.close()


class Dying:
    """A data directory that processes work on which die, and the clock they are told."""

    def __init__(self, directory: Path, provider: BatchProvider) -> None:
        self.desk = Desk(directory, provider)
        self.provider = provider
        self.now = NOW
        self.count = 0
        self.told: dict[str, Any] = {}
        command = [sys.executable, str(ROOT / "tests" / "dying.py"), str(directory), provider.url]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
            env={"PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}", "PATH": "/usr/bin:/bin"},
        )  # fmt: skip

    def order(self, do: str, api: str, die: int = 0) -> str:
        """Have something done, to its end or to that step."""
        self.count += 1
        self.provider.tell(clock={"at": self.now.timestamp()}, **self.told)
        order = {"do": do, "api": api, "now": rfc3339(self.now), "key": f"{self.count:016x}"}
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({**order, "die": die}) + "\n")
        self.process.stdin.flush()
        said = self.process.stdout.readline().strip()
        assert said.startswith("[") or said == "died", said
        return said

    def settle(self, api: str) -> None:
        """Work on as a server does, until every pair of the round has its answers."""
        for _ in range(8):
            if [self.order("submit", api), self.order("follow", api)] == ["[]", "[]"]:
                return
            self.now += timedelta(minutes=16)

    def billed(self) -> list[str]:
        """The questions that were billed, once nothing is on its way any more."""
        call(f"{self.provider.url}/v1/batches?limit=100")
        return [question for _, question, _ in self.provider.book["bills"]]

    def check(self) -> None:
        """Nothing that was billed is lost or recorded twice, and no cap was passed."""
        bills = self.billed()
        picks = Counter(p.pick for p in self.desk.polls())
        assert picks == Counter(f"Bill {n}" for n in range(1, len(bills) + 1))
        spent = Counter[str]()
        for poll in self.desk.polls():
            spent[poll.polled_at[:10]] += poll.usage.usd or 0 if poll.usage else 0  # type: ignore[assignment]
        assert max(spent.values()) <= CAP
        kept = (self.desk.directory / "batches").iterdir()
        assert not any(CANARY[3:].encode() in path.read_bytes() for path in kept)


@contextmanager
def dying(tmp_path: Path) -> Iterator[Dying]:
    """The provider and what is killed, ended afterwards."""
    provider = BatchProvider(tmp_path / "book.json")
    data = Dying(tmp_path / "data", provider)
    try:
        yield data
    finally:
        data.process.kill()
        data.process.wait(10)
        for pipe in (data.process.stdin, data.process.stdout):
            if pipe:
                pipe.close()
        provider.kill()


def midnight(now: datetime) -> datetime:
    """Eight days later, eight minutes before the day ends: reserves must outlive it."""
    later = now + timedelta(days=8)
    return later.replace(hour=23, minute=52)


Windows = dict[str, tuple[str, range]]
"""What is done, and which of its steps lie in the window, by the window's name."""


OPEN = "create, its id, in a list that lags"
"""The one window left open: made, and not listed at two searches a quarter of an hour apart."""


def windows(submitted: list[str], followed: list[str]) -> Windows:
    """The windows between what must not be lost, by the steps of a run that was not killed."""

    def between(steps: list[str], first: int, last: str) -> range:
        return range(first + 1, _last(steps, last) + 2)

    intent = submitted.index("after atomic_write")
    create, download = (_last(steps, "after call") for steps in (submitted, followed))
    collected = _last(followed, "after atomic_write")
    made = "submit", between(submitted, create, "before atomic_write")
    return {
        "intent, upload, create": ("submit", between(submitted, intent, "before call")),
        "create, its id": made,
        OPEN: made,
        "download, append, collected": (
            "follow",
            between(followed, download, "before atomic_write"),
        ),
        "collected, settle": ("follow", between(followed, collected, "before settle_batch")),
    }


def _last(steps: list[str], name: str) -> int:
    return len(steps) - 1 - steps[::-1].index(name)


class Tally(Struct):
    """What came of the kills in a window: bills, and those beyond one for each pair and repeat."""

    kills: int = 0
    bills: int = 0
    twice: int = 0

    def add(self, billed: Sequence[str]) -> None:
        """A round of three pairs, each asked twice."""
        counts = Counter(billed)
        assert len(counts) == 3
        assert min(counts.values()) >= 2
        self.bills += len(billed)
        self.twice += len(billed) - 6


def kill_in_windows(data: Dying, api: str, times: int) -> dict[str, Tally]:
    """Kill so many times in each window, at one of its steps after the other."""
    submitted, followed = (json.loads(data.order(do, api)) for do in ("submit", "follow"))
    came, known = {}, len(data.billed())
    for window, (do, steps) in windows(submitted, followed).items():
        tally = came[window] = Tally()
        data.told = {api: {"lag": 3}} if window == OPEN else {}
        for turn in range(times):
            data.now = midnight(data.now)
            if do == "follow":
                data.order("submit", api)
            tally.kills += data.order(do, api, steps[turn % len(steps)]) == "died"
            if turn % 20 == 19:
                data.provider.kill()
                data.provider.start(data.provider.port)
            data.settle(api)
            billed = data.billed()
            tally.add(billed[known:])
            known = len(billed)
    data.check()
    return came


def closed(came: dict[str, Tally]) -> dict[str, int]:
    """What was paid twice, by window, all but the open one."""
    return {window: tally.twice for window, tally in came.items() if window != OPEN}


def test_killed_in_each_window_nothing_is_paid_twice(tmp_path: Path) -> None:
    """A `kill -9` in each window: every answer that was billed is in history, once.

    In the one that is left open each question is paid a second time, and no more.
    """
    with dying(tmp_path) as data:
        came = kill_in_windows(data, "responses", 1)
    assert {tally.kills for tally in came.values()} == {1}
    assert set(closed(came).values()) == {0}
    assert came[OPEN].twice == 6


@pytest.mark.slow
@pytest.mark.parametrize("api", APIS)
def test_killed_fifty_times_in_each_window(tmp_path: Path, api: str, report: Report) -> None:
    """The same fifty times, over all steps of each window, in each format."""
    with dying(tmp_path) as data:
        came = kill_in_windows(data, api, 50)
    for window, tally in came.items():
        report(f"{api}, {window}: {tally.kills} kills, {tally.bills} bills, {tally.twice} twice")
    assert {tally.kills for tally in came.values()} == {50}
    assert set(closed(came).values()) == {0}
    assert came[OPEN].twice <= 50 * 6
