"""The append-only poll log: one file for each category, one JSON line for each poll.

A newline commits a record; its bytes are described in :mod:`store.line_codec`. A record is
acknowledged once it was written in one piece and fsynced, and is never changed. Readers take the
file as it is and repair nothing; the writer, who holds the file's lock, first sets a torn tail
aside in ``<slug>.jsonl.torn``. Other damage is kept, skipped and reported.
"""

import errno
import fcntl
import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from io import BytesIO
from pathlib import Path

from msgspec import Struct

from store.disk import (
    Signature,
    append_lines,
    check_no_link,
    check_room,
    is_in_place,
    opened,
    read_regular,
    signature_at,
    signature_of,
    sync_directory,
)
from store.ledger import FOLDER, HEADS, LEDGER, Ledger, LedgerEntry, LedgerError, Proof
from store.line_codec import (
    Stamp,
    decode_line,
    encode_line,
    has_valid_checksum,
    id_of,
    is_intact,
    original_of,
    stamp,
    whole_lines,
)
from store.records import Poll, Problem
from store.text import rfc3339

_LONGEST = 200
"""Characters of a reason at most; the reader of JSON may quote a line in it."""
_APPENDING = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW


class HistoryError(Exception):
    """A history file cannot be read or written; no poll of it was acknowledged."""


class PollLine(Struct, frozen=True):
    """A poll and the place of its line: a slug's file, byte offsets without newline, number."""

    poll: Poll
    file: str
    start: int
    end: int
    line: int


class Log(Struct, frozen=True):
    """The polls in the history file of a slug, oldest first, and what in it could not be read.

    ``open_entries`` are the ledger's for lines of days that are not closed yet.
    """

    file: str
    polls: tuple[PollLine, ...] = ()
    problems: tuple[Problem, ...] = ()
    signature: Signature | None = None
    open_entries: tuple[LedgerEntry, ...] = ()

    @property
    def is_lost(self) -> bool:
        """True if the file cannot be read, or has lost lines: nobody knows what it held."""
        return self.signature is None and bool(self.problems)


class _LinesRead(Struct, frozen=True):
    """The lines that were read of a file: how many, their bytes, and a hash of these.

    They end with the last readable line whose id is new in the file, so that taking away what
    follows loses no poll.
    ``accepted`` is the loss that was accepted last when they were read.
    """

    lines: int
    size: int
    hash: int
    accepted: LedgerEntry | None

    @classmethod
    def of(
        cls, data: bytes, polls: Sequence[PollLine], accepted: LedgerEntry | None
    ) -> "_LinesRead":
        """Return what is known of a file once its polls were read."""
        first_ends = {stored.poll.id: stored.end for stored in reversed(polls)}
        lines = data[: max(first_ends.values())]  # what repeats an id is damage
        return cls(lines.count(b"\n") + 1, len(lines), hash(lines), accepted)

    def are_missing(self, data: bytes, accepted: LedgerEntry | None) -> bool:
        """Return whether a file begins with others, and nobody has accepted that since."""
        return hash(data[: self.size]) != self.hash and accepted == self.accepted


class History:
    """The history files in one directory: read by anyone, appended to by one writer at a time.

    ``ledger`` is the one that proves them, as of the last look; ``fault`` is set while it cannot be
    read. In what is ``published`` redacted lines stand for those that are withheld.
    """

    def __init__(self, directory: Path, *, published: bool = False) -> None:
        self.ledger = Ledger()
        self._published = published
        self.fault: Problem | None = None
        self._directory = directory
        self._proof = Proof(directory.parent)
        self._proof_signatures: object = None
        self._broken: set[Path] = set()
        self._known: dict[str, _LinesRead] = {}
        """What was last read of each file: no ledger has the lines of open days yet."""

    def path(self, slug: str) -> Path:
        """Return the file of a category; ``slug`` is a category's, never a request's text."""
        return self._directory / f"{slug}.jsonl"

    def signatures(self) -> dict[str, Signature | None]:
        """Return by slug a signature of every history file, which changes when the file does.

        ``None`` stands for a file that held lines, by the ledger or as read before, and is gone.

        Raises:
            HistoryError: the directory is there and cannot be looked into.
        """
        self._reload_ledger()
        signatures: dict[str, Signature | None] = dict.fromkeys(self._remembered())
        try:
            check_no_link(self._directory)
            with suppress(FileNotFoundError), os.scandir(self._directory) as entries:
                for entry in entries:
                    if entry.name.endswith(".jsonl"):
                        with suppress(FileNotFoundError):  # it has just gone
                            status = entry.stat(follow_symlinks=False)
                            signatures[entry.name.removesuffix(".jsonl")] = signature_of(status)
        except OSError as error:
            reason = f"the folder history cannot be looked into: {error.strerror}"
            raise HistoryError(reason) from error
        return signatures

    def read(self, slug: str) -> Log:
        """Return every readable poll of a file, oldest first; a file that is not there is empty.

        A file that cannot be read, or has lost lines, gives a log of its problem without polls.
        """
        if self._proof_signatures is None:
            self._reload_ledger()
        if self.fault and self._proof_signatures is None:
            return Log(slug, problems=(self.fault,))
        known = self._known.get(slug)  # first: another thread may append and read meanwhile
        data = signature = None
        try:
            with suppress(FileNotFoundError), opened(self.path(slug)) as handle:
                status = os.fstat(handle)
                data, signature = os.pread(handle, status.st_size, 0), signature_of(status)
        except OSError as error:
            why = f"cannot be read: {error.strerror}"
            return Log(slug, problems=(Problem(f"history/{slug}.jsonl", 1, 1, why),))
        stamps = [stamp(line, published=self._published) for line in whole_lines(data or b"")]
        if problem := self._loss(slug, data, stamps, known):
            return Log(slug, problems=(problem,))
        if data is None:
            return Log(slug)
        polls: list[PollLine] = []
        problems: list[Problem] = []
        for number, start, line in _lines(data):
            end = start + len(line)
            try:
                poll = decode_line(line, published=self._published)
                polls.append(PollLine(poll, slug, start, end, number))
            except ValueError as error:
                torn = end == len(data) and _is_torn(line)
                problems.append(_unreadable(slug, number, error, torn=torn))
        if polls:
            self._known[slug] = _LinesRead.of(data, polls, self.ledger.accepted.get(slug))
        tail = stamps[self.ledger.last(slug).lines :]
        entries = tuple(self.ledger.open_entries(slug, tail))
        return Log(slug, tuple(polls), tuple(problems), signature, entries)

    def _remembered(self) -> set[str]:
        """Return the slugs of history files that held lines, by the ledger or as read before."""
        return {file for file, entry in self.ledger.newest.items() if entry.lines} | {*self._known}

    def _reload_ledger(self) -> None:
        """Read the ledger if it changed; the one that was known before stays if it is damaged."""
        home = self._directory.parent / FOLDER
        files = (signature_at(home / LEDGER), signature_at(home / HEADS))
        if files == self._proof_signatures and None not in files:
            return
        try:
            ledger = self._proof.load()
            self.ledger = self.ledger if ledger == self.ledger else ledger
            self.fault, self._proof_signatures = None, files
        except LedgerError as error:
            restore = f"put the folder proof back from a copy, or {_how_to_accept('--all')}"
            self.fault = Problem(error.file, error.line, 1, f"{error.reason}; {restore}")
        except OSError as error:
            file = os.path.relpath(error.filename or home / LEDGER, home.parent)
            self.fault = Problem(file, 1, 1, f"cannot be read: {error.strerror}")

    def _loss(
        self, slug: str, data: bytes | None, stamps: Sequence[Stamp], known: "_LinesRead | None"
    ) -> Problem | None:
        """Return a problem if a file lacks lines of closed days, or lines ``known`` from before.

        ``data`` are its bytes, ``None`` without a file, and ``stamps`` those of its lines.
        """
        if data is None and self._remembered() and not any(self._directory.glob("*.jsonl")):
            # A disk that is not mounted: no other file may be begun in its place.
            message = "every file in it is gone; put them back (is their disk there?), or "
            return Problem("history", 1, 1, message + _how_to_accept("--all"))
        if not self.ledger.holds(slug, stamps):
            entry = self.ledger.newest[slug]
            size = f"{entry.lines:,} lines ({entry.bytes:,} bytes)"
            before = f"on {entry.day}, which is closed, it had {size}"
            way = _how_to_accept(slug)
        elif known and known.are_missing(data or b"", self.ledger.accepted.get(slug)):
            before = f"when it was last read it had {known.lines:,} lines"
            way = "restart the server to go on without them"
        else:
            return None
        loss = "the file is gone" if data is None else "it was cut short or changed"
        message = f"{loss}: {before}; put it back from a copy, or {way}"
        return Problem(f"history/{slug}.jsonl", 1, 1, message)

    def lines(self, slug: str, places: Sequence[tuple[int, int, str]]) -> list[bytes]:
        """Return raw lines of a file by their byte offsets and ids, read in one piece.

        Raises:
            HistoryError: the file cannot be read just now, or somebody changed it since.
        """
        first = min(start for start, _, _ in places)
        path = self.path(slug)
        try:
            with opened(path) as handle:
                block = os.pread(handle, max(end for _, end, _ in places) - first, first)
        except OSError as error:
            raise HistoryError(f"{path.name} cannot be read: {error.strerror}") from error
        lines = []
        for start, end, poll in places:
            line = block[start - first : end - first]
            is_redacted = self._published and original_of(line) and id_of(line) == poll
            if not (is_redacted or is_intact(line, poll)):
                raise HistoryError(f"{path.name} no longer holds all that was read from it")
            lines.append(line)
        return lines

    def append(
        self,
        polls: Sequence[Poll],
        now: str,
        *,
        withheld: Collection[str] = (),
        former_files: Sequence[str] = (),
    ) -> tuple[Poll, ...]:
        """Make polls of one category durable, then return them with their times and ids.

        ``now`` is RFC 3339 in UTC. No record's time is before that of the newest poll in the file,
        damaged and ``withheld`` ones aside. If a line of this file, or of the category's
        ``former_files``, has the same id already, the time is moved on. One write and one fsync;
        when this returns, the records survive a power cut.

        Raises:
            HistoryError: nothing was acknowledged, and the sentence says why.
        """
        slug = polls[0].slug
        path = self.path(slug)
        with self._writing(path):
            others = [read_regular(path) for path in map(self.path, former_files) if path.exists()]
            with self._locked(path) as handle:
                data, unfinished = _clean_end(handle, path)
                if not data:  # the file's name, and its directory's, must last before a record does
                    sync_directory(self._directory)
                    sync_directory(self._directory.parent)
                time = max(now, _last_time(data, (slug, *former_files), withheld))
                self._check_day_open(time)
                sealed = _seal(polls, time, b"".join([*others, data]))
                lines = unfinished + b"".join(line for _, line in sealed)
                self._write(handle, len(data), lines, path)
        return tuple(poll for poll, _ in sealed)

    def check_appendable(self, slug: str, now: str) -> None:
        """Try what appending to a category's file takes: ledger, day, lock, end, room on the disk.

        Raises:
            HistoryError: a poll could not be recorded, and the sentence says why.
        """
        path = self.path(slug)
        with self._writing(path):
            self._check_day_open(now)
            self._directory.mkdir(mode=0o750, exist_ok=True)
            check_room(self._directory)
            if os.path.lexists(path):  # nothing is begun that may stay empty
                with self._locked(path) as handle:
                    _clean_end(handle, path)

    @contextmanager
    def _writing(self, path: Path) -> Iterator[None]:
        """Keep days from being closed meanwhile, and check the ledger.

        Raises:
            HistoryError: writing failed, for whatever reason, or must not be begun.
        """
        if path in self._broken:
            raise HistoryError(f"{path.name}: an earlier write failed; restart after a disk check")
        try:
            with self._proof.locked(shared=True):
                self._reload_ledger()
                if self.fault:
                    raise HistoryError(str(self.fault))
                yield
        except OSError as error:
            place = Path(error.filename or path)
            if place.is_relative_to(self._directory):
                name = path.name
            else:  # the proof's lock
                name = os.path.relpath(place, self._directory.parent)
            raise HistoryError(f"{name} cannot be written: {error.strerror}") from error
        except ValueError as error:
            raise HistoryError(f"{path.name}: the poll cannot be recorded: {error}") from error

    def closed_at(self, time: str) -> str | None:
        """Return why no poll of a time can be added, if its day is closed by the ledger as read."""
        day, closed = time[:10], self.ledger.last_closed_day
        begun = (entry.day for entry in self.ledger.pending if not entry.accepted)
        if closed < day < (pending := max(begun, default="")):
            return (
                f"a poll of {time} cannot be added: {pending} is being closed, and no day before "
                "it can be any more; mend this machine's clock, or, if it was wrong then, "
                f'flask check --reopen {day} --reason "…"'
            )
        if day > closed:
            return None
        return (
            f"a poll of {time} cannot be added: {closed} and all days before are closed; mend "
            "this machine's clock, or, if it was wrong then, flask check --reopen "
            f'{day} --reason "…"'
        )

    def _check_day_open(self, time: str) -> None:
        if reason := self.closed_at(time):
            raise HistoryError(reason)

    @contextmanager
    def _locked(self, path: Path) -> Iterator[int]:
        """Open a file to which no other process or thread appends meanwhile."""
        self._directory.mkdir(mode=0o750, exist_ok=True)
        while True:
            handle = os.open(path, _APPENDING, 0o640)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX)
                if is_in_place(path, handle):  # some editors put another in its place
                    yield handle
                    return
            finally:
                os.close(handle)

    def _write(self, handle: int, end: int, data: bytes, path: Path) -> None:
        """Write once and fsync once; a write that fails leaves the file as it was."""
        is_written = False
        try:
            if (count := os.write(handle, data)) < len(data):
                why = f"no space left, only {count} of {len(data)} bytes fit"
                raise OSError(errno.ENOSPC, why)  # noqa: TRY301
            is_written = True
            os.fsync(handle)
        except OSError as error:
            # After a failed fsync the kernel may have dropped what it had not written, and says so
            # only once. So this writer goes on with the file only after a disk that was full.
            if is_written or error.errno not in (errno.ENOSPC, errno.EDQUOT):
                self._broken.add(path)
            try:
                os.ftruncate(handle, end)
            except OSError:
                self._broken.add(path)
            raise


def _how_to_accept(which: str) -> str:
    return f'accept what is there: flask check --accept-history {which} --reason "…"'


def _clean_end(handle: int, path: Path) -> tuple[bytes, bytes]:
    """Bring a locked file to a clean end; return what it holds then, and what the next line needs.

    A torn last line is set aside. One that only lacks its newline, as an editor may have left it,
    stays: then the newline must be written before the next line. Empty lines at the end go. Those
    between others stay, as damage: a record may have been erased there.
    """
    data = os.pread(handle, os.fstat(handle).st_size, 0)
    whole = data.rstrip(b"\n")
    if len(data) > (end := len(whole) + bool(whole)):
        os.ftruncate(handle, end)
        data = data[:end]
    cut = data.rfind(b"\n") + 1
    tail = data[cut:]
    if not tail:
        return data, b""
    if not _is_torn(tail):
        return data, b"\n"
    append_lines(path.with_suffix(".jsonl.torn"), tail + b"\n")  # safe there before it leaves
    os.ftruncate(handle, cut)
    return data[:cut], b""


def _is_torn(tail: bytes) -> bool:
    """Return whether a last line holds no whole record, not even between carriage returns."""
    return not any(map(has_valid_checksum, tail.split(b"\r")))


def _last_time(data: bytes, slugs: Collection[str], withheld: Collection[str]) -> str:
    """Return the time of the newest sound poll; an empty text, before any time, without one."""
    newest, ids = "", set[str]()
    for line in data.split(b"\n"):
        with suppress(ValueError):
            poll = decode_line(line)
            if poll.slug in slugs and poll.id not in ids and poll.id not in withheld:
                newest = max(newest, poll.polled_at)
            ids.add(poll.id)
    return newest


def _seal(polls: Sequence[Poll], time: str, lines: bytes) -> list[tuple[Poll, bytes]]:
    """Seal polls with one time.

    It moves on by a second, for all that follow too, while an id is among ``lines`` already.

    Raises:
        ValueError: a poll would be damage as soon as it is written.
    """
    sealed: list[tuple[Poll, bytes]] = []
    for poll in polls:
        record, line = encode_line(poll, time)
        while b'"id":"%b"' % record.id.encode() in lines:
            time = rfc3339(datetime.fromisoformat(time) + timedelta(seconds=1))
            record, line = encode_line(poll, time)
        decode_line(line[:-1])
        sealed.append((record, line))
        lines += line
    return sealed


def _lines(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield number, offset and text of every line, without newlines and empty lines at the end."""
    start = 0
    for number, line in enumerate(BytesIO(data.rstrip(b"\n")), start=1):
        yield number, start, line.removesuffix(b"\n")
        start += len(line)


def damaged_line(slug: str, line: int, why: str) -> Problem:
    """Return the problem of a line of a history file that counts nowhere."""
    return Problem(f"history/{slug}.jsonl", line, 1, f"a damaged record is left out: {why}")


def _unreadable(slug: str, line: int, error: ValueError, *, torn: bool) -> Problem:
    why = "is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else str(error)
    if len(why) > _LONGEST:
        why = f"{why[:_LONGEST]}…"
    if torn:
        message = f"an unfinished record (the next poll sets it aside): {why}"
        return Problem(f"history/{slug}.jsonl", line, 1, message, "warning")
    return damaged_line(slug, line, why)
