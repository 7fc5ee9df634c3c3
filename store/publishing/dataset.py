"""Writing the dataset: the whole of it, anew, into a folder that takes the old one's place.

A poll that is withheld is in no part of the next one, and nothing older is kept.
"""

from __future__ import annotations

import hashlib
import shutil
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct
from msgspec.structs import replace

from store.disk import read_regular
from store.ledger import HEADS, LEDGER, Head, parse
from store.line_codec import POLL_DECODER
from store.proof import Proof
from store.publishing import catalogue, evidence, formats, manifest, metadata, tables
from store.publishing.digests import SUMS, digest, is_whole, sums
from store.publishing.manifest import File, Manifest, Redaction
from store.publishing.tables import Line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from store.counting import LineIndex
    from store.publishing.directories import Directory
    from store.publishing.tables import Row, Table
    from store.records import Poll
    from store.snapshot import Snapshot

    Streams = dict[Table, "Columns | None"]


class DatasetError(Exception):
    """The dataset cannot be written; the sentence says why."""


class Source(Struct, frozen=True):
    """What a dataset is made from: a data directory, its snapshot as it is now, where it is served.

    ``service`` is the version of what writes; ``basis`` returns the digest of all that the snapshot
    follows from, empty if nobody knows. What ``read`` raises ends the writing before it begins.
    """

    directory: Path
    read: Callable[[], Snapshot]
    base_url: str | None
    service: str
    basis: Callable[[], str] = str


class Written(Struct, frozen=True):
    """A dataset in place, whether it is new, the newest head if there is one, and its basis."""

    manifest: Manifest
    is_new: bool
    head: Head | None
    basis: str


def write(home: Directory, source: Source) -> Written:
    """Write the dataset, unless the one in place is whole and was made from the same.

    Raises:
        DatasetError: the one in place has Parquet, and this cannot be written here.
        LedgerError: the ledger is damaged.
        OSError: it could not be written.
    """
    found = manifest.read(home.current)
    before = found if isinstance(found, Manifest) else None
    if before and before.has_parquet and not formats.has_parquet():
        raise DatasetError(
            "the dataset has Parquet files, and pyarrow is not installed: pip install '.[data]'"
        )
    basis = source.basis()
    proof = Proof(source.directory)
    with proof.locked(shared=True):  # no day is closed between the two
        files, snapshot = proof.files(), source.read()
    parse(files[LEDGER], files[HEADS])
    heads = [head for head in snapshot.ledger.heads if isinstance(head, Head)]
    head = heads[-1] if heads else None
    basis = basis if basis == source.basis() else ""  # data changed while they were read
    if before and basis and basis == home.basis and is_whole(home.current):
        return Written(before, is_new=False, head=head, basis=basis)
    with home.draft() as folder:
        written = Draft(folder, source, snapshot).fill(files)
        home.publish(basis)
    return Written(written, is_new=True, head=head, basis=basis)


class Columns(Protocol):
    """A table in Parquet on its way to its file; ``rows`` are those written so far."""

    rows: int

    def add(self, rows: Iterable[Row]) -> None:
        """Add rows."""

    def close(self) -> None:
        """Write the end."""


class _Copy:
    """A table in Parquet that cannot be written here, and is taken from elsewhere as it is."""

    def __init__(self, original: Path, path: Path) -> None:
        self.rows = 0
        shutil.copyfile(original, path)

    def add(self, rows: Iterable[Row]) -> None:
        """Count rows."""
        self.rows += len(list(rows))

    def close(self) -> None:
        """Do nothing."""


class Draft:
    """A dataset on its way, in a folder of its own.

    It has Parquet if that can be written here, unless ``like`` says otherwise: the folder of a
    dataset whose Parquet, if it has any, is taken as it is where another pyarrow wrote it.
    """

    def __init__(
        self, folder: Path, source: Source, snapshot: Snapshot, like: Path | None = None
    ) -> None:
        self._folder = folder
        self._source = source
        self._snapshot = snapshot
        self._like = like
        self._tools = formats.tools(parquet=True)
        self._files: dict[str, File] = {}
        if like:
            self._tools = manifest.decode(read_regular(like / manifest.MANIFEST)).tools

    def fill(self, proof: dict[str, bytes]) -> Manifest:
        """Write every file; return what they are."""
        (self._folder / manifest.EVIDENCE).parent.mkdir()
        streams = {table: self._columns(table) for table in (*tables.OF_LINES, tables.BY_DAY)}
        for slug, index in sorted(self._snapshot.line_indexes.items()):
            polls = list(self._fill_category(index, streams))
            if slug in self._snapshot.leaderboards:
                self._add(
                    streams, tables.BY_DAY, tables.rankings_by_day(self._snapshot, slug, polls)
                )
        for table, rows_of in tables.WHOLE.items():
            rows = list(rows_of(self._snapshot))
            self._put(table.csv, formats.csv_of(table, rows), len(rows))
            streams[table] = self._columns(table)
            self._add(streams, table, rows)
        for table, columns in streams.items():
            if columns:
                columns.close()
                self._note(table.parquet, columns.rows)
        self._put(
            catalogue.NAME, catalogue.published(self._snapshot.catalogue, self._source.base_url)
        )
        for name, data in proof.items():
            self._put(name, data, data.count(b"\n"))
        return self._described()

    def _fill_category(self, index: LineIndex, streams: Streams) -> Iterator[tuple[int, Poll]]:
        """Write the lines of a category's files; yield the place and the record of each poll."""
        for number, file in enumerate(index.files):
            lines = self._lines(index, file)
            if not lines:
                continue
            packed = formats.packed(b"\n".join([*lines.values(), b""]))
            self._put(manifest.EVIDENCE.format(file), packed, len(lines))
            starts = zip(index.file, index.start, strict=True)
            places = {start: i for i, (own, start) in enumerate(starts) if own == number}
            day_of = tables.closings(self._snapshot.ledger, file)
            for at, (start, text) in enumerate(lines.items(), start=1):
                if start in places:
                    line = Line(POLL_DECODER.decode(text), file, at, day_of(start))
                    for table, rows_of in tables.OF_LINES.items():
                        self._add(streams, table, rows_of(line))
                    yield places[start], line.poll

    def _lines(self, index: LineIndex, file: str) -> dict[int, bytes]:
        """Return the lines of a history file as they are published, by the bytes before each."""
        entries = (entry.lines for entry in index.open if entry.file == file)
        count = max((self._snapshot.ledger.last(file).lines, *entries))
        if not count:
            return {}
        data = read_regular(self._source.directory / "history" / f"{file}.jsonl")
        lines: dict[int, bytes] = {}
        start, withheld = 0, self._snapshot.catalogue.withheld
        for line in data.split(b"\n", count)[:count]:
            lines[start] = evidence.published(line, withheld)
            start += len(line) + 1
        return lines

    def _columns(self, table: Table) -> Columns | None:
        """Return what writes a table in Parquet, if that is wanted."""
        path = self._folder / table.parquet
        if "pyarrow" not in self._tools:
            return None
        if self._tools == formats.tools(parquet=True):
            return formats.Parquet(table, path)
        assert self._like  # noqa: S101 - only its tools can be other ones
        return _Copy(self._like / table.parquet, path)

    def _add(self, streams: Streams, table: Table, rows: Iterable[Row]) -> None:
        if columns := streams[table]:
            columns.add(rows)

    def _described(self) -> Manifest:
        """Write what describes the other files, the manifest, and the digests of all."""
        described = self._manifest()
        for name, body in metadata.documents(described).items():
            self._put(name, body)
        described = replace(described, files=self._files)
        body = manifest.encode(described)
        (self._folder / manifest.MANIFEST).write_bytes(body)
        digests = {name: file.sha256 for name, file in self._files.items()}
        (self._folder / SUMS).write_bytes(sums({**digests, manifest.MANIFEST: digest(body)}))
        return described

    def _manifest(self) -> Manifest:
        """Return the manifest of what is written so far."""
        site, withheld = self._snapshot.catalogue.site, self._snapshot.catalogue.withheld
        date = (self._snapshot.summary.last_poll or "1970-01-01")[:10]
        day = ".".join(str(int(part)) for part in date.split("-"))
        content = digest(sums({name: file.sha256 for name, file in self._files.items()}))
        redactions = (Redaction(id_, f"{each.date}", each.reason) for id_, each in withheld.items())
        return Manifest(
            version=f"{day}+{content[:8]}",
            date=date,
            title=site.name,
            licence=site.licence,
            sample=site.sample,
            base_url=self._source.base_url,
            service=self._source.service,
            tools=self._tools,
            present=self._snapshot.present,
            files=dict(self._files),
            withheld=tuple(sorted(redactions)),
        )

    def _put(self, name: str, body: bytes, rows: int | None = None) -> None:
        """Write one file."""
        (self._folder / name).write_bytes(body)
        self._files[name] = File(len(body), digest(body), rows)

    def _note(self, name: str, rows: int) -> None:
        """Note a file that was written piece by piece."""
        with (self._folder / name).open("rb") as file:
            body = hashlib.file_digest(file, "sha256")
            self._files[name] = File(file.tell(), body.hexdigest(), rows)
