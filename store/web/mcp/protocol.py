"""MCP over streamable HTTP, stateless, for both eras of the protocol on one endpoint.

Legacy revisions open with ``initialize``; since 2026-07-28 ("modern") every request carries its
version in ``_meta`` and in headers, and ``server/discover`` takes the place of the handshake.

Two deviations are deliberate. Batches, which 2025-03-26 alone has, are refused, as the official
SDKs do. Every ``Origin`` is valid; what ends DNS rebinding is the check of ``Host``.
"""

from __future__ import annotations

import base64
import logging
from typing import TYPE_CHECKING, Any, Protocol

from store.web.mcp import jsonrpc
from store.web.mcp.jsonrpc import Code, Refusal, Reply, Request

if TYPE_CHECKING:
    from collections.abc import Mapping

    from msgspec import Raw
    from werkzeug.datastructures import Headers

log = logging.getLogger(__name__)

MODERN = "2026-07-28"
HANDSHAKE = ("2025-11-25", "2025-06-18", "2025-03-26")
"""Revisions that open with ``initialize``, newest first."""
SUPPORTED = (MODERN, *HANDSHAKE)
ALIKE = ("2024-11-05",)
"""An older revision whose JSON is the same; its clients are served, its transport is not."""

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
SERVER_KEY = "io.modelcontextprotocol/serverInfo"

VERSION_HEADER = "MCP-Protocol-Version"
METHOD_HEADER = "Mcp-Method"
NAME_HEADER = "Mcp-Name"
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""The parameter that ``Mcp-Name`` repeats, by method."""

CACHING: dict[str, Any] = {"ttlMs": 3_600_000, "cacheScope": "public"}
"""How long a client may keep the description of the server and of its tools."""


class Server(Protocol):
    """What is served: who it is and which tools it has."""

    def info(self) -> dict[str, str]:
        """Name, title and version."""

    def instructions(self) -> str:
        """What a model should know before it calls a tool."""

    def tools(self) -> Raw:
        """The encoded list of tools, always in the same order."""

    def call(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any] | None:
        """The result of a tool, a failure of the tool included; ``None`` for an unknown tool."""


class Dispatcher:
    """Answers the messages that are posted to one server."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def dispatch(self, body: bytes, headers: Headers) -> Reply:
        """The answer to one POST: its status, headers and body."""
        try:
            request = jsonrpc.read(body)
        except Refusal as refusal:
            return jsonrpc.failure(None, refusal, 400)
        if request is None:
            return jsonrpc.ACCEPTED
        modern = is_modern(request, headers)
        try:
            if modern:
                check_modern(request, headers)
            return jsonrpc.success(request.id, self._result(request, modern=modern))
        except Refusal as refusal:
            unknown = refusal.code is Code.METHOD_NOT_FOUND
            status = (404 if unknown else 400) if modern else 200
            return jsonrpc.failure(request.id, refusal, status)
        except Exception:
            log.exception("An MCP request failed")
            fault = Refusal(Code.INTERNAL_ERROR, "Internal error; it has been logged.")
            return jsonrpc.failure(request.id, fault, 200)

    def _result(self, request: Request, *, modern: bool) -> dict[str, Any]:
        result: dict[str, Any]
        match request.method:
            case "initialize" if not modern:
                version, info = _agreed(request.params), self._server.info()
                result = {"protocolVersion": version, "serverInfo": info, **self._description()}
            case "ping" if not modern:
                result = {}
            case "server/discover" if modern:
                result = {"supportedVersions": SUPPORTED, **self._description(), **CACHING}
            case "tools/list":
                result = self._listing(request.params) | (CACHING if modern else {})
            case "tools/call":
                result = self._called(request.params)
            case _:
                raise Refusal(
                    Code.METHOD_NOT_FOUND, f"There is no method {cut(request.method)} here."
                )
        if not modern:
            return result
        return {"resultType": "complete", **result, "_meta": {SERVER_KEY: self._server.info()}}

    def _description(self) -> dict[str, Any]:
        return {"capabilities": {"tools": {}}, "instructions": self._server.instructions()}

    def _listing(self, params: Mapping[str, Any]) -> dict[str, Any]:
        if params.get("cursor") is not None:
            raise Refusal(Code.INVALID_PARAMS, "The list of tools is whole: it has no cursor.")
        return {"tools": self._server.tools()}

    def _called(self, params: Mapping[str, Any]) -> dict[str, Any]:
        name, arguments = params.get("name"), params.get("arguments")
        if not isinstance(name, str) or not isinstance(arguments, dict | None):
            raise Refusal(
                Code.INVALID_PARAMS, "name must be a string, and arguments an object if any."
            )
        result = self._server.call(name, arguments or {})
        if result is None:
            raise Refusal(Code.INVALID_PARAMS, f"Unknown tool: {cut(name)}")
        return result


def is_modern(request: Request, headers: Headers) -> bool:
    """Whether a request speaks 2026-07-28 or later; ``initialize`` alone never does."""
    if VERSION_KEY in request.meta:
        return True
    version = headers.get(VERSION_HEADER)
    named_modern = version is not None and version not in (*HANDSHAKE, *ALIKE)
    return named_modern and request.method != "initialize"


def check_modern(request: Request, headers: Headers) -> None:
    """Check what every modern request carries (basic, ``_meta``; Streamable HTTP, validation).

    Raises:
        Refusal: a field of ``_meta`` is missing, a header differs from the body, or the version is
            not one of ours.
    """
    meta, header = request.meta, headers.get(VERSION_HEADER)
    missing = [key for key in (VERSION_KEY, CAPABILITIES_KEY) if key not in meta]
    if VERSION_KEY in missing and header != MODERN:
        raise _unsupported(header)
    if missing or not isinstance(meta[CAPABILITIES_KEY], dict):
        raise Refusal(
            Code.INVALID_PARAMS,
            f"params._meta must have {VERSION_KEY} and {CAPABILITIES_KEY}, an object.",
        )
    mirrored = [
        (VERSION_HEADER, header, meta[VERSION_KEY]),
        (METHOD_HEADER, headers.get(METHOD_HEADER), request.method),
    ]
    if key := NAMED.get(request.method):
        mirrored.append((NAME_HEADER, _decoded(headers.get(NAME_HEADER)), request.params.get(key)))
    for name, sent, stated in mirrored:
        if sent != stated:
            raise Refusal(
                Code.HEADER_MISMATCH, f"The header {name} is missing or differs from the body."
            )
    if header != MODERN:
        raise _unsupported(header)


def cut(text: str) -> str:
    """What a caller sent, short enough to stand in an answer."""
    return text if len(text) <= 100 else f"{text[:100]}…"  # noqa: PLR2004 - said here only


def _unsupported(version: str | None) -> Refusal:
    return Refusal(
        Code.UNSUPPORTED_VERSION,
        "Unsupported protocol version",
        {"supported": SUPPORTED, "requested": cut(version or "")},
    )


def _agreed(params: Mapping[str, Any]) -> str:
    """The revision a handshake settles on: the client's if it is known, else our newest."""
    asked = params.get("protocolVersion")
    return asked if asked in (*HANDSHAKE, *ALIKE) else HANDSHAKE[0]


def _decoded(value: str | None) -> str | None:
    """A header value without its base64 envelope (Streamable HTTP, Value Encoding)."""
    if value is None or not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    try:
        return base64.b64decode(value[9:-2], validate=True).decode()
    except ValueError:
        return None
