"""The server as clients meet it: a process of its own, raw HTTP, and the official client."""

import json
import socket
from collections.abc import Iterator, Mapping
from typing import Any

import anyio
import pytest
import servers
from builders import BASE_URL, app_over
from flask import Flask
from mcp import Client
from mcp_rankings import (
    JSON,
    META,
    MODERN,
    call,
    headers_of,
    legacy,
    modern,
    post,
    send,
    used,
    write_rankings,
)

VERSIONS = [MODERN, "2025-11-25", "2025-06-18", "2025-03-26"]
SERVER = {
    "name": "example.rankings/consensus-rankings",
    "title": "Consensus Test",
    "version": "1.4.0",
}
ONE_OF_EACH: list[tuple[str, dict[str, Any]]] = [
    ("search_best", {"q": "crm"}),
    ("get_best_in_category", {"slug": "crm-software"}),
    ("get_best_in_category", {"slug": "crm-software", "detail": "full"}),
    ("get_product", {"slug": "hubspot"}),
    ("get_poll_history", {"slug": "crm-software", "model": "D"}),
    ("list_categories", {"q": "crm"}),
]


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    home = tmp_path_factory.mktemp("mcp")
    with servers.gunicorn(write_rankings(home / "data"), home / "log") as server:
        yield server.port


@pytest.mark.parametrize("version", VERSIONS[1:])
def test_a_handshake_settles_on_the_version_of_the_client(port: int, version: str) -> None:
    """Every revision that shakes hands is spoken back as it was asked for, without a session."""
    answer = post(port, legacy("initialize", protocolVersion=version))
    result = answer.json["result"]
    assert (answer.status, result["protocolVersion"]) == (200, version)
    assert (result["serverInfo"], result["capabilities"]) == (SERVER, {"tools": {}})
    assert "Begin with search_best" in result["instructions"]
    assert "Mcp-Session-Id" not in answer.headers


@pytest.mark.parametrize("version", [MODERN, "1999-01-01", None, 5])
def test_a_handshake_with_another_version_gets_the_newest(port: int, version: object) -> None:
    """A client that asks for what no handshake offers is told the newest that one does."""
    answer = post(port, legacy("initialize", protocolVersion=version))
    assert (answer.status, answer.json["result"]["protocolVersion"]) == (200, "2025-11-25")


@pytest.mark.parametrize("headers", [JSON, {**JSON, "MCP-Protocol-Version": MODERN}])
@pytest.mark.parametrize("method", ["notifications/initialized", "notifications/cancelled", "x"])
def test_a_notification_is_accepted_in_silence(
    port: int, method: str, headers: Mapping[str, str]
) -> None:
    """Whatever wants no answer gets 202 and no body."""
    answer = post(port, {"jsonrpc": "2.0", "method": method}, headers)
    assert (answer.status, answer.body) == (202, b"")


@pytest.mark.parametrize("version", [None, *VERSIONS[1:]])
@pytest.mark.parametrize("method", ["ping", "tools/list"])
def test_legacy_requests_need_no_header(port: int, method: str, version: str | None) -> None:
    """Legacy requests are answered under any legacy version header and under none."""
    headers = {**JSON, "MCP-Protocol-Version": version} if version else JSON
    answer = post(port, legacy(method, id_="a"), headers)
    assert (answer.status, answer.json["id"]) == (200, "a")
    assert set(answer.json["result"]) == ({"tools"} if method == "tools/list" else set())


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (legacy("logging/setLevel"), -32601),
        (legacy("server/discover"), -32601),
        (legacy("tools/call", name="no_such"), -32602),
        (legacy("tools/call"), -32602),
        (legacy("tools/call", name="search_best", arguments=[]), -32602),
        (legacy("tools/list", cursor="next"), -32602),
    ],
)
def test_legacy_errors_travel_in_http_200(port: int, message: dict[str, Any], code: int) -> None:
    """A JSON-RPC error to a legacy client has HTTP 200 and the id of its request."""
    answer = post(port, {**message, "id": 7})
    assert (answer.status, answer.json["error"]["code"], answer.json["id"]) == (200, code, 7)


def test_discovery_says_all_a_modern_client_needs(port: int) -> None:
    """server/discover names versions, capabilities, instructions, how long to keep them, and us."""
    message = modern("server/discover")
    answer = post(port, message, headers_of(message))
    result = answer.json["result"]
    assert answer.status == 200
    assert result.pop("instructions").startswith("Consensus Test asks 4 AI assistants (A, B, C, D)")
    assert result == {
        "resultType": "complete",
        "supportedVersions": VERSIONS,
        "capabilities": {"tools": {}},
        "ttlMs": 3_600_000,
        "cacheScope": "public",
        "_meta": {"io.modelcontextprotocol/serverInfo": SERVER},
    }


def test_a_modern_list_may_be_kept_and_a_call_is_complete(port: int) -> None:
    """Modern tools/list says how long it holds; a call, its name encoded or not, by whom it is."""
    listed = post(port, LISTED, headers_of(LISTED)).json["result"]
    caching = (listed["resultType"], listed["ttlMs"], listed["cacheScope"])
    assert caching == ("complete", 3_600_000, "public")
    assert [tool["name"] for tool in listed["tools"]] == list(dict(ONE_OF_EACH))
    for name in ("get_product", "=?base64?Z2V0X3Byb2R1Y3Q=?="):
        result = post(port, CALLED, {**headers_of(CALLED), "Mcp-Name": name}).json["result"]
        assert set(result) == {"resultType", "content", "structuredContent", "isError", "_meta"}
        assert (result["resultType"], result["isError"]) == ("complete", False)


@pytest.mark.parametrize("method", ["initialize", "ping", "logging/setLevel", "prompts/list", "a"])
def test_what_a_modern_client_cannot_ask_is_404(port: int, method: str) -> None:
    """A method that is gone or unknown is HTTP 404 with its JSON-RPC error and the id."""
    message = modern(method, id_="kept")
    answer = post(port, message, headers_of(message))
    assert (answer.status, answer.json["error"]["code"]) == (404, -32601)
    assert answer.json["id"] == "kept"


def _without(key: str) -> dict[str, Any]:
    meta = {k: v for k, v in META.items() if not k.endswith(key)}
    return legacy("tools/list", _meta=meta)


WRONGLY_CAPABLE = legacy(
    "tools/list", _meta={**META, "io.modelcontextprotocol/clientCapabilities": 1}
)
CALLED = modern("tools/call", name="get_product", arguments={"slug": "hubspot"})
LISTED = modern("tools/list")
FUTURE = legacy(
    "tools/list", _meta={**META, "io.modelcontextprotocol/protocolVersion": "2099-01-01"}
)


@pytest.mark.parametrize(
    ("message", "changed", "code"),
    [
        (legacy("tools/list"), {}, -32602),
        (legacy("tools/list", _meta="x"), {}, -32602),
        (_without("protocolVersion"), {}, -32602),
        (_without("clientCapabilities"), {}, -32602),
        (WRONGLY_CAPABLE, {}, -32602),
        (LISTED, {"MCP-Protocol-Version": None}, -32020),
        (LISTED, {"MCP-Protocol-Version": "2025-11-25"}, -32020),
        (LISTED, {"Mcp-Method": None}, -32020),
        (LISTED, {"Mcp-Method": "TOOLS/LIST"}, -32020),
        (CALLED, {"Mcp-Name": None}, -32020),
        (CALLED, {"Mcp-Name": "search_best"}, -32020),
        (CALLED, {"Mcp-Name": "=?base64?c2VhcmNoX2Jlc3Q=?="}, -32020),
        (CALLED, {"Mcp-Name": "=?base64?*?="}, -32020),
        (FUTURE, {}, -32020),
        (modern("tools/call", name="no_such"), {}, -32602),
        (modern("tools/call"), {}, -32602),
        (modern("tools/list", cursor="next"), {}, -32602),
    ],
)
def test_what_a_modern_client_gets_wrong_is_400(
    port: int, message: dict[str, Any], changed: dict[str, str | None], code: int
) -> None:
    """Missing fields, headers that differ from the body, unknown tools: 400, the code, the id."""
    headers = {k: v for k, v in {**headers_of(message), **changed}.items() if v is not None}
    answer = post(port, {**message, "id": 2**60}, headers)
    assert (answer.status, answer.json["error"]["code"]) == (400, code)
    assert answer.json["id"] == 2**60


@pytest.mark.parametrize("message", [FUTURE, legacy("tools/list")])
def test_an_unknown_version_is_told_the_known_ones(port: int, message: dict[str, Any]) -> None:
    """A version we do not speak is refused with the list of those we do."""
    headers = {**headers_of(message), "MCP-Protocol-Version": "2099-01-01"}
    answer = post(port, message, headers)
    assert (answer.status, answer.json["error"]["code"]) == (400, -32022)
    assert answer.json["error"]["data"] == {"supported": VERSIONS, "requested": "2099-01-01"}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", -32700),
        (b"{", -32700),
        (b"\xff", -32700),
        (b'{"id": "\\ud800"}', -32700),
        (b"[" * 20_000, -32700),
        (b'{"jsonrpc":"2.0","method":"ping","id":' + b"1" * 5000 + b"}", -32700),
        (b"[]", -32600),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600),
        (b"1", -32600),
        (b'{"id":1,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"result":{}}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32600),
    ],
)
def test_what_is_no_message_is_400_without_an_id(port: int, body: bytes, code: int) -> None:
    """What cannot be read, and batches, are refused with a null id."""
    answer = send(port, body, JSON)
    assert (answer.status, answer.json["error"]["code"]) == (400, code)
    assert answer.json["id"] is None


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "PATCH", "DELETE"])
def test_only_post_is_taken(port: int, method: str) -> None:
    """There is no stream to GET, no session to DELETE or to resume: 405 at once, with Allow."""
    stale = {"Accept": "text/event-stream", "Mcp-Session-Id": "stale", "Last-Event-ID": "9"}
    answer = send(port, b"", stale, method)
    assert answer.status == 405
    assert set(answer.headers["Allow"].split(", ")) == {"POST", "OPTIONS"}
    assert answer.headers["Access-Control-Allow-Origin"] == "*"


def test_a_long_body_is_refused(port: int) -> None:
    """64 KiB is the most a message may have, announced or chunked; the sentence says so."""
    fits = json.dumps(legacy("ping")).encode().ljust(65_536)
    assert send(port, fits, JSON).status == 200
    announced = send(port, fits + b" ", JSON)
    chunked = {**JSON, "Transfer-Encoding": "chunked"}
    assert send(port, b"10000\r\n" + fits + b"\r\n0\r\n\r\n", chunked).status == 200
    in_chunks = send(port, b"10001\r\n" + fits + b" \r\n0\r\n\r\n", chunked)
    for answer in (announced, in_chunks):
        assert (answer.status, answer.json["code"]) == (413, "too-large")
        assert answer.headers["Access-Control-Allow-Origin"] == "*"


def test_a_body_that_is_too_long_is_not_read(port: int) -> None:
    """Ten gigabytes are refused by their announcement alone: nothing of them has to arrive."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(
            b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n"
            b"Content-Type: application/json\r\nContent-Length: 10000000000\r\n\r\n"
        )
        assert connection.recv(12) == b"HTTP/1.1 413"


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("text/plain", 415), ("application/x-www-form-urlencoded", 415), (None, 415),
        ("application/json; charset=utf-8", 200), ("Application/JSON", 200),
    ],
)  # fmt: skip
def test_only_json_is_taken(port: int, kind: str | None, status: int) -> None:
    """A body that a page could post without a CORS preflight is refused."""
    answer = post(port, legacy("ping"), {"Content-Type": kind} if kind else {})
    assert (answer.status, answer.headers["Access-Control-Allow-Origin"]) == (status, "*")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_another_host_is_refused(port: int) -> None:
    """A name that is not ours in Host is refused here too, which ends DNS rebinding."""
    assert post(port, legacy("ping"), {**JSON, "Host": "evil.example"}).status == 400
    assert post(port, legacy("ping"), {**JSON, "Host": "rankings.example"}).status == 200


def test_every_origin_may_ask(port: int) -> None:
    """A browser's preflight allows POST and all MCP headers; answers carry the literal star."""
    asked = "content-type,mcp-protocol-version,mcp-method,mcp-name,mcp-session-id,last-event-id"
    headers = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": asked}
    preflight = send(port, b"", {"Origin": "https://app.example", **headers}, "OPTIONS")
    assert preflight.headers["Access-Control-Allow-Origin"] == "*"
    assert "POST" in preflight.headers["Access-Control-Allow-Methods"]
    allowed = preflight.headers["Access-Control-Allow-Headers"].split(", ")
    assert set(allowed) == set(asked.split(","))
    assert "Access-Control-Allow-Credentials" not in preflight.headers
    answer = post(port, legacy("ping"), {**JSON, "Origin": "https://app.example"})
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert "MCP-Protocol-Version" in answer.headers["Access-Control-Expose-Headers"]
    assert answer.headers["Cache-Control"] == "no-store"


def test_the_server_card_says_where_and_how(port: int) -> None:
    """The card is what SEP-2127 asks for, and agrees with what the server says of itself."""
    answer = send(port, b"", {}, "GET", "/.well-known/mcp/server-card.json")
    assert answer.headers["Content-Type"] == "application/mcp-server-card+json"
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert answer.headers["ETag"].startswith('W/"')
    assert answer.json == {
        "$schema": "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json",
        **SERVER,
        "description": "What AI assistants recommend for 'best X' questions, as rankings.",
        "websiteUrl": f"{BASE_URL}/",
        "remotes": [
            {
                "type": "streamable-http",
                "url": f"{BASE_URL}/mcp",
                "supportedProtocolVersions": VERSIONS,
            }
        ],
    }


@pytest.mark.parametrize(
    ("mode", "version"), [("auto", MODERN), (MODERN, MODERN), ("legacy", "2025-11-25")]
)
def test_the_official_client_is_served(port: int, mode: str, version: str) -> None:
    """The SDK's client connects in each of its modes, lists, calls every tool and validates."""

    async def use() -> None:
        async with Client(f"http://127.0.0.1:{port}/mcp", mode=mode) as client:
            assert client.protocol_version == version
            names = {tool.name for tool in (await client.list_tools()).tools}
            assert names == {name for name, _ in ONE_OF_EACH}
            for name, arguments in ONE_OF_EACH:
                result = await client.call_tool(name, arguments)
                assert not result.is_error
                assert result.structured_content["notice"] in result.content[0].text
            wrong = await client.call_tool("get_product", {"slug": "hubspott"})
            assert wrong.is_error
            assert "The closest: hubspot (HubSpot)" in wrong.content[0].text

    anyio.run(use)


def test_rest_and_mcp_say_the_same(app: Flask) -> None:
    """What both publish is the same, for a slice of the shipped categories."""
    client = app.test_client()
    listed = client.get("/api/v1/categories.json").json or []

    def rest(path: str) -> Any:
        return client.get(path).get_json()

    def structured(name: str, **arguments: Any) -> dict[str, Any]:
        found: dict[str, Any] = used(client, name, **arguments)["structuredContent"]
        return found

    assert listed
    for slug in [item["slug"] for item in listed[:: max(1, len(listed) // 8)]]:
        best = rest(f"/api/v1/best/{slug}.json")
        full = structured("get_best_in_category", slug=slug, detail="full")
        assert full.keys() - best.keys() == {"changes", "failedLast", "leaders", "news", "notice"}
        assert {**full, **best} == full
        summary = structured("get_best_in_category", slug=slug)
        assert full.keys() - summary.keys() == {"perModel", "missedByModel"}
        polls = rest(f"/api/v1/history?slug={slug}&limit=3")
        assert structured("get_poll_history", slug=slug, limit=3)["polls"] == polls
        product = best["combined"][0]["slug"]
        record = rest(f"/api/v1/product/{product}.json")
        part = structured("get_product", slug=product, limit=50)
        assert part["entries"] == record["entries"][:50]
        assert {**part, "entries": record["entries"]}.items() >= record.items()
        found = rest(f"/api/v1/search?q={slug}")
        hits = structured("search_best", q=slug, limit=10)["categories"]
        short = [{**hit, "top": hit["top"][:3]} for hit in found["categories"]]
        for hit in short:
            if hit["match"] == "related":
                del hit["verdict"]
        assert hits == short
    own = {"page", "api"}
    items = [{n: item[n] for n in item if n not in own} for item in listed[:200]]
    assert structured("list_categories", limit=200)["categories"] == items


def test_a_fault_is_logged_and_not_shown(
    tmp_path_factory: pytest.TempPathFactory,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A fault of ours is a plain -32603 with the id; the log has the traceback, the reader not."""
    app = app_over(write_rankings(tmp_path_factory.mktemp("fault") / "data"))
    store = app.extensions["store"]
    monkeypatch.setattr(store, "lines", lambda *_: 1 / 0)
    answer = app.test_client().post("/mcp", json=call("get_poll_history", slug="crm-software"))
    assert answer.status_code == 200
    assert answer.json == {
        "jsonrpc": "2.0",
        "id": 1,
        "error": {"code": -32603, "message": "Internal error; it has been logged."},
    }
    assert "ZeroDivisionError" in caplog.text
