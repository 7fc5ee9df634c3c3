"""Small rankings, and MCP messages as clients of both eras send them."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from builders import answered, failed, write_data
from flask.testing import FlaskClient
from servers import Answer, Server

MODERN = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
JSON = {"Content-Type": "application/json"}


def write_rankings(directory: Path) -> Path:
    """Two ranked categories, one with a failed poll and one never polled."""
    polls = [
        answered("A", ["Zoho CRM", "HubSpot", "Pipedrive"], missed=["Attio"]),
        answered("B", ["HubSpot", "Zoho CRM", "Close"]),
        answered("C", ["HubSpot", "Pipedrive"], at="2026-11-03T06:00:00Z"),
        failed("D", at="2026-11-03T07:00:00Z"),
        answered("A", ["Zoom", "Zoho CRM"], slug="video-calls", question="What is the best?"),
        failed("B", slug="broken-tools"),
    ]
    categories: dict[str, dict[str, Any]] = {
        "crm-software": {
            "title": "Best CRM software",
            "topic": "CRM software",
            "former_slugs": ["crm"],
        },
        "video-calls": {"title": "Best video calls"},
        "broken-tools": {"title": "Best broken tools"},
    }
    return write_data(directory, categories=categories, polls=polls)


def legacy(method: str, *, id_: object = 1, **params: Any) -> dict[str, Any]:
    """A request as a client that shook hands sends it."""
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": params}


def modern(method: str, *, id_: object = 1, **params: Any) -> dict[str, Any]:
    """A request of 2026-07-28: its version is in ``_meta``."""
    return legacy(method, id_=id_, **params, _meta=META)


def headers_of(message: Mapping[str, Any]) -> dict[str, str]:
    """The headers that repeat a modern message."""
    headers = {**JSON, "MCP-Protocol-Version": MODERN, "Mcp-Method": message["method"]}
    name = message["params"].get("name") or message["params"].get("uri")
    return {**headers, "Mcp-Name": name} if name else headers


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """A legacy ``tools/call``."""
    return legacy("tools/call", name=name, arguments=arguments)


def used(client: FlaskClient, tool: str, /, **arguments: Any) -> dict[str, Any]:
    """The result of a tool."""
    answer = client.post("/mcp", json=call(tool, **arguments))
    result: dict[str, Any] = json.loads(answer.data)["result"]
    return result


def text_of(client: FlaskClient, tool: str, /, **arguments: Any) -> str:
    """The text of a tool's result, without its notice."""
    content, *_ = used(client, tool, **arguments)["content"]
    return str(content["text"]).partition("\n\n")[0]


def post(server: Server, message: object, headers: Mapping[str, str] = JSON) -> Answer:
    """A message over a socket of its own; fails when there is no answer in 20 seconds."""
    return server.get("/mcp", headers, "POST", 20, json.dumps(message).encode())
