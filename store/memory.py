"""The store: one current snapshot of a data directory, swapped for the next by one assignment.

Readers take :attr:`Store.snapshot` once and need no lock. Whatever changes (an appended poll, a
saved file, another process's work) goes through :meth:`Store.reload` or :meth:`Store.record`.
"""

from __future__ import annotations

import gc
import logging
import os
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from store.files import DataDirectoryError, Files
from store.history import History
from store.rankings import readings
from store.rankings.names import Names
from store.records import Problem
from store.snapshot import Logs, history_files, rebuild, with_overview

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from store.files import Catalogue
    from store.history import Signature
    from store.records import Poll
    from store.snapshot import Ledger, Publish, Snapshot

log = logging.getLogger(__name__)


class Store:
    """Holds the current snapshot of one data directory and makes the next."""

    def __init__(self, directory: Path, publish: Publish) -> None:
        self.history = History(directory / "history")
        self._files = Files(directory)
        self._publish = publish
        self._lock = threading.RLock()
        self._signatures: dict[str, Signature] = {}
        self._snapshot: Snapshot | None = None
        self._overview_due = False
        self._lost: Problem | None = None
        self._clashes: tuple[Problem, ...] = ()

    @property
    def snapshot(self) -> Snapshot:
        """The current picture; the first use reads the data directory.

        Raises:
            DataDirectoryError: there is no data directory to read.
        """
        if self._snapshot is None:
            self.reload()
        assert self._snapshot is not None  # noqa: S101 - reload has set it or raised
        return self._snapshot

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What keeps the service from being what its files say; empty when all is well."""
        lost = (self._lost,) if self._lost else ()
        return (*lost, *sorted([*self.snapshot.problems, *self._clashes]))

    def reload(self) -> None:
        """Look at every file, rebuild what depends on those that changed, and swap.

        Raises:
            DataDirectoryError: there is no data directory, and never was since the start.
        """
        with self._lock:
            try:
                catalogue = self._files.scan()
            except DataDirectoryError as error:
                if self._snapshot is None:
                    raise
                self._lost = Problem(".", 1, 1, str(error))
                return
            self._lost = None
            before, found = self._snapshot, self.history.signatures()
            changed = {s for s, _ in found.items() ^ self._signatures.items()}
            if before is None or changed or catalogue is not before.catalogue:
                self._signatures = found
                self._advance(catalogue, changed)
            self.flush()

    def record(self, polls: Sequence[Poll], now: str) -> tuple[Poll, ...]:
        """Append polls of one category to history, then show them; see :meth:`History.append`."""
        recorded = self.history.append(polls, now)
        with self._lock:
            self._advance(self.snapshot.catalogue, {polls[0].slug})
        return recorded

    def lines(self, ledger: Ledger, positions: Sequence[int]) -> list[bytes]:
        """The lines of history at these positions of a ledger, withheld texts replaced.

        A line that is no longer in its file is left out, as the next snapshot will leave it out.
        """
        spans: dict[int, list[tuple[int, int]]] = {}
        for i in positions:
            spans.setdefault(ledger.file[i], []).append((ledger.start[i], ledger.end[i]))
        read = {
            file: iter(self.history.lines(ledger.files[file], wanted))
            for file, wanted in spans.items()
        }
        found = ((i, next(read[ledger.file[i]])) for i in positions)
        return [ledger.withheld.get(i, line) for i, line in found if line is not None]

    def flush(self) -> None:
        """Bring what is over all categories up to date, if it is behind."""
        with self._lock:
            if self._overview_due:
                with _collector_paused():
                    self._snapshot = with_overview(self.snapshot, self._publish)
                self._overview_due = False

    def _advance(self, catalogue: Catalogue, changed_history: set[str]) -> None:
        """Swap in the snapshot that follows from these files and this much new history."""
        before = self._snapshot
        if before and before.catalogue.products == catalogue.products:
            names = before.names
        else:
            names = Names(catalogue.products)
        if before is None or catalogue is not before.catalogue:
            self._clashes = tuple(name_clashes(names, self._files))
        stale = _to_read_again(before, catalogue, names, changed_history)
        fresh = ((slug, self._read(slug, catalogue)) for slug in sorted(stale))
        with _collector_paused():
            self._snapshot = rebuild(before, catalogue, names, fresh, self._publish)
        self._overview_due = True

    def _read(self, slug: str, catalogue: Catalogue) -> Logs:
        files = history_files(slug, catalogue.categories[slug], catalogue.categories)
        logs = [self.history.read(file) for file in files]
        for file, log in zip(files, logs, strict=True):
            if log.signature:
                self._signatures[file] = log.signature
        return Logs(tuple(files), tuple(logs))


@contextmanager
def _collector_paused() -> Iterator[None]:
    """While much is built and nothing dropped, looking for garbage would take half the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def name_clashes(names: Names, files: Files) -> Iterator[Problem]:
    """Every name or alias that more than one product file claims, at each of its places."""
    for claims in names.contested():
        for claim in claims:
            others = [f"products/{other.slug}.json" for other in claims if other.slug != claim.slug]
            product = names.products[claim.slug]
            place: tuple[str | int, ...] = ("name",)
            if claim.title != product.name:
                place = ("aliases", product.aliases.index(claim.title))
            yield files.problem_at(
                f"products/{claim.slug}.json",
                place,
                f'"{claim.title}" is also claimed by {", ".join(sorted(set(others)))}; '
                "until one gives it up it belongs to neither",
            )


def _to_read_again(
    before: Snapshot | None, catalogue: Catalogue, names: Names, changed_history: set[str]
) -> set[str]:
    """The categories whose readings no longer follow from the files."""
    categories = catalogue.categories
    if before is None or before.catalogue.withheld != catalogue.withheld:
        return set(categories)
    old, times = before.catalogue.categories, before.catalogue.modified
    stale = {
        slug
        for slug, category in categories.items()
        if old.get(slug) != category
        or times.get(name := f"categories/{slug}.json") != catalogue.modified.get(name)
    }
    for slug in categories.keys() - stale:
        files = history_files(slug, categories[slug], categories)
        if not changed_history.isdisjoint(files) or before.ledgers[slug].files != tuple(files):
            stale.add(slug)
    if names is not before.names:
        stale |= {
            slug
            for slug, reading in before.readings.items()
            if slug in categories and not readings.still_holds(reading, names)
        }
    return stale


class Watcher:
    """Keeps a store current while it serves: one daemon thread that looks at the files.

    It starts with the first request a process answers, so that it also runs in the workers of a
    server that forks, and never in a command.
    """

    def __init__(self, store: Store, every: float = 2.0) -> None:
        self._store = store
        self._every = every
        self._process: int | None = None
        self._lock = threading.Lock()

    def ensure_running(self) -> None:
        """Start watching in this process, the data brought up to date first."""
        if self._process == os.getpid():
            return
        with self._lock:
            if self._process != os.getpid():
                self._process = os.getpid()
                self._look()
                threading.Thread(target=self._watch, name="watcher", daemon=True).start()

    def _watch(self) -> None:
        pause = threading.Event()
        while not pause.wait(self._every):
            self._look()

    def _look(self) -> None:
        """One look; a fault of the machine is logged and the next look tries again."""
        try:
            self._store.reload()
        except (OSError, MemoryError):
            log.exception("the data directory could not be read; trying again")
