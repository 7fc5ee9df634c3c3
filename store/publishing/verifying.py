"""Verifying: what is published must follow from its lines, and these from the ledger.

Nothing that a source says of itself is believed. The first difference ends it, as a
:class:`Difference` that names file and line, or file and byte.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from msgspec import field

from store import chains
from store.chains import HEADS, LEDGER, Entry, Head, LedgerError, Reopening
from store.disk import read_regular
from store.ledger import Ledger, parse
from store.line_codec import decode_line, id_of, redaction_of, stamp, whole
from store.memory import Store
from store.publishing import catalogue, evidence, formats, manifest
from store.publishing.dataset import Draft, Source
from store.publishing.digests import SUMS
from store.records import instrument_id, is_slug

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from store.line_codec import Stamp
    from store.publishing.manifest import Manifest

_AROUND = 30
"""Bytes shown on both sides of a difference."""
_OPEN, _MOST = 64 << 20, 1 << 30
"""Bytes of all lines of open days (of closed ones the ledger says), and of any other file."""
_LAST = (SUMS, manifest.MANIFEST, "manifest.json", "README.md", "datapackage.json")
"""Files that differ wherever another one does, so they are compared last."""


class Difference(Exception):
    """What is there is not what follows; the sentence names the file, the place and both texts."""


class Folder:
    """The files of a folder, in folders below it too."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def names(self) -> set[str]:
        """Return the names of all files."""
        paths = (path for path in self._path.rglob("*") if path.is_symlink() or not path.is_dir())
        return {path.relative_to(self._path).as_posix() for path in paths}

    def read(self, name: str, most: int = _MOST) -> bytes:
        """Return the bytes of a file; a :class:`Difference` if it has over ``most`` or is gone."""
        try:
            if (size := (self._path / name).lstat().st_size) <= most:
                return read_regular(self._path / name)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise Difference(f"{name} cannot be read: {reason}") from None
        raise Difference(f"{name} has {size:,} bytes, more than {most:,}, which it should have")


class Journal(Ledger):
    """A ledger as it was replayed, and what a check of all lines showed.

    ``entries`` has those of each file with the newest day that was closed before, since its newest
    acceptance; ``records`` are the lines of the heads. ``open`` are the entries by which open lines
    would be closed, ``redacted`` the ids of withheld polls, ``counts`` how many lines are odd;
    ``instruments`` has the first line that names each instrument.
    """

    entries: dict[str, list[tuple[Entry, str]]] = field(default_factory=dict)
    records: list[Head | Reopening] = field(default_factory=list)
    open: list[Entry] = field(default_factory=list)
    redacted: set[str] = field(default_factory=set)
    counts: Counter[str] = field(default_factory=Counter)
    instruments: dict[str, str] = field(default_factory=dict)

    def add(self, entry: Entry) -> None:
        """Take in the next line of the ledger."""
        own = self.entries.setdefault(entry.file, [])
        if entry.accepted:
            own.clear()
        own.append((entry, self.closed))
        super().add(entry)


def check_lines(
    proof: Folder, files: Folder, names: Iterable[str], kept: Sequence[Head], pattern: str
) -> tuple[Journal, dict[str, bytes]]:
    """See that history files are whole, and what the ledger says, which has the ``kept`` heads.

    ``pattern`` names the file of a history file; as evidence it is compressed, and redacted
    records stand in it for withheld lines. Returns what the lines showed, and the files' bytes.

    Raises:
        Difference: they are not.
    """
    journal, ledger, heads = Journal(), proof.read(LEDGER), proof.read(HEADS)
    for name, data in ((LEDGER, ledger), (HEADS, heads)):
        if whole(data) != data:
            number = data.count(b"\n") + 1
            raise Difference(f"{name}:{number}: the line is cut short")
    try:
        journal.records += chains.records(HEADS, heads, Head, Reopening)
        parse(ledger, heads, journal)
    except LedgerError as error:
        raise Difference(str(error).removeprefix(f"{chains.FOLDER}/")) from None
    _check_kept(kept, journal.records)
    there, texts = set(names), dict[str, bytes]()
    budget = _OPEN + sum(entry.bytes for entry in journal.newest.values())
    for file in sorted({*there, *journal.newest}):
        where, data = pattern.format(file), b""
        try:
            if file in there:
                data = files.read(where, budget)
                data = formats.unpacked(data, budget) if where.endswith(".gz") else data
        except ValueError as error:
            raise Difference(f"{where}: {error}") from None
        budget -= len(data)
        texts[file] = data
        _check_file(journal, file, data, where)
    return journal, texts


def _check_file(journal: Journal, file: str, data: bytes, where: str) -> None:
    """See that a history file is whole, and what the ledger says: lines, chain, days."""
    *lines, tail = data.split(b"\n")
    if tail:
        raise Difference(f"{where}:{len(lines) + 1}: the line is cut short")
    entries, is_evidence = journal.entries.get(file, []), where.endswith(".gz")
    excused = entries[0][0].lines if entries and entries[0][0].accepted else 0
    for number, line in enumerate(lines, start=1):
        if is_evidence and redaction_of(line):
            journal.counts["withheld"] += 1
            journal.redacted |= {id_of(line)} if b'"id":"' in line else set()
            continue
        try:
            if instrument := decode_line(line).instrument:
                journal.instruments.setdefault(instrument, f"{where}:{number}")
        except ValueError as error:
            if number > excused:
                there = _shown(line[: 2 * _AROUND])
                raise Difference(f"{where}:{number}: {error}\n  there:   {there}") from None
            journal.counts["damaged, which count nowhere"] += 1
    stamps = [evidence.published_stamp(x) if is_evidence else stamp(x) for x in lines]
    state = Ledger()
    for entry, closed in entries:
        first = 0 if entry.accepted else state.last(file).lines
        own, state.closed = stamps[first : entry.lines], closed
        if entry.accepted:
            *_, reach = (0, 0, ""), *chains.reaches(chains.start(file), (x[:2] for x in own))
            fits = reach == (entry.lines, entry.bytes, entry.chain) or not entry.lines
        else:
            _check_times(own, first, closed, where)
            fits = state.open_entries(file, own)[-1:] == [entry]
        if not fits:
            which = f"lines {first + 1:,} to {entry.lines:,} are not those that the ledger lists"
            raise Difference(f"{where}:{first + 1}: {which} under {entry.day}")
        state.add(entry)
    state.closed, first = journal.closed, state.last(file).lines
    _check_times(stamps[first:], first, state.closed, where)
    journal.open += state.open_entries(file, stamps[first:])


def _check_times(stamps: Sequence[Stamp], first: int, closed: str, where: str) -> None:
    early = [number for number, (_, _, day) in enumerate(stamps, first + 1) if "" < day <= closed]
    if early:
        raise Difference(
            f"{where}:{early[0]}: {len(early):,} lines bear a time before the day they were "
            f"listed under: {closed} was closed before they came"
        )


def check_instruments(journal: Journal, files: Folder) -> None:
    """See that a data directory has the text of every instrument that a line names.

    Raises:
        Difference: it has not.
    """
    for id_, line in journal.instruments.items():
        try:
            data = files.read(f"instruments/{id_}.json")
        except Difference as error:
            raise Difference(f"{line} names the instrument {id_}: {error}") from None
        if (found := instrument_id(data)) != id_:
            raise Difference(f"{line}: instruments/{id_}.json is not that text: its id is {found}")


def _check_kept(kept: Iterable[Head], heads: Iterable[Head | Reopening]) -> None:
    """See that a ledger has the heads that were kept; one without files is a day and a root."""
    for head in kept:
        there = [x for x in heads if isinstance(x, Head) and x.day == head.day]
        if not any(x.root == head.root and head.files in (0, x.files) for x in there):
            other = f"here its root is {there[-1].root}" if there else "here it is missing"
            raise Difference(
                f"{HEADS}: history up to {head.day} was rewritten or cut short: the head of that "
                f"day that you kept has the root {head.root}, and {other}"
            )


def read_manifest(dataset: Folder, service: str) -> Manifest:
    """Return the manifest of a dataset that this version can make anew.

    Raises:
        Difference: it is not one, or another version wrote it.
    """
    try:
        found = manifest.decode(dataset.read(manifest.MANIFEST))
    except ValueError as error:
        raise Difference(f"{manifest.MANIFEST} is not a manifest: {error}") from None
    zlib = formats.tools(parquet=False)["zlib"]
    pairs = {"the service": (found.service, service), "zlib": (found.tools.get("zlib"), zlib)}
    for name, (there, here) in pairs.items():
        if there != here:
            raise Difference(
                f"it was written by version {str(there)[:_AROUND]} of {name}, this is {here}: "
                "install that to check it"
            )
    if unknown := [file for file in found.evidence if not is_slug(file)]:
        raise Difference(f"{manifest.MANIFEST} names evidence of {unknown[0][:100]!r}")
    return found


def check_dataset(
    dataset: Folder, found: Manifest, kept: Sequence[Head], work: Path
) -> tuple[Journal, Store]:
    """See that a dataset is what follows from its lines.

    The folder ``work`` gets the data directory that follows, ``data``, and its ``dataset``. Parquet
    that another pyarrow wrote is taken as it is. Returns what the lines showed, and a store.

    Raises:
        Difference: it is not.
    """
    journal, texts = check_lines(dataset, dataset, found.evidence, kept, manifest.EVIDENCE)
    data, remade = work / "data", work / "dataset"
    for folder in (data / "history", data / "proof", remade):
        folder.mkdir(parents=True)
    for file, text in texts.items():
        if file in found.evidence:
            (data / "history" / f"{file}.jsonl").write_bytes(text)
    proof = {name: dataset.read(name) for name in (LEDGER, HEADS)}
    for name, body in proof.items():
        (data / "proof" / name).write_bytes(body)
    try:
        catalogue.restore(dataset.read(catalogue.NAME), data)
    except ValueError as error:
        raise Difference(f"{catalogue.NAME}: {error}") from None
    check_instruments(journal, Folder(data))
    store = Store(data)
    store.history = evidence.PublishedHistory(data / "history")
    if unknown := journal.redacted - store.snapshot.catalogue.withheld.keys():
        raise Difference(f"{catalogue.NAME}: the poll {min(unknown)} is redacted and not withheld")
    source = Source(data, lambda: store.snapshot, found.base_url, found.service)
    Draft(remade, source, store.snapshot, found.tools).fill(proof, dataset.read)
    compare_all(Folder(remade), dataset)
    journal.counts["damaged, which count nowhere"] = sum(map(len, store.snapshot.damage.values()))
    return journal, store


def compare_all(expected: Folder, found: Folder) -> None:
    """See that the files that follow are there, byte for byte, and no other.

    Raises:
        Difference: they are not.
    """
    follows = expected.names()
    for name in sorted(follows ^ (found.names() or follows)):
        which = "is missing" if name in follows else "is there and does not follow"
        raise Difference(f"{name} {which}")
    for name in sorted(follows, key=lambda name: (name in _LAST, name == SUMS, name)):
        body = expected.read(name)
        compare(name, body, found.read(name, max(2 * len(body), 1 << 20)))


def compare(name: str, expected: bytes, found: bytes) -> None:
    """See that bytes are what follows.

    Raises:
        Difference: they are not; the first byte that differs is named, with both excerpts.
    """
    if expected == found:
        return
    pairs = enumerate(zip(expected, found, strict=False))
    at = next((i for i, (a, b) in pairs if a != b), min(len(expected), len(found)))
    around = slice(max(0, at - _AROUND), at + _AROUND)
    raise Difference(
        f"{name} differs at byte {at:,}:\n  there:   {_shown(found[around])}\n"
        f"  follows: {_shown(expected[around])}"
    )


def _shown(excerpt: bytes) -> str:
    return ascii(excerpt.decode("utf-8", "replace"))
