"""``flask init``: a directory that can be served and polled at once."""

from pathlib import Path

import pytest
from builders import app_over
from flask.testing import FlaskCliRunner

from store.files import Files
from store.settings import SHIPPED_DATA


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


@pytest.mark.parametrize(
    "name", ["site.json", "models.json", "synonyms.json", "topics.json", "words.json"]
)
def test_init_leaves_alone_what_is_there(runner: FlaskCliRunner, tmp_path: Path, name: str) -> None:
    """A directory that holds any data file is refused and not touched."""
    directory = tmp_path / "mine"
    directory.mkdir()
    (directory / name).write_text("mine", encoding="utf-8")
    done = runner.invoke(args=["init", str(directory)])
    assert done.exit_code == 1
    assert f"holds {name}: nothing was written" in done.output
    assert [path.name for path in directory.iterdir()] == [name]
    assert (directory / name).read_text(encoding="utf-8") == "mine"


def test_init_says_where_it_cannot_write(runner: FlaskCliRunner, tmp_path: Path) -> None:
    """A place that cannot be written is one sentence."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    done = runner.invoke(args=["init", str(tmp_path / "file" / "mine")])
    assert done.exit_code == 1
    assert "cannot be written: Not a directory" in done.output


@pytest.mark.parametrize(
    ("arguments", "slugs"),
    [
        (["--category", "vpn"], ["vpn"]),
        (["--category", "vpn", "--category", "crm-software", "--category", "vpn"],
         ["crm-software", "vpn"]),
        (["--empty"], []),
    ],
)  # fmt: skip
def test_init_begins_with_the_categories_that_are_wished_for(
    runner: FlaskCliRunner, tmp_path: Path, arguments: list[str], slugs: list[str]
) -> None:
    """Only those, or none; nothing is wrong with such a directory and it is served."""
    directory = tmp_path / "mine"
    done = runner.invoke(args=["init", str(directory), *arguments])
    assert done.exit_code == 0, done.output
    assert f"with {len(slugs)} categor" in done.output
    assert ("Add a first category" in done.output) == (not slugs)
    assert sorted(path.stem for path in (directory / "categories").iterdir()) == slugs
    catalogue = Files(directory).scan()
    assert catalogue.problems == ()
    assert sorted(catalogue.categories) == slugs
    listed = [part.categories for topic in catalogue.topics for part in topic.parts]
    assert {slug for held in listed for slug in held} == set(slugs)
    client = app_over(directory).test_client()
    assert client.get("/healthz").get_json()["status"] == "ok"
    assert client.get("/").status_code == 200
    assert app_over(directory).test_cli_runner().invoke(args=["check"]).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--category", "CRM-Software"], 'slug "CRM-Software". Closest: crm-software'),
        (["--category", "vpn", "--empty"], "Say --category or --empty, not both."),
    ],
)
def test_init_makes_nothing_of_a_wish_that_it_cannot_grant(
    runner: FlaskCliRunner, tmp_path: Path, arguments: list[str], sentence: str
) -> None:
    """An unknown slug, or a contradiction, is one sentence and leaves no directory."""
    done = runner.invoke(args=["init", str(tmp_path / "mine"), *arguments])
    assert done.exit_code == 2
    assert sentence in done.output
    assert not (tmp_path / "mine").exists()


def test_init_does_not_fill_the_checkout(
    runner: FlaskCliRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``flask init .`` in the checkout would mix data with the program."""
    root = SHIPPED_DATA.parent
    monkeypatch.chdir(root)
    before = set(root.iterdir())
    done = runner.invoke(args=["init", "."])
    assert done.exit_code == 1
    assert "holds README.md: nothing was written" in done.output
    assert set(root.iterdir()) == before


def test_the_next_steps_can_be_pasted(
    runner: FlaskCliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name with a space is quoted, and a relative one told in full."""
    monkeypatch.chdir(tmp_path)
    done = runner.invoke(args=["init", "my data", "--empty"])
    assert f"  DATA_DIR='{tmp_path}/my data' flask run" in done.output.splitlines()
