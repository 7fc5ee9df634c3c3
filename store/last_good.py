"""What outlives the process beside the data: ``DATA_DIR/.last-good``.

What batches and the list of leaves note of themselves. No copy of a hand-edited file is here: its
last good version is in memory.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Struct

from store.disk import atomic_write, locked, make_folder, opened

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

FOLDER = ".last-good"

_ABSENT = (FileNotFoundError, NotADirectoryError)
"""What says that there is no such file; any other fault only says that nobody knows."""


class Copy(Struct, frozen=True):
    """The bytes of a file."""

    data: bytes


class LastGood:
    """The folder of one data directory; ``names`` are those of its files, relative to it."""

    def __init__(self, directory: Path) -> None:
        self._home = directory / FOLDER

    def read(self, name: str) -> Copy | None:
        """A file, if it is there.

        Raises:
            OSError: there is something that cannot be read; it is not known what it holds.
        """
        with suppress(*_ABSENT), opened(self._home / name) as handle:
            return Copy(os.pread(handle, os.fstat(handle).st_size, 0))
        return None

    def locked(self) -> AbstractContextManager[int]:
        """The folder, made if need be, while no other process changes anything in it."""
        make_folder(self._home)
        return locked(self._home)

    def place(self, name: str, data: bytes) -> None:
        """Put a file in place whole, in a folder of ours."""
        path = self._home / name
        make_folder(path.parent)
        atomic_write(path, data, 0o640)
