"""``flask verify``: make all that is published anew from its lines, and compare.

A stranger's command: it believes nothing that the source says of itself, needs no data directory of
its own, and ends with one sentence, or with the first difference: file and line, or file and byte.
"""

import re
import time
from collections.abc import Sequence
from functools import partial
from http import HTTPStatus
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory

import click
import requests
from flask import Flask, current_app
from flask.cli import with_appcontext
from flask.testing import FlaskClient
from urllib3.exceptions import HTTPError
from werkzeug.utils import import_string

from store import ledger
from store.disk import check_no_link
from store.files import DataDirectoryError
from store.ledger import FOLDER, HEADS, LEDGER, Head, LedgerError
from store.publishing import manifest
from store.publishing.directories import CURRENT
from store.publishing.trees import TREE_MANIFEST, Tree, TreeError, TreeManifest
from store.publishing.verification import (
    INDENT,
    MAX_FILE_BYTES,
    Difference,
    Folder,
    check_dataset,
    check_file,
    check_instruments,
    compare,
    compare_all,
    read_ledger,
)
from store.rankings.sentences import plural
from store.settings import Settings
from store.store import Store
from store.text import is_slug, printable
from store.web.openapi import VERSION
from store.web.pages.pictures import rasteriser

DATASET_FOLDER = "data"
"""The folder of the dataset in a tree, and on a server."""
READ_TIMEOUT = 30
"""Seconds until a server's next bytes."""
MAX_MINUTES = 60
"""Minutes until its last."""
_LATER = (
    "(names, domains and withholdings are the server's of now, here those of its dataset: if it "
    "has polled or withheld since, verify again after its next one)"
)


class RemoteFolder(Folder):
    """The files below an address, of a server that nobody vouches for."""

    def __init__(self, address: str) -> None:
        self._address, self._until = address.rstrip("/"), time.monotonic() + MAX_MINUTES * 60
        session = requests.Session()
        session.auth = lambda request: request  # no credentials from ~/.netrc
        self._get = session.get

    def names(self) -> set[str]:
        """Return nothing: a server does not say what else it has."""
        return set()

    def read(self, name: str, most: int = MAX_FILE_BYTES) -> bytes:
        """Return what stands at a path, ``most`` bytes at most; no redirect is followed."""
        where, body = f"{self._address}/{name}", bytearray()
        try:
            with self._get(
                where, stream=True, allow_redirects=False, timeout=READ_TIMEOUT
            ) as answer:
                if answer.status_code != HTTPStatus.OK:
                    is_inside = self._address.endswith("/data/data")
                    hint = "; name the service's own address, without /data" if is_inside else ""
                    raise Difference(f"{where} answers {answer.status_code}{hint}")
                # What is there so far: a whole chunk may take as long as a server likes.
                for chunk in iter(partial(answer.raw.read1, 1 << 16, decode_content=True), b""):
                    body += chunk
                    if len(body) > most:
                        raise Difference(f"{where} is larger than {most:,} bytes")
                    if time.monotonic() > self._until:
                        raise Difference(f"{where}: {MAX_MINUTES} minutes are over")
        except (requests.RequestException, HTTPError, ValueError) as error:  # of a bad Location
            raise Difference(f"{where} cannot be read: {type(error).__name__}") from None
        return bytes(body)


@click.command()
@click.argument("source")
@click.option("--against", metavar="FILE|DAY:ROOT", help="Heads that you kept elsewhere.")
@with_appcontext
def verify(source: str, against: str | None) -> None:
    """Check SOURCE: a data directory, an exported tree, a dataset, or a server's address.

    Ids and checksums of all lines, chains, roots, heads, and times are checked; then all that is
    published is made anew from the lines and compared: the same files, byte for byte, and no
    other. Ends with "verified" and 0, or with the first difference and 1.
    """
    begun = time.monotonic()
    witnesses = [] if against is None else _kept_heads(against)
    check = _verify_server if source.startswith(("https://", "http://")) else _verify_directory
    try:
        with TemporaryDirectory() as work:
            sentence = check(source, witnesses, Path(work))
    except (Difference, DataDirectoryError, TreeError, ChildProcessError) as error:
        lines = map(printable, str(error).split(INDENT))
        raise click.ClickException(f"not verified: {INDENT.join(lines)}") from None
    except OSError as error:  # the source may not be looked at, or there is no room
        place = error.filename or "the temporary directory"
        raise click.ClickException(f"not verified: {place}: {error.strerror}") from None
    agreed = f"; agrees with {plural(len(witnesses), 'kept head')}" if witnesses else ""
    click.echo(f"verified in {time.monotonic() - begun:,.1f} s: {printable(sentence)}{agreed}")


def _kept_heads(text: str) -> Sequence[Head]:
    """Return the heads that ``--against`` names; of a day and a root alone, one without files."""
    if match := re.fullmatch(r"(\d{4}-\d\d-\d\d):([0-9a-fA-F]{64})", text):
        return [Head(match[1], root=match[2].lower())]
    try:
        data = Path(text).read_bytes() + b"\n"  # a head that was pasted may lack its newline
        records = ledger.decode_records(text, data, Head)
        if heads := [head for head in records if not head.reopened]:
            return heads
        reason = f'"{text}" holds no head'
    except OSError as error:
        reason = f'"{text}" cannot be read: {error.strerror}'
    except LedgerError as error:
        reason = f"{text}:{error.line}: this is not a head"
    reason += "; name a file of heads, or DAY:ROOT"
    raise click.BadParameter(reason, param_hint="--against")


def _verify_directory(source: str, witnesses: Sequence[Head], work: Path) -> str:
    """Check a directory of whatever kind; return what was checked."""
    path = Path(source, CURRENT) if Path(source, CURRENT).is_dir() else Path(source)
    if (path / "site.json").is_file():
        return _verify_data(path, witnesses, work)
    if (path / TREE_MANIFEST).is_file():
        return _verify_tree(path, witnesses, work)
    if (path / manifest.MANIFEST).is_file():
        checked, _ = check_dataset(Folder(path), witnesses, work, VERSION)
        return f"{checked}; every file of the dataset{checked.unseen}"
    raise Difference(f"{path} is not a data directory, an exported tree or a dataset")


def _verify_data(source: Path, witnesses: Sequence[Head], work: Path) -> str:
    """Check a data directory: its lines, its ledger, and its dataset if there is one."""
    try:
        check_no_link(source / "history")
        check_no_link(source / FOLDER)
    except OSError as error:
        raise Difference(f"{error.filename.name} cannot be looked into: {error.strerror}") from None
    data, proof, names = Folder(source), Folder(source / FOLDER), Folder(source / "history").names()
    checked = read_ledger(proof, witnesses)
    stems = {name.removesuffix(".jsonl") for name in names if name.endswith(".jsonl")}
    files = set(filter(is_slug, stems))  # the others are nobody's: editors' copies
    for file in sorted(files | checked.entries.keys()):
        where, count = f"history/{file}.jsonl", checked.last(file).lines
        if file not in files and count:  # else a person accepted that it is gone
            raise Difference(f"{where}: the file is missing; the ledger lists {count:,} lines")
        check_file(checked, file, data.read(where) if file in files else b"", where)
    check_instruments(checked, data)
    if not (path := source / manifest.FOLDER / CURRENT).is_dir():
        return f"{checked}; there is no dataset"
    published, _ = check_dataset(dataset := Folder(path), witnesses, work, VERSION)
    for file, stamps in published.stamps.items():
        pairs = zip_longest(stamps, checked.stamps.get(file, [])[: len(stamps)])
        for number, (theirs, ours) in enumerate(pairs, start=1):
            if theirs != ours:
                where = f"history/{file}.jsonl:{number}"
                raise Difference(f"{where}: this is not the line that the dataset has")
    for name in (LEDGER, HEADS):
        # A ledger only grows: what was published is its beginning.
        if not proof.read(name).startswith(dataset.read(name)):
            raise Difference(f"{FOLDER}/{name} does not begin with the dataset's")
    checked.redacted, checked.damaged = published.redacted, max(checked.damaged, published.damaged)
    return f"{checked}; every file of the dataset{published.unseen}"


def _verify_tree(source: Path, witnesses: Sequence[Head], work: Path) -> str:
    """Check an exported tree: its dataset, and every other file."""
    has_pages, has_cards = (source / "best").is_dir(), (source / "cards").is_dir()
    if has_pages and has_cards != (rasteriser() is not None):
        which = "with" if has_cards else "without"
        raise Difference(
            f"the tree was exported {which} the extra `pictures` and a font, which shows in its "
            f"pages: verify it {which} them"
        )
    checked, store = check_dataset(Folder(source / DATASET_FOLDER), witnesses, work, VERSION)
    client = _client(store, work)
    # Exported once more from its dataset alone, then compared file by file.
    (remade := work / "tree").mkdir()
    tree = Tree(remade, TreeManifest({}, {}), remade, {})
    tree.finish(tree.fill(client.application, store.snapshot, work / "dataset"))
    compare_all(Folder(remade), Folder(source))
    return f"{checked}; every file of the tree{checked.unseen}"


def _verify_server(address: str, witnesses: Sequence[Head], work: Path) -> str:
    """Check a running server: its dataset, and its answers as of the last closed day."""
    server, dataset = RemoteFolder(address), RemoteFolder(f"{address.rstrip('/')}/{DATASET_FOLDER}")
    checked, store = check_dataset(dataset, witnesses, work, VERSION)
    client, day, count = _client(store, work, address), checked.last_closed_day, 0
    for slug in sorted(store.snapshot.leaderboards) if day else ():
        path = f"api/v1/best/{slug}.json?asOf={day}"
        with client.get(f"/{path}") as answer:
            if answer.status_code == HTTPStatus.OK:  # a category may be younger
                there = server.read(path)
                try:
                    compare(path, answer.get_data(), there)
                except Difference as error:
                    raise Difference(f"{error}{INDENT}{_LATER}") from None
                count += 1
    as_of = f"{plural(count, 'answer')} as of {day}" if day else "no answer: no day is closed yet"
    return f"{checked}; every file of the dataset and {as_of}{checked.unseen}"


def _client(store: Store, work: Path, address: str | None = None) -> FlaskClient:
    """Return a test client of this code's application over the data made anew in ``work``."""
    (home := work / "data" / manifest.FOLDER).mkdir()
    (home / CURRENT).symlink_to(work / "dataset")
    base_url = store.snapshot.catalogue.site.base_url or address
    settings = Settings(data_dir=store.directory, base_url=base_url)
    app: Flask = import_string(f"{current_app.import_name}:create_app")(settings)
    app.extensions["store"].history = store.history
    return app.test_client()
