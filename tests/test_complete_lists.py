"""Lists that have to know all levels, members or addresses: nothing new is forgotten in one.

What a list leaves out on purpose stands here.
"""

import json
import re
from http import HTTPStatus
from pathlib import Path
from typing import get_args, get_type_hints

import msgspec
import pytest
from flask import Flask

from store.line_codec import SHOWN_OF_WITHHELD
from store.polls import answers, due, secrets
from store.polls.providers import WIRE_FORMATS
from store.publishing import dataset, manifest
from store.rankings.certainty import Level
from store.rankings.sentences import LEVELS, number_in_words
from store.records import Assistant, FailureKind, Poll, Site
from store.web.history import POLL_COLUMNS
from store.web.mcp.tools import TOOLS
from store.web.pages import discovery, pictures
from store.web.rendering import TEMPLATES

ROOT = Path(__file__).parent.parent


def test_every_level_has_words_a_colour_and_a_turn() -> None:
    """What readers are told of a level, on a badge too, and when its category is asked again."""
    levels = set(get_args(Level))
    assert LEVELS.keys() == pictures.LEVEL_COLOURS.keys() == levels
    assert {due.CLEAR, *due.URGENCY} == levels


OWN_OF_SITE = {"schema", "version", "base_url", "daily_usd", "hosts"}
OWN_OF_ASSISTANT = {
    "base_url", "model", "key_env", "structured", "max_output_tokens", "concurrency", "rpm",
    "usd_per_million_input", "usd_per_million_output", "usd_per_thousand_searches", "batch",
    "batch_price_factor", "tier", "extra",
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "published", "own"),
    [
        (Site, dataset.PUBLISHED_OF_SITE, OWN_OF_SITE),
        (Assistant, dataset.PUBLISHED_OF_ASSISTANT, OWN_OF_ASSISTANT),
    ],
)
def test_every_member_is_published_or_an_operators_own(
    kind: type[Site | Assistant], published: tuple[str, ...], own: set[str]
) -> None:
    """What answers follow from is in the dataset, or `flask verify` could not make them again."""
    assert {*published} | own == {*kind.__struct_fields__}
    assert own.isdisjoint(published)


TEXTS = {
    "pick", "ranking", "reason", "missed", "caveat", "error", "failure", "notes", "withheld",
}  # fmt: skip
"""Members that a withheld poll does not show, or says of itself."""


def test_every_member_of_a_poll_is_shown_or_hidden_when_it_is_withheld() -> None:
    """Nobody's words are shown because a member is new."""
    assert {*SHOWN_OF_WITHHELD} | TEXTS == {*Poll.__struct_fields__}
    assert TEXTS.isdisjoint(SHOWN_OF_WITHHELD)


def test_every_member_of_a_poll_has_a_column() -> None:
    """In CSV all that is flat but what only proves the line; in the dataset everything."""
    in_csv = {"v", "pick", "ranking", "missed", "notes", "usage", "cooldownUntil", "crc"}
    assert {*Poll.__struct_encode_fields__} - {*POLL_COLUMNS} == in_csv
    columns = json.loads((TEMPLATES / "tables.json").read_text(encoding="utf-8"))["polls"][
        "columns"
    ]
    assert {*Poll.__struct_fields__} - columns.keys() == {"v", "usage", "cooldown_until"}


def test_every_kind_of_failure_says_how_soon_it_is_retried() -> None:
    """What says something of the question waits for the regular interval."""
    of_the_question = {"refusal", "empty", "truncated", "parse", "schema"}
    assert due.RETRIED_SOONER | of_the_question | {"interrupted"} == {*get_args(FailureKind)}


def test_every_format_has_a_provider_whose_path_is_known() -> None:
    """Whoever copies the whole address into base_url is told what to take off."""
    assert {*get_args(get_type_hints(Assistant)["api"])} == {*WIRE_FORMATS, "sample"}
    for api, provider in WIRE_FORMATS.items():
        entry = {"name": "A", "api": api, "base_url": "https://ai.example/v1", "model": "m"}
        asked = msgspec.convert(entry, Assistant)
        url = provider.build_request(asked, answers.prompt("Which?"), None).url
        assert secrets.API_PATH.search(url), url


def test_every_format_is_told_where_people_read_of_them() -> None:
    """In the column of the dataset and in the README of the commands."""
    tables = json.loads((TEMPLATES / "tables.json").read_text(encoding="utf-8"))
    told = tables["instruments"]["columns"]["api"]["about"].partition(": ")[2].split(", ")
    assert told == [*WIRE_FORMATS]
    commands = (ROOT / "store/cli/README.md").read_text(encoding="utf-8")
    assert [api for api in WIRE_FORMATS if f"`{api}`" not in commands] == []


def test_every_page_without_a_slug_is_in_the_site_map(small: Flask) -> None:
    """Crawlers find it."""
    pages = set()
    for rule in small.url_map.iter_rules():
        if "GET" in (rule.methods or ()) and "<" not in rule.rule:
            answer = small.test_client().get(rule.rule)
            if answer.status_code == 200 and answer.mimetype == "text/html":
                pages.add(rule.rule.removeprefix("/"))
    assert pages == {*discovery.PAGES}


def test_every_tool_is_told_where_people_read_of_them() -> None:
    """In the documentation and the README by name, in the map of the code by number."""
    for file in (TEMPLATES / "docs.html", ROOT / "README.md"):
        text = file.read_text(encoding="utf-8")
        assert [name for name in TOOLS if name not in text] == []
    told = (ROOT / "store/README.md").read_text(encoding="utf-8")
    assert f"the {number_in_words(len(TOOLS))} tools" in told


def test_every_description_is_told_in_the_card() -> None:
    """Who opens the dataset's folder reads there which file is for which program."""
    card = (TEMPLATES / "dataset.md").read_text(encoding="utf-8")
    assert [n for n in manifest.DESCRIPTIONS if n != manifest.CARD and f"`{n}`" not in card] == []


def test_errors_of_what_programs_read_are_problems(small: Flask) -> None:
    """Only where people read is an error a page; all else is in ``routes.MACHINES``."""
    client, shown = small.test_client(), set()
    for rule in small.url_map.iter_rules():
        if "GET" in (rule.methods or ()):
            answer = client.get(re.sub("<[^>]*>", "nope", rule.rule))
            if answer.status_code >= HTTPStatus.BAD_REQUEST and answer.mimetype == "text/html":
                shown.add(rule.rule)
    pages = (
        "best/<slug>",
        "labs/<slug>",
        "topics/<slug>",
        "product/<slug>",
        "product/<slug>/polls",
    )
    assert shown == {f"/{path}" for path in pages}
