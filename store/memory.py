"""The store: one current snapshot of a data directory, swapped for the next by one assignment.

Readers take :attr:`Store.snapshot` once and need no lock. Whatever changes (an appended poll, a
saved file, another process's work) goes through :meth:`Store.reload` or :meth:`Store.record`.
"""

from __future__ import annotations

import logging
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from store.counting import deleted_slugs, history_files, latest_time, read_logs, states_of
from store.edits import name_clashes, tell_edits
from store.files import DataDirectoryError, Files
from store.history import History, HistoryError
from store.line_codec import redacted
from store.rankings import aggregates
from store.rankings.names import Names
from store.rebuilding import rebuild, with_summary
from store.records import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime
    from pathlib import Path

    from store.disk import Signature
    from store.files import Catalogue
    from store.history import Log
    from store.rankings.poll_states import PollStates
    from store.records import Poll
    from store.snapshot import LineIndex, Snapshot

log = logging.getLogger(__name__)

EXPORTED = ".exported"
"""An empty file; its time is when `flask export` last published the data."""
_GONE = "the data directory cannot be read any more; what it last held stays served"
_SEVERITIES = {"error": logging.ERROR, "warning": logging.WARNING, "notice": logging.INFO}


class Store:
    """Holds the current snapshot of one data directory and makes the next.

    ``made_at`` is when the current snapshot was made and ``looked_at`` when the files were last
    found to be what it shows, both in Unix seconds; ``exported_at`` is when they were last
    published as a tree of files, as far as that was noted.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.history = History(directory / "history")
        self.made_at = self.looked_at = 0.0
        self.exported_at: float | None = None
        self._files = Files(directory)
        self._reloading = threading.Lock()
        self._lock = threading.RLock()
        self._signatures: dict[str, Signature | Problem | None] = {}
        self._snapshot: Snapshot | None = None
        self._summary_due = False
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

    def reload(self, debounce: Callable[[], object] | None = None) -> None:
        """Look at every file, rebuild what depends on those that changed, and swap.

        ``debounce`` is handed to :meth:`Files.scan`; recording does not wait for it.

        Raises:
            DataDirectoryError: there is no data directory that can be used, and never was since
                the start.
            HistoryError: the history cannot be looked into, and never could since the start.
        """
        with self._reloading:
            first = self._snapshot is None
            try:
                catalogue = self._files.scan(debounce)
                if first:
                    catalogue.check_governing()
                with self._lock:
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

    def keep_current(
        self, debounce: Callable[[], object] | None = None, *, prepare: bool = False
    ) -> None:
        """Reload, come what may: a fault is logged once, is a problem, and is tried again.

        With ``prepare`` no search waits for its index, now or after any later change.
        """
        before = self._fault
        try:
            self.reload(debounce)
            if prepare:
                self.snapshot.summary.prepare()
        except Exception as error:  # else one odd file would end all watching, unseen
            fault = Problem(".", 1, 1, f"the files could not be taken in: {type(error).__name__}")
            if fault != before:
                log.exception("the files could not be taken in; the last good state stays served")
            self._fault = fault

    def record(self, polls: Sequence[Poll], now: str) -> tuple[Poll, ...]:
        """Append polls of one category to history, then show them; see :meth:`History.append`."""
        recorded = append(self.history, self.snapshot.catalogue, polls, now)
        with self._lock:
            try:
                self._swap(self._next(self.snapshot.catalogue, {polls[0].slug}))
                self._summary_due = True
            except BaseException:
                self._signatures.pop(polls[0].slug, None)  # so that the next look takes them in
                raise
        return recorded

    def poll_states(self, slug: str, catalogue: Catalogue, now: datetime) -> PollStates:
        """How polling of a category stands; what others appended is read first.

        Raises:
            HistoryError: see :func:`store.counting.states_of`.
        """
        with self._lock:
            snapshot = self.snapshot
            line_index, states = snapshot.line_indexes.get(slug), snapshot.polled.get(slug)
            known = [self._signatures.get(file) for file in line_index.files] if line_index else []
        is_current = snapshot.catalogue is catalogue
        if is_current and line_index and states and states.latest_time <= latest_time(now):
            found = [self.history.signature(file) for file in line_index.files]
            if None not in found and found == known:
                return states
        return states_of(self.history, slug, catalogue, now)

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

    def flush(self) -> None:
        """Bring what is over all categories up to date, if it is behind."""
        with self._lock:
            if self._summary_due:
                self._swap_whole(self.snapshot)

    def _follow(self, catalogue: Catalogue) -> None:
        """Take in what changed in the files and in history, and what could not be read before."""
        known, found = self._signatures, self._found()
        changed = {slug for slug, _ in found.items() ^ known.items()}
        before = self._snapshot
        is_closed_anew = before and before.ledger is not self.history.ledger
        if not before or changed or is_closed_anew or catalogue is not before.catalogue:
            self._signatures = found
            try:
                following = self._next(catalogue, changed)
                if self._snapshot and catalogue is not self._snapshot.catalogue:
                    tell_edits(self._snapshot, following)
                self._swap_whole(following)
            except BaseException:
                self._signatures = known
                raise
            self._clashes = tuple(name_clashes(self.snapshot.names, self._files))
        self.flush()

    def _found(self) -> dict[str, Signature | Problem | None]:
        """The signature of every history file, or why one still cannot be read; else ``None``."""
        unread = [file for file, known in self._signatures.items() if isinstance(known, Problem)]
        found = self.history.signatures()
        logs = ((file, self.history.read(file)) for file in unread)
        still = {file: log.problems[0] for file, log in logs if log.unread}
        return {**dict.fromkeys(self.history.remembered()), **found, **still}

    def _swap_whole(self, snapshot: Snapshot) -> None:
        """Swap in a snapshot with what is over all categories, so that no link dies between two."""
        snapshot = with_summary(snapshot)
        if self._snapshot and self._snapshot.summary.index.is_prepared:
            snapshot.summary.prepare()
        self._swap(snapshot)
        self._summary_due = False

    def _swap(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self.made_at = time.time()

    def _tell(self) -> None:
        """Log every problem of the files that was not there at the last look."""
        problems = frozenset(self.problems)
        for problem in sorted(problems - self._told):
            log.log(_SEVERITIES[problem.severity], "%s", problem)
        self._told = problems

    def _next(self, catalogue: Catalogue, changed_history: set[str]) -> Snapshot:
        """The snapshot that follows from these files and this much new history."""
        before = self._snapshot
        if before and before.catalogue.products == catalogue.products:
            names = before.names
        else:
            names = Names(catalogue.products)
        deleted = deleted_slugs(catalogue, self._signatures.keys() | changed_history)
        stale = _to_read_again(before, catalogue, deleted, names, changed_history)
        fresh = ((slug, self._read(slug, catalogue)) for slug in sorted(stale))
        return rebuild(before, catalogue, self.history.ledger, deleted, names, fresh)

    def _read(self, slug: str, catalogue: Catalogue) -> tuple[Log, ...]:
        logs = read_logs(self.history, slug, catalogue)
        for log in logs:
            if log.signature or log.unread:
                self._signatures[log.file] = log.signature or log.problems[0]
        return logs


def append(
    history: History, catalogue: Catalogue, polls: Sequence[Poll], now: str
) -> tuple[Poll, ...]:
    """Append polls of one category to its history; see :meth:`History.append`."""
    files = history_files(polls[0].slug, catalogue.categories)
    return history.append(polls, now, withheld=catalogue.withheld, beside=files[:-1])


def _to_read_again(
    before: Snapshot | None,
    catalogue: Catalogue,
    deleted: set[str],
    names: Names,
    changed_history: set[str],
) -> set[str]:
    """The categories, deleted ones among them, that no longer follow from the files as read."""
    categories = catalogue.categories
    every = {*categories, *deleted}
    if before is None:
        return every
    old = before.catalogue
    if (old.withheld, old.former_names) != (catalogue.withheld, catalogue.former_names):
        return every
    stale = {
        slug
        for slug, category in categories.items()
        if slug in changed_history or not changed_history.isdisjoint(category.former_slugs)
    }
    if catalogue is not old:
        stale |= {
            slug
            for slug, category in categories.items()
            if old.categories.get(slug) != category
            or history_files(slug, old.categories) != history_files(slug, categories)
        }
    stale |= deleted & (changed_history | old.categories.keys())
    stale |= deleted - before.line_indexes.keys()
    if names is not before.names:
        stale |= {
            slug
            for slug, aggregate in before.aggregates.items()
            if slug in every and not aggregates.still_holds(aggregate, names)
        }
    return stale
