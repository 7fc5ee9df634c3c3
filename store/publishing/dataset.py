"""Dataset: the whole of it, written anew into a folder that takes the old one's place.

A poll that is withheld is in no part of the next one, and nothing older is kept. With the evidence
and the catalogue anyone can make the data directory again from which every answer follows. What is
an operator's own is not published: keys' names, providers' addresses, prices, caps, hosts.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from store.category_history import PollIndex
from store.disk import read_regular
from store.files import Catalogue
from store.ledger import HEADS, LEDGER, Proof, parse
from store.line_codec import POLL_DECODER, publish
from store.publishing import formats, manifest, tables
from store.publishing.directories import SUMS, Directory, DirectoryError, digest, is_whole, sums
from store.publishing.manifest import File, Manifest
from store.publishing.tables import Line, Row
from store.records import FOLDERS, SINGLE, Assistant, DataFile, Models, Poll, Site, Words
from store.snapshot import Snapshot

CATALOGUE = "catalogue.jsonl"
"""The file with what the data files say, one JSON line for each."""
_FILE = re.compile(r"({})/([a-z0-9-]{{1,100}})\.json".format("|".join(FOLDERS)))

PUBLISHED_OF_ASSISTANT = ("name", "former_names", "maker", "api", "web_search")
"""Members that are published of an assistant."""
PUBLISHED_OF_SITE = (
    "name", "licence", "sample", "poll_every_days", "samples_per_round", "samples_at_first",
    "stale_after_days", "drop_after_days",
)  # fmt: skip
"""Members that are published of site.json, beside the address."""


class CatalogueEntry(Struct, frozen=True, forbid_unknown_fields=True):
    """One data file and what it says; ``file`` is its name relative to the data directory."""

    file: str
    says: dict[str, Any]


_ENTRY = msgspec.json.Decoder(CatalogueEntry)


class Source(Struct, frozen=True):
    """The source of a dataset: a data directory, its snapshot as it is now, where it is served.

    ``service`` is the version of what writes; ``basis`` returns the digest of all that the snapshot
    follows from, empty if nobody knows. What ``read`` raises ends the writing before it begins.
    """

    directory: Path
    read: Callable[[], Snapshot]
    base_url: str | None
    service: str
    basis: Callable[[], str] = str  # str() is empty: unknown


class Written(Struct, frozen=True):
    """A dataset in place, whether it is new, and its basis."""

    manifest: Manifest
    is_new: bool
    basis: str


def write(home: Directory, source: Source) -> Written:
    """Write the dataset, unless the one in place is whole and was made from the same.

    Raises:
        DirectoryError: the one in place has Parquet, and this cannot be written here.
        LedgerError: the ledger is damaged.
        OSError: it could not be written.
    """
    last = manifest.read(home.current)
    before = last if isinstance(last, Manifest) else None
    if before and before.has_parquet and not formats.has_parquet():
        raise DirectoryError(
            "the dataset has Parquet files, and pyarrow is not installed: pip install '.[data]'"
        )
    basis = source.basis()
    proof = Proof(source.directory)
    with proof.locked(shared=True):  # no day is closed between the two
        files, snapshot = proof.read(), source.read()
    parse(files[LEDGER], files[HEADS])
    basis = basis if basis == source.basis() else ""  # data changed while they were read
    if before and basis and basis == home.basis and is_whole(home.current):
        return Written(before, is_new=False, basis=basis)
    with home.draft() as folder:
        written = Draft(folder, source, snapshot, formats.tools()).fill(files)
        home.publish(basis)
    return Written(written, is_new=True, basis=basis)


# `flask verify` makes a dataset again with this, and knows of it only what its manifest says:
# whatever decides which files there are must be in the manifest, and in the `basis` of `write`.
class Draft:
    """A dataset that is being written in a folder of its own.

    ``tools`` are the versions to write it with. ``unwritable`` are the Parquet files that take
    another pyarrow than the one here.
    """

    def __init__(
        self, folder: Path, source: Source, snapshot: Snapshot, tools: dict[str, str]
    ) -> None:
        self._folder = folder
        self._source = source
        self._snapshot = snapshot
        self._tools = tools
        has_tools = tools.items() <= formats.tools().items()
        self.unwritable = [] if has_tools else [f"{name}.parquet" for name in tables.ALL]
        self._files: dict[str, File] = {}
        self._rows: Counter[str] = Counter()
        self._writers: dict[str, formats.Parquet] = {}

    def fill(self, proof: Mapping[str, bytes]) -> Manifest:
        """Write and describe all files; the ``unwritable`` ones must have been put there before."""
        (self._folder / manifest.EVIDENCE).parent.mkdir()
        if "pyarrow" in self._tools and not self.unwritable:
            for name, table in tables.ALL.items():
                path = self._folder / f"{name}.parquet"
                self._writers[name] = formats.Parquet(table, path)
        for slug, index in sorted(self._snapshot.poll_indexes.items()):
            polls = list(self._fill_category(index))
            if slug in self._snapshot.leaderboards:
                self._add(tables.BY_DAY, tables.rankings_by_day(self._snapshot, slug, polls))
        for name, rows_of in tables.SNAPSHOT_TABLES.items():
            rows = list(rows_of(self._snapshot))
            self._add(name, rows)
            formats.write_csv(tables.ALL[name], self._folder / f"{name}.csv", rows)
            self._put(f"{name}.csv", None, len(rows))
        for writer in self._writers.values():
            writer.close()
        for name in tables.ALL if "pyarrow" in self._tools else ():
            self._put(f"{name}.parquet", None, self._rows[name])
        lines = catalogue_lines(self._snapshot.catalogue, self._source.base_url)
        self._put(CATALOGUE, lines)
        for name, data in proof.items():
            self._put(name, data, data.count(b"\n"))
        return self._write_description()

    def _fill_category(self, index: PollIndex) -> Iterator[tuple[int, Poll]]:
        """Write the lines of a category's files; yield each poll with its position."""
        for number, file in enumerate(index.files):
            lines = self._lines(index, file)
            if not lines:
                continue
            packed = formats.packed(b"\n".join([*lines, b""]))
            self._put(manifest.EVIDENCE.format(file), packed, len(lines))
            pairs = zip(index.file, index.line, strict=True)
            positions = {line: i for i, (own, line) in enumerate(pairs) if own == number}
            days = self._snapshot.ledger.days_closed(file)
            for line_number, text in enumerate(lines, start=1):
                if line_number in positions:
                    day = days[line_number - 1] if line_number <= len(days) else None
                    line = Line(POLL_DECODER.decode(text), file, line_number, day)
                    for name, rows_of in tables.LINE_TABLES.items():
                        self._add(name, rows_of(line))
                    yield positions[line_number], line.poll

    def _lines(self, index: PollIndex, file: str) -> list[bytes]:
        """Return the lines of a history file as they are published."""
        entries = (entry.lines for entry in index.open_entries if entry.file == file)
        count = max((self._snapshot.ledger.last(file).lines, *entries))
        if not count:
            return []
        data = read_regular(self._source.directory / "history" / f"{file}.jsonl")
        withheld = self._snapshot.catalogue.withheld
        return [publish(line, withheld) for line in data.split(b"\n", count)[:count]]

    def _add(self, table: str, rows: Iterable[Row]) -> None:
        writer = self._writers.get(table)
        for row in rows:
            self._rows[table] += 1
            if writer:
                writer.add(row)

    def _write_description(self) -> Manifest:
        """Write what describes the other files, the manifest, and the digests of all."""
        described = self._manifest()
        for name, body in manifest.documents(described).items():
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
        # Neither manifest nor card: they bear the version.
        content = digest(sums({name: file.sha256 for name, file in self._files.items()}))
        return Manifest(
            version=f"{day}+{content[:8]}",
            date=date,
            title=site.name,
            licence=site.licence,
            sample=site.sample,
            base_url=self._source.base_url,
            service=self._source.service,
            tools=self._tools,
            present=self._snapshot.provisional_head,
            files=dict(self._files),
            withheld=dict(withheld),
        )

    def _put(self, name: str, body: bytes | None, rows: int | None = None) -> None:
        """Write one file, or, without a ``body``, note one that is there."""
        if body is not None:
            (self._folder / name).write_bytes(body)
        with (self._folder / name).open("rb") as file:
            digest_ = hashlib.file_digest(file, "sha256")
            self._files[name] = File(file.tell(), digest_.hexdigest(), rows)


def catalogue_lines(catalogue: Catalogue, base_url: str | None) -> bytes:
    """Return the catalogue in JSON Lines, sorted by file."""
    files = sorted(_files(catalogue, base_url))
    entries = [{"file": name, "says": says} for name, says in files]
    return msgspec.json.Encoder().encode_lines(entries)


def restore_catalogue(data: bytes, directory: Path) -> None:
    """Write the data files that a published catalogue tells of.

    Raises:
        ValueError: a line of it is not a data file; the sentence names it.
    """
    for number, line in enumerate(data.splitlines(), start=1):
        try:
            entry = _ENTRY.decode(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"line {number}: {error}") from None
        if entry.file not in SINGLE and not _FILE.fullmatch(entry.file):
            raise ValueError(f'line {number}: "{entry.file[:100]}" is not a data file')
        path = directory / entry.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(msgspec.json.encode(entry.says, order="sorted"))


def _files(catalogue: Catalogue, base_url: str | None) -> Iterator[tuple[str, DataFile]]:
    # What is an operator's own is not named, so that it is in no published byte.
    shown = {name: getattr(catalogue.site, name) for name in PUBLISHED_OF_SITE}
    yield "site.json", Site(version=1, base_url=base_url, **shown)
    models = tuple(
        Assistant(**{name: getattr(assistant, name) for name in PUBLISHED_OF_ASSISTANT})
        for assistant in catalogue.assistants
    )
    yield "models.json", Models(version=1, models=models)
    source = catalogue.words_from or "none given"
    yield "words.json", Words(version=1, source=source, words=catalogue.words)
    for name in SINGLE.keys() - {"site.json", "models.json", "words.json"}:
        fields = set(SINGLE[name].__struct_fields__).difference(DataFile.__struct_fields__)
        says = {field: getattr(catalogue, field) for field in fields}
        yield name, SINGLE[name](version=1, **says)
    for folder in FOLDERS:
        for slug, record in getattr(catalogue, folder).items():
            yield f"{folder}/{slug}.json", record
