"""``flask search`` says what a search finds."""

import logging
from pathlib import Path
from typing import Any

import pytest
from builders import answered, output, write_data

from store.search.meaning import Meaning, SentenceModel


def test_hits_are_told_with_their_score_and_label(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A line for each hit, and a sentence where there is none; no word of a model nobody asked for.

    None is installed here, nor what it needs.
    """
    monkeypatch.setattr(SentenceModel, "version", lambda: "")
    monkeypatch.delattr(Meaning, "_tabulate")
    categories: dict[str, dict[str, Any]] = {
        "crm-software": {"title": "Best CRM software"},
        "humidifier": {"title": "Best humidifier", "situations": ["the air is so dry it hurts"]},
    }
    polls = [answered("A", ["Zoho"], slug=slug) for slug in categories]
    data = write_data(tmp_path / "data", categories=categories, polls=polls)
    for query, line in {
        "crm software": "categories  crm-software: 1.000, exact\n",
        "zoho": "brands      zoho: 1.000, exact\n",
        "dry air": "related     humidifier\n",
        "qwzrtpk": "Nothing fits.\n",
    }.items():
        assert output(data, "search", query) == f"Data: {data}\n{line}"
    for query in ("", " \t", "x" * 201):
        assert "Give a query of 1 to 200 char" in output(data, "search", query, exit_code=2)
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
