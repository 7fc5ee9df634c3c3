"""An exported tree: what the application answers, as files, and the manifest of them.

What is as it was is a hard link to the last tree's file.
"""

import gzip
import os
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path

import msgspec
from flask import Flask
from msgspec import Struct
from werkzeug.test import EnvironBuilder
from werkzeug.wrappers import Response

from store.publishing.directories import SUMS, digest, sums
from store.snapshot import Snapshot

TREE_MANIFEST, REDIRECTS = "manifest.json", "redirects.map"
DATASET_PREFIX = "/data/"
"""The dataset's place; its files need no page of their own and change with every poll."""
WANTED = (HTTPStatus.OK, HTTPStatus.NOT_MODIFIED)


class TreeError(Exception):
    """A tree that cannot be made; the sentence says why."""


class Exported(Struct, frozen=True):
    """One file of a tree: its ``size`` in bytes, the SHA-256 of its content in hex.

    ``gzip`` says whether a compressed one stands beside it; ``cache_control`` is that of the
    answer, ``etag`` that of a picture, by which it need not be drawn again.
    """

    file: str
    type: str
    size: int
    sha256: str
    gzip: bool
    etag: str = ""
    cache_control: str = ""

    @property
    def headers(self) -> dict[str, str]:
        """The HTTP headers of its object in a bucket, which has the compressed one if any."""
        headers = {"Content-Type": self.type, "Cache-Control": self.cache_control}
        return headers | ({"Content-Encoding": "gzip"} if self.gzip else {})


class TreeManifest(Struct, frozen=True):
    """The contents of a tree: files, and redirects by the path that readers ask for.

    What a run adds, replaces and deletes follows from two of them, without writing anything.
    """

    files: dict[str, Exported]
    redirects: dict[str, str]

    @property
    def addresses(self) -> set[str]:
        """Every path that readers can ask for."""
        return {*self.files, *self.redirects}


def encode(manifest: TreeManifest) -> bytes:
    """Return a manifest as it is written: indented, keys sorted."""
    return msgspec.json.format(msgspec.json.encode(manifest, order="sorted"))


class Tree:
    """A tree that is being written in ``folder``.

    ``before`` is the manifest of the last tree, ``last`` its folder, ``digests`` those of its files
    as they are now.
    """

    def __init__(
        self, folder: Path, before: TreeManifest, last: Path, digests: Mapping[str, str]
    ) -> None:
        self.before = before
        self.changed = 0
        self._folder = folder
        self._last = last
        self._last_digests = digests
        self._digests: dict[str, str] = {}
        self._folders = {""}

    def fill(self, app: Flask, snapshot: Snapshot, dataset: Path) -> TreeManifest:
        """Ask the application for every path, write what it answers, and add the dataset.

        Raises:
            TreeError: an answer cannot be made.
        """
        ask = _asker(app)
        files: dict[str, Exported] = {}
        for path in paths_to_export(app, snapshot):
            with ask(path, tag=self._tag(path)) as answer:
                if answer.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
                    raise TreeError(f"{path} cannot be made: {answer.status}")
                if answer.status_code in WANTED and not answer.cache_control.no_store:
                    files[path] = self._add(path, answer)
                    self.changed += self.before.files.get(path) != files[path]
        redirects: dict[str, str] = {}
        for path in moved_paths(app, snapshot):  # not where another product has the old slug
            with ask(path) as answer:
                if location := answer.headers.get("Location"):
                    redirects[path] = location
        for source in sorted(path for path in dataset.rglob("*") if path.is_file()):
            path = f"{DATASET_PREFIX}{source.relative_to(dataset).as_posix()}"
            with ask(path, "HEAD") as answer:
                files[path] = self._link(source, path, answer)
        return TreeManifest(files, redirects)

    def finish(self, manifest: TreeManifest) -> None:
        """Write the files that are no answers: the manifest, a map for nginx, digests."""
        moved = "".join(f'"{old}" "{new}";\n' for old, new in sorted(manifest.redirects.items()))
        self._place(TREE_MANIFEST, encode(manifest))
        self._place(REDIRECTS, moved.encode())
        (self._folder / SUMS).write_bytes(sums(self._digests))

    def _tag(self, path: str) -> str:
        """Return the tag of a picture that the last tree holds, else nothing."""
        last = self.before.files.get(path)
        is_there = last and self._last_digests.get(last.file) == last.sha256
        return last.etag if last and is_there else ""

    def _add(self, path: str, answer: Response) -> Exported:
        """Write one answer, plain and, if it is sent so, compressed."""
        body, type_ = answer.get_data(), answer.content_type or ""
        if answer.status_code == HTTPStatus.NOT_MODIFIED:
            last = self.before.files[path]
            body, type_ = (self._last / last.file).read_bytes(), last.type
        name = file_of(path, type_.partition(";")[0])
        if is_packed := answer.content_encoding == "gzip":
            self._place(f"{name}.gz", body)
            body = gzip.decompress(body)
        return Exported(
            file=name,
            type=type_,
            size=len(body),
            sha256=self._place(name, body),
            gzip=is_packed,
            # Of pictures alone: drawing one anew is the dearest of all answers.
            etag=answer.headers["ETag"] if type_ == "image/png" else "",
            cache_control=answer.headers["Cache-Control"],
        )

    def _link(self, source: Path, path: str, answer: Response) -> Exported:
        """Add a file of the dataset, as a copy only on another disk."""
        name, body = path.removeprefix("/"), source.read_bytes()
        file = self._path(name)
        try:
            os.link(source, file)
        except OSError:
            shutil.copy2(source, file)
        self._digests[name] = digest(body)
        return Exported(
            file=name,
            type=answer.content_type or "",
            size=len(body),
            sha256=self._digests[name],
            gzip=False,
            cache_control=answer.headers["Cache-Control"],
        )

    def _place(self, name: str, data: bytes) -> str:
        """Write a file, or link the last tree's if it is the same; return its digest."""
        self._digests[name] = sha256 = digest(data)
        file = self._path(name)
        if self._last_digests.get(name) == sha256:
            with suppress(OSError):  # no hard links here
                os.link(f"{self._last}/{name}", file)
                return sha256
        Path(file).write_bytes(data)
        return sha256

    def _path(self, name: str) -> str:
        """Return where a file of the tree is, its folder made."""
        folder = name.rpartition("/")[0]
        if folder not in self._folders:
            (self._folder / folder).mkdir(parents=True, exist_ok=True)
            self._folders.add(folder)
        return f"{self._folder}/{name}"


def _asker(app: Flask) -> Callable[..., Response]:
    """Return a fast function that asks the application as a client that accepts gzip does."""
    environ = EnvironBuilder(headers=[("Accept-Encoding", "gzip")]).get_environ()

    def ask(path: str, method: str = "GET", tag: str = "") -> Response:
        request = {"PATH_INFO": path, "REQUEST_METHOD": method, "HTTP_IF_NONE_MATCH": tag}
        return Response.from_app(app.wsgi_app, {**environ, **request})

    return ask


LEFT_OUT = ("/api/v1/",)
"""Rules that are not exported: in a tree their path is a folder."""


def paths_to_export(app: Flask, snapshot: Snapshot) -> Iterator[str]:
    """Yield every path that can be asked for without parameters."""
    computed = {experiment.slug for experiment in snapshot.summary.experiments}
    static = Path(app.root_path, "store/web/static")
    values = {
        "": [""],  # a rule without a variable has one path
        "best": sorted(snapshot.leaderboards),
        "product": sorted(filter(snapshot.product, snapshot.product_slugs)),
        "topics": [topic.slug for topic in snapshot.summary.topics],
        "labs": sorted(computed | snapshot.catalogue.labs.keys()),
        "static": sorted(path.name for path in static.glob("*")),
    }
    yield from _paths(app, values)
    # A badge has two variables, which `_paths` does not fill in.
    for slug in snapshot.leaderboards:
        for product in snapshot.aggregates[slug].product_stats:
            address = snapshot.products[product].slug
            if snapshot.product(address):
                yield f"/badge/{slug}/{address}.svg"


def moved_paths(app: Flask, snapshot: Snapshot) -> Iterator[str]:
    """Return every path of an old slug."""
    summary = snapshot.summary
    old = {"best": summary.category_redirects, "product": summary.product_redirects}
    return _paths(app, old)


def category_paths(app: Flask, slugs: Collection[str]) -> set[str]:
    """Return every path of categories."""
    return set(_paths(app, {"best": slugs}))


def _paths(app: Flask, values: Mapping[str, Collection[str]]) -> Iterator[str]:
    """Yield the paths of rules with at most one variable.

    ``values`` has, by the segment before a variable, the slugs that fill it in: "best" fills both
    ``/best/<slug>`` and ``/feeds/best/<slug>.atom``, so that a new address of a kind needs no line.
    """
    for rule in app.url_map.iter_rules():
        is_asked = "GET" in (rule.methods or ()) and rule.rule not in LEFT_OUT
        if not is_asked or rule.rule.count("<") > 1:
            continue
        before, variable, after = rule.rule.partition("<")
        word = before.rstrip("/").rpartition("/")[2] if variable else ""
        for value in values.get(word, ()):
            yield f"{before}{value}{after.partition('>')[2]}"


def file_of(path: str, media_type: str) -> str:
    """Return the file of an answer in a tree: pages as ``.html``, all else under its own path.

    >>> file_of("/best/humidifier", "text/html"), file_of("/", "text/html")
    ('best/humidifier.html', 'index.html')
    """
    name = path.strip("/") or "index"
    return f"{name}.html" if media_type == "text/html" else name


def object_of(path: str) -> str:
    """Return the object of an answer in a bucket: its path, for a bucket opens no folders.

    >>> object_of("/best/humidifier"), object_of("/")
    ('best/humidifier', 'index.html')
    """
    return path.strip("/") or "index.html"
