"""Leases: locks on one byte of a file, which the kernel releases when their holder dies.

They are open file description locks (fcntl(2), Linux). Each lease opens the file anew, so that it
excludes the other threads of its process as well as other processes.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import struct
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from store.settings import Settings

FOLDER = ".locks"
_FLOCK = "hhqqi4x"
"""``struct flock`` of 64-bit Linux: type, whence, start, length, process (0 for these locks)."""
_BITS = 62
"""Of a digest, for a byte's place: offsets have 63, and so many that no two categories meet."""


class Leases:
    """The leases on pairs: a file for each assistant, in it a byte for each category."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def lease(self, slug: str, model: str) -> AbstractContextManager[bool]:
        """Hold a pair inside the block; yields whether it could be had.

        Raises:
            OSError: the file cannot be locked.
        """
        digest = hashlib.sha256(slug.encode()).digest()
        return leased(self._file(model), int.from_bytes(digest[:8], "big") >> (64 - _BITS))

    def batches(self, model: str) -> AbstractContextManager[bool]:
        """Be the only one who works on an assistant's batches; else as :meth:`lease`."""
        return leased(self._file(model, ".batch"))

    def held(self, model: str) -> int:
        """How many of an assistant's pairs are being asked now, by any process."""
        return held(self._file(model))

    def _file(self, model: str, what: str = "") -> Path:
        return self._directory / f"{hashlib.sha256(model.encode()).hexdigest()[:8]}{what}.lock"


@contextmanager
def leased(path: Path, byte: int = 0, *, wait: bool = False) -> Iterator[bool]:
    """Hold one byte of a file inside the block; yields whether it could be had.

    With ``wait`` it always can, be it later. The file's folder is made if it is not there.

    Raises:
        OSError: the file cannot be opened or locked.
    """
    path.parent.mkdir(exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            _call("F_OFD_SETLKW" if wait else "F_OFD_SETLK", handle, byte, 1)
            had = True
        except BlockingIOError:
            had = False
        try:
            yield had
        finally:
            if had:  # closing is not enough while a child just forked has a copy of the handle
                _call("F_OFD_SETLK", handle, byte, 1, fcntl.F_UNLCK)
    finally:
        os.close(handle)


def held(path: Path) -> int:
    """How many bytes of a file are leased, by any process; looks without taking one."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return 0
    count, spans = 0, [(0, 2**_BITS - 1)]
    try:
        while spans:
            first, last = spans.pop()
            if first <= last and (found := _call("F_OFD_GETLK", handle, first, last - first + 1)):
                start, length = found
                count += 1
                spans += [(first, start - 1), (start + length, last)]
    finally:
        os.close(handle)
    return count


def _call(
    command: str, handle: int, start: int, length: int, kind: int = fcntl.F_WRLCK
) -> tuple[int, int] | None:
    """Set or find a lock on a span of bytes; start and length of the one found, if any."""
    number = getattr(fcntl, command, None)
    if number is None:
        raise OSError(errno.ENOTSUP, "polling needs open file description locks, as Linux has them")
    span = struct.pack(_FLOCK, kind, os.SEEK_SET, start, length, 0)
    kind, _, start, length, _ = struct.unpack(_FLOCK, fcntl.fcntl(handle, number, span))
    return None if kind == fcntl.F_UNLCK else (start, length)


def locks_in(settings: Settings) -> Path:
    """The folder of locks and of today's sum; nothing in it is worth keeping."""
    return settings.data_dir / FOLDER
