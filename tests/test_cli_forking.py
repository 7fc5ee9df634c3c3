"""Work that is shared out to processes comes back whole, and its failures come back too."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

from store.cli import forking
from store.cli.forking import in_processes
from store.dataset.verifying import Difference

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.filterwarnings("ignore:.*fork")  # of a process with threads, as pytest is


@pytest.fixture(autouse=True)
def shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forking, "IN_ONE_PROCESS", 3)
    monkeypatch.setattr(forking, "CHUNK", 2)
    monkeypatch.setattr(os, "cpu_count", lambda: 3)


def failing(how: Callable[[], None]) -> Callable[[int], int]:
    def work(number: int) -> int:
        if number == 7:
            how()
        return number

    return work


@pytest.mark.parametrize("count", [0, 1, 3, 4, 100])
def test_each_item_is_done_once_elsewhere(count: int) -> None:
    """Few of them here, more in other processes, which hold what this one does."""
    found = list(in_processes(lambda number: (number, os.getpid()), range(count)))
    assert sorted(number for number, _ in found) == list(range(count))
    assert ({process for _, process in found} <= {os.getpid()}) == (count <= 3)


def test_the_first_failure_is_raised() -> None:
    """As it was raised there."""

    def differ() -> None:
        raise Difference("file differs at byte 7")

    with pytest.raises(Difference, match="byte 7"):
        list(in_processes(failing(differ), range(100)))


def test_a_process_that_is_killed_is_missed() -> None:
    """Nothing waits for it for ever, and nothing counts as done."""
    work = failing(lambda: os.kill(os.getpid(), signal.SIGKILL))
    with pytest.raises(ChildProcessError, match="want of memory"):
        list(in_processes(work, range(100)))
