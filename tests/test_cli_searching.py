"""``flask search`` says what a search finds."""

from pathlib import Path
from typing import Any

import pytest
from builders import answered, app_over, write_data
from flask import Flask


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Flask:
    """Two categories, one of them with situations, and a product in both."""
    categories: dict[str, dict[str, Any]] = {
        "crm-software": {"title": "Best CRM software"},
        "humidifier": {"title": "Best humidifier", "situations": ["the air is so dry it hurts"]},
    }
    polls = [answered("A", ["Zoho"], slug=slug) for slug in categories]
    path: Path = tmp_path_factory.mktemp("searching") / "data"
    return app_over(write_data(path, categories=categories, polls=polls))


def said(app: Flask, *arguments: str) -> str:
    """What the command prints."""
    done = app.test_cli_runner().invoke(args=["search", *arguments])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_hits_are_told_with_their_score_and_label(world: Flask) -> None:
    """A line for each hit, and a sentence where there is none."""
    assert said(world, "crm software") == "categories  crm-software: 1.000, exact\n"
    assert said(world, "zoho") == "brands      zoho: 1.000, exact\n"
    assert said(world, "dry air") == "related     humidifier\n"
    assert said(world, "qwzrtpk") == "Nothing fits.\n"
