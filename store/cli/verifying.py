"""``flask verify``: make all that is published anew from its lines, and compare.

A stranger's command: it believes nothing that the source says of itself, needs no data directory of
its own, and ends with one sentence, or with the first difference: file and line, or file and byte.
"""

from __future__ import annotations

import re
import time
from http import HTTPStatus
from itertools import accumulate, zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click
import requests
from flask import current_app
from flask.cli import with_appcontext
from msgspec import field
from werkzeug.utils import import_string

from store import ledger
from store.cli import plural
from store.disk import read_regular
from store.files import DataDirectoryError
from store.history import History
from store.ledger import FOLDER, HEADS, LEDGER, Entry, Head, Ledger, LedgerError
from store.line_codec import decode_line, id_of, redaction_of, stamp, whole
from store.publishing import catalogue, formats, manifest
from store.publishing.dataset import Draft, Source
from store.publishing.digests import SUMS
from store.publishing.directories import CURRENT
from store.publishing.trees import MANIFEST, Tree, TreeError, TreeManifest
from store.records import instrument_id
from store.settings import Settings
from store.store import Store
from store.web.openapi import VERSION
from store.web.pages.pictures import rasteriser

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flask import Flask
    from flask.testing import FlaskClient

    from store.line_codec import Stamp

DATA = "data"
"""The folder of the dataset in a tree, and on a server."""
AROUND = 30
"""Bytes shown on both sides of a difference."""
OPEN, MOST = 64 << 20, 1 << 30
"""Bytes of all lines of open days (of closed ones the ledger says), and of any other file."""
TIMEOUT, MINUTES = 30, 60
"""Seconds until a server's next bytes, and minutes until its last."""
LAST = (manifest.MANIFEST, MANIFEST, "README.md", "datapackage.json", SUMS)
"""Files that differ wherever another one does, so they are compared last."""


class Difference(Exception):
    """What is there is not what follows; the sentence names the file and the place."""


class Folder:
    """The files of a folder, in folders below it too."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def names(self) -> set[str]:
        """Return the names of all files."""
        paths = (path for path in self._path.rglob("*") if path.is_symlink() or not path.is_dir())
        return {path.relative_to(self._path).as_posix() for path in paths}

    def read(self, name: str, most: int = MOST) -> bytes:
        """Return the bytes of a file, ``most`` at most: it may be larger than the memory."""
        try:
            if (self._path / name).lstat().st_size <= most:
                return read_regular(self._path / name)
        except OSError as error:
            raise Difference(f"{name} cannot be read: {error.strerror}") from None
        raise Difference(f"{name} is larger than {most:,} bytes")


class Server(Folder):
    """The files below an address, of a server that nobody vouches for."""

    def __init__(self, address: str) -> None:
        self._address, self._until = address.rstrip("/"), time.monotonic() + MINUTES * 60
        session = requests.Session()
        session.auth = lambda request: request  # no credentials from ~/.netrc
        self._get = session.get

    def names(self) -> set[str]:
        """Return nothing: a server does not say what else it has."""
        return set()

    def read(self, name: str, most: int = MOST) -> bytes:
        """Return what stands at a path, ``most`` bytes at most; no redirect is followed."""
        where, body = f"{self._address}/{name}", bytearray()
        try:
            with self._get(where, stream=True, allow_redirects=False, timeout=TIMEOUT) as answer:
                if answer.status_code != HTTPStatus.OK:
                    raise Difference(f"{where} answers {answer.status_code}")
                for chunk in answer.iter_content(1 << 16):
                    body += chunk
                    if len(body) > most:
                        raise Difference(f"{where} is larger than {most:,} bytes")
                    if time.monotonic() > self._until:
                        raise Difference(f"{where}: {MINUTES} minutes are over")
        except requests.RequestException as error:
            raise Difference(f"{where} cannot be read: {type(error).__name__}") from None
        return bytes(body)


class Journal(Ledger):
    """A ledger as it was replayed, and what a check of all lines showed.

    ``records`` are the lines of the heads. ``entries`` has those of each file since its newest
    acceptance, each with the newest day that was closed before, ``stamps`` the lines of each file.
    ``open`` are the entries by which open lines would be closed, ``redacted`` the ids of withheld
    lines; ``damaged`` says how many lines count nowhere, ``instruments`` has the first line that
    names each, and ``unseen`` says what could not be looked at.
    """

    records: list[Head] = field(default_factory=list)
    entries: dict[str, list[tuple[Entry, str]]] = field(default_factory=dict)
    stamps: dict[str, list[Stamp]] = field(default_factory=dict)
    open: list[Entry] = field(default_factory=list)
    redacted: list[str] = field(default_factory=list)
    damaged: int = 0
    instruments: dict[str, str] = field(default_factory=dict)
    unseen: str = ""

    def add(self, entry: Entry) -> None:
        """Take in the next line of the ledger."""
        if entry.accepted:
            self.entries.pop(entry.file, None)
        self.entries.setdefault(entry.file, []).append((entry, self.closed))
        super().add(entry)

    def __str__(self) -> str:
        """Say how many lines and heads there are, and which are odd."""
        present = self.present(self.open)
        counts = {
            "of open days": present.lines - present.closed,
            "withheld": len(self.redacted),
            "damaged, which count nowhere": self.damaged,
        }
        heads = sum(not head.reopened for head in self.records)
        parts = [f"{number:,} {kind}" for kind, number in counts.items() if number]
        text = ", ".join([plural(present.lines, "line"), plural(heads, "head"), *parts])
        for head in self.records:
            text += f"; {head.day} was reopened: {head.reason}" if head.reopened else ""
        for file, entry in sorted(self.accepted.items()):
            text += f"; {file} cannot be checked before {entry.day}: {entry.reason}"
        return f"{text}; root {present.root}"


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
    witnesses = _kept_heads(against) if against else []
    check = _verify_server if source.startswith(("https://", "http://")) else _verify_directory
    try:
        with TemporaryDirectory() as work:
            sentence = check(source, witnesses, Path(work))
    except (Difference, DataDirectoryError, TreeError, ChildProcessError) as error:
        raise click.ClickException(f"not verified: {error}") from None
    click.echo(f"verified in {time.monotonic() - begun:,.1f} s: {sentence}")


def _kept_heads(text: str) -> Sequence[Head]:
    """Return the heads that ``--against`` names; of a day and a root alone, one without files."""
    if match := re.fullmatch(r"(\d{4}-\d\d-\d\d):([0-9a-fA-F]{64})", text):
        return [Head(match[1], root=match[2].lower())]
    try:
        heads = list(ledger.records(text, Path(text).read_bytes(), Head))
    except OSError as error:
        reason = f"{text} cannot be read: {error.strerror}; name a file of heads, or DAY:ROOT"
        raise click.BadParameter(reason, param_hint="--against") from None
    except LedgerError as error:
        reason = f"{text}:{error.line}: this is not a head; name a file of heads, or DAY:ROOT"
        raise click.BadParameter(reason, param_hint="--against") from None
    return [head for head in heads if not head.reopened]


def _verify_directory(source: str, witnesses: Sequence[Head], work: Path) -> str:
    """Check a directory of whatever kind; return what was checked."""
    path = Path(source, CURRENT) if Path(source, CURRENT).is_dir() else Path(source)
    if (path / "site.json").is_file():
        return _verify_data(path, witnesses, work)
    if (path / MANIFEST).is_file():
        return _verify_tree(path, witnesses, work)
    if (path / manifest.MANIFEST).is_file():
        journal, _ = _check_dataset(Folder(path), witnesses, work)
        return f"{journal}; every file of the dataset{journal.unseen}"
    raise Difference(f"{path} is no data directory, no exported tree and no dataset")


def _verify_data(source: Path, witnesses: Sequence[Head], work: Path) -> str:
    """Check a data directory: its lines, its ledger, and its dataset if there is one."""
    proof, history = Folder(source / FOLDER), Folder(source / "history")
    journal, names = _read_ledger(proof, witnesses), history.names()
    files = {name.removesuffix(".jsonl") for name in names if name.endswith(".jsonl")}
    for file in sorted(files | journal.entries.keys()):
        text = history.read(f"{file}.jsonl") if file in files else b""
        _check_file(journal, file, text, f"history/{file}.jsonl")
    _check_instruments(journal, Folder(source))
    if not (path := source / manifest.FOLDER / CURRENT).is_dir():
        return f"{journal}; there is no dataset"
    published, _ = _check_dataset(dataset := Folder(path), witnesses, work)
    for file, stamps in published.stamps.items():
        pairs = zip_longest(stamps, journal.stamps.get(file, [])[: len(stamps)])
        for number, (theirs, ours) in enumerate(pairs, start=1):
            if theirs != ours:
                where = f"history/{file}.jsonl:{number}"
                raise Difference(f"{where}: this is not the line that the dataset has")
    for name in (LEDGER, HEADS):
        if not proof.read(name).startswith(dataset.read(name)):
            raise Difference(f"{FOLDER}/{name} does not begin with the dataset's")
    journal.redacted, journal.damaged = published.redacted, max(journal.damaged, published.damaged)
    return f"{journal}; every file of the dataset{published.unseen}"


def _verify_tree(source: Path, witnesses: Sequence[Head], work: Path) -> str:
    """Check an exported tree: its dataset, and every other file."""
    has_pages, has_cards = (source / "best").is_dir(), (source / "cards").is_dir()
    if has_pages and has_cards != (rasteriser() is not None):
        which = "with" if has_cards else "without"
        raise Difference(
            f"the tree was exported {which} the extra `pictures` and a font, which shows in its "
            f"pages: verify it {which} them"
        )
    journal, store = _check_dataset(Folder(source / DATA), witnesses, work)
    client = _client(store, work)
    (remade := work / "tree").mkdir()
    tree = Tree(remade, TreeManifest({}, {}), remade, {})
    tree.finish(tree.fill(client.application, store.snapshot, work / "dataset"))
    _compare_all(Folder(remade), Folder(source))
    return f"{journal}; every file of the tree{journal.unseen}"


def _verify_server(address: str, witnesses: Sequence[Head], work: Path) -> str:
    """Check a running server: its dataset, and its answers as of the last closed day."""
    server, dataset = Server(address), Server(f"{address.rstrip('/')}/{DATA}")
    journal, store = _check_dataset(dataset, witnesses, work)
    client, day, count = _client(store, work, address), journal.closed, 0
    for slug in sorted(store.snapshot.leaderboards) if day else ():
        path = f"api/v1/best/{slug}.json?asOf={day}"
        with client.get(f"/{path}") as answer:
            if answer.status_code == HTTPStatus.OK:  # a category may be younger
                _compare(path, answer.get_data(), server.read(path))
                count += 1
    as_of = f"{plural(count, 'answer')} as of {day}" if day else "no answer: no day is closed yet"
    return f"{journal}; every file of the dataset and {as_of}{journal.unseen}"


def _client(store: Store, work: Path, address: str | None = None) -> FlaskClient:
    """Return who asks an application of this code over what is made anew in ``work``."""
    (home := work / "data" / manifest.FOLDER).mkdir()
    (home / CURRENT).symlink_to(work / "dataset")
    base_url = store.snapshot.catalogue.site.base_url or address
    settings = Settings(data_dir=store.directory, base_url=base_url)
    app: Flask = import_string(f"{current_app.import_name}:create_app")(settings)
    app.extensions["store"].history = store.history
    return app.test_client()


def _read_ledger(proof: Folder, witnesses: Sequence[Head]) -> Journal:
    """Return what a ledger says, whole and with the heads that were kept."""
    texts = {name: proof.read(name) for name in (LEDGER, HEADS)}
    for name, data in texts.items():
        if whole(data) != data:
            number = data.count(b"\n") + 1
            raise Difference(f"{name}:{number}: the line is cut short")
    try:
        journal = Journal(records=[*ledger.records(HEADS, texts[HEADS], Head)])
        ledger.parse(texts[LEDGER], texts[HEADS], journal)
    except LedgerError as error:
        raise Difference(str(error).removeprefix(f"{FOLDER}/")) from None
    for head in witnesses:
        roots = [other.root for other in journal.records if other.day == head.day and other.root]
        if head.root not in roots:
            there = f"here its root is {roots[-1]}" if roots else "here it is missing"
            raise Difference(
                f"{HEADS}: history up to {head.day} was rewritten or cut short: the head of that "
                f"day that you kept has the root {head.root}, and {there}"
            )
    return journal


def _check_file(journal: Journal, file: str, data: bytes, where: str) -> None:
    """See that a history file is whole, and what the ledger says: lines, chain, days.

    As evidence, redacted records stand in it for withheld lines.
    """
    *lines, tail = data.split(b"\n")
    if tail:
        raise Difference(f"{where}:{len(lines) + 1}: the line is cut short")
    entries, is_evidence = journal.entries.get(file, []), where.endswith(".gz")
    excused = max((entry.lines for entry, _ in entries if entry.accepted), default=0)
    for number, line in enumerate(lines, start=1):
        if is_evidence and redaction_of(line):
            journal.redacted.append(id_of(line) if b'"id":"' in line else "")
            continue
        try:
            if instrument := decode_line(line).instrument:
                journal.instruments.setdefault(instrument, f"{where}:{number}")
        except ValueError as error:
            if number > excused:
                raise Difference(f"{where}:{number}: {error}") from None
            journal.damaged += 1
    stamps = [stamp(line, published=is_evidence) for line in lines]
    reaches = [*accumulate(stamps, ledger.extend, initial=ledger.start(file))]
    first = 0
    for entry, closed in entries:
        there = reaches[min(entry.lines, len(lines))]
        fits = there.reach == entry.reach
        if not entry.accepted:
            _check_times(stamps[first : entry.lines], first, closed, where)
            day = max(there.day, ledger.day_after(closed))
            fits = fits and first < entry.lines and day == entry.day
        if not fits:
            which = f"lines {first + 1:,} to {entry.lines:,} are not those that the ledger lists"
            raise Difference(f"{where}:{first + 1}: {which} under {entry.day}")
        first = entry.lines
    _check_times(stamps[first:], first, journal.closed, where)
    journal.stamps[file] = stamps
    journal.open += journal.open_entries(file, stamps[first:])


def _check_times(stamps: Sequence[Stamp], first: int, closed: str, where: str) -> None:
    early = [number for number, (_, _, day) in enumerate(stamps, first + 1) if "" < day <= closed]
    if early:
        raise Difference(
            f"{where}:{early[0]}: {len(early):,} lines bear a time before the day they were "
            f"listed under: {closed} was closed before they came"
        )


def _check_instruments(journal: Journal, files: Folder) -> None:
    """See that a data directory has the text of every instrument that a line names."""
    for id_, line in journal.instruments.items():
        try:
            there = instrument_id(files.read(f"instruments/{id_}.json"))
        except Difference as error:
            raise Difference(f"{line} names the instrument {id_}: {error}") from None
        if there != id_:
            raise Difference(f"{line}: instruments/{id_}.json is not that text: its id is {there}")


def _check_dataset(dataset: Folder, witnesses: Sequence[Head], work: Path) -> tuple[Journal, Store]:
    """See that a dataset is what follows from its lines.

    The folder ``work`` gets the data directory that follows, ``data``, and its ``dataset``. Parquet
    that another pyarrow wrote is taken as it is. Returns what the lines showed, and a store.
    """
    described, journal = _read_manifest(dataset), _read_ledger(dataset, witnesses)
    data, remade = work / "data", work / "dataset"
    for folder in (data / "history", data / FOLDER, remade):
        folder.mkdir(parents=True)
    proof = {name: dataset.read(name) for name in (LEDGER, HEADS)}
    for name, body in proof.items():
        (data / FOLDER / name).write_bytes(body)
    budget = OPEN + sum(entry.bytes for entry in journal.newest.values())
    where = ""
    try:
        for file in sorted({*described.evidence, *journal.entries}):
            where, text = manifest.EVIDENCE.format(file), b""
            if file in described.evidence:
                text = formats.unpacked(dataset.read(where, budget), budget)
                (data / "history" / f"{file}.jsonl").write_bytes(text)
            budget -= len(text)
            _check_file(journal, file, text, where)
        where = catalogue.NAME
        catalogue.restore(dataset.read(where), data)
    except ValueError as error:
        raise Difference(f"{where}: {error}") from None
    _check_instruments(journal, Folder(data))
    store = Store(data)
    store.history = History(data / "history", published=True)
    snapshot = store.snapshot
    if unknown := set(journal.redacted) - snapshot.catalogue.withheld.keys() - {""}:
        raise Difference(f"{catalogue.NAME}: the poll {min(unknown)} is redacted and not withheld")
    source = Source(data, lambda: snapshot, snapshot.catalogue.site.base_url, VERSION)
    draft = Draft(remade, source, snapshot, described.tools)
    for name in draft.unwritable:
        (remade / name).write_bytes(dataset.read(name))
    if draft.unwritable:
        needed = described.tools["pyarrow"]
        journal.unseen = f"; NOT looked at: Parquet, which needs pyarrow {needed}"
    draft.fill(proof)
    _compare_all(Folder(remade), dataset)
    journal.damaged = sum(map(len, snapshot.damage.values()))
    return journal, store


def _read_manifest(dataset: Folder) -> manifest.Manifest:
    """Return the manifest of a dataset that this version can make anew."""
    try:
        described = manifest.decode(dataset.read(manifest.MANIFEST))
    except ValueError as error:
        raise Difference(f"{manifest.MANIFEST} is not a manifest: {error}") from None
    here = {"the service": VERSION, **formats.tools()}
    there = {"the service": described.service, **described.tools}
    for name in sorted((here.keys() | there.keys()) - {"pyarrow"}):
        if there.get(name) != here.get(name):
            raise Difference(
                f"it was written by version {str(there.get(name))[:AROUND]} of {name[:AROUND]}, "
                f"this is {here.get(name)}: install that to check it"
            )
    return described


def _compare_all(expected: Folder, found: Folder) -> None:
    """See that the files that follow are there, byte for byte, and no other."""
    follows = expected.names()
    for name in sorted(follows ^ (found.names() or follows)):
        which = "is missing" if name in follows else "is there and does not follow"
        raise Difference(f"{name} {which}")
    for name in sorted(follows, key=lambda name: (LAST.index(name) if name in LAST else -1, name)):
        body = expected.read(name)
        _compare(name, body, found.read(name, max(2 * len(body), 1 << 20)))


def _compare(name: str, expected: bytes, found: bytes) -> None:
    """See that bytes are what follows; name the first that differs, and what is around it."""
    if expected == found:
        return
    pairs = enumerate(zip(expected, found, strict=False))
    at = next((i for i, (a, b) in pairs if a != b), min(len(expected), len(found)))
    there, follows = (
        ascii(text[max(0, at - AROUND) : at + AROUND].decode("utf-8", "replace"))
        for text in (found, expected)
    )
    place = f"{name} differs at byte {at:,}"
    raise Difference(f"{place}:\n  there:   {there}\n  follows: {follows}")
