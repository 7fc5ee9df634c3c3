"""Verifying: what is published must follow from its lines, and these from the ledger.

Nothing that a source says of itself is believed. The first difference ends it, as a
:class:`Difference` that names file and line, or file and byte.
"""

from __future__ import annotations

from hashlib import sha256
from itertools import accumulate
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from store.disk import read_regular
from store.ledger import (
    FOLDER,
    HEADS,
    LEDGER,
    Entry,
    Head,
    Ledger,
    LedgerError,
    day_of,
    parse,
    start_of,
    whole_lines,
)
from store.line_codec import decode_line, id_of, redaction_of
from store.memory import Store
from store.publishing import catalogue, evidence, formats, manifest, metadata, tables
from store.publishing.dataset import Draft, Source
from store.publishing.digests import SUMS
from store.records import is_slug

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from store.ledger import Present
    from store.publishing.manifest import Manifest

_AROUND = 30
"""Bytes shown on both sides of a difference."""
_OPEN = 64 << 20
"""Bytes that lines of open days may have in all: those of closed ones the ledger says."""
_DESCRIBING = (SUMS, manifest.MANIFEST, "manifest.json", "README.md", "datapackage.json")
"""Files that differ wherever another one does, so they are compared last."""


class Difference(Exception):
    """What is there is not what follows; the sentence names the file, the place and both texts."""


class Journal(Ledger):
    """A ledger that keeps every entry, by file, with the newest day that was closed before it.

    Of a file with an accepted loss, only the newest acceptance and what followed it.
    """

    entries: dict[str, list[tuple[Entry, str]]] = field(default_factory=dict)

    def add(self, entry: Entry) -> None:
        """Take in the next line of the ledger."""
        own = self.entries.setdefault(entry.file, [])
        if entry.accepted:
            own.clear()
        own.append((entry, self.closed))
        super().add(entry)


class Lines(Struct):
    """What a check of all lines showed.

    ``entries`` are those by which open lines of a file would be closed; ``sizes`` has, by file,
    the bytes of each line as it stands there; ``redacted`` are the ids of withheld polls.
    """

    journal: Journal
    entries: dict[str, list[Entry]] = {}
    sizes: dict[str, list[int]] = {}
    redacted: set[str] = set()
    withheld: int = 0
    damaged: int = 0

    @property
    def present(self) -> Present:
        """All lines, the closed ones among them, and the root over them."""
        return self.journal.present(entry for own in self.entries.values() for entry in own)


def read_journal(ledger: bytes, heads: bytes) -> Journal:
    """Return the ledger that two files hold.

    Raises:
        Difference: a line of them is not one, or a head does not follow.
    """
    for name, data in ((LEDGER, ledger), (HEADS, heads)):
        if b"".join(line + b"\n" for line in whole_lines(data)) != data:
            number = data.count(b"\n") + 1
            raise Difference(f"{name}:{number}: the line is cut short")
    journal = Journal()
    try:
        parse(ledger, heads, journal)
    except LedgerError as error:
        name = error.file.removeprefix(f"{FOLDER}/")
        raise Difference(f"{name}:{error.line}: {error.reason}") from None
    return journal


def check_file(
    result: Lines, file: str, data: bytes, where: str, *, redactions: bool = False
) -> None:
    """See that a history file is whole, and what the ledger says: lines, chain, days.

    ``where`` is what a difference calls it; with ``redactions`` records may stand in the place of
    withheld lines.

    Raises:
        Difference: it is not.
    """
    entries = result.journal.entries.get(file, [])
    excused = entries[0][0].lines if entries and entries[0][0].accepted else 0
    lines = data.split(b"\n")
    if lines.pop():
        raise Difference(f"{where}:{len(lines) + 1}: the line is cut short")
    for number, line in enumerate(lines, start=1):
        if redactions and redaction_of(line):
            result.withheld += 1
            result.redacted |= {id_of(line)} if b'"id":"' in line else set()
            continue
        try:
            decode_line(line)
        except ValueError as error:
            if number > excused:
                raise Difference(
                    f"{where}:{number}: {error}\n  there:   {_shown(line[: 2 * _AROUND])}"
                ) from None
            result.damaged += 1
    stamps = [evidence.stamp_of(line) if redactions else _stamp_of(line) for line in lines]
    state = Ledger()
    for entry, closed in entries:
        _check_entry(state, entry, closed, stamps, where)
        state.add(entry)
    state.closed = result.journal.closed
    first = state.last(file).lines
    _check_times(stamps, first, len(lines), state.closed, where)
    result.entries[file] = state.entries_of(file, stamps[first:])
    result.sizes[file] = [len(line) for line in lines]


def check_data(directory: Path) -> Lines:
    """See that the history of a data directory is whole, and what its ledger says.

    Raises:
        Difference: it is not.
    """
    result = Lines(
        read_journal(*(_bytes(directory, f"{FOLDER}/{name}") for name in (LEDGER, HEADS)))
    )
    paths = (directory / "history").glob("*.jsonl")
    for file in sorted({*result.journal.newest, *(path.stem for path in paths)}):
        if is_slug(file):
            name = f"history/{file}.jsonl"
            is_there = (directory / name).exists()
            check_file(result, file, _bytes(directory, name) if is_there else b"", name)
    return result


def compare_history(directory: Path, rebuilt: Path) -> None:
    """See that history begins with the lines that a dataset published of it.

    Raises:
        Difference: another line was published.
    """
    for path in sorted(rebuilt.glob("*.jsonl")):
        there = [_stamp_of(line) for line in whole_lines(_bytes(directory, path.name))]
        stamps = map(evidence.stamp_of, whole_lines(path.read_bytes()))
        for number, stamp in enumerate(stamps, start=1):
            if there[number - 1 : number] != [stamp]:
                raise Difference(
                    f"history/{path.name}:{number}: this is not the line that the dataset has"
                )


def parse_heads(data: bytes) -> list[Head]:
    """Return the heads in a file of them; what reopened a day is left out.

    Raises:
        ValueError: it holds something else.
    """
    lines = [line for line in data.splitlines() if b'"reopened":' not in line]
    return [msgspec.json.decode(line, type=Head) for line in lines]


def _stamp_of(line: bytes) -> tuple[bytes, int, str]:
    return sha256(line).digest(), len(line), day_of(line)


def _check_entry(
    state: Ledger, entry: Entry, closed: str, stamps: Sequence[tuple[bytes, int, str]], where: str
) -> None:
    """See that the ledger's next entry of a file is what follows from its lines."""
    first = 0 if entry.accepted else state.last(entry.file).lines
    own, state.closed = stamps[first : entry.lines], closed
    if entry.accepted:
        chains = accumulate(
            (digest for digest, _, _ in own),
            lambda chain, digest: sha256(chain + digest).digest(),
            initial=start_of(entry.file),
        )
        size = sum(size + 1 for _, size, _ in own)
        follows = [(len(own), size, chain.hex()) for chain in chains][-1]
        is_same = follows == (entry.lines, entry.bytes, entry.chain)
    else:
        _check_times(stamps, first, entry.lines, closed, where)
        is_same = state.entries_of(entry.file, own)[-1:] == [entry]
    if not is_same:
        raise Difference(
            f"{where}:{first + 1}: lines {first + 1:,} to {entry.lines:,} are not those that the "
            f"ledger lists under {entry.day}"
        )


def _check_times(
    stamps: Sequence[tuple[bytes, int, str]], first: int, last: int, closed: str, where: str
) -> None:
    early = [n for n in range(first, min(last, len(stamps))) if "" < stamps[n][2] <= closed]
    if early:
        raise Difference(
            f"{where}:{early[0] + 1}: {len(early):,} lines bear a time before the day they were "
            f"listed under: {closed} was closed before they came"
        )


def check_kept(kept: Iterable[Head], journal: Journal) -> None:
    """See that a ledger has the heads that somebody kept elsewhere.

    A head without files is a day and a root alone.

    Raises:
        Difference: one is another, or is missing.
    """
    heads = [head for head in journal.heads if isinstance(head, Head)]
    for head in kept:
        there = [other for other in heads if other.day == head.day]
        whole = [other for other in there if other.root == head.root]
        if not whole or (head.files and head not in whole):
            other = f"here its root is {there[-1].root}" if there else "here it is missing"
            raise Difference(
                f"{HEADS}: history up to {head.day} was rewritten or cut short: the head of that "
                f"day that you kept has the root {head.root}, and {other}"
            )


def read_manifest(dataset: Path, service: str) -> Manifest:
    """Return the manifest of a dataset that this version can make anew.

    Raises:
        Difference: it is not one, or another version wrote it.
    """
    try:
        found = manifest.decode(_bytes(dataset, manifest.MANIFEST))
    except ValueError as error:
        raise Difference(f"{manifest.MANIFEST} is not a manifest: {error}") from None
    here = formats.tools(parquet=False)["zlib"]
    for name, there, ours in (("the service", found.service, service),
                              ("zlib", found.tools.get("zlib"), here)):  # fmt: skip
        if there != ours:
            shown = str(there)[:_AROUND]
            raise Difference(
                f"it was written by version {shown} of {name}, this is {ours}: install that to "
                "check it"
            )
    for name in found.files.keys() - _NAMES - {manifest.EVIDENCE.format(f) for f in found.evidence}:
        raise Difference(f"{manifest.MANIFEST} names {name[:100]!r}, which is not a file of ours")
    if unknown := [file for file in found.evidence if not is_slug(file)]:
        raise Difference(f"{manifest.MANIFEST} names evidence of {unknown[0][:100]!r}")
    return found


_NAMES = {
    *(name for table in tables.ALL for name in (table.csv, table.parquet)),
    *metadata.NAMES, catalogue.NAME, LEDGER, HEADS,
}  # fmt: skip
"""The files of a dataset, but for its evidence."""


def check_dataset(
    dataset: Path, found: Manifest, kept: Iterable[Head], rebuilt: Path, remade: Path
) -> tuple[Lines, Store]:
    """See that a dataset is what follows from its lines; ``remade`` gets it anew.

    Returns what the lines showed, and a store over ``rebuilt``, the data directory that follows.

    Raises:
        Difference: it is not.
    """
    proof = {name: _bytes(dataset, name) for name in (LEDGER, HEADS)}
    result = Lines(read_journal(*proof.values()))
    budget = _OPEN + sum(entry.bytes for entry in result.journal.newest.values())
    (rebuilt / "history").mkdir(parents=True)
    for file in sorted({*found.evidence, *result.journal.newest}):
        name = manifest.EVIDENCE.format(file)
        try:
            is_there = file in found.evidence
            data = formats.unpacked(_bytes(dataset, name), budget) if is_there else b""
        except ValueError as error:
            raise Difference(f"{name}: {error}") from None
        budget -= len(data)
        check_file(result, file, data, name, redactions=True)
        if data:
            (rebuilt / "history" / f"{file}.jsonl").write_bytes(data)
    check_kept(kept, result.journal)
    store = _store(dataset, rebuilt, result)
    source = Source(rebuilt, lambda: store.snapshot, found.base_url, found.service)
    Draft(remade, source, store.snapshot, like=dataset).fill(proof)
    compare_folders(remade, dataset)
    snapshot = store.snapshot
    result.damaged = max(result.damaged, sum(map(len, snapshot.damage.values())))
    return result, store


def _store(dataset: Path, rebuilt: Path, lines: Lines) -> Store:
    """Return a store over the data directory that follows from evidence and catalogue."""
    try:
        catalogue.restore(_bytes(dataset, catalogue.NAME), rebuilt)
    except ValueError as error:
        raise Difference(f"{catalogue.NAME}: {error}") from None
    ledger = parse_places(lines)
    store = Store(rebuilt)
    store.history = evidence.PublishedHistory(rebuilt / "history", ledger, lines.entries)
    unknown = lines.redacted - store.snapshot.catalogue.withheld.keys()
    if unknown:
        raise Difference(f"{catalogue.NAME}: the poll {min(unknown)} is redacted and not withheld")
    return store


def parse_places(lines: Lines) -> Ledger:
    """Return the ledger with the places that lines have where some are redacted."""
    journal = lines.journal
    for file, own in journal.entries.items():
        sizes = (size + 1 for size in lines.sizes.get(file, ()))
        places = [0, *accumulate(sizes)]
        journal.ends[file] = [(entry.day, places[entry.lines]) for entry, _ in own]
        newest = own[-1][0]
        journal.newest[file] = replace(newest, bytes=places[newest.lines])
    return journal


def compare_folders(expected: Path, found: Path) -> None:
    """See that a folder holds the files that follow, byte for byte, and no other.

    Raises:
        Difference: it does not.
    """
    follows, there = _names(expected), _names(found)
    for name in sorted(follows.keys() ^ there.keys()):
        which = "is there and does not follow" if name in there else "is missing"
        raise Difference(f"{name} {which}")
    for name in sorted(follows, key=lambda name: (name in _DESCRIBING, name == SUMS, name)):
        compare(name, _bytes(expected, name), _bytes(found, name))


def _names(folder: Path) -> Mapping[str, Path]:
    paths = (path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    return {path.relative_to(folder).as_posix(): path for path in paths}


def compare(name: str, expected: bytes, found: bytes) -> None:
    """See that bytes are what follows.

    Raises:
        Difference: they are not; the first byte that differs is named, with both excerpts.
    """
    if expected == found:
        return
    at = next(
        (i for i, pair in enumerate(zip(expected, found, strict=False)) if pair[0] != pair[1]),
        min(len(expected), len(found)),
    )
    around = slice(max(0, at - _AROUND), at + _AROUND)
    raise Difference(
        f"{name} differs at byte {at:,}:\n  there:   {_shown(found[around])}\n"
        f"  follows: {_shown(expected[around])}"
    )


def _shown(excerpt: bytes) -> str:
    return ascii(excerpt.decode("utf-8", "replace"))


def _bytes(directory: Path, name: str) -> bytes:
    try:
        return read_regular(directory / name)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise Difference(f"{name} cannot be read: {reason}") from None
