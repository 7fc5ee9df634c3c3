"""What is in a data directory, as far as a look at the folders tells: nothing is opened here."""

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

OTHERS = ("history", "schemas", "LICENSE")
_NEARLY_JSON = (".json", ".json.txt", ".jsonc", ".json5")
_LIKE_A_FILE, _LIKE_A_FOLDER = 80, 65

Signature = tuple[int, int, int, int]
"""Modification time in ns, size in bytes, inode, time of the last change of any kind in ns."""

MISSING: Signature = (0, 0, 0, 0)


class Layout(Struct, frozen=True):
    """Which files and folders a data directory may hold, and which of the files it must."""

    files: Collection[str]
    folders: Collection[str]
    required: Collection[str]


class Listing(Struct, frozen=True):
    """What is in the directory: our files by relative name, and what looks like one and is not.

    ``unlisted`` are folders that are missing or could not be looked into.
    """

    files: dict[str, Signature]
    problems: tuple[Problem, ...]
    unlisted: tuple[str, ...]


def signature_of(stat: os.stat_result) -> Signature:
    """What tells a file from what it was, or from another in its place."""
    return stat.st_mtime_ns, stat.st_size, stat.st_ino, stat.st_ctime_ns


def settled(first: Listing, second: Listing, known: Mapping[str, Signature]) -> Listing:
    """What two looks agree on; the rest is as it was known, or not there yet."""
    calm: dict[str, Signature] = {}
    for name in first.files.keys() | second.files.keys():
        now = second.files.get(name)
        believed = now if first.files.get(name) == now else known.get(name)
        if believed is not None:
            calm[name] = believed
    return Listing(calm, second.problems, second.unlisted)


def look_into(directory: Path, layout: Layout) -> Listing:
    """What is there now; a required file that is not counts as :data:`MISSING`."""
    files = dict.fromkeys(layout.required, MISSING)
    problems: list[Problem] = []
    unlisted: list[str] = []
    if not directory.is_dir():
        return Listing(files, (), ())
    for folder in ("", *layout.folders):
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
            if name in layout.files or (folder and name.endswith(".json")):
                with suppress(FileNotFoundError):
                    files[name] = signature_of(entry.stat(follow_symlinks=False))
            elif message := _oddity(entry, folder, layout):
                problems.append(Problem(name, 1, 1, message, "warning"))
    return Listing(files, tuple(sorted(problems)), tuple(unlisted))


def _entries(directory: Path, folder: str) -> list[os.DirEntry[str]]:
    """What is in a folder, without what editors leave beside a file.

    Raises:
        OSError: it cannot be listed, or is a symbolic link and so may lead anywhere.
    """
    path = directory / folder
    if folder and path.is_symlink():
        raise OSError(errno.ELOOP, "it is a symbolic link, which is not followed")
    with os.scandir(path) as entries:
        return [entry for entry in entries if not entry.name.startswith((".", "#"))]


def _oddity(entry: os.DirEntry[str], folder: str, layout: Layout) -> str | None:
    """Why a curator may wonder that something is not read; ``None`` if it is plainly not ours."""
    is_folder = entry.is_dir(follow_symlinks=False)
    is_nearly = entry.name.lower().endswith(_NEARLY_JSON)
    if folder and is_folder:
        return f"folders inside {folder} are not read"
    if folder:
        return "is not read: the name of a data file ends in .json" if is_nearly else None
    if entry.name in (*layout.folders, *OTHERS) or not (is_folder or is_nearly):
        return None
    known, cutoff = (layout.folders, _LIKE_A_FOLDER) if is_folder else (layout.files, _LIKE_A_FILE)
    close = process.extractOne(entry.name, list(known), scorer=fuzz.ratio, score_cutoff=cutoff)
    return f"is not read; did you mean {close[0]}?" if close else None
