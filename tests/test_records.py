"""Records of data files: what each field takes, and what an unwritten one means."""

from typing import Any

import msgspec
import pytest

from store.records import Assistant, Category, Problem, Product, Site, Withheld
from store.text import is_slug


def takes(kind: type[Any], **fields: Any) -> bool:
    """Whether a record of this kind may say this."""
    try:
        msgspec.convert({"version": 1, **fields}, kind)
    except msgspec.ValidationError:
        return False
    return True


@pytest.mark.parametrize("slug", ["a", "crm-software", "3d-printer", "x" * 100])
def test_slugs(slug: str) -> None:
    """Lower-case words joined by single hyphens are slugs, in files as in addresses."""
    assert is_slug(slug)
    assert takes(Product, name="x", not_same_as=[slug])


@pytest.mark.parametrize(
    "slug", ["", "A", "a--b", "-a", "a-", "a b", "a\n", "a/b", "..", "\u00e4", "\uff41", "x" * 101]
)
def test_what_is_no_slug(slug: str) -> None:
    """Nothing else is, a trailing line feed included."""
    assert not is_slug(slug)
    assert not takes(Product, name="x", not_same_as=[slug])


@pytest.mark.parametrize(
    "title", ["Best CRM", "\u00c9t\u00e9", "C++ & C#", "\U0001f600", "x" * 200]
)
def test_lines(title: str) -> None:
    """A line is any visible text that stays on one line."""
    assert takes(Category, title=title, question="?")


@pytest.mark.parametrize(
    "title",
    [
        "",
        " ",
        " x",
        "x ",
        "x\n",
        "a\nb",
        "a\tb",
        "a\0b",
        "a\u2028b",
        "a\u202eb",
        "a\u200bb",
        "a\u00adb",
        "a\u034fb",
        "a\u2800b",
        "a\ufe00b",
        "a\U000e0041b",
        "x" * 201,
    ],
)
def test_what_is_no_line(title: str) -> None:
    """Blank text, space around it, line ends and characters nobody sees are refused."""
    assert not takes(Category, title=title, question="?")


@pytest.mark.parametrize(
    ("domain", "good"),
    [
        ("zoho.com", True),
        ("a.b-c.example", True),
        ("xn--mnchen-3ya.de", True),
        ("Zoho.com", False),
        ("https://zoho.com", False),
        ("zoho.com/crm", False),
        ("zoho.com\n", False),
        ("localhost", False),
        ("127.0.0.1", False),
        ("-a.com", False),
    ],
)
def test_domains(domain: str, *, good: bool) -> None:
    """A domain is bare, lower-case and public in form."""
    assert takes(Product, name="x", domain=domain) is good


def test_a_key_never_stands_where_its_name_belongs() -> None:
    """What looks like an API key is no name of a variable."""
    good = {"name": "A", "api": "chat", "key_env": "OPENAI_API_KEY"}
    assert msgspec.convert(good, Assistant).key_env == "OPENAI_API_KEY"
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({**good, "key_env": "sk-proj-1"}, Assistant)


def test_poll_ids_are_sixteen_hex_digits() -> None:
    """Only an id can be withheld."""
    withholding = {"reason": "x", "date": "2026-11-20"}
    assert takes(Withheld, withheld={"0123456789abcdef": withholding})
    assert not takes(Withheld, withheld={"0123456789ABCDEF": withholding})


def test_what_is_not_written_has_the_documented_default() -> None:
    """A file may say only what is particular to it."""
    site = msgspec.convert({"version": 1, "name": "x"}, Site)
    assert (site.poll_every_days, site.stale_after_days, site.drop_after_days) == (7, 30, 90)
    assert (site.samples_per_round, site.samples_at_first) == (1, 1)
    assert (site.licence, site.sample, site.base_url) == ("CC BY 4.0", False, None)
    category = msgspec.convert({"version": 1, "title": "Best VPN", "question": "?"}, Category)
    assert category.subject == "VPN"


def test_unknown_keys_are_refused() -> None:
    """A typing mistake is never silently ignored."""
    assert not takes(Category, title="x", question="?", titel="x")


def test_a_problem_is_always_one_line_that_can_be_sent() -> None:
    """Whatever stands in a file or its name, a problem can be logged, printed and encoded."""
    problem = Problem(
        "categories/\udcff\n.json", 1, 2, 'unknown key "\ud83d\u202e\r\n\x1b[1m\u00e9"'
    )
    assert str(problem) == (
        'categories/\\udcff\\n.json:1:2: unknown key "\\ud83d\\u202e\\r\\n\\x1b[1m\u00e9"'
    )
    str(problem).encode()
