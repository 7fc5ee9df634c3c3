"""Which files a data directory holds, from listing its folders: no file is opened here."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Struct
from rapidfuzz import fuzz, process

from store.records import Problem

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

_NEARLY_JSON = (".json", ".json.txt", ".jsonc", ".json5")
_LIKE_A_FILE, _LIKE_A_FOLDER = 80, 65
"""Least likeness (of 100) for "did you mean": `withold.json` has 88, `category` 78, `images` 50."""

Signature = tuple[int, int, int, int]
"""Modification time in ns, size in bytes, inode, time of the last change of any kind in ns."""

MISSING: Signature = (0, 0, 0, 0)


class Listing(Struct, frozen=True):
    """Our files by relative name, and warnings about entries that look like one and are not.

    ``unlisted`` are folders that are missing or could not be listed.
    """

    files: dict[str, Signature]
    problems: tuple[Problem, ...]
    unlisted: tuple[str, ...]


def signature_of(stat: os.stat_result) -> Signature:
    """What differs when a file was changed or replaced."""
    return stat.st_mtime_ns, stat.st_size, stat.st_ino, stat.st_ctime_ns


def signature_at(path: Path) -> Signature | None:
    """What differs when a file was changed; ``None`` if there is none, or nobody may look."""
    with suppress(OSError):
        return signature_of(path.lstat())
    return None


def stable(first: Listing, second: Listing, known: Mapping[str, Signature]) -> Listing:
    """The files that two listings agree on; the others as they were known, if they were."""
    calm: dict[str, Signature] = {}
    for name in first.files.keys() | second.files.keys():
        now = second.files.get(name)
        believed = now if first.files.get(name) == now else known.get(name)
        if believed is not None:
            calm[name] = believed
    return Listing(calm, second.problems, second.unlisted)


def look_into(
    directory: Path, singles: Collection[str], folders: Collection[str], required: Collection[str]
) -> Listing:
    """List the directory, which may hold single files and folders.

    A required file that is not there counts as :data:`MISSING`.
    """
    files = dict.fromkeys(required, MISSING)
    problems: list[Problem] = []
    unlisted: list[str] = []
    if not directory.is_dir():
        return Listing(files, (), ())
    for folder in ("", *folders):
        try:
            entries = _entries(directory, folder)
        except FileNotFoundError:
            unlisted.append(folder)
            continue
        except OSError as error:
            why = f"the folder cannot be looked into: {error.strerror}"
            problems.append(Problem(folder or ".", 1, 1, why))
            unlisted.append(folder)
            continue
        for entry in entries:
            name = f"{folder}/{entry.name}" if folder else entry.name
            if name in singles or (folder and name.endswith(".json")):
                with suppress(FileNotFoundError):
                    files[name] = signature_of(entry.stat(follow_symlinks=False))
                    if entry.is_symlink():  # what it leads to may change
                        files[name] = signature_of(entry.stat())
            elif message := _oddity(entry, folder, singles, folders):
                problems.append(Problem(name, 1, 1, message, "warning"))
    return Listing(files, tuple(sorted(problems)), tuple(unlisted))


def _entries(directory: Path, folder: str) -> list[os.DirEntry[str]]:
    """The entries of a folder, without the hidden and temporary files of editors.

    Raises:
        OSError: it cannot be listed, or is a symbolic link and so may lead anywhere.
    """
    path = directory / folder
    if folder and path.is_symlink():
        raise OSError(errno.ELOOP, "it is a symbolic link, which is not followed")
    with os.scandir(path) as entries:
        return [entry for entry in entries if not entry.name.startswith((".", "#"))]


def _oddity(
    entry: os.DirEntry[str], folder: str, singles: Collection[str], folders: Collection[str]
) -> str | None:
    """A warning for an entry that is not read and may be meant to be; ``None`` for any other."""
    is_folder = entry.is_dir(follow_symlinks=False)
    is_nearly = entry.name.lower().endswith(_NEARLY_JSON)
    if folder and is_folder:
        return f"folders inside {folder} are not read"
    if folder:
        return "is not read: the name of a data file ends in .json" if is_nearly else None
    if entry.name in folders or not (is_folder or is_nearly):
        return None
    known, cutoff = (folders, _LIKE_A_FOLDER) if is_folder else (singles, _LIKE_A_FILE)
    close = process.extractOne(entry.name, list(known), scorer=fuzz.ratio, score_cutoff=cutoff)
    return f"is not read; did you mean {close[0]}?" if close else None
