"""``flask check``: every problem of every file in one run, where it stands and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from broken import write_one_of_each
from builders import app_over, write_json

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """One good file of every kind."""
    return write_one_of_each(tmp_path / "data")


def check(directory: Path, *args: str) -> Result:
    """Run the command over a data directory."""
    return app_over(directory).test_cli_runner().invoke(args=["check", *args])


def test_good_data_is_called_good(directory: Path) -> None:
    """Without an error the exit code is 0."""
    done = check(directory)
    assert done.exit_code == 0
    assert done.stderr.startswith("0 errors, 0 warnings")


def test_an_alias_claimed_twice_is_named_in_both_places(directory: Path) -> None:
    """Each of two product files that claim a name is told of the other."""
    pipe = {"version": 1, "name": "Pipe", "aliases": ["x", "ZOHO\u2122"]}
    write_json(directory / "products" / "pipe.json", pipe)
    done = check(directory)
    assert done.exit_code == 1
    assert done.stdout.splitlines() == [
        (
            'products/pipe.json:6:5: "ZOHO\u2122" is also claimed by products/zoho-crm.json; '
            "until one gives it up it belongs to neither"
        ),
        (
            'products/zoho-crm.json:5:5: "Zoho" is also claimed by products/pipe.json; '
            "until one gives it up it belongs to neither"
        ),
    ]


def test_damaged_history_is_named_by_line(directory: Path) -> None:
    """A line of history that was changed by hand is reported and fails the check."""
    path = directory / "history" / "vpn.jsonl"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("Pipe", "Pope", 1), encoding="utf-8")
    done = check(directory)
    assert done.exit_code == 1
    assert done.stdout.startswith("history/vpn.jsonl:1:1: a damaged record is left out")


def test_an_unusable_directory_is_one_sentence(directory: Path) -> None:
    """A data directory that is not there is said to be so."""
    app = app_over(directory)
    directory.rename(directory.with_name("away"))
    done = app.test_cli_runner().invoke(args=["check"])
    assert done.exit_code == 1
    assert "does not exist; `flask init" in done.output
