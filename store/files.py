"""The hand-edited files: versioned JSON in, records or problems out. Nobody else opens them.

A file that cannot be used is a :class:`Problem` with file, line and column; the last good version
of it stays in use, and nothing a curator types can raise here. The same reading serves the
server and ``flask check``.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from store.claims import Claim, claims_of, disputed
from store.data_file import (
    FOLDERS,
    REQUIRED,
    SINGLE,
    UNREAD,
    Loaded,
    load,
    may_be_named,
    problem_in,
    slug_of,
    understand,
    unusable,
)
from store.last_good import LastGood, unreadable
from store.listing import MISSING, Listing, Signature, look_into, stable
from store.records import (
    Assistant,
    Category,
    DataFile,
    Models,
    Problem,
    Product,
    Site,
    Synonyms,
    Topic,
    Topics,
    Withheld,
    Withholding,
    Words,
    WrittenExperiment,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from store import json_positions
    from store.last_good import Version
    from store.records import Severity

CRITICAL = (*REQUIRED, "withheld.json")
"""What every answer follows from: without a good version of each nothing is served or polled."""

_UNSAID = (
    "the answers of a sample assistant are invented, and site.json does not say so: "
    'write "sample": true there, or ask a real assistant'
)
_WRONGLY_SAID = (
    'site.json says "sample": true, and so that the answers of this real assistant are invented; '
    "take it out there"
)

Record = TypeVar("Record", bound=DataFile)
_WITHHELD_IS_MISSING = (
    "the file is missing, and it withheld polls; put it back, or write one with no entries if that "
    "is meant"
)


class DataDirectoryError(Exception):
    """There is no data directory that can be used; the sentence says what to do."""


class Catalogue(Struct, frozen=True):
    """What the hand-edited files say. Slugs are file names.

    ``files`` names the files that are there, those that cannot be used among them.
    ``without_critical`` are problems of critical files of which no good version is known.
    ``disputed`` are category slugs that several unused files claim, and those files' own.
    ``words_from`` is the notice that goes with ``words``.
    """

    site: Site
    assistants: tuple[Assistant, ...]
    categories: Mapping[str, Category]
    products: Mapping[str, Product]
    labs: Mapping[str, WrittenExperiment]
    synonyms: tuple[tuple[str, ...], ...]
    words: tuple[str, ...]
    withheld: Mapping[str, Withholding]
    files: frozenset[str]
    problems: tuple[Problem, ...]
    without_critical: tuple[Problem, ...] = ()
    disputed: Mapping[str, Problem] = {}
    topics: tuple[Topic, ...] = ()
    words_from: str = ""

    @property
    def critical_errors(self) -> tuple[Problem, ...]:
        """The errors in critical files, whether a good version is in use or not."""
        found = (p for p in self.problems if p.file in CRITICAL and p.severity == "error")
        return tuple(found)

    def check_critical(self) -> None:
        """See that a good version of every critical file is in use.

        Raises:
            DataDirectoryError: nothing that follows from these files may be shown or asked.
        """
        if self.without_critical:
            raise DataDirectoryError(
                f"{self.without_critical[0]}; no good version of it is known, and nothing can be "
                "shown or asked without one"
            )

    def fault_of_category(self, slug: str) -> Problem | None:
        """Why a category is not there although nobody deleted it."""
        if slug in self.disputed:
            return self.disputed[slug]
        files = (f"categories/{slug}.json", "categories") if slug not in self.categories else ()
        errors = (p for p in self.problems if p.severity == "error")
        return next((p for p in errors if p.file in files), None)

    @property
    def former_names(self) -> dict[str, str]:
        """The present name of every assistant that had another one."""
        return {former: a.name for a in self.assistants for former in a.former_names}


class Files:
    """The hand-edited files of one data directory, re-read only where they changed."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._last_good = LastGood(directory)
        self._seen: dict[str, Loaded] = {}
        self._used: dict[str, Loaded] = {}
        self._disputed: dict[str, Problem] = {}
        self._odd: tuple[Problem, ...] = ()
        self._catalogue: Catalogue | None = None
        self._kept: dict[str, Version] | None = None
        self._kept_of: Catalogue | None = None

    def scan(self, debounce: Callable[[], object] | None = None) -> Catalogue:
        """Look at every file; the same object comes back when nothing changed.

        With ``debounce``, which waits a moment, a file that changed is believed only when it looks
        the same before and after: editors empty files, rename them and write them in pieces. One
        that does not is taken as it was, until the next scan.

        Raises:
            DataDirectoryError: the directory is not there, or holds none of our files, or nobody
                can say what was last good of them.
        """
        found = self._list()
        known = {name: seen.signature for name, seen in self._seen.items()}
        if debounce and found.files != known:
            debounce()
            found = stable(found, self._list(), known)
        looked = {
            name: self._look(name, signature, calm=debounce is not None)
            for name, signature in sorted(found.files.items())
        }
        seen = {name: seen for name, seen in looked.items() if seen}
        if not self._catalogue or seen != self._seen or found.problems != self._odd:
            self._used, self._odd = self._undisputed(seen), found.problems
            self._seen = seen
            self._catalogue = self._gather()
        return self._catalogue

    def keep(self) -> None:
        """Let the versions in use outlive this process; only what changed is written.

        To be called after a look that believed what it saw: a file that it found deleted loses its
        copy.

        Raises:
            OSError: a copy could not be written.
        """
        is_there = self._last_good.is_there()
        if self._catalogue is self._kept_of and is_there:
            return
        catalogue, seen = self._catalogue, self._used
        if self._kept is None or not is_there:
            self._kept = self._last_good.versions(FOLDERS)
        good = {name: each.copy for name, each in seen.items() if each.record}
        changed = {n: copy for n, copy in good.items() if self._kept.get(n) != copy.version}
        gone = self._kept.keys() - seen.keys()
        if changed or gone:
            self._last_good.keep(changed, gone)
            kept = {name: copy.version for name, copy in good.items()}
            self._kept = {n: v for n, v in {**self._kept, **kept}.items() if n not in gone}
        self._kept_of = catalogue

    def _list(self) -> Listing:
        """What is there now; a folder that cannot be looked into counts as it was."""
        found = look_into(self._directory, SINGLE, FOLDERS, REQUIRED)
        if all(signature == MISSING for signature in found.files.values()):
            raise DataDirectoryError(nothing_in(self._directory))
        if "" in found.unlisted and self._catalogue is None:
            raise DataDirectoryError(f"{self._directory}: {found.problems[0].message}")
        if self._withheld_before():
            found.files.setdefault("withheld.json", MISSING)
        problems = [*found.problems]
        for folder in found.unlisted:
            found.files.update(kept := self._known_in(folder))
            is_named = any(problem.file == (folder or ".") for problem in problems)
            if not is_named and (kept or folder == "categories"):
                message = "the folder is missing; put it back, or an empty one if that is meant"
                problems.append(Problem(folder, 1, 1, message))
        return Listing(found.files, tuple(sorted(problems)), found.unlisted)

    def _known_in(self, folder: str) -> dict[str, Signature]:
        """The files of a folder as they were last seen, by this process or by one before it."""
        if self._catalogue is None:
            for name in self._copies_in(folder):
                if name not in SINGLE and (copy := self._copy(name)):
                    self._seen[name] = copy
        known = self._seen.items()
        return {name: seen.signature for name, seen in known if name.rpartition("/")[0] == folder}

    def _withheld_before(self) -> bool:
        """Whether the last good version of withheld.json withheld anything."""
        seen = self._seen.get("withheld.json") or self._copy("withheld.json")
        return bool(seen and isinstance(seen.record, Withheld) and seen.record.withheld)

    def _copies_in(self, folder: str) -> Iterable[str]:
        """The files of a folder of which an earlier process kept a copy."""
        try:
            return self._last_good.versions([folder])
        except OSError as error:
            raise DataDirectoryError(unreadable(error)) from error

    def _copy(self, name: str) -> Loaded | None:
        """The last good version of a file that an earlier process used.

        Raises:
            DataDirectoryError: at the start, there is one that cannot be read.
        """
        try:
            copy = self._last_good.read(name)
        except OSError as error:
            if self._catalogue is None:
                raise DataDirectoryError(unreadable(error)) from error
            return None  # what this process knows stays in use
        if copy is None or not may_be_named(name):
            return None
        loaded = understand(name, copy.data)
        return replace(loaded, signature=UNREAD, modified=copy.modified) if loaded.record else None

    def _look(self, name: str, signature: Signature, *, calm: bool) -> Loaded | None:
        """A file as it is now; with ``calm``, as it was if it is just being written."""
        before = self._seen.get(name)
        if before and before.signature == signature:
            return before
        loaded = load(self._directory, name)
        if loaded is None and name == "withheld.json" and signature == MISSING:
            loaded = unusable(name, MISSING, _WITHHELD_IS_MISSING)
        if loaded is None or (calm and loaded.signature not in (signature, UNREAD)):
            return before
        taken_in = UNREAD if loaded.signature == UNREAD else signature
        if loaded.record is None:
            used = self._used.get(name)
            good = used if used and used.record else self._copy(name)
            if good:
                return replace(good, signature=taken_in, problems=loaded.problems)
        return replace(loaded, signature=taken_in, modified=signature[0])

    def _gather(self) -> Catalogue:
        models = self._single("models.json", Models)
        synonyms = self._single("synonyms.json", Synonyms)
        words = self._single("words.json", Words)
        withheld = self._single("withheld.json", Withheld)
        topics = self._single("topics.json", Topics)
        problems = [problem for seen in self._used.values() for problem in seen.problems]
        site = self._single("site.json", Site)
        problems += self._odd
        problems += self._contradictions(site, models) if site and models else ()
        return Catalogue(
            site=site or Site(version=1, name="Consensus"),
            assistants=models.models if models else (),
            categories=self._folder("categories", Category),
            products=self._folder("products", Product),
            labs=self._folder("labs", WrittenExperiment),
            synonyms=synonyms.synonyms if synonyms else (),
            words=words.words if words else (),
            words_from=words.source if words else "",
            withheld=withheld.withheld if withheld else {},
            files=frozenset(self._used),
            problems=tuple(sorted(problems)),
            disputed=self._disputed,
            topics=topics.topics if topics else (),
            without_critical=tuple(
                seen.problems[0]
                for name in CRITICAL
                if (seen := self._used.get(name)) and not seen.record
            ),
        )

    def _single(self, name: str, kind: type[Record]) -> Record | None:
        seen = self._used.get(name)
        return seen.record if seen and isinstance(seen.record, kind) else None

    def _folder(self, folder: str, kind: type[Record]) -> dict[str, Record]:
        return {
            slug_of(name): seen.record
            for name, seen in sorted(self._used.items())
            if name.startswith(f"{folder}/") and isinstance(seen.record, kind)
        }

    def _contradictions(self, site: Site, models: Models) -> Iterator[Problem]:
        """The assistants whose answers the site does not call what they are: invented, or not."""
        for i, assistant in enumerate(models.models):
            place = ("models", i, "api")
            if assistant.api == "sample" and not site.sample:
                yield self.problem_at("models.json", place, _UNSAID)
            if assistant.api != "sample" and site.sample:
                yield self.problem_at("models.json", place, _WRONGLY_SAID, "warning")

    def _undisputed(self, seen: Mapping[str, Loaded]) -> dict[str, Loaded]:
        """The versions to use: of files that claim one slug, only that which had it before.

        The others stay as they last were without that claim, or are left out: nobody can say whose
        history or address it is.
        """
        used, found = dict(seen), self._refused(seen)
        for name, refused in found.items():
            good = self._before(name)
            if not (good and good.record) or not refused.keys().isdisjoint(
                claims_of(name, good.record)
            ):
                good = replace(seen[name], record=None, text="")
            problems = (*seen[name].problems, *refused.values())
            used[name] = replace(good, signature=seen[name].signature, problems=problems)
        claimed = {claim for name, each in used.items() for claim in claims_of(name, each.record)}
        self._disputed = {
            each.slug: problem
            for name, refused in found.items()
            for claim, problem in refused.items()
            for each in (claim, *claims_of(name, seen[name].record))
            if each.folder == "categories" and each not in claimed
        }
        return used

    def _refused(self, seen: Mapping[str, Loaded]) -> dict[str, dict[Claim, Problem]]:
        """The claims that are not taken in, by file, and what is to be said of each."""
        refused: dict[str, dict[Claim, Problem]] = {}
        for claim, places in disputed({name: each.record for name, each in seen.items()}).items():
            before = {name: self._before(name) for name in places}
            had = {n for n, old in before.items() if old and claim in claims_of(n, old.record)}
            for name in places.keys() - (had if len(had) == 1 else ()):
                others = " and ".join(sorted(places.keys() - {name}))
                message = f'"{claim.slug}" belongs to {others}; take it out of one'
                problem = problem_in(seen[name].text, name, places[name], message)
                refused.setdefault(name, {})[claim] = problem
        return refused

    def _before(self, name: str) -> Loaded | None:
        """The version of a file that was in use until now, in this process or before it."""
        return self._used.get(name) or self._copy(name)

    def problem_at(
        self,
        name: str,
        path: json_positions.JsonPath,
        message: str,
        severity: Severity = "error",
    ) -> Problem:
        """A problem at one value of a file that could be read."""
        return problem_in(self._used[name].text, name, path, message, severity)


def nothing_in(directory: Path) -> str:
    """What is wrong with a directory in which no data is found, and what to do."""
    if directory.is_dir():
        readable = os.access(directory, os.R_OK | os.X_OK)
        fault = "holds no data files" if readable else "cannot be read"
    else:
        fault = "is no directory" if directory.exists() else "does not exist"
    return (
        f"the data directory {directory} {fault}; "
        f"`flask init {directory}` fills one, or set DATA_DIR to another"
    )
