"""Sentences about mistakes in a data file: where each stands, in words a curator understands."""

import json
import math
import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.data_file import decode, line_and_column, parse
from store.records import FOLDERS, SINGLE

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
)
VALUES = st.recursive(
    SCALARS,
    lambda parts: (
        st.lists(parts, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=4), parts)
    ),
    max_leaves=12,
)


@given(value=VALUES, indent=st.sampled_from([None, 0, 2]), ascii_only=st.booleans())
def test_good_json_is_read_as_everybody_reads_it(
    *, value: object, indent: int | None, ascii_only: bool
) -> None:
    """Any JSON value, however it is laid out, is read without a slip and with its offsets."""
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    parsed = parse(text)
    assert (parsed.value, parsed.mistakes) == (value, {})
    if isinstance(value, dict):
        for key in value:
            at = parsed.offsets[(key,)]
            assert json.JSONDecoder().raw_decode(text, at)[0] == key


@given(st.text(max_size=60) | st.text('{}[]",:0159.eE-+ntfu\\ \n/#*', max_size=40))
def test_what_is_taken_for_good_json_is_good_json(text: str) -> None:
    """Nothing raises, and a text without a slip is one that the standard reader takes too."""
    parsed = parse(text)
    if not parsed.mistakes:
        value = json.loads(text)
        assert value == parsed.value
        assert not (isinstance(value, float) and not math.isfinite(value))
    assert all(0 <= offset <= len(text) for offset in parsed.mistakes)


def test_all_that_the_grammar_allows_is_found_at_once() -> None:
    """One reading finds several mistakes, so that a curator mends them in one go."""
    text = '{\n  "a": NaN,\n  "b": ["\\ud83d"],\n  "a": 1,\n  "c": {"a": 1, "a": 2}\n}'
    mistakes = parse(text).mistakes
    assert {line_and_column(text, offset): mistakes[offset] for offset in mistakes} == {
        (2, 8): "NaN is not a JSON number; write a number or null",
        (3, 9): "the text holds half a surrogate pair, which is not a character",
        (4, 3): "this key stands here again; it is already in line 2",
        (5, 17): "this key stands here again; it is already in line 5",
    }


@pytest.mark.parametrize(
    ("text", "offset", "message"),
    [
        ('{"a": 1, // mine\n "b": 2}', 9, "JSON has no comments; take this one out"),
        ('{"a": True}', 6, "JSON writes true, false and null, not True"),
        ('{"a": +Infinity}', 6, "+Infinity is not a JSON number; write a number or null"),
        ('{"a": 1 "b": 2}', 8, 'a "," is missing before this'),
        ('{"a": 1, }', 7, 'this "," is too many before "}"'),
        ('["a",]', 4, 'this "," is too many before "]"'),
        ('{"a":', 5, "the file ends too early: a bracket is not closed, or a value is missing"),
        ('{"a": 1\n', 8, "the file ends too early: a bracket is not closed, or a value is missing"),
        ('["a\tb"]', 3, "a raw control character; write an escape such as \\t in its place"),
        ("[1 2]", 3, 'a "," or a closing bracket is expected here'),
        ('{"a" 1}', 5, 'a ":" is missing between this key and its value'),
        ("{a: 1}", 1, "a key in double quotes is expected here"),
        ('{"a": yes}', 6, "a value is expected here; text stands in double quotes"),
        ("{} {}", 3, "there is more text after the end of the JSON value"),
        ('["\\q"]', 2, "this is not an escape; a backslash is written \\\\"),
        ('["a,\n1]', 1, "this text is not closed by a double quote on its line"),
        ('["a', 1, "this text is not closed by a double quote on its line"),
        ("\0\0", 0, "the file holds NUL bytes, as after a power cut; put it back from a copy"),
        ('["a\0', 3, "the file holds NUL bytes, as after a power cut; put it back from a copy"),
        ("\ufeff{}", 0, "the file starts with a byte order mark; save it as UTF-8 without one"),
    ],
)
def test_where_the_grammar_breaks_is_told_in_words(text: str, offset: int, message: str) -> None:
    """The first mistake in the grammar has its place, and a sentence that says what to do."""
    assert parse(text).mistakes == {offset: message}


@pytest.mark.parametrize("rest", ["", "]]]", "}", "x"])
def test_what_the_decoder_gives_up_on_is_told_whatever_follows(rest: str) -> None:
    """A number of thousands of digits, and nesting without end: told, and nothing raises."""
    many = "the file holds a number of thousands of digits"
    assert parse(f'{{"a": {"1" * 5000}{rest}').mistakes == {0: many}
    assert parse("[" * 100_000 + rest).mistakes == {0: "the file is nested too deep"}


def test_lines_and_columns_count_characters_from_one() -> None:
    """Places are those an editor shows; a character of many bytes is one column."""
    text = "\u00e4\u00f6\n\u20ac\nx"
    places = [line_and_column(text, offset) for offset in (0, 2, 3, 5, 6)]
    assert places == [(1, 1), (1, 3), (2, 1), (3, 1), (3, 2)]


def problems(text: str, name: str = "categories/x.json") -> list[str]:
    """What is said about a text as a data file."""
    loaded = decode(name, text.encode())
    return [str(problem).removeprefix(f"{name}:") for problem in loaded.problems]


def test_all_mistakes_of_a_file_are_told_at_once() -> None:
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
    line = "must be one line of text, without spaces around it or invisible characters"
    slug = "must be a slug: lower-case letters a-z, digits and single hyphens between them"
    assert problems(text) == [
        '1:1: the file lacks "title"',
        '3:3: unknown key: did you mean "title"?',
        f"4:3: question {line}",
        "5:3: topic must be text in double quotes or null",
        "6:3: aliases must be a list in [ ]",
        f"7:13: nouns[0] {line}",
        "7:17: nouns[1] must be text in double quotes",
        f"8:20: former_slugs[0] {slug}",
        f"8:31: former_slugs[1] {slug}",
    ]


MODEL = {"name": "A", "api": "chat"}
PLANTED = {"reason": "x", "date": "2026-02-30"}
WRONG = [
    ("models[0]", "batch_price_factor", 0, "must be more than 0"),
    ("models[0]", "structured", "jsno", 'must be one of "json_object", "json_schema", "prompt"'),
    ("models[0]", "rpm", 1.5, "must be a whole number"),
    ("models[0]", "usd_per_million_input", 1e308, "must be at most 1,000,000"),
    ("models.json", "models", [], "models needs at least 1 entry, not 0"),
    ("models.json", "models", [{"name": "A"}], 'models[0] lacks "api"'),
    ("site.json", "poll_every_days", 0, "must be at least 1"),
    ("site.json", "sample", "yes", "must be true or false"),
    ("site.json", "name", "x" * 201, "has 201 characters; at most 200 are allowed"),
    ("site.json", "base_url", "rankings.example", "must be an address such as https://"),
    ("products/x.json", "domain", "https://x.example/", "must be a bare domain in lower case"),
    ("withheld.json", "withheld", {"12": PLANTED}, "this key must be the id of a poll: 16 hex"),
    ("withheld.json", "withheld", {"0" * 16: PLANTED}, "must be a date such as 2026-11-20"),
    ("synonyms.json", "synonyms", [["a"]], "synonyms[0] needs at least 2 entries, not 1"),
]


@pytest.mark.parametrize(("name", "key", "value", "sentence"), WRONG)
def test_a_wrong_value_is_told_in_words(name: str, key: str, value: object, sentence: str) -> None:
    """What is wrong, where, and what would be right: no pattern, no program's word."""
    record = {"version": 1, key: value}
    if name == "models[0]":
        name, record = "models.json", {"version": 1, "models": [{**MODEL, key: value}]}
    sentences = problems(json.dumps(record, indent=2), name)
    assert [text for text in sentences if sentence in text], sentences
    assert not re.search(r"[\^$\\]|`|str\b", "".join(sentences))


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda parts: st.lists(parts, max_size=3) | st.dictionaries(st.text(max_size=5), parts),
    max_leaves=6,
)


@given(st.sampled_from([*SINGLE, *FOLDERS]), st.data())
def test_whatever_is_refused_is_explained(place: str, data: st.DataObject) -> None:
    """Any JSON at all either loads as a record or is explained in at least one sentence."""
    kind = SINGLE.get(place) or FOLDERS[place]
    keys = [field.encode_name for field in msgspec.structs.fields(kind)]
    drawn = data.draw(st.dictionaries(st.sampled_from(keys), ANYTHING) | ANYTHING)
    record = {"version": 1, **drawn} if isinstance(drawn, dict) else drawn
    name = place if place in SINGLE else f"{place}/x.json"
    loaded = decode(name, json.dumps(record).encode())
    assert (loaded.record is None) == bool(loaded.problems)
