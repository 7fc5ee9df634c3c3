"""What describes a dataset to programs: Data Package, Croissant, CITATION.cff, LICENSE.

Each is a pure function of the manifest. Sources: datapackage.org/standard (version 2),
docs.mlcommons.org/croissant (1.1), citation-file-format (1.2.0).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec

from store.publishing.tables import MONTHLY, NESTED, WHOLE, Column, Table
from store.urls import LICENCES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from store.publishing.manifest import File, Manifest

NAMES = ("datapackage.json", "croissant.json", "CITATION.cff", "LICENSE")
"""The files that describe a version."""
MEDIA_TYPES = {
    ".parquet": "application/vnd.apache.parquet",
    ".csv": "text/csv",
    ".gz": "application/gzip",
    ".jsonl": "application/jsonl",
    ".json": "application/json",
}
"""By extension, as files are served and described."""
_INVENTED = "This is a sample: products, names and answers are invented. "
_ABOUT = (
    "What AI assistants answer when they are asked for the best of something: every poll, failed "
    "ones included, every pick, and the rankings that follow. It measures what assistants "
    "recommend, not what is true."
)
_PROFILE = "https://datapackage.org/profiles/2.0/{}.json"
_CROISSANT_TYPES = {"boolean": "sc:Boolean", "datetime": "sc:DateTime", "integer": "sc:Integer",
                    "number": "sc:Float", "string": "sc:Text"}  # fmt: skip
_TERMS = (
    "citeAs column equivalentProperty extract field fileObject fileProperty fileSet format "
    "includes isLiveDataset jsonPath key md5 parentField path recordSet references regex "
    "repeated replace samplingRate separator source subField transform"
)
"""What Croissant's standard context takes into its own namespace."""
_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "rai": "http://mlcommons.org/croissant/RAI/",
    "sc": "https://schema.org/",
    **{term: f"cr:{term}" for term in _TERMS.split()},
}


def documents(manifest: Manifest) -> dict[str, bytes]:
    """Every descriptive file by name; ``manifest`` tells of all other files."""
    package, found = _indented(_package(manifest)), _indented(croissant(manifest))
    bodies = package, found, _citation(manifest), _licence(manifest)
    return dict(zip(NAMES, bodies, strict=True))


def media_type(name: str) -> str:
    """The media type of a file; LICENSE, SHA256SUMS and all without an extension are text."""
    return next((type_ for end, type_ in MEDIA_TYPES.items() if name.endswith(end)), "text/plain")


def content_type(name: str) -> str:
    """The media type of a file as it is sent."""
    type_ = media_type(name)
    return f"{type_}; charset=utf-8" if type_.startswith("text/") else type_


def _about(manifest: Manifest) -> str:
    return (_INVENTED if manifest.sample else "") + _ABOUT


def _address(manifest: Manifest, key: str) -> dict[str, str]:
    """Where the dataset is served, under a key, if anybody knows."""
    return {key: f"{manifest.base_url}/data"} if manifest.base_url else {}


def cite_as(manifest: Manifest) -> str:
    """How to cite a version."""
    where = f", {manifest.base_url}/data" if manifest.base_url else ""
    return f"{manifest.title}: what AI assistants recommend, version {manifest.version}{where}"


def croissant(manifest: Manifest, at: str = "") -> dict[str, Any]:
    """The dataset in Croissant, which is schema.org's Dataset and more.

    Files are named by their content, so that no later version makes this one wrong; ``at`` is the
    address that goes before their paths.
    """
    described = [n for n in sorted(manifest.files) if n not in NAMES]
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.1",
        "name": manifest.title,
        "description": _about(manifest),
        "version": manifest.version,
        "datePublished": manifest.date,
        "isAccessibleForFree": True,
        "creator": {"@type": "sc:Organization", "name": manifest.title},
        "citeAs": cite_as(manifest),
        "license": LICENCES.get(manifest.licence, manifest.licence),
        **_address(manifest, "url"),
        "distribution": [_file_object(name, manifest.files[name], at) for name in described],
        "recordSet": list(_record_sets(manifest)),
    }


def _file_object(name: str, file: File, at: str) -> dict[str, Any]:
    return {
        "@type": ["cr:FileObject", "sc:DataDownload"],
        "@id": name,
        "name": name,
        "contentUrl": at + file.object(name),
        "contentSize": f"{file.bytes} B",
        "encodingFormat": media_type(name).replace("vnd.apache.", "x-"),  # as Croissant calls it
        "sha256": file.sha256,
    }


def _record_sets(manifest: Manifest) -> Iterator[dict[str, Any]]:
    """One for each table, and of what is kept by month one for each month."""
    for table in MONTHLY:
        for file in manifest.tables(table.name):
            month = file.partition("month=")[2].partition("/")[0]
            flat = [column for column in table.columns if column.type not in NESTED]
            yield _record_set(table, f"{table.name}-{month}", file, flat)
    for table in WHOLE:
        if f"{table.name}.csv" in manifest.files:
            yield _record_set(table, f"{table.name}-rows", f"{table.name}.csv", table.columns)


def _record_set(table: Table, key: str, file: str, columns: Iterable[Column]) -> dict[str, Any]:
    return {
        "@type": "cr:RecordSet",
        "@id": key,
        "name": key,
        "description": table.about,
        "field": [
            {
                "@type": "cr:Field",
                "@id": f"{key}/{column.name}",
                "name": column.name,
                "description": column.about,
                "dataType": _CROISSANT_TYPES[column.type],
                "source": {"fileObject": {"@id": file}, "extract": {"column": column.name}},
            }
            for column in columns
        ],
    }


def _package(manifest: Manifest) -> dict[str, Any]:
    licence = LICENCES.get(manifest.licence)
    return {
        "$schema": _PROFILE.format("datapackage"),
        "name": "consensus-rankings",
        "title": manifest.title,
        "description": _about(manifest),
        "version": manifest.version,
        "created": f"{manifest.date}T00:00:00Z",
        **_address(manifest, "homepage"),
        "licenses": [
            {"name": manifest.licence.replace(" ", "-"), "title": manifest.licence}
            | ({"path": licence} if licence else {})
        ],
        "resources": [
            _resource(name, file)
            for name, file in sorted(manifest.files.items())
            if name.endswith((".csv", ".csv.gz"))
        ],
    }


def _resource(name: str, file: File) -> dict[str, Any]:
    """A table in CSV, which is what readers of packages need no extra for."""
    tables = {table.name: table for table in (*MONTHLY, *WHOLE)}
    table = tables[name.removeprefix("csv/").partition("/")[0].removesuffix(".csv")]
    return {
        "$schema": _PROFILE.format("dataresource"),
        "name": name.lower().replace("/", "-").replace("=", "-").replace("_", "-"),
        "path": name,
        "bytes": file.bytes,
        "hash": f"sha256:{file.sha256}",
        "mediatype": media_type(name),
        "type": "table",
        "format": "csv",
        "encoding": "utf-8",
        "schema": {
            "$schema": _PROFILE.format("tableschema"),
            "fields": [
                {"name": column.name, "type": column.type, "description": column.about}
                for column in table.slim
            ],
            "missingValues": [""],
        },
    }


def _citation(manifest: Manifest) -> bytes:
    said = {
        "cff-version": "1.2.0",
        "type": "dataset",
        "message": "If you use this dataset, cite it as below.",
        "title": f"{manifest.title}: what AI assistants recommend",
        "version": manifest.version,
        "date-released": manifest.date,
        "abstract": _about(manifest),
        **_address(manifest, "url"),
        **({"license": manifest.licence.replace(" ", "-")} if manifest.licence in LICENCES else {}),
    }
    lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in said.items()]
    authors = ["authors:", f"  - name: {json.dumps(manifest.title, ensure_ascii=False)}"]
    return ("\n".join([*lines, *authors]) + "\n").encode()


def _licence(manifest: Manifest) -> bytes:
    where = LICENCES.get(manifest.licence)
    return (
        f"The data of {manifest.title} is published under {manifest.licence}"
        f"{f': {where}' if where else '.'}\n"
        "If you republish it, name the site and link the page of the category.\n"
        "The words in catalogue.jsonl have a notice of their own, in their entry's source.\n"
    ).encode()


def _indented(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value)) + b"\n"
