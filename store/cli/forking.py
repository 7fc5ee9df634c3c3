"""Much alike work shared out to all processors, by processes forked from this one."""

from __future__ import annotations

import multiprocessing
import os
import signal
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from multiprocessing.connection import Connection

Item = TypeVar("Item")
Result = TypeVar("Result")

FEW = 500
"""Items that are done in this process: a second or two of work, and forking takes a part of it."""


def in_processes(work: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
    """What ``work`` makes of each item, as it comes; results and exceptions must be picklable.

    Raises:
        Exception: ``work`` raised it.
        ChildProcessError: a process was killed.
    """
    processors = len(os.sched_getaffinity(0))
    if len(items) <= FEW or processors == 1:
        yield from map(work, items)
        return
    readers = [_begun(work, items[i::processors]) for i in range(processors)]
    while readers:
        ready = wait(readers)
        for reader in [each for each in readers if each in ready]:
            try:
                said, found = reader.recv()
            except EOFError:
                raise ChildProcessError("a process was killed, maybe for want of memory") from None
            if said == "failed":
                raise found
            if said == "done":
                readers.remove(reader)
            else:
                yield found


def _begun(work: Callable[[Item], object], items: Sequence[Item]) -> Connection:
    """A process that does this work and tells what came of it."""
    fork = multiprocessing.get_context("fork")
    reader, writer = fork.Pipe(duplex=False)
    fork.Process(target=_do, args=(work, items, writer), daemon=True).start()
    writer.close()
    return reader


def _do(work: Callable[[Item], object], items: Sequence[Item], writer: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that waits ends this one
    try:
        for item in items:
            writer.send(("made", work(item)))
        writer.send(("done", None))
    except Exception as error:  # noqa: BLE001 - whoever shared out the work raises it
        writer.send(("failed", error))
