"""Locks between pollers: files whose lock (flock) the kernel frees when their holder dies."""

import errno
import fcntl
import hashlib
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from store.disk import locked, make_folder

FOLDER = ".locks"
"""The folder of locks and of the day's spending; nothing in it is worth keeping."""
RETRY_INTERVAL = 0.1
"""Seconds between two tries of who waits for a lock."""


class DamagedFileError(OSError):
    """A file of this service's own cannot be understood; the sentence says what to do."""

    def __init__(self, sentence: str) -> None:
        super().__init__(errno.EIO, sentence)

    def __str__(self) -> str:
        return self.strerror or ""


@contextmanager
def turn(
    folder: Path, name: str, stop: threading.Event, notify: Callable[[], None] = lambda: None
) -> Iterator[bool]:
    """Wait for an assistant's lock and hold it inside the block; yields ``False`` once stopped.

    The ``folder`` is made if it is not there.
    ``notify`` is called while somebody else has it, at each try.

    Raises:
        OSError: a file cannot be opened or locked.
    """

    def wait(stack: ExitStack, path: Path) -> bool:
        while not stop.is_set():
            with suppress(BlockingIOError):
                stack.enter_context(locked(path, wait=False))
                return True
            notify()
            stop.wait(RETRY_INTERVAL)
        return False

    make_folder(folder)
    own, queue = path_of(folder, name), path_of(folder, name, ".queue")
    with ExitStack() as queue_lock, ExitStack() as own_lock:
        # who waits holds the queue's lock, so that who lets go and wants the next turn is behind
        has_lock = wait(queue_lock, queue) and wait(own_lock, own)
        queue_lock.close()
        yield has_lock


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
