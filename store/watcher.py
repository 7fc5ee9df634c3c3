"""Keeping a store current while it serves: one thread that looks at the files again and again."""

from __future__ import annotations

import gc
import os
import sys
import threading
import weakref
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from store.memory import Store

THRESHOLDS = gc.get_threshold()
"""The collector's, as they were when the process began; the last is for full collections."""

NEVER = 1_000_000
"""So many collections of younger objects do not happen between two looks."""

SWITCH_INTERVAL = sys.getswitchinterval()
"""Seconds for which a busy thread keeps the interpreter, as they were when the process began."""


@contextmanager
def _requests_first() -> Iterator[None]:
    """Let every other thread have the interpreter within a millisecond.

    Garbage is collected while it is young: a full collection would stop all threads. Always, the
    short interval would cost each request a tenth more.
    """
    sys.setswitchinterval(min(0.001, SWITCH_INTERVAL))
    gc.set_threshold(*THRESHOLDS[:2], NEVER)
    try:
        yield
    finally:
        gc.set_threshold(*THRESHOLDS)
        sys.setswitchinterval(SWITCH_INTERVAL)


class Watcher:
    """Keeps a store current while it serves: one daemon thread that looks at the files.

    It starts with the process that serves, be it ``flask run`` or a worker of gunicorn, so that
    what is good is kept although nobody asks; elsewhere with the first request a process answers.
    It never runs in a command, and ends with its store. Times are in seconds.
    """

    def __init__(self, store: Store, every: float = 2.0, settle: float = 0.2) -> None:
        self._store = store
        self._times = (every, settle)
        self._process: int | None = None
        self._lock = threading.Lock()

    def ensure_running(self) -> None:
        """Start watching in this process, the data brought up to date first."""
        if self._process == os.getpid():
            return
        with self._lock:
            if self._process != os.getpid():
                self._process = os.getpid()
                self._store.keep_current()
                watched = (weakref.ref(self._store), *self._times)
                threading.Thread(target=_watch, args=watched, name="watcher", daemon=True).start()


def _watch(store: weakref.ref[Store], every: float, settle: float) -> None:
    """Look again and again, until nobody holds the store any more."""
    pause = threading.Event()
    frozen_at: float | None = None
    while held := store():
        with _requests_first():
            looked = frozen_at is not None  # the first time, what began this has looked
            if looked:
                held.keep_current(lambda: pause.wait(settle))
            held.prepare()
            if looked:
                held.keep()
            if held.made_at != frozen_at:
                gc.freeze()  # a snapshot has no cycles: it is freed when its last reader lets go
                frozen_at = held.made_at
        del held
        pause.wait(every)
