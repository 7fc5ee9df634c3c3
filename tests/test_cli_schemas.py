"""``flask schema``: editors know what the program knows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from broken import KINDS, SLIPS, Broken, write_one_of_each
from jsonschema import Draft202012Validator, FormatChecker

from store.cli.schemas import documents, schema_of
from store.data_file import FOLDERS, SINGLE
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


def _validator(kind: str) -> Draft202012Validator:
    schema = json.loads(documents()[Path(schema_of(kind)).name])
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema, format_checker=FormatChecker())
