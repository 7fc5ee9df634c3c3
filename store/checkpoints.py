"""Where each history file ended when it was last read: what is gone since then is missed.

History only grows, so a file that once ended in a certain line holds that line for ever. Servers
write the checkpoints down, and so whoever reads after a restart misses what went meanwhile.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import Struct

from store.last_good import CHECKPOINTS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from store.last_good import LastGood


class Checkpoint(Struct, frozen=True, forbid_unknown_fields=True):
    """Where a history file's last sealed line ended, in bytes, and that record's id and crc."""

    end: int
    id: str
    crc: str


NOTHING = Checkpoint(0, "", "")
"""The checkpoint of a file that is empty or not there, as somebody accepted."""


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    version: Literal[1]
    files: dict[str, Checkpoint]


_FILES = msgspec.json.Decoder(_File)


class Checkpoints:
    """The checkpoints of one data directory: those written down, and newer ones of this process.

    ``damaged`` says that some were written down, and neither this process nor the file knows them.
    """

    def __init__(self, last_good: LastGood) -> None:
        self.damaged = False
        self._last_good = last_good
        self._known: dict[str, Checkpoint] = {}
        self._written: Mapping[str, Checkpoint] = {}
        self._data: bytes | None = None
        self._lock = threading.Lock()

    def of(self, slug: str) -> Checkpoint | None:
        """Where a history file ended, as far as anybody knows."""
        return self._known.get(slug)

    def slugs(self, *, accepted: bool = False) -> list[str]:
        """Every history file that held something, or that somebody ``accepted`` to hold nothing."""
        known = self._known.copy()
        return [slug for slug, checkpoint in known.items() if (checkpoint == NOTHING) is accepted]

    def see(self, slug: str, checkpoint: Checkpoint) -> None:
        """Take note of where a file ends that holds what was seen in it before."""
        with self._lock:
            if checkpoint.end > self._known.get(slug, NOTHING).end:
                self._known[slug] = checkpoint

    def refresh(self) -> None:
        """Take in what other processes wrote down; what somebody accepted counts above all.

        If they are gone or damaged, or cannot be read any more, this process knows them still and
        writes them down again. One that knows none cannot: then they are damaged, or the error.

        Raises:
            OSError: nothing is known, and there is something that cannot be read.
        """
        with self._lock:
            try:
                data = self._read()
            except OSError:
                if self._known:
                    return
                raise
            if data == self._data:
                return
            self._data = data
            try:
                written = _decoded(data)
                self.damaged = False
            except ValueError:
                written = {}
                self.damaged = self.damaged or not self._known
            if written:
                is_as_before = {s for s in self._known if written.get(s) == self._written.get(s)}
                self._known = {**written, **{s: self._known[s] for s in is_as_before}}
            self._written = written

    def write(self) -> None:
        """Write down the checkpoints of this process, except where another has written meanwhile.

        That one's counts: it has read more of the file, or was told to accept what is there.
        Spoilt ones stay as they are, for a person to see.

        Raises:
            OSError: they could not be written.
        """
        with self._lock:
            known, written = self._known.copy(), self._written
        mine = {
            slug: checkpoint
            for slug, checkpoint in known.items()
            if checkpoint != written.get(slug)
        }

        def unless_another(there: Mapping[str, Checkpoint]) -> dict[str, Checkpoint]:
            return {
                s: checkpoint for s, checkpoint in mine.items() if there.get(s) == written.get(s)
            }

        if mine and not self.damaged:
            self._change(unless_another)

    def accept(self, checkpoints: Mapping[str, Checkpoint]) -> None:
        """Put checkpoints in place whatever was known, on an operator's word.

        Raises:
            OSError: they could not be written.
        """
        self._change(lambda _: checkpoints)
        with self._lock:
            self._known.update(checkpoints)

    def _change(
        self, checkpoints: Callable[[Mapping[str, Checkpoint]], Mapping[str, Checkpoint]]
    ) -> None:
        """Add ``checkpoints`` of those that are there, nobody else writing meanwhile."""
        with self._last_good.locked():
            try:
                before = _decoded(self._read())
            except ValueError:
                before = None
            after = {**(before or {}), **checkpoints(before or {})}
            if after != before:
                body = msgspec.json.encode(_File(version=1, files=after), order="sorted")
                self._last_good.place(CHECKPOINTS, body)
        self.refresh()

    def _read(self) -> bytes | None:
        copy = self._last_good.read(CHECKPOINTS)
        return copy.data if copy else None


def _decoded(data: bytes | None) -> dict[str, Checkpoint]:
    """The checkpoints in the bytes of a file; ``ValueError`` if it does not say them any more."""
    return {} if data is None else _FILES.decode(data).files
