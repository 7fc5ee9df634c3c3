"""Manifest of a dataset, and the files that describe it.

A card is for people, a Data Package for programs, JSON-LD for the page; each is a pure function of
the manifest. Source: datapackage.org/standard (version 2). Sizes and Parquet are left out of the
package: its own reader, frictionless, cannot take them over HTTP.
"""

from pathlib import Path
from typing import Any

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from msgspec import Struct

from store.ledger import HEADS, LEDGER, ProvisionalHead
from store.publishing.directories import CURRENT
from store.publishing.tables import ALL
from store.records import Problem, Withholding
from store.text import LICENCES, is_slug

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
    but those that describe them; ``present`` is the provisional head over every line, closed or
    not. Polls whose texts are ``withheld`` stand there by their ids.
    """

    # A new member needs a default: else the dataset in place could not be read any more.
    version: str
    date: str
    title: str
    licence: str
    sample: bool
    base_url: str | None
    service: str
    tools: dict[str, str]
    present: ProvisionalHead
    files: dict[str, File]
    withheld: dict[str, Withholding]

    @property
    def has_parquet(self) -> bool:
        """True if there are tables in Parquet."""
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
    # Without these nothing in it can be verified.
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
    """Return why a data directory's dataset cannot be served, if there is one and it cannot."""
    dataset = directory / FOLDER / CURRENT
    reason = read(dataset) if dataset.is_dir() else None
    if not isinstance(reason, str):
        return []
    message = f"{reason}; `flask dataset` writes it again"
    return [Problem(f"{FOLDER}/{CURRENT}/{MANIFEST}", 1, 1, message)]


CARD, PACKAGE = "README.md", "datapackage.json"
DESCRIPTIONS = (CARD, PACKAGE)
"""The files that ``documents`` makes: the dataset, its page and ``flask verify`` go by these names,
dataset.md tells them by hand."""
MEDIA_TYPES = {
    ".parquet": "application/vnd.apache.parquet",
    ".csv": "text/csv",
    ".gz": "application/gzip",
    ".jsonl": "application/jsonl",
    ".json": "application/json",
    ".md": "text/markdown",
}
"""Media types by extension, as files are served and described."""
_INVENTED = "This is a sample: products, names and answers are invented. "
_ABOUT = (
    "What AI assistants answer when they are asked for the best of something: every poll, failed "
    "ones included, every pick, and the rankings that follow. It measures what assistants "
    "recommend, not what is true."
)
_PROFILE = "https://datapackage.org/profiles/2.0/{}.json"
_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parents[2] / "templates"),
    autoescape=False,  # noqa: S701 - Markdown for whoever downloads it, not a page
    undefined=StrictUndefined,
    trim_blocks=True,
    keep_trailing_newline=True,
)


def documents(manifest: Manifest) -> dict[str, bytes]:
    """Return every descriptive file by name; ``manifest`` tells of all other files."""
    package = msgspec.json.format(msgspec.json.encode(_package(manifest))) + b"\n"
    return {CARD: _card(manifest).encode(), PACKAGE: package}


def media_type(name: str) -> str:
    """Return the media type of a file; one without an extension is text."""
    return next((type_ for end, type_ in MEDIA_TYPES.items() if name.endswith(end)), "text/plain")


def cite_as(manifest: Manifest) -> str:
    """Return how to cite a dataset."""
    where = f", {manifest.base_url}/data" if manifest.base_url else ""
    return f"{manifest.title}: what AI assistants recommend, version {manifest.version}{where}"


def json_ld(manifest: Manifest, address: str) -> dict[str, Any]:
    """Return the dataset in the words of schema.org; its files are below ``address``."""
    return {
        "@context": "https://schema.org",
        "@type": "Dataset",
        "name": manifest.title,
        "description": _about(manifest),
        "version": manifest.version,
        "dateModified": manifest.date,
        "isAccessibleForFree": True,
        "creator": {"@type": "Organization", "name": manifest.title},
        "citation": cite_as(manifest),
        "license": LICENCES.get(manifest.licence, manifest.licence),
        "distribution": [
            {
                "@type": "DataDownload",
                "contentUrl": address + name,
                "encodingFormat": media_type(name),
            }
            for name in sorted(manifest.files)
            # A file for each category would make the page a hundred times longer.
            if not name.startswith("evidence/")
        ],
    }


def _about(manifest: Manifest) -> str:
    return (_INVENTED if manifest.sample else "") + _ABOUT


def _card(manifest: Manifest) -> str:
    return _TEMPLATES.get_template("dataset.md").render(
        dataset=manifest,
        about=_about(manifest),
        tables=ALL,
        licence_url=LICENCES.get(manifest.licence),
        cite=cite_as(manifest),
    )


def _package(manifest: Manifest) -> dict[str, Any]:
    licence = LICENCES.get(manifest.licence)
    return {
        "$schema": _PROFILE.format("datapackage"),
        "name": "consensus-rankings",
        "title": manifest.title,
        "description": _about(manifest),
        "version": manifest.version,
        "created": f"{manifest.date}T00:00:00Z",
        **({"homepage": f"{manifest.base_url}/data"} if manifest.base_url else {}),
        "licenses": [
            {"name": manifest.licence.replace(" ", "-"), "title": manifest.licence}
            | ({"path": licence} if licence else {})
        ],
        "resources": [
            _resource(name, file)
            for name, file in sorted(manifest.files.items())
            if name.endswith(".csv")
        ],
    }


def _resource(name: str, file: File) -> dict[str, Any]:
    table = name.removesuffix(".csv")
    return {
        "$schema": _PROFILE.format("dataresource"),
        "name": table,
        "path": name,
        "description": f"A row is {ALL[table].about}.",
        "hash": f"sha256:{file.sha256}",
        "mediatype": media_type(name),
        "type": "table",
        "format": "csv",
        "encoding": "utf-8",
        "schema": {
            "$schema": _PROFILE.format("tableschema"),
            "fields": [
                {"name": name, "type": column.type, "description": column.about}
                for name, column in ALL[table].columns.items()
            ],
            "missingValues": [""],
        },
    }
