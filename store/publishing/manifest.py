"""What a dataset holds: its manifest, and what is wrong with a dataset on disk."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from store.ledger import HEADS, LEDGER, Present
from store.publishing.directories import CURRENT
from store.records import Problem, Withholding
from store.text import is_slug

FOLDER, MANIFEST = "dataset", "dataset.json"
EVIDENCE = "evidence/{}.jsonl.gz"


class File(Struct, frozen=True, forbid_unknown_fields=True):
    """A file: its size in bytes, its SHA-256 in hex, and, of a table, its rows."""

    bytes: int
    sha256: str
    rows: int | None = None


class Manifest(Struct, frozen=True, forbid_unknown_fields=True):
    """A dataset: its files by name, and the versions of the ``service`` and tools that wrote them.

    ``version`` is the ``date`` of the newest poll, in UTC, and digits of the digest of all files
    but those that describe them; ``present`` commits to every line, closed or not. Polls whose
    texts are ``withheld`` stand there by their ids.
    """

    version: str
    date: str
    title: str
    licence: str
    sample: bool
    base_url: str | None
    service: str
    tools: dict[str, str]
    present: Present
    files: dict[str, File]
    withheld: dict[str, Withholding]

    @property
    def has_parquet(self) -> bool:
        """Whether there are tables in Parquet."""
        return "pyarrow" in self.tools

    @property
    def evidence(self) -> dict[str, File]:
        """The files of evidence, by the name of the history file."""
        start, end = EVIDENCE.split("{}")
        return {
            name.removeprefix(start).removesuffix(end): file
            for name, file in self.files.items()
            if name.startswith(start)
        }


_DECODER = msgspec.json.Decoder(Manifest)


def decode(data: bytes) -> Manifest:
    """Return a manifest from its bytes.

    Raises:
        ValueError: it is not a manifest.
    """
    manifest = _DECODER.decode(data)
    for name in (LEDGER, HEADS):
        if name not in manifest.files:
            raise msgspec.ValidationError(f"it lists no {name}")
    if unknown := [file for file in manifest.evidence if not is_slug(file)]:
        raise msgspec.ValidationError(f"it lists evidence of {unknown[0][:100]!r}")
    return manifest


def encode(manifest: Manifest) -> bytes:
    """Return a manifest as it is written: indented, keys sorted."""
    return msgspec.json.format(msgspec.json.encode(manifest, order="sorted")) + b"\n"


def read(dataset: Path) -> Manifest | str:
    """Return the manifest of a dataset, or why it cannot be read."""
    try:
        return decode((dataset / MANIFEST).read_bytes())
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    except ValueError as error:
        return f"it is not a manifest: {error}"


def problems(directory: Path) -> list[Problem]:
    """Return what is wrong in a data directory's dataset, as far as names and sizes tell."""
    link = directory / FOLDER / CURRENT
    while link.is_symlink() or link.is_dir():  # a replica has no links
        current = link.resolve()
        found = list(_problems(current))
        if not found or current == link.resolve():  # else it was just replaced
            return found
    return []


def _problems(dataset: Path) -> Iterator[Problem]:
    manifest = read(dataset)
    if isinstance(manifest, str):
        yield _problem(MANIFEST, manifest)
        return
    for name, file in manifest.files.items():
        try:
            size = (dataset / name).stat().st_size
        except OSError as error:
            yield _problem(name, f"it cannot be read: {error.strerror}")
        else:
            if size != file.bytes:
                yield _problem(name, f"it has {size:,} bytes, not {file.bytes:,}")


def _problem(name: str, reason: str) -> Problem:
    message = f"{reason}; `flask dataset` writes it again"
    return Problem(f"{FOLDER}/{CURRENT}/{name}", 1, 1, message)
