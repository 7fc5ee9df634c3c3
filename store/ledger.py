"""The ledger: how far each history file reached on each closed day, and when a day closes.

Its two files are append-only. ``proof/ledger.jsonl`` has a :class:`LedgerEntry` for each file that
grew on a day, ``proof/heads.jsonl`` a :class:`Head` for the day. A chain commits to the bytes, the
order and the file of every line, a head to the whole ledger up to its day. data/README.md has the
format.
"""

import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import date, datetime, timedelta
from functools import reduce
from hashlib import sha256
from pathlib import Path
from sys import intern
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from store.disk import (
    append_lines,
    check_no_link,
    locked,
    make_folder,
    opened,
    read_regular,
    set_aside,
)
from store.line_codec import FIRST_YEAR, Stamp, stamp, whole, whole_lines
from store.text import MAX_SLUG, SLUG_PATTERN, is_slug

log = logging.getLogger(__name__)

FOLDER, LEDGER, HEADS = "proof", "ledger.jsonl", "heads.jsonl"
Day = Annotated[str, Meta(pattern=r"^[2-8]\d{3}-\d\d-\d\d$")]
Digest = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
Count = Annotated[int, Meta(ge=0, lt=2**53)]
Record = TypeVar("Record", "LedgerEntry", "Head")


class LedgerError(Exception):
    """A file of the ledger differs from what was once written: which, in which line, and why."""

    def __init__(self, name: str, line: int, reason: str) -> None:
        super().__init__(f"{FOLDER}/{name}:{line}: {reason}")
        self.file, self.line, self.reason = f"{FOLDER}/{name}", line, reason


class LedgerEntry(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """The extent of a history file when a day was closed: lines, bytes and its chain.

    Where a person ``accepted`` a loss, ``was`` is the chain before, empty if nobody knows it.
    """

    day: Day
    file: Annotated[str, Meta(pattern=SLUG_PATTERN, max_length=MAX_SLUG)]
    lines: Count
    bytes: Count
    chain: Digest
    accepted: bool = False
    was: str | None = None
    reason: str | None = None

    @property
    def extent(self) -> tuple[int, int, str]:
        """The extent of the file, whatever the day: lines, bytes and chain."""
        return self.lines, self.bytes, self.chain


class Head(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """A closed day: how many files and lines the ledger then covers, and its own chain, the root.

    One with ``reopened`` closes nothing: by a person's word the day and all later ones are open
    again.
    """

    day: Day
    files: Count | None = None
    lines: Count | None = None
    root: Digest | None = None
    reopened: bool = False
    reason: str | None = None

    def __post_init__(self) -> None:
        """Raise ``ValueError`` unless it either closes a day or opens one again."""
        if self.reopened != (self.root is None):
            raise ValueError("a head has a root, or it is reopened")


class ProvisionalHead(Struct, frozen=True):
    """The numbers of all lines and of the closed ones, and the root if all were closed now."""

    lines: int
    closed: int
    root: str


def empty_entry(file: str) -> LedgerEntry:
    """Return the entry of a file without lines; its empty day precedes any other."""
    return LedgerEntry("", file, 0, 0, sha256(f"consensus-ledger-1\n{file}".encode()).hexdigest())


def link(chain: str, digest: bytes) -> str:
    """Return the chain after one more line, whose SHA-256 is given."""
    return sha256(bytes.fromhex(chain) + digest).hexdigest()


def extend(entry: LedgerEntry, line: Stamp) -> LedgerEntry:
    """Return a file's entry with one more line; a line without a day takes that of the entry."""
    digest, size, day = line
    chain, end = link(entry.chain, digest), entry.bytes + size + 1
    return LedgerEntry(day or entry.day, entry.file, entry.lines + 1, end, chain)


def day_after(day: str) -> str:
    """Return the next day; an empty string after an empty one, which precedes any day."""
    return (date.fromisoformat(day) + timedelta(days=1)).isoformat() if day else ""


class Ledger(Struct):
    """The two files of a ledger read together.

    ``newest`` has each file's newest entry, ``ends`` the day and line count of each entry of a file
    from its newest acceptance on, ``accepted`` that acceptance.
    ``heads`` are those that close days; ``last_closed_day`` is the newest of them, empty where
    there is none. ``pending`` are the entries that no head covers yet; ``root`` commits to every
    entry; ``lines`` counts all lines that entries cover.
    """

    newest: dict[str, LedgerEntry] = {}
    ends: dict[str, list[tuple[str, int]]] = {}
    accepted: dict[str, LedgerEntry] = {}
    heads: list[Head] = []
    last_closed_day: str = ""
    pending: list[LedgerEntry] = []
    root: str = empty_entry("proof/ledger").chain
    lines: int = 0

    def last(self, file: str) -> LedgerEntry:
        """Return the newest entry of a file; that of an empty file where there is none."""
        return self.newest.get(file) or empty_entry(file)

    def lines_on(self, file: str, day: str) -> int:
        """Return how many lines a file had when ``day``, a closed one, was closed."""
        return max((lines for closed, lines in self.ends.get(file, ()) if closed <= day), default=0)

    def days_closed(self, file: str) -> list[str]:
        """Return the days under which the closed lines of a file were closed, line by line."""
        days: list[str] = []
        for day, lines in sorted(self.ends.get(file, ())):
            if day <= self.last_closed_day:
                days += [day] * (lines - len(days))
        return days

    def holds(self, file: str, lines: Sequence[Stamp]) -> bool:
        """Return whether a file begins with the lines to which its newest entry commits."""
        last = self.last(file)
        return reduce(extend, lines[: last.lines], empty_entry(file)).extent == last.extent

    def open_entries(self, file: str, lines: Iterable[Stamp]) -> list[LedgerEntry]:
        """Return the entries by which a file's open lines would be closed, oldest day first.

        ``lines`` are those after its newest entry. A day's entry covers all lines up to the last
        one dated on that day or before, also those among them that are dated later: a line dated
        far ahead keeps no other open. A line without a time counts for the day of the
        line before it, a line dated on a closed day for the day after the last closed one.
        """
        last, first, entries = self.last(file), day_after(self.last_closed_day), list[LedgerEntry]()
        for line in lines:
            last = extend(last, line)
            day = max(last.day, first)
            while entries and entries[-1].day >= day:
                entries.pop()
            if day:
                entries.append(replace(last, day=day))
        return entries

    def take_entry(self, entry: LedgerEntry) -> None:
        """Take in the next line of the ledger; an acceptance replaces what its file had before."""
        self.lines += entry.lines - self.last(entry.file).lines
        self.root = link(self.root, sha256(msgspec.json.encode(entry)).digest())
        self.newest[entry.file] = entry
        self.pending.append(entry)
        if entry.accepted:
            self.accepted[entry.file] = entry
            self.ends[entry.file] = []
        self.ends.setdefault(entry.file, []).append((intern(entry.day), entry.lines))

    def head(self, day: str) -> Head:
        """Return the head that closes ``day`` over all entries so far."""
        return Head(day, len(self.newest), self.lines, self.root)

    def take_head(self, head: Head) -> None:
        """Take in the next line of the heads."""
        if head.reopened:
            self.heads = [other for other in self.heads if other.day < head.day]
        else:
            self.heads.append(head)
            self.pending = []
        self.last_closed_day = max((head.day for head in self.heads), default="")

    def provisional_head(self, entries: Iterable[LedgerEntry]) -> ProvisionalHead:
        """Return what a head would be if these open entries were closed now, day by day."""
        future = Ledger(dict(self.newest), root=self.root, lines=self.lines)
        for entry in sorted(entries, key=lambda entry: (entry.day, entry.file)):
            if entry.lines > future.last(entry.file).lines:
                future.take_entry(entry)
        return ProvisionalHead(future.lines, self.lines, future.root)


def decode_records(name: str, data: bytes, kind: type[Record]) -> Iterator[Record]:
    """Yield the records in a file of the ledger.

    Raises:
        LedgerError: a line is not one, in the form in which it is written.
    """
    decoder = msgspec.json.Decoder(kind)
    for number, line in enumerate(whole_lines(data), start=1):
        try:
            record = decoder.decode(line)
            is_ours = msgspec.json.encode(record) == line and date.fromisoformat(record.day)
        except (ValueError, RecursionError):
            is_ours = False
        if not is_ours:
            raise LedgerError(name, number, "this is not a line of the ledger")
        yield record


def parse(ledger: bytes, heads: bytes, result: Ledger | None = None) -> Ledger:
    """Read the two files of a ledger, into ``result`` if given; torn last lines are left out.

    Raises:
        LedgerError: a line is not one that was written there, or a head is not the ledger's.
    """
    result, entries, number = result or Ledger(), decode_records(LEDGER, ledger, LedgerEntry), 0
    for number, head in enumerate(decode_records(HEADS, heads, Head), start=1):
        if head.reopened:  # it has a day, a reason and no counts
            is_sound = head == Head(head.day, reopened=True, reason=head.reason or "")
        else:
            while result.root != head.root or not result.pending:
                if (entry := next(entries, None)) is None:
                    raise LedgerError(HEADS, number, f"its root is not that of {LEDGER}")
                result.take_entry(entry)
            is_sound = head == result.head(head.day) and _pending_days(result) == {head.day}
        if not is_sound:
            reason = f"its day or counts are not those of {LEDGER}, or a head before it is gone"
            raise LedgerError(HEADS, number, reason)
        result.take_head(head)
    for entry in entries:
        result.take_entry(entry)
    if len(_pending_days(result)) > 1:
        raise LedgerError(HEADS, number + 1, f"a head of {LEDGER}'s days is missing")
    return result


def _pending_days(ledger: Ledger) -> set[str]:
    """Return the days that the next head may close: those of pending entries, acceptances aside.

    If all are acceptances, it is the earliest alone: one head covers them all.
    """
    days = sorted(entry.day for entry in ledger.pending)
    return {entry.day for entry in ledger.pending if not entry.accepted} or set(days[:1])


class Proof:
    """The folder ``proof`` of a data directory: reads its ledger, closes days, notes acceptances.

    Whoever appends to history shares its lock and whoever closes holds it alone, so that no line
    of a day comes after its closing.
    """

    def __init__(self, directory: Path) -> None:
        self._home = directory / FOLDER
        self._history = directory / "history"

    def read(self) -> dict[str, bytes]:
        """Return the whole lines of ledger and heads by the names of their files.

        Raises:
            LedgerError: they are gone while there is history that they should prove.
            OSError: one cannot be read, or their folder is a link.
        """
        check_no_link(self._home)
        files = {HEADS: b"", LEDGER: b""}  # heads first: a closing meanwhile writes them last
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
        with locked(self._home / ".lock", shared=shared, wait=wait):
            # A ledger that is gone is never begun anew over history that it should prove.
            is_new = not any((self._home / name).exists() for name in (LEDGER, HEADS))
            if is_new and not self._files():
                append_lines(self._home / LEDGER, b"")
            yield

    def close(self, through: str, *, wait: bool = True) -> list[Head]:
        """Close every day with new lines up to and including ``through``; return the new heads.

        What a crash leaves between ledger and head is taken up here, from the same lines.

        Raises:
            BlockingIOError: a poll or a copy is just being written, and nobody was to ``wait``.
            LedgerError: see :meth:`load`; nothing was written.
            OSError: it could not be written; days before the one at fault are closed.
        """
        with self.locked(wait=wait):
            # Ledger first, then its head: a head never covers entries that are not on the disk.
            ledger, entries, heads = self.load(), list[LedgerEntry](), list[Head]()
            for file in self._files():
                entries += ledger.open_entries(file, self._lines(file, ledger.last(file).bytes))
            days = {entry.day for entry in (*entries, *ledger.pending)}
            for day in sorted(day for day in days if ledger.last_closed_day < day <= through):
                self._add(ledger, [entry for entry in entries if entry.day == day])
                if ledger.pending:  # else the head before has taken the day's acceptances
                    heads.append(ledger.head(day))
                    self._append(HEADS, heads[-1:])
                    ledger.take_head(heads[-1])
            return heads

    def accept(self, files: Sequence[str], reason: str, today: str) -> list[LedgerEntry]:
        """Take files, as they are now, for whole: what they lost is accepted. Return their entries.

        A ledger that cannot be read is set aside, and a new one begun.

        Raises:
            OSError: a file cannot be read, or the ledger not be written.
        """
        with self.locked():
            try:
                ledger = self.load()
            except LedgerError:
                ledger = Ledger()
                for name in (LEDGER, HEADS):
                    set_aside(self._home / name, today)
            entries, day = list[LedgerEntry](), max(today, day_after(ledger.last_closed_day))
            for file in files:
                was = ledger.newest[file].chain if file in ledger.newest else ""
                last = reduce(extend, self._lines(file, 0), empty_entry(file))
                entries.append(replace(last, day=day, accepted=True, was=was, reason=reason))
            self._add(ledger, entries)
            return entries

    def reopen(self, day: str, reason: str) -> None:
        """Let a day and later ones be open again, after a closing under a wrong clock.

        Raises:
            LedgerError: the day is not closed, or see :meth:`load`.
            OSError: it could not be written.
        """
        with self.locked():
            ledger = self.load()
            begun = max((entry.day for entry in ledger.pending if not entry.accepted), default="")
            if not FIRST_YEAR <= day <= max(ledger.last_closed_day, begun):
                raise LedgerError(HEADS, 1, f"{day} is not a closed day")
            cut_off = [ledger.head(begun)] if begun else []  # a closing that lacks its head
            self._append(HEADS, [*cut_off, Head(day, reopened=True, reason=reason)])

    def _add(self, ledger: Ledger, entries: Sequence[LedgerEntry]) -> None:
        self._append(LEDGER, entries)
        for entry in entries:
            ledger.take_entry(entry)

    def _append(self, name: str, records: Sequence[LedgerEntry | Head]) -> None:
        """Add records, in one write that lasts, in the one form in which they are read."""
        append_lines(self._home / name, msgspec.json.Encoder().encode_lines(records))

    def _files(self) -> list[str]:
        """Return the names of the history files that hold something, sorted."""
        paths = (path for path in self._history.glob("*.jsonl") if is_slug(path.stem))
        return sorted(path.stem for path in paths if path.is_file() and path.stat().st_size)

    def _lines(self, file: str, start: int) -> Iterator[Stamp]:
        """Yield the lines of a history file that begin at an offset."""
        data = b""
        with suppress(FileNotFoundError), opened(self._history / f"{file}.jsonl") as handle:
            data = os.pread(handle, max(os.fstat(handle).st_size - start, 0), start)
        return map(stamp, whole_lines(data))


class DayClosing:
    """Closes the days of a data directory; ``reason`` says why it cannot."""

    def __init__(self, directory: Path) -> None:
        self.reason: str | None = None
        self._directory = directory
        self._proof = Proof(directory)
        self._closed = ""

    def close_past_days(self, confirmed: datetime | None) -> None:
        """Close every day before the one in which the clock was last ``confirmed``, if any was.

        A fault is logged once, is the ``reason``, and is tried again at the next look.
        """
        through = f"{confirmed - timedelta(days=1):%Y-%m-%d}" if confirmed else ""
        if through <= self._closed:
            return
        before = self.reason
        try:
            heads = self._proof.close(through, wait=False)
        except BlockingIOError:  # a backup may take minutes; the next look comes
            return
        except LedgerError as error:
            self.reason = f"No day is closed: {error}."
        except OSError as error:
            path = os.path.relpath(error.filename or self._directory / FOLDER, self._directory)
            self.reason = f"No day is closed: {path}: {error.strerror}."
        else:
            self.reason, self._closed = None, through
            for head in heads:
                log.info("closed %s: %d lines, root %s", head.day, head.lines, head.root)
        if self.reason and self.reason != before:
            log.error("%s", self.reason)
