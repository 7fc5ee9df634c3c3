"""The server as clients meet it: a process of its own, raw HTTP, and the official client."""

import json
import socket
from collections.abc import Iterator, Mapping
from typing import Any

import anyio
import pytest
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
    used,
    write_rankings,
)
from servers import Server, gunicorn

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
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("mcp")
    with gunicorn(write_rankings(home / "data"), home / "log") as server:
        yield server


@pytest.mark.parametrize(
    ("asked", "agreed"),
    [
        *((version, version) for version in VERSIONS[1:]),
        *((version, "2025-11-25") for version in (MODERN, "1999-01-01", None, 5)),
    ],
)
def test_a_handshake_settles_on_a_version(server: Server, asked: object, agreed: str) -> None:
    """On that of the client if it shakes hands, else on the newest that does; without a session."""
    answer = post(server, legacy("initialize", protocolVersion=asked))
    result = answer.json["result"]
    assert (answer.status, result["protocolVersion"]) == (200, agreed)
    assert (result["serverInfo"], result["capabilities"]) == (SERVER, {"tools": {}})
    assert "Begin with search_best" in result["instructions"]
    assert "mcp-session-id" not in answer.headers


@pytest.mark.parametrize("headers", [JSON, {**JSON, "MCP-Protocol-Version": MODERN}])
@pytest.mark.parametrize("method", ["notifications/initialized", "notifications/cancelled", "x"])
def test_a_notification_is_accepted_in_silence(
    server: Server, method: str, headers: Mapping[str, str]
) -> None:
    """Whatever wants no answer gets 202 and no body."""
    answer = post(server, {"jsonrpc": "2.0", "method": method}, headers)
    assert (answer.status, answer.body) == (202, b"")


@pytest.mark.parametrize("version", [None, *VERSIONS[1:]])
@pytest.mark.parametrize("method", ["ping", "tools/list"])
def test_legacy_requests_need_no_header(server: Server, method: str, version: str | None) -> None:
    """Legacy requests are answered under any legacy version header and under none."""
    headers = {**JSON, "MCP-Protocol-Version": version} if version else JSON
    answer = post(server, legacy(method, id_="a"), headers)
    assert (answer.status, answer.json["id"]) == (200, "a")
    assert set(answer.json["result"]) == ({"tools"} if method == "tools/list" else set())


def test_discovery_says_all_a_modern_client_needs(server: Server) -> None:
    """server/discover names versions, capabilities, instructions, how long to keep them, and us."""
    message = modern("server/discover")
    answer = post(server, message, headers_of(message))
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


def test_a_modern_list_may_be_kept_and_a_call_is_complete(server: Server) -> None:
    """Modern tools/list says how long it holds; a call, its name encoded or not, by whom it is."""
    listed = post(server, LISTED, headers_of(LISTED)).json["result"]
    caching = (listed["resultType"], listed["ttlMs"], listed["cacheScope"])
    assert caching == ("complete", 3_600_000, "public")
    assert [tool["name"] for tool in listed["tools"]] == list(dict(ONE_OF_EACH))
    for name in ("get_product", "=?base64?Z2V0X3Byb2R1Y3Q=?="):
        result = post(server, CALLED, {**headers_of(CALLED), "Mcp-Name": name}).json["result"]
        assert set(result) == {"resultType", "content", "structuredContent", "isError", "_meta"}
        assert (result["resultType"], result["isError"]) == ("complete", False)


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


IN_FUTURE = {"MCP-Protocol-Version": "2099-01-01"}
PLAIN = dict.fromkeys(("MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"))
"""Changes that leave the headers of a legacy request."""


@pytest.mark.parametrize(
    ("message", "changed", "status", "code"),
    [
        (legacy("logging/setLevel"), PLAIN, 200, -32601),
        (legacy("server/discover"), PLAIN, 200, -32601),
        (legacy("tools/call", name="no_such"), PLAIN, 200, -32602),
        (legacy("tools/call"), PLAIN, 200, -32602),
        (legacy("tools/call", name="search_best", arguments=[]), PLAIN, 200, -32602),
        (legacy("tools/list", cursor="next"), PLAIN, 200, -32602),
        (modern("initialize"), {}, 404, -32601),
        (modern("ping"), {}, 404, -32601),
        (modern("logging/setLevel"), {}, 404, -32601),
        (modern("prompts/list"), {}, 404, -32601),
        (modern("a"), {}, 404, -32601),
        (legacy("tools/list"), {}, 400, -32602),
        (legacy("tools/list", _meta="x"), {}, 400, -32602),
        (_without("protocolVersion"), {}, 400, -32602),
        (_without("clientCapabilities"), {}, 400, -32602),
        (WRONGLY_CAPABLE, {}, 400, -32602),
        (LISTED, {"MCP-Protocol-Version": None}, 400, -32020),
        (LISTED, {"MCP-Protocol-Version": "2025-11-25"}, 400, -32020),
        (LISTED, {"Mcp-Method": None}, 400, -32020),
        (LISTED, {"Mcp-Method": "TOOLS/LIST"}, 400, -32020),
        (CALLED, {"Mcp-Name": None}, 400, -32020),
        (CALLED, {"Mcp-Name": "search_best"}, 400, -32020),
        (CALLED, {"Mcp-Name": "=?base64?c2VhcmNoX2Jlc3Q=?="}, 400, -32020),
        (CALLED, {"Mcp-Name": "=?base64?*?="}, 400, -32020),
        (FUTURE, {}, 400, -32020),
        (FUTURE, IN_FUTURE, 400, -32022),
        (legacy("tools/list"), IN_FUTURE, 400, -32022),
        (modern("tools/call", name="no_such"), {}, 400, -32602),
        (modern("tools/call"), {}, 400, -32602),
        (modern("tools/list", cursor="next"), {}, 400, -32602),
    ],
)
def test_what_a_client_gets_wrong_has_its_code_and_the_id(
    server: Server, message: dict[str, Any], changed: dict[str, str | None], status: int, code: int
) -> None:
    """Unknown methods, tools and versions, missing fields, headers that differ from the body.

    Errors of legacy clients travel in HTTP 200; an unknown version is told the known ones.
    """
    headers = {k: v for k, v in {**headers_of(message), **changed}.items() if v is not None}
    answer = post(server, {**message, "id": 2**60}, headers)
    assert (answer.status, answer.json["error"]["code"]) == (status, code)
    assert answer.json["id"] == 2**60
    told = {"supported": VERSIONS, "requested": "2099-01-01"} if code == -32022 else None
    assert answer.json["error"].get("data") == told


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
def test_what_is_no_message_is_400_without_an_id(server: Server, body: bytes, code: int) -> None:
    """What cannot be read, and batches, are refused with a null id."""
    answer = server.get("/mcp", JSON, "POST", body=body)
    assert (answer.status, answer.json["error"]["code"]) == (400, code)
    assert answer.json["id"] is None


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "PATCH", "DELETE"])
def test_only_post_is_taken(server: Server, method: str) -> None:
    """There is no stream to GET, no session to DELETE or to resume: 405 at once, with Allow."""
    stale = {"Accept": "text/event-stream", "Mcp-Session-Id": "stale", "Last-Event-ID": "9"}
    answer = server.get("/mcp", stale, method)
    assert answer.status == 405
    assert set(answer.headers["allow"].split(", ")) == {"POST", "OPTIONS"}
    assert answer.headers["access-control-allow-origin"] == "*"


def test_a_long_body_is_refused(server: Server) -> None:
    """64 KiB is the most a message may have, announced or chunked; the sentence says so."""
    fits = json.dumps(legacy("ping")).encode().ljust(65_536)
    chunked = {**JSON, "Transfer-Encoding": "chunked"}
    for body, headers in (
        (fits, JSON),
        (b"10000\r\n" + fits + b"\r\n0\r\n\r\n", chunked),
    ):
        assert server.get("/mcp", headers, "POST", body=body).status == 200
    for body, headers in (
        (fits + b" ", JSON),
        (b"10001\r\n" + fits + b" \r\n0\r\n\r\n", chunked),
    ):
        answer = server.get("/mcp", headers, "POST", body=body)
        assert (answer.status, answer.json["code"]) == (413, "too-large")
        assert answer.headers["access-control-allow-origin"] == "*"


def test_a_body_that_is_too_long_is_not_read(server: Server) -> None:
    """Ten gigabytes are refused by their announcement alone: nothing of them has to arrive."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
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
def test_only_json_is_taken(server: Server, kind: str | None, status: int) -> None:
    """A body that a page could post without a CORS preflight is refused."""
    answer = post(server, legacy("ping"), {"Content-Type": kind} if kind else {})
    assert (answer.status, answer.headers["access-control-allow-origin"]) == (status, "*")
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_another_host_is_refused(server: Server) -> None:
    """A name that is not ours in Host is refused here too, which ends DNS rebinding."""
    assert post(server, legacy("ping"), {**JSON, "Host": "evil.example"}).status == 400
    assert post(server, legacy("ping"), {**JSON, "Host": "rankings.example"}).status == 200


def test_every_origin_may_ask(server: Server) -> None:
    """A browser's preflight allows POST and all MCP headers; answers carry the literal star."""
    asked = "content-type,mcp-protocol-version,mcp-method,mcp-name,mcp-session-id,last-event-id"
    headers = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": asked}
    origin = {"Origin": "https://app.example"}
    preflight = server.get("/mcp", {**origin, **headers}, "OPTIONS")
    assert preflight.headers["access-control-allow-origin"] == "*"
    assert "POST" in preflight.headers["access-control-allow-methods"]
    allowed = preflight.headers["access-control-allow-headers"].split(", ")
    assert set(allowed) == set(asked.split(","))
    assert "access-control-allow-credentials" not in preflight.headers
    answer = post(server, legacy("ping"), {**JSON, **origin})
    assert answer.headers["access-control-allow-origin"] == "*"
    assert "MCP-Protocol-Version" in answer.headers["access-control-expose-headers"]
    assert answer.headers["cache-control"] == "no-store"


def test_the_server_card_says_where_and_how(server: Server) -> None:
    """The card is what SEP-2127 asks for, and agrees with what the server says of itself."""
    answer = server.get("/.well-known/mcp/server-card.json")
    assert answer.headers["content-type"] == "application/mcp-server-card+json"
    assert answer.headers["access-control-allow-origin"] == "*"
    assert answer.headers["etag"].startswith('W/"')
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
def test_the_official_client_is_served(server: Server, mode: str, version: str) -> None:
    """The SDK's client connects in each of its modes, lists, calls every tool and validates."""

    async def use() -> None:
        async with Client(f"http://127.0.0.1:{server.port}/mcp", mode=mode) as client:
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
        for query in (slug, product):
            found = rest(f"/api/v1/search?q={query}")
            for hit in found["categories"]:
                del hit["top"][3:]
            for hit in found["brands"]:
                del hit["ranked_in"][1:]
            for hit in (*found["categories"], *found["brands"]):
                if hit["match"] == "related":
                    del hit["verdict"]
            hits = structured("search_best", q=query, limit=10)
            assert {**hits, **found, "related": hits["related"]} == hits
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
