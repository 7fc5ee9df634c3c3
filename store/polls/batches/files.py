"""The batches that were made, a file each in ``DATA_DIR/batches``, kept until long after their end.

Each file is sealed, and has a copy under ``.last-good/batches``: one that was edited or deleted by
hand is read from there, for its questions are with the provider all the same and may be paid for.
"""

from __future__ import annotations

import errno
import os
import zlib
from datetime import datetime
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import Struct

from store.disk import atomic_write, signature_of, sync_directory
from store.history import HistoryError
from store.last_good import FOLDER as COPIES
from store.last_good import LastGood
from store.records import Assistant, Natural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from store.disk import Signature
    from store.files import Catalogue
    from store.polls.due import Key

FOLDER = "batches"


class BatchFileError(HistoryError, OSError):
    """A batch cannot be read, so that nobody knows what is asked already; it says what to do."""

    def __init__(self, sentence: str) -> None:
        super().__init__(errno.EIO, sentence)

    def __str__(self) -> str:
        return self.strerror or ""


class Asking(Struct, frozen=True, forbid_unknown_fields=True):
    """One question of a batch; ``repeat`` counts from 0 how often its pair stands before it."""

    slug: str
    question: str
    repeat: Natural = 0


class Batch(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A batch and how it stands. Times are RFC 3339; ``reserved`` is in micro-dollars.

    ``intended``: it may have been sent. ``submitted``: its provider has it as ``remote``.
    ``collected``, ``void`` (never made, or failed before it ran) and ``lost`` (given up; counts as
    paid): over since ``over_at``. ``missed_at`` is when it was first looked for in vain, and
    ``not_ours`` are batches that were taken for it. ``late``: it was cancelled or did not answer
    all in time. ``refused``: its provider would not take it.
    """

    version: Literal[1] = 1
    key: str
    state: Literal["intended", "submitted", "collected", "void", "lost"]
    assistant: Assistant
    intended_at: str
    reserved: Natural
    items: tuple[Asking, ...]
    remote: str | None = None
    done: Natural = 0
    missed_at: str | None = None
    not_ours: tuple[str, ...] = ()
    cancelled_at: str | None = None
    over_at: str | None = None
    why: str | None = None
    late: bool = False
    refused: bool = False
    seal: str = ""

    @property
    def is_open(self) -> bool:
        """Whether its questions are under way."""
        return self.state in ("intended", "submitted")

    @property
    def name(self) -> str:
        """The assistant's, as it was asked."""
        return self.assistant.name

    def identity(self, number: int) -> str:
        """The id of its item of this number, unique over all batches."""
        return f"{self.key}-{number}"

    def age(self, now: datetime) -> float:
        """Seconds since it was made; none where the clock was set back."""
        return max(seconds_since(self.intended_at, now), 0)


def seconds_since(time: str, now: datetime) -> float:
    """Seconds from an RFC 3339 time until now."""
    return (now - datetime.fromisoformat(time)).total_seconds()


_BATCHES = msgspec.json.Decoder(Batch)


class Batches:
    """The batches of one data directory."""

    def __init__(self, directory: Path) -> None:
        self._home = directory / FOLDER
        self._copies = LastGood(directory)
        self._copied = directory / COPIES / FOLDER
        self._known: dict[Path, tuple[Signature, Batch | None]] = {}

    def all(self) -> list[Batch]:
        """Every batch, oldest first.

        Raises:
            BatchFileError: one can be read from neither its file nor its copy.
            OSError: a folder cannot be looked into.
        """
        found = [self._read(name) for name in sorted({*_names(self._home), *_names(self._copied)})]
        return sorted(found, key=lambda batch: (batch.intended_at, batch.key))

    def mended(self) -> list[str]:
        """A sentence for each file that was changed or taken away by hand."""
        return [
            f"{FOLDER}/{name} was edited or deleted; its copy in {COPIES}/{FOLDER} is used: "
            "put that back in its place"
            for name in sorted(_names(self._copied))
            if self._sound(self._home / name) is None
        ]

    def write(self, batch: Batch) -> None:
        """Make a batch's state durable; its copy follows.

        Raises:
            OSError: it could not be written.
        """
        sealed = msgspec.structs.replace(batch, seal=_seal(batch))
        data = msgspec.json.format(msgspec.json.encode(sealed)) + b"\n"
        if not self._home.is_dir():
            self._home.mkdir(mode=0o750, exist_ok=True)
            sync_directory(self._home.parent)
        atomic_write(self._home / f"{batch.key}.json", data, 0o640)
        sync_directory(self._home)
        with self._copies.locked():
            self._copies.place(f"{FOLDER}/{batch.key}.json", data)

    def forget(self, batch: Batch) -> None:
        """Remove a batch of which nothing is left to know, first its copy."""
        for folder in (self._copied, self._home):
            path = folder / f"{batch.key}.json"
            path.unlink(missing_ok=True)
            self._known.pop(path, None)

    def _read(self, name: str) -> Batch:
        for path in (self._home / name, self._copied / name):
            if found := self._sound(path):
                return found
        raise BatchFileError(
            f"{FOLDER}/{name} is damaged and has no good copy, so that nobody knows what is asked "
            "already; restore it, or delete it if what it asked may be asked and paid for again"
        )

    def _sound(self, path: Path) -> Batch | None:
        """What a file says, unless it is gone or not as we wrote it."""
        try:
            signature = signature_of(path.lstat())
            known = self._known.get(path)
            if known is None or known[0] != signature:
                known = self._known[path] = signature, _decoded(path.read_bytes())
            return known[1]
        except (FileNotFoundError, NotADirectoryError):
            return None


def _decoded(data: bytes) -> Batch | None:
    try:
        batch = _BATCHES.decode(data)
    except (ValueError, RecursionError):
        return None
    return batch if batch.seal == _seal(batch) else None


def _seal(batch: Batch) -> str:
    """A checksum against mistakes, no signature; of what a file says, where 2 and 2.0 are one."""
    bare = msgspec.json.encode(msgspec.structs.replace(batch, seal=""))
    return f"{zlib.crc32(msgspec.json.encode(_BATCHES.decode(bare))):08x}"


def _names(folder: Path) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            yield from [e.name for e in entries if e.name.endswith(".json") and e.name[0] != "."]
    except (FileNotFoundError, NotADirectoryError):
        return


def under_way(batches: Iterable[Batch], catalogue: Catalogue) -> frozenset[Key]:
    """The pairs in open batches, by the present names of categories and assistants."""
    categories, names = catalogue.categories, catalogue.former_names
    moved = {
        former: slug
        for slug, category in categories.items()
        for former in category.former_slugs
        if former not in categories
    }
    return frozenset(
        (moved.get(item.slug, item.slug), names.get(batch.name, batch.name))
        for batch in batches
        if batch.is_open
        for item in batch.items
    )


def with_reserves(batches: Batches, usd_on: Callable[[str], float]) -> Callable[[str], float]:
    """A day's polls and reserves of batches in US dollars.

    An open one counts on every day, so that midnight forgets none, a lost one on its last.
    """

    def known(day: str) -> float:
        held = (
            batch.reserved
            for batch in batches.all()
            if batch.is_open or (batch.state == "lost" and str(batch.over_at)[:10] == day)
        )
        return usd_on(day) + sum(held) / 1e6

    return known
