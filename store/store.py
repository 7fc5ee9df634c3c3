"""The store: one current snapshot of a data directory, swapped for the next by one assignment.

Readers take :attr:`Store.snapshot` once and need no lock. Whatever changes (an appended poll, a
saved file, another process's work) comes in by :meth:`Store.reload` alone, which a
:class:`Watcher` calls again and again in a process that serves.
"""

import logging
import os
import threading
import time
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from store.category_history import PollIndex, history_files
from store.data_file import JsonPath
from store.files import Catalogue, DataDirectoryError, Files
from store.history import History, HistoryError
from store.line_codec import redacted
from store.rankings.names import Names, Spelling
from store.records import Poll, Problem
from store.snapshot import Snapshot, derive

log = logging.getLogger(__name__)

EXPORTED = ".exported"
"""An empty file; its time is when `flask export` last published the data."""
_GONE = "the data directory cannot be read any more; what it last held stays served"
_SEVERITIES = {"error": logging.ERROR, "warning": logging.WARNING, "notice": logging.INFO}


class Store:
    """The current snapshot of one data directory, and the making of the next.

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
        self._contradictions: tuple[Problem, ...] = ()
        self._logged: frozenset[Problem] = frozenset()

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
        """Everything wrong: faults of the whole directory first, then by file and line."""
        faults = [fault for fault in (self._fault, self.history.fault) if fault]
        return (*faults, *sorted([*self.snapshot.problems, *self._contradictions]))

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
                self._advance(catalogue)
                self._fault = None
            except DataDirectoryError:
                if first:
                    raise
                self._fault = Problem(".", 1, 1, _GONE)
            except HistoryError as error:
                if first:
                    raise
                self._fault = Problem("history", 1, 1, f"{error}; what it last held stays served")
            self.looked_at = time.time()
            with suppress(OSError):
                self.exported_at = (self.directory / EXPORTED).lstat().st_mtime
            self._log_new_problems()

    def keep_current(self, *, settled: bool = False, prepare: bool = False) -> None:
        """Reload and raise nothing.

        An unexpected error is logged once, listed among the problems, and the next look tries
        again. With ``prepare`` no search waits for its index, now or after any later change.
        """
        before = self._fault
        try:
            self.reload(settled=settled)
            if prepare:
                self.snapshot.summary.index.prepare()
                self.snapshot.summary.prepare_pages()  # of what is served: no edit waits for these
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

    def lines(self, index: PollIndex, positions: Sequence[int]) -> list[bytes]:
        """Return the lines of history at these positions of an index, withheld texts replaced.

        Raises:
            HistoryError: a file cannot be read, or no longer holds what was read from it.
        """
        texts: dict[int, bytes] = {}
        for file in {index.file[i] for i in positions}:
            own = [i for i in positions if index.file[i] == file]
            places = [(index.start[i], index.end[i], f"{index.ids[i]:016x}") for i in own]
            texts |= zip(own, self.history.lines(index.files[file], places), strict=True)
        withheld = index.withheld
        return [redacted(texts[i], withheld[i]) if i in withheld else texts[i] for i in positions]

    def _advance(self, catalogue: Catalogue) -> None:
        """Derive the snapshot of the files as they are, and swap it in whole."""
        before = self._snapshot
        following = derive(before, catalogue, self.history)
        if before is following:
            return
        if before and catalogue is not before.catalogue:
            _tell_edits(before, following)
        if before and before.summary.index.is_prepared:
            following.summary.index.prepare()
        self._snapshot, self.made_at = following, time.time()
        self._contradictions = (
            *name_clashes(following.names, self._files),
            *find_unknown_withheld(
                following.unknown_withheld,
                self._files,
                is_damaged=any(following.damage.values()),
            ),
        )

    def _log_new_problems(self) -> None:
        """Log every problem of the files that was not there at the last look."""
        problems = frozenset(self.problems)
        for problem in sorted(problems - self._logged):
            log.log(_SEVERITIES[problem.severity], "%s", problem)
        self._logged = problems


def append(
    history: History, catalogue: Catalogue, polls: Sequence[Poll], now: str
) -> tuple[Poll, ...]:
    """Append polls of one category to its history; see :meth:`History.append`."""
    files = history_files(polls[0].slug, catalogue.categories)
    return history.append(polls, now, withheld=catalogue.withheld, former_files=files[:-1])


def name_clashes(names: Names, files: Files) -> Iterator[Problem]:
    """Yield a problem for every name that several product files, or ``not_same_as``, claim too."""
    for claims in names.contested_keys():
        for claim in claims:
            others = {f"products/{other.slug}.json" for other in claims if other.slug != claim.slug}
            product = names.products[claim.slug]
            path: JsonPath = ("name",)
            if claim.title != product.name:
                path = ("aliases", product.aliases.index(claim.title))
            yield files.problem_at(
                f"products/{claim.slug}.json",
                path,
                f'"{claim.title}" is also claimed by {", ".join(sorted(others))}; '
                "until one gives it up it belongs to neither, and ranks as a product of its own",
            )
    for slug, product in names.products.items():
        for i, alias in enumerate(product.aliases):
            if names.is_excluded(slug, alias):
                message = f'"{alias}" is in not_same_as, too, and counts as an alias; take one out'
                yield files.problem_at(f"products/{slug}.json", ("aliases", i), message)


def find_unknown_withheld(
    ids: Iterable[str], files: Files, *, is_damaged: bool
) -> Iterator[Problem]:
    """Yield a problem for each of these ids in withheld.json, which no sound line has."""
    doubt = ", as far as lines are sound: keep it if a damaged one may be that poll"
    for id_ in ids:
        message = f"no poll in history has the id {id_}{doubt if is_damaged else ''}"
        yield files.problem_at("withheld.json", ("withheld", id_), message, "warning")


def _tell_edits(before: Snapshot, after: Snapshot) -> None:
    """Log what an edit did to questions and names: warnings, which no server leaves out."""
    for slug, board in after.leaderboards.items():
        earlier = before.leaderboards.get(slug)
        if board.next_question and earlier and earlier.next_question != board.next_question:
            log.warning(
                "categories/%s.json: a new question: each assistant is due to be asked it "
                "(`flask check` says what that costs), and the answers to the one before stand "
                "until all have answered; if both mean the same, list that in former_questions",
                slug,
            )
    old, new = _addresses(before), _addresses(after)
    moved = {
        name
        for (category, (name, domain)), slug in old.items()
        if new.get((category, (name, domain)), slug) != slug
    }
    if moved:
        names = "1 name" if len(moved) == 1 else f"{len(moved):,} names"
        log.warning("an edit moved %s to other products; see `flask check`", names)


def _addresses(snapshot: Snapshot) -> dict[tuple[str, Spelling], str]:
    """Return by category and spelling the address of the product that it stands for, if any."""
    slugs = {id_: profile.slug for id_, profile in snapshot.products.items()}
    slugs |= {slug: slug for slug in snapshot.catalogue.products}
    return {
        (category, spelling): slugs[id_]
        for category, aggregate in snapshot.aggregates.items()
        for spelling, id_ in aggregate.resolved.items()
        if id_ in slugs
    }


class Watcher:
    """One daemon thread that looks at the files of a store.

    It starts when ``flask run`` or a gunicorn worker starts, so that good files are remembered
    before anybody asks; under other servers with the first request. It never runs in a command,
    and ends with its store. Times are in seconds.
    """

    def __init__(self, store: Store, every: float = 0.5, rest: float = 0.2) -> None:
        self._store = store
        self._times = (every, rest)
        self._pid: int | None = None
        self._lock = threading.Lock()

    def ensure_running(self) -> None:
        """Start watching in this process, the data brought up to date first."""
        if self._pid == os.getpid():
            return
        with self._lock:
            if self._pid != os.getpid():
                self._pid = os.getpid()
                self._store.keep_current()
                arguments = (weakref.ref(self._store), *self._times)
                threading.Thread(target=_watch, args=arguments, name="watcher", daemon=True).start()


def _watch(reference: weakref.ref[Store], every: float, rest: float) -> None:
    """Look again and again, until nobody holds the store any more."""
    while store := reference():
        appended = store.appended
        appended.clear()
        store.keep_current(settled=True, prepare=True)
        del store  # while this thread rests it must not keep the store alive
        time.sleep(rest)  # polls appended meanwhile share a derivation, editors finish
        appended.wait(every - rest)
