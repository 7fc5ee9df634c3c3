"""The leaf list: every sealed line of history in the order of the proof, and a head for each day.

``DATA_DIR/proof/<month>.leaves`` holds a text line for each leaf: the day it was listed under, the
history file, byte offsets without newline, and the leaf's hash. It is only ever appended to, under
a lock; so is ``heads.jsonl``, one tree head for each closed day. A day is closed once a leaf of a
later day is listed; a late line joins the open day. A damaged list is an error that names its file
and line: it is never made anew from history.
"""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import groupby
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct, field

from store.counting import latest_time
from store.disk import locked, read_regular
from store.last_good import LastGood
from store.line_codec import has_valid_checksum
from store.publishing.merkle import Tree, leaf_hash
from store.records import is_slug

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

FOLDER, SUFFIX, HEADS = "leaves", ".leaves", "heads.jsonl"
_LINE = re.compile(
    r"(\d{4}-\d\d-\d\d) ([a-z0-9-]{1,100}) (0|[1-9]\d{0,14}) ([1-9]\d{0,14}) ([0-9a-f]{64})",
    re.ASCII,
)
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)
_YIELD_EVERY = 250
"""Leaves, a millisecond's work, after which a server's other threads have a turn; without it each
turn takes them 5 ms, over and over during the 4 s that 741,000 leaves take."""
_HASH, _TIME_SIZE = 32, 20
"""Bytes of a leaf's hash, SHA-256, and of a time."""
_NOTHING = sha256().digest()
"""The digest kept for a file of which nothing is listed."""
LISTED = "listed"
"""What follows from the list, in ``.last-good``, sealed with the list that it follows from."""
RESTORE = "put the folder proof back from a backup; without one, earlier heads prove nothing"
"""What to do about a damaged list."""


class ProofError(Exception):
    """The leaf list or the heads are not what was once written; the sentence says where."""


class Leaf(Struct, frozen=True, gc=False):
    """One line of history in the proof: ``slug`` names its file, offsets are without newline."""

    day: str
    slug: str
    start: int
    end: int
    hash: bytes

    def line(self) -> bytes:
        """The leaf as the list holds it."""
        return f"{self.day} {self.slug} {self.start} {self.end} {self.hash.hex()}\n".encode()


class Head(Struct, frozen=True, order=True, forbid_unknown_fields=True):
    """The tree at the end of a UTC day: how many leaves it has, and its root in hex."""

    date: str
    size: int
    root: str


class Heads(Struct):
    """The heads that follow from leaves, which are added one by one."""

    tree: Tree = field(default_factory=Tree)
    day: str = ""
    closed: list[Head] = []

    def add(self, day: str, leaf: bytes) -> None:
        """Add the hash of a leaf of this day, which is never earlier than the one before."""
        if self.day and day != self.day:
            self.closed.append(self.head())
        self.day = day
        self.tree.append(leaf)

    def head(self) -> Head:
        """The head as it stands, be the day closed or not."""
        return Head(self.day, self.tree.size, self.tree.root().hex())


class SortKey(Struct, rename="camel", order=True):
    """What the order of leaves and of rows depends on."""

    slug: str = ""
    polled_at: str = ""
    model: str = ""
    id: str = ""


class Listed(Struct, omit_defaults=True):
    """What follows from the list: heads, and of each history file up to where it is listed.

    That is an offset and the SHA-256 of the bytes before it, empty if nobody knows; no time there
    is after ``newest``. ``hashes``, there if the list was read, are those of each file, joined.
    """

    newest: bytes
    heads: Heads = field(default_factory=Heads)
    files: dict[str, tuple[int, bytes]] = {}
    hashes: dict[str, bytearray] = {}


_HEAD = msgspec.json.Decoder(Head)
_LISTED = msgspec.json.Decoder(Listed)
_SORT_KEY = msgspec.json.Decoder(SortKey)


def sort_key_of(line: bytes) -> SortKey:
    """The stamp of a line, empty if it holds no poll."""
    try:
        return _SORT_KEY.decode(line)
    except (ValueError, RecursionError):
        return SortKey()


class LeafList:
    """The leaf list of one data directory; ``sizes``, by month, as this one last extended it."""

    def __init__(self, directory: Path) -> None:
        self._home = directory / FOLDER
        self._history = directory / "history"
        self._last_good = LastGood(directory)
        self.sizes: dict[str, int] = {}

    def months(self) -> list[str]:
        """The months that leaves are listed under, in order."""
        return sorted(path.name.removesuffix(SUFFIX) for path in self._home.glob(f"*{SUFFIX}"))

    def month(self, month: str) -> bytes:
        """The list of a month, as it stands in its file."""
        return self._read(f"{month}{SUFFIX}")

    def heads(self) -> list[Head]:
        """The heads that were written down.

        Raises:
            ProofError: a line of them is none.
        """
        return parse_heads(self._read(HEADS), f"{FOLDER}/{HEADS}")

    def extend(
        self,
        now: datetime,
        published: Sequence[Head] = (),
        read: Callable[[], Mapping[str, int]] | None = None,
    ) -> list[Head]:
        """List what history holds and the list does not, and write the heads of days now closed.

        Returns every head there is, oldest first, those that were ``published`` among them.
        ``read`` looks at history once more, while nobody else can list anything, and returns up to
        where in each file; only that is listed.

        Raises:
            ProofError: what was written before is damaged, or a listed line is another now;
                nothing was added.
            OSError: it could not be written.
        """
        self._home.mkdir(mode=0o750, exist_ok=True)
        with locked(self._home) as folder:
            self._cut_torn_ends()
            listed = self._kept() or self._listed()
            heads, written = listed.heads, self.heads()
            check_grown(written, heads.closed, f"{FOLDER}/{HEADS}")
            check_grown(published, heads.closed, f"the published {HEADS}")
            unlisted = self.unlisted(listed, read() if read else None)
            fresh = list(in_order(unlisted, heads.day, now))
            for leaf in fresh:
                heads.add(leaf.day, leaf.hash)
            for month, leaves in groupby(fresh, lambda leaf: leaf.day[:7]):
                self._write(f"{month}{SUFFIX}", b"".join(map(Leaf.line, leaves)))
            self._write(HEADS, b"".join(map(head_line, heads.closed[len(written) :])))
            os.fsync(folder)
            self._keep(listed)
            self.sizes = {month: len(self.month(month)) for month in self.months()}
            return heads.closed

    def leaves(self) -> Iterator[Leaf]:
        """Every leaf in order.

        Raises:
            ProofError: a line of the list is none.
        """
        for month in self.months():
            yield from parse(self.month(month), month, f"{FOLDER}/{month}{SUFFIX}")

    def _listed(self) -> Listed:
        """What follows from the list, read leaf by leaf."""
        listed = Listed(b"")
        for number, leaf in enumerate(self.leaves()):
            if number % _YIELD_EVERY == 0:
                time.sleep(0.0001)
            listed.heads.add(leaf.day, leaf.hash)
            listed.hashes.setdefault(leaf.slug, bytearray()).extend(leaf.hash)
        listed.files = dict.fromkeys(listed.hashes, (0, b""))
        return listed

    def _kept(self) -> Listed | None:
        """What followed from the list when it was last extended, if it is that list to the byte."""
        with suppress(OSError, ValueError):
            if copy := self._last_good.read(LISTED):
                seal, _, body = copy.data.partition(b"\n")
                return _LISTED.decode(body) if seal == self._seal(body) else None
        return None

    def _keep(self, listed: Listed) -> None:
        """Keep what follows from the list; if that cannot be written, it is read again."""
        body = msgspec.json.encode(msgspec.structs.replace(listed, hashes={}))
        with suppress(OSError), self._last_good.locked():
            self._last_good.place(LISTED, self._seal(body) + b"\n" + body)

    def _seal(self, body: bytes) -> bytes:
        """The SHA-256 of what is kept, the lists and the heads."""
        seal = sha256(body)
        for name in (*(f"{month}{SUFFIX}" for month in self.months()), HEADS):
            data = self._read(name)
            seal.update(b"%b %d\n" % (name.encode(), len(data)))
            seal.update(data)
        return seal.hexdigest().encode()

    def unlisted(
        self, listed: Listed, ends: Mapping[str, int] | None = None
    ) -> Iterator[tuple[str, int, bytes]]:
        """File, offset and text of every sealed line that the list lacks; ``listed`` goes along.

        With ``ends`` only lines before a file's end; the others are left for the next time.

        Raises:
            ProofError: a listed line is another now.
        """
        newest = listed.newest  # as before: new lines of one file make none of another late
        for path in sorted(self._history.glob("*.jsonl")):
            slug = path.stem
            if not is_slug(slug):
                continue
            end, digest = listed.files.get(slug, (0, _NOTHING))
            data = read_regular(path)
            seen = sha256(memoryview(data)[:end])
            if is_known := seen.digest() == digest:
                new = once = _once(data, end, newest)
            else:
                end, seen = 0, sha256()
                once = _once(data, end, newest)
                listed.hashes = listed.hashes or self._listed().hashes
                new = _new(path.name, once, bytes(listed.hashes.get(slug, b"")))
            listed.newest = max([listed.newest, *(_raw_time(line) for _, line in once)])
            most = len(data) if ends is None else ends.get(slug, 0)
            left = [start for start, _ in new if start >= most]
            whole = left[0] if left else _whole(data)
            seen.update(memoryview(data)[end:whole])
            # Where lines are left, listed ones may follow that only the list knows.
            listed.files[slug] = (whole, seen.digest()) if is_known or not left else (0, b"")
            yield from ((slug, start, line) for start, line in new if start < most)

    def _write(self, name: str, data: bytes) -> None:
        if not data:
            return
        with (self._home / name).open("ab") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    def _cut_torn_ends(self) -> None:
        """Take off what a crash left of a line; it is written again, from what it was made from."""
        newest = sorted(self._home.glob(f"*{SUFFIX}"))[-1:]  # no other is written to
        for path in (*newest, self._home / HEADS):
            data = self._read(path.name)
            if data and not data.endswith(b"\n"):
                os.truncate(path, data.rfind(b"\n") + 1)

    def _read(self, name: str) -> bytes:
        with suppress(FileNotFoundError):
            return read_regular(self._home / name)
        return b""


def first_listing(directory: Path) -> Iterator[Leaf]:
    """The leaves of a history that was never listed, as a listing at the end of time has them."""
    last = datetime.max.replace(tzinfo=UTC) - timedelta(days=1)
    return in_order(LeafList(directory).unlisted(Listed(b"")), "", last)


def in_order(found: Iterable[tuple[str, int, bytes]], day: str, now: datetime) -> Iterator[Leaf]:
    """New leaves by time, file and offset, each under its day or the one that is open.

    A line whose time lies beyond ``now`` is as one without a time: it never closes a day.
    """
    latest = latest_time(now)
    keyed = sorted(
        (not (time := _counted_time(line, latest)), time, slug, start, line)
        for slug, start, line in found
    )
    for _, time, slug, start, line in keyed:
        day = max(day, time[:10]) or f"{now:%Y-%m-%d}"
        yield Leaf(day, slug, start, start + len(line), leaf_hash(line))


def _counted_time(line: bytes, latest: str) -> str:
    time = sort_key_of(line).polled_at
    return time if _TIME.fullmatch(time) and time <= latest else ""


def _once(data: bytes, start: int, newest: bytes) -> list[tuple[int, bytes]]:
    """Offset and text of the sealed lines from ``start`` on, each text for the first time.

    Before ``start`` no time is after ``newest``: of a later line, none there can be the same.
    """
    lines = list(sealed_lines(data, start))
    is_late = any(_raw_time(line) <= newest for _, line in lines)
    before = set(data[:start].split(b"\n") if is_late else ())  # 1 ms for each MB
    found: dict[bytes, int] = {}
    for offset, line in lines:
        if line not in before:
            found.setdefault(line, offset)
    return [(offset, line) for line, offset in found.items()]


def _raw_time(line: bytes) -> bytes:
    """What stands where polls have their time; nobody needs to believe it."""
    return line.partition(b'"polledAt":"')[2][:_TIME_SIZE]


def _new(name: str, once: Iterable[tuple[int, bytes]], hashes: bytes) -> list[tuple[int, bytes]]:
    """Those sealed lines of a history file whose hashes are not among the listed ``hashes``.

    None may stand before listed ones of which one is gone: that one was changed.
    """
    time.sleep(0.0001)  # as for _YIELD_EVERY
    known = {hashes[i : i + _HASH] for i in range(0, len(hashes), _HASH)}
    lines = [(start, line, leaf_hash(line)) for start, line in once]
    new = [(start, line) for start, line, digest in lines if digest not in known]
    there = [start for start, _, digest in lines if digest in known]
    if new and there and new[0][0] < there[-1] and len(there) < len(known):
        raise ProofError(
            f"history/{name}: the line at byte {new[0][0]:,} is another than the one that was "
            "listed; put the file back from a backup, or withhold a poll instead of changing it"
        )
    return new


def _whole(data: bytes) -> int:
    """Up to where a history file has whole lines."""
    end = data.rfind(b"\n") + 1
    return len(data) if has_valid_checksum(data[end:]) else end


def sealed_lines(data: bytes, start: int = 0) -> Iterator[tuple[int, bytes]]:
    """Offset and text of every line from ``start`` on with a checksum that fits."""
    for line in data[start:].split(b"\n"):
        if has_valid_checksum(line):
            yield start, line
        start += len(line) + 1


def parse(data: bytes, month: str, name: str) -> Iterator[Leaf]:
    """The leaves in the bytes of a month's list; ``name`` is what an error calls the file.

    Raises:
        ProofError: a line is no leaf, or stands under a day that does not follow.
    """
    day = month
    lines = data.decode("ascii", "replace").split("\n")
    if lines.pop():
        raise ProofError(f"{name}:{len(lines) + 1}: the line is cut short; {RESTORE}")
    for number, line in enumerate(lines, start=1):
        fields = _LINE.fullmatch(line)
        if fields is None:
            raise ProofError(f"{name}:{number}: this is no leaf; {RESTORE}")
        found, slug, start, end, digest = fields.groups()
        if found != day:
            if found[:7] != month or found < day:
                raise ProofError(f"{name}:{number}: {found} does not follow {day}; {RESTORE}")
            day = found
        yield Leaf(day, slug, int(start), int(end), bytes.fromhex(digest))


def parse_heads(data: bytes, name: str) -> list[Head]:
    """The heads in the bytes of ``heads.jsonl``; ``name`` is what an error calls the file.

    Raises:
        ProofError: a line is no head, or not as it was written.
    """
    heads = []
    for number, line in enumerate(data.splitlines(keepends=True), start=1):
        try:
            heads.append(_HEAD.decode(line))
        except ValueError as error:
            raise ProofError(f"{name}:{number}: this is no head: {error}; {RESTORE}") from None
        if head_line(heads[-1]) != line:
            raise ProofError(f"{name}:{number}: this is not as a head is written; {RESTORE}")
    return heads


def head_line(head: Head) -> bytes:
    """A head as ``heads.jsonl`` holds it, newline included."""
    return msgspec.json.encode(head) + b"\n"


def check_grown(before: Sequence[Head], after: Sequence[Head], name: str) -> None:
    """See that heads begin with those that were known ``before``, line by line.

    Raises:
        ProofError: one is another, is missing or in another's place; ``name`` is what the error
            calls the file.
    """
    found = {head.date: head for head in after}
    for number, head in enumerate(before, start=1):
        if after[number - 1 : number] == [head]:
            continue
        now = found.get(head.date)
        if now == head:
            raise ProofError(f"{name}:{number}: {head.date} is not in its place; {RESTORE}")
        other = f"{now.size:,} leaves with the root {now.root}" if now else "no closed day"
        raise ProofError(
            f"{name}: {head.date} closed with {head.size:,} leaves and the root {head.root}, "
            f"and the leaves now give {other}; {RESTORE}"
        )
