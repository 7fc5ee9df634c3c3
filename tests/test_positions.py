"""Where things stand in a JSON text: read strictly, agreeing with everybody on good text."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.positions import line_and_column, parse

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
    assert parsed.slips == ()
    assert parsed.value == value
    if isinstance(value, dict):
        for key in value:
            at = parsed.offsets[(key,)]
            assert json.JSONDecoder().raw_decode(text, at)[0] == key


@given(st.text(max_size=60) | st.text('{}[]",:0159.eE-+ntfu\\ \n/#*', max_size=40))
def test_what_is_taken_for_good_json_is_good_json(text: str) -> None:
    """Nothing raises, and a text without a slip is one that the standard reader takes too."""
    parsed = parse(text)
    if not parsed.slips:
        value = json.loads(text)
        assert value == parsed.value
        assert not (isinstance(value, float) and not math.isfinite(value))
    else:
        assert all(0 <= slip.offset <= len(text) for slip in parsed.slips)


def test_every_slip_that_leaves_no_doubt_is_passed_over() -> None:
    """One reading finds several mistakes, so that a curator mends them in one go."""
    text = '{\n  // mine\n  "a": True,\n  "b": NaN\n  "a": "\\q",\n  "c": [1, 2,],\n}'
    parsed = parse(text)
    assert parsed.complete
    assert [(line_and_column(text, s.offset), s.message) for s in parsed.slips] == [
        ((2, 3), "JSON has no comments; take this one out"),
        ((3, 8), "write true, not True"),
        ((4, 8), "NaN is no JSON number; write a number or null"),
        ((5, 3), 'a "," is missing before this'),
        ((5, 3), "this key stands here again; it is already in line 3"),
        ((5, 9), '"\\q" is no escape; a backslash is written \\\\'),
        ((6, 13), 'this "," is too many before "]"'),
        ((6, 15), 'this "," is too many before "}"'),
    ]


@pytest.mark.parametrize(
    ("offset", "expected"), [(0, (1, 1)), (2, (1, 3)), (3, (2, 1)), (5, (3, 1)), (6, (3, 2))]
)
def test_lines_and_columns_count_characters_from_one(
    offset: int, expected: tuple[int, int]
) -> None:
    """Places are those an editor shows; a character of many bytes is one column."""
    assert line_and_column("\u00e4\u00f6\n\u20ac\nx", offset) == expected
