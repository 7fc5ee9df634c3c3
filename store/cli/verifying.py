"""``flask verify``: recompute all that is published from the sealed lines, and compare.

A stranger's command: it believes nothing that the source says of itself, needs no data directory of
its own, and ends with one sentence, or with the first difference.
"""

from __future__ import annotations

import gzip
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click
import msgspec
from flask import current_app
from flask.cli import with_appcontext
from werkzeug.utils import import_string

from store.cli import plural, this_writer
from store.cli.downloading import Download, Refused
from store.files import DataDirectoryError
from store.publishing import leaves, manifest, verifying
from store.publishing.addresses import moved_paths, static_paths
from store.publishing.directories import CURRENT, DirectoryError, owned
from store.publishing.leaves import Head, Heads
from store.publishing.trees import MANIFEST, REDIRECTS, TreeManifest
from store.publishing.verifying import Difference, Proved, compare
from store.settings import Settings
from store.web.pages.pictures import rasteriser

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from flask.testing import FlaskClient

    from store.memory import Store

DATA = "data"
"""Where the dataset is in an exported tree, and below a server's address."""

BEST, CARDS = "/best/", "/cards/"
"""Pages of rankings; pictures, which depend on fonts, and of which only checksums are compared."""


@click.command()
@click.argument("source")
@click.option(
    "--against",
    metavar="HEAD",
    help="A head that you kept elsewhere: a file of heads, or SIZE:ROOT.",
)
@click.option(
    "--keep",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where to put what is downloaded; otherwise it is thrown away.",
)
@click.option(
    "--max-mb",
    default=4096,
    show_default=True,
    type=click.IntRange(min=1),
    help="Megabytes to download at most.",
)
@click.option(
    "--max-minutes",
    default=60,
    show_default=True,
    type=click.IntRange(min=1),
    help="Minutes to read from a server at most.",
)
@with_appcontext
def verify(
    source: str, against: str | None, keep: Path | None, max_mb: int, max_minutes: int
) -> None:
    """Check SOURCE: a data directory, an exported tree, a dataset, or a server's https address.

    Every checksum, every line's id, the Merkle tree, its heads and every published figure is
    computed anew from the sealed lines. Ends with "verified" and 0, or with the first difference
    and 1.
    """
    begun = time.monotonic()
    kept = _kept_heads(against) if against else []
    try:
        if source.startswith(("https://", "http://")):
            server = Download(source.rstrip("/"), max_mb << 20, max_minutes * 60)
            with (
                TemporaryDirectory() as folder,
                owned(keep or Path(folder), "verify", this_writer()),
            ):
                said, size = _verify_server(server, keep or Path(folder), kept)
        else:
            said, size = _verify_directory(Path(source), kept)
    except (Difference, leaves.ProofError, Refused, DataDirectoryError, ChildProcessError) as error:
        raise click.ClickException(f"not verified: {error}") from None
    except DirectoryError as error:
        raise click.ClickException(f"{error}.") from None
    seconds = time.monotonic() - begun
    click.echo(f"verified: {said}; {size:,} bytes in {seconds:,.1f} s")


def _kept_heads(given: str) -> list[Head]:
    """The heads that ``--against`` names."""
    size, _, root = given.partition(":")
    if size.isdecimal() and len(root) == 64:  # noqa: PLR2004 - hex digits of a SHA-256
        return [Head("the day", int(size), root.lower())]
    try:
        return leaves.parse_heads(Path(given).read_bytes().rstrip(b"\n") + b"\n", given)
    except OSError as error:
        why = f"{given} cannot be read: {error.strerror}; name a file of heads, or SIZE:ROOT"
    except leaves.ProofError:
        why = f"{given} holds something else than heads, one JSON object a line"
    raise click.BadParameter(why, param_hint="--against")


def _verify_directory(source: Path, kept: Iterable[Head]) -> tuple[str, int]:
    """Check a directory of whatever kind; what was checked, and its size."""
    if (source / "current").is_dir():
        source = source / "current"
    if (source / "site.json").is_file():
        return _verify_data(source, kept)
    if (source / manifest.MANIFEST).is_file():
        with _bar("checking files", _size(source)) as progress:
            size = verifying.check_sums(source, progress)
        with TemporaryDirectory() as folder:
            proved, _ = _recompute(source, Path(folder), kept)
        return f"{_counts(proved)} and every table", size
    if (source / MANIFEST).is_file():
        return _verify_tree(source, kept)
    raise click.ClickException(
        f"{source} is no data directory, no exported tree and no dataset: it holds neither "
        f"site.json nor {MANIFEST} nor {manifest.MANIFEST}."
    )


def _verify_data(source: Path, kept: Iterable[Head]) -> tuple[str, int]:
    """Check a data directory: its lines, its proof if there is one, and its dataset if any."""
    lines = verifying.check_history(source)
    size = _size(source / "history")
    if (source / leaves.FOLDER).is_dir():
        hashes, heads = verifying.check_proof(source, lines)
        said = f"{plural(len(lines), 'line')}, {plural(len(heads.closed), 'head')}"
        unlisted = len(lines) - len(hashes)
        said += f", {unlisted:,} not yet listed" if unlisted else ""
    else:
        hashes, heads = _first_proof(source)
        said = plural(len(lines), "line")
    verifying.check_against(kept, hashes)
    if (source / manifest.FOLDER / CURRENT).is_dir():
        inner, inner_size = _verify_directory(source / manifest.FOLDER, kept)
        said, size = f"{said}; dataset: {inner}", size + inner_size
    head = heads.head()
    return f"{said}; {head.size:,} lines have the root {head.root}", size


def _first_proof(source: Path) -> tuple[list[bytes], Heads]:
    """The leaves of a history that has no leaf list yet, in the order that it would get."""
    heads, hashes = Heads(), list[bytes]()
    for leaf in leaves.first_listing(source):
        heads.add(leaf.day, leaf.hash)
        hashes.append(leaf.hash)
    return hashes, heads


def _verify_tree(source: Path, kept: Iterable[Head]) -> tuple[str, int]:
    """Check an exported tree: its files, its dataset, and every answer in it."""
    with _bar("checking files", _size(source)) as progress:
        size = verifying.check_sums(source, progress)
    try:
        published = msgspec.json.decode((source / MANIFEST).read_bytes(), type=TreeManifest)
    except ValueError as error:
        raise Difference(f"{MANIFEST} is no manifest of a tree: {error}") from None
    _check_pictures(published)
    if not (source / DATA / manifest.MANIFEST).is_file():
        raise Difference(f"{DATA}/{manifest.MANIFEST} is not there: the tree has no dataset")
    with TemporaryDirectory() as folder:
        rebuilt = Path(folder)
        verifying.check_sums(source / DATA, lambda _: None)
        proved, store = _recompute(source / DATA, rebuilt, kept)
        (rebuilt / manifest.FOLDER).mkdir()
        (rebuilt / manifest.FOLDER / CURRENT).symlink_to((source / DATA).resolve())
        count = _compare_tree(source, published, store, rebuilt)
    return f"{_counts(proved)}, every table and {plural(count, 'answer')}", size


def _check_pictures(published: TreeManifest) -> None:
    """Pages name the cards where there are any, so they can be recomputed only by who has them."""
    has_pages, has_cards = (any(p.startswith(s) for p in published.files) for s in (BEST, CARDS))
    if has_pages and has_cards != (rasteriser() is not None):
        which = "with" if has_cards else "without"
        raise click.ClickException(
            f"The tree was exported {which} the extra `pictures` and a font, which shows in its "
            f"pages: verify it {which} them."
        )


def _recompute(source: Path, rebuilt: Path, kept: Iterable[Head]) -> tuple[Proved, Store]:
    """Check a dataset, and give a store over what it says."""
    found = verifying.check_manifest(source)
    proved = verifying.prove(source, found, rebuilt)
    verifying.check_against(kept, proved.hashes)
    return proved, verifying.rebuild(source, found, proved, rebuilt)


def _compare_tree(source: Path, published: TreeManifest, store: Store, rebuilt: Path) -> int:
    """Compare every answer of a tree with what follows; the number of answers."""
    client = _client(store, rebuilt)
    app, snapshot = client.application, store.snapshot
    paths = [path for path in static_paths(app, snapshot) if not path.startswith(CARDS)]
    moved = list(moved_paths(app, snapshot))

    def follows(path: str) -> str | None:
        """A path whose answer is published as it follows, if it has one."""
        with client.get(path) as answer:
            if answer.status_code != 200 or answer.cache_control.no_store:  # noqa: PLR2004
                return None
            body = answer.get_data()
        if (entry := published.files.get(path)) is None:
            raise Difference(f"{path} is not published")
        compare(entry.file, body, (source / entry.file).read_bytes())
        if entry.gzip:
            name = f"{entry.file}.gz"
            compare(name, body, gzip.decompress((source / name).read_bytes()))
        return path

    expected: set[str | None] = set()
    with _bar("recomputing answers", len(paths)) as progress:
        for found in map(follows, paths):
            progress(1)
            expected.add(found)
    known = {p for p in published.files if not p.startswith((f"/{DATA}/", CARDS))}
    for path in sorted(known - expected):
        raise Difference(f"{path} is published and does not follow")
    redirects = {path: client.get(path).headers.get("Location") for path in moved}
    follow = {old: new for old, new in redirects.items() if new}
    compare(MANIFEST, _encoded(follow), _encoded(published.redirects))
    listed = "".join(f'"{old}" "{new}";\n' for old, new in sorted(follow.items()))
    compare(REDIRECTS, listed.encode(), (source / REDIRECTS).read_bytes())
    return len(expected - {None})


def _verify_server(server: Download, folder: Path, kept: Iterable[Head]) -> tuple[str, int]:
    """Check a running server: its dataset, and its answers as of the last closed day."""
    data = server.get(f"/{DATA}/{manifest.MANIFEST}", most=16 << 20)
    try:
        found = manifest.decode(data)
    except ValueError as error:
        raise Difference(f"/{DATA}/{manifest.MANIFEST} is no manifest: {error}") from None
    _store(folder, manifest.MANIFEST, data)
    with _bar("downloading", sum(file.bytes for file in found.files.values())) as progress:
        for name, file in found.files.items():
            _store(folder, name, server.get(f"/{DATA}/{name}", most=file.bytes))
            progress(file.bytes)
    if server.get(f"/{DATA}/{manifest.MANIFEST}", most=16 << 20) != data:
        raise Refused("the dataset was replaced while it was read; try again")
    with TemporaryDirectory() as elsewhere:
        rebuilt = Path(elsewhere)
        proved, store = _recompute(folder, rebuilt, kept)
        count, day = _compare_server(server, found.base_url, proved, store, rebuilt)
    as_of = f"{plural(count, 'answer')} as of {day}" if day else "no answer: no day is closed yet"
    return f"{_counts(proved)}, every table and {as_of}", server.received


def _compare_server(
    server: Download, base_url: str | None, proved: Proved, store: Store, rebuilt: Path
) -> tuple[int, str | None]:
    """Compare every category's answer as of the last closed day; how many, and the day."""
    if not proved.heads.closed:
        return 0, None
    day = proved.heads.closed[-1].date
    client = _client(store, rebuilt, base_url or server.base)
    slugs = sorted(store.snapshot.leaderboards)
    count = 0
    with _bar("recomputing answers", len(slugs)) as progress:
        for slug in slugs:
            progress(1)
            path = f"/api/v1/best/{slug}.json?asOf={day}"
            with client.get(path) as answer:
                if answer.status_code == 200:  # noqa: PLR2004 - a category may be younger
                    compare(path, answer.get_data(), server.get(path, most=64 << 20))
                    count += 1
    return count, day


def _client(store: Store, rebuilt: Path, base_url: str | None = None) -> FlaskClient:
    """Whoever asks an application of this code over the data that was made again."""
    create: Callable[..., Any] = import_string(f"{current_app.import_name}:create_app")
    app = create(Settings(data_dir=rebuilt, base_url=base_url))
    app.extensions["store"].history = store.history
    client: FlaskClient = app.test_client()
    return client


def _store(folder: Path, name: str, data: bytes) -> None:
    """Put a file in its place below a folder, and nowhere else."""
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()) or not name:
        raise Difference(f"the manifest names {name!r}, which is no file of a dataset")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def _counts(proved: Proved) -> str:
    found = f"{plural(len(proved.hashes), 'line')}, {plural(len(proved.heads.closed), 'head')}"
    kinds = {"damaged": proved.damaged, "withheld": len(proved.withheld), "gone": proved.gone}
    return found + "".join(f", {number:,} {kind}" for kind, number in kinds.items() if number)


def _size(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def _encoded(value: object) -> bytes:
    return msgspec.json.encode(value, order="sorted")


@contextmanager
def _bar(label: str, length: int) -> Iterator[Callable[[int], None]]:
    """A progress bar on stderr, where somebody watches."""
    with click.progressbar(
        length=length, label=label, file=sys.stderr, hidden=not sys.stderr.isatty()
    ) as bar:
        yield bar.update
