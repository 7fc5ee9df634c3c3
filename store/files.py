"""The hand-edited files: versioned JSON in, records or problems out. Nobody else opens them.

A file that cannot be used is a :class:`Problem` with file, line and column; the last good version
of it stays in use, and nothing a curator types can raise here. The same reading serves the
server and ``flask check``.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import Struct
from rapidfuzz import process

from store import positions
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
    from collections.abc import Iterator, Mapping

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

Record = TypeVar("Record", bound=DataFile)
Signature = tuple[int, int, int]


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


class _Seen(Struct, frozen=True):
    """A file as it was last looked at; ``modified`` is that of the version in use."""

    signature: Signature
    record: DataFile | None
    modified: int
    text: str
    problems: tuple[Problem, ...]


class Files:
    """The hand-edited files of one data directory, re-read only where they changed."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._seen: dict[str, _Seen] = {}
        self._catalogue: Catalogue | None = None

    def scan(self) -> Catalogue:
        """Look at every file; the same object comes back when nothing changed.

        Raises:
            DataDirectoryError: the directory is not there, or holds none of our files.
        """
        found, odd = _listing(self._directory)
        if not found:
            raise DataDirectoryError(_nothing_in(self._directory))
        if self._catalogue is not None and {n: s.signature for n, s in self._seen.items()} == found:
            return self._catalogue
        self._seen = {name: self._look(name, signature) for name, signature in found.items()}
        self._catalogue = self._gather(odd)
        return self._catalogue

    def _look(self, name: str, signature: Signature) -> _Seen:
        before = self._seen.get(name)
        if before and before.signature == signature:
            return before
        kind = SINGLE.get(name) or FOLDERS[name.partition("/")[0]]
        record, text, problems = load(self._directory / name, name, kind)
        if record is None and before and before.record:
            return _Seen(signature, before.record, before.modified, before.text, problems)
        return _Seen(signature, record, signature[0], text, problems)

    def _gather(self, odd: tuple[Problem, ...]) -> Catalogue:
        models = self._single("models.json", Models)
        synonyms = self._single("synonyms.json", Synonyms)
        words = self._single("words.json", Words)
        withheld = self._single("withheld.json", Withheld)
        problems = [*odd, *(problem for seen in self._seen.values() for problem in seen.problems)]
        problems += [
            Problem(name, 1, 1, "the file is missing; `flask init DIR` writes one to start from")
            for name in REQUIRED
            if name not in self._seen
        ]
        assistants, clashes = self._assistants(models.models if models else ())
        return Catalogue(
            site=self._single("site.json", Site) or Site(version=1, name="Consensus"),
            assistants=assistants,
            categories=self._folder("categories", Category),
            products=self._folder("products", Product),
            labs=self._folder("labs", WrittenExperiment),
            synonyms=synonyms.synonyms if synonyms else (),
            words=words.words if words else (),
            withheld=withheld.withheld if withheld else {},
            modified={name: seen.modified for name, seen in self._seen.items()},
            problems=tuple(sorted([*problems, *clashes, *self._former_slug_clashes()])),
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
        """The assistants with a name of their own; of two with one name the first is kept."""
        names = [assistant.name for assistant in listed]
        kept = tuple(a for i, a in enumerate(listed) if a.name not in names[:i])
        clashes = [
            self.problem_at(
                "models.json",
                ("models", i, "name"),
                f'two assistants are called "{name}"; each needs a name of its own',
            )
            for i, name in enumerate(names)
            if name in names[:i]
        ]
        return kept, clashes

    def _former_slug_clashes(self) -> list[Problem]:
        categories = self._folder("categories", Category)
        owners: dict[str, str] = {}
        problems = []
        for slug, category in categories.items():
            for i, former in enumerate(category.former_slugs):
                other = former if former in categories else owners.setdefault(former, slug)
                if other != slug:
                    problems.append(
                        self.problem_at(
                            f"categories/{slug}.json",
                            ("former_slugs", i),
                            f'"{former}" already belongs to categories/{other}.json',
                        )
                    )
        return problems

    def problem_at(self, name: str, path: positions.JsonPath, message: str) -> Problem:
        """A problem at one value of a file that could be read."""
        text = self._seen[name].text
        offset = positions.parse(text).offsets.get(path, 0)
        return Problem(name, *positions.line_and_column(text, offset), message)


def load(
    path: Path, name: str, kind: type[Record]
) -> tuple[Record | None, str, tuple[Problem, ...]]:
    """Read one file: its record (or ``None``), its text, and every problem in it."""
    stem_problem = _file_name_problem(name)
    if stem_problem:
        return None, "", (stem_problem,)
    try:
        data = path.read_bytes()
    except OSError as error:
        return None, "", (Problem(name, 1, 1, f"cannot be read: {error.strerror}"),)
    if len(data) > MAX_BYTES:
        return None, "", (Problem(name, 1, 1, f"is larger than {MAX_BYTES:,} bytes"),)
    try:
        text = data.decode()
        record = msgspec.json.decode(data, type=kind)
        json.loads(text, object_pairs_hook=_without_duplicates)
    except (ValueError, RecursionError) as error:
        return None, "", tuple(_explain(name, data, kind, error))
    return record, text, ()


def _nothing_in(directory: Path) -> str:
    fault = "holds no data files" if directory.is_dir() else "does not exist"
    return (
        f"the data directory {directory} {fault}; "
        f"`flask init {directory}` fills one, or set DATA_DIR to another"
    )


def _without_duplicates(pairs: list[tuple[str, Any]]) -> None:
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError("a key stands twice")


def _listing(directory: Path) -> tuple[dict[str, Signature], tuple[Problem, ...]]:
    """Signature of every hand-edited file by its relative name, and what is no regular file."""
    found: dict[str, Signature] = {}
    odd: list[Problem] = []
    for folder, entry in _entries(directory):
        name = f"{folder}/{entry.name}" if folder else entry.name
        if not folder and name not in SINGLE:
            continue
        if entry.name.startswith(".") or not entry.name.endswith(".json"):
            continue
        try:
            if entry.is_file(follow_symlinks=False):
                stat = entry.stat(follow_symlinks=False)
                found[name] = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
            else:
                odd.append(Problem(name, 1, 1, "is not a regular file; it is left out"))
        except FileNotFoundError:
            continue
    return dict(sorted(found.items())), tuple(odd)


def _entries(directory: Path) -> Iterator[tuple[str, os.DirEntry[str]]]:
    for folder in ("", *FOLDERS):
        try:
            with os.scandir(directory / folder) as entries:
                for entry in entries:
                    yield folder, entry
        except FileNotFoundError:
            continue


def _file_name_problem(name: str) -> Problem | None:
    folder, _, file = name.rpartition("/")
    stem = file.removesuffix(".json")
    if not folder or is_slug(stem):
        return None
    return Problem(
        name, 1, 1, f'the file name "{stem}" is no slug: use a-z, 0-9 and single hyphens, ≤ 100'
    )


def _explain(name: str, data: bytes, kind: type[DataFile], error: Exception) -> Iterator[Problem]:
    """Every mistake of a file that failed to load, with line and column."""
    try:
        text = data.decode()
    except UnicodeDecodeError as bad:
        before = data[: bad.start].decode()
        yield Problem(
            name,
            *positions.line_and_column(before, len(before)),
            f"byte 0x{data[bad.start]:02x} is not UTF-8 text; save the file as UTF-8",
        )
        return
    parsed = positions.parse(text)
    found = [(slip.offset, slip.message) for slip in parsed.slips]
    if parsed.complete:
        found += list(_schema_errors(parsed, kind))
    if not found:
        found = [(0, str(error))]
    for offset, message in sorted(set(found)):
        yield Problem(name, *positions.line_and_column(text, offset), message)


def _schema_errors(parsed: positions.Parsed, kind: type[DataFile]) -> Iterator[tuple[int, str]]:
    """Offset and sentence of everything in a file that its schema does not allow."""
    from jsonschema import Draft202012Validator, FormatChecker  # noqa: PLC0415 - 60 ms, rarely needed

    schema = msgspec.json.schema(kind)
    validator = Draft202012Validator(schema, format_checker=FormatChecker(["date"]))
    for error in validator.iter_errors(parsed.value):
        path = tuple(error.absolute_path)
        if error.validator == "additionalProperties":
            known = list(error.schema["properties"])
            for key in error.instance:
                if key not in known:
                    yield parsed.offsets[(*path, key)], _unknown_key(key, known)
        else:
            yield parsed.offsets.get(path, 0), _sentence(path, error)


def _unknown_key(key: str, known: list[str]) -> str:
    close = process.extractOne(key, known, score_cutoff=60)
    hint = f'did you mean "{close[0]}"?' if close else f"allowed are {', '.join(sorted(known))}"
    return f'unknown key "{key}": {hint}'


def _sentence(path: positions.JsonPath, error: Any) -> str:
    where = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in path).lstrip(".")
    if error.validator == "required":
        missing = [key for key in error.validator_value if key not in error.instance]
        return f"{where or 'the file'} lacks {', '.join(missing)}"
    if error.validator == "anyOf":
        kinds = [option.get("type", "object") for option in error.validator_value]
        return f"{where} must be {' or '.join(kinds)}, not {_shown(error.instance)}"
    if error.validator == "pattern":
        return f"{where} is {_shown(error.instance)}, which does not fit {error.validator_value}"
    if error.validator == "enum":
        allowed = ", ".join(json.dumps(value) for value in error.validator_value)
        return f"{where} is {_shown(error.instance)}; it must be one of {allowed}"
    return f"{where or 'the file'}: {error.message}"


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:59]}…"  # noqa: PLR2004
