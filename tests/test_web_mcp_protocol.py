"""The dispatcher under hostile bodies and headers: never a fault of ours, ids kept."""

import json
import string

import pytest
from builders import app_over
from flask import Flask
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp_rankings import JSON, META, MODERN, call, legacy, write_rankings
from msgspec import Raw
from werkzeug.datastructures import Headers

from store.web.mcp.protocol import Server, dispatch, read

METHODS = ["initialize", "ping", "tools/list", "tools/call", "server/discover", "prompts/get", ""]
TOOLS = ["search_best", "get_best_in_category", "get_product", "get_poll_history", "nope"]
ARGUMENTS = ["q", "slug", "detail", "model", "limit", "offset", "x"]

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=40)
    | st.sampled_from(
        ["crm-software", "hubspot", "crm", "full", "A", "../../etc/passwd", "a" * 300]
    )
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)
ids = st.integers(-(2**63), 2**70) | st.text(max_size=20)
metas = st.fixed_dictionaries({}, optional={key: st.just(META[key]) | values for key in META})
params = (
    st.fixed_dictionaries(
        {},
        optional={
            "name": st.sampled_from(TOOLS) | values,
            "arguments": st.dictionaries(st.sampled_from(ARGUMENTS), values, max_size=4) | values,
            "cursor": values,
            "protocolVersion": values,
            "_meta": st.just(META) | metas | values,
        },
    )
    | values
)
messages = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0") | values,
        "id": ids | values,
        "method": st.sampled_from(METHODS) | values,
        "params": params,
        "x": values,
    },
)


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    """Noise, JSON of any kind, messages, and messages that were cut or doubled."""
    body = draw(
        st.binary(max_size=200)
        | (values | messages | messages).map(lambda value: json.dumps(value).encode())
        | st.sampled_from([b"[" * 5_000, b'{"a":' * 5_000, b"9" * 5_000, b'"\\ud800"', b"\x00"])
    )
    start, end = (draw(st.just(at) | st.integers(0, len(body))) for at in (0, len(body)))
    return body[start:end] * draw(st.sampled_from([1, 1, 1, 2]))


printable = st.text(string.printable[:-5], max_size=30)
headers_sent = st.fixed_dictionaries(
    {"Content-Type": st.just("application/json") | st.just("application/json") | printable},
    optional={
        "MCP-Protocol-Version": st.sampled_from([MODERN, "2025-11-25", "2025-06-18"]) | printable,
        "Mcp-Method": st.sampled_from(METHODS) | printable,
        "Mcp-Name": st.sampled_from([*TOOLS, "=?base64?AA=?=", "=?base64?/w==?="]) | printable,
        "Mcp-Session-Id": printable,
        "Last-Event-ID": printable,
        "Origin": printable,
        "Accept": st.sampled_from(["*/*", "application/json", "text/html"]) | printable,
    },
)


def check(body: bytes, status: int, answer: bytes) -> None:
    """No fault, no trace of one, and the id of every readable request."""
    assert status < 500, (body, answer)
    assert b"Traceback" not in answer
    assert b"-32603" not in answer, (body, answer)
    if status == 415:
        return
    if status == 202:
        assert answer == b""
        return
    reply = json.loads(answer)
    assert reply["jsonrpc"] == "2.0"
    assert ("result" in reply) != ("error" in reply)
    try:
        message = json.loads(body)
        request = read(body)
    except Exception:  # noqa: BLE001 - whatever cannot be read must have no id
        assert reply["id"] is None
        return
    assert request is not None
    assert reply["id"] == message["id"] == request.id


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Flask:
    return app_over(write_rankings(tmp_path_factory.mktemp("fuzz") / "data"))


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(body=bodies(), headers=headers_sent)
def test_no_body_and_no_header_brings_it_down(
    small: Flask, body: bytes, headers: dict[str, str]
) -> None:
    """Whatever is posted, the answer is a result or a plain refusal, with the id of the request."""
    answer = small.test_client().post("/mcp", data=body, headers=headers)
    check(body, answer.status_code, answer.data)


NOBODY = Server({"name": "nobody", "version": "0"}, str, lambda: Raw(b"[]"), lambda *_: None)
"""A server without tools, for what the protocol alone decides."""


def test_what_a_caller_sent_is_cut_in_answers() -> None:
    """An answer does not repeat at length what was posted."""
    for message in (legacy("m" * 9_000), call("n" * 9_000)):
        assert len(dispatch(NOBODY, json.dumps(message).encode(), Headers(JSON))[2]) < 300


@given(st.integers(-(2**200), 2**200) | st.text())
def test_an_id_comes_back_as_it_was(id_: int | str) -> None:
    """Strings of any letters and integers of any size are repeated exactly."""
    for method in ("ping", "nope"):
        body = json.dumps({"jsonrpc": "2.0", "id": id_, "method": method}).encode()
        assert json.loads(dispatch(NOBODY, body, Headers(JSON))[2])["id"] == id_
