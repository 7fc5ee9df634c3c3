"""Backups: every file of a data directory in another place, and back.

A place holds ``objects/<sha256>``, each file's content once, and ``backup.json``, which is written
last and says which file has which. Objects never change, so readers see the last whole backup.
History and proof only grow: a data directory that does not begin with what its last backup holds
is refused, for it would replace what it has lost.

Batches and history are copied first, the proof only as far as it went before, edited files then:
nothing in a backup points at what a service appends or saves meanwhile, which is in the next one.
"""

from __future__ import annotations

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import Struct

from store.copies.places import AT_ONCE, Item, Place, Read, Replaced
from store.disk import atomic_write, opened
from store.last_good import FOLDER as LAST_GOOD
from store.publishing import manifest as dataset
from store.publishing.leaves import FOLDER as PROOF
from store.publishing.leaves import Heads, LeafList, parse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

MANIFEST, OBJECTS = "backup.json", "objects"
HISTORY = "history"
SPENT = ".locks/spent.json"
"""What was spent today: without it a restored service would spend the day's cap again."""
ORDER: tuple[str | tuple[str, ...], ...] = (
    ("batches/", f"{LAST_GOOD}/batches/"),  # none may be called collected where its polls are not
    f"{HISTORY}/",
    f"{PROOF}/",
    (),  # all that is not named here, such as edited files
    f"{dataset.FOLDER}/{dataset.OBJECTS}/",
    ("models.json", "site.json"),  # without them nothing is served or polled
)
"""How names begin, in the order in which files are copied and put in place."""
STAGED = ".restoring"
"""Where files are until all are there and have been checked."""
PULLED = ".pulled"
"""Marks a data directory that is a copy, and may be replaced by a newer one."""


class BackupError(Exception):
    """A backup cannot be made or used; the sentence says why."""


class Saved(Struct, frozen=True, forbid_unknown_fields=True):
    """One file: its size in bytes, its SHA-256 and when it was modified, in Unix ns."""

    size: int
    sha256: str
    modified: int


class Backup(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A backup: when and by which version it was made, its files, and the head of its proof.

    ``head`` is the number of lines in the proof and their root in hex (RFC 6962).
    ``before`` are the objects of the backup before it, which may still be read.
    """

    version: Literal[1]
    made: str
    made_by: str
    head: tuple[int, str]
    files: dict[str, Saved]
    before: tuple[str, ...] = ()

    @property
    def objects(self) -> set[str]:
        """The digests of all its files."""
        return {saved.sha256 for saved in self.files.values()}

    @property
    def size(self) -> int:
        """Of all its files, in bytes."""
        return sum(saved.size for saved in self.files.values())


_BACKUP = msgspec.json.Decoder(Backup)
_NONE = Backup(1, "", "", (0, ""), {})


def last(place: Place) -> tuple[Backup, Read] | None:
    """The backup in a place, and its manifest as it was read.

    Raises:
        BackupError: there is one that cannot be read.
    """
    found = place.read(MANIFEST)
    if found is None:
        return None
    try:
        backup = _BACKUP.decode(found.data)
    except ValueError as error:
        raise BackupError(f"{MANIFEST} is none that this version can read: {error}") from None
    for name in backup.files:
        if not _is_inside(name):
            raise BackupError(f"{MANIFEST} names {name!r}, which is no file of a data directory")
    return backup, found


def back_up(directory: Path, place: Place, now: str, version: str) -> tuple[Backup, int]:
    """Bring the backup in a place up to date with a data directory; how many objects were written.

    Raises:
        BackupError: the directory has lost history that the backup has, or another backup to the
            same place ended meanwhile.
        PlaceError: the place cannot be used.
        OSError: a file cannot be read.
    """
    before = last(place)
    known, tag = (before[0], before[1].tag) if before else (_NONE, None)
    _check_grown(directory, known)
    there = known.objects | set(known.before)
    count = len(there)
    ends = _proof_ends(directory)
    files: dict[str, Saved] = {}

    def items() -> Iterator[Item]:
        for name in _names(directory):
            found = _read(directory / name)
            if found is None or (name.startswith(f"{PROOF}/") and name not in ends):
                continue  # it is gone, or was begun, since
            data, modified = found
            if _grows(name):  # what is just being written of a line may yet be taken back
                data = data[: ends.get(name, data.rfind(b"\n") + 1)]
            saved = Saved(len(data), sha256(data).hexdigest(), modified)
            files[name] = saved
            if saved.sha256 not in there:
                there.add(saved.sha256)
                yield Item(f"{OBJECTS}/{saved.sha256}", data)

    place.write(items())
    old = tuple(sorted(known.objects))
    backup = Backup(1, now, version, _head(directory, ends), files, old)
    body = msgspec.json.format(msgspec.json.encode(backup, order="sorted"))
    try:
        place.replace(Item(MANIFEST, body), tag)
    except Replaced:
        raise BackupError("another backup to the same place ended meanwhile; it stands") from None
    unused = set(known.before) - known.objects - backup.objects
    place.remove(f"{OBJECTS}/{digest}" for digest in unused)
    return backup, len(there) - count


def restore(directory: Path, place: Place, *, pull: bool = False) -> tuple[Backup, int]:
    """Put a backup's files into a data directory; how many were written.

    The directory may only hold files of the same backup, as an interrupted restore leaves them.
    With ``pull`` also what an earlier pull put there: what the backup lacks is then taken away,
    and its history must begin with the one that is there.

    Raises:
        BackupError: there is no backup, it is not whole, or the directory holds something else;
            nothing was changed.
        PlaceError: the place cannot be used.
        OSError: a file cannot be written.
    """
    found = last(place)
    if not found:
        raise BackupError("there is no backup there")
    backup = found[0]
    names = sorted(backup.files, key=_place_of)
    wanted = [name for name in names if not (pull and _is_own(name))]
    here = {name: _digest(directory / name) for name in _names(directory)}
    extra = sorted(name for name in here.keys() - backup.files.keys() if not _is_own(name))
    other = {n for n in wanted if n in here and here[n] != backup.files[n].sha256}
    if (extra or other) and not (pull and (directory / PULLED).exists()):
        what = min([*extra, *other])
        raise BackupError(
            f"{directory} already holds {what}, which is not what the backup has; nothing was "
            "changed. Stop the service, move the directory away, and try again"
        )
    changed = [name for name in wanted if name not in here or name in other]
    with _staged(directory, place, backup, changed) as staged:
        _check_extends(directory, backup, staged, other)
        if pull:
            atomic_write(directory / PULLED, b"")
        for name in changed:
            path, saved = directory / name, backup.files[name]
            path.parent.mkdir(parents=True, exist_ok=True)
            mode = 0o640 if name.startswith(".") else 0o644
            atomic_write(path, (staged / saved.sha256).read_bytes(), mode, saved.modified)
    for name in extra:
        (directory / name).unlink(missing_ok=True)
    return backup, len(changed)


@contextmanager
def _staged(directory: Path, place: Place, backup: Backup, names: Iterable[str]) -> Iterator[Path]:
    """A folder in the data directory with the objects of these files, all fetched and checked."""
    staged = directory / STAGED
    shutil.rmtree(staged, ignore_errors=True)
    staged.mkdir(parents=True)
    named = {backup.files[name].sha256: name for name in names}
    try:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(partial(_fetch, place, staged), named, named.values()))
        yield staged
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def _fetch(place: Place, staged: Path, digest: str, name: str) -> None:
    found = place.read(f"{OBJECTS}/{digest}")
    if found is None or sha256(found.data).hexdigest() != digest:
        why = "is missing" if found is None else "is damaged"
        raise BackupError(f"{OBJECTS}/{digest}, which is {name}, {why} in the backup")
    (staged / digest).write_bytes(found.data)


def _is_own(name: str) -> bool:
    """Whether it belongs to the machine that serves, not to what a copy is of."""
    return name == SPENT or name.startswith(f"{LAST_GOOD}/")


def _is_inside(name: str) -> bool:
    parts = PurePosixPath(name).parts
    return bool(parts) and ".." not in parts and not name.startswith("/") and "\0" not in name


def _names(directory: Path) -> list[str]:
    """The files of a data directory that are backed up, history first; never a key.

    What begins with a dot is left out, but for the last good versions and what was spent today.
    """
    found = []
    for folder, folders, files in os.walk(directory):
        inside = os.path.relpath(folder, directory)
        top = inside == "."
        folders[:] = [f for f in folders if not f.startswith(".") or (top and f == LAST_GOOD)]
        prefix = "" if top else f"{inside}/"
        found += [f"{prefix}{file}" for file in files if not file.startswith(".")]
    if (directory / SPENT).is_file():
        found.append(SPENT)
    return sorted(found, key=_place_of)


def _place_of(name: str) -> tuple[int, str]:
    first = (i for i, start in enumerate(ORDER) if name.startswith(start))
    return next(first, ORDER.index(())), name


def _proof_ends(directory: Path) -> dict[str, int]:
    """How far each file of the proof goes now, in bytes, to the end of its last whole line."""
    found = ((path, _read(path)) for path in (directory / PROOF).glob("*"))
    return {f"{PROOF}/{path.name}": read[0].rfind(b"\n") + 1 for path, read in found if read}


def _read(path: Path) -> tuple[bytes, int] | None:
    """A file's bytes, and when it was modified, in Unix ns; ``None`` if it is gone."""
    try:
        with opened(path) as handle:
            modified = os.fstat(handle).st_mtime_ns
            return b"".join(iter(lambda: os.read(handle, 1 << 24), b"")), modified
    except FileNotFoundError:
        return None


def _head(directory: Path, ends: Mapping[str, int]) -> tuple[int, str]:
    """How many lines the proof had, and their root."""
    heads, leaves = Heads(), LeafList(directory)
    for month in leaves.months():
        name = f"{PROOF}/{month}.leaves"
        for leaf in parse(leaves.month(month)[: ends.get(name, 0)], month, name):
            heads.add(leaf.day, leaf.hash)
    return heads.tree.size, heads.tree.root().hex()


def _check_grown(directory: Path, known: Backup) -> None:
    """See that history and proof begin with what the backup holds."""
    for name, saved in known.files.items():
        if not _grows(name):
            continue
        found = _read(directory / name)
        if found is None or sha256(found[0][: saved.size]).hexdigest() != saved.sha256:
            raise BackupError(
                f"{name} does not begin with what the last backup ({known.made}) holds of it: it "
                "was cut, rewritten or lost. The backup stays as it is; restore from it, or back "
                "up to another place"
            )


def _check_extends(directory: Path, backup: Backup, staged: Path, other: Iterable[str]) -> None:
    """See that what only grows is, in a copy, the beginning of what takes its place."""
    for name in other:
        if _grows(name):
            here = _read(directory / name)
            new = (staged / backup.files[name].sha256).read_bytes()
            if here and not new.startswith(here[0]):
                raise BackupError(
                    f"{name} in the backup does not begin with what is here; nothing was changed. "
                    "If the backup is right, move the directory away and pull again"
                )


def _grows(name: str) -> bool:
    folder, _, file = name.partition("/")
    return (folder == HISTORY and file.endswith(".jsonl")) or folder == PROOF


def _digest(path: Path) -> str | None:
    found = _read(path)
    return sha256(found[0]).hexdigest() if found else None
