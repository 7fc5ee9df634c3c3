"""JSON-RPC 2.0 as MCP uses it: one message in each body, ids that are strings or integers."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping


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
        self.message = message
        self.data = data


class Request(Struct, frozen=True):
    """A request that wants an answer; ``params`` is empty when none were sent."""

    id: str | int
    method: str
    params: dict[str, Any]

    @property
    def meta(self) -> dict[str, Any]:
        """``params._meta``, empty when it is missing or no object."""
        meta = self.params.get("_meta")
        return meta if isinstance(meta, dict) else {}


class Reply(NamedTuple):
    """What goes back over HTTP."""

    status: int
    headers: Mapping[str, str]
    body: bytes


ACCEPTED = Reply(202, {}, b"")
"""The answer to a notification."""


def read(body: bytes) -> Request | None:
    """The request in a body, or ``None`` for a notification, which wants no answer.

    Raises:
        Refusal: the body is no JSON, or not one JSON-RPC request or notification; its id is then
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
    return Request(message["id"], method, params or {})


def success(id_: str | int, result: Mapping[str, Any]) -> Reply:
    """A result, in HTTP 200."""
    return _reply(200, {"jsonrpc": "2.0", "id": id_, "result": result})


def failure(id_: str | int | None, refusal: Refusal, status: int) -> Reply:
    """A JSON-RPC error; the id is null when it could not be read."""
    error: dict[str, Any] = {"code": refusal.code, "message": refusal.message}
    if refusal.data is not None:
        error["data"] = refusal.data
    return _reply(status, {"jsonrpc": "2.0", "id": id_, "error": error})


def _reply(status: int, message: Mapping[str, Any]) -> Reply:
    headers = {"Content-Type": "application/json", "Cache-Control": "no-store"}
    return Reply(status, headers, msgspec.json.encode(message))
