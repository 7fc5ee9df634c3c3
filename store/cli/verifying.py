"""``flask verify``: make all that is published anew from its lines, and compare.

A stranger's command: it believes nothing that the source says of itself, needs no data directory of
its own, and ends with one sentence, or with the first difference.
"""

from __future__ import annotations

import re
import time
from http import HTTPStatus
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click
import requests
from flask import current_app
from flask.cli import with_appcontext
from werkzeug.utils import import_string

from store.chains import FOLDER, HEADS, LEDGER, Head, LedgerError, Reopening, records
from store.cli import plural
from store.files import DataDirectoryError
from store.publishing import formats, manifest
from store.publishing.directories import CURRENT
from store.publishing.evidence import published_stamp
from store.publishing.trees import MANIFEST, Tree, TreeError, TreeManifest
from store.publishing.verifying import (
    Difference,
    Folder,
    Journal,
    check_dataset,
    check_instruments,
    check_lines,
    compare,
    compare_all,
    read_manifest,
)
from store.settings import Settings
from store.web.openapi import VERSION
from store.web.pages.pictures import rasteriser

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from flask import Flask
    from flask.testing import FlaskClient

    from store.memory import Store
    from store.publishing.manifest import Manifest

BEST, CARDS, DATA = "best", "cards", "data"
"""Folders of a tree: pages of rankings; pictures, which depend on fonts; the dataset."""
TIMEOUT, MINUTES = 30, 60
"""Seconds until a server's next bytes, and minutes until its last."""


class Server(Folder):
    """The files below an address, of a server that nobody vouches for."""

    def __init__(self, address: str) -> None:
        self.address = address.rstrip("/")
        self._until = time.monotonic() + MINUTES * 60
        self._session = requests.Session()
        self._session.auth = _nobody

    def names(self) -> set[str]:
        """Return nothing: a server does not say what else it has."""
        return set()

    def read(self, name: str, most: int = 1 << 30) -> bytes:
        """Return what stands at a path; no redirect is followed."""
        address, body = f"{self.address}/{name}", bytearray()
        try:
            with self._session.get(
                address, stream=True, allow_redirects=False, timeout=TIMEOUT
            ) as answer:
                if answer.status_code != HTTPStatus.OK:
                    raise Difference(f"{address} answers {answer.status_code}")
                for chunk in answer.iter_content(1 << 16):
                    body += chunk
                    if len(body) > most:
                        raise Difference(f"{address} is larger than {most:,} bytes")
                    if time.monotonic() > self._until:
                        raise Difference(f"{address}: {MINUTES} minutes are over")
        except requests.RequestException as error:
            raise Difference(f"{address} cannot be read: {type(error).__name__}") from None
        return bytes(body)


def _nobody(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """Send no credentials, whatever ``~/.netrc`` has for this host."""
    return request


@click.command()
@click.argument("source")
@click.option("--against", metavar="FILE|DAY:ROOT", help="Heads that you kept elsewhere.")
@with_appcontext
def verify(source: str, against: str | None) -> None:
    """Check SOURCE: a data directory, an exported tree, a dataset, or a server's https address.

    Ids and checksums of all lines, chains, roots, heads, and times are checked; then all that is
    published is made anew from the lines and compared: the same files, byte for byte, and no
    other. Ends with "verified" and 0, or with the first difference and 1.
    """
    begun = time.monotonic()
    kept = _kept_heads(against) if against else []
    is_address = source.startswith(("https://", "http://"))
    try:
        with TemporaryDirectory() as work:
            check = _verify_server if is_address else _verify_directory
            sentence = check(source, kept, Path(work))
    except (Difference, DataDirectoryError, TreeError, ChildProcessError) as error:
        raise click.ClickException(f"not verified: {error}") from None
    click.echo(f"verified in {time.monotonic() - begun:,.1f} s: {sentence}")


def _kept_heads(text: str) -> Sequence[Head]:
    """Return the heads that ``--against`` names; of a day and a root alone, one without files."""
    if match := re.fullmatch(r"(\d{4}-\d\d-\d\d):([0-9a-fA-F]{64})", text):
        return [Head(match[1], 0, 0, match[2].lower())]
    try:
        lines = list(records(text, Path(text).read_bytes(), Head, Reopening))
    except OSError as error:
        reason = f"{text} cannot be read: {error.strerror}; name a file of heads, or DAY:ROOT"
    except LedgerError:
        reason = f"{text} holds something else than heads, one JSON object a line"
    else:
        return [head for head in lines if isinstance(head, Head)]
    raise click.BadParameter(reason, param_hint="--against")


def _verify_directory(name: str, kept: Sequence[Head], work: Path) -> str:
    """Check a directory of whatever kind; return what was checked."""
    path = Path(name)
    path = path / CURRENT if (path / CURRENT).is_dir() else path
    if (path / "site.json").is_file():
        return _verify_data(path, kept, work)
    if (path / manifest.MANIFEST).is_file():
        found = read_manifest(Folder(path), VERSION)
        journal, _ = check_dataset(Folder(path), found, kept, work)
        return _sentence(journal, "every file of the dataset", found)
    if (path / MANIFEST).is_file():
        return _verify_tree(path, kept, work)
    raise click.ClickException(
        f"{path} is no data directory, no exported tree and no dataset: it holds neither "
        f"site.json nor {MANIFEST} nor {manifest.MANIFEST}."
    )


def _verify_data(source: Path, kept: Sequence[Head], work: Path) -> str:
    """Check a data directory: its lines, its ledger, and its dataset if there is one."""
    files = [path.stem for path in (source / "history").glob("*.jsonl")]
    proof = Folder(source / FOLDER)
    journal, texts = check_lines(proof, Folder(source), files, kept, "history/{}.jsonl")
    check_instruments(journal, Folder(source))
    if not (path := source / manifest.FOLDER / CURRENT).is_dir():
        return _sentence(journal, "there is no dataset")
    found = read_manifest(dataset := Folder(path), VERSION)
    published, _ = check_dataset(dataset, found, kept, work)
    journal.counts |= published.counts
    for path in sorted((work / "data/history").glob("*.jsonl")):
        lines, originals = path.read_bytes().split(b"\n"), texts.get(path.stem, b"").split(b"\n")
        for number, line in enumerate(lines[:-1], start=1):
            if [published_stamp(line)] != [*map(published_stamp, originals[number - 1 : number])]:
                which = f"history/{path.name}:{number}"
                raise Difference(f"{which}: this is not the line that the dataset has")
    for name in (LEDGER, HEADS):
        if not proof.read(name).startswith(dataset.read(name)):
            raise Difference(f"{FOLDER}/{name} does not begin with the dataset's")
    return _sentence(journal, "every file of the dataset", found)


def _verify_tree(source: Path, kept: Sequence[Head], work: Path) -> str:
    """Check an exported tree: its dataset, and every other file."""
    has_pages, has_cards = ((source / folder).is_dir() for folder in (BEST, CARDS))
    if has_pages and has_cards != (rasteriser() is not None):
        which = "with" if has_cards else "without"
        raise click.ClickException(
            f"The tree was exported {which} the extra `pictures` and a font, which shows in its "
            f"pages: verify it {which} them."
        )
    found = read_manifest(dataset := Folder(source / DATA), VERSION)
    journal, store = check_dataset(dataset, found, kept, work)
    client = _client(store, work)
    (remade := work / "tree").mkdir()
    tree = Tree(remade, TreeManifest({}, {}), remade, {})
    tree.finish(tree.fill(client.application, store.snapshot, work / "dataset"))
    compare_all(Folder(remade), Folder(source))
    return _sentence(journal, "every file of the tree", found)


def _verify_server(address: str, kept: Sequence[Head], work: Path) -> str:
    """Check a running server: its dataset, and its answers as of the last closed day."""
    server, dataset = Server(address), Server(f"{address.rstrip('/')}/{DATA}")
    found = read_manifest(dataset, VERSION)
    journal, store = check_dataset(dataset, found, kept, work)
    client, day, count = _client(store, work, found.base_url or address), journal.closed, 0
    for slug in sorted(store.snapshot.leaderboards) if day else ():
        path = f"api/v1/best/{slug}.json?asOf={day}"
        with client.get(f"/{path}") as answer:
            if answer.status_code == HTTPStatus.OK:  # a category may be younger
                compare(path, answer.get_data(), server.read(path))
                count += 1
    as_of = f"{plural(count, 'answer')} as of {day}" if day else "no answer: no day is closed yet"
    return _sentence(journal, f"every file of the dataset and {as_of}", found)


def _client(store: Store, work: Path, base_url: str | None = None) -> FlaskClient:
    """Return who asks an application of this code over what is made anew in ``work``."""
    (home := work / "data" / manifest.FOLDER).mkdir()
    (home / CURRENT).symlink_to(work / "dataset")
    create: Callable[..., Any] = import_string(f"{current_app.import_name}:create_app")
    app: Flask = create(Settings(data_dir=store.directory, base_url=base_url))
    app.extensions["store"].history = store.history
    return app.test_client()


def _sentence(journal: Journal, files: str, found: Manifest | None = None) -> str:
    """Say how many lines and heads there are, which are odd, and what was not looked at."""
    present = journal.present(journal.open)
    heads = sum(isinstance(record, Head) for record in journal.records)
    counts = {"of open days": present.lines - present.closed, **journal.counts}
    parts = [f"{number:,} {kind}" for kind, number in counts.items() if number]
    text = ", ".join([plural(present.lines, "line"), plural(heads, "head"), *parts])
    for record in journal.records:
        if isinstance(record, Reopening):
            text += f"; {record.day} was reopened: {record.reason}"
    for file, entry in sorted(journal.accepted.items()):
        text += f"; {file} cannot be checked before {entry.day}: {entry.reason}"
    unseen = ""
    if found and found.tools not in (formats.tools(parquet=True), formats.tools(parquet=False)):
        unseen = f"; NOT looked at: Parquet, which needs pyarrow {found.tools['pyarrow']}"
    return f"{text}; root {present.root}; {files}{unseen}"
