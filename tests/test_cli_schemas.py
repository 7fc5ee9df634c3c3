"""``flask schema``: editors know what the program knows."""

import json
from pathlib import Path

import pytest
from broken import KINDS, SLIPS, Broken, write_one_of_each
from builders import command, contents, write_data
from jsonschema import Draft202012Validator, FormatChecker

from store.cli.schemas import documents, schema_of
from store.records import FOLDERS, SINGLE
from store.settings import SHIPPED_DATA

SEEN = [
    slip
    for slip in SLIPS
    if slip.name in {"another version", "misspelt key", "wrong type", "no version", "null"}
]


def test_the_shipped_schemas_are_those_of_the_records() -> None:
    """After a change of the records `flask schema` must be run; this fails until it is."""
    shipped = {p.name: p.read_text(encoding="utf-8") for p in SHIPPED_DATA.glob("schemas/*.json")}
    assert shipped == documents()


def test_every_shipped_file_names_its_schema() -> None:
    """Each hand-edited file points to a schema that is there."""
    files = [*SINGLE, *(f"{folder}/*.json" for folder in FOLDERS)]
    for path in (path for pattern in files for path in SHIPPED_DATA.glob(pattern)):
        named = json.loads(path.read_text(encoding="utf-8"))["$schema"]
        assert named == schema_of(str(path.relative_to(SHIPPED_DATA)))
        assert (path.parent / named).is_file()


@pytest.mark.parametrize("kind", KINDS)
def test_a_good_file_fits_its_schema(tmp_path: Path, kind: str) -> None:
    """An editor shows no red line where the program sees none."""
    path = write_one_of_each(tmp_path / "data") / kind
    _validator(kind).validate(json.loads(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("slip", SEEN, ids=[slip.name for slip in SEEN])
def test_what_an_editor_can_see_it_shows(tmp_path: Path, kind: str, slip: Broken) -> None:
    """A wrong key or value that is still JSON is a red line by the schema alone."""
    path = write_one_of_each(tmp_path / "data") / kind
    slip.write(path)
    assert list(_validator(kind).iter_errors(json.loads(path.read_text(encoding="utf-8"))))


def test_schemas_are_written_anew_over_older_ones(tmp_path: Path) -> None:
    """After an update the command replaces what it wrote before, and nothing else."""
    data = write_data(tmp_path / "data")
    assert command(data, "schema").exit_code == 0
    path = data / "schemas/site.json"
    path.write_text(path.read_text().replace("licence", "license"))
    assert command(data, "schema").exit_code == 0
    assert path.read_text() == documents()["site.json"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("schema",),
        ("check", "--accept-history", "--all", "--reason", "r"),
        ("check", "--reopen", "2026-01-01", "--reason", "r"),
        ("withhold", "0123456789abcdef", "--reason", "r"),
        ("meaning",),
        ("dataset", "--close-days"),
        ("export", "site", "--close-days"),
        ("poll", "--all"),
    ],
    ids=" ".join,
)
def test_a_directory_of_something_else_is_left_alone(
    tmp_path: Path, arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """DATA_DIR may name somebody's project, which has folders of the same names."""
    monkeypatch.chdir(tmp_path)
    for name in ("schemas/site.json", "history/vpn.jsonl", "proof/heads.jsonl", "dataset/a.csv"):
        (tmp_path / "shop" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "shop" / name).write_text("mine")
    before = contents(tmp_path)
    done = command(tmp_path / "shop", *arguments)
    assert (done.exit_code, contents(tmp_path)) == (1, before)
    assert "shop holds no data files; " in done.output


def _validator(kind: str) -> Draft202012Validator:
    schema = json.loads(documents()[Path(schema_of(kind)).name])
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema, format_checker=FormatChecker())
