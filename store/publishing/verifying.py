"""Checking a dataset: that every file, hash and row follows from its sealed lines.

Nothing that a file says of itself is believed: the first difference between what is there and what
follows from the sealed lines ends the check as a :class:`Difference`.
"""

from __future__ import annotations

from hashlib import sha256
from operator import attrgetter
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct, field

from store.disk import read_regular
from store.line_codec import decode_line, has_valid_checksum, has_valid_id, id_of
from store.memory import Store
from store.publishing import catalogue, evidence, formats, leaves, manifest, metadata, tables
from store.publishing.digests import SUMS, sums
from store.publishing.leaves import Head, Heads, Leaf, check_grown, parse, parse_heads
from store.publishing.merkle import Tree, leaf_hash

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from store.publishing.manifest import Manifest

_AROUND = 30
"""Bytes shown on both sides of a difference."""


class Difference(Exception):
    """What is there is not what follows; the sentence names the file, the byte and both texts."""


class Proved(Struct):
    """What the evidence proves: leaf hashes in order, and the heads that follow.

    ``damaged`` lines count nowhere, ``withheld`` and ``gone`` ones are known by their hash.
    """

    hashes: list[bytes] = []
    heads: Heads = field(default_factory=Heads)
    damaged: int = 0
    withheld: list[bytes] = []
    gone: int = 0


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


def check_sums(directory: Path, progress: Callable[[int], None]) -> int:
    """See that a directory holds what its SHA256SUMS lists, and nothing else; its size in bytes.

    Raises:
        Difference: it does not.
    """
    written = _bytes(directory, SUMS)
    listed: dict[str, str] = {}
    for number, line in enumerate(written.split(b"\n")[:-1], start=1):
        digest, _, name = line.decode("utf-8", "replace").partition("  ")
        if name in listed or not name:
            where = f"{SUMS}: line {number}"
            raise Difference(f"{where} names no further file: {_shown(line)}")
        listed[name] = digest
    compare(SUMS, sums(listed), written)
    there = {
        path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file()
    } - {SUMS}
    for name in sorted(there ^ listed.keys()):
        which = "is there and is not listed" if name in there else "is listed and is not there"
        raise Difference(f"{name} {which} in {SUMS}")
    size = len(written)
    for name, digest in listed.items():
        data = _bytes(directory, name)
        _check_digest(name, digest, data)
        size += len(data)
        progress(len(data))
    return size


def _check_digest(name: str, digest: str, data: bytes) -> None:
    found = sha256(data).hexdigest()
    if found != digest:
        raise Difference(f"{name} has the SHA-256 {found}; {digest} is what it should have")


def check_manifest(directory: Path) -> Manifest:
    """See that a dataset's files are what its manifest says, and describe it.

    Raises:
        Difference: one is not.
    """
    data = _bytes(directory, manifest.MANIFEST)
    try:
        found = manifest.decode(data)
    except ValueError as error:
        raise Difference(f"{manifest.MANIFEST} is no manifest: {error}") from None
    compare(manifest.MANIFEST, manifest.encode(found), data)
    for name, file in found.files.items():
        body = _bytes(directory, name)
        if len(body) != file.bytes:
            raise Difference(f"{name} has {len(body):,} bytes, not {file.bytes:,}")
        _check_digest(name, file.sha256, body)
    for name, body in metadata.documents(found).items():
        compare(name, body, _bytes(directory, name))
    return found


def prove(directory: Path, found: Manifest, rebuilt: Path) -> Proved:
    """Check evidence, proof and the tables by month, and write the history again that they hold.

    Raises:
        Difference: a line, a hash, a head or a row is not what follows.
        ProofError: a leaf or a head is none.
    """
    proved = Proved()
    evidence.restore(_prove_months(directory, found, proved), rebuilt / "history")
    data = _bytes(directory, leaves.HEADS)
    parse_heads(data, leaves.HEADS)
    compare(leaves.HEADS, b"".join(map(leaves.head_line, proved.heads.closed)), data)
    return proved


def _prove_months(
    directory: Path, found: Manifest, proved: Proved
) -> Iterator[tuple[Sequence[Leaf], Sequence[bytes]]]:
    """Leaves and lines of each month, once they are checked."""
    for month in found.months:
        name, leaves_name = manifest.EVIDENCE.format(month), manifest.LEAVES.format(month)
        listed = list(parse(_bytes(directory, leaves_name), month, leaves_name))
        lines = evidence.lines_of(_unpacked(directory, name))
        if (wanted := len(listed)) != len(lines):
            raise Difference(f"{name} has {len(lines):,} lines, and its proof {wanted:,} leaves")
        offset = 0
        for number, (leaf, line) in enumerate(zip(listed, lines, strict=True), start=1):
            proved.heads.add(leaf.day, leaf.hash)
            proved.hashes.append(leaf.hash)
            if line == evidence.GONE:
                proved.gone += 1
            elif evidence.is_withheld(line):
                proved.withheld.append(line)
            else:
                check_line(f"{name}: line {number}, byte {offset:,} unpacked", line, leaf.hash)
                proved.damaged += evidence.read(line) is None
            offset += len(line) + 1
        polls = list(evidence.polls(lines))
        for table, rows_of in tables.MONTHLY.items():
            rows = [row for poll in polls for row in rows_of(poll)]
            _check_table(directory, found, table, rows, month)
        yield listed, lines


def check_line(where: str, line: bytes, digest: bytes) -> None:
    """See that a line has its checksum, its id and the hash that the proof has.

    Raises:
        Difference: one does not fit.
    """
    if leaf_hash(line) != digest:
        raise Difference(
            f"{where}: the line is not the one of the proof, whose leaf hash is {digest.hex()}:\n"
            f"  there:   {_shown(line[: 2 * _AROUND])}"
        )
    if not has_valid_checksum(line):
        raise Difference(f"{where}: the checksum does not fit the line")
    if not has_valid_id(line):
        raise Difference(f"{where}: the line is not what its id says")


def check_against(given: Iterable[Head], hashes: Sequence[bytes]) -> None:
    """See that the tree goes on from heads that somebody kept elsewhere.

    Raises:
        Difference: history before one of them was changed.
    """
    tree = Tree()
    for head in sorted(given, key=attrgetter("size")):
        if head.size > len(hashes):
            raise Difference(
                f"history was cut short: the head of {head.date} that you kept has {head.size:,} "
                f"lines, and there are {len(hashes):,}"
            )
        for leaf in hashes[tree.size : head.size]:
            tree.append(leaf)
        root = tree.root().hex()
        if root != head.root:
            raise Difference(
                f"history up to {head.date} was rewritten: its first {head.size:,} lines have "
                f"the root {root}, and the head that you kept says {head.root}"
            )


def _check_table(
    directory: Path,
    found: Manifest,
    table: tables.Table,
    rows: Sequence[tables.Row],
    month: str = "",
) -> None:
    """See that the files of a table hold the rows that follow, and no others.

    Bytes of Parquet differ from one version of its writer to the next, so its rows are compared.
    """
    if not month:
        compare(table.csv, formats.csv_of(table, rows), _bytes(directory, table.csv))
    name = table.parquet(month)
    if name not in found.files or not formats.has_parquet():
        return
    try:
        there = formats.parquet_rows(table, _bytes(directory, name))
    except (ValueError, OSError) as error:
        raise Difference(f"{name} cannot be read as {table.name}: {error}") from None
    for number, (mine, theirs) in enumerate(zip(rows, there, strict=False)):
        plain = msgspec.json.decode(msgspec.json.encode(mine))
        for column, follows, value in zip(table.names, plain, theirs, strict=True):
            if follows != value:
                where = f"{name}: row {number:,}, column {column}"
                compare(where, repr(follows).encode(), repr(value).encode())
    if len(there) != len(rows):
        raise Difference(f"{name} has {len(there):,} rows, not {len(rows):,}")


def rebuild(directory: Path, found: Manifest, proved: Proved, rebuilt: Path) -> Store:
    """A store over the data directory that follows from evidence and catalogue.

    Raises:
        Difference: the catalogue is none, withholds other polls, or a table over everything has
            other rows.
    """
    data = _bytes(directory, catalogue.NAME)
    try:
        catalogue.restore(data, rebuilt)
    except ValueError as error:
        raise Difference(f"{catalogue.NAME}: {error}") from None
    store = Store(rebuilt)
    store.history = evidence.PublishedHistory(rebuilt / "history")
    snapshot = store.snapshot
    compare(catalogue.NAME, catalogue.published(snapshot.catalogue, found.base_url), data)
    withheld = snapshot.catalogue.withheld
    for line in proved.withheld:
        if id_of(line) not in withheld or evidence.hide(line, withheld) != line:
            shown = _shown(line[: 2 * _AROUND])
            raise Difference(
                f"the record is not what is left of a withheld poll:\n  there:   {shown}"
            )
    for table, rows_of in tables.WHOLE.items():
        _check_table(directory, found, table, list(rows_of(snapshot)))
    return store


def check_history(directory: Path) -> dict[tuple[str, int], bytes]:
    """See that every line of a data directory is sealed and whole.

    Returns the leaf hash of each by the slug that names its file and the offset there.

    Raises:
        Difference: one is not.
    """
    found: dict[tuple[str, int], bytes] = {}
    for path in sorted((directory / "history").glob("*.jsonl")):
        name, start = f"history/{path.name}", 0
        data = _bytes(directory, name).removesuffix(b"\n")
        for line in data.split(b"\n") if data else ():
            try:
                decode_line(line)
            except ValueError as error:
                shown = _shown(line[: 2 * _AROUND])
                raise Difference(f"{name}: byte {start:,}: {error}\n  there:   {shown}") from None
            found[path.stem, start] = leaf_hash(line)
            start += len(line) + 1
    return found


def check_proof(
    directory: Path, lines: Mapping[tuple[str, int], bytes]
) -> tuple[list[bytes], Heads]:
    """See that a data directory's leaf list names lines that are there, and its heads follow.

    ``lines`` are those of :func:`check_history`. A line may stand later than it did, after one
    that was repaired; two that changed places do not both.

    Raises:
        Difference: a line is another.
        ProofError: the list or a head is damaged.
    """
    listed = leaves.LeafList(directory)
    hashes, heads = [], Heads()
    places = {(slug, digest): start for (slug, start), digest in lines.items()}
    for leaf in listed.leaves():
        if places.get((leaf.slug, leaf.hash), -1) < leaf.start:
            name = f"history/{leaf.slug}.jsonl"
            there = _bytes(directory, name)[leaf.start :].partition(b"\n")[0]
            check_line(f"{name}: byte {leaf.start:,}", there, leaf.hash)
        heads.add(leaf.day, leaf.hash)
        hashes.append(leaf.hash)
    check_grown(listed.heads(), heads.closed, f"{leaves.FOLDER}/{leaves.HEADS}")
    return hashes, heads


def _bytes(directory: Path, name: str) -> bytes:
    try:
        return read_regular(directory / name)
    except OSError as error:
        raise Difference(f"{name} cannot be read: {error.strerror}") from None


def _unpacked(directory: Path, name: str) -> bytes:
    try:
        return formats.unpacked(_bytes(directory, name))
    except ValueError as error:
        raise Difference(f"{name}: {error}") from None
