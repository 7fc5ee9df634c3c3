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

from store.disk import atomic_write
from store.publishing import catalogue, evidence, formats, leaves, manifest, metadata, tables
from store.publishing.leaves import Head, LeafList, ProofError
from store.publishing.manifest import File, Manifest, Redaction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from store.snapshot import Snapshot

MARK = ".written-by-flask-dataset"
"""What marks the directory as the command's own (store.publishing.directories)."""
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


Made = tuple[str, bytes, int | None]
"""A file that was made: its name, its bytes and, of a table, its rows."""


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
    older = manifest.versions(target)
    for path in (target / manifest.VERSIONS).glob("*.json"):
        if f"{manifest.VERSIONS}/{path.name}" not in older:
            raise DatasetError(
                f"{path} is no manifest; put it back from a backup, or remove it, and that "
                "version is gone"
            )
    return _Writer(target, source, older).write(now)


def month_files(
    month: str, leaf_text: bytes, lines: Sequence[bytes], *, parquet: bool
) -> Iterator[Made]:
    """The files of one month."""
    yield manifest.LEAVES.format(month), leaf_text, None
    packed = formats.packed(b"\n".join([*lines, b""]))
    yield manifest.EVIDENCE.format(month), packed, len(lines)
    every = {
        formats.TableFiles(table, parquet=parquet): rows for table, rows in tables.MONTHLY.items()
    }
    for poll in evidence.polls(lines):
        for files, rows in every.items():
            files.add(rows(poll))
    for files in every:
        yield from _made(files, month)


def whole_files(snapshot: Snapshot, *, parquet: bool) -> Iterator[Made]:
    """The files of tables that are over the whole history."""
    for table, rows in tables.WHOLE.items():
        files = formats.TableFiles(table, parquet=parquet)
        files.add(rows(snapshot))
        yield from _made(files)


def _made(files: formats.TableFiles, month: str = "") -> Iterator[Made]:
    slim_name, name = files.table.paths(month)
    slim, body = files.done()
    yield slim_name, formats.packed(slim) if month else slim, files.rows
    if body is not None:
        yield name, body, files.rows


def sums(files: Mapping[str, str]) -> bytes:
    """SHA-256 in hex by path, as ``sha256sum --check`` reads it."""
    return "".join(f"{digest}  {path}\n" for path, digest in sorted(files.items())).encode()


class _Writer:
    """One version on its way; see :func:`write`."""

    _snapshot: Snapshot

    def __init__(self, target: Path, source: Source, older: dict[str, Manifest]) -> None:
        self._target = target
        self._source = source
        self._older = older
        self._before = next(reversed(older.values()), None)
        self._parquet = formats.has_parquet()
        if self._before and self._before.tables(tables.POLLS.name) and not self._parquet:
            raise DatasetError(
                "the dataset has Parquet files, and pyarrow is not installed: pip install '.[data]'"
            )
        self._months: dict[str, str] = {}
        self._new = 0

    def write(self, now: datetime) -> Written:
        """List what history holds, make the files, and put the version in place."""
        leaf_list = LeafList(self._source.directory)
        heads = leaf_list.extend(now, self._published(leaf_list), self._read)
        for folder in (manifest.OBJECTS, manifest.VERSIONS):
            (self._target / folder).mkdir(exist_ok=True)
        files = self._month_files(leaf_list)
        files |= self._placed(whole_files(self._snapshot, parquet=self._parquet))
        said = catalogue.published(self._snapshot.catalogue, self._source.base_url)
        body = b"".join(map(leaves.head_line, heads))
        files |= self._placed([(catalogue.NAME, said, None), (leaves.HEADS, body, len(heads))])
        return Written(self._publish(self._manifest(files)), self._new, tuple(heads))

    def _read(self) -> Mapping[str, int]:
        """Take the snapshot that the version is of; up to where it read each history file."""
        self._snapshot = self._source.read()
        return self._snapshot.ends

    def _published(self, leaf_list: LeafList) -> list[Head]:
        """The heads that the newest version published; its leaf lists must go on in today's."""
        before = self._before
        if before is None:
            return []
        for month in before.months:
            was = before.files[manifest.LEAVES.format(month)]
            if sha256(leaf_list.month(month)[: was.bytes]).hexdigest() != was.sha256:
                raise ProofError(
                    f"{leaves.FOLDER}/{month}{leaves.SUFFIX} does not begin with what version "
                    f"{before.version} published of it; {leaves.RESTORE}"
                )
        body = manifest.kept(self._target, leaves.HEADS, before.files[leaves.HEADS])
        return leaves.parse_heads(body or b"", leaves.HEADS)

    def _month_files(self, leaf_list: LeafList) -> dict[str, File]:
        """The files of every month, taken over where what they are made from is the same."""
        files: dict[str, File] = {}
        withheld = self._snapshot.catalogue.withheld
        hidden = msgspec.json.encode(withheld, order="sorted")
        for month, size in leaf_list.sizes.items():
            text = leaf_list.month(month)[:size]
            key = sha256(b"%b%d" % (FORMAT, self._parquet) + text + hidden).hexdigest()
            self._months[month] = key
            if kept := self._kept_month(month, key):
                files |= kept
                continue
            listed = list(leaves.parse(text, month, manifest.LEAVES.format(month)))
            lines = evidence.lines(listed, self._source.directory / "history", withheld)
            files |= self._placed(month_files(month, text, lines, parquet=self._parquet))
        return files

    def _kept_month(self, month: str, key: str) -> dict[str, File]:
        """A month's files, if they were made from the same and are as they were; else none."""
        if self._before is None or self._before.months.get(month) != key:
            return {}
        files = {n: f for n, f in self._before.files.items() if f"/month={month}/" in n}
        lost = any(manifest.kept(self._target, name, file) is None for name, file in files.items())
        return {} if lost else files

    def _publish(self, made: Manifest) -> Manifest:
        """Put the version in place, and take what is withheld out of those before."""
        versions = self._older
        if self._before and _same(self._before, made):
            made = self._before
        else:
            made = replace(made, version=_next_version(made.date, versions.values()))
            made = self._described(made)
        self._redact(made)
        versions[f"{manifest.VERSIONS}/{made.version}.json"] = made
        digests = {}
        for name, version in {**versions, manifest.MANIFEST: made}.items():
            body = manifest.encode(version)
            _put(self._target / name, body)
            digests[name] = sha256(body).hexdigest()
        paths = manifest.published_paths(versions, made)
        self._clean(paths)
        for name, path in paths.items():
            if digest := manifest.digest_of(path):
                digests[name] = digest
        _put(self._target / manifest.SUMS, sums(digests))
        return made

    def _manifest(self, files: dict[str, File]) -> Manifest:
        snapshot = self._snapshot
        site, withheld = snapshot.catalogue.site, snapshot.catalogue.withheld
        redactions = (Redaction(id_, f"{w.date}", w.reason) for id_, w in withheld.items())
        return Manifest(
            version="",
            date=(snapshot.summary.last_poll or "1970-01-01")[:10],
            title=site.name,
            licence=site.licence,
            sample=site.sample,
            base_url=self._source.base_url,
            files=files,
            months=self._months,
            withheld=tuple(sorted(redactions)),
        )

    def _described(self, made: Manifest) -> Manifest:
        """The same version with the files that describe it."""
        documents = ((name, body, None) for name, body in metadata.documents(made).items())
        return replace(made, files={**made.files, **self._placed(documents)})

    def _placed(self, made: Iterable[Made]) -> dict[str, File]:
        """Put files among the objects, unless they are there."""
        files = {}
        for name, body, rows in made:
            files[name] = file = File(len(body), sha256(body).hexdigest(), rows)
            if manifest.kept(self._target, name, file) is None:
                self._new += 1
                atomic_write(self._target / file.object(name), body)
        return files

    def _redact(self, made: Manifest) -> None:
        """Take the texts of what is newly withheld out of every version before."""
        known = {each.id for each in self._before.withheld} if self._before else set[str]()
        fresh = [each for each in made.withheld if each.id not in known]
        for name, version in list(self._older.items()) if fresh else ():
            files = dict(version.files)
            for month in version.months:
                files.update(self._redacted_month(month, version))
            if files != version.files:
                files = {n: f for n, f in files.items() if "/" in n or n in _KEPT}
                gone = sorted({*version.files} - {*files} - {*metadata.NAMES})
                withheld = tuple(sorted({*version.withheld, *fresh}))
                without = tuple(sorted({*version.without, *gone}))
                bare = replace(version, files=files, withheld=withheld, without=without)
                self._older[name] = self._described(bare)

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
        return self._placed(month_files(month, text, hidden, parquet=had))

    def _clean(self, paths: Mapping[str, str]) -> None:
        """Take away what no version names, and show the newest files under their names."""
        for path in [path for path in self._target.rglob("*") if path.is_file()]:
            name = path.relative_to(self._target).as_posix()
            if name not in paths and name != MARK:
                path.unlink()
        for name, kept in paths.items():
            if name != kept:
                _link(self._target / kept, self._target / name)


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
