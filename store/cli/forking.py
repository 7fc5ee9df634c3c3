"""A function mapped over many items in processes forked from this one."""

from __future__ import annotations

import multiprocessing
import os
import signal
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

Item = TypeVar("Item")
Result = TypeVar("Result")

IN_ONE_PROCESS = 500
"""Items that are done in this process: a second or two of work, and forking takes a part of it."""
MAX_PROCESSES = 8
"""Processes at most, for each comes to hold a part of the store of its own."""
CHUNK = 50
"""Items that a process takes at a time: fewer cost more messages, more leave one working alone."""

_work: list[Callable[[Any], Any]] = []
"""In a forked process, what it does; so it need not be picklable."""


def in_processes(work: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
    """What ``work`` makes of each item, in order; results and exceptions must be picklable.

    Raises:
        Exception: ``work`` raised it.
        ChildProcessError: a process was killed.
    """
    processors = min(os.cpu_count() or 1, MAX_PROCESSES)
    if len(items) <= IN_ONE_PROCESS or processors == 1:
        yield from map(work, items)
        return
    fork = multiprocessing.get_context("fork")
    pool = ProcessPoolExecutor(processors, fork, _begin, (work,))
    try:
        yield from pool.map(_do, items, chunksize=CHUNK)
    except BrokenProcessPool:
        raise ChildProcessError("a process was killed, maybe for want of memory") from None
    finally:
        pool.shutdown(cancel_futures=True)


def _begin(work: Callable[[Any], Any]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that waits ends this one
    _work.append(work)


def _do(item: Any) -> Any:
    return _work[-1](item)
