"""One hand-edited file: its bytes in, a record or every mistake in it out."""

from __future__ import annotations

import errno
import os
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from store import json_positions
from store.claims import shared_names
from store.disk import opened, real_path
from store.last_good import Copy
from store.listing import MISSING, Signature, signature_of
from store.records import (
    Category,
    DataFile,
    Models,
    Problem,
    Product,
    Site,
    Synonyms,
    Topics,
    Withheld,
    Words,
    WrittenExperiment,
    is_slug,
)
from store.validation import explain

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from store.records import Severity

MAX_BYTES = 1 << 20

SINGLE: Mapping[str, type[DataFile]] = {
    "site.json": Site,
    "models.json": Models,
    "synonyms.json": Synonyms,
    "words.json": Words,
    "topics.json": Topics,
    "withheld.json": Withheld,
}
FOLDERS: Mapping[str, type[DataFile]] = {
    "categories": Category,
    "products": Product,
    "labs": WrittenExperiment,
}
REQUIRED = ("site.json", "models.json")

_REFUSED = {
    errno.ELOOP: "is a symbolic link that leads out of the data directory, which is not followed; "
    "put the file itself here",
    errno.EINVAL: "is not a regular file; put a file here, or take it away",
    errno.EFBIG: f"is larger than {MAX_BYTES:,} bytes; no data file needs to be",
}
"""Why a file is not read, by the number of the error."""


UNREAD: Signature = (-1, 0, 0, 0)
"""Stands for a file that could not be read, perhaps only just now: no file has it."""


class Loaded(Struct, frozen=True):
    """A file as it was last looked at: the record and text in use, if any, and the problems in it.

    ``signature`` is that of what was looked at, ``modified`` is when the version in use was, in ns.
    """

    record: DataFile | None
    text: str
    problems: tuple[Problem, ...]
    signature: Signature
    modified: int = 0

    @property
    def copy(self) -> Copy:
        """The version in use."""
        return Copy(self.text.encode(), self.modified)


def problem_in(
    text: str,
    name: str,
    path: json_positions.JsonPath,
    message: str,
    severity: Severity = "error",
) -> Problem:
    """A problem at one value of a file's text."""
    offset = _offsets(text).get(path, 0)
    return Problem(name, *json_positions.line_and_column(text, offset), message, severity)


@lru_cache(maxsize=1)
def _offsets(text: str) -> Mapping[json_positions.JsonPath, int]:
    """Where everything stands in a text; kept because one file can have a thousand problems."""
    return json_positions.parse(text).offsets


def load(directory: Path, name: str) -> Loaded | None:
    """Read one file by its relative name, with every problem in it; ``None`` if it just went."""
    path, signature = directory / name, MISSING
    try:
        data, signature = _read(real_path(path, directory))
    except FileNotFoundError:
        if name not in REQUIRED:
            return None
        return unusable(name, signature, "the file is missing; `flask init DIR` shows one")
    except OSError as error:
        settled = error.errno in (errno.EINVAL, errno.EFBIG)
        signature = signature_of(path.lstat()) if settled else UNREAD
        why = _REFUSED.get(error.errno or 0, f"cannot be read: {error.strerror}")
        return unusable(name, signature, why)
    if not may_be_named(name):
        message = f'the file name "{slug_of(name)}" is no slug; use a-z, 0-9 and single hyphens'
        return unusable(name, signature, f"{message}, at most 100")
    return understand(name, data, signature)


def may_be_named(name: str) -> bool:
    """Whether a file of this name is one that is read."""
    return name in SINGLE or is_slug(slug_of(name))


def slug_of(name: str) -> str:
    """The slug of what a file of this name describes."""
    return name.rpartition("/")[2].removesuffix(".json")


def understand(name: str, data: bytes, signature: Signature = MISSING) -> Loaded:
    """What the bytes of a data file say, or every mistake in them."""
    kind = SINGLE.get(name) or FOLDERS[name.partition("/")[0]]
    try:
        record = msgspec.json.decode(data, type=kind)
        text = data.decode()
        json_positions.refuse_what_msgspec_takes(text)
    except (ValueError, RecursionError) as error:
        return Loaded(None, "", tuple(explain(name, data, kind, error)), signature)
    if isinstance(record, Models):
        problems = [problem_in(text, name, path, why) for path, why in shared_names(record)]
        return Loaded(None if problems else record, text, tuple(problems), signature)
    return Loaded(record, text, (), signature)


def unusable(name: str, signature: Signature, message: str) -> Loaded:
    """A file of which nothing can be used, and why."""
    return Loaded(None, "", (Problem(name, 1, 1, message),), signature)


def _read(path: Path) -> tuple[bytes, Signature]:
    """A regular file's bytes, and its signature after they were read."""
    with opened(path) as handle:
        size = os.fstat(handle).st_size
        if size > MAX_BYTES:
            raise OSError(errno.EFBIG, "it is too large", path)
        return os.read(handle, size), signature_of(os.fstat(handle))
