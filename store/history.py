"""The append-only poll log: one file for each category, one JSON line for each poll.

A line ends in its own checksum: ``crc`` is the CRC-32 of the line without that member, so a line
stays ordinary JSON and anybody can check it. A newline commits a record. What is acknowledged has
been written in one piece and fsynced; what has been written is never changed. Readers take the
file as it is and repair nothing; the writer, who holds the file's lock, first sets a torn tail
aside in ``<slug>.jsonl.torn``. Damage further up is skipped, counted and reported.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import stat
import zlib
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from store.last_good import LastGood, Mark
from store.marks import NOTHING, Marks
from store.records import Poll, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

Signature = tuple[int, int, int, int]
"""Times of modification and of status change in ns, size in bytes, inode."""

_CRC_SIZE = len(b',"crc":"00000000"}')
_DECODER = msgspec.json.Decoder(Poll)
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)
_READING = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
_APPENDING = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW


class HistoryError(Exception):
    """A history file cannot be read or written; no poll of it was acknowledged."""


class Stored(Struct, frozen=True):
    """A poll and where its line stands, in byte offsets, the newline excluded."""

    poll: Poll
    start: int
    end: int


class Log(Struct, frozen=True):
    """What one history file holds, oldest first, and what in it could not be read."""

    polls: tuple[Stored, ...] = ()
    problems: tuple[Problem, ...] = ()
    signature: Signature | None = None

    @property
    def unread(self) -> bool:
        """Whether nobody knows what the file held: it cannot be read, or has lost some of it."""
        return self.signature is None and bool(self.problems)


def seal(poll: Poll, polled_at: str) -> tuple[Poll, bytes]:
    """Give a poll its time, id and checksum; return it with its line, newline included.

    ``id`` is the first 16 hex digits of the SHA-256 of the compact JSON without ``id`` and ``crc``.
    """
    bare = msgspec.to_builtins(msgspec.structs.replace(poll, polled_at=polled_at))
    del bare["id"], bare["crc"]
    identity = hashlib.sha256(msgspec.json.encode(bare)).hexdigest()[:16]
    body = msgspec.json.encode({"v": bare.pop("v"), "id": identity, **bare})
    crc = f"{zlib.crc32(body):08x}"
    sealed = msgspec.structs.replace(poll, polled_at=polled_at, id=identity, crc=crc)
    return sealed, body[:-1] + b',"crc":"' + crc.encode() + b'"}\n'


def unseal(line: bytes) -> Poll:
    """Read one line, newline excluded; raise ``ValueError`` with a sentence when it is damaged."""
    poll = _DECODER.decode(line)
    if not _is_sealed(line):
        raise ValueError("the checksum does not fit the record")
    if not _TIME.fullmatch(poll.polled_at):
        raise ValueError(f'polledAt is "{poll.polled_at}", not a time such as 2026-11-02T06:00:00Z')
    datetime.fromisoformat(poll.polled_at)
    for place, pick in enumerate(poll.ranking, start=1):
        if pick.rank != place:
            raise ValueError("the ranks in ranking are not 1, 2, 3 and so on")
    if (poll.pick is None) != (not poll.ranking):
        raise ValueError("pick and ranking contradict each other")
    return poll


class History:
    """The history files in one directory: read by anyone, appended to by one writer at a time."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._marks = Marks(LastGood(directory.parent))
        self._broken: set[str] = set()
        self._parent_synced = False

    def path(self, slug: str) -> Path:
        """The file of a category; ``slug`` is a category's, never a request's text."""
        return self._directory / f"{slug}.jsonl"

    def signatures(self) -> dict[str, Signature]:
        """The slug of every history file with a signature that changes when the file does.

        Raises:
            HistoryError: the directory is there and cannot be looked into.
        """
        self._marks.refresh()
        found: dict[str, Signature] = {}
        try:
            with suppress(FileNotFoundError), os.scandir(self._directory) as entries:
                for entry in entries:
                    if entry.name.endswith(".jsonl"):
                        with suppress(FileNotFoundError):  # it has just gone
                            status = entry.stat(follow_symlinks=False)
                            found[entry.name.removesuffix(".jsonl")] = _signature(status)
        except OSError as error:
            reason = f"the folder history cannot be looked into: {error.strerror}"
            raise HistoryError(reason) from error
        return found

    def read(self, slug: str) -> Log:
        """Every readable poll of a file, oldest first; a file that is not there is empty.

        One that has lost what it once held is as one that cannot be read.
        """
        path = self.path(slug)
        name = f"history/{path.name}"
        mark = self._marks.of(slug)
        try:
            with _opened(path) as handle:
                found = os.fstat(handle)
                data = os.pread(handle, found.st_size, 0)
        except FileNotFoundError:
            return self._log_without_file(slug)
        except OSError as error:
            return Log(problems=(Problem(name, 1, 1, f"cannot be read: {error.strerror}"),))
        if mark and not _holds(data, mark):
            return Log(problems=(_lost(slug, mark, "it was cut short or changed"),))
        polls: list[Stored] = []
        problems: list[Problem] = []
        for number, start, line in _lines(data):
            end = start + len(line)
            try:
                polls.append(Stored(unseal(line), start, end))
            except ValueError as error:
                problems.append(_damage(name, number, error, torn=end == len(data)))
        if polls:
            self._marks.see(slug, _mark(polls[-1]))
        return Log(tuple(polls), tuple(problems), _signature(found))

    def remembered(self) -> list[str]:
        """The slug of every history file that is known to have held something."""
        return self._marks.slugs()

    def accepted(self) -> list[str]:
        """The slug of every history file that an operator accepted to be empty or gone."""
        return self._marks.slugs(accepted=True)

    def keep_marks(self) -> None:
        """Write down where the files ended that were read; see :meth:`Marks.write`.

        Raises:
            OSError: it could not be written.
        """
        self._marks.write()

    def accept(self, slug: str) -> Log:
        """Take a file as it is for all that it should hold, and return that.

        Raises:
            HistoryError: it cannot be read, or the marks cannot be written.
        """
        bare = History(self._directory)  # it knows no marks: they are taken in by a look
        log = bare.read(slug)
        if log.unread:
            raise HistoryError(str(log.problems[0]))
        try:
            self._marks.accept({slug: _mark(log.polls[-1]) if log.polls else NOTHING})
        except OSError as error:
            raise HistoryError(f".last-good cannot be written: {error.strerror}") from error
        self._marks.refresh()
        return log

    def _log_without_file(self, slug: str) -> Log:
        """What a file that is not there amounts to: nothing, unless it or all of them were there.

        When all are away, as with a disk that is not mounted, no other may be begun.
        """
        mark = self._marks.of(slug)
        if self._marks.any() and not self._holds_any():
            message = "every file in it is gone; put them back (is their disk there?), or "
            return Log(problems=(Problem("history", 1, 1, message + _accept("--all")),))
        if mark and mark.end:
            return Log(problems=(_lost(slug, mark, "the file is gone"),))
        return Log()

    def _holds_any(self) -> bool:
        """Whether there is any history file."""
        with suppress(OSError), os.scandir(self._directory) as entries:
            return any(entry.name.endswith(".jsonl") for entry in entries)
        return False

    def lines(self, slug: str, spans: Sequence[tuple[int, int]]) -> list[bytes | None]:
        """The raw lines at the given byte offsets of a file, read in one piece.

        ``None`` stands for a line that is no longer there, since somebody changed the file.

        Raises:
            HistoryError: the file cannot be read just now.
        """
        first = min(start for start, _ in spans)
        path = self.path(slug)
        try:
            with _opened(path) as handle:
                block = os.pread(handle, max(end for _, end in spans) - first, first)
        except OSError as error:
            raise HistoryError(f"{path.name} cannot be read: {error.strerror}") from error
        lines = (block[start - first : end - first] for start, end in spans)
        return [line if _is_sealed(line) else None for line in lines]

    def append(self, polls: Sequence[Poll], now: str) -> tuple[Poll, ...]:
        """Make polls of one category durable, then return them with their times and ids.

        ``now`` is RFC 3339 in UTC; no record gets an earlier time than the one before it. One
        write and one fsync; when this returns, the records survive a power cut.

        Raises:
            HistoryError: nothing was acknowledged, and the sentence says why.
        """
        slug = polls[0].slug
        path = self.path(slug)
        if slug in self._broken:
            raise HistoryError(f"{path.name}: an earlier fsync failed; restart after a disk check")
        try:
            with self._locked(path) as handle:
                end, last, unfinished = _clean_end(handle, path)
                if end == 0:
                    self._sync_names()
                time = max(now, last)
                sealed = [seal(poll, time) for poll in polls]
                self._write(handle, end, unfinished + b"".join(line for _, line in sealed), slug)
        except OSError as error:
            raise HistoryError(f"{path.name} cannot be written: {error.strerror}") from error
        return tuple(poll for poll, _ in sealed)

    @contextmanager
    def _locked(self, path: Path) -> Iterator[int]:
        """An open file that no other process or thread appends to meanwhile."""
        self._directory.mkdir(mode=0o750, exist_ok=True)
        while True:
            handle = os.open(path, _APPENDING, 0o640)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX)
                if _is_in_place(path, handle):
                    yield handle
                    return
            finally:
                os.close(handle)

    def _sync_names(self) -> None:
        """Make a new file's name durable, and its directory's, before the first record is."""
        _sync_directory(self._directory)
        if not self._parent_synced:
            _sync_directory(self._directory.parent)
            self._parent_synced = True

    def _write(self, handle: int, end: int, data: bytes, slug: str) -> None:
        """One write, one fsync; a write that fails leaves the file as it was.

        After a failed fsync the kernel may have dropped what it had not written, and says so only
        once: this writer then refuses to go on with the file.
        """
        try:
            written = os.write(handle, data)
            if written < len(data):
                why = f"no space left, only {written} of {len(data)} bytes fit"
                raise OSError(errno.ENOSPC, why)  # noqa: TRY301
        except OSError:
            try:
                os.ftruncate(handle, end)
            except OSError:
                self._broken.add(slug)
            raise
        try:
            os.fsync(handle)
        except OSError:
            self._broken.add(slug)
            with suppress(OSError):
                os.ftruncate(handle, end)
            raise


def _mark(last: Stored) -> Mark:
    return Mark(last.end, last.poll.id, last.poll.crc)


def _holds(data: bytes, mark: Mark) -> bool:
    """Whether a file with these bytes has the line of a mark, where it was."""
    seal = b',"crc":"%s"}' % mark.crc.encode()
    return mark.end == 0 or (mark.end <= len(data) and data.endswith(seal, 0, mark.end))


def _lost(slug: str, mark: Mark, what: str) -> Problem:
    message = f"{what}: it held {mark.end:,} bytes up to the poll {mark.id}; restore it"
    return Problem(f"history/{slug}.jsonl", 1, 1, f"{message}, or {_accept(slug)}")


def _accept(which: str) -> str:
    return f"accept what is there: flask check --accept-history {which}"


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    """A regular file, open for reading; a link or a pipe is refused."""
    handle = os.open(path, _READING)
    try:
        _refuse_what_is_no_file(handle)
        yield handle
    finally:
        os.close(handle)


def _refuse_what_is_no_file(handle: int) -> None:
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file")


def _is_in_place(path: Path, handle: int) -> bool:
    """Whether an open file is still the one of that name; some editors put another in its place."""
    _refuse_what_is_no_file(handle)
    try:
        return os.path.samestat(path.lstat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def _is_sealed(line: bytes) -> bool:
    """Whether a line ends in the checksum of what stands before it."""
    crc = zlib.crc32(b"}", zlib.crc32(line[:-_CRC_SIZE]))
    return line[-_CRC_SIZE:] == b',"crc":"%08x"}' % crc


def _clean_end(handle: int, path: Path) -> tuple[int, str, bytes]:
    """Bring a locked file to a clean end: its size, its last poll's time and what is to go first.

    A last line without a newline is torn and set aside, unless it is whole, as an editor may have
    left it: then the newline that it lacks goes first.
    """
    size = os.fstat(handle).st_size
    data = os.pread(handle, size, 0)
    cut = data.rfind(b"\n") + 1
    if tail := data[cut:]:
        try:
            return size, unseal(tail).polled_at, b"\n"
        except ValueError:
            _set_aside(path, tail)
            os.ftruncate(handle, cut)
    return cut, _last_time(data[:cut]), b""


def _set_aside(path: Path, tail: bytes) -> None:
    """Keep torn bytes beside the history, on disk before they leave it."""
    handle = os.open(path.with_suffix(".jsonl.torn"), _APPENDING, 0o640)
    try:
        if os.write(handle, tail + b"\n") <= len(tail):
            raise OSError(errno.ENOSPC, "no space to keep its unfinished last line")
        os.fsync(handle)
    finally:
        os.close(handle)
    _sync_directory(path.parent)


def _last_time(data: bytes) -> str:
    """The time of the last readable poll, or an empty string that sorts before any time."""
    end = len(data)
    while end > 0:
        start = data.rfind(b"\n", 0, end - 1) + 1
        try:
            return unseal(data[start : end - 1]).polled_at
        except ValueError:
            end = start
    return ""


def _lines(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Number, offset and text of every line that is not blank, the newline excluded."""
    start = 0
    for number, line in enumerate(data.split(b"\n"), start=1):
        if line.strip():
            yield number, start, line
        start += len(line) + 1


def _damage(name: str, number: int, error: ValueError, *, torn: bool) -> Problem:
    reason = "is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else str(error)
    if torn:
        message = f"an unfinished record (the next poll sets it aside): {reason}"
        return Problem(name, number, 1, message, "warning")
    return Problem(name, number, 1, f"a damaged record is left out: {reason}")


def _signature(found: os.stat_result) -> Signature:
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


def _sync_directory(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
