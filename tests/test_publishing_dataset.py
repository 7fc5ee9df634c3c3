"""A dataset holds everything, is written only where something changed, and forgets on demand."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import shutil
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from broken import write_one_of_each
from builders import answered, append, write_json
from datasets import NOW, SLUGS, small_data, written

from store.files import Files
from store.history import History
from store.publishing import formats, tables
from store.publishing.dataset import MARK, DatasetError
from store.publishing.leaves import LeafList, ProofError
from store.publishing.manifest import problems, versions

if TYPE_CHECKING:
    from pathlib import Path

needs_parquet = pytest.mark.skipif(not formats.has_parquet(), reason="needs the extra `data`")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return small_data(tmp_path / "data")


def ids(data: Path) -> list[str]:
    history = History(data / "history")
    return [stored.poll.id for slug in SLUGS for stored in history.read(slug).polls]


def withhold(data: Path, identity: str) -> None:
    entry = {identity: {"reason": "Insults a person", "date": "2026-11-15"}}
    write_json(data / "withheld.json", {"version": 1, "withheld": entry})


def table(data: Path, name: str) -> list[dict[str, Any]]:
    body = (data / "dataset" / name).read_bytes()
    text = gzip.decompress(body) if name.endswith(".gz") else body
    return list(csv.DictReader(io.StringIO(text.decode())))


def everything(data: Path) -> bytes:
    """All bytes of a dataset, unpacked."""
    files = [path for path in (data / "dataset").rglob("*") if path.is_file()]
    return b"".join(
        gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        for path in files
    )


def test_every_poll_and_pick_is_in_it_by_month(data: Path) -> None:
    """Failures included; the evidence is the very lines of history."""
    written(data)
    evidence = [
        gzip.decompress(path.read_bytes()).splitlines(keepends=True)
        for path in (data / "dataset/evidence").glob("month=*/polls.jsonl.gz")
    ]
    lines = [line for month in evidence for line in month]
    files = (data / "history").glob("*.jsonl")
    assert sorted(lines) == sorted(
        line for f in files for line in f.read_bytes().splitlines(keepends=True)
    )
    polls = table(data, "csv/polls/month=2026-11/polls.csv.gz")
    assert len(polls) == 13
    assert [p["failure"] for p in polls if not p["pick"]] == ["timeout"]
    picks = table(data, "csv/picks/month=2026-10/picks.csv.gz")
    assert len(picks) == 30
    assert {int(p["rank"]) + int(p["points"]) for p in picks} == {6}


def test_a_category_is_in_one_piece_and_a_poll_in_one_row(data: Path) -> None:
    """So one category can be read alone; a line that somebody copied counts once."""
    path = data / "history/help-desk.jsonl"
    last = path.read_bytes().splitlines(keepends=True)[-1]
    path.write_bytes(path.read_bytes() + last)
    written(data)
    polls = table(data, "csv/polls/month=2026-11/polls.csv.gz")
    order = [(p["slug"], p["polled_at"], p["model"]) for p in polls]
    assert (len(order), sorted(set(order))) == (13, order)


@needs_parquet
def test_parquet_holds_the_same_rows_and_the_texts(data: Path) -> None:
    """What is read back is what was written, lists, times and empty values included."""
    written(data)
    body = (data / "dataset/polls/month=2026-11/polls.parquet").read_bytes()
    rows = formats.parquet_rows(tables.POLLS, body)
    assert len(rows) == 13
    by_name = dict(zip(tables.POLLS.names, rows[0], strict=True))
    assert by_name["polled_at"] == "2026-11-02T06:00:00Z"
    assert by_name["ranking"][0]["fixes"] == ["A would fix Product A"]
    assert by_name["error"] is None


def test_the_tables_over_everything_are_what_the_site_shows(data: Path) -> None:
    """Scores, names and mentions are the leaderboards' own."""
    written(data)
    ranked = [row for row in table(data, "rankings.csv") if row["slug"] == "help-desk"]
    assert [(row["product"], row["score"]) for row in ranked[:2]] == [
        ("product-c", "12"), ("product-b", "10"),
    ]  # fmt: skip
    assert {row["product"] for row in table(data, "names.csv") if row["name"] == "The A"} == {
        "product-a"
    }
    mentions = {row["slug"]: row["mentions"] for row in table(data, "products.csv")}
    assert mentions["product-a"] == "18"


def test_the_checksums_are_those_of_every_file(data: Path) -> None:
    """``sha256sum --check`` finds nothing, and nothing is left out."""
    written(data)
    home = data / "dataset"
    lines = (home / "SHA256SUMS").read_text().splitlines()
    listed = {name: digest for digest, name in (line.split("  ") for line in lines)}
    own = ("SHA256SUMS", MARK)
    files = [path for path in home.rglob("*") if path.is_file() and path.name not in own]
    assert listed == {
        path.relative_to(home).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }


def test_the_same_data_is_the_same_version_and_writes_nothing(data: Path) -> None:
    """A second run finds everything as it is."""
    first = written(data)
    before = {path: path.stat().st_mtime_ns for path in (data / "dataset/objects").iterdir()}
    again = written(data)
    assert (again.new, again.manifest) == (0, first.manifest)
    assert first.manifest.version == "2026.11.9"
    assert {p: p.stat().st_mtime_ns for p in (data / "dataset/objects").iterdir()} == before


def test_a_new_day_rewrites_its_month_alone(data: Path) -> None:
    """Files of other months stay the same files, so links to them and their tags stay good."""
    first = written(data).manifest
    append(data, [answered("A", ["Product E"], "2026-11-16T06:00:00Z")])
    second = written(data).manifest
    assert second.version == "2026.11.16"
    changed = {name for name in second.files if second.files[name] != first.files.get(name)}
    assert not [name for name in changed if "month=2026-10" in name]
    assert "evidence/month=2026-11/polls.jsonl.gz" in changed
    assert list(versions(data / "dataset")) == ["v/2026.11.9.json", "v/2026.11.16.json"]
    for version in (first, second):
        for name, file in version.files.items():
            body = (data / "dataset" / file.object(name)).read_bytes()
            assert hashlib.sha256(body).hexdigest() == file.sha256


def test_step_by_step_and_at_once_are_the_same_files(data: Path, tmp_path: Path) -> None:
    """However often it was written before, a version has the same bytes."""
    written(data)
    append(data, [answered("A", ["Product E"], "2026-11-16T06:00:00Z")])
    stepwise = written(data).manifest
    fresh = small_data(tmp_path / "fresh")
    append(fresh, [answered("A", ["Product E"], "2026-11-16T06:00:00Z")])
    assert written(fresh).manifest == stepwise


def test_an_edit_on_the_same_day_is_a_version_of_its_own(data: Path) -> None:
    """Another checksum never hides under a version that somebody cited."""
    first = written(data).manifest
    write_json(
        data / "products/product-b.json", {"version": 1, "name": "Product B", "maker": "Bee"}
    )
    write_json(data / "products/product-c.json", {"version": 1, "name": "Sea"})
    second = written(data).manifest
    assert (first.version, second.version) == ("2026.11.9", "2026.11.9+2")
    assert [n for n in first.files if "month=" in n and first.files[n] != second.files[n]] == []


def test_withholding_takes_the_text_out_of_every_version(data: Path) -> None:
    """The leaf stays, so roots survive; manifests of all versions that had the text say so."""
    secret = answered("A", ["Planted", "Product B"], "2026-11-10T06:00:00Z", reason="A slur")
    append(data, [secret])
    written(data)
    append(data, [answered("A", ["Product E"], "2026-11-16T06:00:00Z")])
    before = written(data)
    assert b"Planted" in everything(data)
    withhold(data, secret.id)
    after = written(data)
    everywhere = everything(data)
    assert b"Planted" not in everywhere
    assert b"A slur" not in everywhere
    assert after.heads == before.heads
    for manifest in versions(data / "dataset").values():
        assert [each.id for each in manifest.withheld] == [secret.id]
    old = versions(data / "dataset")["v/2026.11.10.json"]
    assert "names.csv" in old.without
    polls = table(data, "csv/polls/month=2026-11/polls.csv.gz")
    assert [p["withheld"] for p in polls if p["id"] == secret.id] == ["true"]
    if formats.has_parquet():
        for path in (data / "dataset").rglob("*.parquet"):
            assert b"Planted" not in path.read_bytes()


def test_nothing_of_an_operators_own_is_published(data: Path) -> None:
    """Keys' names, addresses, prices, caps and hosts stay at home."""
    models = {
        "version": 1,
        "models": [
            {
                "name": "A", "api": "chat", "base_url": "https://internal.example/v1",
                "model": "secret-model", "key_env": "SECRET_KEY", "usd_per_million_input": 77,
                "extra": {"token": "secret-token"},
            }
        ],
    }  # fmt: skip
    write_json(data / "models.json", models)
    site = {"version": 1, "name": "Site", "daily_usd": 77, "hosts": ["internal.example"]}
    write_json(data / "site.json", site)
    written(data)
    everywhere = everything(data).lower()
    assert b"internal" not in everywhere
    assert b"secret" not in everywhere
    assert b"77" not in (data / "dataset/catalogue.jsonl").read_bytes()


def test_a_published_catalogue_is_the_catalogue(tmp_path: Path) -> None:
    """Restored, its files say what the operator's say, whatever their kind."""
    from store.publishing import catalogue  # noqa: PLC0415

    data = write_one_of_each(tmp_path / "data")
    found = Files(data).scan()
    catalogue.restore(catalogue.published(found, None), tmp_path / "again")
    again = Files(tmp_path / "again").scan()
    assert again.problems == ()
    assert again.files == found.files
    for part in ("categories", "products", "labs", "withheld", "synonyms", "words", "topics"):
        assert getattr(again, part) == getattr(found, part)


@pytest.mark.parametrize("file", ["../evil.json", "history/x.jsonl", "categories/../x.json", "x"])
def test_a_published_catalogue_writes_nowhere_else(tmp_path: Path, file: str) -> None:
    """Whatever a stranger's catalogue calls its files."""
    from store.publishing import catalogue  # noqa: PLC0415

    line = json.dumps({"file": file, "says": {}}).encode()
    with pytest.raises(ValueError, match="is no data file"):
        catalogue.restore(line, tmp_path / "again")


def contents(data: Path) -> dict[str, bytes]:
    home = data / "dataset"
    return {str(f.relative_to(home)): f.read_bytes() for f in home.rglob("*") if f.is_file()}


PICKS = "csv/picks/month=2026-10/picks.csv.gz"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("dataset.json", "dataset/dataset.json:1:1: it is no manifest: "),
        ("v/2026.11.9.json", "dataset/v/2026.11.9.json:1:1: it is no manifest: "),
        (PICKS, f"{PICKS} of version 2026.11.9 cannot be read: No such file or directory"),
        ("rankings.csv", "rankings.csv of version 2026.11.9 cannot be read: No such file"),
        ("heads.jsonl", "heads.jsonl of version 2026.11.9 cannot be read: No such file"),
        ("SHA256SUMS", ""),
    ],
)
def test_whatever_is_lost_of_the_newest_version_is_named_and_made_again(
    data: Path, name: str, said: str
) -> None:
    """`flask check` says where and what to do; the next run gives the same bytes, the same version.

    A named file is lost with the object that it is.
    """
    found = written(data).manifest
    before = contents(data)
    (data / "dataset" / name).unlink()
    if name in found.files:
        (data / "dataset" / found.files[name].object(name)).unlink()
    elif name.endswith(".json"):
        (data / "dataset" / name).write_bytes(before[name][:-100])
    told = list(map(str, problems(data / "dataset", older=True)))
    if said:
        assert [said in line for line in told] == [True], told
        assert told[0].endswith("; `flask dataset` writes it again")
    written(data)
    assert contents(data) == before
    assert list(problems(data / "dataset", older=True)) == []


def test_a_file_with_other_bytes_is_made_again(data: Path) -> None:
    """Of the same size too, which only reading it shows."""
    found = written(data).manifest
    before = contents(data)
    for name in (PICKS, "names.csv"):
        path = data / "dataset" / found.files[name].object(name)
        body = path.read_bytes()
        path.write_bytes(body[:-9] + bytes([body[-9] ^ 1]) + body[-8:])
    assert written(data).new == 2
    assert contents(data) == before


def test_an_older_version_that_is_damaged_is_named_and_left_alone(data: Path) -> None:
    """It cannot be made again, so its owner decides: put it back, or do without it."""
    found = written(data).manifest
    append(data, [answered("A", ["Product E"], "2026-11-16T06:00:00Z")])
    written(data)
    lost = found.files["rankings.csv"].object("rankings.csv")
    (data / "dataset" / lost).unlink()
    (told,) = problems(data / "dataset", older=True)
    assert told.file == f"dataset/{lost}"
    assert "put it back from a backup, or remove 2026.11.9.json" in told.message
    assert list(problems(data / "dataset", older=False)) == []
    old = data / "dataset/v/2026.11.9.json"
    old.write_text("{")
    with pytest.raises(DatasetError, match=r"2026\.11\.9\.json is no manifest; put it back"):
        written(data)
    assert old.read_text() == "{"
    old.unlink()
    written(data)
    assert list(versions(data / "dataset")) == ["v/2026.11.16.json"]


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"version": "x"}', "null", "\udc80"])
def test_no_manifest_of_any_form_is_believed(data: Path, text: str) -> None:
    """Nor does one that lists no heads break whoever reads it."""
    written(data)
    path = data / "dataset/dataset.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    (told,) = problems(data / "dataset", older=False)
    assert told.message.startswith("it is no manifest: ")
    said = json.loads((data / "dataset/v/2026.11.9.json").read_text())
    del said["files"]["heads.jsonl"]
    path.write_text(json.dumps(said))
    (told,) = problems(data / "dataset", older=False)
    assert told.message.startswith("it is no manifest: it lists no heads.jsonl; ")


def test_heads_that_were_published_are_never_taken_back(data: Path) -> None:
    """A proof folder that was lost and begun anew over another history is refused."""
    written(data)
    for path in (data / "leaves").iterdir():
        path.unlink()
    file = data / "history/help-desk.jsonl"
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[1:]))
    shutil.rmtree(data / ".last-good")
    said = r"leaves/2026-10\.leaves does not begin with what version 2026\.11\.9 published of it"
    with pytest.raises(ProofError, match=said):
        written(data)


def test_no_leaf_is_put_before_published_heads(data: Path) -> None:
    """A made-up leaf at the end of a month's list changes all heads after it."""
    written(data)
    (data / "leaves/heads.jsonl").unlink()
    with (data / "leaves/2026-10.leaves").open("ab") as file:
        file.write(b"2026-10-26 crm-software 0 9 %b\n" % (b"0" * 64))
    said = r"the published heads\.jsonl: 2026-10-26 closed with 6 leaves"
    with pytest.raises(ProofError, match=said):
        written(data)
    assert not (data / "leaves/heads.jsonl").exists(), "nothing was added"


def test_a_manifest_that_is_no_text_is_named(data: Path) -> None:
    """One bit of it is another."""
    written(data)
    path = next((data / "dataset/v").iterdir())
    path.write_bytes(path.read_bytes().replace(b"version", b"\xf6ersion", 1))
    assert any(path.name in found.file for found in problems(data / "dataset", older=True))


def test_a_repair_of_another_length_leaves_the_lines_after_it(data: Path, tmp_path: Path) -> None:
    """They stand later than they were listed, and are published all the same."""
    path = data / "history/crm-software.jsonl"
    was = path.read_bytes()
    first, _, others = was.partition(b"\n")
    path.write_bytes(first[:-400] + b"\n" + others)
    written(data)
    path.write_bytes(was)
    append(data, [answered("A", ["Product E"], "2026-11-16T06:00:00Z")])
    withhold_nothing = {"version": 1, "withheld": {"0" * 16: {"reason": "R", "date": "2026-11-16"}}}
    write_json(data / "withheld.json", withhold_nothing)  # so that every month is made again
    found = written(data, now=NOW + timedelta(days=20)).manifest
    lines = [
        line
        for name, file in found.files.items()
        if name.startswith("evidence/")
        for line in gzip.decompress((data / "dataset" / file.object(name)).read_bytes()).split()
    ]
    assert b"null" not in lines


def test_a_leaf_that_was_published_is_never_another(data: Path) -> None:
    """Even if what is kept of the list was made anew over an altered one."""
    written(data)
    path = data / "leaves/2026-10.leaves"
    LeafList(data).extend(NOW)
    path.write_bytes(path.read_bytes().replace(b" crm-software ", b" crm-hardware ", 1))
    (data / ".last-good/listed").unlink()
    LeafList(data).extend(NOW)
    with pytest.raises(
        ProofError, match=r"leaves/2026-10\.leaves does not begin with what version"
    ):
        written(data)


def test_parquet_is_not_left_out_silently(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there was Parquet and pyarrow is gone, the last version stays; else it is without."""
    monkeypatch.setattr(formats, "has_parquet", lambda: False)
    assert not [name for name in written(data).manifest.files if name.endswith(".parquet")]
    monkeypatch.undo()
    if formats.has_parquet():
        written(data)
        monkeypatch.setattr(formats, "has_parquet", lambda: False)
        with pytest.raises(DatasetError, match="pyarrow is not installed"):
            written(data, now=NOW)
