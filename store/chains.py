"""The records of the ledger and the hash chain over them: one of these is a line of ``proof/``.

data/README.md has the format, and a checker of a few lines.
"""

from __future__ import annotations

from datetime import date, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta, Struct

from store.line_codec import whole_lines
from store.records import MAX_SLUG, SLUG_PATTERN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

FOLDER, LEDGER, HEADS = "proof", "ledger.jsonl", "heads.jsonl"

Digest = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
Count = Annotated[int, Meta(ge=0, lt=2**53)]


class LedgerError(Exception):
    """A file of the ledger is not what was once written: which, in which line, and why."""

    def __init__(self, name: str, line: int, reason: str) -> None:
        super().__init__(f"{FOLDER}/{name}:{line}: {reason}")
        self.file, self.line, self.reason = f"{FOLDER}/{name}", line, reason


class Dated(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """A record of a UTC day; the empty one precedes any other."""

    day: Annotated[str, Meta(pattern=r"^[2-8]\d{3}-\d\d-\d\d$")]

    def __post_init__(self) -> None:
        """Raise ``ValueError`` if the calendar does not have the day."""
        if self.day:
            date.fromisoformat(self.day)


class Entry(Dated, frozen=True, omit_defaults=True, gc=False):
    """How far a history file reached when a day was closed: lines, bytes and its chain.

    Where a person ``accepted`` a loss, ``was`` is the chain before, empty if nobody knows it.
    """

    file: Annotated[str, Meta(pattern=SLUG_PATTERN, max_length=MAX_SLUG)]
    lines: Count
    bytes: Count
    chain: Digest
    accepted: bool = False
    was: str | None = None
    reason: str | None = None


class Head(Dated, frozen=True):
    """A closed day: how many files and lines the ledger then covers, and the ledger's own chain."""

    files: Count
    lines: Count
    root: Digest


class Reopening(Dated, frozen=True):
    """A person's word that ``day`` and later ones were closed too early."""

    reopened: bool
    reason: str


class Present(Struct, frozen=True):
    """All lines there are, the closed ones among them, and the root if they were closed now."""

    lines: int
    closed: int
    root: str


def start_of(name: str) -> bytes:
    """Return the chain of a file without lines, 32 bytes."""
    return sha256(f"consensus-ledger-1\n{name}".encode()).digest()


def link(chain: bytes, digest: bytes) -> bytes:
    """Return the chain after one more line, whose SHA-256 is given."""
    return sha256(chain + digest).digest()


def link_entry(chain: bytes, entry: Entry) -> bytes:
    """Return the ledger's own chain after one more entry."""
    return link(chain, sha256(msgspec.json.encode(entry)).digest())


def start(file: str) -> Entry:
    """Return the entry of a file without lines."""
    return Entry("", file, 0, 0, start_of(file).hex())


def reaches(after: Entry, lines: Iterable[tuple[bytes, int]]) -> Iterator[tuple[int, int, str]]:
    """Yield how far a file reaches with each line after an entry: lines, bytes and chain.

    A line is given by its SHA-256 and its size in bytes, without its newline.
    """
    count, size, chain = after.lines, after.bytes, bytes.fromhex(after.chain)
    for digest, length in lines:
        count, size, chain = count + 1, size + length + 1, link(chain, digest)
        yield count, size, chain.hex()


def reach(file: str, data: bytes) -> tuple[int, int, str]:
    """Return how far a file with these bytes reaches: whole lines, their bytes and chain."""
    lines = ((sha256(line).digest(), len(line)) for line in whole_lines(data))
    result = (0, 0, start_of(file).hex())
    for result in reaches(start(file), lines):  # noqa: B007 - the last one
        pass
    return result


def encode(record: Struct) -> bytes:
    """Return a record as its file holds it: members in order, no spaces, a newline."""
    return msgspec.json.encode(record) + b"\n"


def records(name: str, data: bytes, *kinds: type[Any]) -> Iterator[Any]:
    """Yield the records in a file of the ledger, each of the first of ``kinds`` that it can be.

    Raises:
        LedgerError: a line is not one, in the form in which it is written.
    """
    decoders = [msgspec.json.Decoder(kind) for kind in kinds]
    for number, line in enumerate(whole_lines(data), start=1):
        for decoder in decoders:
            try:
                record = decoder.decode(line)
            except (ValueError, RecursionError):
                continue
            if msgspec.json.encode(record) == line:
                yield record
                break
        else:
            raise LedgerError(name, number, "this is not a line of the ledger")


def day_after(day: str) -> str:
    """Return the next day; an empty string after an empty one, which precedes any day.

    Raises:
        ValueError: the calendar does not have that day.
    """
    return (date.fromisoformat(day) + timedelta(days=1)).isoformat() if day else ""
