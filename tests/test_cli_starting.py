"""``flask init``: a directory that can be served and polled at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from builders import app_over

from store.files import Files

if TYPE_CHECKING:
    from pathlib import Path

    from flask.testing import FlaskCliRunner


def test_init_fills_a_directory_that_is_good(runner: FlaskCliRunner, tmp_path: Path) -> None:
    """What it writes has no problem, four assistants of real providers, and no history."""
    directory = tmp_path / "mine"
    done = runner.invoke(args=["init", str(directory)])
    assert done.exit_code == 0, done.output
    assert f"DATA_DIR={directory} flask run" in done.output
    catalogue = Files(directory).scan()
    assert catalogue.problems == ()
    assert len(catalogue.assistants) == 4
    assert all(a.api != "sample" and a.key_env for a in catalogue.assistants)
    assert catalogue.categories
    assert not list((directory / "history").iterdir())
    assert app_over(directory).test_client().get("/healthz").get_json()["status"] == "ok"


@pytest.mark.parametrize("name", ["site.json", "models.json", "synonyms.json", "words.json"])
def test_init_leaves_alone_what_is_there(runner: FlaskCliRunner, tmp_path: Path, name: str) -> None:
    """A directory that holds any data file is refused and not touched."""
    directory = tmp_path / "mine"
    directory.mkdir()
    (directory / name).write_text("mine", encoding="utf-8")
    done = runner.invoke(args=["init", str(directory)])
    assert done.exit_code == 1
    assert f"already holds data ({name}); name an empty directory" in done.output
    assert [path.name for path in directory.iterdir()] == [name]
    assert (directory / name).read_text(encoding="utf-8") == "mine"


def test_init_says_where_it_cannot_write(runner: FlaskCliRunner, tmp_path: Path) -> None:
    """A place that cannot be written is one sentence."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    done = runner.invoke(args=["init", str(tmp_path / "file" / "mine")])
    assert done.exit_code == 1
    assert "cannot be written: Not a directory" in done.output
