"""The hand-edited files: versioned JSON in, records or problems out.

Only this module and ``data_file`` open them.

A file that cannot be used is a :class:`Problem` with file, line and column, and nothing a curator
types can raise here. As long as the process lives, the last good version of a file stays in use;
at a start there is none, and the file is left out. The same reading serves servers and commands.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace
from rapidfuzz import fuzz, process

from store.data_file import UNREAD, JsonPath, LoadedFile, folder_of, load, problem_in, slug_of
from store.disk import MISSING, Signature, check_no_link, signature_of
from store.records import (
    FOLDERS,
    GOVERNING,
    SINGLE,
    TOPICS,
    Assistant,
    Category,
    DataFile,
    Instrument,
    Models,
    Problem,
    Product,
    Severity,
    Site,
    Synonyms,
    Topic,
    Topics,
    Withheld,
    Withholding,
    Words,
    WrittenExperiment,
)

Record = TypeVar("Record", bound=DataFile)

_UNSAID = (
    "the answers of a sample assistant are invented, and site.json does not say so: "
    'write "sample": true there, or ask a real assistant'
)
_WRONGLY_SAID = (
    'site.json says "sample": true, which calls the answers of this real assistant invented; '
    "take it out there"
)
_NEARLY_JSON = (".json", ".json.txt", ".jsonc", ".json5")
_LIKENESS = 75
"""The least (of 100) for "did you mean": `withold.json` has 88, `category` 78, `images` 50."""


class DataDirectoryError(Exception):
    """There is no data directory that can be used; the sentence says what to do."""


class Catalogue(Struct, frozen=True):
    """All hand-edited files together. Slugs are file names.

    ``unusable`` has by file name the problem of each file of which no version is in use; a former
    slug that several files claim is listed as if it were a file. ``words_from`` is the notice that
    goes with ``words``.
    """

    site: Site
    assistants: tuple[Assistant, ...]
    categories: Mapping[str, Category]
    products: Mapping[str, Product]
    labs: Mapping[str, WrittenExperiment]
    synonyms: tuple[tuple[str, ...], ...]
    words: tuple[str, ...]
    withheld: Mapping[str, Withholding]
    problems: tuple[Problem, ...]
    unusable: Mapping[str, Problem] = {}
    topics: tuple[Topic, ...] = ()
    words_from: str = ""
    instruments: Mapping[str, Instrument] = {}

    @property
    def governing_errors(self) -> tuple[Problem, ...]:
        """The errors in governing files as they are now, whatever version is in use."""
        return tuple(p for p in self.problems if p.file in GOVERNING and p.severity == "error")

    @property
    def blocks_polling(self) -> Problem | None:
        """The error that leaves open whom to ask and at what cost, so that nothing is asked."""
        files = ("site.json", "models.json")
        return next((p for p in self.governing_errors if p.file in files), None)

    def check_governing(self) -> None:
        """Check that a good version of every governing file is in use.

        Raises:
            DataDirectoryError: nothing that follows from these files may be shown or asked.
        """
        for name in GOVERNING:
            if name in self.unusable:
                effect = f"without a good {name} nothing is shown or asked"
                raise DataDirectoryError(f"{self.unusable[name]} ({effect})")

    def fault_of(self, folder: str, slug: str) -> Problem | None:
        """Return why a slug of a folder cannot be shown; ``None`` where its record is in use."""
        if slug in getattr(self, folder):
            return None
        return self.unusable.get(f"{folder}/{slug}.json") or self.unusable.get(folder)

    @property
    def renamed(self) -> dict[str, str]:
        """The present slug of every category that had another one: old addresses lead there.

        Its history goes along by ``former_slugs`` alone; see ``category_history.history_files``.
        """
        return {old: slug for slug, item in self.categories.items() for old in item.former_slugs}

    @property
    def former_names(self) -> dict[str, str]:
        """The present name of every assistant that had another one."""
        return {former: a.name for a in self.assistants for former in a.former_names}


class Files:
    """The hand-edited files of one data directory, re-read only where they changed."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._loaded: dict[str, LoadedFile] = {}
        self._listing = Listing({}, (), ())
        self._bad_from_the_start: frozenset[str] = frozenset()
        self._seen: Mapping[str, Signature] = {}
        self._catalogue: Catalogue | None = None

    def scan(self, *, settled: bool = False) -> Catalogue:
        """Look at every file and return what they say: the same object where nothing changed.

        With ``settled``, a file that changed is believed only when the scan before saw the same of
        it: editors empty files, rename them and write them in pieces. Until then it is as it was.

        Raises:
            DataDirectoryError: the directory is not there, or holds none of our files.
        """
        listing = self._list()
        seen, self._seen = self._seen, listing.files
        if settled:
            listing = self._debounce(listing, seen)
        files = {
            name: self._load_if_changed(name, signature, settled=settled)
            for name, signature in sorted(listing.files.items())
        }
        loaded = {name: file for name, file in files.items() if file}
        is_same = loaded == self._loaded and listing.problems == self._listing.problems
        if self._catalogue is None or not is_same:
            self._loaded, self._listing = loaded, listing
            self._catalogue = self._gather()
        return self._catalogue

    def problem_at(
        self, name: str, path: JsonPath, message: str, severity: Severity = "error"
    ) -> Problem:
        """Return a problem at one value of a file that could be read."""
        return problem_in(self._loaded[name].text, name, path, message, severity)

    def _list(self) -> Listing:
        """List the data directory and its folders; no file is opened.

        A folder that is missing or cannot be looked into counts as it was.

        Raises:
            DataDirectoryError: there is no data, or nobody has ever been able to look.
        """
        files = dict.fromkeys(GOVERNING, MISSING)
        problems: list[Problem] = []
        unlisted: list[str] = []
        with suppress(PermissionError):  # of what it lies in; then it cannot be listed either
            if not self._directory.is_dir():
                raise DataDirectoryError(_nothing_in(self._directory))
        # A folder that is renamed by mistake must take nothing off the air.
        for folder in ("", *FOLDERS):
            try:
                present, warnings = _list_folder(self._directory, folder)
            except OSError as error:
                if not folder and self._catalogue is None:
                    message = f"the data directory {self._directory} cannot be read"
                    raise DataDirectoryError(f"{message}: {error.strerror}") from error
                unlisted.append(folder)
                present = {
                    n: f.signature for n, f in self._loaded.items() if folder_of(n) == folder
                }
                message = f"the folder cannot be looked into: {error.strerror}"
                if isinstance(error, FileNotFoundError):
                    message = "the folder is missing; put it back, or an empty one if that is meant"
                is_missed = present or folder == "categories"
                if is_missed or not isinstance(error, FileNotFoundError):
                    problems.append(Problem(folder or ".", 1, 1, message))
            else:
                problems += warnings
            files |= present
        if all(signature == MISSING for signature in files.values()):
            raise DataDirectoryError(_nothing_in(self._directory))
        return Listing(files, tuple(sorted(problems)), tuple(unlisted))

    def _debounce(self, listing: Listing, seen: Mapping[str, Signature]) -> Listing:
        """Return a listing with all that changed since the last scan as it was when last loaded."""
        files, loaded = listing.files, self._loaded
        settled = {name: files[name] for name in files if files[name] == seen.get(name)}
        others = [name for name in loaded if files.get(name) != seen.get(name)]
        return replace(listing, files=settled | {name: loaded[name].signature for name in others})

    def _load_if_changed(
        self, name: str, signature: Signature, *, settled: bool
    ) -> LoadedFile | None:
        """Return a file as it is now; with ``settled``, as it was if it is just being written."""
        before = self._loaded.get(name)
        if before and before.signature == signature:
            return before
        loaded = load(self._directory, name)
        if loaded is None or (settled and loaded.signature not in (signature, UNREAD)):
            return before
        if loaded.signature != UNREAD:  # a fault that may pass is looked at again
            loaded = replace(loaded, signature=signature)
        if loaded.record is None and before and before.record:
            return replace(before, signature=loaded.signature, problems=loaded.problems)
        return loaded

    def _gather(self) -> Catalogue:
        contested = _contested_slugs({name: file.record for name, file in self._loaded.items()})
        models = self._single("models.json", Models)
        synonyms = self._single("synonyms.json", Synonyms)
        words = self._single("words.json", Words)
        withheld = self._single("withheld.json", Withheld)
        topics = self._single(TOPICS, Topics)
        site = self._single("site.json", Site)
        problems = [problem for file in self._loaded.values() for problem in file.problems]
        problems += self._listing.problems
        problems += self._contradictions(site, models) if site and models else ()
        disputes = {claim: [*self._dispute(claim, contested[claim])] for claim in contested}
        problems += [problem for dispute in disputes.values() for problem in dispute]
        unowned = {claim: disputes[claim][0] for claim in disputes if claim not in self._loaded}
        catalogue = Catalogue(
            site=site or Site(version=1, name="Consensus"),
            assistants=models.models if models else (),
            categories=self._folder("categories", Category, contested),
            products=self._folder("products", Product, contested),
            labs=self._folder("labs", WrittenExperiment, contested),
            synonyms=synonyms.synonyms if synonyms else (),
            words=words.words if words else (),
            words_from=words.source if words else "",
            withheld=withheld.withheld if withheld else {},
            problems=tuple(problems),
            topics=topics.topics if topics else (),
            instruments=self._folder("instruments", Instrument, contested),
            unusable={**self._unusable(), **unowned},
        )
        problems += self._unknown_in_topics(catalogue)
        return replace(catalogue, problems=tuple(sorted(problems)))

    def _unusable(self) -> dict[str, Problem]:
        """Return the problem of each file without a version in use and of each unlisted folder.

        A product file that comes while the process lives and was never good changes nothing: the
        product stays what it was without one.
        """
        bad = {name: file.problems[0] for name, file in self._loaded.items() if not file.record}
        bad |= {p.file: p for p in self._listing.problems if p.file in self._listing.unlisted}
        if self._catalogue is None:
            self._bad_from_the_start = frozenset(bad)
        return {
            name: problem
            for name, problem in bad.items()
            if name in self._bad_from_the_start or folder_of(name) in ("categories", "labs")
        }

    def _single(self, name: str, kind: type[Record]) -> Record | None:
        file = self._loaded.get(name)
        return file.record if file and isinstance(file.record, kind) else None

    def _folder(
        self, folder: str, kind: type[Record], contested: Collection[str]
    ) -> dict[str, Record]:
        """Return the records of a folder by slug, without the former slugs that are contested."""
        records: dict[str, Record] = {}
        for name, file in sorted(self._loaded.items()):
            if folder_of(name) == folder and isinstance(file.record, kind):
                record = file.record
                if isinstance(record, Category | Product) and contested:
                    former = record.former_slugs
                    own = [slug for slug in former if f"{folder}/{slug}.json" not in contested]
                    record = replace(record, former_slugs=tuple(own))
                records[slug_of(name)] = record
        return records

    def _contradictions(self, site: Site, models: Models) -> Iterator[Problem]:
        """Yield a problem for each assistant that the site calls real or invented wrongly."""
        for i, assistant in enumerate(models.models):
            place = ("models", i, "api")
            if assistant.api == "sample" and not site.sample:
                yield self.problem_at("models.json", place, _UNSAID)
            if assistant.api != "sample" and site.sample:
                yield self.problem_at("models.json", place, _WRONGLY_SAID, "warning")

    def _unknown_in_topics(self, catalogue: Catalogue) -> Iterator[Problem]:
        """Yield a problem for each slug in topics.json that no category has."""
        renamed = catalogue.renamed
        listed = [
            (("topics", i, "parts", j, "categories", k), slug)
            for i, topic in enumerate(catalogue.topics)
            for j, part in enumerate(topic.parts)
            for k, slug in enumerate(part.categories)
        ]
        for path, slug in listed:
            if slug not in catalogue.categories and not catalogue.fault_of("categories", slug):
                hint = f'it is called "{renamed[slug]}" now' if slug in renamed else "take it out"
                message = f'no category has the slug "{slug}"; {hint}'
                yield self.problem_at(TOPICS, path, message, "warning")

    def _dispute(self, claim: str, places: Mapping[str, JsonPath]) -> Iterator[Problem]:
        """Yield a problem for each file that claims a slug, as its own or a former one."""
        for name, place in places.items():
            others = " and ".join(sorted(places.keys() - {name}))
            effect = "" if claim in places else ", so it leads nowhere"
            message = f'"{slug_of(claim)}" is claimed by {others}, too{effect}; take it out of one'
            yield self.problem_at(name, place, message)


def check_data_in(directory: Path) -> None:
    """Check that a directory holds data files of ours, however bad they are.

    Raises:
        DataDirectoryError: it does not, or nobody may look.
    """
    if not any(os.path.lexists(directory / name) for name in (*SINGLE, *FOLDERS)):
        raise DataDirectoryError(_nothing_in(directory))


def _nothing_in(directory: Path) -> str:
    """Return what is wrong with a directory in which no data is found, and what to do."""
    fault = "holds no data files"
    unreadable = f"the data directory {directory} cannot be read: Permission denied"
    try:
        if not directory.is_dir():
            if directory.exists():
                return f"the data directory {directory} is not a directory; set DATA_DIR to one"
            fault = "does not exist"
        elif not os.access(directory, os.R_OK | os.X_OK):
            return unreadable
    except PermissionError:  # of what it lies in
        return unreadable
    return (
        f"the data directory {directory} {fault}; "
        f"`flask init {directory}` fills one, or set DATA_DIR to another"
    )


def _contested_slugs(records: Mapping[str, DataFile | None]) -> dict[str, dict[str, JsonPath]]:
    """Return every claim to a former slug that several files claim, by the file it would name.

    A claim is a file and the path of the value; that of a file of this very name has no path.
    """
    claims: dict[str, dict[str, JsonPath]] = {}
    for name, record in records.items():
        if isinstance(record, Category | Product):
            for i, slug in enumerate(record.former_slugs):
                claim = f"{folder_of(name)}/{slug}.json"
                claims.setdefault(claim, {})[name] = ("former_slugs", i)
    for claim in claims.keys() & records.keys():
        claims[claim][claim] = ()
    return {claim: places for claim, places in claims.items() if len(places) > 1}


class Listing(Struct, frozen=True):
    """Our files by relative name, and what is wrong with folders, and entries that cannot be files.

    ``unlisted`` are folders that are missing or could not be listed. A governing file that is not
    there has the signature :data:`MISSING`.
    """

    files: dict[str, Signature]
    problems: tuple[Problem, ...]
    unlisted: tuple[str, ...]


def _list_folder(directory: Path, folder: str) -> tuple[dict[str, Signature], list[Problem]]:
    """Return the data files in a folder, and a warning about each entry that may be meant as one.

    Raises:
        OSError: it cannot be listed, or is a symbolic link and so may lead anywhere.
    """
    path, files, warnings = directory / folder, dict[str, Signature](), list[Problem]()
    if folder:
        check_no_link(path)
    with os.scandir(path) as entries:
        for entry in entries:
            name = f"{folder}/{entry.name}" if folder else entry.name
            if entry.name.startswith((".", "#")):  # hidden, or an editor's for a while
                continue
            if name in SINGLE or (folder and name.endswith(".json")):
                with suppress(FileNotFoundError):
                    files[name] = signature_of(entry.stat(follow_symlinks=False))
                    if entry.is_symlink():  # what it leads to may change
                        with suppress(OSError):  # why it is not read, the reader says
                            files[name] = signature_of(entry.stat())
            elif message := _oddity(entry.name, folder):
                warnings.append(Problem(name, 1, 1, message, "warning"))
    return files, warnings


def _oddity(name: str, folder: str) -> str | None:
    """Return a warning about an entry that is not read and may be meant to be."""
    if folder:
        is_nearly = name.lower().endswith(_NEARLY_JSON)
        return "it is not read: the name of a data file ends in .json" if is_nearly else None
    if name in FOLDERS or name.startswith(tuple(SINGLE)):  # editors' copies of what is read
        return None
    names = [*SINGLE, *FOLDERS]
    close = process.extractOne(name, names, scorer=fuzz.ratio, score_cutoff=_LIKENESS)
    return f"it is not read; did you mean {close[0]}?" if close else None
