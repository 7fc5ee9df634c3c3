"""The folder ``proof``: the ledger is read, days are closed and losses accepted here."""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from store.disk import append_lines, make_folder, opened, read_regular
from store.ledger import (
    FOLDER,
    HEADS,
    LEDGER,
    Entry,
    Head,
    Ledger,
    LedgerError,
    Reopening,
    day_after,
    encode,
    entry_of,
    parse,
    whole_lines,
)
from store.records import is_slug

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


SUFFIX = ".jsonl"


class Proof:
    """The folder ``proof`` of a data directory: reads its ledger, closes days, notes acceptances.

    Who appends to history shares its lock and who closes excludes them, so that no line of a day
    comes after its closing.
    """

    def __init__(self, directory: Path) -> None:
        self._home = directory / FOLDER
        self._history = directory / "history"

    def load(self) -> Ledger:
        """Return the ledger as it stands on the disk.

        Raises:
            LedgerError: it is damaged, or gone while there is history that it should prove.
            OSError: it cannot be read.
        """
        heads = self._read(HEADS)  # before the ledger, which a closing writes first
        ledger = self._read(LEDGER)
        if ledger is None and (heads or self._files()):
            raise LedgerError(LEDGER, 1, "the file is gone, and history/ holds answers")
        return parse(ledger or b"", heads or b"")

    def files(self) -> dict[str, bytes]:
        """Return the lines of ledger and heads as they are, by the names of their files.

        Raises:
            OSError: one cannot be read.
        """
        lines = {name: whole_lines(self._read(name) or b"") for name in (LEDGER, HEADS)}
        return {name: b"".join(line + b"\n" for line in own) for name, own in lines.items()}

    @contextmanager
    def locked(self, *, shared: bool = False, wait: bool = True) -> Iterator[None]:
        """Exclude closing while appending (``shared``), or everybody while closing.

        The ledger of a directory without history is begun on the way.

        Raises:
            BlockingIOError: another one has the lock, and nobody was to ``wait``.
            OSError: the folder cannot be made or written to.
        """
        make_folder(self._home)
        handle = os.open(self._home / ".lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o640)
        try:
            kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
            fcntl.flock(handle, kind if wait else kind | fcntl.LOCK_NB)
            is_new = not (self._home / LEDGER).exists() and not (self._home / HEADS).exists()
            if is_new and not self._files():
                self._append(LEDGER, b"")
            yield
        finally:
            os.close(handle)

    def close(self, through: str, *, wait: bool = True) -> list[Head]:
        """Close every day with new lines up to and including ``through``; return the new heads.

        What a crash leaves between ledger and head is taken up here, from the same lines.

        Raises:
            BlockingIOError: a poll or a copy is just being written, and nobody was to ``wait``.
            LedgerError: see :meth:`load`; nothing was written.
            OSError: it could not be written; days before the one at fault are closed.
        """
        with self.locked(wait=wait):
            ledger, heads = self.load(), list[Head]()
            entries = [entry for file in self._files() for entry in self._open(ledger, file)]
            days = {entry.day for entry in entries} | ledger.pending
            for day in sorted(day for day in days if ledger.closed < day <= through):
                own = [entry for entry in entries if entry.day == day]
                self._append(LEDGER, b"".join(map(encode, own)))
                for entry in own:
                    ledger.add(entry)
                heads.append(ledger.head(day))
                self._append(HEADS, encode(heads[-1]))
                ledger.close(heads[-1])
            return heads

    def accept(self, files: Sequence[str], reason: str, today: str) -> list[Entry]:
        """Let files count as they are for all that they should hold; return their entries.

        A ledger that cannot be read is set aside, and a new one begun.

        Raises:
            OSError: a file cannot be read, or the ledger not be written.
        """
        with self.locked():
            try:
                ledger = self.load()
            except LedgerError:
                self._set_aside(today)
                ledger = Ledger()
            day = max(today, day_after(ledger.closed))
            entries = [
                entry_of(
                    file,
                    self._tail(file, 0),
                    day,
                    accepted=True,
                    was=ledger.newest[file].chain if file in ledger.newest else "",
                    reason=reason,
                )
                for file in files
            ]
            self._append(LEDGER, b"".join(map(encode, entries)))
            return entries

    def reopen(self, day: str, reason: str) -> None:
        """Let a day and later ones be open again, after a closing under a wrong clock.

        Raises:
            LedgerError: the day is not closed, or see :meth:`load`.
            OSError: it could not be written.
        """
        with self.locked():
            if day > self.load().closed:
                raise LedgerError(HEADS, 1, f"{day} is not a closed day")
            self._append(HEADS, encode(Reopening(day, reopened=True, reason=reason)))

    def _files(self) -> list[str]:
        """The names of the history files that hold something, sorted."""
        with suppress(FileNotFoundError), os.scandir(self._history) as entries:
            return sorted(
                entry.name.removesuffix(SUFFIX)
                for entry in entries
                if entry.name.endswith(SUFFIX)
                and is_slug(entry.name.removesuffix(SUFFIX))
                and entry.is_file(follow_symlinks=False)
                and entry.stat().st_size
            )
        return []

    def _open(self, ledger: Ledger, file: str) -> list[Entry]:
        """The entries of a file's open lines; none of one that lost closed lines."""
        return ledger.open_entries(file, self._tail(file, ledger.last(file).bytes))

    def _tail(self, file: str, start: int) -> bytes:
        with suppress(FileNotFoundError), opened(self._history / f"{file}.jsonl") as handle:
            return os.pread(handle, max(os.fstat(handle).st_size - start, 0), start)
        return b""

    def _read(self, name: str) -> bytes | None:
        with suppress(FileNotFoundError):
            return read_regular(self._home / name)
        return None

    def _append(self, name: str, data: bytes) -> None:
        append_lines(self._home / name, data)

    def _set_aside(self, today: str) -> None:
        """Keep a ledger that cannot be read beside the one that takes its place."""
        for name in (LEDGER, HEADS):
            path = self._home / name
            with suppress(FileNotFoundError):
                path.rename(path.with_suffix(f".jsonl.{today}.damaged"))
