"""``flask export``: everything that can be served without a process, as files.

A tree is made beside the last one, from hard links where nothing changed, and takes its place by
one rename of a link. Whoever reads ``DIR/current`` sees one whole state or the next.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import shutil
import sys
from collections import Counter
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import TYPE_CHECKING
from uuid import uuid4

import click
import msgspec
from flask import current_app
from werkzeug.test import EnvironBuilder
from werkzeug.wrappers import Response

from store.cli import app_settings, refuse, this_writer, with_data
from store.cli.dataset import written_for
from store.copies import uploads
from store.copies.places import PlaceError, is_cloud, place
from store.disk import atomic_write
from store.files import DataDirectoryError
from store.history import HistoryError
from store.last_good import FOLDER
from store.polls.leases import leased, locks_in
from store.publishing import manifest as dataset
from store.publishing import metadata
from store.publishing.dataset import sums
from store.publishing.directories import DirectoryError, owned
from store.publishing.trees import OBJECTS, Exported, Manifest
from store.rankings.names import slug as slug_of
from store.times import rfc3339

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from store.memory import Store
    from store.settings import Settings
    from store.snapshot import Snapshot

MANIFEST, REDIRECTS, CACHING = "manifest.json", "redirects.map", "cache-control.map"
LEFT_OUT = ("/best/<slug>/changes",)
"""Rules not worth a file for each category: asked seldom, and mostly with arguments."""
OF_ONE_ANSWER = (
    "accept-ranges", "cache-control", "content-disposition", "content-encoding", "content-length",
    "content-type", "date", "etag", "vary",
)  # fmt: skip
"""Headers that a web server makes from a file itself, and one that each file has of its own."""
COMPANIONS = ("/badge/", "/embed/", "/cards/", "/feeds/product/")
"""What comes and goes with the page that it belongs to, as CSV does: it is not counted as gone."""
WANTED = (HTTPStatus.OK, HTTPStatus.NOT_MODIFIED)
MAX_GONE, MAX_GONE_SHARE = 20, 1000
"""Addresses that may vanish unasked: 20, or one in 1,000 if more (store/README.md, Publishing)."""
OF_CATEGORIES, OF_PRODUCTS = ("best",), ("product",)
"""What stands before the slug of a category, or of a product, in the rules of the application."""
_TREE = re.compile(r"[0-9a-f]{16}")
"""The name of a tree: digits of the SHA-256 of its manifest. Nothing else is removed."""
KEPT = 2
"""Trees that are kept: the current one, and the one that somebody may still be reading."""

_refuse = partial(refuse, "Nothing was published, the last tree stays")


@click.command()
@click.argument("where", metavar="DIRECTORY|BUCKET")
@click.option(
    "--even-if",
    type=click.IntRange(min=0),
    metavar="N",
    help="Publish although N addresses would be gone, as the refusal says.",
)
@click.option(
    "--take-over", is_flag=True, help="Upload although another exporter began and has not ended."
)
@with_data
def export(where: str, even_if: int | None, *, take_over: bool) -> None:
    """Write every answer that needs no process into DIRECTORY/current, for nginx or a CDN.

    Or into a bucket: s3://NAME/PREFIX, gs:// or az:// (needs pip install '.[cloud]').

    The bytes are those the service would send, with a gzip file beside each. Only what changed is
    written; search, history, past days and MCP still need the service. Nothing is published, and
    the last tree stays, while a file that governs has an error, while a category cannot be shown
    because its file or its history is broken or lost, or when many addresses would be gone.
    """
    store: Store = current_app.extensions["store"]
    try:
        snapshot = store.snapshot
    except (DataDirectoryError, HistoryError) as error:
        raise click.ClickException(f"Nothing was published: {error}") from None
    if not app_settings().address(snapshot.catalogue.site.base_url):
        raise click.ClickException(
            "BASE_URL is not set, and every exported address begins with it; set it, or base_url "
            "in site.json."
        )
    _refuse(snapshot.unpublishable)
    if is_cloud(where):
        said = _upload(where, even_if, take_over=take_over)
    else:
        said = _write(Path(where), even_if)
    try:
        store.last_good.note_export()
    except OSError as error:
        why = f"{FOLDER} cannot be written: {error.strerror}"
        click.echo(f"warning: {why}; /healthz does not know of this export", err=True)
    click.echo(said)


def _write(directory: Path, even_if: int | None) -> str:
    """Put a new tree in the last one's place in a directory; what came of it."""
    try:
        with (
            owned(directory, "export", this_writer()),
            closing(Tree(directory, _manifest_in(directory / "current"))) as tree,
        ):
            manifest = _filled(tree, even_if)
            written = tree.publish(manifest)
    except DirectoryError as error:
        raise click.ClickException(f"{error}.") from None
    except OSError as error:
        raise click.ClickException(f"{directory} cannot be written: {error.strerror}") from None
    return f"{_counts(manifest)} in {directory / 'current'}; {written:,} answers changed."


def _upload(where: str, even_if: int | None, *, take_over: bool) -> str:
    """Bring a bucket up to date; what came of it."""
    settings = app_settings()
    try:
        with _only_exporter(settings) as exporter, TemporaryDirectory() as home:
            bucket = place(where)
            remote = uploads.look(bucket)
            uploader = uploads.Uploader(bucket, remote, exporter, take_over=take_over)
            tree = Tree(Path(home), remote.published)
            manifest = _filled(tree, even_if)
            changed = len(uploader.changed(manifest))
            with click.progressbar(length=changed, label=where, file=sys.stderr) as bar:
                now = rfc3339(datetime.now(UTC))
                uploader.upload(manifest, tree.folder, now, lambda: bar.update(1))
    except (uploads.UploadError, PlaceError) as error:
        raise click.ClickException(f"The export did not end: {error}.") from None
    except OSError as error:
        raise click.ClickException(f"{error.filename or gettempdir()}: {error.strerror}.") from None
    return f"{_counts(manifest)} in {where}; {changed:,} objects written."


@contextmanager
def _only_exporter(settings: Settings) -> Iterator[str]:
    """Hold the lock of those who upload this data; yields what tells them from others elsewhere."""
    locks = locks_in(settings)
    locks.mkdir(exist_ok=True)
    with leased(locks / "export.lock") as had:
        if not had:
            raise click.ClickException("Another export of this data directory is under way.")
        name = locks / "exporter"
        if not name.exists():
            atomic_write(name, uuid4().hex.encode())
        yield name.read_text()


def _filled(tree: Tree, even_if: int | None) -> Manifest:
    """What is to be published, written into a tree; refused if too much of it would be gone."""
    store: Store = current_app.extensions["store"]
    written_for(store)
    manifest = tree.fill(store.snapshot, app_settings().data_dir / dataset.FOLDER)
    accepted = set(_paths(dict.fromkeys(OF_CATEGORIES, store.history.ledger.accepted)))
    published = {
        path
        for path in tree.before.addresses
        if not path.startswith(COMPANIONS) and not path.endswith(".csv")
    }
    gone = {
        path
        for path in published - manifest.addresses - accepted
        if not path.startswith(OBJECTS)  # withholding a poll takes files out for good
    }
    if len(gone) > max(MAX_GONE, len(published) // MAX_GONE_SHARE) and even_if != len(gone):
        shown = ", ".join(sorted(gone)[:3])
        named = "" if even_if is None else f", not {even_if:,}"
        count = f"{len(gone):,} of {len(published):,} published addresses would be gone"
        _refuse([f"{count}{named}: {shown}, …; if that is meant: --even-if {len(gone)}"])
    return manifest


def _counts(manifest: Manifest) -> str:
    return f"{len(manifest.files):,} answers and {len(manifest.redirects):,} redirects"


class Tree:
    """An exported tree that is being written in ``folder``, and the one before it."""

    def __init__(self, directory: Path, before: Manifest) -> None:
        self._home = directory
        self._trees = directory / "trees"
        self.before = before
        self.folder = self._trees / ".new"
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self._written = 0
        self._digests: dict[str, str] = {}

    def fill(self, snapshot: Snapshot, data: Path) -> Manifest:
        """Ask the application for every path and write what it answers, and the dataset."""
        ask = _asker()
        files: dict[str, Exported] = {}
        redirects: dict[str, str] = {}
        shared = SharedHeaders()
        for path in static_paths(snapshot):
            with ask(path, tag=self._kept_tag(path)) as answer:
                if answer.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
                    _refuse([f"{path} cannot be made: {answer.status}"])
                if answer.status_code in WANTED and not answer.cache_control.no_store:
                    files[path] = self._write(path, answer)
                    shared.meet(answer, files[path].media_type)
        for path in moved_paths(snapshot):
            with ask(path) as answer:
                if location := answer.headers.get("Location"):
                    redirects[path] = location
        of_answers = set(shared.by_type)
        for path, file in self._link(data).items():
            with ask(path, "HEAD") as answer:
                kept = answer.headers["Cache-Control"]
                files[path] = msgspec.structs.replace(file, cache_control=kept)
                if file.media_type not in of_answers:
                    shared.meet(answer, file.media_type)
        return Manifest(files, redirects, shared.found())

    def publish(self, manifest: Manifest) -> int:
        """Put the new tree in place of the last; the number of answers that differ from it."""
        body = msgspec.json.format(msgspec.json.encode(manifest, order="sorted"))
        listed = "".join(f'"{old}" "{new}";\n' for old, new in sorted(manifest.redirects.items()))
        self._place(MANIFEST, body, known=False)
        self._place(REDIRECTS, listed.encode(), known=False)
        self._place(CACHING, _caching(manifest).encode(), known=False)
        (self.folder / dataset.SUMS).write_bytes(sums(self._digests))
        tree = self._trees / hashlib.sha256(body).hexdigest()[:16]
        if tree.exists():
            shutil.rmtree(self.folder)
        else:
            os.sync()  # what bears the name of its content has all of it, whatever happens next
            self.folder.rename(tree)
        os.sync()
        link = self._trees / ".current"
        link.unlink(missing_ok=True)
        link.symlink_to(Path("trees", tree.name))
        link.replace(self._home / "current")
        os.utime(tree)
        trees = [path for path in self._trees.iterdir() if _TREE.fullmatch(path.name)]
        for old in sorted(trees, key=lambda path: -path.stat().st_mtime)[KEPT:]:
            shutil.rmtree(old)
        return self._written

    def close(self) -> None:
        """Remove what was not published."""
        shutil.rmtree(self.folder, ignore_errors=True)
        (self._trees / ".current").unlink(missing_ok=True)

    def _kept_tag(self, path: str) -> str:
        """The tag of a picture that the last tree holds, else nothing."""
        last = self.before.files.get(path)
        with suppress(OSError):
            if last and last.etag and _digest(self._home / "current" / last.file) == last.sha256:
                return last.etag
        return ""

    def _write(self, path: str, answer: Response) -> Exported:
        """One answer, taken over from the last tree when it is the same."""
        sent, type_ = answer.get_data(), answer.content_type or ""
        if answer.status_code == HTTPStatus.NOT_MODIFIED:
            last = self.before.files[path]
            sent, type_ = (self._home / "current" / last.file).read_bytes(), last.type
        gzipped = sent if answer.content_encoding == "gzip" else None
        body = gzip.decompress(gzipped) if gzipped else sent
        exported = Exported(
            file=file_of(path, type_.partition(";")[0]),
            type=type_,
            size=len(body),
            sha256=hashlib.sha256(body).hexdigest(),
            gzip=gzipped is not None,
            etag=answer.headers["ETag"] if type_ == "image/png" else "",
            cache_control=answer.headers["Cache-Control"],
        )
        known = self.before.files.get(path) == exported
        self._written += not known
        self._place(exported.file, body, known=known)
        if gzipped:
            self._place(f"{exported.file}.gz", gzipped, known=known)
        return exported

    def _link(self, data: Path) -> dict[str, Exported]:
        """The dataset's files by the paths that readers ask for; copies only on another disk."""
        found = dataset.decode((data / dataset.MANIFEST).read_bytes())
        files: dict[str, Exported] = {}
        for name, kept in dataset.published_paths(dataset.versions(data), found).items():
            path, placed = data / kept, f"data/{name}"
            file = self.folder / placed
            file.parent.mkdir(parents=True, exist_ok=True)
            try:
                os.link(path, file)
            except OSError:
                shutil.copy2(path, file)
            digest = dataset.digest_of(kept) or _digest(path)
            type_, size = metadata.content_type(name), path.stat().st_size
            files[f"/{placed}"] = Exported(placed, type_, size, digest, gzip=False)
            self._digests[placed] = digest
        return files

    def _place(self, name: str, data: bytes, *, known: bool) -> None:
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        self._digests[name] = hashlib.sha256(data).hexdigest()
        if known:
            with suppress(OSError):  # no hard links here, or the last tree is not whole
                os.link(self._home / "current" / name, file)
                return
        file.write_bytes(data)


def _asker() -> Callable[..., Response]:
    """Asks the application for a path as a reader does who takes gzip; as quick as that can be."""
    environ = EnvironBuilder(headers=[("Accept-Encoding", "gzip")]).get_environ()

    def ask(path: str, method: str = "GET", tag: str = "") -> Response:
        asked = {"PATH_INFO": path, "REQUEST_METHOD": method, "HTTP_IF_NONE_MATCH": tag}
        return Response.from_app(current_app.wsgi_app, {**environ, **asked})

    return ask


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


class SharedHeaders:
    """The headers that all answers of a media type share; of ``Link``, the links they share."""

    def __init__(self) -> None:
        self.by_type: dict[str, dict[str, set[str]]] = {}

    def meet(self, answer: Response, media_type: str) -> None:
        """Intersect with the headers of one more answer."""
        headers = {
            name: set(value.split(", <") if name == "Link" else [value])
            for name, value in answer.headers
            if name.lower() not in OF_ONE_ANSWER
        }
        known = self.by_type.setdefault(media_type, headers)
        for name in list(known):
            known[name] &= headers.get(name, set())

    def found(self) -> dict[str, dict[str, str]]:
        """Name → media type → value."""
        found: dict[str, dict[str, str]] = {}
        for type_, headers in self.by_type.items():
            for name, values in headers.items():
                if values:
                    parts = sorted(value.removeprefix("<") for value in values)
                    value = f"<{', <'.join(parts)}" if name == "Link" else parts[0]
                    found.setdefault(name, {})[type_] = value
        return found


def static_paths(snapshot: Snapshot) -> Iterator[str]:
    """Every path that may have an answer without arguments, from the application's rules."""
    computed = {experiment.slug for experiment in snapshot.summary.experiments}
    static = Path(current_app.root_path, "store/web/static")
    values = {
        **dict.fromkeys(OF_CATEGORIES, sorted(snapshot.leaderboards)),
        **dict.fromkeys(OF_PRODUCTS, sorted(filter(snapshot.product, snapshot.product_slugs))),
        "topics": [topic.slug for topic in snapshot.summary.topics],
        "models": sorted(snapshot.summary.model_slugs),
        "labs": sorted(computed | snapshot.catalogue.labs.keys()),
        "static": sorted(path.name for path in static.glob("*")),
    }
    yield from _paths(values)
    for slug in snapshot.leaderboards:
        for product in snapshot.aggregates[slug].product_stats:
            address = snapshot.products[product].slug
            for kind in ("svg", "json") if snapshot.product(address) else ():
                yield f"/badge/{slug}/{address}.{kind}"


def moved_paths(snapshot: Snapshot) -> Iterator[str]:
    """Every path of an old slug."""
    summary = snapshot.summary
    values = {
        **dict.fromkeys(OF_CATEGORIES, summary.category_redirects),
        **dict.fromkeys(OF_PRODUCTS, summary.product_redirects),
        "models": {slug_of(name): name for name in snapshot.catalogue.former_names},
    }
    general = set(_paths({}))
    yield from (path for path in _paths(values) if path not in general)


def _paths(values: Mapping[str, Collection[str]]) -> Iterator[str]:
    """The paths of rules with one variable at most: the values of the word before ``<slug>``."""
    for rule in current_app.url_map.iter_rules():
        is_asked = "GET" in (rule.methods or ()) and rule.rule not in LEFT_OUT
        if not is_asked or rule.rule.count("<") > 1:
            continue
        before, variable, after = rule.rule.partition("<")
        word = before.rstrip("/").rpartition("/")[2]
        for value in values.get(word, ()) if variable else ("",):
            yield f"{before}{value}{after.partition('>')[2]}"


def _caching(manifest: Manifest) -> str:
    """What nginx sends as ``Cache-Control``, a ``map`` of files: the usual value, and others."""
    said = {f"/{each.file}": each.cache_control for each in manifest.files.values()}
    usual = Counter(said.values()).most_common(1)[0][0]
    others = "".join(f'"{k}" "{v}";\n' for k, v in sorted(said.items()) if v != usual)
    return f'default "{usual}";\n{others}'


def file_of(path: str, mimetype: str) -> str:
    """The file of an answer in the tree: pages as ``.html``, all else under its own path.

    >>> file_of("/best/humidifier", "text/html"), file_of("/", "text/html")
    ('best/humidifier.html', 'index.html')
    """
    name = path.strip("/") or "index"
    return f"{name}.html" if mimetype == "text/html" else name


def _manifest_in(tree: Path) -> Manifest:
    """The manifest of the last tree, empty if there is none; a damaged one ends the command."""
    if not os.path.lexists(tree):
        return Manifest({}, {}, {})
    try:
        return msgspec.json.decode((tree / MANIFEST).read_bytes(), type=Manifest)
    except (OSError, ValueError):
        raise click.ClickException(
            f"{tree / MANIFEST} cannot be read, so nobody can say which addresses would be gone; "
            f"put it back, or remove {tree} to begin anew."
        ) from None
