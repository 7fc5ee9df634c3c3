"""``flask init``: a directory that can be served and polled at once."""

from pathlib import Path

import pytest
from builders import app_over, output

from store.files import Files
from store.settings import SHIPPED_DATA

SHIPPED = sorted(path.stem for path in (SHIPPED_DATA / "categories").iterdir())


def init(*arguments: str, exit_code: int = 0) -> str:
    """All that the command says; it needs no data."""
    return output(Path("nowhere"), "init", *arguments, exit_code=exit_code)


def test_init_says_where_it_cannot_write(tmp_path: Path) -> None:
    """A place that cannot be written is one sentence."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    refusal = init(str(tmp_path / "file" / "mine"), exit_code=1)
    assert "cannot be written: Not a directory" in refusal


@pytest.mark.parametrize(
    ("arguments", "slugs"),
    [
        ([], SHIPPED),
        (["--category", "vpn"], ["vpn"]),
        (["--category", "vpn", "--category", "crm-software", "--category", "vpn"],
         ["crm-software", "vpn"]),
        (["--empty"], []),
    ],
)  # fmt: skip
def test_init_begins_with_the_categories_that_are_wished_for(
    tmp_path: Path, arguments: list[str], slugs: list[str]
) -> None:
    """All, only those, or none; nothing is wrong with such a directory and it is served.

    It has four assistants of real providers, and no history.
    """
    directory = tmp_path / "mine"
    report = init(str(directory), *arguments)
    assert f"with {len(slugs):,} categor" in report
    assert ("Add a first category" in report) == (not slugs)
    assert sorted(path.stem for path in (directory / "categories").iterdir()) == slugs
    catalogue = Files(directory).scan()
    assert catalogue.problems == ()
    assert sorted(catalogue.categories) == slugs
    assert len(catalogue.assistants) == 4
    assert all(a.api != "sample" and a.key_env for a in catalogue.assistants)
    assert not list((directory / "history").iterdir())
    listed = [part.categories for topic in catalogue.topics for part in topic.parts]
    assert {slug for held in listed for slug in held} == set(slugs)
    client = app_over(directory).test_client()
    assert client.get("/healthz").get_json()["status"] == "ok"
    assert client.get("/").status_code == 200
    output(directory, "check")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--category", "CRM-Software"], 'slug "CRM-Software". Closest: crm-software'),
        (["--category", "vpn", "--empty"], "Say --category or --empty, not both."),
    ],
)
def test_init_makes_nothing_of_a_wish_that_it_cannot_grant(
    tmp_path: Path, arguments: list[str], sentence: str
) -> None:
    """An unknown slug, or a contradiction, is one sentence and leaves no directory."""
    assert sentence in init(str(tmp_path / "mine"), *arguments, exit_code=2)
    assert not (tmp_path / "mine").exists()


def test_the_next_steps_can_be_pasted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name with a space is quoted, and a relative one told in full."""
    monkeypatch.chdir(tmp_path)
    steps = init("my data", "--empty").splitlines()
    assert f"  DATA_DIR='{tmp_path}/my data' flask run" in steps
