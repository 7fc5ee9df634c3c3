"""The hand-edited files: versioned JSON in, records or problems out. Nobody else opens them.

A file that cannot be used is a :class:`Problem` with file, line and column; the last good version
of it stays in use, and nothing a curator types can raise here. The same reading serves the
server and ``flask check``.
"""

from __future__ import annotations

import errno
import json
import os
import stat as modes
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import msgspec
from msgspec import Struct
from rapidfuzz import fuzz, process

from store import positions
from store.mistakes import explain
from store.records import (
    Assistant,
    Category,
    DataFile,
    Models,
    Problem,
    Product,
    Site,
    Synonyms,
    Withheld,
    Withholding,
    Words,
    WrittenExperiment,
    is_slug,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MAX_BYTES = 1 << 20

SINGLE: Mapping[str, type[DataFile]] = {
    "site.json": Site,
    "models.json": Models,
    "synonyms.json": Synonyms,
    "words.json": Words,
    "withheld.json": Withheld,
}
FOLDERS: Mapping[str, type[DataFile]] = {
    "categories": Category,
    "products": Product,
    "labs": WrittenExperiment,
}
REQUIRED = ("site.json", "models.json")
OTHERS = ("history", "schemas", "LICENSE")

_NEARLY_JSON = (".json", ".json.txt", ".jsonc", ".json5")
_LIKE_A_FILE, _LIKE_A_FOLDER = 80, 65

Record = TypeVar("Record", bound=DataFile)
Former = TypeVar("Former", Category, Product)
Signature = tuple[int, int, int, int]
"""Modification time in ns, size in bytes, inode, time of the last change of any kind in ns."""

MISSING: Signature = (0, 0, 0, 0)
UNREAD: Signature = (-1, 0, 0, 0)
"""Stands for a file that could not be read, perhaps only just now: no file has it."""


class DataDirectoryError(Exception):
    """There is no data directory to read; the sentence says what to do."""


class Catalogue(Struct, frozen=True):
    """What the hand-edited files say. Slugs are file names; ``modified`` is in ns per file."""

    site: Site
    assistants: tuple[Assistant, ...]
    categories: Mapping[str, Category]
    products: Mapping[str, Product]
    labs: Mapping[str, WrittenExperiment]
    synonyms: tuple[tuple[str, ...], ...]
    words: tuple[str, ...]
    withheld: Mapping[str, Withholding]
    modified: Mapping[str, int]
    problems: tuple[Problem, ...]

    @property
    def former_names(self) -> dict[str, str]:
        """The present name of every assistant that had another one."""
        return {former: a.name for a in self.assistants for former in a.former_names}


class Loaded(Struct, frozen=True):
    """One file as it was read: its record unless there are problems, its text, its signature."""

    record: DataFile | None
    text: str
    problems: tuple[Problem, ...]
    signature: Signature


class _Seen(Struct, frozen=True):
    """A file as it was last looked at; ``modified`` is that of the version in use."""

    signature: Signature
    record: DataFile | None
    modified: int
    text: str
    problems: tuple[Problem, ...]


class _Listing(Struct, frozen=True):
    """What is in the directory: our files by relative name, and what looks like one and is not.

    ``unlisted`` are folders that could not be looked into.
    """

    files: dict[str, Signature]
    problems: tuple[Problem, ...]
    unlisted: tuple[str, ...]


class Files:
    """The hand-edited files of one data directory, re-read only where they changed."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._seen: dict[str, _Seen] = {}
        self._odd: tuple[Problem, ...] = ()
        self._catalogue: Catalogue | None = None

    def scan(self, settle: Callable[[], object] | None = None) -> Catalogue:
        """Look at every file; the same object comes back when nothing changed.

        With ``settle``, which waits a moment, a file that changed is believed only when it looks
        the same before and after: editors empty files, rename them and write them in pieces. One
        that does not is taken as it was, until the next scan.

        Raises:
            DataDirectoryError: the directory is not there, or holds none of our files.
        """
        found = self._list()
        known = {name: seen.signature for name, seen in self._seen.items()}
        if settle and found.files != known:
            settle()
            found = _settled(found, self._list(), known)
        looked = {
            name: self._look(name, signature, calm=settle is not None)
            for name, signature in sorted(found.files.items())
        }
        seen = {name: seen for name, seen in looked.items() if seen}
        if not self._catalogue or seen != self._seen or found.problems != self._odd:
            self._seen, self._odd = seen, found.problems
            self._catalogue = self._gather()
        return self._catalogue

    def _list(self) -> _Listing:
        """What is there now; a folder that cannot be looked into counts as it was."""
        found = _listing(self._directory)
        for folder in found.unlisted:
            kept = (name for name in self._seen if name.startswith(f"{folder}/"))
            found.files.update((name, self._seen[name].signature) for name in kept)
        if all(signature == MISSING for signature in found.files.values()):
            raise DataDirectoryError(_nothing_in(self._directory))
        return found

    def _look(self, name: str, signature: Signature, *, calm: bool) -> _Seen | None:
        """A file as it is now; with ``calm``, as it was if it is just being written."""
        before = self._seen.get(name)
        if before and before.signature == signature:
            return before
        loaded = load(self._directory / name, name)
        if loaded is None or (calm and loaded.signature not in (signature, UNREAD)):
            return before
        taken_in = UNREAD if loaded.signature == UNREAD else signature
        record, modified, text = loaded.record, signature[0], loaded.text
        if record is None and before and before.record:
            record, modified, text = before.record, before.modified, before.text
        return _Seen(taken_in, record, modified, text, loaded.problems)

    def _gather(self) -> Catalogue:
        models = self._single("models.json", Models)
        synonyms = self._single("synonyms.json", Synonyms)
        words = self._single("words.json", Words)
        withheld = self._single("withheld.json", Withheld)
        problems = [problem for seen in self._seen.values() for problem in seen.problems]
        assistants, namesakes = self._assistants(models.models if models else ())
        categories, clashes = self._former_slugs("categories", Category)
        products, more_clashes = self._former_slugs("products", Product)
        problems += [*self._odd, *namesakes, *clashes, *more_clashes]
        return Catalogue(
            site=self._single("site.json", Site) or Site(version=1, name="Consensus"),
            assistants=assistants,
            categories=categories,
            products=products,
            labs=self._folder("labs", WrittenExperiment),
            synonyms=synonyms.synonyms if synonyms else (),
            words=words.words if words else (),
            withheld=withheld.withheld if withheld else {},
            modified={name: seen.modified for name, seen in self._seen.items()},
            problems=tuple(sorted(problems)),
        )

    def _single(self, name: str, kind: type[Record]) -> Record | None:
        seen = self._seen.get(name)
        return seen.record if seen and isinstance(seen.record, kind) else None

    def _folder(self, folder: str, kind: type[Record]) -> dict[str, Record]:
        return {
            Path(name).stem: seen.record
            for name, seen in sorted(self._seen.items())
            if name.startswith(f"{folder}/") and isinstance(seen.record, kind)
        }

    def _assistants(
        self, listed: tuple[Assistant, ...]
    ) -> tuple[tuple[Assistant, ...], list[Problem]]:
        """The assistants with names of their own; of two that claim one the first keeps it."""
        names = [assistant.name for assistant in listed]
        clashes = [
            self.problem_at(
                "models.json",
                ("models", i, "name"),
                f'two assistants are called "{name}"; the first is kept, '
                "give this one a name of its own",
            )
            for i, name in enumerate(names)
            if name in names[:i]
        ]
        owners = {name: names.index(name) for name in names}
        kept: list[Assistant] = []
        for i, assistant in enumerate(listed):
            claims = [owners.setdefault(former, i) == i for former in assistant.former_names]
            own = tuple(f for f, mine in zip(assistant.former_names, claims, strict=True) if mine)
            clashes += [
                self.problem_at(
                    "models.json",
                    ("models", i, "former_names", place),
                    "another assistant bears or claims this former name, and keeps it; "
                    "take it out of one",
                )
                for place, mine in enumerate(claims)
                if not mine
            ]
            if assistant.name not in names[:i]:
                kept.append(msgspec.structs.replace(assistant, former_names=own))
        return tuple(kept), clashes

    def _former_slugs(
        self, folder: str, kind: type[Former]
    ) -> tuple[dict[str, Former], list[Problem]]:
        """A folder's records; a former slug that is claimed twice stays with the first claimant."""
        records = self._folder(folder, kind)
        owners = {slug: slug for slug in records}
        problems = []
        for slug, record in list(records.items()):
            kept = tuple(f for f in record.former_slugs if owners.setdefault(f, slug) == slug)
            if kept == record.former_slugs:
                continue
            records[slug] = msgspec.structs.replace(record, former_slugs=kept)
            problems += [
                self.problem_at(
                    f"{folder}/{slug}.json",
                    ("former_slugs", i),
                    f'"{former}" belongs to {folder}/{owners[former]}.json; take it out of one',
                )
                for i, former in enumerate(record.former_slugs)
                if former not in kept
            ]
        return records, problems

    def problem_at(
        self,
        name: str,
        path: positions.JsonPath,
        message: str,
        severity: Literal["error", "warning", "notice"] = "error",
    ) -> Problem:
        """A problem at one value of a file that could be read."""
        text = self._seen[name].text
        offset = positions.parse(text).offsets.get(path, 0)
        return Problem(name, *positions.line_and_column(text, offset), message, severity)


def load(path: Path, name: str) -> Loaded | None:
    """Read one file by its relative name, with every problem in it; ``None`` if it just went."""
    signature = MISSING
    try:
        data, signature = _read(path)
    except FileNotFoundError:
        if name not in REQUIRED:
            return None
        return _unusable(name, signature, "the file is missing; `flask init DIR` shows one")
    except (OSError, _Unusable) as error:
        signature = UNREAD if isinstance(error, OSError) else _signature(path.lstat())
        return _unusable(name, signature, _why_unreadable(error))
    if not (name in SINGLE or is_slug(path.stem)):
        message = f'the file name "{path.stem}" is no slug; use a-z, 0-9 and single hyphens'
        return _unusable(name, signature, f"{message}, at most 100")
    return understand(name, data, signature)


def understand(name: str, data: bytes, signature: Signature = MISSING) -> Loaded:
    """What the bytes of a data file say, or every mistake in them."""
    kind = SINGLE.get(name) or FOLDERS[name.partition("/")[0]]
    try:
        record = msgspec.json.decode(data, type=kind)
        text = data.decode()
        _refuse_what_msgspec_takes(text)
    except (ValueError, RecursionError) as error:
        return Loaded(None, "", tuple(explain(name, data, kind, error)), signature)
    return Loaded(record, text, (), signature)


class _Unusable(Exception):
    """Something stands where a file should be that is not read at all."""


def _unusable(name: str, signature: Signature, message: str) -> Loaded:
    return Loaded(None, "", (Problem(name, 1, 1, message),), signature)


def _read(path: Path) -> tuple[bytes, Signature]:
    """A regular file's bytes, and its signature after they were read."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        found = os.fstat(handle)
        if not modes.S_ISREG(found.st_mode):
            raise _Unusable("is not a regular file; put a file here, or take it away")
        if found.st_size > MAX_BYTES:
            raise _Unusable(f"is larger than {MAX_BYTES:,} bytes; no data file needs to be")
        data = os.read(handle, found.st_size)
        return data, _signature(os.fstat(handle))
    finally:
        os.close(handle)


def _why_unreadable(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno == errno.ELOOP:
        return "is a symbolic link, which is not followed; put the file itself here"
    if isinstance(error, OSError):
        return f"cannot be read: {error.strerror}"
    return str(error)


def _refuse_what_msgspec_takes(text: str) -> None:
    """Raise ``ValueError`` for a key that stands twice and for values nested too deep."""
    value = json.loads(text, object_pairs_hook=_without_duplicates)
    if text.count("{") + text.count("[") > positions.MAX_DEPTH and _is_too_deep(value, 0):
        raise ValueError("nested too deep")


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a key stands twice")
    return members


def _is_too_deep(value: Any, depth: int) -> bool:
    if depth > positions.MAX_DEPTH:
        return True
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(_is_too_deep(part, depth + 1) for part in parts)


def _nothing_in(directory: Path) -> str:
    fault = "holds no data files" if directory.is_dir() else "does not exist"
    return (
        f"the data directory {directory} {fault}; "
        f"`flask init {directory}` fills one, or set DATA_DIR to another"
    )


def _signature(stat: os.stat_result) -> Signature:
    return stat.st_mtime_ns, stat.st_size, stat.st_ino, stat.st_ctime_ns


def _settled(first: _Listing, second: _Listing, known: Mapping[str, Signature]) -> _Listing:
    """What two looks agree on; the rest is as it was known, or not there yet."""
    calm: dict[str, Signature] = {}
    for name in first.files.keys() | second.files.keys():
        now = second.files.get(name)
        believed = now if first.files.get(name) == now else known.get(name)
        if believed is not None:
            calm[name] = believed
    return _Listing(calm, second.problems, second.unlisted)


def _listing(directory: Path) -> _Listing:
    files = dict.fromkeys(REQUIRED, MISSING)
    problems: list[Problem] = []
    unlisted: list[str] = []
    if not directory.is_dir():
        return _Listing(files, (), ())
    for folder in ("", *FOLDERS):
        try:
            entries = _entries(directory / folder)
        except FileNotFoundError:
            if folder == "categories":
                problems.append(Problem(folder, 1, 1, "the folder is missing"))
                unlisted.append(folder)
            continue
        except OSError as error:
            why = f"the folder cannot be looked into: {error.strerror}"
            problems.append(Problem(folder or ".", 1, 1, why))
            unlisted.append(folder)
            continue
        for entry in entries:
            name = f"{folder}/{entry.name}" if folder else entry.name
            if name in SINGLE or (folder and name.endswith(".json")):
                with suppress(FileNotFoundError):
                    files[name] = _signature(entry.stat(follow_symlinks=False))
            elif message := _oddity(entry, folder):
                problems.append(Problem(name, 1, 1, message, "warning"))
    return _Listing(files, tuple(sorted(problems)), tuple(unlisted))


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """What is in a folder, without what editors leave beside a file.

    Raises:
        OSError: it cannot be listed, or is a symbolic link and so may lead anywhere.
    """
    if folder.name in FOLDERS and folder.is_symlink():
        raise OSError(errno.ELOOP, "it is a symbolic link, which is not followed")
    with os.scandir(folder) as entries:
        return [entry for entry in entries if not entry.name.startswith((".", "#"))]


def _oddity(entry: os.DirEntry[str], folder: str) -> str | None:
    """Why a curator may wonder that something is not read; ``None`` if it is plainly not ours."""
    is_folder = entry.is_dir(follow_symlinks=False)
    is_nearly = entry.name.lower().endswith(_NEARLY_JSON)
    if folder and is_folder:
        return f"folders inside {folder} are not read"
    if folder:
        return "is not read: the name of a data file ends in .json" if is_nearly else None
    if entry.name in (*FOLDERS, *OTHERS) or not (is_folder or is_nearly):
        return None
    known, cutoff = (FOLDERS, _LIKE_A_FOLDER) if is_folder else (SINGLE, _LIKE_A_FILE)
    close = process.extractOne(entry.name, known.keys(), scorer=fuzz.ratio, score_cutoff=cutoff)
    return f"is not read; did you mean {close[0]}?" if close else None
