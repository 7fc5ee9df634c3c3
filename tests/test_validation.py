"""Sentences about mistakes: all of them at once, in words a curator understands."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.data_file import load
from store.records import FOLDERS, SINGLE

if TYPE_CHECKING:
    from pathlib import Path


def problems(directory: Path, text: str, name: str = "categories/x.json") -> list[str]:
    """What is said about a text as a data file."""
    path = directory / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    loaded = load(directory, name)
    assert loaded is not None
    return [str(problem).removeprefix(f"{name}:") for problem in loaded.problems]


def test_all_mistakes_of_a_file_are_told_at_once(tmp_path: Path) -> None:
    """Each wrong value is named at its own place, in one run."""
    text = """{
  "version": 1,
  "titel": "Best CRM",
  "question": " What? ",
  "topic": 5,
  "aliases": "crm",
  "nouns": ["", 7],
  "former_slugs": ["Old CRM", "crm\\n"]
}
"""
    assert problems(tmp_path, text) == [
        '1:1: the file lacks "title"',
        '3:3: unknown key "titel": did you mean "title"?',
        (
            "4:3: question must be one line of text, "
            "without spaces around it or invisible characters"
        ),
        "5:3: topic must be text in double quotes or null",
        "6:3: aliases must be a list in [ ]",
        (
            "7:13: nouns[0] must be one line of text, "
            "without spaces around it or invisible characters"
        ),
        "7:17: nouns[1] must be text in double quotes",
        (
            "8:20: former_slugs[0] must be a slug: "
            "lower-case letters a-z, digits and single hyphens between them"
        ),
        (
            "8:31: former_slugs[1] must be a slug: "
            "lower-case letters a-z, digits and single hyphens between them"
        ),
    ]


@pytest.mark.parametrize(
    ("name", "fields", "sentence"),
    [
        (
            "models.json",
            {"models": [{"name": "A", "api": "chat", "batch_price_factor": 0}]},
            "models[0].batch_price_factor must be more than 0",
        ),
        (
            "site.json",
            {"name": "x", "poll_every_days": 0},
            "poll_every_days must be at least 1",
        ),
        (
            "site.json",
            {"name": "x", "samples_at_first": 6},
            "samples_at_first must be at most 5",
        ),
        (
            "site.json",
            {"name": "x", "stale_after_days": 9999},
            "stale_after_days must be at most 3,650",
        ),
        ("site.json", {"name": "x", "sample": "yes"}, "sample must be true or false"),
        (
            "site.json",
            {"name": "x", "base_url": "rankings.example"},
            (
                "base_url must be an address such as https://rankings.example, without ?, # or @, "
                "in which keys could be pasted"
            ),
        ),
        ("site.json", {"name": "x" * 201}, "name has 201 characters; at most 200 are allowed"),
        (
            "models.json",
            {"models": [{"name": "A", "api": "chat", "structured": "jsno"}]},
            'models[0].structured must be one of "json_object", "json_schema", "prompt"',
        ),
        (
            "models.json",
            {"models": [{"name": "A", "api": "chat", "rpm": 1.5}]},
            "models[0].rpm must be a whole number",
        ),
        (
            "models.json",
            {"models": [{"name": "A"}]},
            'models[0] lacks "api"',
        ),
        ("models.json", {"models": []}, "models needs at least 1 entry, not 0"),
        (
            "models.json",
            {"models": [{"name": "A", "api": "sample", "usd_per_million_input": 1e308}]},
            "models[0].usd_per_million_input must be at most 1,000,000",
        ),
        (
            "products/x.json",
            {"name": "X", "domain": "https://x.example/"},
            (
                "domain must be a bare domain in lower case such as "
                "zoho.com, without https:// and path"
            ),
        ),
        (
            "withheld.json",
            {"withheld": {"12": {"reason": "x", "date": "2026-01-01"}}},
            "this key must be the id of a poll: 16 hex digits",
        ),
        (
            "withheld.json",
            {"withheld": {"0123456789abcdef": {"reason": "x", "date": "2026-02-30"}}},
            "withheld.0123456789abcdef.date must be a date such as 2026-11-20",
        ),
        ("synonyms.json", {"synonyms": [["a"]]}, "synonyms[0] needs at least 2 entries, not 1"),
    ],
)
def test_a_wrong_value_is_told_in_words(
    tmp_path: Path, name: str, fields: dict[str, object], sentence: str
) -> None:
    """What is wrong, where, and what would be right: no pattern, no program's word."""
    (said,) = problems(tmp_path, json.dumps({"version": 1, **fields}, indent=2), name)
    assert said.split(": ", 1)[1] == sentence
    assert not re.search(r"[\^$\\]|`|str\b", said)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda parts: st.lists(parts, max_size=3) | st.dictionaries(st.text(max_size=5), parts),
    max_leaves=6,
)


@given(st.sampled_from([*SINGLE, *FOLDERS]), st.data())
def test_whatever_is_refused_is_explained(
    tmp_path_factory: pytest.TempPathFactory, place: str, data: st.DataObject
) -> None:
    """Any JSON at all either loads as a record or is explained in at least one sentence."""
    kind = SINGLE.get(place) or FOLDERS[place]
    name = place if place in SINGLE else f"{place}/x.json"
    keys = [field.encode_name for field in msgspec.structs.fields(kind)]
    drawn = data.draw(st.dictionaries(st.sampled_from(keys), ANYTHING) | ANYTHING)
    record = {"version": 1, **drawn} if isinstance(drawn, dict) else drawn
    directory = tmp_path_factory.getbasetemp() / "any"
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record), encoding="utf-8")
    loaded = load(directory, name)
    assert loaded is not None
    assert (loaded.record is None) == bool(loaded.problems)
