"""The bodies made for queries, kept while their snapshot is current and there is room."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from store.snapshot import Prepared, Snapshot

ROOM = 12 << 20
"""Bytes of bodies kept, their compressed forms included."""

MOST = 2_000
"""Bodies kept, however small: what is kept beside each then comes to a megabyte."""


class Recent:
    """The bodies asked for most recently; a newer snapshot starts afresh."""

    def __init__(self, room: int = ROOM, most: int = MOST) -> None:
        self._room = room
        self._most = most
        self._lock = threading.Lock()
        self._snapshot: weakref.ref[Snapshot] | None = None
        self._bodies: OrderedDict[Hashable, Prepared] = OrderedDict()
        self._size = 0

    def get(self, snapshot: Snapshot, key: Hashable, make: Callable[[], Prepared]) -> Prepared:
        """The body for a key, made if it is not held; two threads may make the same one."""
        with self._lock:
            if not self._is_of(snapshot):
                self._snapshot = weakref.ref(snapshot)
                self._bodies, self._size = OrderedDict(), 0
            prepared = self._bodies.get(key)
            if prepared is not None:
                self._bodies.move_to_end(key)
                return prepared
        prepared = make()
        with self._lock:
            if self._is_of(snapshot) and key not in self._bodies:
                self._keep(key, prepared)
        return prepared

    def _is_of(self, snapshot: Snapshot) -> bool:
        return self._snapshot is not None and self._snapshot() is snapshot

    def _keep(self, key: Hashable, prepared: Prepared) -> None:
        self._bodies[key] = prepared
        self._size += prepared.room
        while self._size > self._room or len(self._bodies) > self._most:
            _, oldest = self._bodies.popitem(last=False)
            self._size -= oldest.room
