"""What a dataset holds: its manifest, and where the files of its versions are.

Files are kept under ``objects/`` by the SHA-256 of their content and never change; a version's
manifest gives each its name. The newest version's files also stand under their names, for whoever
has the directory; readers over HTTP are sent objects only, so that a version is always whole.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta, Struct

from store.publishing.leaves import HEADS
from store.records import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

FOLDER = "dataset"
MANIFEST, SUMS, OBJECTS, VERSIONS = "dataset.json", "SHA256SUMS", "objects", "v"
EVIDENCE, LEAVES = "evidence/month={}/polls.jsonl.gz", "proof/month={}/leaves.txt"


class File(Struct, frozen=True, forbid_unknown_fields=True):
    """One file: its size in bytes, its SHA-256 in hex, and, of a table, its rows."""

    bytes: int
    sha256: str
    rows: int | None = None

    def object(self, name: str) -> str:
        """Where the file is kept; its extension stays, as some readers go by it."""
        _, dot, extension = name.rpartition("/")[2].partition(".")
        return f"{OBJECTS}/{self.sha256}{dot}{extension}"


def digest_of(path: str) -> str | None:
    """The SHA-256 in hex that is in an object's path; ``None`` for what is no object.

    >>> digest_of(File(0, "00" * 32).object("polls.csv")) == "00" * 32, digest_of("dataset.json")
    (True, None)
    """
    folder, _, name = path.rpartition("/")
    return name.partition(".")[0] if folder == OBJECTS else None


class Redaction(Struct, frozen=True, order=True, forbid_unknown_fields=True):
    """A poll whose texts were taken out, since when and why."""

    id: str
    date: str
    reason: str


class Manifest(Struct, frozen=True, forbid_unknown_fields=True):
    """One version: its files by name, and for each month what its files were made from.

    ``date`` is the UTC day of the newest poll. ``without`` are tables that were taken out of an
    older version when a poll was withheld, because they cannot be made again.
    """

    version: Annotated[str, Meta(pattern=r"^\d{4}\.\d\d?\.\d\d?(\+\d+)?$")]
    date: str
    title: str
    licence: str
    sample: bool
    base_url: str | None
    files: dict[str, File]
    months: dict[str, str]
    withheld: tuple[Redaction, ...] = ()
    without: tuple[str, ...] = ()

    def tables(self, name: str) -> list[str]:
        """The Parquet files of a table by month, oldest first."""
        return sorted(file for file in self.files if file.startswith(f"{name}/"))


_DECODER = msgspec.json.Decoder(Manifest)


def decode(data: bytes) -> Manifest:
    """A manifest from its bytes.

    Raises:
        ValueError: it is none.
    """
    found = _DECODER.decode(data)
    if HEADS not in found.files:
        raise msgspec.ValidationError(f"it lists no {HEADS}")
    return found


def encode(manifest: Manifest) -> bytes:
    """A manifest as it is written: indented, keys sorted."""
    return msgspec.json.format(msgspec.json.encode(manifest, order="sorted")) + b"\n"


def versions(directory: Path) -> dict[str, Manifest]:
    """Every version whose manifest can be read, by the manifest's name, the newest last."""
    every = map(read, [*_versions(directory), directory / MANIFEST])
    found = {f"{VERSIONS}/{m.version}.json": m for m in every if isinstance(m, Manifest)}
    return dict(sorted(found.items(), key=lambda item: version_key(item[1].version)))


def kept(directory: Path, name: str, file: File) -> bytes | None:
    """A version's file, ``None`` if it is lost or is not what it was."""
    try:
        body = (directory / file.object(name)).read_bytes()
    except OSError:
        return None
    return body if sha256(body).hexdigest() == file.sha256 else None


def problems(directory: Path, *, older: bool) -> Iterator[Problem]:
    """What is wrong in the dataset of a data directory, as far as names and sizes tell.

    Of versions before the newest only if they are asked for, since there may be thousands.
    """
    others = _versions(directory)
    if not others and not (directory / MANIFEST).exists():
        return
    mends, seen = {MANIFEST: "`flask dataset` writes it again"}, set[str]()
    for path in [directory / MANIFEST, *(others if older else ())]:
        gone = f"put it back from a backup, or remove {path.name}, and that version is gone"
        mend = mends.get(path.name, gone)
        found = read(path)
        if isinstance(found, str):
            where = path.relative_to(directory).as_posix()
            yield Problem(f"{FOLDER}/{where}", 1, 1, f"it is no manifest: {found}; {mend}")
            continue
        if path.name == MANIFEST:
            mends[f"{found.version}.json"] = mend
        for name, file in found.files.items():
            place = file.object(name)
            if place not in seen and (fault := _fault(directory / place, file.bytes)):
                why = f"{name} of version {found.version} {fault}; {mend}"
                yield Problem(f"{FOLDER}/{place}", 1, 1, why)
            seen.add(place)


def _versions(directory: Path) -> list[Path]:
    return sorted((directory / VERSIONS).glob("*.json"))


def read(path: Path) -> Manifest | str:
    """A manifest, or why it is none."""
    try:
        return decode(path.read_bytes())
    except OSError as error:
        return str(error.strerror)
    except ValueError as error:
        return str(error)


def _fault(path: Path, size: int) -> str | None:
    try:
        found = path.stat().st_size
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return None if found == size else f"has {found:,} bytes, not {size:,}"


def version_key(version: str) -> tuple[int, ...]:
    """What orders versions: their numbers.

    >>> version_key("2026.11.9") < version_key("2026.11.9+2") < version_key("2026.11.10")
    True
    """
    day, _, again = version.partition("+")
    return (*map(int, day.split(".")), int(again or 1))


def published_paths(manifests: Mapping[str, Manifest], latest: Manifest) -> dict[str, str]:
    """Every path below ``/data/`` with the file in the dataset's directory that is sent for it."""
    objects = (file.object(name) for m in manifests.values() for name, file in m.files.items())
    paths = {path: path for path in (MANIFEST, SUMS, *manifests, *objects)}
    return paths | {name: file.object(name) for name, file in latest.files.items()}
