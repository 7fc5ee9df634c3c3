"""Locks between pollers: files whose lock (flock) the kernel frees when their holder dies."""

import errno
import fcntl
import hashlib
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

FOLDER = ".locks"
"""The folder of locks and of the day's spending; nothing in it is worth keeping."""
LOOK = 0.1
"""Seconds between two tries of who waits for a lock."""


class DamagedFileError(OSError):
    """A file of this service's own cannot be understood; the sentence says what to do."""

    def __init__(self, sentence: str) -> None:
        super().__init__(errno.EIO, sentence)

    def __str__(self) -> str:
        return self.strerror or ""


@contextmanager
def lock(path: Path) -> Iterator[bool]:
    """Hold a file's lock inside the block if nobody else has it; yields whether it is held.

    The file's folder is made if it is not there.

    Raises:
        OSError: the file cannot be opened or locked.
    """
    with _opened(path) as handle:
        yield _try(handle)


@contextmanager
def turn(
    folder: Path, name: str, stop: threading.Event, notify: Callable[[], None] = lambda: None
) -> Iterator[bool]:
    """Wait for an assistant's lock and hold it inside the block; yields ``False`` once stopped.

    ``notify`` is called while somebody else has it, at each try.

    Raises:
        OSError: a file cannot be opened or locked.
    """
    with (
        _opened(path_of(folder, name, ".queue")) as queue,
        _opened(path_of(folder, name)) as handle,
    ):
        # who waits holds the queue's lock, so that who lets go and wants the next turn is behind
        is_stopped = any(not _wait(lock, stop, notify) for lock in (queue, handle))
        fcntl.flock(queue, fcntl.LOCK_UN)
        yield not is_stopped


def is_held(path: Path) -> bool:
    """Return whether anybody holds a file's lock.

    Raises:
        OSError: the file cannot be opened.
    """
    try:
        # read-only, so that who may only look at the data can ask too
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def path_of(folder: Path, name: str, what: str = "") -> Path:
    """Return the file of an assistant's lock; a name may hold what no file's may."""
    return folder / f"{hashlib.sha256(name.encode()).hexdigest()[:8]}{what}.lock"


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    path.parent.mkdir(exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        yield handle
    finally:
        # closing alone is not enough while a child that was just forked has a copy
        fcntl.flock(handle, fcntl.LOCK_UN)
        os.close(handle)


def _wait(handle: int, stop: threading.Event, notify: Callable[[], None]) -> bool:
    """Try until the lock is had, or ``stop`` is set; return whether it is had."""
    while not stop.is_set():
        if _try(handle):
            return True
        notify()
        stop.wait(LOOK)
    return False


def _try(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
