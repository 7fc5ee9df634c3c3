"""Where each history file ended when it was last read: what is gone since then is missed.

History only grows, so a file that once ended in a certain line holds that line for ever. Servers
write the marks down, and so whoever reads after a restart misses what went meanwhile.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from store.last_good import Checkpoint

if TYPE_CHECKING:
    from collections.abc import Mapping

    from store.last_good import LastGood

NOTHING = Checkpoint(0, "", "")
"""The mark of a file that is empty or not there, as somebody accepted."""


class Checkpoints:
    """The marks of one data directory: those written down, and newer ones of this process."""

    def __init__(self, last_good: LastGood) -> None:
        self._last_good = last_good
        self._written: dict[str, Checkpoint] = {}
        self._fresh: dict[str, Checkpoint] = {}
        self._version: tuple[int, ...] | None = None
        self._spoilt = False
        self._lock = threading.Lock()

    def of(self, slug: str) -> Checkpoint | None:
        """Where a history file ended, as far as anybody knows."""
        with self._lock:
            return self._fresh.get(slug) or self._written.get(slug)

    @property
    def spoilt(self) -> bool:
        """Whether some were written down and neither this process nor the file can tell them."""
        return self._spoilt

    def any(self) -> bool:
        """Whether any history file held something."""
        with self._lock:
            return any(
                mark.end for known in (self._written, self._fresh) for mark in known.values()
            )

    def slugs(self, *, accepted: bool = False) -> list[str]:
        """Every history file that held something, or that somebody ``accepted`` to hold nothing."""
        with self._lock:
            marks = {**self._written, **self._fresh}
        return [slug for slug, mark in marks.items() if (mark == NOTHING) is accepted]

    def see(self, slug: str, mark: Checkpoint) -> None:
        """Take note of where a file ends that holds what was seen in it before."""
        with self._lock:
            known = self._fresh.get(slug) or self._written.get(slug)
            if known is None or mark.end > known.end:
                self._fresh[slug] = mark

    def refresh(self) -> None:
        """Take in what other processes wrote down; what somebody accepted counts above all.

        If they are gone or spoilt, or cannot be read any more, this process knows them still and
        writes them down again. One that knows none cannot: then they are spoilt, or the error.

        Raises:
            OSError: nothing is known, and there is something that cannot be read.
        """
        with self._lock:
            is_known = bool(self._written or self._fresh)
            try:
                version = self._last_good.marks_version()
                if version == self._version:
                    return
                written = self._last_good.marks()
                self._spoilt = False
            except ValueError:
                written = {}
                self._spoilt = self._spoilt or not is_known
            except OSError:
                if is_known:
                    return
                raise
            self._version = version
            if not written:
                self._fresh, self._written = {**self._written, **self._fresh}, {}
                return
            fresh = self._fresh.items()
            self._fresh = {s: m for s, m in fresh if written.get(s) == self._written.get(s)}
            self._written = written

    def write(self) -> None:
        """Write down the marks of this process, except where another has written meanwhile.

        That one's counts: it has read more of the file, or was told to accept what is there.
        Spoilt ones stay as they are, for a person to see.

        Raises:
            OSError: they could not be written.
        """
        with self._lock:
            fresh, known = dict(self._fresh), self._written
        if self._spoilt or not fresh:
            return

        def change(there: dict[str, Checkpoint]) -> dict[str, Checkpoint]:
            mine = {slug: m for slug, m in fresh.items() if there.get(slug) == known.get(slug)}
            return {**there, **mine}

        self._last_good.change_marks(change)
        self.refresh()

    def accept(self, marks: Mapping[str, Checkpoint]) -> None:
        """Put marks in place whatever was known, on an operator's word.

        Raises:
            OSError: they could not be written.
        """
        self._last_good.change_marks(lambda there: {**there, **marks})
        with self._lock:
            self._fresh = {slug: m for slug, m in self._fresh.items() if slug not in marks}
