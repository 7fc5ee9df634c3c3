"""``flask verify``: make all that is published anew from its lines, and compare.

A stranger's command: it believes nothing that the source says of itself, needs no data directory of
its own, and ends with one sentence, or with the first difference.
"""

from __future__ import annotations

import re
import shutil
import time
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click
from flask import current_app
from flask.cli import with_appcontext
from werkzeug.utils import import_string

from store.cli import plural, this_writer
from store.cli.downloading import Download, Refused
from store.files import DataDirectoryError
from store.ledger import FOLDER, HEADS, LEDGER, Head
from store.publishing import formats, manifest, verifying
from store.publishing.digests import SUMS
from store.publishing.directories import CURRENT, DirectoryError, owned
from store.publishing.trees import MANIFEST, Tree, TreeError, TreeManifest
from store.publishing.verifying import Difference, Lines, compare
from store.settings import Settings
from store.web.openapi import VERSION
from store.web.pages.pictures import rasteriser

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from flask import Flask
    from flask.testing import FlaskClient

    from store.memory import Store
    from store.publishing.manifest import Manifest

DATA = "data"
"""Where the dataset is in an exported tree, and below a server's address."""

BEST, CARDS = "best", "cards"
"""Folders of a tree: pages of rankings; pictures, which depend on fonts."""


@click.command()
@click.argument("source")
@click.option(
    "--against",
    metavar="FILE|DAY:ROOT",
    help="Heads that you kept elsewhere.",
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

    Ids and checksums of all lines, chains, roots, heads, and times are checked; then all that is
    published is made anew from the lines and compared: the same files, byte for byte, and no
    other. Ends with "verified" and 0, or with the first difference and 1.
    """
    begun = time.monotonic()
    kept = _kept_heads(against) if against else []
    try:
        with TemporaryDirectory() as folder:
            if source.startswith(("https://", "http://")):
                server = Download(source.rstrip("/"), max_mb << 20, max_minutes * 60)
                with owned(keep, "verify", this_writer()) if keep else nullcontext():
                    sentence = _verify_server(server, kept, Path(folder), keep)
            else:
                sentence = _verify_directory(Path(source), kept, Path(folder))
    except (Difference, Refused, DataDirectoryError, TreeError, ChildProcessError) as error:
        raise click.ClickException(f"not verified: {error}") from None
    except DirectoryError as error:
        raise click.ClickException(f"{error}.") from None
    click.echo(f"verified in {time.monotonic() - begun:,.1f} s: {sentence}")


def _kept_heads(given: str) -> list[Head]:
    """Return the heads that ``--against`` names; of a day and a root alone, one without files."""
    if match := re.fullmatch(r"(\d{4}-\d\d-\d\d):([0-9a-fA-F]{64})", given):
        return [Head(match[1], 0, 0, match[2].lower())]
    try:
        heads = verifying.parse_heads(Path(given).read_bytes())
    except OSError as error:
        why = f"{given} cannot be read: {error.strerror}; name a file of heads, or DAY:ROOT"
    except ValueError:
        why = f"{given} holds something else than heads, one JSON object a line"
    else:
        return heads
    raise click.BadParameter(why, param_hint="--against")


def _verify_directory(source: Path, kept: Sequence[Head], work: Path) -> str:
    """Check a directory of whatever kind; return what was checked."""
    if (source / CURRENT).is_dir():
        source = source / CURRENT
    if (source / "site.json").is_file():
        return _verify_data(source, kept, work)
    if (source / manifest.MANIFEST).is_file():
        lines, _, found = _verify_dataset(source, kept, work)
        return f"{_counts(lines)}; every file of the dataset{_unseen(found)}"
    if (source / MANIFEST).is_file():
        return _verify_tree(source, kept, work)
    raise click.ClickException(
        f"{source} is no data directory, no exported tree and no dataset: it holds neither "
        f"site.json nor {MANIFEST} nor {manifest.MANIFEST}."
    )


def _verify_data(source: Path, kept: Sequence[Head], work: Path) -> str:
    """Check a data directory: its lines, its ledger, and its dataset if there is one."""
    lines = verifying.check_data(source)
    verifying.check_kept(kept, lines.journal)
    if not (dataset := source / manifest.FOLDER / CURRENT).is_dir():
        return f"{_counts(lines)}; there is no dataset"
    published, _, found = _verify_dataset(dataset, kept, work)
    verifying.compare_history(source / "history", work / "data/history")
    lines.withheld = published.withheld
    for name in (LEDGER, HEADS):
        if not (source / FOLDER / name).read_bytes().startswith((dataset / name).read_bytes()):
            raise Difference(f"{FOLDER}/{name} does not begin with the dataset's")
    return f"{_counts(lines)}; every file of the dataset{_unseen(found)}"


def _verify_dataset(
    source: Path, kept: Sequence[Head], work: Path
) -> tuple[Lines, Store, Manifest]:
    """Check a dataset; the folder ``work`` gets the data directory that follows from it."""
    found = verifying.read_manifest(source, VERSION)
    remade = work / "dataset"
    remade.mkdir()
    lines, store = verifying.check_dataset(source, found, kept, work / "data", remade)
    return lines, store, found


def _verify_tree(source: Path, kept: Sequence[Head], work: Path) -> str:
    """Check an exported tree: its dataset, and every other file."""
    has_pages, has_cards = ((source / folder).is_dir() for folder in (BEST, CARDS))
    if has_pages and has_cards != (rasteriser() is not None):
        which = "with" if has_cards else "without"
        raise click.ClickException(
            f"The tree was exported {which} the extra `pictures` and a font, which shows in its "
            f"pages: verify it {which} them."
        )
    if not (source / DATA / manifest.MANIFEST).is_file():
        raise Difference(f"{DATA}/{manifest.MANIFEST} is not there: the tree has no dataset")
    lines, store, found = _verify_dataset(source / DATA, kept, work)
    client = _client(store, work)
    (remade := work / "tree").mkdir()
    tree = Tree(remade, TreeManifest({}, {}), remade, {})
    tree.finish(tree.fill(client.application, store.snapshot, work / "dataset"))
    verifying.compare_folders(remade, source)
    return f"{_counts(lines)}; every file of the tree{_unseen(found)}"


def _verify_server(server: Download, kept: Sequence[Head], work: Path, keep: Path | None) -> str:
    """Check a running server: its dataset, and its answers as of the last closed day."""
    address = f"/{DATA}/{manifest.MANIFEST}"
    data = server.get(address, most=16 << 20)
    (folder := work / "download").mkdir()
    (folder / manifest.MANIFEST).write_bytes(data)
    found = verifying.read_manifest(folder, VERSION)
    (folder / "evidence").mkdir()
    for name, file in found.files.items():  # of which `read_manifest` knows each
        (folder / name).write_bytes(server.get(f"/{DATA}/{name}", most=file.bytes))
    (folder / SUMS).write_bytes(server.get(f"/{DATA}/{SUMS}", most=16 << 20))
    if server.get(address, most=16 << 20) != data:
        raise Refused("the dataset was replaced while it was read; try again")
    if keep:
        shutil.copytree(folder, keep, dirs_exist_ok=True)
    lines, store, found = _verify_dataset(folder, kept, work)
    client, day, count = (
        _client(store, work, found.base_url or server.base),
        lines.journal.closed,
        0,
    )
    for slug in sorted(store.snapshot.leaderboards) if day else ():
        path = f"/api/v1/best/{slug}.json?asOf={day}"
        with client.get(path) as answer:
            if answer.status_code == 200:  # noqa: PLR2004 - a category may be younger
                compare(path, answer.get_data(), server.get(path, most=64 << 20))
                count += 1
    as_of = f"{plural(count, 'answer')} as of {day}" if day else "no answer: no day is closed yet"
    return f"{_counts(lines)}; every file of the dataset and {as_of}{_unseen(found)}"


def _client(store: Store, work: Path, base_url: str | None = None) -> FlaskClient:
    """Return who asks an application of this code over what is made anew in ``work``."""
    home = work / "data" / manifest.FOLDER
    home.mkdir()
    (home / CURRENT).symlink_to(work / "dataset")
    create: Callable[..., Any] = import_string(f"{current_app.import_name}:create_app")
    app: Flask = create(Settings(data_dir=store.directory, base_url=base_url))
    app.extensions["store"].history = store.history
    return app.test_client()


def _counts(lines: Lines) -> str:
    """Say how many lines and heads there are, and which of them are not as others."""
    present, journal = lines.present, lines.journal
    kinds = {
        "of open days": present.lines - present.closed,
        "withheld": lines.withheld,
        "damaged, which count nowhere": lines.damaged,
    }
    heads = sum(isinstance(head, Head) for head in journal.heads)
    sentence = f"{plural(present.lines, 'line')}, {plural(heads, 'head')}" + "".join(
        f", {number:,} {kind}" for kind, number in kinds.items() if number
    )
    reopened = [head for head in journal.heads if not isinstance(head, Head)]
    for record in reopened:
        sentence += f"; {record.day} was reopened: {record.reason}"
    for file, entry in sorted(journal.accepted.items()):
        sentence += f"; {file} cannot be checked before {entry.day}: {entry.reason}"
    return f"{sentence}; root {present.root}"


def _unseen(found: Manifest) -> str:
    """Say what was not looked at."""
    if found.tools in (formats.tools(parquet=True), formats.tools(parquet=False)):
        return ""
    return f"; NOT looked at: Parquet, which needs pyarrow {found.tools['pyarrow']}"
