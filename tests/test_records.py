"""Records of data files: what each field takes, and what an unwritten one means."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from store.records import Category, Models, Problem, Product, Site, Withheld
from store.text import is_slug

INVISIBLE = "\n\t\0\u2028\u202e\u200b\u00ad\u034f\u2800\ufe00\U000e0041"
WITHHOLDING = {"reason": "x", "date": "2026-11-20"}
FIELDS: dict[str, tuple[type[Any], Callable[[str], dict[str, Any]], list[str], list[str]]] = {
    "lower-case words joined by single hyphens": (
        Product,
        lambda slug: {"name": "x", "not_same_as": [slug]},
        ["a", "crm-software", "3d-printer", "x" * 100],
        ["", "A", "a--b", "-a", "a-", "a b", "a\n", "a/b", "..", "\u00e4", "\uff41", "x" * 101],
    ),
    "visible text on one line": (
        Category,
        lambda title: {"title": title, "question": "?"},
        ["Best CRM", "\u00c9t\u00e9", "C++ & C#", "\U0001f600", "x" * 200],
        ["", " ", " x", "x ", "x\n", *(f"a{char}b" for char in INVISIBLE), "x" * 201],
    ),
    "a bare domain": (
        Product,
        lambda domain: {"name": "x", "domain": domain},
        ["zoho.com", "a.b-c.example", "xn--mnchen-3ya.de"],
        [
            "Zoho.com",
            "https://zoho.com",
            "zoho.com/crm",
            "zoho.com\n",
            "localhost",
            "127.0.0.1",
            "-a.com",
        ],
    ),
    "the name of a variable, not the key": (
        Models,
        lambda name: {"models": [{"name": "A", "api": "chat", "key_env": name}]},
        ["OPENAI_API_KEY"],
        ["sk-proj-1"],
    ),
    "the id of a poll": (
        Withheld,
        lambda poll: {"withheld": {poll: WITHHOLDING}},
        ["0123456789abcdef"],
        ["0123456789ABCDEF"],
    ),
}


@pytest.mark.parametrize(("kind", "fields", "good", "bad"), FIELDS.values(), ids=FIELDS)
def test_what_a_field_takes(
    kind: type[Any], fields: Callable[[str], dict[str, Any]], good: list[str], bad: list[str]
) -> None:
    """This and nothing else, a trailing line feed included."""
    for value in good:
        msgspec.convert({"version": 1, **fields(value)}, kind)
    for value in bad:
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert({"version": 1, **fields(value)}, kind)


def test_addresses_have_the_slugs_that_files_take() -> None:
    """One rule for both."""
    _, _, good, bad = FIELDS["lower-case words joined by single hyphens"]
    assert [slug for slug in (*good, *bad) if is_slug(slug)] == good


def test_what_is_not_written_has_the_documented_default() -> None:
    """A file may say only what is particular to it."""
    site = msgspec.convert({"version": 1, "name": "x"}, Site)
    assert (site.poll_every_days, site.stale_after_days, site.drop_after_days) == (7, 30, 90)
    assert (site.samples_per_round, site.samples_at_first) == (1, 1)
    assert (site.licence, site.sample, site.base_url) == ("CC BY 4.0", False, None)
    category = msgspec.convert({"version": 1, "title": "Best VPN", "question": "?"}, Category)
    assert category.subject == "VPN"


def test_a_problem_is_always_one_line_that_can_be_sent() -> None:
    """Whatever stands in a file or its name, a problem can be logged, printed and encoded."""
    problem = Problem(
        "categories/\udcff\n.json", 1, 2, 'unknown key "\ud83d\u202e\r\n\x1b[1m\u00e9"'
    )
    assert str(problem) == (
        'categories/\\udcff\\n.json:1:2: unknown key "\\ud83d\\u202e\\r\\n\\x1b[1m\u00e9"'
    )
    str(problem).encode()
