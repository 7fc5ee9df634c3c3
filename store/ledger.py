"""The ledger: a hash chain over each history file, and a head for each closed day.

``proof/ledger.jsonl`` and ``proof/heads.jsonl`` are append-only. A chain commits to the bytes, the
order and the file of every line; a head commits to the whole ledger up to its day. data/README.md
has the format, and a checker of a few lines.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import date, timedelta
from functools import lru_cache
from hashlib import sha256
from sys import intern
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta, Struct

from store.records import SLUG_PATTERN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

FOLDER, LEDGER, HEADS = "proof", "ledger.jsonl", "heads.jsonl"
_TIME = re.compile(rb'"polledAt":"(\d{4}-\d\d-\d\d)T\d\d:\d\d:\d\dZ"')

Day = Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\d$")]
Digest = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
Count = Annotated[int, Meta(ge=0, lt=2**53)]


class LedgerError(Exception):
    """A file of the ledger is not what was once written: which, in which line, and why."""

    def __init__(self, name: str, line: int, reason: str) -> None:
        super().__init__(f"{FOLDER}/{name}:{line}: {reason}")
        self.file, self.line, self.reason = f"{FOLDER}/{name}", line, reason


class Entry(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """How far a history file reached when a day was closed: lines, bytes and its chain.

    Where a person ``accepted`` a loss, ``was`` is the chain before, empty if nobody knows it.
    """

    day: Day
    file: Annotated[str, Meta(pattern=SLUG_PATTERN, max_length=100)]
    lines: Count
    bytes: Count
    chain: Digest
    accepted: bool = False
    was: str | None = None
    reason: str | None = None


class Head(Struct, frozen=True, forbid_unknown_fields=True):
    """A closed day: how many files and lines the ledger then covers, and the ledger's own chain."""

    day: Day
    files: Count
    lines: Count
    root: Digest


class Present(Struct, frozen=True):
    """All lines there are, the closed ones among them, and the root if they were closed now."""

    lines: int
    closed: int
    root: str


class Reopening(Struct, frozen=True, forbid_unknown_fields=True):
    """A person's word that ``day`` and later ones were closed too early."""

    day: Day
    reopened: bool
    reason: str


def start_of(name: str) -> bytes:
    """Return the chain of a file without lines, 32 bytes."""
    return sha256(f"consensus-ledger-1\n{name}".encode()).digest()


def link(chain: bytes, line: bytes) -> bytes:
    """Return the chain after one more line, its newline excluded."""
    return sha256(chain + sha256(line).digest()).digest()


def encode(record: Struct) -> bytes:
    """Return a record as its file holds it: members in order, no spaces, a newline."""
    return msgspec.json.encode(record) + b"\n"


def whole_lines(data: bytes) -> list[bytes]:
    """Return the lines that end in a newline, without empty ones at the end.

    A torn tail is not a line, and the next append takes away what an editor left after the last.
    """
    lines = data.split(b"\n")[:-1]
    while lines and not lines[-1]:
        lines.pop()
    return lines


@lru_cache(maxsize=1 << 12)
def day_after(day: str) -> str:
    """Return the next day; an empty string after an empty one, which precedes any day.

    Raises:
        ValueError: the calendar does not have that day.
    """
    return (date.fromisoformat(day) + timedelta(days=1)).isoformat() if day else ""


def day_of(line: bytes) -> str:
    """Return the UTC day that a line bears; an empty string where it bears none."""
    with suppress(ValueError, OverflowError):
        if (match := _TIME.search(line)) and day_after(day := match[1].decode()):
            return day
    return ""


def entry_of(file: str, data: bytes, day: str, **acceptance: Any) -> Entry:
    """Return the entry that covers all whole lines of a file."""
    chain, lines = start_of(file), whole_lines(data)
    for line in lines:
        chain = link(chain, line)
    size = sum(map(len, lines)) + len(lines)
    return Entry(day, file, len(lines), size, chain.hex(), **acceptance)


class Ledger(Struct):
    """What the two files of a ledger say together.

    ``newest`` has each file's newest entry, ``ends`` the days and sizes in bytes of all of them,
    ``accepted`` its newest acceptance. ``closed`` is the newest closed day, an empty string
    where there is none, ``pending`` the days of entries that no head covers yet. ``chain``, 32
    bytes, commits to every entry.
    """

    newest: dict[str, Entry] = {}
    ends: dict[str, list[tuple[str, int]]] = {}
    accepted: dict[str, Entry] = {}
    heads: list[Head | Reopening] = []
    closed: str = ""
    pending: set[str] = set()
    chain: bytes = start_of("proof/ledger")
    lines: int = 0

    def last(self, file: str) -> Entry:
        """Return the newest entry of a file; that of an empty file where there is none."""
        return self.newest.get(file) or entry_of(file, b"", "")

    def end_of(self, file: str, day: str) -> int:
        """Return how many bytes a file had when ``day``, a closed one, was closed."""
        return max((size for closed, size in self.ends.get(file, ()) if closed <= day), default=0)

    def holds(self, file: str, data: bytes) -> bool:
        """Return whether a file begins with the lines to which its newest entry commits."""
        last = self.last(file)
        whole = entry_of(file, data[: last.bytes], "")
        return (whole.bytes, whole.chain) == (last.bytes, last.chain)

    def open_entries(self, file: str, tail: bytes) -> list[Entry]:
        """Return the entries by which a file's open lines would be closed, oldest day first.

        ``tail`` is what the file holds after its newest entry. An entry of a day covers the file
        up to its last line of that day or an earlier one, so that a line with a time far ahead
        holds up nobody. A line without a time counts as the line before it, and one of a day that
        is closed already as one of the day after.
        """
        lines = whole_lines(tail)
        return self.entries_of(file, ((sha256(x).digest(), len(x), day_of(x)) for x in lines))

    def entries_of(self, file: str, tail: Iterable[tuple[bytes, int, str]]) -> list[Entry]:
        """Return the entries of open lines by the digest, the size and the day of each."""
        last = self.last(file)
        lines, end, chain, day = last.lines, last.bytes, bytes.fromhex(last.chain), last.day
        entries: list[Entry] = []
        for digest, size, line_day in tail:
            lines, end, chain = lines + 1, end + size + 1, sha256(chain + digest).digest()
            day = line_day or day
            listed = day if day > self.closed else day_after(self.closed)
            while entries and entries[-1].day >= listed:
                entries.pop()
            if listed:
                entries.append(Entry(intern(listed), file, lines, end, chain.hex()))
        return entries

    def add(self, entry: Entry) -> None:
        """Take in the next line of the ledger; what came before an acceptance is not counted."""
        self.lines += entry.lines - self.last(entry.file).lines
        self.chain = link(self.chain, encode(entry)[:-1])
        self.newest[entry.file] = entry
        self.pending.add(entry.day)
        if entry.accepted:
            self.accepted[entry.file] = entry
            self.ends[entry.file] = []
        self.ends.setdefault(entry.file, []).append((intern(entry.day), entry.bytes))

    def head(self, day: str) -> Head:
        """Return the head under which all entries so far are put when ``day`` is closed."""
        return Head(day, len(self.newest), self.lines, self.chain.hex())

    def present(self, entries: Iterable[Entry]) -> Present:
        """Return what a head would be if these open entries were closed now, day by day."""
        fresh = [entry for entry in entries if entry.lines > self.last(entry.file).lines]
        chain, newest = self.chain, {entry.file: entry for entry in fresh}
        for entry in sorted(fresh, key=lambda entry: (entry.day, entry.file)):
            chain = link(chain, encode(entry)[:-1])
        added = sum(entry.lines - self.last(file).lines for file, entry in newest.items())
        return Present(self.lines + added, self.lines, chain.hex())

    def close(self, record: Head | Reopening) -> None:
        """Take in the next line of the heads."""
        self.heads.append(record)
        if isinstance(record, Head):
            self.closed, self.pending = max(self.closed, record.day), set()
        else:
            days = [head.day for head in self.heads if isinstance(head, Head)]
            self.closed = max((day for day in days if day < record.day), default="")


def parse(ledger: bytes, heads: bytes, result: Ledger | None = None) -> Ledger:
    """Read the two files of a ledger, into ``result`` if given; torn last lines are left out.

    Raises:
        LedgerError: a line is not one that was written there, or a head is not the ledger's.
    """
    result, entries = result or Ledger(), _records(LEDGER, ledger, Entry)
    for number, record in enumerate(_records(HEADS, heads, Head, Reopening), start=1):
        if isinstance(record, Head):
            days = {record.day}
            while result.chain.hex() != record.root or not result.pending:
                if (entry := next(entries, None)) is None:
                    raise LedgerError(HEADS, number, f"its root is not that of {LEDGER}")
                result.add(entry)
                days |= set() if entry.accepted else {entry.day}
            if len(days) > 1:
                raise LedgerError(HEADS, number, f"a head of {LEDGER}'s days is missing here")
            if record.day not in result.pending or result.head(record.day) != record:
                raise LedgerError(HEADS, number, f"its day or counts are not those of {LEDGER}")
        result.close(record)
    for entry in entries:
        result.add(entry)
    if len(result.pending - {entry.day for entry in result.accepted.values()}) > 1:
        raise LedgerError(HEADS, len(result.heads) + 1, f"a head of {LEDGER}'s days is missing")
    return result


def _records(name: str, data: bytes, *kinds: type[Any]) -> Iterator[Any]:
    """The records in a file of the ledger, each of the first of ``kinds`` whose form it has."""
    for number, line in enumerate(whole_lines(data), start=1):
        for kind in kinds:
            with suppress(ValueError, RecursionError):
                if encode(record := msgspec.json.decode(line, type=kind)) == line + b"\n":
                    yield record
                    break
        else:
            raise LedgerError(name, number, "this is not a line of the ledger")
