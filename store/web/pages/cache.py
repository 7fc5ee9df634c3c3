"""Pages rendered most recently, within a budget of bytes."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from store.snapshot import Prepared

BUDGET = 64 * 1024 * 1024
"""Bytes of page bodies held at most, their compressed copies not counted."""


class Cache:
    """Bodies by key, each valid as long as the part of the snapshot it was made from is current.

    Parts are compared by identity: a snapshot takes over what did not change as it is, so a poll
    of one category leaves every other page standing.
    """

    def __init__(self, budget: int = BUDGET) -> None:
        self._budget = budget
        self._size = 0
        self._held: dict[Hashable, tuple[object, Prepared]] = {}
        self._lock = threading.Lock()

    def get(self, key: Hashable, part: object, make: Callable[[], Prepared]) -> Prepared:
        """The body for a key, made if it is not held or no longer current."""
        with self._lock:
            found = self._held.pop(key, None)
            if found:
                if found[0] is part:
                    self._held[key] = found
                    return found[1]
                self._size -= len(found[1].body)
        prepared = make()
        with self._lock:
            if other := self._held.pop(key, None):
                self._size -= len(other[1].body)
            self._held[key] = (part, prepared)
            self._size += len(prepared.body)
            while self._size > self._budget and len(self._held) > 1:
                _, oldest = self._held.pop(next(iter(self._held)))
                self._size -= len(oldest.body)
        return prepared
