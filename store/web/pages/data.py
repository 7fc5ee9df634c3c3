"""The dataset as it is served: a page about it, and the files that its manifest lists.

No request becomes a path: a name is looked up among those that the manifest lists. All that is sent
is of the folder whose manifest was read, so an answer is of one dataset while the next is put in
its place.
"""

import logging
from collections.abc import Hashable
from functools import lru_cache
from pathlib import Path
from typing import Any

from flask import Response, request, send_file
from msgspec import Struct

from store.disk import Signature, signature_at
from store.ledger import HEADS, LEDGER
from store.publishing import manifest, tables
from store.publishing.directories import CURRENT, SUMS
from store.publishing.manifest import Manifest
from store.records import Problem
from store.web.errors import Refused
from store.web.pages.routes import page
from store.web.queries import Query
from store.web.responses import CACHE_CONTROL, Route, snapshot_basis
from store.web.view import View

log = logging.getLogger(__name__)

EXPOSED = "Accept-Ranges, Content-Length, Content-Range, ETag, Link"
"""Headers that a browser's script needs to read a part of a Parquet file."""


class PublishedDataset(Struct, frozen=True):
    """A dataset on disk: its folder, and its manifest if that can be read."""

    folder: Path
    signatures: tuple[Signature | None, ...]
    manifest: Manifest | None = None
    problems: tuple[Problem, ...] = ()


class DataFiles:
    """The dataset of one data directory, read again when another is in its place."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._read = lru_cache(maxsize=1)(self._read_now)

    def published(self) -> PublishedDataset:
        """Return the dataset as it is now."""
        folder = (self._directory / manifest.FOLDER / CURRENT).resolve()
        # The folder's tells a new dataset in its place, the manifest's an edit by hand.
        signatures = (signature_at(folder / manifest.MANIFEST), signature_at(folder))
        return self._read(folder, signatures)

    def send(self, name: str) -> Response:
        """Answer ``/data/<name>`` with a file, or the part of it that was asked for."""
        dataset = self.published()
        if dataset.problems:
            raise Refused("unavailable", f"{dataset.problems[0]}.")
        listed = dataset.manifest.files if dataset.manifest else {}
        file = listed.get(name)
        # The manifest cannot list itself, nor the checksums that cover it.
        if not file and not (dataset.manifest and name in (manifest.MANIFEST, SUMS)):
            raise Refused("not-found", f'The dataset has no file "{name[:100]}". /data lists them.')
        request.environ.pop("HTTP_IF_MODIFIED_SINCE", None)  # a tag alone says what is new
        path = dataset.folder / name
        try:
            # Its bytes would else be kept under the tag of the whole file.
            if file and path.stat().st_size != file.bytes:
                why = f"{name} is cut short; `flask dataset` writes it again."
                raise Refused("unavailable", why)
            response = send_file(
                path,
                manifest.media_type(name),
                download_name=name.replace("/", "-"),
                conditional=True,
                etag=file.sha256 if file else True,
            )
        except FileNotFoundError:
            # The next dataset took this one's place between the look and the opening.
            if self.published() is not dataset:
                return self.send(name)
            why = f"{name} is listed and not there; `flask dataset` writes it again."
            raise Refused("unavailable", why) from None
        del response.headers["Last-Modified"]
        response.headers["Cache-Control"] = CACHE_CONTROL
        response.headers["Access-Control-Allow-Origin"] = "*"
        response.headers["Access-Control-Expose-Headers"] = EXPOSED
        return response

    def page(self) -> Route:
        """Return the route of the page about the dataset.

        Its basis changes when another dataset takes this one's place.
        """

        def basis(view: View) -> Hashable:
            return snapshot_basis(view), self.published().signatures

        @page("/data", "data.html", basis=basis)
        def data(view: View, query: Query) -> dict[str, Any]:  # noqa: ARG001
            dataset = self.published()
            own, at = dataset.manifest, view.at.page("data/")
            return {
                "dataset": own,
                "problems": dataset.problems,
                "tables": tables.ALL,
                "proof": (LEDGER, HEADS),
                "describing": (*manifest.DESCRIPTIONS, "catalogue.jsonl"),
                "cite": manifest.cite_as(own) if own else None,
                "json_ld": manifest.json_ld(own, at) if own else None,
            }

        return data

    def _read_now(self, folder: Path, signatures: tuple[Signature | None, ...]) -> PublishedDataset:
        if set(signatures) == {None}:
            return PublishedDataset(folder, signatures)
        problems = tuple(manifest.problems(self._directory))
        for problem in problems:
            log.warning("%s", problem)
        own = manifest.read(folder)
        return PublishedDataset(folder, signatures, None if isinstance(own, str) else own, problems)
