"""What describes a dataset: a card for people, a Data Package for programs, JSON-LD for the page.

Each is a pure function of the manifest. Source: datapackage.org/standard (version 2). What its own
reader, frictionless, cannot take is left out of the package: sizes, over HTTP, and Parquet.
"""

from pathlib import Path
from typing import Any

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from store.publishing.manifest import File, Manifest
from store.publishing.tables import ALL
from store.text import LICENCES

CARD, PACKAGE = "README.md", "datapackage.json"
NAMES = (CARD, PACKAGE)
"""The files that describe a dataset."""
MEDIA_TYPES = {
    ".parquet": "application/vnd.apache.parquet",
    ".csv": "text/csv",
    ".gz": "application/gzip",
    ".jsonl": "application/jsonl",
    ".json": "application/json",
    ".md": "text/markdown",
}
"""By extension, as files are served and described."""
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


def content_type(name: str) -> str:
    """Return the media type of a file as it is sent."""
    type_ = media_type(name)
    return f"{type_}; charset=utf-8" if type_.startswith("text/") else type_


def cite_as(manifest: Manifest) -> str:
    """Return how to cite a dataset."""
    where = f", {manifest.base_url}/data" if manifest.base_url else ""
    return f"{manifest.title}: what AI assistants recommend, version {manifest.version}{where}"


def structured(manifest: Manifest, address: str) -> dict[str, Any]:
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
