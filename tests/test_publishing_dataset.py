"""A dataset holds everything, is written whole, and forgets what is withheld."""

from __future__ import annotations

import csv
import errno
import gzip
import hashlib
import io
import json
import re
import shutil
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from broken import write_one_of_each
from builders import answered, append, command, contents, write_json
from datasets import NOW, SLUGS, small_data, written, written_from
from faults import failing_names

from store.files import Files
from store.history import History
from store.memory import Store
from store.publishing import catalogue, formats, manifest, tables
from store.publishing.dataset import DatasetError, Source
from store.publishing.digests import is_whole
from store.publishing.leaves import LeafList, ProofError

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
    body = (data / "dataset/current" / name).read_bytes()
    return list(csv.DictReader(io.StringIO(body.decode())))


def parquet(data: Path, table: tables.Table, month: str) -> list[dict[str, Any]]:
    body = (data / "dataset/current" / table.parquet(month)).read_bytes()
    rows = formats.parquet_rows(table, body)
    return [dict(zip(table.names, row, strict=True)) for row in rows]


def everything(data: Path) -> bytes:
    """All bytes below a dataset's directory, whatever they are for, unpacked."""
    files = contents(data / "dataset")
    return b"".join(
        gzip.decompress(body) if name.endswith(".gz") else body for name, body in files.items()
    )


def test_every_line_of_history_is_in_it(data: Path) -> None:
    """Failures included: the evidence is the very lines."""
    written(data)
    evidence = [
        gzip.decompress(path.read_bytes()).splitlines(keepends=True)
        for path in (data / "dataset/current/evidence").glob("month=*/polls.jsonl.gz")
    ]
    lines = [line for month in evidence for line in month]
    files = (data / "history").glob("*.jsonl")
    assert sorted(lines) == sorted(
        line for f in files for line in f.read_bytes().splitlines(keepends=True)
    )


@needs_parquet
def test_every_poll_and_pick_is_a_row_of_its_month(data: Path) -> None:
    """What is read back is what was written, lists, times and empty values included."""
    written(data)
    polls = parquet(data, tables.POLLS, "2026-11")
    assert len(polls) == 13
    assert [poll["failure"] for poll in polls if not poll["pick"]] == ["timeout"]
    assert polls[0]["polled_at"] == "2026-11-02T06:00:00Z"
    assert polls[0]["ranking"][0]["fixes"] == ["A would fix Product A"]
    assert polls[0]["error"] is None
    picks = parquet(data, tables.PICKS, "2026-10")
    assert len(picks) == 30
    assert {pick["rank"] + pick["points"] for pick in picks} == {6}


@needs_parquet
def test_a_category_is_in_one_piece_and_a_poll_in_one_row(data: Path) -> None:
    """So one category can be read alone; a line that somebody copied counts once."""
    path = data / "history/help-desk.jsonl"
    last = path.read_bytes().splitlines(keepends=True)[-1]
    path.write_bytes(path.read_bytes() + last)
    written(data)
    polls = parquet(data, tables.POLLS, "2026-11")
    order = [(poll["slug"], poll["polled_at"], poll["model"]) for poll in polls]
    assert (len(order), sorted(set(order))) == (13, order)


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
    files = contents(data / "dataset/current")
    lines = files.pop("SHA256SUMS").decode().splitlines()
    listed = {name: digest for digest, name in (line.split("  ") for line in lines)}
    assert listed == {name: hashlib.sha256(body).hexdigest() for name, body in files.items()}


def tree_of(data: Path) -> Path:
    """The folder that readers see."""
    return (data / "dataset/current").resolve()


def test_the_same_data_writes_nothing(data: Path) -> None:
    """A second run says so and leaves the very folder; anything else is another dataset."""
    assert command(data, "dataset").exit_code == 0
    before = tree_of(data)
    assert "; nothing changed." in command(data, "dataset").stdout
    assert tree_of(data) == before
    for name in ("products/product-b.json", "withheld.json", "site.json"):
        version = written(data).manifest.version
        match name:
            case "withheld.json":
                withhold(data, ids(data)[0])
            case "site.json":
                write_json(data / name, {"version": 1, "name": "Other"})
            case _:
                write_json(data / name, {"version": 1, "name": "Bee"})
        assert "nothing changed" not in command(data, "dataset").stdout
        changed = json.loads((tree_of(data) / "dataset.json").read_text())["version"]
        assert (changed != version) == (name != "site.json"), name


def test_data_that_change_while_they_are_read_are_looked_at_again(data: Path) -> None:
    """Nobody knows then what was read, so the next run writes anew, whatever the data are."""
    store, bases = Store(data), iter(["a", "b", "a", "a", "a", "a"])
    source = Source(data, lambda: store.snapshot, None, "1.0", lambda: next(bases))
    assert [written_from(source).is_new for _ in range(3)] == [True, True, False]


def test_the_version_follows_from_the_content(data: Path, tmp_path: Path) -> None:
    """However often it was written before: the same bytes, another version for other ones."""
    first = written(data).manifest
    assert re.fullmatch(r"2026\.11\.9\+[0-9a-f]{8}", first.version)
    append(data, [answered("A", ["Product E"], "2026-11-16T06:00:00Z")])
    stepwise = written(data).manifest
    assert stepwise.version.startswith("2026.11.16+")
    fresh = small_data(tmp_path / "fresh")
    append(fresh, [answered("A", ["Product E"], "2026-11-16T06:00:00Z")])
    assert written(fresh).manifest == stepwise


def test_readers_see_a_whole_dataset_whatever_fails(data: Path) -> None:
    """The old one or the new one, at every step that gives a name."""
    old = written(data).manifest.version
    append(data, [answered("A", ["Product E"], "2026-11-16T06:00:00Z")])
    seen = []
    for nth in range(1, 20):
        with failing_names(nth, errno.EIO, of="/dataset/") as calls:
            try:
                written(data)
            except OSError:
                pass
            else:
                break
        assert is_whole(tree_of(data))
        seen.append(json.loads((tree_of(data) / "dataset.json").read_text())["version"])
    assert set(seen) == {old}
    assert len(seen) == calls.total() > 2
    assert len(list((data / "dataset/trees").iterdir())) == 1


def test_a_withheld_poll_is_nowhere(data: Path) -> None:
    """Nothing older is kept: not where a run was killed, nor where somebody put it back."""
    secret = answered("A", ["Planted", "Product B"], "2026-11-10T06:00:00Z", reason="A slur")
    append(data, [secret])
    before = written(data)
    assert b"Planted" in everything(data)
    for name in (".new", "0123456789abcdef"):
        shutil.copytree(tree_of(data), data / "dataset/trees" / name)
    withhold(data, secret.id)
    after = written(data)
    everywhere = everything(data)
    assert b"Planted" not in everywhere
    assert b"A slur" not in everywhere
    assert after.heads == before.heads
    assert [each.id for each in after.manifest.withheld] == [secret.id]
    if formats.has_parquet():
        polls = parquet(data, tables.POLLS, "2026-11")
        assert [poll["withheld"] for poll in polls if poll["id"] == secret.id] == [True]
        for path in (data / "dataset").rglob("*.parquet"):
            assert b"Planted" not in path.read_bytes()


def test_the_card_tells_of_every_file_and_column(data: Path) -> None:
    """One README is enough to work with the tables, and to cite them."""
    made = written(data, "https://rankings.example").manifest
    card = (tree_of(data) / "README.md").read_text(encoding="utf-8")
    for name, file in made.files.items():
        if name not in ("README.md", "datapackage.json"):
            assert re.search(
                rf"^\| `{re.escape(name)}` \| [^|]+ \|.* {file.bytes:,} \|$", card, re.MULTILINE
            )
    for table in (*tables.MONTHLY, *tables.WHOLE):
        section = card.partition(f"### {table.name}\n")[2].partition("\n#")[0]
        assert table.about in section
        for column in table.columns:
            assert f"| `{column.name}` | {column.type} | {column.about} |" in section
    assert "names and answers are invented" in card
    assert f"version {made.version}, https://rankings.example/data" in card


def test_the_package_describes_every_table_in_csv(data: Path) -> None:
    """Once, with every column."""
    written(data)
    package = json.loads((tree_of(data) / "datapackage.json").read_text())
    fields = {each["path"]: len(each["schema"]["fields"]) for each in package["resources"]}
    assert fields == {table.csv: len(table.columns) for table in tables.WHOLE}


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
    assert b"77" not in (data / "dataset/current/catalogue.jsonl").read_bytes()


def test_a_published_catalogue_is_the_catalogue(tmp_path: Path) -> None:
    """Restored, its files say what the operator's say, whatever their kind."""
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
    line = json.dumps({"file": file, "says": {}}).encode()
    with pytest.raises(ValueError, match="is no data file"):
        catalogue.restore(line, tmp_path / "again")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("dataset.json", "dataset.json:1:1: it cannot be read: No such file or directory"),
        ("rankings.csv", "rankings.csv:1:1: it cannot be read: No such file or directory"),
        ("heads.jsonl", "heads.jsonl:1:1: it cannot be read: No such file or directory"),
        ("SHA256SUMS", ""),
    ],
)
def test_whatever_is_lost_is_named_and_made_again(data: Path, name: str, said: str) -> None:
    """`flask check` says where and what to do; the next run gives the same bytes."""
    assert command(data, "dataset").exit_code == 0
    before = contents(data / "dataset/current")
    (data / "dataset/current" / name).unlink()
    sentences = list(map(str, manifest.problems(data)))
    if said:
        assert [f"error: dataset/current/{said}; `flask dataset` writes it again"] == [
            sentence.replace("dataset/", "error: dataset/", 1) for sentence in sentences
        ]
    assert command(data, "dataset").exit_code == 0
    assert contents(data / "dataset/current") == before
    assert manifest.problems(data) == []


def test_a_file_with_other_bytes_is_made_again(data: Path) -> None:
    """Of the same size too, which only reading it shows; and one that was added goes."""
    assert command(data, "dataset").exit_code == 0
    before = contents(data / "dataset/current")
    path = data / "dataset/current/names.csv"
    body = path.read_bytes()
    path.write_bytes(body[:-9] + bytes([body[-9] ^ 1]) + body[-8:])
    assert command(data, "dataset").exit_code == 0
    assert contents(data / "dataset/current") == before
    (data / "dataset/current/evidence/more").write_text("x")
    assert command(data, "dataset").exit_code == 0
    assert contents(data / "dataset/current") == before


def test_a_dataset_that_is_just_replaced_has_no_problem(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its manifest was read, and its files are gone: the next one's are looked at."""
    written(data)
    read = manifest.read
    looks: list[Path] = []

    def read_late(dataset: Path) -> manifest.Manifest | str:
        found = read(dataset)
        looks.append(dataset)
        if len(looks) == 1:
            append(data, [answered("A", ["Product E"], "2026-11-16T06:00:00Z")])
            written(data)
        return found

    monkeypatch.setattr(manifest, "read", read_late)
    assert manifest.problems(data) == []
    assert len(looks) > 1


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"version": "x"}', "null", "\udc80"])
def test_no_manifest_of_any_form_is_believed(data: Path, text: str) -> None:
    """Nor does one that lists no heads break whoever reads it."""
    written(data)
    path = data / "dataset/current/dataset.json"
    members = json.loads(path.read_text())
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    (problem,) = manifest.problems(data)
    assert problem.message.startswith("it is not a manifest: ")
    del members["files"]["heads.jsonl"]
    path.write_text(json.dumps(members))
    (problem,) = manifest.problems(data)
    assert problem.message.startswith("it is not a manifest: it lists no heads.jsonl; ")


def test_heads_that_were_published_are_never_taken_back(data: Path) -> None:
    """A proof folder that was lost and begun anew over another history is refused."""
    written(data)
    for path in (data / "leaves").iterdir():
        path.unlink()
    file = data / "history/help-desk.jsonl"
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[1:]))
    shutil.rmtree(data / ".last-good")
    said = (
        r"leaves/2026-10\.leaves does not begin with what version 2026\.11\.9\+\w+ published of it"
    )
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


def test_a_repair_of_another_length_leaves_the_lines_after_it(data: Path, tmp_path: Path) -> None:
    """They stand later than they were listed, and are published all the same."""
    path = data / "history/crm-software.jsonl"
    was = path.read_bytes()
    first, _, others = was.partition(b"\n")
    path.write_bytes(first[:-400] + b"\n" + others)
    written(data)
    path.write_bytes(was)
    append(data, [answered("A", ["Product E"], "2026-11-16T06:00:00Z")])
    found = written(data, now=NOW + timedelta(days=20)).manifest
    lines = [
        line
        for name in found.files
        if name.startswith("evidence/")
        for line in gzip.decompress((data / "dataset/current" / name).read_bytes()).split()
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
    """Where there was Parquet and pyarrow is gone, the last dataset stays; else it is without."""
    monkeypatch.setattr(formats, "has_parquet", lambda: False)
    assert not [name for name in written(data).manifest.files if name.endswith(".parquet")]
    monkeypatch.undo()
    if formats.has_parquet():
        written(data)
        monkeypatch.setattr(formats, "has_parquet", lambda: False)
        with pytest.raises(DatasetError, match="pyarrow is not installed"):
            written(data, now=NOW)
