"""Directories that one command fills: marked as its own, and locked while it writes.

The mark is a file that bears the command's name. A directory without it that holds anything
belongs to somebody else, whatever it looks like, and is left alone. The lock is on the mark, which
then says who writes.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MARK = ".written-by-flask-{}"
"""The name of the mark of a command."""


class DirectoryError(Exception):
    """A directory that must not be written; the sentence says why."""


class ForeignDirectoryError(DirectoryError):
    """A directory that holds what the command did not write."""


class BusyDirectoryError(DirectoryError):
    """A directory that another process is writing."""


class Writer(Struct, frozen=True):
    """A process that writes: its id, its command line, and since when (RFC 3339)."""

    pid: int
    command: str
    since: str

    def __str__(self) -> str:
        """Name the process for people."""
        return f"process {self.pid} ({self.command}, since {self.since})"


@contextmanager
def owned(directory: Path, command: str, writer: Writer) -> Iterator[None]:
    """Hold a command's own directory inside the block; make it if it is not there.

    Raises:
        ForeignDirectoryError: it is neither empty nor marked as the command's own.
        BusyDirectoryError: another process holds it; the sentence says which.
        OSError: it cannot be written.
    """
    directory.mkdir(parents=True, exist_ok=True)
    mark = directory / MARK.format(command)
    if not mark.is_file() and (names := sorted(path.name for path in directory.iterdir())):
        raise ForeignDirectoryError(
            f"{directory} holds {names[0]} and is not marked as written by `flask {command}`: "
            "nothing there was touched; name a new or an empty directory"
        )
    handle = os.open(mark, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BusyDirectoryError(
                f"{_named(mark)} is writing {directory}; try again when it has ended"
            ) from None
        os.ftruncate(handle, 0)  # what a writer that was killed left there
        os.pwrite(handle, msgspec.json.encode(writer), 0)
        try:
            yield
        finally:
            os.ftruncate(handle, 0)
    finally:
        os.close(handle)


def _named(mark: Path) -> str:
    """Name the process that holds a mark."""
    try:
        return str(msgspec.json.decode(mark.read_bytes(), type=Writer))
    except (OSError, ValueError):  # it has the lock and has not yet said so
        return "another process"
