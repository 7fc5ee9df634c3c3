"""A dataset holds everything, is written whole, and forgets what is withheld."""

import csv
import gzip
import hashlib
import io
import json
import re
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
from broken import write_one_of_each
from builders import (
    BASE_URL,
    SITE,
    answered,
    app_over,
    append,
    close_days,
    command,
    contents,
    edit,
    output,
    withhold,
    write_json,
)
from datasets import SLUGS, needs_parquet, small_data, written, written_from

from store.files import Files
from store.history import History
from store.publishing import formats, manifest, tables
from store.publishing.dataset import Source, catalogue_lines, restore_catalogue
from store.publishing.directories import DirectoryError
from store.records import NearMiss, Pick
from store.store import Store


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return small_data(tmp_path / "data")


def ids(data: Path) -> list[str]:
    history = History(data / "history")
    return [stored.poll.id for slug in SLUGS for stored in history.read(slug).polls]


def table(data: Path, name: str) -> list[dict[str, Any]]:
    body = (data / "dataset/current" / name).read_bytes()
    return list(csv.DictReader(io.StringIO(body.decode())))


def parquet(data: Path, table: str) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq  # noqa: PLC0415 - an extra

    rows = pq.read_table(data / "dataset/current" / f"{table}.parquet").to_pylist()
    plain: list[dict[str, Any]] = msgspec.json.decode(msgspec.json.encode(rows))
    return plain


def everything(data: Path) -> bytes:
    """All bytes below a dataset's directory, whatever they are for, unpacked."""
    files = contents(data / "dataset")
    return b"".join(
        gzip.decompress(body) if name.endswith(".gz") else body for name, body in files.items()
    )


def test_every_line_of_history_is_in_it(data: Path) -> None:
    """Failures and damage included: unpacked, the evidence of a file is the very file."""
    path = data / "history/crm-software.jsonl"
    first, _, others = path.read_bytes().partition(b"\n")
    path.write_bytes(first + b"\nno poll\n" + others)
    written(data)
    for file in (data / "history").glob("*.jsonl"):
        packed = data / f"dataset/current/evidence/{file.name}.gz"
        assert gzip.decompress(packed.read_bytes()) == file.read_bytes()


@needs_parquet
def test_every_poll_and_pick_is_a_row(data: Path) -> None:
    """What is read back is what was written, lists, times and empty values included."""
    written(data)
    polls = parquet(data, "polls")
    assert len(polls) == 19
    assert [poll["failure"] for poll in polls if not poll["pick"]] == ["timeout"]
    assert polls[0]["polled_at"] == "2026-10-26T06:00:00Z"
    assert polls[0]["ranking"][0]["fixes"] == ["A would fix Product A"]
    assert polls[0]["error"] is None
    picks = parquet(data, "picks")
    assert len(picks) == 90
    assert {pick["rank"] + pick["points"] for pick in picks} == {6}


@needs_parquet
def test_no_member_of_a_pick_or_a_near_miss_is_left_out(data: Path) -> None:
    """The columns that hold them in Parquet have every member by its name."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - an extra

    written(data)
    schema = pq.read_schema(data / "dataset/current/polls.parquet")
    for name, record in (("ranking", Pick), ("missed", NearMiss)):
        members = tuple(member.name for member in schema.field(name).type.value_type)
        assert members == record.__struct_fields__


@needs_parquet
def test_each_row_says_where_its_line_stands(data: Path) -> None:
    """File, number and the day under which it was closed; a line that was copied counts once."""
    close_days(data, "2026-11-02")
    path = data / "history/help-desk.jsonl"
    last = path.read_bytes().splitlines(keepends=True)[-1]
    path.write_bytes(path.read_bytes() + last)
    written(data)
    polls = parquet(data, "polls")
    assert len(polls) == 19
    for poll in polls:
        line = (data / f"history/{poll['file']}.jsonl").read_bytes().splitlines()[poll["line"] - 1]
        assert json.loads(line)["id"] == poll["id"]
        day = poll["polled_at"][:10]
        assert poll["day_closed"] == (day if day <= "2026-11-02" else None)
    (kinds,) = {(poll["instrument"], poll["question"][:4]) for poll in polls}
    assert kinds == (None, "What")


@needs_parquet
def test_rankings_by_day_are_those_of_the_closed_days(data: Path) -> None:
    """As `asOf` shows them, for each day that brought the category lines."""
    close_days(data, "2026-11-02")
    written(data)
    rows = parquet(data, "rankings_by_day")
    assert {row["day"] for row in rows} == {"2026-10-26", "2026-11-02"}
    reader = app_over(data).test_client()
    for slug in SLUGS:
        for day in ("2026-10-26", "2026-11-02"):
            board = reader.get(f"/api/v1/best/{slug}.json?asOf={day}").json
            assert board is not None
            own = [row for row in rows if (row["slug"], row["day"]) == (slug, day)]
            assert [(row["rank"], row["score"], row["appearances"]) for row in own] == [
                (rank, entry["score"], entry["appearances"])
                for rank, entry in enumerate(board["combined"], start=1)
            ]


def test_the_manifest_commits_to_every_line(data: Path) -> None:
    """Its root is the one at `/healthz`, over closed and open lines."""
    close_days(data, "2026-11-02")
    present = written(data).manifest.present
    assert (present.lines, present.closed) == (19, 12)
    health = app_over(data).test_client().get("/healthz").json
    assert health is not None
    assert health["history"]["root"] == present.root
    for name in ("ledger.jsonl", "heads.jsonl"):
        assert (tree_of(data) / name).read_bytes() == (data / "proof" / name).read_bytes()


def test_days_are_closed_where_the_command_is_told_to(data: Path) -> None:
    """`--close-days` closes all past days; without it no command closes any."""
    output(data, "dataset")
    assert (tree_of(data) / "heads.jsonl").read_bytes() == b""
    report = output(data, "dataset", "--close-days")
    assert re.search(r"^Closed 2026-11-09: 19 lines, root [0-9a-f]{64}$", report, re.MULTILINE)
    assert (tree_of(data) / "heads.jsonl").read_bytes().count(b"\n") == 3


def test_the_tables_over_everything_are_what_the_site_shows(data: Path) -> None:
    """Scores, names and mentions are the leaderboards' own; truth values are JSON's."""
    written(data)
    ranked = [row for row in table(data, "rankings.csv") if row["slug"] == "help-desk"]
    assert [(row["product"], row["score"]) for row in ranked[:2]] == [
        ("product-c", "12"), ("product-b", "10"),
    ]  # fmt: skip
    assert {row["tied"] for row in ranked} == {"false"}
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
    output(data, "dataset")
    before = tree_of(data)
    for name in (".new", "0123456789abcdef"):  # what a killed run leaves goes all the same
        shutil.copytree(before, before.with_name(name))
    assert "; nothing changed." in output(data, "dataset")
    assert list((data / "dataset/trees").iterdir()) == [tree_of(data)] == [before]
    withheld = {ids(data)[0]: {"reason": "x", "date": "2026-11-15"}}
    changes: dict[str, dict[str, Any]] = {
        "products/product-b.json": {"version": 1, "name": "Bee"},
        "withheld.json": {"version": 1, "withheld": withheld},
        "site.json": {**SITE, "name": "Other"},
    }
    for name, value in changes.items():
        version = written(data).manifest.version
        write_json(data / name, value)
        assert "nothing changed" not in output(data, "dataset")
        assert written(data).manifest.version != version, name


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
    assert after.manifest.present == before.manifest.present
    assert [*after.manifest.withheld] == [secret.id]
    if formats.has_parquet():
        polls = parquet(data, "polls")
        assert [poll["withheld"] for poll in polls if poll["id"] == secret.id] == [True]
        for path in (data / "dataset").rglob("*.parquet"):
            assert b"Planted" not in path.read_bytes()


def test_the_card_tells_of_every_file_and_column(data: Path) -> None:
    """One README is enough to work with the tables, and to cite them."""
    made = written(data, "https://rankings.example").manifest
    card = (tree_of(data) / "README.md").read_text(encoding="utf-8")
    for name, file in made.files.items():
        if name not in ("README.md", "datapackage.json") and not name.startswith("evidence/"):
            assert re.search(
                rf"^\| `{re.escape(name)}` \| [^|]+ \|.* {file.bytes:,} \|$", card, re.MULTILINE
            )
    for name, table in tables.ALL.items():
        section = card.partition(f"### {name}\n")[2].partition("\n#")[0]
        assert table.about in section
        for column, own in table.columns.items():
            assert f"| `{column}` | {own.type} | {own.about} |" in section
    assert "names and answers are invented" in card
    assert f"version {made.version}, https://rankings.example/data" in card


def test_the_package_describes_every_table_in_csv(data: Path) -> None:
    """Once, with every column."""
    written(data)
    package = json.loads((tree_of(data) / "datapackage.json").read_text())
    fields = {each["path"]: len(each["schema"]["fields"]) for each in package["resources"]}
    assert fields == {
        f"{name}.csv": len(tables.ALL[name].columns) for name in tables.SNAPSHOT_TABLES
    }


def test_nothing_of_an_operators_own_is_published(data: Path) -> None:
    """Keys' names, addresses, prices, caps and hosts stay at home."""
    model = {
        "name": "A", "api": "chat", "base_url": "https://internal.example/v1",
        "model": "secret-model", "key_env": "SECRET_KEY", "usd_per_million_input": 77,
        "extra": {"token": "secret-token"},
    }  # fmt: skip
    edit(data / "models.json", models=[model])
    edit(data / "site.json", daily_usd=77, hosts=["internal.example"])
    written(data)
    everywhere = everything(data).lower()
    assert b"internal" not in everywhere
    assert b"secret" not in everywhere
    assert b"77" not in (data / "dataset/current/catalogue.jsonl").read_bytes()


def test_a_published_catalogue_is_the_catalogue(tmp_path: Path) -> None:
    """Restored, its files say what the operator's say, whatever their kind."""
    data = write_one_of_each(tmp_path / "data")
    found = Files(data).scan()
    restore_catalogue(catalogue_lines(found, None), tmp_path / "again")
    again = Files(tmp_path / "again").scan()
    assert again.problems == ()
    parts = "categories products labs withheld synonyms words topics instruments"
    for part in parts.split():
        assert getattr(again, part) == getattr(found, part)


@pytest.mark.parametrize("file", ["../evil.json", "history/x.jsonl", "categories/../x.json", "x"])
def test_a_published_catalogue_writes_nowhere_else(tmp_path: Path, file: str) -> None:
    """Whatever a stranger's catalogue calls its files."""
    line = json.dumps({"file": file, "says": {}}).encode()
    with pytest.raises(ValueError, match="is not a data file"):
        restore_catalogue(line, tmp_path / "again")


def test_what_is_not_as_it_was_written_is_made_again(data: Path) -> None:
    """A lost manifest, which `flask check` names; other bytes of the same size; a file too many."""
    output(data, "dataset")
    before = contents(data / "dataset/current")
    (data / "dataset/current/dataset.json").unlink()
    assert (
        "dataset/current/dataset.json:1:1: it cannot be read: No such file or directory; `flask "
        "dataset` writes it again"
    ) in command(data, "check").stdout
    output(data, "dataset")
    assert contents(data / "dataset/current") == before
    assert manifest.problems(data) == []
    body = before["names.csv"]
    for name, odd in (
        ("names.csv", body[:-9] + bytes([body[-9] ^ 1]) + body[-8:]),
        ("evidence/more", b"x"),
    ):
        (data / "dataset/current" / name).write_bytes(odd)
        output(data, "dataset")
        assert contents(data / "dataset/current") == before


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


def test_parquet_is_not_left_out_silently(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there was Parquet and pyarrow is gone, the last dataset stays; else it is without."""
    monkeypatch.setattr(formats, "has_parquet", lambda: False)
    assert not [name for name in written(data).manifest.files if name.endswith(".parquet")]
    monkeypatch.undo()
    if formats.has_parquet():
        written(data)
        monkeypatch.setattr(formats, "has_parquet", lambda: False)
        with pytest.raises(DirectoryError, match="pyarrow is not installed"):
            written(data)


def test_a_dataset_without_parquet_verifies_where_parquet_can_be_written(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has what its manifest says, and everything of it is looked at."""
    close_days(data, "2026-11-09")
    with monkeypatch.context() as patched:
        patched.setattr(formats, "has_parquet", lambda: False)
        written(data, BASE_URL)
    assert "NOT looked at" not in output(data, "verify", str(data / "dataset"))


def test_every_file_has_a_media_type(data: Path) -> None:
    """Else a browser shows the bytes of a table as text."""
    names = written(data).manifest.files
    assert [name for name in names if Path(name).suffix not in manifest.MEDIA_TYPES] == []
