"""Writing the dataset: the whole of it, anew, into a folder that takes the old one's place.

A poll that is withheld is in no part of the next one, and nothing older is kept.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from store.publishing import catalogue, evidence, formats, leaves, manifest, metadata, tables
from store.publishing.digests import SUMS, digest, is_whole, sums
from store.publishing.leaves import Head, LeafList, ProofError
from store.publishing.manifest import File, Manifest, Redaction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from store.publishing.directories import Directory
    from store.publishing.tables import Row, Table
    from store.snapshot import Snapshot


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
    """A dataset in place, whether it is new, the heads of all closed days, and its basis."""

    manifest: Manifest
    is_new: bool
    heads: tuple[Head, ...]
    basis: str


def write(home: Directory, source: Source, now: datetime) -> Written:
    """Write the dataset, unless the one in place is whole and was made from the same.

    Raises:
        DatasetError: the one in place has Parquet, and this cannot be written here.
        ProofError: the proof is not what was written before.
        OSError: it could not be written.
    """
    found = manifest.read(home.current)
    before = found if isinstance(found, Manifest) else None
    if before and before.tables(tables.POLLS.name) and not formats.has_parquet():
        raise DatasetError(
            "the dataset has Parquet files, and pyarrow is not installed: pip install '.[data]'"
        )
    leaf_list = LeafList(source.directory)
    snapshots: list[Snapshot] = []

    def read() -> Mapping[str, int]:
        snapshots.append(source.read())
        return snapshots[0].ends

    basis = source.basis()
    heads = tuple(leaf_list.extend(now, _published(home.current, before, leaf_list), read))
    basis = basis if basis == source.basis() else ""  # data changed while they were read
    if before and basis and basis == home.basis and is_whole(home.current):
        return Written(before, is_new=False, heads=heads, basis=basis)
    with home.draft() as folder:
        made = _Draft(folder, source, snapshots[0]).fill(leaf_list, heads)
        home.publish(basis)
    return Written(made, is_new=True, heads=heads, basis=basis)


def _published(folder: Path, before: Manifest | None, leaf_list: LeafList) -> list[Head]:
    """Return the heads of the dataset in place; its leaf lists must go on in today's."""
    if before is None:
        return []
    for month in before.months:
        was = before.files[manifest.LEAVES.format(month)]
        if digest(leaf_list.month(month)[: was.bytes]) != was.sha256:
            raise ProofError(
                f"{leaves.FOLDER}/{month}{leaves.SUFFIX} does not begin with what version "
                f"{before.version} published of it; {leaves.RESTORE}"
            )
    with suppress(FileNotFoundError):
        body = (folder / leaves.HEADS).read_bytes()
        if digest(body) == before.files[leaves.HEADS].sha256:
            return leaves.parse_heads(body, leaves.HEADS)
    return []


class _Draft:
    """A dataset on its way, in a folder of its own."""

    def __init__(self, folder: Path, source: Source, snapshot: Snapshot) -> None:
        self._folder = folder
        self._source = source
        self._snapshot = snapshot
        self._files: dict[str, File] = {}

    def fill(self, leaf_list: LeafList, heads: Sequence[Head]) -> Manifest:
        """Write every file; return what they are."""
        withheld = self._snapshot.catalogue.withheld
        for month, size in leaf_list.sizes.items():
            text = leaf_list.month(month)[:size]
            listed = list(leaves.parse(text, month, manifest.LEAVES.format(month)))
            lines = evidence.lines(listed, self._source.directory / "history", withheld)
            self._put(manifest.LEAVES.format(month), text)
            packed = formats.packed(b"\n".join([*lines, b""]))
            self._put(manifest.EVIDENCE.format(month), packed, len(lines))
            self._put_parquet(tables.MONTHLY, evidence.polls(lines), month)
        for table, rows_of in tables.WHOLE.items():
            rows = list(rows_of(self._snapshot))
            self._put(table.csv, formats.csv_of(table, rows), len(rows))
        self._put_parquet(tables.WHOLE, [self._snapshot])
        published = catalogue.published(self._snapshot.catalogue, self._source.base_url)
        self._put(catalogue.NAME, published)
        self._put(leaves.HEADS, b"".join(map(leaves.head_line, heads)), len(heads))
        return self._described()

    def _described(self) -> Manifest:
        """Write what describes the other files, the manifest, and the digests of all."""
        made = self._manifest()
        for name, body in metadata.documents(made).items():
            self._put(name, body)
        made = replace(made, files=self._files)
        body = manifest.encode(made)
        (self._folder / manifest.MANIFEST).write_bytes(body)
        digests = {name: file.sha256 for name, file in self._files.items()}
        (self._folder / SUMS).write_bytes(sums({**digests, manifest.MANIFEST: digest(body)}))
        return made

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
            files=dict(self._files),
            withheld=tuple(sorted(redactions)),
        )

    def _put_parquet(
        self,
        rows_of: Mapping[Table, Callable[[Any], Iterable[Row]]],
        items: Iterable[Any],
        month: str = "",
    ) -> None:
        """Write tables in Parquet, if it is installed, from the rows of each item."""
        if not formats.has_parquet():
            return
        files = {formats.Parquet(table): rows for table, rows in rows_of.items()}
        for item in items:
            for file, rows in files.items():
                file.add(rows(item))
        for file in files:
            self._put(file.table.parquet(month), file.done(), file.rows)

    def _put(self, name: str, body: bytes, rows: int | None = None) -> None:
        """Write one file."""
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
        self._files[name] = File(len(body), digest(body), rows)
