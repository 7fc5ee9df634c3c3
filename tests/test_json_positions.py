"""Where things stand in a JSON text: read strictly, agreeing with everybody on good text."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.json_positions import line_and_column, parse

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
    assert parsed.complete
    assert parsed.issues == ()
    assert parsed.value == value
    if isinstance(value, dict):
        for key in value:
            at = parsed.offsets[(key,)]
            assert json.JSONDecoder().raw_decode(text, at)[0] == key


@given(st.text(max_size=60) | st.text('{}[]",:0159.eE-+ntfu\\ \n/#*', max_size=40))
def test_what_is_taken_for_good_json_is_good_json(text: str) -> None:
    """Nothing raises, and a text without a slip is one that the standard reader takes too."""
    parsed = parse(text)
    if not parsed.issues:
        value = json.loads(text)
        assert value == parsed.value
        assert not (isinstance(value, float) and not math.isfinite(value))
    else:
        assert all(0 <= issue.offset <= len(text) for issue in parsed.issues)


def test_all_that_the_grammar_allows_is_found_at_once() -> None:
    """One reading finds several mistakes, so that a curator mends them in one go."""
    text = '{\n  "a": NaN,\n  "b": ["\\ud83d"],\n  "a": 1e999,\n  "c": {"a": 1, "a": 2}\n}'
    parsed = parse(text)
    assert parsed.complete
    assert [(line_and_column(text, s.offset), s.message, s.path) for s in parsed.issues] == [
        ((2, 8), "NaN is no JSON number; write a number or null", ("a",)),
        ((3, 9), "the text holds half a surrogate pair, which is no character", ("b", 0)),
        ((4, 3), "this key stands here again; it is already in line 2", None),
        ((4, 8), "this number is too large", ("a",)),
        ((5, 17), "this key stands here again; it is already in line 5", None),
    ]


NO_CLOSE = "this text is not closed by a double quote on its line"
BRACKET = 'a "," or a closing bracket is expected here'
WORD = "this word is no JSON value; text stands in double quotes"
NUMBER = "a number goes on here in a way JSON does not know"


@pytest.mark.parametrize(
    ("text", "offset", "message"),
    [
        ('{"a": 1, // mine\n "b": 2}', 9, "JSON has no comments; take this one out"),
        ('{"a": True}', 6, "write true, not True"),
        ('{"a": undefined}', 6, "write null, not undefined"),
        ('{"a": +Infinity}', 6, "+Infinity is no JSON number; write a number or null"),
        ('{"a": yes}', 6, WORD),
        ('{"a": 1 "b": 2}', 8, 'a "," is missing before this'),
        ('{"a": 1 2}', 8, BRACKET),
        ('{"a": [1', 8, BRACKET),
        ('{"a": 1, }', 7, 'this "," is too many before "}"'),
        ('["a",]', 4, 'this "," is too many before "]"'),
        ("[1,,2]", 3, 'a JSON value is expected here; there is a "," too many'),
        ('{,"a": 1}', 1, 'a key is expected here; there is a "," too many'),
        ("[01]", 2, NUMBER),
        ("[1.5.2]", 4, NUMBER),
        ("[1x]", 2, NUMBER),
        ("[.5]", 1, "a JSON value is expected here"),
        ('{"a":', 5, "the file ends where a value is expected"),
        ('["\\q"]', 2, '"\\q" is no escape; a backslash is written \\\\'),
        ('["\\uZ"]', 3, 'four hex digits stand after "\\u"; a backslash is written \\\\'),
        ('["a\tb"]', 3, "a raw control character: write \\u0009"),
        ('["a,\n1]', 1, NO_CLOSE),
        ('["a', 1, NO_CLOSE),
        ("\ufeff{}", 0, "the file starts with a byte order mark; save it as UTF-8 without one"),
    ],
)
def test_where_the_grammar_breaks_is_told_in_words(text: str, offset: int, message: str) -> None:
    """The first mistake in the grammar has its place, and a sentence that says what to do."""
    parsed = parse(text)
    assert [(issue.offset, issue.message) for issue in parsed.issues] == [(offset, message)]
    assert not parsed.complete


@pytest.mark.parametrize(
    ("offset", "expected"), [(0, (1, 1)), (2, (1, 3)), (3, (2, 1)), (5, (3, 1)), (6, (3, 2))]
)
def test_lines_and_columns_count_characters_from_one(
    offset: int, expected: tuple[int, int]
) -> None:
    """Places are those an editor shows; a character of many bytes is one column."""
    assert line_and_column("\u00e4\u00f6\n\u20ac\nx", offset) == expected


@pytest.mark.parametrize("rest", ["", "]]]", "}", "x"])
def test_what_the_decoder_gives_up_on_is_told_whatever_follows(rest: str) -> None:
    """A number of thousands of digits, and nesting without end: told, and nothing raises."""
    number = parse(f'{{"a": {"1" * 5000}{rest}')
    assert [(i.offset, i.message) for i in number.issues] == [(6, "this number is too large")]
    deep = parse("[" * 100_000 + rest)
    assert [(i.offset, i.message) for i in deep.issues] == [(0, "the file is nested too deep")]
    assert not number.complete
    assert not deep.complete
