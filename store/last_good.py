"""What outlives the process: ``DATA_DIR/.last-good``, written by whoever serves or publishes.

Other commands read it, and write only what protects: ``flask withhold`` its withheld.json,
``flask poll`` where the history ended that it added to, ``flask check --accept-history`` the same.

It holds a plain copy of every good hand-edited file under its own relative name and with its
modification time, so that an operator can compare it and copy it back, ``history.json``, which
says where each history file ended, and what :mod:`store.publishing.leaves` keeps of the proof.
Nothing in it is needed while all is well.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Struct

from store.disk import atomic_write, locked, make_folder, opened

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

FOLDER = ".last-good"
EXPORTED = "exported"
"""An empty file; its time is when `flask export` last published the data."""

Version = tuple[int, int]
"""Modification time in ns and size in bytes of a file."""


_ABSENT = (FileNotFoundError, NotADirectoryError)
"""What says that there is no copy; any other fault only says that nobody knows."""


class Copy(Struct, frozen=True):
    """A file's bytes, and when it was modified, in ns."""

    data: bytes
    modified: int

    @property
    def version(self) -> Version:
        """What tells it from the copy of another version."""
        return self.modified, len(self.data)


class LastGood:
    """The copies of one data directory; ``names`` are those of its files, relative to it."""

    def __init__(self, directory: Path) -> None:
        self._home = directory / FOLDER

    def is_there(self) -> bool:
        """Whether there are any copies yet."""
        return self._home.is_dir()

    def read(self, name: str) -> Copy | None:
        """The copy of a file, if there is one.

        Raises:
            OSError: there is something that cannot be read; see :func:`unreadable`.
        """
        with suppress(*_ABSENT), opened(self._home / name) as handle:
            found = os.fstat(handle)
            return Copy(os.pread(handle, found.st_size, 0), found.st_mtime_ns)
        return None

    def exported_at(self) -> float | None:
        """When the data was last exported, in Unix seconds, as far as that was noted."""
        with suppress(OSError):
            return (self._home / EXPORTED).lstat().st_mtime
        return None

    def note_export(self) -> None:
        """Note that the data was exported now.

        Raises:
            OSError: it could not be written.
        """
        with self.locked():
            self.place(EXPORTED, b"")

    def versions(self, folders: Collection[str]) -> dict[str, Version]:
        """What there are copies of, directly and in these folders, and of which version.

        Raises:
            OSError: a folder is there and cannot be looked into; see :func:`unreadable`.
        """
        found: dict[str, Version] = {}
        for folder in ("", *folders):
            with suppress(*_ABSENT), os.scandir(self._home / folder) as entries:
                for entry in entries:
                    name = f"{folder}/{entry.name}" if folder else entry.name
                    if entry.name.endswith(".json"):
                        status = entry.stat(follow_symlinks=False)
                        found[name] = (status.st_mtime_ns, status.st_size)
        return found

    def keep(self, copies: Mapping[str, Copy], gone: Collection[str]) -> None:
        """Write these copies, and take away those of files that are gone.

        Raises:
            OSError: something could not be written.
        """
        with self.locked():
            for name, copy in copies.items():
                self.place(name, copy.data, copy.modified)
            for name in gone:
                (self._home / name).unlink(missing_ok=True)

    def locked(self) -> AbstractContextManager[int]:
        """The folder, made if need be, while no other process changes anything in it."""
        make_folder(self._home)
        return locked(self._home)

    def place(self, name: str, data: bytes, modified: int | None = None) -> None:
        """Put a file in place whole, with its time if one is given, and in a folder of ours."""
        path = self._home / name
        make_folder(path.parent)
        atomic_write(path, data, 0o640, modified)


def unreadable(error: OSError) -> str:
    """Why nobody knows what was last good, in a sentence, and what to do."""
    path = str(error.filename or FOLDER)
    name = path[path.rfind(FOLDER) :]
    todo = "run as the user whose it is" if isinstance(error, PermissionError) else "mend that"
    return f"{name} cannot be read: {error.strerror}; what was last good is in it, so {todo}"
