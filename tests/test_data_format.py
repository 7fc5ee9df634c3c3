"""A service says which version wrote its data, and leaves alone what it does not know."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import pytest
from builders import answered, app_over, command, write_data

from store import data_format
from store.web.openapi import VERSION

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_data(tmp_path / "data", polls=[answered("A", ["X"])])


def write(data: Path, format_: int, version: str) -> None:
    """As if this version had served from it."""
    (data / ".last-good").mkdir(exist_ok=True)
    text = f'{{"format": {format_}, "version": "{version}"}}'
    (data / ".last-good" / data_format.NAME).write_text(text)


def test_an_upgrade_is_told(data: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The first start of a new version says what wrote the data and what is to be done; once."""
    write(data, 1, "1.3.0")
    with caplog.at_level("INFO"):
        app_over(data)
        app_over(data)
    told = [r.getMessage() for r in caplog.records if "last written by" in r.getMessage()]
    expected = "The data was last written by version 1.3.0 in format 1; this is "
    assert told == [f"{expected}{VERSION} with format 1: nothing needs to change."]


def test_a_newer_format_is_left_alone(data: Path) -> None:
    """Neither a server nor a command that writes touches it; the sentence says what to do."""
    write(data, 2, "9.0.0")
    with pytest.raises(click.ClickException, match=r"version 9\.0\.0 in format 2.*Install 9\.0\.0"):
        app_over(data)
    done = command(data, "poll", "crm-software")
    assert done.exit_code == 1
    assert "Install 9.0.0 or newer" in done.output
    assert data_format.written_by(data) == data_format.WrittenBy(2, "9.0.0")


def test_a_data_directory_that_nobody_served_is_taken(data: Path) -> None:
    """Nothing is said of the first start; what is noted names format and version."""
    app_over(data)
    assert data_format.written_by(data) == data_format.WrittenBy(data_format.FORMAT, VERSION)
    (data / ".last-good" / data_format.NAME).write_text("?")
    app_over(data)
    assert data_format.written_by(data) == data_format.WrittenBy(data_format.FORMAT, VERSION)
