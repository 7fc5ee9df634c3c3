"""The store: one current snapshot of a data directory, swapped for the next by one assignment.

Readers take :attr:`Store.snapshot` once and need no lock. Whatever changes (an appended poll, a
saved file, another process's work) goes through :meth:`Store.reload` or :meth:`Store.record`.
"""

from __future__ import annotations

import gc
import logging
import os
import sys
import threading
import time
import weakref
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from store.counting import Logs, deleted_slugs, history_files
from store.files import DataDirectoryError, Files
from store.history import History, HistoryError
from store.rankings import curation, readings
from store.rankings.names import Names
from store.records import Problem
from store.snapshot import rebuild, with_overview

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from store.files import Catalogue
    from store.history import Signature
    from store.positions import JsonPath
    from store.rankings.names import Claim
    from store.records import Poll
    from store.snapshot import Ledger, Snapshot

    Fault = tuple[str, Exception]
    Warm = Callable[[Snapshot, Callable[[], bool]], Sequence[Fault]]

log = logging.getLogger(__name__)

_GONE = "the data directory cannot be read any more; what it last held stays served"
_SEVERITIES = {"error": logging.ERROR, "warning": logging.WARNING, "notice": logging.INFO}

MOVES = 10
"""Names that stand for another product after an edit, of which the log tells one by one."""

FEW = 16
"""Entries up to which a mapping is taken for a record of larger things."""


class Store:
    """Holds the current snapshot of one data directory and makes the next.

    ``made_at`` is when the current snapshot was made and ``looked_at`` when the files were last
    found to be what it shows, both in Unix seconds by ``clock``. ``warm`` makes what requests may
    ask for, see :meth:`prepare`.
    """

    def __init__(
        self,
        directory: Path,
        warm: Warm | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.history = History(directory / "history")
        self.made_at = self.looked_at = 0.0
        self._files = Files(directory)
        self._warm = warm
        self._clock = clock
        self._reloading = threading.Lock()
        self._lock = threading.RLock()
        self._signatures: dict[str, Signature | Problem | None] = {}
        self._snapshot: Snapshot | None = None
        self._overview_due = False
        self._fault: Problem | None = None
        self._unmade: Problem | None = None
        self._unkept: Problem | None = None
        self._clashes: tuple[Problem, ...] = ()
        self._told: frozenset[Problem] = frozenset()

    @property
    def snapshot(self) -> Snapshot:
        """The current picture; the first use reads the data directory.

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
        found = (self._fault, self._unmade, self._unkept, self.history.spoilt_marks)
        faults = [fault for fault in found if fault]
        return (*faults, *sorted([*self.snapshot.problems, *self._clashes]))

    def reload(self, settle: Callable[[], object] | None = None) -> None:
        """Look at every file, rebuild what depends on those that changed, and swap.

        ``settle`` is handed to :meth:`Files.scan`; whoever records meanwhile does not wait for it.

        Raises:
            DataDirectoryError: there is no data directory that can be used, and never was since
                the start.
            HistoryError: the history cannot be looked into, and never could since the start.
        """
        with self._reloading:
            first = self._snapshot is None
            try:
                catalogue = self._files.scan(settle)
                if first:
                    catalogue.check_governed()
                with self._lock, _collector_paused() if first else nullcontext():
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
            self.looked_at = self._clock()
            self._tell()

    def keep_current(self, settle: Callable[[], object] | None = None) -> None:
        """Reload, come what may: a fault is logged once, is a problem, and is tried again."""
        try:
            self.reload(settle)
        except Exception as error:  # else one odd file would end all watching, unseen
            fault = Problem(".", 1, 1, f"the files could not be taken in: {type(error).__name__}")
            if fault != self._fault:
                log.exception("the files could not be taken in; the last good state stays served")
            self._fault = fault

    def keep(self) -> None:
        """Let what is good outlive this process: files, and where history ended (`.last-good`).

        To be called after a look that believed what it saw. Where it cannot be written is a
        problem, told once, that does no harm until a restart.
        """
        unkept = None
        with self._reloading:
            try:
                self._files.keep()
                self.history.keep_marks()
            except OSError as error:
                why = f"cannot be written: {error.strerror}; after a restart there is no last good"
                message = f"{why} version of a file that is broken then, and lost history is unseen"
                unkept = Problem(".last-good", 1, 1, message, "warning")
        self._unkept = unkept

    def prepare(self) -> None:
        """Make what requests may ask for, so that not even the first of them waits for it.

        What cannot be made is a problem, logged once. A snapshot that is no longer the current one
        is left for the one that is.
        """
        faults: Sequence[Fault] = ()
        warmed: Snapshot | None = None
        while self._warm and warmed is not self.snapshot:
            warmed = self.snapshot
            faults = self._warm(warmed, partial(self._is_current, warmed))
        self._tell_unmade(faults)

    def record(self, polls: Sequence[Poll], now: str) -> tuple[Poll, ...]:
        """Append polls of one category to history, then show them; see :meth:`History.append`."""
        recorded = append(self.history, self.snapshot.catalogue, polls, now)
        with self._lock:
            try:
                self._swap(self._next(self.snapshot.catalogue, {polls[0].slug}))
                self._overview_due = True
            except BaseException:
                self._signatures.pop(polls[0].slug, None)  # so that the next look takes them in
                raise
        return recorded

    def lines(self, ledger: Ledger, positions: Sequence[int]) -> list[bytes]:
        """The lines of history at these positions of a ledger, withheld texts replaced.

        Raises:
            HistoryError: a file cannot be read, or no longer holds what was read from it.
        """
        spans: dict[int, list[tuple[int, int]]] = {}
        for i in positions:
            spans.setdefault(ledger.file[i], []).append((ledger.start[i], ledger.end[i]))
        read = {
            file: iter(self.history.lines(ledger.files[file], wanted))
            for file, wanted in spans.items()
        }
        lines: list[bytes] = []
        for i in positions:
            line = next(read[ledger.file[i]])
            if line is None:
                file = ledger.files[ledger.file[i]]
                raise HistoryError(f"{file}.jsonl no longer holds all that was read from it")
            lines.append(ledger.withheld.get(i, line))
        return lines

    def flush(self) -> None:
        """Bring what is over all categories up to date, if it is behind."""
        with self._lock:
            if self._overview_due:
                self._swap_whole(self.snapshot)

    def _follow(self, catalogue: Catalogue) -> None:
        """Take in what changed in the files and in history, and what could not be read before."""
        known, found = self._signatures, self._found()
        changed = {slug for slug, _ in found.items() ^ known.items()}
        if self._snapshot is None or changed or catalogue is not self._snapshot.catalogue:
            self._signatures = found
            try:
                following = self._next(catalogue, changed)
                if self._snapshot and catalogue is not self._snapshot.catalogue:
                    _tell_edits(self._snapshot, following)
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
        snapshot = with_overview(snapshot)
        if self._snapshot and self._snapshot.overview.index.is_prepared:
            snapshot.overview.prepare()
        self._swap(snapshot)
        self._overview_due = False

    def _swap(self, snapshot: Snapshot) -> None:
        parts = list(_parts(self._snapshot))
        self._snapshot = snapshot
        self.made_at = self._clock()
        while parts:  # freed all at once, the last snapshot would stop every thread for 40 ms
            parts.pop(0)

    def _is_current(self, snapshot: Snapshot) -> bool:
        return snapshot is self._snapshot

    def _tell_unmade(self, faults: Sequence[Fault]) -> None:
        """Keep what could not be made as a problem, and log the first of it if that is new."""
        unmade = None
        if faults:
            name, error = faults[0]
            others = " and others" if len(faults) > 1 else ""
            why = f"{name}{others} cannot be made: {type(error).__name__}"
            unmade = Problem(".", 1, 1, why)
            if unmade != self._unmade:
                log.error("%s", why, exc_info=error)
        self._unmade = unmade

    def _tell(self) -> None:
        """Log every problem of the files that was not there at the last look."""
        problems = frozenset(self.problems) - {self._unmade}
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
        return rebuild(before, catalogue, deleted, names, fresh)

    def _read(self, slug: str, catalogue: Catalogue) -> Logs:
        logs = read_logs(self.history, slug, catalogue)
        for file, log in zip(logs.files, logs.logs, strict=True):
            if log.signature or log.unread:
                self._signatures[file] = log.signature or log.problems[0]
        return logs


def append(
    history: History, catalogue: Catalogue, polls: Sequence[Poll], now: str
) -> tuple[Poll, ...]:
    """Append polls of one category to its history; see :meth:`History.append`."""
    slug = polls[0].slug
    category = catalogue.categories.get(slug)
    files = history_files(slug, category, catalogue.categories) if category else [slug]
    return history.append(polls, now, withheld=catalogue.withheld, beside=files[:-1])


@contextmanager
def _collector_paused() -> Iterator[None]:
    """While everything is built for the first time, looking for garbage would take half of it."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


THRESHOLDS = gc.get_threshold()
"""The collector's, as they were when the process began; the last is for full collections."""

NEVER = 1_000_000
"""So many collections of younger objects do not happen between two looks."""

SWITCH_INTERVAL = sys.getswitchinterval()
"""Seconds for which a busy thread keeps the interpreter, as they were when the process began."""


@contextmanager
def _requests_first() -> Iterator[None]:
    """Let every other thread have the interpreter within a millisecond.

    Garbage is collected while it is young: a full collection would stop all threads. Always, the
    short interval would cost each request a tenth more.
    """
    sys.setswitchinterval(min(0.001, SWITCH_INTERVAL))
    gc.set_threshold(*THRESHOLDS[:2], NEVER)
    try:
        yield
    finally:
        gc.set_threshold(*THRESHOLDS)
        sys.setswitchinterval(SWITCH_INTERVAL)


def read_logs(history: History, slug: str, catalogue: Catalogue) -> Logs:
    """A category's history files as they are now."""
    category = catalogue.categories.get(slug)
    files = history_files(slug, category, catalogue.categories) if category else [slug]
    return Logs(tuple(files), tuple(history.read(file) for file in files))


def _tell_edits(before: Snapshot, after: Snapshot) -> None:
    """Log what an edit made of names and questions: warnings, which no server leaves out."""
    for message in reworded(before, after):
        log.warning("%s", message)
    held = [
        curation.addressed(
            {slug: reading.resolved for slug, reading in each.readings.items()},
            each.products,
            each.catalogue.products,
        )
        for each in (before, after)
    ]
    if moves := curation.moves(*held):
        told = "; ".join(move.told() for move in moves[:MOVES])
        more = f"; and {len(moves) - MOVES} more" if len(moves) > MOVES else ""
        log.warning("an edit moved names to other products: %s%s", told, more)


def claimed_at(claim: Claim, names: Names) -> JsonPath:
    """Where a product file makes a claim: its name, or one of its aliases."""
    product = names.products[claim.slug]
    if claim.title == product.name:
        return ("name",)
    return ("aliases", product.aliases.index(claim.title))


def name_clashes(names: Names, files: Files) -> Iterator[Problem]:
    """Every name or alias that more than one product file claims, at each of its places."""
    for claims in names.contested():
        for claim in claims:
            others = [f"products/{other.slug}.json" for other in claims if other.slug != claim.slug]
            yield files.problem_at(
                f"products/{claim.slug}.json",
                claimed_at(claim, names),
                f'"{claim.title}" is also claimed by {", ".join(sorted(set(others)))}; '
                "until one gives it up it belongs to neither, and ranks as a product of its own",
            )


def reworded(before: Snapshot, after: Snapshot) -> Iterator[str]:
    """What is to be said of every category whose question became another one."""
    for slug, board in after.boards.items():
        earlier = before.boards.get(slug)
        if board.next_question and earlier and earlier.next_question != board.next_question:
            yield (
                f"categories/{slug}.json: a new question: each assistant is due to be asked it "
                "(`flask check` says what that costs), and the answers to the one before stand "
                "until all have answered; if both mean the same, list that in former_questions"
            )


def _to_read_again(
    before: Snapshot | None,
    catalogue: Catalogue,
    deleted: set[str],
    names: Names,
    changed_history: set[str],
) -> set[str]:
    """The categories whose readings no longer follow from the files, deleted ones among them."""
    categories = catalogue.categories
    if before is None or (before.catalogue.withheld, before.catalogue.former_names) != (
        catalogue.withheld,
        catalogue.former_names,
    ):
        return {*categories, *deleted}
    old, times = before.catalogue.categories, before.catalogue.modified
    stale = {
        slug
        for slug, category in categories.items()
        if old.get(slug) != category
        or times.get(name := f"categories/{slug}.json") != catalogue.modified.get(name)
    }
    for slug in categories.keys() - stale:
        files = history_files(slug, categories[slug], categories)
        ledger = before.ledgers.get(slug)
        moved = ledger is not None and ledger.files != tuple(files)
        if moved or not changed_history.isdisjoint(files):
            stale.add(slug)
    known = before.ledgers.keys() - old.keys()
    stale |= (deleted - known) | (deleted & changed_history)
    if names is not before.names:
        stale |= {
            slug
            for slug, reading in before.readings.items()
            if slug in (categories.keys() | deleted) and not readings.still_holds(reading, names)
        }
    return stale


def _parts(whole: object) -> Iterator[object]:
    """A value and the larger things it is made of, outer before inner."""
    yield whole
    inner: Iterable[object] = ()
    if isinstance(whole, msgspec.Struct):
        inner = msgspec.structs.astuple(whole)
    elif isinstance(whole, dict) and len(whole) <= FEW:
        inner = whole.values()
    elif hasattr(whole, "__dict__"):
        inner = vars(whole).values()
    for part in inner:
        yield from _parts(part)


class Watcher:
    """Keeps a store current while it serves: one daemon thread that looks at the files.

    It starts with the process that serves, be it ``flask run`` or a worker of gunicorn, so that
    what is good is kept although nobody asks; elsewhere with the first request a process answers.
    It never runs in a command, and ends with its store. Times are in seconds.
    """

    def __init__(self, store: Store, every: float = 2.0, settle: float = 0.2) -> None:
        self._store = store
        self._times = (every, settle)
        self._process: int | None = None
        self._lock = threading.Lock()

    def ensure_running(self) -> None:
        """Start watching in this process, the data brought up to date first."""
        if self._process == os.getpid():
            return
        with self._lock:
            if self._process != os.getpid():
                self._process = os.getpid()
                self._store.keep_current()
                watched = (weakref.ref(self._store), *self._times)
                threading.Thread(target=_watch, args=watched, name="watcher", daemon=True).start()


def _watch(store: weakref.ref[Store], every: float, settle: float) -> None:
    """Look again and again, until nobody holds the store any more."""
    pause = threading.Event()
    frozen_at: float | None = None
    while held := store():
        with _requests_first():
            looked = frozen_at is not None  # the first time, what began this has looked
            if looked:
                held.keep_current(lambda: pause.wait(settle))
            held.prepare()
            if looked:
                held.keep()
            if held.made_at != frozen_at:
                gc.freeze()  # a snapshot has no cycles: it is freed when its last reader lets go
                frozen_at = held.made_at
        del held
        pause.wait(every)
