"""JSON-RPC messages: what is read, and that ids come back as they were sent."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.web.mcp.jsonrpc import Code, Refusal, failure, read, success


@given(st.integers(-(2**200), 2**200) | st.text())
def test_an_id_comes_back_as_it_was(id_: int | str) -> None:
    """Strings of any letters and integers of any size are repeated exactly."""
    request = read(json.dumps({"jsonrpc": "2.0", "id": id_, "method": "ping"}).encode())
    assert request is not None
    assert json.loads(success(request.id, {}).body)["id"] == id_
    refusal = Refusal(Code.INVALID_PARAMS, "No.")
    assert json.loads(failure(request.id, refusal, 400).body)["id"] == id_


@pytest.mark.parametrize("params", ["", ',"params":null', ',"params":{}'])
def test_params_may_be_missing(params: str) -> None:
    """A message without params is one with none."""
    request = read(f'{{"jsonrpc":"2.0","id":1,"method":"m"{params}}}'.encode())
    assert request is not None
    assert (request.method, request.params, request.meta) == ("m", {}, {})


def test_a_refusal_says_what_is_wrong() -> None:
    """Data goes with an error only where the specification wants it."""
    bare = json.loads(failure(None, Refusal(Code.PARSE_ERROR, "No JSON."), 400).body)
    assert bare == {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "No JSON."}}
    full = failure(1, Refusal(Code.UNSUPPORTED_VERSION, "No.", {"supported": []}), 400)
    assert json.loads(full.body)["error"]["data"] == {"supported": []}
