"""Arguments: bounds hold, defaults fill in, and every fault is told at once."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from store.web.mcp.arguments import BadCall, input_schema, read
from store.web.mcp.tools import TOOLS

BY_TOOL = {tool.name: tool.accepting(("A", "B")) for tool in TOOLS}


@pytest.mark.parametrize(
    ("tool", "given_", "values"),
    [
        ("search_best", {"q": " crm "}, {"q": "crm", "limit": 5, "kind": None}),
        ("search_best", {"q": "crm", "limit": None}, {"q": "crm", "limit": 5, "kind": None}),
        ("get_best_in_category", {"slug": "x"}, {"slug": "x", "detail": "summary", "as_of": None}),
        (
            "get_poll_history",
            {"slug": "x"},
            {"slug": "x", "model": None, "limit": 20, "before": None},
        ),
        ("list_categories", {}, {"q": None, "topic": None, "limit": 50, "offset": 0}),
    ],
)
def test_defaults_fill_in(tool: str, given_: dict[str, Any], values: dict[str, Any]) -> None:
    """What is not given, or null, has the value that the contract names; strings are trimmed."""
    assert read(BY_TOOL[tool], given_) == values


@pytest.mark.parametrize(
    ("tool", "given_", "sentence"),
    [
        ("search_best", {"q": "x", "limit": 21}, "limit must be a whole number from 1 to 20."),
        ("search_best", {"q": "x", "limit": True}, "limit must be a whole number from 1 to 20."),
        ("search_best", {"q": "x", "limit": "5"}, "limit must be a whole number from 1 to 20."),
        ("search_best", {"q": "  "}, "q must have 1 to 200 characters; it has 0."),
        ("search_best", {"q": ["x"]}, "q must be a string."),
        (
            "get_best_in_category",
            {"slug": "x", "detail": "all"},
            "detail must be one of: summary, full.",
        ),
        ("get_poll_history", {"slug": "x", "model": "Z"}, "model must be one of: A, B."),
        (
            "get_poll_history",
            {"slug": "x", "limit": 501},
            "limit must be a whole number from 1 to 500.",
        ),
        ("list_categories", {"limit": 201}, "limit must be a whole number from 1 to 200."),
        (
            "list_categories",
            {"offset": -1},
            "offset must be a whole number from 0 to 1000000.",
        ),
        (
            "get_product",
            {"name": "x"},
            (
                "The arguments are slug, no other. slug is missing. It is: Product slug, as "
                "search_best returns it among brands."
            ),
        ),
    ],
)
def test_a_fault_says_what_to_do(tool: str, given_: dict[str, Any], sentence: str) -> None:
    """Each fault is a sentence with the bounds in it; all of them are told at once."""
    with pytest.raises(BadCall) as caught:
        read(BY_TOOL[tool], given_)
    assert str(caught.value) == sentence


@given(
    tool=st.sampled_from(sorted(BY_TOOL)),
    given_=st.dictionaries(
        st.sampled_from(["q", "slug", "detail", "model", "limit", "offset", "x"]),
        st.integers(-5, 600)
        | st.sampled_from(["A", "full", "crm", "x" * 101, "x" * 201, True, 2.5]),
    ),
)
def test_the_schema_says_what_is_taken(tool: str, given_: dict[str, Any]) -> None:
    """What the published schema allows is taken, and what it forbids is refused."""
    parameters = BY_TOOL[tool]
    allowed = Draft202012Validator(input_schema(parameters)).is_valid(given_)
    try:
        read(parameters, given_)
    except BadCall:
        assert not allowed
    else:
        assert allowed or "A" in given_.values()  # a malformed slug is told as an unknown one
