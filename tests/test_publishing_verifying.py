"""Whatever is changed in a dataset is found and named, even by whoever mends all checksums."""

from __future__ import annotations

import gzip
import hashlib
import json
import random
import shutil
import zlib
from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec
import pytest
from builders import answered, append, write_json
from datasets import NOW, SLUGS, copied, small_data, written, written_from

from store.line_codec import encode_line
from store.memory import Store
from store.publishing import formats, manifest, metadata, verifying
from store.publishing.dataset import Source
from store.publishing.digests import sums
from store.publishing.leaves import Head, LeafList
from store.publishing.verifying import Difference
from store.records import Poll

if TYPE_CHECKING:
    from pathlib import Path

    from store.snapshot import Snapshot

needs_parquet = pytest.mark.skipif(not formats.has_parquet(), reason="needs the extra `data`")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset with a poll withheld, as a stranger downloads it."""
    data = small_data(tmp_path_factory.mktemp("made") / "data")
    secret = answered("A", ["Planted"], "2026-11-10T06:00:00Z")
    append(data, [secret])
    written(data)
    entry = {secret.id: {"reason": "Insults a person", "date": "2026-11-15"}}
    write_json(data / "withheld.json", {"version": 1, "withheld": entry})
    append(data, [answered("A", ["Product E"], "2026-11-16T06:00:00Z")])
    written(data)
    return copied(data, data.with_name("copy"))


@pytest.fixture
def dataset(made: Path, tmp_path: Path) -> Path:
    return shutil.copytree(made, tmp_path / "dataset")


def check(dataset: Path, kept: tuple[Head, ...] = ()) -> verifying.Proved:
    """All that ``flask verify`` checks of a dataset."""
    rebuilt = dataset.with_name("rebuilt")
    verifying.check_sums(dataset, lambda _: None)
    found = verifying.check_manifest(dataset)
    proved = verifying.prove(dataset, found, rebuilt)
    verifying.check_against(kept, proved.hashes)
    verifying.rebuild(dataset, found, proved, rebuilt)
    shutil.rmtree(rebuilt)
    return proved


def mend(dataset: Path) -> None:
    """Let manifest and checksums say what is there, as a forger would."""
    path = dataset / "dataset.json"
    said = json.loads(path.read_bytes())
    for name, file in said["files"].items():
        body = (dataset / name).read_bytes()
        file["bytes"], file["sha256"] = len(body), hashlib.sha256(body).hexdigest()
    path.write_bytes(json.dumps(said, indent=2, sort_keys=True).encode() + b"\n")
    found = manifest.decode(path.read_bytes())
    for name, body in metadata.documents(found).items():
        (dataset / name).write_bytes(body)
        said["files"][name] |= {"bytes": len(body), "sha256": hashlib.sha256(body).hexdigest()}
    found = manifest.decode(json.dumps(said).encode())
    path.write_bytes(manifest.encode(found))
    files = [f for f in dataset.rglob("*") if f.is_file() and f.name != "SHA256SUMS"]
    digests = {
        f.relative_to(dataset).as_posix(): hashlib.sha256(f.read_bytes()).hexdigest() for f in files
    }
    (dataset / "SHA256SUMS").write_bytes(sums(digests))


def edit(dataset: Path, name: str, old: bytes, new: bytes) -> None:
    """Change a file, packed or not, and mend every checksum."""
    path = dataset / name
    body = path.read_bytes()
    plain = gzip.decompress(body) if name.endswith(".gz") else body
    assert old in plain
    changed = plain.replace(old, new, 1)
    path.write_bytes(gzip.compress(changed, mtime=0) if name.endswith(".gz") else changed)
    mend(dataset)


def test_a_dataset_as_it_was_written_is_verified(dataset: Path) -> None:
    """With a poll withheld: its leaf is counted, its text is not needed."""
    proved = check(dataset)
    assert (len(proved.hashes), len(proved.withheld), proved.damaged, proved.gone) == (21, 1, 0, 0)


def test_a_dataset_is_of_one_moment(tmp_path: Path) -> None:
    """Polls that come while it is written are in no part of it, and in the next one."""
    data = small_data(tmp_path / "data")
    store, hours = Store(data), iter(range(6, 24))

    def read() -> Snapshot:
        store.reload()
        read_before = store.snapshot
        for slug in SLUGS:
            at = f"2026-11-16T{next(hours):02}:00:00Z"
            append(data, [answered("A", ["Late"], at, slug=slug)])
        return read_before

    for size in (19, 21, 23):
        written_from(Source(data, read, None, "1.0"), NOW + timedelta(days=20))
        assert len(check(copied(data, tmp_path / str(size))).hashes) == size
    LeafList(data).extend(NOW + timedelta(days=20))  # as a server does
    written(data, now=NOW + timedelta(days=20))
    assert len(check(copied(data, tmp_path / "last")).hashes) == 25


def test_a_line_may_hold_a_carriage_return(tmp_path: Path) -> None:
    """Whoever edits by hand may leave one between two values, and seal it; it is still one line."""
    data = small_data(tmp_path / "data")
    path = data / "history/crm-software.jsonl"
    record = b',"slug":\r"crm-software"}'
    identity = hashlib.sha256(b'{"v":1' + record).hexdigest()[:16].encode()
    told = b'{"v":1,"id":"%b"%b' % (identity, record)
    with path.open("ab") as file:
        file.write(b'%b,"crc":"%08x"}\n' % (told[:-1], zlib.crc32(told)))
    append(data, [answered("A", ["Product E"], "2026-11-16T06:00:00Z")])
    written(data)
    assert check(copied(data, tmp_path / "copy")).damaged == 1


def test_the_history_is_written_again_as_it_was(tmp_path: Path) -> None:
    """Also a line that was repaired, and so is in the evidence after those that follow it."""
    data, rebuilt = small_data(tmp_path / "data"), tmp_path / "rebuilt"
    path = data / "history/crm-software.jsonl"
    was = path.read_bytes()
    path.write_bytes(was.replace(b'"polledAt"', b'"polledat"', 1))
    written(data)
    path.write_bytes(was)
    append(data, [answered("A", ["Product E"], "2026-12-01T06:00:00Z")])
    written(data, now=NOW + timedelta(days=20))
    for _ in range(2):
        home = data / "dataset/current"
        verifying.prove(home, verifying.check_manifest(home), rebuilt)
        for file in (data / "history").iterdir():
            assert (rebuilt / "history" / file.name).read_bytes() == file.read_bytes()


def test_each_of_200_random_bytes_is_missed_when_it_changes(dataset: Path) -> None:
    """Anywhere: the file is named."""
    chance = random.Random(20)
    files = sorted(path for path in dataset.rglob("*") if path.is_file())
    sizes = [path.stat().st_size for path in files]
    for _ in range(200):
        path = chance.choices(files, sizes)[0]
        body = path.read_bytes()
        at = chance.randrange(len(body))
        changed = body[:at] + bytes([body[at] ^ chance.randrange(1, 256)]) + body[at + 1 :]
        path.write_bytes(changed)
        name = path.relative_to(dataset).as_posix()
        with pytest.raises(Difference) as found:
            verifying.check_sums(dataset, lambda _: None)
        assert name in str(found.value) or name == "SHA256SUMS"
        path.write_bytes(body)


def test_a_file_that_is_missing_or_added_is_named(dataset: Path) -> None:
    """Nothing comes or goes unseen."""
    (dataset / "extra.csv").write_text("x")
    with pytest.raises(Difference, match=r"extra\.csv is there and is not listed"):
        verifying.check_sums(dataset, lambda _: None)
    (dataset / "extra.csv").unlink()
    (dataset / "rankings.csv").unlink()
    with pytest.raises(Difference, match=r"rankings\.csv is listed and is not there"):
        verifying.check_sums(dataset, lambda _: None)


EVIDENCE = "evidence/month=2026-11/polls.jsonl.gz"
DEEP = b'"x":%b%b,' % (b"[" * 9999, b"]" * 9999)


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        (EVIDENCE, b"A on Product", b"A on Froduct", "is not the one of the proof"),
        (EVIDENCE, b'"withheld":true', b'"withheld":trve', "is not the one of the proof"),
        ("catalogue.jsonl", b"Insults a person", b"Praises a person", "what is left of a withheld"),
        ("proof/month=2026-11/leaves.txt", b"2026-11-02 crm", b"2026-11-02 drm",
         r"products\.csv differs at byte"),
        ("heads.jsonl", b'"size":12', b'"size":13', r"heads\.jsonl differs at byte 134"),
        ("rankings.csv", b",12,", b",13,", r"rankings\.csv differs at byte"),
        ("names.csv", b"product-a", b"product-b", r"names\.csv differs at byte"),
        ("catalogue.jsonl", b"Best help-desk", b"Worst help-desk", r"\.csv differs at byte"),
        ("catalogue.jsonl", b'"aliases":["The A"]', b'"aliases":["The B"]', "csv differs"),
        ("catalogue.jsonl", b'"says":{', b'"says":{' + DEEP, r"catalogue\.jsonl: line 1: "),
        (EVIDENCE, b'"withheld":true', DEEP + b'"withheld":true',
         r"polls\.parquet: row|what is left of a withheld"),
        pytest.param(
            EVIDENCE, b'"model":"A","polledAt":"2026-11-10', b'"model":"B","polledAt":"2026-11-10',
            r"polls\.parquet: row \d+, column model differs", marks=needs_parquet,
        ),
    ],
)  # fmt: skip
def test_a_forgery_with_fitting_checksums_is_found(
    dataset: Path, name: str, old: bytes, new: bytes, said: str
) -> None:
    """Whoever changes a text, a figure or a name and mends all sums is found by recomputing."""
    edit(dataset, name, old, new)
    with pytest.raises(Difference, match=said):
        check(dataset)


@needs_parquet
def test_rows_of_parquet_are_compared_not_bytes(dataset: Path) -> None:
    """Another writer's bytes are fine; another row is named with its column."""
    import pyarrow as pa  # noqa: PLC0415 - an extra
    import pyarrow.parquet as pq  # noqa: PLC0415

    path = dataset / "picks/month=2026-10/picks.parquet"
    found = pq.read_table(path)
    pq.write_table(found, path, compression="gzip")
    mend(dataset)
    check(dataset)
    at = found.column_names.index("points")
    points = found.column(at).to_pylist()
    column = pa.array([4, *points[1:]], type=found.column(at).type)
    pq.write_table(found.set_column(at, "points", column), path)
    mend(dataset)
    with pytest.raises(Difference, match=r"picks\.parquet: row 0, column points differs"):
        check(dataset)


def rewritten(data: Path) -> Path:
    """The same history with another pick, every id, checksum and head made anew."""
    file = small_data(data) / "history/crm-software.jsonl"
    first, rest = file.read_bytes().split(b"\n", 1)
    poll = msgspec.json.decode(first.replace(b"Product C", b"Product Z"), type=Poll)
    file.write_bytes(encode_line(poll, poll.polled_at)[1] + rest)
    written(data)
    return copied(data, data.with_name("forged"))


def test_a_rewritten_history_is_found_against_a_kept_head(tmp_path: Path) -> None:
    """It is whole in itself; only what somebody kept elsewhere tells."""
    honest = written(small_data(tmp_path / "honest"))
    forged = rewritten(tmp_path / "data")
    check(forged)
    with pytest.raises(Difference, match="history up to 2026-10-26 was rewritten"):
        check(forged, honest.heads)
    cut = Head("2026-11-20", 100, "0" * 64)
    with pytest.raises(Difference, match="history was cut short: the head of 2026-11-20"):
        check(forged, (cut,))
    check(copied(tmp_path / "honest", tmp_path / "copy"), honest.heads)


def test_a_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compressed file is read up to a limit, and refused beyond it."""
    monkeypatch.setattr(formats, "MAX_UNPACKED", 1000)
    with pytest.raises(ValueError, match="more than 1,000 bytes"):
        formats.unpacked(gzip.compress(bytes(5000)))
    with pytest.raises(ValueError, match="no gzip file"):
        formats.unpacked(b"plain")
    assert formats.unpacked(gzip.compress(b"x" * 900)) == b"x" * 900


def test_a_manifest_names_no_file_outside(dataset: Path) -> None:
    """A manifest is a stranger's: a name that leads elsewhere is refused, not read."""
    path = dataset / "dataset.json"
    text = path.read_text().replace('"names.csv"', '"../names.csv"')
    path.write_text(text)
    with pytest.raises(Difference, match="dataset"):
        verifying.check_manifest(dataset)
