"""Pages rendered most recently, within a budget of bytes."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING
from weakref import ref

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from store.snapshot import Prepared

BUDGET = 64 * 1024 * 1024
"""Bytes of pages held at most, their compressed copies included."""


class Cache:
    """Bodies by key, each valid as long as the body it was made beside is current.

    That one is known by identity: a snapshot takes over what did not change as it is, so a poll
    of one category leaves every other page standing. It is not kept alive for that.
    """

    def __init__(self, budget: int = BUDGET) -> None:
        self._budget = budget
        self._size = 0
        self._held: dict[Hashable, tuple[ref[Prepared], Prepared]] = {}
        self._lock = threading.Lock()

    def get(self, key: Hashable, source: Prepared, make: Callable[[], Prepared]) -> Prepared:
        """The body for a key, made if it is not held or no longer current."""
        with self._lock:
            found = self._held.get(key)
            if found and found[0]() is source:
                self._held[key] = self._held.pop(key)
                return found[1]
        prepared = make()
        with self._lock:
            self._drop(key)
            self._held[key] = (ref(source), prepared)
            self._size += prepared.room
            while self._size > self._budget and len(self._held) > 1:
                self._drop(next(iter(self._held)))
        return prepared

    def _drop(self, key: Hashable) -> None:
        if found := self._held.pop(key, None):
            self._size -= found[1].room
