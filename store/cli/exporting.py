"""``flask export``: everything that can be served without a process, as files.

A tree is made beside the last one, from hard links where nothing changed, and takes its place by
one rename of a link. Whoever reads ``DIR/current`` sees one whole state or the next.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from contextlib import closing
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec
from flask import current_app
from msgspec import Struct
from werkzeug.http import parse_date

from store.cli import app_settings, with_data
from store.files import DataDirectoryError
from store.history import HistoryError
from store.last_good import FOLDER

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from collections.abc import Set as AbstractSet

    from flask.testing import FlaskClient
    from werkzeug.wrappers import Response

    from store.memory import Store
    from store.snapshot import Snapshot

MANIFEST, REDIRECTS = "manifest.json", "redirects.map"
NEEDS_A_PROCESS = (
    "/search", "/api/v1/search", "/api/v1/history", "/mcp", "/healthz", "/livez", "/readyz",
)  # fmt: skip
"""Paths, with what is below them, whose answers depend on a query or on the time."""
OF_ONE_ANSWER = ("content-length", "content-type", "date", "etag", "last-modified", "vary")
"""Headers that a web server makes from a file itself."""
FEW, SHARE = 20, 1000
"""Addresses that may vanish unasked: 20, or one in 1,000 if more (store/README.md, Publishing)."""
KEPT = 2
"""Trees that are kept: the current one, and the one that somebody may still be reading."""


class Exported(Struct, frozen=True):
    """One file of the tree: ``modified`` in Unix seconds, ``size`` in bytes."""

    file: str
    type: str
    modified: int
    size: int
    sha256: str
    gzip: bool


class Manifest(Struct, frozen=True):
    """What a tree holds: files and redirects by the path that readers ask for.

    ``headers`` are those that all answers of one media type share: name → media type → value.
    """

    files: dict[str, Exported]
    redirects: dict[str, str]
    headers: dict[str, dict[str, str]]

    @property
    def addresses(self) -> set[str]:
        """Every path that readers can ask for."""
        return {*self.files, *self.redirects}


@click.command()
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--even-if",
    type=click.IntRange(min=0),
    metavar="N",
    help="Publish although N addresses would be gone, as the refusal says.",
)
@with_data
def export(directory: Path, even_if: int | None) -> None:
    """Write every answer that needs no process into DIRECTORY/current, for nginx or a CDN.

    The bytes are those the service would send, with a gzip file beside each. Only what changed is
    written; search, history and MCP still need the service. Nothing is published, and the last tree
    stays, while a file that governs has an error, while a category cannot be shown because its file
    or its history is broken or lost, or when many addresses would be gone.
    """
    store: Store = current_app.extensions["store"]
    try:
        snapshot = store.snapshot
    except (DataDirectoryError, HistoryError) as error:
        raise click.ClickException(f"Nothing was published: {error}") from None
    if not (app_settings().base_url or snapshot.catalogue.site.base_url):
        raise click.ClickException(
            "BASE_URL is not set, and every exported address begins with it; set it, or base_url "
            "in site.json."
        )
    _refuse(_faults(snapshot))
    try:
        with closing(Tree(directory)) as tree:
            manifest = tree.fill(snapshot)
            accepted = set(_paths({"best": store.history.accepted()}))
            gone = tree.before.addresses - manifest.addresses - accepted
            _refuse(_vanishing(gone, len(tree.before.addresses), even_if))
            written = tree.publish(manifest)
    except OSError as error:
        raise click.ClickException(f"{directory} cannot be written: {error.strerror}") from None
    store.keep()
    for problem in store.problems:
        if problem.file.startswith(FOLDER):
            click.echo(f"warning: {problem}", err=True)
    click.echo(
        f"{len(manifest.files):,} answers and {len(manifest.redirects):,} redirects in "
        f"{directory / 'current'}; {written:,} answers changed."
    )


def _refuse(reasons: list[str]) -> None:
    if reasons:
        listed = "".join(f"\n  {reason}" for reason in reasons)
        raise click.ClickException(f"Nothing was published, the last tree stays:{listed}")


def _faults(snapshot: Snapshot) -> list[str]:
    """What in the data keeps it from being published."""
    unshown = {snapshot.fault_of(slug) for slug in snapshot.damage}
    return list(map(str, [*snapshot.catalogue.governing_errors, *sorted(filter(None, unshown))]))


def _vanishing(gone: AbstractSet[str], published: int, even_if: int | None) -> list[str]:
    """Why this many addresses must not vanish, unless ``--even-if`` names their number."""
    if len(gone) <= max(FEW, published // SHARE) or even_if == len(gone):
        return []
    shown = ", ".join(sorted(gone)[:3])
    named = "" if even_if is None else f", not {even_if:,}"
    count = f"{len(gone):,} of {published:,} published addresses would be gone"
    return [f"{count}{named}: {shown}, …; if that is meant: --even-if {len(gone)}"]


class Tree:
    """An exported tree that is being written, and the one before it."""

    def __init__(self, directory: Path) -> None:
        self._home = directory
        self._trees = directory / "trees"
        if directory.exists() and any(directory.iterdir()) and not self._trees.is_dir():
            raise click.ClickException(
                f"{directory} holds other files; name a new or an exported directory."
            )
        self.before = _manifest_in(directory / "current")
        self._new = self._trees / ".new"
        shutil.rmtree(self._new, ignore_errors=True)
        self._new.mkdir(parents=True)
        self._written = 0

    def fill(self, snapshot: Snapshot) -> Manifest:
        """Ask the application for every path and write what it answers."""
        client = current_app.test_client()
        files: dict[str, Exported] = {}
        redirects: dict[str, str] = {}
        shared = SharedHeaders()
        for path in static_paths(snapshot):
            with client.get(path) as answer:
                if answer.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
                    _refuse([f"{path} cannot be made: {answer.status}"])
                if answer.status_code == HTTPStatus.OK and not answer.cache_control.no_store:
                    files[path] = self._write(path, answer, client)
                    shared.meet(answer)
        for path in moved_paths(snapshot):
            with client.get(path) as answer:
                if location := answer.headers.get("Location"):
                    redirects[path] = location
        return Manifest(files, redirects, shared.found())

    def publish(self, manifest: Manifest) -> int:
        """Put the new tree in place of the last; the number of answers that differ from it."""
        body = msgspec.json.format(msgspec.json.encode(manifest, order="sorted"))
        (self._new / MANIFEST).write_bytes(body)
        (self._new / REDIRECTS).write_text(
            "".join(f'"{old}" "{new}";\n' for old, new in sorted(manifest.redirects.items()))
        )
        tree = self._trees / hashlib.sha256(body).hexdigest()[:16]
        if tree.exists():
            shutil.rmtree(self._new)
        else:
            os.sync()  # what bears the name of its content has all of it, whatever happens next
            self._new.rename(tree)
        os.sync()
        link = self._trees / ".current"
        link.unlink(missing_ok=True)
        link.symlink_to(Path("trees", tree.name))
        link.replace(self._home / "current")
        os.utime(tree)
        for old in sorted(self._trees.iterdir(), key=lambda path: -path.stat().st_mtime)[KEPT:]:
            shutil.rmtree(old)
        return self._written

    def close(self) -> None:
        """Remove what was not published."""
        shutil.rmtree(self._new, ignore_errors=True)
        (self._trees / ".current").unlink(missing_ok=True)

    def _write(self, path: str, answer: Response, client: FlaskClient) -> Exported:
        """One answer, taken over from the last tree when it is the same."""
        body = answer.get_data()
        date = parse_date(answer.headers.get("Last-Modified"))
        with client.get(path, headers={"Accept-Encoding": "gzip"}) as packed:
            gzipped = packed.get_data() if packed.content_encoding == "gzip" else None
        exported = Exported(
            file=file_of(path, answer.mimetype or ""),
            type=answer.content_type or "",
            modified=int(date.timestamp()) if date else 0,
            size=len(body),
            sha256=hashlib.sha256(body).hexdigest(),
            gzip=gzipped is not None,
        )
        known = self.before.files.get(path) == exported
        self._written += not known
        for suffix, data in (("", body), (".gz", gzipped)):
            if data is not None:
                self._place(f"{exported.file}{suffix}", data, exported.modified, known=known)
        return exported

    def _place(self, name: str, data: bytes, modified: int, *, known: bool) -> None:
        file = self._new / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if known:
            try:
                os.link(self._home / "current" / name, file)
            except OSError:  # no hard links here, or the last tree is not whole
                known = False
        if not known:
            file.write_bytes(data)
            os.utime(file, (modified, modified))


class SharedHeaders:
    """The headers that all answers of a media type share; of ``Link``, the links they share."""

    def __init__(self) -> None:
        self._by_type: dict[str, dict[str, set[str]]] = {}

    def meet(self, answer: Response) -> None:
        """Intersect with the headers of one more answer."""
        headers = {
            name: set(value.split(", <") if name == "Link" else [value])
            for name, value in answer.headers
            if name.lower() not in OF_ONE_ANSWER
        }
        known = self._by_type.setdefault(answer.mimetype or "", headers)
        for name in list(known):
            known[name] &= headers.get(name, set())

    def found(self) -> dict[str, dict[str, str]]:
        """Name → media type → value."""
        found: dict[str, dict[str, str]] = {}
        for type_, headers in self._by_type.items():
            for name, values in headers.items():
                if values:
                    parts = sorted(value.removeprefix("<") for value in values)
                    value = f"<{', <'.join(parts)}" if name == "Link" else parts[0]
                    found.setdefault(name, {})[type_] = value
        return found


def static_paths(snapshot: Snapshot) -> Iterator[str]:
    """Every path whose answer does not depend on the request, from the application's rules."""
    computed = {experiment.slug for experiment in snapshot.summary.experiments}
    static = Path(current_app.root_path, "store/web/static")
    values = {
        "best": sorted(snapshot.leaderboards),
        "product": sorted(snapshot.product_slugs),
        "labs": sorted(computed | snapshot.catalogue.labs.keys()),
        "static": sorted(path.name for path in static.glob("*")),
    }
    yield from _paths(values)


def moved_paths(snapshot: Snapshot) -> Iterator[str]:
    """Every path of an old slug."""
    summary = snapshot.summary
    values = {"best": summary.category_redirects, "product": summary.product_redirects}
    general = set(_paths({}))
    yield from (path for path in _paths(values) if path not in general)


def _paths(values: Mapping[str, Collection[str]]) -> Iterator[str]:
    """The paths of all rules, ``<slug>`` replaced by the values of the word before it."""
    for rule in current_app.url_map.iter_rules():
        if "GET" not in (rule.methods or ()) or rule.rule.startswith(NEEDS_A_PROCESS):
            continue
        before, variable, after = rule.rule.partition("<")
        if not variable:
            yield rule.rule
            continue
        after = after.partition(">")[2]
        for value in values.get(before.rstrip("/").rpartition("/")[2], ()):
            yield f"{before}{value}{after}"


def file_of(path: str, mimetype: str) -> str:
    """The file of an answer in the tree: pages as ``.html``, all else under its own path.

    >>> file_of("/best/humidifier", "text/html"), file_of("/", "text/html")
    ('best/humidifier.html', 'index.html')
    """
    name = path.strip("/") or "index"
    return f"{name}.html" if mimetype == "text/html" else name


def _manifest_in(tree: Path) -> Manifest:
    """The manifest of the last tree; an empty one if there is none yet.

    Raises:
        click.ClickException: there is one and nobody knows what it holds.
    """
    if not os.path.lexists(tree):
        return Manifest({}, {}, {})
    try:
        return msgspec.json.decode((tree / MANIFEST).read_bytes(), type=Manifest)
    except (OSError, msgspec.MsgspecError):
        raise click.ClickException(
            f"{tree / MANIFEST} cannot be read, so nobody can say which addresses would be gone; "
            f"put it back, or remove {tree} to begin anew."
        ) from None
