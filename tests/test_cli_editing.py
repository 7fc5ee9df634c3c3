"""What commands write into data files: the same meaning in one form, safely."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import click
import pytest
from faults import needs_root

from store.cli.editing import members, write

if TYPE_CHECKING:
    from pathlib import Path

NAME = "products/zoho-crm.json"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A data directory with one product file."""
    write(tmp_path, NAME, {"version": 1, "name": "Zoho CRM"}, None)
    return tmp_path


@pytest.mark.parametrize("indent", [None, 2, "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
def test_a_file_is_written_canonically_and_says_what_it_said(
    directory: Path, indent: int | str | None, end: str
) -> None:
    """However it was laid out: two spaces, one value a line, and its keys in their order."""
    record = {
        "name": "Zoho \u2013 \u201cCRM\u201d",
        "version": 1,
        "aliases": ["a"],
        "maker": "Zoho",
    }
    text = json.dumps(record, indent=indent).replace("\n", end or "\n") + end
    (directory / NAME).write_bytes(text.encode())
    assert members(directory, NAME) == record
    write(directory, NAME, members(directory, NAME), members(directory, NAME))
    written = (directory / NAME).read_text(encoding="utf-8")
    assert json.loads(written) == record
    assert list(json.loads(written)) == list(record)
    assert written.startswith('{\n  "name": "Zoho \u2013 \u201cCRM\u201d",\n  "version": 1,\n')


def test_what_is_no_good_file_is_not_written(directory: Path) -> None:
    """A command that would write a mistake says so instead."""
    before = (directory / NAME).read_bytes()
    with pytest.raises(click.ClickException, match=r'was left .* the file lacks "name"'):
        write(directory, NAME, {"version": 1}, members(directory, NAME))
    assert (directory / NAME).read_bytes() == before


def test_a_file_in_need_of_repair_is_not_edited(directory: Path) -> None:
    """First a file is mended by hand, then a command may write to it."""
    (directory / NAME).write_text("{", encoding="utf-8")
    with pytest.raises(click.ClickException, match=r"Mend this first: products/zoho-crm.json:1:2"):
        members(directory, NAME)
    with pytest.raises(click.ClickException, match="is not there"):
        members(directory, "products/none.json")


def test_the_mode_of_a_file_is_kept(directory: Path) -> None:
    """Whoever could read a file still can."""
    (directory / NAME).chmod(0o640)
    write(directory, NAME, members(directory, NAME), members(directory, NAME))
    assert (directory / NAME).stat().st_mode & 0o777 == 0o640


@needs_root
def test_the_owner_of_a_file_is_kept(directory: Path) -> None:
    """What root edits stays the file of the user whom the service runs as."""
    os.chown(directory / NAME, 54_321, 12_345)
    write(directory, NAME, members(directory, NAME), members(directory, NAME))
    status = (directory / NAME).stat()
    assert (status.st_uid, status.st_gid) == (54_321, 12_345)
