"""MCP over streamable HTTP, stateless, for both eras of the protocol on one endpoint.

Legacy revisions open with ``initialize``; since 2026-07-28 ("modern") every request carries its
version in ``_meta`` and in headers, and ``server/discover`` takes the place of the handshake.

Two deviations are deliberate. Batches, which 2025-03-26 alone has, are refused, as the official
SDKs do. Every ``Origin`` is valid; what ends DNS rebinding is the check of ``Host``.
"""

import base64
import logging
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct
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
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""The parameter that the header ``Mcp-Name`` repeats, by method."""
CACHING: dict[str, Any] = {"ttlMs": 3_600_000, "cacheScope": "public"}
"""How long a client may keep the description of the server and of its tools."""
MOST_SHOWN = 100


class Code(IntEnum):
    """Error codes of JSON-RPC 2.0 and of the MCP specification 2026-07-28 (basic, Error Codes)."""

    PARSE_ERROR = -32700
    INVALID_REQUEST = -32600
    METHOD_NOT_FOUND = -32601
    INVALID_PARAMS = -32602
    INTERNAL_ERROR = -32603
    HEADER_MISMATCH = -32020
    UNSUPPORTED_VERSION = -32022


class Refusal(Exception):
    """A message that is answered with a JSON-RPC error."""

    def __init__(self, code: Code, message: str, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.error = {"code": code, "message": message, **({"data": data} if data else {})}


class Message(Struct, frozen=True):
    """A request that wants an answer; ``params`` is empty when none were sent."""

    id: str | int
    method: str
    params: dict[str, Any]

    @property
    def meta(self) -> dict[str, Any]:
        """``params._meta``, empty when it is missing or not an object."""
        meta = self.params.get("_meta")
        return meta if isinstance(meta, dict) else {}


class Reply(NamedTuple):
    """What goes back over HTTP."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Server(Struct, frozen=True):
    """What is served: ``info`` has name, title and version, ``tools`` encodes the list of tools.

    ``instructions`` say what a model should know before it calls a tool. ``call`` returns the
    result of a tool, a failure included; ``None`` for an unknown tool.
    """

    info: dict[str, str]
    instructions: Callable[[], str]
    tools: Callable[[], msgspec.Raw]
    call: Callable[[str, Mapping[str, Any]], dict[str, Any] | None]


def dispatch(server: Server, body: bytes, headers: Headers) -> Reply:
    """Answer one POST."""
    try:
        message = read(body)
    except Refusal as refusal:
        return _reply(400, {"id": None, "error": refusal.error})
    if message is None:
        return Reply(202, {}, b"")
    modern = is_modern(message, headers)
    try:
        if modern:
            check_modern(message, headers)
        result = _result(server, message, modern=modern)
    except Refusal as refusal:
        status = 404 if refusal.code is Code.METHOD_NOT_FOUND else 400
        return _reply(status if modern else 200, {"id": message.id, "error": refusal.error})
    except Exception:
        log.exception("An MCP request failed")
        error = {"code": Code.INTERNAL_ERROR, "message": "Internal error; it has been logged."}
        return _reply(200, {"id": message.id, "error": error})
    return _reply(200, {"id": message.id, "result": result})


def read(body: bytes) -> Message | None:
    """Return the request in a body, or ``None`` for a notification, which wants no answer.

    Raises:
        Refusal: the body is not JSON, or not one JSON-RPC request or notification; its id is then
            unknown, as JSON-RPC asks.
    """
    try:
        message = msgspec.json.decode(body)
    except (ValueError, RecursionError) as error:
        raise Refusal(Code.PARSE_ERROR, f"The body cannot be read as JSON: {error}.") from None
    if isinstance(message, list):
        raise Refusal(Code.INVALID_REQUEST, "Batches are not taken: POST one message at a time.")
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise Refusal(Code.INVALID_REQUEST, 'The body must be an object with "jsonrpc": "2.0".')
    method, params = message.get("method"), message.get("params")
    if not isinstance(method, str) or not isinstance(params, dict | None):
        raise Refusal(
            Code.INVALID_REQUEST, "method must be a string, and params an object if there are any."
        )
    if "id" not in message:
        return None
    if isinstance(message["id"], bool) or not isinstance(message["id"], str | int):
        raise Refusal(Code.INVALID_REQUEST, "id must be a string or an integer.")
    return Message(message["id"], method, params or {})


def is_modern(message: Message, headers: Headers) -> bool:
    """Return whether a request speaks 2026-07-28 or later; ``initialize`` alone never does."""
    if VERSION_KEY in message.meta:
        return True
    version = headers.get(VERSION_HEADER)
    named_modern = version is not None and version not in (*HANDSHAKE, *ALIKE)
    return named_modern and message.method != "initialize"


def check_modern(message: Message, headers: Headers) -> None:
    """Check what every modern request carries (basic, ``_meta``; Streamable HTTP, validation).

    Raises:
        Refusal: a field of ``_meta`` is missing, a header differs from the body, or the version is
            not one of ours.
    """
    meta, header = message.meta, headers.get(VERSION_HEADER)
    missing = [key for key in (VERSION_KEY, CAPABILITIES_KEY) if key not in meta]
    if VERSION_KEY in missing and header != MODERN:
        raise _unsupported(header)
    if missing or not isinstance(meta[CAPABILITIES_KEY], dict):
        needed = f"params._meta must have {VERSION_KEY} and {CAPABILITIES_KEY}, an object."
        raise Refusal(Code.INVALID_PARAMS, needed)
    mirrored = [
        (VERSION_HEADER, header, meta[VERSION_KEY]),
        ("Mcp-Method", headers.get("Mcp-Method"), message.method),
    ]
    if key := NAMED.get(message.method):
        mirrored.append(("Mcp-Name", _decoded(headers.get("Mcp-Name")), message.params.get(key)))
    for name, sent, stated in mirrored:
        if sent != stated:
            why = f"The header {name} is missing or differs from the body."
            raise Refusal(Code.HEADER_MISMATCH, why)
    if header != MODERN:
        raise _unsupported(header)


def _result(server: Server, message: Message, *, modern: bool) -> dict[str, Any]:
    params = message.params
    description: dict[str, Any] = {"capabilities": {"tools": {}}}
    result: dict[str, Any]
    match message.method:
        case "initialize" if not modern:
            version = params.get("protocolVersion")
            agreed = version if version in (*HANDSHAKE, *ALIKE) else HANDSHAKE[0]
            description |= {"instructions": server.instructions()}
            result = {"protocolVersion": agreed, "serverInfo": server.info, **description}
        case "ping" if not modern:
            result = {}
        case "server/discover" if modern:
            description |= {"instructions": server.instructions()}
            result = {"supportedVersions": SUPPORTED, **description, **CACHING}
        case "tools/list":
            if params.get("cursor") is not None:
                raise Refusal(Code.INVALID_PARAMS, "The list of tools is whole: it has no cursor.")
            result = {"tools": server.tools(), **(CACHING if modern else {})}
        case "tools/call":
            result = _called(server, params)
        case _:
            raise Refusal(Code.METHOD_NOT_FOUND, f"There is no method {cut(message.method)} here.")
    if not modern:
        return result
    return {"resultType": "complete", **result, "_meta": {SERVER_KEY: server.info}}


def _called(server: Server, params: Mapping[str, Any]) -> dict[str, Any]:
    name, arguments = params.get("name"), params.get("arguments")
    if not isinstance(name, str) or not isinstance(arguments, dict | None):
        why = "name must be a string, and arguments an object if any."
        raise Refusal(Code.INVALID_PARAMS, why)
    result = server.call(name, arguments or {})
    if result is None:
        raise Refusal(Code.INVALID_PARAMS, f"Unknown tool: {cut(name)}")
    return result


def _reply(status: int, message: Mapping[str, Any]) -> Reply:
    headers = {"Content-Type": "application/json", "Cache-Control": "no-store"}
    return Reply(status, headers, msgspec.json.encode({"jsonrpc": "2.0", **message}))


def cut(text: str) -> str:
    """Return what a caller sent, short enough to stand in an answer."""
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"


def _unsupported(version: str | None) -> Refusal:
    supported = {"supported": SUPPORTED, "requested": cut(version or "")}
    return Refusal(Code.UNSUPPORTED_VERSION, "Unsupported protocol version", supported)


def _decoded(value: str | None) -> str | None:
    """Return a header value without its base64 envelope (Streamable HTTP, Value Encoding)."""
    if value is None or not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    try:
        return base64.b64decode(value[9:-2], validate=True).decode()
    except ValueError:
        return None
