"""What a dataset holds: its manifest, and where the files of its versions are.

Files are kept under ``objects/`` by the SHA-256 of their content and are never changed; the
manifest of a version gives each of them its name. Beside them the newest version's files also
stand under their names, for whoever has the directory. Readers over HTTP are sent objects only,
so a version is whole at every moment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping
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

    version: str
    date: str
    title: str
    licence: str
    sample: bool
    base_url: str | None
    files: dict[str, File]
    months: dict[str, str]
    withheld: tuple[Redaction, ...] = ()
    without: tuple[str, ...] = ()

    def tables(self, name: str, suffix: str = ".parquet") -> list[str]:
        """The files of a table by month, oldest first."""
        found = (f for f in self.files if f.startswith(f"{name}/") and f.endswith(suffix))
        return sorted(found)


_DECODER = msgspec.json.Decoder(Manifest)


def decode(data: bytes) -> Manifest:
    """A manifest from its bytes.

    Raises:
        msgspec.MsgspecError: it is none.
    """
    return _DECODER.decode(data)


def encode(manifest: Manifest) -> bytes:
    """A manifest as it is written: indented, keys sorted."""
    return msgspec.json.format(msgspec.json.encode(manifest, order="sorted")) + b"\n"


def versions(directory: Path) -> dict[str, Manifest]:
    """Every version in a dataset by the name of its manifest, the newest last."""
    found = {
        f"{VERSIONS}/{path.name}": decode(path.read_bytes())
        for path in (directory / VERSIONS).glob("*.json")
    }
    return dict(sorted(found.items(), key=lambda item: version_key(item[1].version)))


def version_key(version: str) -> tuple[int, ...]:
    """What orders versions: their numbers.

    >>> version_key("2026.11.9") < version_key("2026.11.9+2") < version_key("2026.11.10")
    True
    """
    day, _, again = version.partition("+")
    return (*map(int, day.split(".")), int(again or 1))


def published_paths(manifests: Mapping[str, Manifest], latest: Manifest) -> dict[str, str]:
    """Every path below ``/data/`` with the file in the dataset's directory that is sent for it."""
    paths = {MANIFEST: MANIFEST, SUMS: SUMS}
    for name, manifest in manifests.items():
        paths[name] = name
        for file, found in manifest.files.items():
            paths[found.object(file)] = found.object(file)
    paths.update({name: found.object(name) for name, found in latest.files.items()})
    return paths
