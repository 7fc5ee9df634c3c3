"""The ledger: a hash chain over each history file, and a head for each closed day.

``proof/ledger.jsonl`` and ``proof/heads.jsonl`` are append-only. A chain commits to the bytes, the
order and the file of every line; a head commits to the whole ledger up to its day.
"""

from __future__ import annotations

import fcntl
import itertools
import os
from contextlib import contextmanager, suppress
from sys import intern
from typing import TYPE_CHECKING

from msgspec import Struct

from store import chains
from store.chains import FOLDER, HEADS, LEDGER, Entry, Head, LedgerError, Reopening, day_after
from store.disk import append_lines, make_folder, opened, read_regular
from store.line_codec import stamp, whole, whole_lines
from store.records import is_slug

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from store.line_codec import Stamp


class Ledger(Struct):
    """What the two files of a ledger say together.

    ``newest`` has each file's newest entry, ``ends`` the days and line counts of all since its
    newest acceptance, which is in ``accepted``. ``heads`` are those that close days; ``closed`` is
    the newest of these, an empty string where there is none. ``pending`` are the entries that no
    head covers yet; ``chain``, 32 bytes, commits to every entry.
    """

    newest: dict[str, Entry] = {}
    ends: dict[str, list[tuple[str, int]]] = {}
    accepted: dict[str, Entry] = {}
    heads: list[Head] = []
    closed: str = ""
    pending: list[Entry] = []
    chain: bytes = chains.start_of("proof/ledger")
    lines: int = 0

    def last(self, file: str) -> Entry:
        """Return the newest entry of a file; that of an empty file where there is none."""
        return self.newest.get(file) or chains.start(file)

    def lines_on(self, file: str, day: str) -> int:
        """Return how many lines a file had when ``day``, a closed one, was closed."""
        return max((lines for closed, lines in self.ends.get(file, ()) if closed <= day), default=0)

    def holds(self, file: str, data: bytes) -> bool:
        """Return whether a file begins with the lines to which its newest entry commits."""
        last = self.last(file)
        return chains.reach(file, data[: last.bytes]) == (last.lines, last.bytes, last.chain)

    def open_entries(self, file: str, lines: Iterable[Stamp]) -> list[Entry]:
        """Return the entries by which a file's open lines would be closed, oldest day first.

        ``lines`` are those after its newest entry. An entry of a day covers the file up to its last
        line of that day or an earlier one, so that a line with a time far ahead holds up nobody. A
        line without a time counts as the line before it, one of a closed day as of the day after.
        """
        last, stamps, entries = self.last(file), list(lines), list[Entry]()
        first, day = day_after(self.closed), last.day
        steps = chains.reaches(last, (each[:2] for each in stamps))
        for (_, _, own), (count, size, chain) in zip(stamps, steps, strict=True):
            day = own or day
            listed = max(day, first)
            while entries and entries[-1].day >= listed:
                entries.pop()
            if listed:
                entries.append(Entry(intern(listed), file, count, size, chain))
        return entries

    def add(self, entry: Entry) -> None:
        """Take in the next line of the ledger; what came before an acceptance is not counted."""
        self.lines += entry.lines - self.last(entry.file).lines
        self.chain = chains.link_entry(self.chain, entry)
        self.newest[entry.file] = entry
        self.pending.append(entry)
        if entry.accepted:
            self.accepted[entry.file] = entry
            self.ends[entry.file] = []
        self.ends.setdefault(entry.file, []).append((intern(entry.day), entry.lines))

    def head(self, day: str) -> Head:
        """Return the head under which all entries so far are put when ``day`` is closed."""
        return Head(day, len(self.newest), self.lines, self.chain.hex())

    def close(self, record: Head | Reopening) -> None:
        """Take in the next line of the heads."""
        if isinstance(record, Head):
            self.heads.append(record)
            self.pending = []
        else:
            self.heads = [head for head in self.heads if head.day < record.day]
        self.closed = max((head.day for head in self.heads), default="")

    def present(self, entries: Iterable[Entry]) -> chains.Present:
        """Return what a head would be if these open entries were closed now, day by day."""
        chain, newest = self.chain, dict[str, Entry]()
        for entry in sorted(entries, key=lambda entry: (entry.day, entry.file)):
            if entry.lines > self.last(entry.file).lines:
                chain, newest[entry.file] = chains.link_entry(chain, entry), entry
        added = sum(entry.lines - self.last(file).lines for file, entry in newest.items())
        return chains.Present(self.lines + added, self.lines, chain.hex())


def parse(ledger: bytes, heads: bytes, result: Ledger | None = None) -> Ledger:
    """Read the two files of a ledger, into ``result`` if given; torn last lines are left out.

    Raises:
        LedgerError: a line is not one that was written there, or a head is not the ledger's.
    """
    result, entries, number = result or Ledger(), chains.records(LEDGER, ledger, Entry), 0
    for number, record in enumerate(chains.records(HEADS, heads, Head, Reopening), start=1):
        if isinstance(record, Head):
            while result.chain.hex() != record.root or not result.pending:
                if (entry := next(entries, None)) is None:
                    raise LedgerError(HEADS, number, f"its root is not that of {LEDGER}")
                result.add(entry)
            if _days(result) != {record.day} or result.head(record.day) != record:
                reason = f"its day or counts are not those of {LEDGER}, or a head before it is gone"
                raise LedgerError(HEADS, number, reason)
        result.close(record)
    for entry in entries:
        result.add(entry)
    if len(_days(result)) > 1:
        raise LedgerError(HEADS, number + 1, f"a head of {LEDGER}'s days is missing")
    return result


def _days(ledger: Ledger) -> set[str]:
    """The days of entries without a head; of acceptances alone the first, which closes them all."""
    days = sorted(entry.day for entry in ledger.pending)
    return {entry.day for entry in ledger.pending if not entry.accepted} or set(days[:1])


class Proof:
    """The folder ``proof`` of a data directory: reads its ledger, closes days, notes acceptances.

    Who appends to history shares its lock and who closes excludes them, so that no line of a day
    comes after its closing.
    """

    def __init__(self, directory: Path) -> None:
        self._home = directory / FOLDER
        self._history = directory / "history"

    def read(self) -> dict[str, bytes]:
        """Return the whole lines of ledger and heads by the names of their files.

        Raises:
            LedgerError: they are gone while there is history that they should prove.
            OSError: one cannot be read.
        """
        files = {HEADS: b"", LEDGER: b""}  # heads first, for a closing writes them last
        for name in files:
            with suppress(FileNotFoundError):
                files[name] = whole(read_regular(self._home / name))
        if (files[HEADS] or self._files()) and not (self._home / LEDGER).exists():
            raise LedgerError(LEDGER, 1, "the file is gone, and history/ holds answers")
        return files

    def load(self) -> Ledger:
        """Return the ledger as it stands on the disk; see :meth:`read` and :func:`parse`."""
        files = self.read()
        return parse(files[LEDGER], files[HEADS])

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
            is_new = not any((self._home / name).exists() for name in (LEDGER, HEADS))
            if is_new and not self._files():
                append_lines(self._home / LEDGER, b"")
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
            ledger, entries, heads = self.load(), list[Entry](), list[Head]()
            for file in self._files():
                tail = whole_lines(self._tail(file, ledger.last(file).bytes))
                entries += ledger.open_entries(file, map(stamp, tail))
            days = {entry.day for entry in (*entries, *ledger.pending)}
            for day in sorted(day for day in days if ledger.closed < day <= through):
                self._add(ledger, [entry for entry in entries if entry.day == day])
                if ledger.pending:  # else of acceptances alone, which the head before covers
                    heads.append(ledger.head(day))
                    append_lines(self._home / HEADS, chains.encode(heads[-1]))
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
                ledger = Ledger()
                for path in (self._home / LEDGER, self._home / HEADS):
                    asides = (
                        path.with_suffix(f".jsonl.{today}-{n}.damaged") for n in itertools.count(1)
                    )
                    with suppress(FileNotFoundError):
                        path.rename(next(aside for aside in asides if not aside.exists()))
            day, entries = max(today, day_after(ledger.closed)), list[Entry]()
            for file in files:
                was = ledger.newest[file].chain if file in ledger.newest else ""
                lines, size, chain = chains.reach(file, self._tail(file, 0))
                entries.append(Entry(day, file, lines, size, chain, True, was, reason))  # noqa: FBT003
            self._add(ledger, entries)
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
            record = Reopening(day, reopened=True, reason=reason)
            append_lines(self._home / HEADS, chains.encode(record))

    def _add(self, ledger: Ledger, entries: Sequence[Entry]) -> None:
        append_lines(self._home / LEDGER, b"".join(map(chains.encode, entries)))
        for entry in entries:
            ledger.add(entry)

    def _files(self) -> list[str]:
        """The names of the history files that hold something, sorted."""
        paths = (path for path in self._history.glob("*.jsonl") if is_slug(path.stem))
        return sorted(path.stem for path in paths if path.is_file() and path.stat().st_size)

    def _tail(self, file: str, start: int) -> bytes:
        with suppress(FileNotFoundError), opened(self._history / f"{file}.jsonl") as handle:
            return os.pread(handle, max(os.fstat(handle).st_size - start, 0), start)
        return b""
