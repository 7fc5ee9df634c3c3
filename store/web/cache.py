"""Bodies as they are sent, and the one cache that keeps them."""

from __future__ import annotations

import gzip
import sys
import threading
from contextlib import suppress
from functools import cached_property
from hashlib import blake2b
from operator import attrgetter
from typing import TYPE_CHECKING

from cachetools import LRUCache
from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Callable

BUDGET = 120 << 20
"""Bytes kept at most, by :attr:`_Kept.size`.

All JSON bodies of the shipped data (1,425 verdicts, 5,630 records) take 42 MB; the rest leaves the
64 MB that pages and the 12 MB that queries had when each was kept apart. Queries do no harm by
crowding out verdicts: a search answer costs 1.9 ms and takes 11 KB, a verdict takes 16 KB and is
made again in 0.14 ms.
"""

OVERHEAD = 1024
"""Bytes that a kept body takes beside its key, itself and its compressed form: objects, validator,
entries in three mappings."""

PICTURE_SIZE = 80 << 10
"""Bytes that a drawn picture takes: no card of the shipped data takes more than 76 KB."""


class EncodedBody:
    """A body with its validator, plain and compressed.

    Validator and compressed form are made when they are first sent, and kept. ``level`` is that of
    the compression: 1 for what may never be asked for again. ``is_final`` unless the same request
    may soon have a better answer: then nobody keeps it. What ``draw`` makes of the source is
    made when it is first sent, too: the validator is the source's, so that a reader who has the
    picture is answered 304 without drawing.
    """

    def __init__(
        self,
        source: bytes,
        level: int = 6,
        draw: Callable[[bytes], bytes] | None = None,
        *,
        is_final: bool = True,
    ) -> None:
        self.is_final = is_final
        self._source = source
        self._level = level
        self._draw = draw

    @cached_property
    def body(self) -> bytes:
        """What is sent."""
        return self._draw(self._source) if self._draw else self._source

    @cached_property
    def etag(self) -> str:
        """What tells this body from any other of its resource."""
        return f'W/"{blake2b(self._source, digest_size=8).hexdigest()}"'

    @property
    def size(self) -> int:
        """Bytes that it may come to take with its compressed form; gzip halves text at least."""
        return 3 * len(self._source) // 2 + (PICTURE_SIZE if self._draw else 0)

    @cached_property
    def gzipped(self) -> bytes:
        """The body compressed; the same body always gives the same bytes."""
        return gzip.compress(self.body, self._level, mtime=0)


class _Kept(Struct, frozen=True, gc=False):
    """A body, the generation of what it was made from, and the bytes that keeping it takes."""

    generation: int
    body: EncodedBody
    size: int


class BodyCache:
    """The bodies asked for most recently, by path, within a budget of bytes.

    A kept body holds while the generation of what it was made from is the same. It is bytes and
    numbers alone, so it keeps no snapshot alive.
    """

    def __init__(self, budget: int = BUDGET) -> None:
        self._kept: LRUCache[str, _Kept] = LRUCache(budget, getsizeof=attrgetter("size"))
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """Bytes kept now."""
        return int(self._kept.currsize)

    def get(
        self, path: str, generation: int | None, make: Callable[[], EncodedBody]
    ) -> EncodedBody:
        """The body at a path, made if none of this generation is kept; ``None`` is never kept.

        Two threads may make the same body. One that reads an older snapshot does not replace what
        is kept of a newer one.
        """
        if generation is None:
            return make()
        kept = self._found(path)
        if kept is not None and kept.generation == generation:
            return kept.body
        made = make()
        if made.is_final:
            self._keep(path, generation, made)
        return made

    def _found(self, path: str) -> _Kept | None:
        with self._lock:
            try:
                return self._kept[path]  # ``get`` would look twice
            except KeyError:
                return None

    def _keep(self, path: str, generation: int, body: EncodedBody) -> None:
        size = sys.getsizeof(path) + body.size + OVERHEAD
        with self._lock, suppress(ValueError):  # larger than the whole budget: it is not kept
            kept = self._kept.get(path)
            if kept is None or kept.generation < generation:
                self._kept[path] = _Kept(generation, body, size)
