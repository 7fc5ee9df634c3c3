"""Keeping a store current while it serves: one thread that looks at the files again and again."""

from __future__ import annotations

import os
import threading
import time
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from store.store import Store


class Watcher:
    """One daemon thread that looks at the files of a store.

    It starts with the process that serves, be it ``flask run`` or a worker of gunicorn, so that
    what is good is kept although nobody asks; elsewhere with the first request a process answers.
    It never runs in a command, and ends with its store. Times are in seconds.
    """

    def __init__(self, store: Store, every: float = 0.5, rest: float = 0.2) -> None:
        self._store = store
        self._times = (every, rest)
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


def _watch(store: weakref.ref[Store], every: float, rest: float) -> None:
    """Look again and again, until nobody holds the store any more."""
    while held := store():
        appended = held.appended
        appended.clear()
        held.keep_current(settled=True, prepare=True)
        del held
        time.sleep(rest)  # what is appended meanwhile is one derivation, and editors finish
        appended.wait(every - rest)
