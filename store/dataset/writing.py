"""Writing the dataset: what changed since the last version, and nothing else.

A month is made again when its leaf list or what is withheld changed. Objects are put in place
before the manifest that names them; the newest manifest comes last. When a poll is withheld, the
versions before lose its texts too, and say so.
"""

from __future__ import annotations

import gzip
import os
from hashlib import sha256
from itertools import count
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from store.dataset import catalogue, evidence, formats, leaves, manifest, metadata, tables
from store.dataset.leaves import LeafList, ProofError
from store.dataset.manifest import File, Manifest, Redaction
from store.disk import atomic_write, locked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from store.dataset.leaves import Head
    from store.records import Withholding
    from store.snapshot import Snapshot

FORMAT = b"1"
"""Raised when the files of a month would be others from the same lines."""


class DatasetError(Exception):
    """The dataset cannot be written; the sentence says why."""


class Source(Struct, frozen=True):
    """What a dataset is made from: a data directory, its snapshot as it is now, where it is served.

    What ``read`` raises ends the writing before anything is written.
    """

    directory: Path
    read: Callable[[], Snapshot]
    base_url: str | None


class Written(Struct, frozen=True):
    """A version that was written, how many files are new, and the heads of all closed days."""

    manifest: Manifest
    new: int
    heads: tuple[Head, ...]


def write(target: Path, source: Source, now: datetime) -> Written:
    """Bring the dataset in ``target`` up to date; the same data writes no new version.

    Raises:
        DatasetError: an earlier version there cannot be read, or had Parquet.
        ProofError: the proof is not what was written before.
        OSError: it could not be written.
    """
    target.mkdir(parents=True, exist_ok=True)
    leaf_list = LeafList(source.directory)
    with locked(target.resolve()):
        older = read(target)
        before = next(reversed(older.values()), None)
        published = _published(target, before, leaf_list) if before else ()
        taken: list[Snapshot] = []

        def read_history() -> dict[str, int]:
            taken.append(source.read())
            return taken[-1].ends

        heads = leaf_list.extend(now, published, read_history)
        writer = _Writer(target, source, taken[-1], older)
        writer.months(leaf_list)
        writer.rest(heads)
        written = writer.publish()
    return Written(written, writer.new, tuple(heads))


def read(target: Path) -> dict[str, Manifest]:
    """Every version in a dataset's directory by the name of its manifest, the newest last.

    Raises:
        DatasetError: a manifest cannot be read, and is not that of the newest version.
    """
    found = manifest.versions(target)
    for path in (target / manifest.VERSIONS).glob("*.json"):
        if f"{manifest.VERSIONS}/{path.name}" not in found:
            raise DatasetError(
                f"{path} is no manifest; put it back from a backup, or remove it, and that version "
                "is gone"
            )
    return found


def _published(target: Path, before: Manifest, leaf_list: LeafList) -> list[Head]:
    """The heads that the newest version published, once leaf lists are seen to go on from its own.

    Raises:
        ProofError: one does not.
    """
    for month in before.months:
        was = before.files[manifest.LEAVES.format(month)]
        if sha256(leaf_list.month(month)[: was.bytes]).hexdigest() != was.sha256:
            raise ProofError(
                f"{leaves.FOLDER}/{month}{leaves.SUFFIX} does not begin with what version "
                f"{before.version} published of it; {leaves.RESTORE}"
            )
    body = manifest.kept(target, leaves.HEADS, before.files[leaves.HEADS])
    return leaves.parse_heads(body or b"", leaves.HEADS)


def month_files(
    leaf_text: bytes, lines: Sequence[bytes], *, parquet: bool
) -> Iterator[tuple[str, bytes, int | None]]:
    """The files of one month: name, in which ``{}`` stands for the month, bytes and rows."""
    yield manifest.LEAVES, leaf_text, None
    yield manifest.EVIDENCE, formats.packed(b"\n".join([*lines, b""])), len(lines)
    every = [formats.Files(table, parquet=parquet) for table in tables.MONTHLY]
    for poll in evidence.polls(lines):
        for files in every:
            files.add(tables.monthly_rows(files.table, [poll]))
    for files in every:
        name, (slim, body) = files.table.name, files.done()
        yield f"csv/{name}/month={{}}/{name}.csv.gz", formats.packed(slim), files.rows
        if body is not None:
            yield f"{name}/month={{}}/{name}.parquet", body, files.rows


def whole_files(snapshot: Snapshot, *, parquet: bool) -> Iterator[tuple[str, bytes, int]]:
    """The files of tables that are over the whole history: name, bytes and rows."""
    found = tables.whole_rows(snapshot)
    for table in tables.WHOLE:
        rows = found[table.name]
        slim, body = formats.files_of(table, rows, parquet=parquet)
        yield f"{table.name}.csv", slim, len(rows)
        if body is not None:
            yield f"{table.name}.parquet", body, len(rows)


def sums(files: Mapping[str, str]) -> bytes:
    """SHA-256 in hex by path, as ``sha256sum --check`` reads it."""
    return "".join(f"{digest}  {path}\n" for path, digest in sorted(files.items())).encode()


def _with_parquet(before: Manifest | None) -> bool:
    if formats.has_parquet():
        return True
    if before and before.tables(tables.POLLS.name):
        raise DatasetError(
            "the dataset has Parquet files, and pyarrow is not installed: pip install '.[data]'"
        )
    return False


class _Writer:
    """One version on its way; see :func:`write`."""

    def __init__(
        self, target: Path, source: Source, snapshot: Snapshot, older: dict[str, Manifest]
    ) -> None:
        self.new = 0
        self._target = target
        self._source = source
        self._snapshot = snapshot
        self._older = older
        self._before = next(reversed(older.values()), None)
        self._parquet = _with_parquet(self._before)
        self._files: dict[str, File] = {}
        self._months: dict[str, str] = {}
        (target / manifest.OBJECTS).mkdir(exist_ok=True)
        (target / manifest.VERSIONS).mkdir(exist_ok=True)

    def months(self, leaf_list: LeafList) -> None:
        """The files of every month, taken over where what they are made from is the same."""
        withheld = self._snapshot.catalogue.withheld
        for month in leaf_list.sizes:
            text = leaf_list.month(month)[: leaf_list.sizes[month]]
            key = sha256(b"%b%d" % (FORMAT, self._parquet) + text + _encoded(withheld)).hexdigest()
            self._months[month] = key
            if found := self._kept_month(month, key):
                self._files.update(found)
                continue
            listed = list(leaves.parse(text, month, manifest.LEAVES.format(month)))
            lines = evidence.lines(listed, self._source.directory / "history", withheld)
            for name, body, rows in month_files(text, lines, parquet=self._parquet):
                self._place(name.format(month), body, rows)

    def _kept_month(self, month: str, key: str) -> dict[str, File]:
        """A month's files, if they were made from the same and are as they were; else none."""
        if self._before is None or self._before.months.get(month) != key:
            return {}
        files = {n: f for n, f in self._before.files.items() if f"/month={month}/" in n}
        lost = any(manifest.kept(self._target, name, file) is None for name, file in files.items())
        return {} if lost else files

    def rest(self, heads: Sequence[Head]) -> None:
        """What is over everything."""
        for name, body, rows in whole_files(self._snapshot, parquet=self._parquet):
            self._place(name, body, rows)
        snapshot = self._snapshot
        said = catalogue.published(snapshot.catalogue, self._source.base_url)
        self._place(catalogue.NAME, said)
        self._place(leaves.HEADS, b"".join(map(leaves.head_line, heads)), len(heads))

    def publish(self) -> Manifest:
        """Put the version in place, and take what is withheld out of those before."""
        made, older = self._manifest(), self._older
        if self._before and _same(self._before, made):
            made = self._before
        else:
            made = replace(made, version=_next_version(made.date, older.values()))
            made = self._described(made)
        self._redact(older, made)
        older[f"{manifest.VERSIONS}/{made.version}.json"] = made
        for name, version in older.items():
            if manifest.read(self._target / name) != version:
                atomic_write(self._target / name, manifest.encode(version))
        _put(self._target / manifest.MANIFEST, manifest.encode(made))
        self._clean(older, made)
        return made

    def _manifest(self) -> Manifest:
        snapshot = self._snapshot
        site, withheld = snapshot.catalogue.site, snapshot.catalogue.withheld
        return Manifest(
            version="",
            date=(snapshot.summary.last_poll or "1970-01-01")[:10],
            title=site.name,
            licence=site.licence,
            sample=site.sample,
            base_url=self._source.base_url,
            files=self._files,
            months=self._months,
            withheld=tuple(
                sorted(Redaction(id_, f"{w.date}", w.reason) for id_, w in withheld.items())
            ),
        )

    def _described(self, made: Manifest) -> Manifest:
        """The same version with the files that describe it."""
        described = {
            name: self._stored(name, body) for name, body in metadata.documents(made).items()
        }
        return replace(made, files={**made.files, **described})

    def _place(self, name: str, body: bytes, rows: int | None = None) -> None:
        self._files[name] = self._stored(name, body, rows)

    def _stored(self, name: str, body: bytes, rows: int | None = None) -> File:
        file = File(len(body), sha256(body).hexdigest(), rows)
        if manifest.kept(self._target, name, file) is None:
            self.new += 1
            atomic_write(self._target / file.object(name), body)
        return file

    def _redact(self, older: dict[str, Manifest], made: Manifest) -> None:
        """Take the texts of what is newly withheld out of every version before."""
        known = {each.id for each in self._before.withheld} if self._before else set[str]()
        fresh = [each for each in made.withheld if each.id not in known]
        for name, version in list(older.items()) if fresh else ():
            files = dict(version.files)
            for month in version.months:
                files.update(self._redacted_month(month, version))
            if files != version.files:
                files = {n: f for n, f in files.items() if "/" in n or n in _KEPT}
                gone = sorted({*version.files} - {*files} - {*metadata.NAMES})
                withheld = tuple(sorted({*version.withheld, *fresh}))
                without = tuple(sorted({*version.without, *gone}))
                bare = replace(version, files=files, withheld=withheld, without=without)
                older[name] = self._described(bare)

    def _redacted_month(self, month: str, version: Manifest) -> dict[str, File]:
        """The files of an older version's month that hold what is withheld now, without it."""
        withheld = self._snapshot.catalogue.withheld
        name, list_name = manifest.EVIDENCE.format(month), manifest.LEAVES.format(month)
        packed = (self._target / version.files[name].object(name)).read_bytes()
        lines = evidence.lines_of(gzip.decompress(packed))
        hidden = [evidence.hide(line, withheld) for line in lines]
        if hidden == lines:
            return {}
        text = (self._target / version.files[list_name].object(list_name)).read_bytes()
        had = bool(version.tables(tables.POLLS.name))
        made = month_files(text, hidden, parquet=had)
        return {
            n.format(month): self._stored(n.format(month), body, rows) for n, body, rows in made
        }

    def _clean(self, versions: Mapping[str, Manifest], latest: Manifest) -> None:
        """Show the newest files under their names, take away what no version names, sum up."""
        paths = manifest.published_paths(versions, latest)
        objects = {path for path in paths.values() if path.startswith(manifest.OBJECTS)}
        for path in (self._target / manifest.OBJECTS).iterdir():
            if f"{manifest.OBJECTS}/{path.name}" not in objects:
                path.unlink()
        stay = {name: latest.files[name].object(name) for name in latest.files}
        for path in list(_files_in(self._target)):
            name = path.relative_to(self._target).as_posix()
            if name not in stay and name not in paths:
                path.unlink()
        for name, kept in stay.items():
            _link(self._target / kept, self._target / name)
        digests = {name: file.sha256 for name, file in latest.files.items()}
        digests |= {path: path[len(manifest.OBJECTS) + 1 :][:64] for path in objects}
        digests |= {
            name: sha256(manifest.encode(version)).hexdigest() for name, version in versions.items()
        }
        digests[manifest.MANIFEST] = sha256(manifest.encode(latest)).hexdigest()
        _put(self._target / manifest.SUMS, sums(digests))


_KEPT = (catalogue.NAME, leaves.HEADS)
"""What is over everything and stays in an older version when a poll is withheld: no answer's text
stands in it, while tables over all polls may hold one and cannot be made again."""


def _same(before: Manifest, made: Manifest) -> bool:
    """Whether two versions say the same, but for their number and what describes them."""
    files = {name: file for name, file in before.files.items() if name not in metadata.NAMES}
    return replace(before, version="", files=files) == made


def _next_version(date: str, older: Iterable[Manifest]) -> str:
    """``YYYY.M.D`` of the newest poll; a further version of one day has ``+2``, ``+3``, …."""
    day = ".".join(str(int(part)) for part in date.split("-"))
    taken = {version.version for version in older}
    numbers = (day if i == 1 else f"{day}+{i}" for i in count(1))
    return next(number for number in numbers if number not in taken)


def _encoded(withheld: Mapping[str, Withholding]) -> bytes:
    return msgspec.json.encode(withheld, order="sorted")


def _files_in(target: Path) -> Iterator[Path]:
    return (path for path in target.rglob("*") if path.is_file())


def _put(path: Path, body: bytes) -> None:
    """Put a file in place unless it is there, so that its time stays."""
    if not (path.is_file() and path.read_bytes() == body):
        atomic_write(path, body)


def _link(source: Path, name: Path) -> None:
    """Let a file also bear a name; where there are no hard links, as a copy."""
    if name.exists() and name.samefile(source):
        return
    name.parent.mkdir(parents=True, exist_ok=True)
    draft = name.with_name(f".{name.name}.draft")
    draft.unlink(missing_ok=True)
    try:
        os.link(source, draft)
    except OSError:
        draft.write_bytes(source.read_bytes())
    draft.replace(name)
