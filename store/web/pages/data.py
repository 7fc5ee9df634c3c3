"""The dataset as it is served: a page about it, and its files, found in its manifest's table.

No request becomes a path: a name is looked up among those that the manifest lists. All that is sent
is of the folder whose manifest was read, so an answer is of one dataset while the next is put in
its place.
"""

import logging
import threading
from pathlib import Path
from typing import Any

from flask import Response, request, send_file
from msgspec import Struct

from store.disk import MISSING, Signature, signature_of
from store.ledger import HEADS, LEDGER
from store.publishing import manifest, tables
from store.publishing.directories import CURRENT, SUMS
from store.publishing.manifest import Manifest
from store.records import Problem
from store.web.answers import CACHE_CONTROL, Route
from store.web.errors import ProblemResponse, Refused
from store.web.pages.routes import page, summary
from store.web.queries import Query
from store.web.view import View

log = logging.getLogger(__name__)

EXPOSED = "Accept-Ranges, Content-Length, Content-Range, ETag, Link"
"""Headers that a browser's script needs to read a part of a Parquet file."""
HEADS_SHOWN = 5


class PublishedDataset(Struct, frozen=True):
    """A dataset on disk: its folder, and its manifest if that can be read."""

    folder: Path
    signatures: tuple[Signature, ...]
    manifest: Manifest | None = None
    problems: tuple[Problem, ...] = ()


class DataFiles:
    """The dataset of one data directory, read again when another is in its place."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._known: PublishedDataset | None = None
        self._lock = threading.Lock()

    def published(self) -> PublishedDataset:
        """Return the dataset as it is now."""
        folder = (self._directory / manifest.FOLDER / CURRENT).resolve()
        signatures = (_signature(folder / manifest.MANIFEST), _signature(folder))
        known = self._known
        if known is None or (known.folder, known.signatures) != (folder, signatures):
            with self._lock:
                self._known = known = self._read(folder, signatures)
        return known

    def send(self, name: str) -> Response:
        """Answer ``/data/<name>`` with a file, or the part of it that was asked for."""
        known = self.published()
        digest = _digest(known, name)
        if digest is None:
            why = f'The dataset has no file "{name[:100]}". /data lists them.'
            return ProblemResponse(Refused("not-found", why))
        request.environ.pop("HTTP_IF_MODIFIED_SINCE", None)  # a tag alone says what is new
        try:
            response = send_file(
                known.folder / name,
                manifest.media_type(name),
                download_name=name.replace("/", "-"),
                conditional=True,
                etag=digest or True,
            )
        except FileNotFoundError:
            if self.published() is not known:
                return self.send(name)
            why = f"{name} is listed and not there: it was lost; see /data."
            return ProblemResponse(Refused("unavailable", why))
        del response.headers["Last-Modified"]
        response.headers["Cache-Control"] = CACHE_CONTROL
        response.headers["Access-Control-Allow-Origin"] = "*"
        response.headers["Access-Control-Expose-Headers"] = EXPOSED
        return response

    def page(self) -> Route:
        """Return the route of the page about the dataset; of another dataset it is another."""

        @page("/data", "data.html", basis=lambda view: (summary(view), self.published().signatures))
        def data(view: View, query: Query) -> dict[str, Any]:  # noqa: ARG001
            return context(self.published(), view)

        return data

    def _read(self, folder: Path, signatures: tuple[Signature, ...]) -> PublishedDataset:
        if set(signatures) == {MISSING}:
            return PublishedDataset(folder, signatures)
        problems = tuple(manifest.problems(self._directory))
        for problem in problems:
            log.warning("%s", problem)
        found = manifest.read(folder)
        if isinstance(found, str):
            return PublishedDataset(folder, signatures, problems=problems)
        return PublishedDataset(folder, signatures, found, problems)


def _digest(known: PublishedDataset, name: str) -> str | None:
    """Return the digest of a file that is served, empty if the manifest does not have it."""
    if known.manifest is None:
        return None
    if name in (manifest.MANIFEST, SUMS):
        return ""
    file = known.manifest.files.get(name)
    return file.sha256 if file else None


def _signature(path: Path) -> Signature:
    try:
        return signature_of(path.stat())
    except OSError:
        return MISSING


def context(known: PublishedDataset, view: View) -> dict[str, Any]:
    """What the page shows: tables with their files, copyable lines, proof and structured data."""
    found, at = known.manifest, view.at.page("data/")
    if found is None:
        return {"dataset": None, "problems": known.problems}
    shown = [
        {
            "name": name,
            "about": table.about,
            "files": [
                (file, found.files[file])
                for file in (f"{name}.parquet", f"{name}.csv")
                if file in found.files
            ],
        }
        for name, table in tables.ALL.items()
    ]
    heads = view.snapshot.ledger.heads
    return {
        "dataset": found,
        "problems": known.problems,
        "at_data": at,
        "tables": shown,
        "proof": [(name, found.files[name]) for name in (LEDGER, HEADS)],
        "evidence": found.evidence,
        "others": [name for name in sorted(found.files) if name in _DESCRIBING],
        "picks": at + "picks.parquet",
        "has_parquet": found.has_parquet,
        "present": view.snapshot.present,
        "heads": heads[: -HEADS_SHOWN - 1 : -1],
        "cite": manifest.cite_as(found),
        "structured": manifest.structured(found, at),
    }


_DESCRIBING = (*manifest.NAMES, "catalogue.jsonl")
