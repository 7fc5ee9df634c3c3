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
from typing import Any

import msgspec
from msgspec import Struct
from werkzeug.datastructures import Headers

log = logging.getLogger(__name__)

MODERN = "2026-07-28"
HANDSHAKE = ("2025-11-25", "2025-06-18", "2025-03-26")
"""Revisions that open with ``initialize``, newest first."""
SUPPORTED = (MODERN, *HANDSHAKE)

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
SERVER_KEY = "io.modelcontextprotocol/serverInfo"
VERSION_HEADER = "MCP-Protocol-Version"
CACHING: dict[str, Any] = {"ttlMs": 3_600_000, "cacheScope": "public"}
"""How long a client may keep the description of the server and of its tools."""
HEADERS = {"Content-Type": "application/json", "Cache-Control": "no-store"}
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


class Server(Struct, frozen=True):
    """A server: ``info`` has name, title and version, ``tools`` returns the encoded list.

    ``instructions`` say what a model should know before it calls a tool. ``call`` returns the
    result of a tool, a failure included; ``None`` for an unknown tool.
    """

    info: dict[str, str]
    instructions: Callable[[], str]
    tools: Callable[[], msgspec.Raw]
    call: Callable[[str, Mapping[str, Any]], dict[str, Any] | None]


def dispatch(server: Server, body: bytes, headers: Headers) -> tuple[int, dict[str, str], bytes]:
    """Return status, headers and body of the answer to one POST."""
    message, modern, status = None, False, 200
    try:
        message = read(body)
        if message is None:
            return 202, {}, b""
        if modern := is_modern(message, headers):
            check_modern(message, headers)
        answer: dict[str, Any] = {"result": _result(server, message, modern=modern)}
    except Refusal as refusal:
        answer = {"error": refusal.error}
        if modern or message is None:  # errors of legacy requests travel in HTTP 200
            status = 404 if refusal.code is Code.METHOD_NOT_FOUND else 400
    except Exception:
        log.exception("An MCP request failed")
        text = "Internal error; it has been logged."
        answer = {"error": {"code": Code.INTERNAL_ERROR, "message": text}}
    whole = {"jsonrpc": "2.0", "id": message.id if message else None, **answer}
    return status, HEADERS, msgspec.json.encode(whole)


def read(body: bytes) -> Message | None:
    """Return the request in a body, or ``None`` for a notification, which wants no answer.

    Raises:
        Refusal: the body is not JSON, or not one JSON-RPC request or notification; its id is then
            unknown, as JSON-RPC asks.
    """
    try:
        message = msgspec.json.decode(body)
    except (ValueError, RecursionError) as error:  # 20,000 opening brackets
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
    # A bool is an int to Python, and null would be taken for an answer to no request.
    if isinstance(message["id"], bool) or not isinstance(message["id"], str | int):
        raise Refusal(Code.INVALID_REQUEST, "id must be a string or an integer.")
    return Message(message["id"], method, params or {})


def is_modern(message: Message, headers: Headers) -> bool:
    """Return whether a request speaks 2026-07-28 or later; ``initialize`` never does."""
    version = headers.get(VERSION_HEADER)
    names_modern = version is not None and version not in HANDSHAKE
    return VERSION_KEY in message.meta or (names_modern and message.method != "initialize")


def check_modern(message: Message, headers: Headers) -> None:
    """Check what every modern request carries (basic, ``_meta``; Streamable HTTP, validation).

    Raises:
        Refusal: a field of ``_meta`` is missing, a header differs from the body, or the version is
            not one of ours.
    """
    meta, version = message.meta, headers.get(VERSION_HEADER)
    # Header and body agree on a version that is not ours, or only the header names one.
    if version != MODERN and meta.get(VERSION_KEY, version) == version:
        requested = {"supported": SUPPORTED, "requested": cut(version or "")}
        raise Refusal(Code.UNSUPPORTED_VERSION, "Unsupported protocol version", requested)
    if VERSION_KEY not in meta or not isinstance(meta.get(CAPABILITIES_KEY), dict):
        needed = f"params._meta must have {VERSION_KEY} and {CAPABILITIES_KEY}, an object."
        raise Refusal(Code.INVALID_PARAMS, needed)
    mirrored = [
        (VERSION_HEADER, version, meta[VERSION_KEY]),
        ("Mcp-Method", headers.get("Mcp-Method"), message.method),
    ]
    if message.method == "tools/call":
        mirrored.append(("Mcp-Name", _decoded(headers.get("Mcp-Name")), message.params.get("name")))
    for name, sent, stated in mirrored:
        if sent != stated:
            why = f"The header {name} is missing or differs from the body."
            raise Refusal(Code.HEADER_MISMATCH, why)


def _result(server: Server, message: Message, *, modern: bool) -> dict[str, Any]:
    params, result = message.params, dict[str, Any]()
    match message.method:
        case "initialize" if not modern:
            version = params.get("protocolVersion")
            agreed = version if version in HANDSHAKE else HANDSHAKE[0]
            result = {"protocolVersion": agreed, "serverInfo": server.info, **_described(server)}
        case "ping" if not modern:
            pass
        case "server/discover" if modern:
            result = {"supportedVersions": SUPPORTED, **_described(server), **CACHING}
        case "tools/list":
            if params.get("cursor") is not None:
                raise Refusal(Code.INVALID_PARAMS, "The list of tools is whole: it has no cursor.")
            result = {"tools": server.tools(), **(CACHING if modern else {})}
        case "tools/call":
            name, arguments = params.get("name"), params.get("arguments")
            if not isinstance(name, str) or not isinstance(arguments, dict | None):
                why = "name must be a string, and arguments an object if any."
                raise Refusal(Code.INVALID_PARAMS, why)
            if (answer := server.call(name, arguments or {})) is None:
                raise Refusal(Code.INVALID_PARAMS, f"Unknown tool: {cut(name)}")
            result = answer
        case _:
            raise Refusal(Code.METHOD_NOT_FOUND, f"There is no method {cut(message.method)} here.")
    if not modern:
        return result
    return {"resultType": "complete", **result, "_meta": {SERVER_KEY: server.info}}


def _described(server: Server) -> dict[str, Any]:
    return {"capabilities": {"tools": {}}, "instructions": server.instructions()}


def cut(text: str) -> str:
    """Return what a caller sent, short enough to stand in an answer."""
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"


def _decoded(value: str | None) -> str | None:
    """Return a header value without its base64 envelope (Streamable HTTP, Value Encoding)."""
    if value is None or not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    try:
        return base64.b64decode(value[9:-2], validate=True).decode()
    except ValueError:
        return None
