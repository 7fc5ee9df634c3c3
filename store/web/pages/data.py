"""The dataset as it is served: a page about it, and its files, found in its manifest's table.

No request becomes a path: a name is looked up among those that the manifests list. What is sent
bears its own digest and never changes, so a version is whole while the next is written.
"""

from __future__ import annotations

import logging
import threading
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from flask import Response, request, send_file
from msgspec import Struct

from store.disk import MISSING, Signature, signature_of
from store.publishing import leaves, manifest, metadata, tables
from store.web.errors import ProblemResponse
from store.web.http_responses import CACHE_CONTROL, FOR_GOOD

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from store.publishing.leaves import Head
    from store.publishing.manifest import Manifest
    from store.records import Problem
    from store.web.snapshot_view import SnapshotView

log = logging.getLogger(__name__)

EXPOSED = "Accept-Ranges, Content-Length, Content-Range, ETag, Link"
"""Headers that a browser's script needs to read a part of a Parquet file."""
HEADS_SHOWN = 5


class PublishedDataset(Struct, frozen=True):
    """A dataset on disk: its newest version if any can be read, files by path, newest heads."""

    manifest: Manifest | None
    paths: Mapping[str, str]
    heads: tuple[Head, ...]
    problems: tuple[Problem, ...]
    signatures: tuple[Signature, ...]


class DataFiles:
    """The dataset of one data directory, read again when its manifests or objects are others."""

    def __init__(self, directory: Path) -> None:
        self._home = directory / manifest.FOLDER
        self._known: PublishedDataset | None = None
        self._lock = threading.Lock()

    def published(self) -> PublishedDataset:
        """The dataset as it is now."""
        places = (manifest.MANIFEST, manifest.VERSIONS, manifest.OBJECTS)
        signatures = tuple([_signature(self._home / place) for place in places])
        known = self._known
        if known is None or known.signatures != signatures:
            with self._lock:
                self._known = known = self._read(signatures)
        return known

    def send(self, name: str) -> Response:
        """``/data/<name>``: a file, or the part of it that was asked for."""
        known = self.published()
        path = known.paths.get(name)
        if path is None:
            why = f'The dataset has no file "{name[:100]}". /data lists them.'
            return ProblemResponse(HTTPStatus.NOT_FOUND, why)
        digest = manifest.digest_of(path)
        request.environ.pop("HTTP_IF_MODIFIED_SINCE", None)  # a tag alone says what is new
        try:
            response = send_file(
                self._home / path,
                metadata.media_type(name),
                download_name=name.replace("/", "-"),
                conditional=True,
                etag=digest or True,
            )
        except FileNotFoundError:
            why = f"{name} is listed and not there: taken out just now, or lost; see /data."
            return ProblemResponse(HTTPStatus.SERVICE_UNAVAILABLE, why)
        del response.headers["Last-Modified"]
        response.headers["Cache-Control"] = FOR_GOOD if path == name and digest else CACHE_CONTROL
        response.headers["Access-Control-Allow-Origin"] = "*"
        response.headers["Access-Control-Expose-Headers"] = EXPOSED
        return response

    def _read(self, signatures: tuple[Signature, ...]) -> PublishedDataset:
        if set(signatures) == {MISSING}:
            return PublishedDataset(None, {}, (), (), signatures)
        versions = manifest.versions(self._home)
        problems = tuple(manifest.problems(self._home, older=False))
        for problem in problems:
            log.warning("%s", problem)
        if not versions:
            return PublishedDataset(None, {}, (), problems, signatures)
        latest = manifest.read(self._home / manifest.MANIFEST)
        if isinstance(latest, str):  # it is damaged, and stands among the versions too
            latest = list(versions.values())[-1]
        heads = manifest.kept(self._home, leaves.HEADS, latest.files[leaves.HEADS]) or b""
        known = leaves.parse_heads(heads, leaves.HEADS)[-HEADS_SHOWN:]
        paths = manifest.published_paths(versions, latest)
        return PublishedDataset(latest, paths, tuple(known), problems, signatures)


def _signature(path: Path) -> Signature:
    try:
        return signature_of(path.stat())
    except OSError:
        return MISSING


def context(known: PublishedDataset, view: SnapshotView) -> dict[str, Any]:
    """What the page shows: tables with their files, copyable lines, proof and structured data."""
    found, at = known.manifest, view.at.page("data/")
    if found is None:
        return {"dataset": None, "problems": known.problems}
    shown = [
        {
            "name": table.name,
            "about": table.about,
            "files": [
                (name, found.files[name])
                for name in sorted(found.files)
                if name.removeprefix("csv/").partition("/")[0].partition(".")[0] == table.name
            ],
        }
        for table in (*tables.MONTHLY, *tables.WHOLE)
    ]
    return {
        "dataset": found,
        "problems": known.problems,
        "at_data": at,
        "tables": shown,
        "evidence": [
            (name, found.files[name])
            for name in sorted(found.files)
            if name.startswith(("evidence/", "proof/")) or name == leaves.HEADS
        ],
        "others": [name for name in sorted(found.files) if name in _DESCRIBING],
        "picks": [at + name for name in found.tables(tables.PICKS.name)],
        "has_parquet": bool(found.tables(tables.POLLS.name)),
        "versions": sorted(name for name in known.paths if name.startswith(manifest.VERSIONS)),
        "heads": known.heads[::-1],
        "cite": metadata.cite_as(found),
        "structured": {k: v for k, v in metadata.croissant(found, at).items() if k != "recordSet"},
    }


_DESCRIBING = (*metadata.NAMES, "catalogue.jsonl")
