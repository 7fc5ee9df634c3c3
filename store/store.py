"""The store: one current snapshot of a data directory, swapped for the next by one assignment.

Readers take :attr:`Store.snapshot` once and need no lock. Whatever changes (an appended poll, a
saved file, another process's work) comes in by :meth:`Store.reload` alone.
"""

from __future__ import annotations

import logging
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from store.counting import history_files
from store.edits import name_clashes, tell_edits
from store.files import DataDirectoryError, Files
from store.history import History, HistoryError
from store.line_codec import redacted
from store.records import Problem
from store.snapshot import Histories, derive

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from store.counting import LineIndex
    from store.files import Catalogue
    from store.records import Poll
    from store.snapshot import Snapshot

log = logging.getLogger(__name__)

EXPORTED = ".exported"
"""An empty file; its time is when `flask export` last published the data."""
_GONE = "the data directory cannot be read any more; what it last held stays served"
_SEVERITIES = {"error": logging.ERROR, "warning": logging.WARNING, "notice": logging.INFO}


class Store:
    """Holds the current snapshot of one data directory and makes the next.

    ``made_at`` is when the current snapshot was made and ``looked_at`` when the files were last
    found to be what it shows, both in Unix seconds; ``exported_at`` is when they were last
    published as a tree of files, as far as that was noted. ``appended`` is set when this process
    has appended polls.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.history = History(directory / "history")
        self.made_at = self.looked_at = 0.0
        self.exported_at: float | None = None
        self.appended = threading.Event()
        self._files = Files(directory)
        self._looking = threading.Lock()
        self._snapshot: Snapshot | None = None
        self._fault: Problem | None = None
        self._clashes: tuple[Problem, ...] = ()
        self._told: frozenset[Problem] = frozenset()

    @property
    def snapshot(self) -> Snapshot:
        """The current snapshot; the first use reads the data directory.

        Raises:
            DataDirectoryError: there is no data directory that can be used.
            HistoryError: the history cannot be looked into.
        """
        if self._snapshot is None:
            self.reload()
        assert self._snapshot is not None  # noqa: S101 - reload has set it or raised
        return self._snapshot

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What keeps the service from being what its files say; empty when all is well."""
        found = (self._fault, self.history.fault)
        faults = [fault for fault in found if fault]
        return (*faults, *sorted([*self.snapshot.problems, *self._clashes]))

    def reload(self, *, settled: bool = False) -> None:
        """Look at every file, derive what follows from them, and swap.

        One look at a time; recording waits for none. See :meth:`Files.scan` for ``settled``.

        Raises:
            DataDirectoryError: there is no data directory that can be used, and never was since
                the start.
            HistoryError: the history cannot be looked into, and never could since the start.
        """
        with self._looking:
            first = self._snapshot is None
            try:
                catalogue = self._files.scan(settled=settled)
                if first:
                    catalogue.check_governing()
                self._follow(catalogue)
                self._fault = None
            except DataDirectoryError as error:
                if first:
                    raise
                if self._fault is None:
                    log.error("%s", error)  # noqa: TRY400 - a sentence, not a trace
                self._fault = Problem(".", 1, 1, _GONE)
            except HistoryError as error:
                if first:
                    raise
                self._fault = Problem("history", 1, 1, f"{error}; what it last held stays served")
            self.looked_at = time.time()
            with suppress(OSError):
                self.exported_at = (self.directory / EXPORTED).lstat().st_mtime
            self._tell()

    def keep_current(self, *, settled: bool = False, prepare: bool = False) -> None:
        """Reload, come what may: a fault is logged once, is a problem, and is tried again.

        With ``prepare`` no search waits for its index, now or after any later change.
        """
        before = self._fault
        try:
            self.reload(settled=settled)
            if prepare:
                self.snapshot.summary.prepare()
        except Exception as error:  # else one odd file would end all watching, unseen
            fault = Problem(".", 1, 1, f"the files could not be taken in: {type(error).__name__}")
            if fault != before:
                log.exception("the files could not be taken in; the last good state stays served")
            self._fault = fault

    def record(self, polls: Sequence[Poll], now: str) -> tuple[Poll, ...]:
        """Append polls of one category to history; see :meth:`History.append`.

        The next look shows them; who waits for :attr:`appended` looks at once.
        """
        recorded = append(self.history, self.snapshot.catalogue, polls, now)
        self.appended.set()
        return recorded

    def lines(self, line_index: LineIndex, positions: Sequence[int]) -> list[bytes]:
        """The lines of history at these positions of an index, withheld texts replaced.

        Raises:
            HistoryError: a file cannot be read, or no longer holds what was read from it.
        """
        spans: dict[int, list[tuple[int, int]]] = {}
        for i in positions:
            spans.setdefault(line_index.file[i], []).append(
                (line_index.start[i], line_index.end[i])
            )
        read = {
            file: iter(self.history.lines(line_index.files[file], wanted))
            for file, wanted in spans.items()
        }
        withheld, lines = (
            line_index.withheld,
            ((i, next(read[line_index.file[i]])) for i in positions),
        )
        return [redacted(line, withheld[i]) if i in withheld else line for i, line in lines]

    def _follow(self, catalogue: Catalogue) -> None:
        """Derive the snapshot of the files as they are, and swap it in whole."""
        before = self._snapshot
        following = derive(before, catalogue, Histories.of(self.history))
        if before is following:
            return
        if before and catalogue is not before.catalogue:
            tell_edits(before, following)
        if before and before.summary.index.is_prepared:
            following.summary.prepare()
        self._swap(following)
        self._clashes = tuple(name_clashes(following.names, self._files))

    def _swap(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self.made_at = time.time()

    def _tell(self) -> None:
        """Log every problem of the files that was not there at the last look."""
        problems = frozenset(self.problems)
        for problem in sorted(problems - self._told):
            log.log(_SEVERITIES[problem.severity], "%s", problem)
        self._told = problems


def append(
    history: History, catalogue: Catalogue, polls: Sequence[Poll], now: str
) -> tuple[Poll, ...]:
    """Append polls of one category to its history; see :meth:`History.append`."""
    files = history_files(polls[0].slug, catalogue.categories)
    return history.append(polls, now, withheld=catalogue.withheld, beside=files[:-1])
