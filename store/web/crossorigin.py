"""Reading from any origin: ``*`` on every answer, and a preflight that succeeds everywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flask import current_app, request
from flask_cors import CORS

if TYPE_CHECKING:
    from flask import Flask, Response

EXPOSED = "ETag, Link"
EXPOSED_BY_MCP = "MCP-Protocol-Version, Mcp-Session-Id"

HEADERS = {"Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": EXPOSED}
"""What Flask-CORS adds to an answer; it leaves one alone that has them, which is quicker."""

MCP_HEADERS = {**HEADERS, "Access-Control-Expose-Headers": EXPOSED_BY_MCP}
"""The same for an answer of ``/mcp``."""

READING = ("GET", "HEAD", "OPTIONS")
MCP = {
    "methods": ["POST", "OPTIONS"],
    "expose_headers": EXPOSED_BY_MCP,
}
DAY = 86_400


def register(app: Flask) -> None:
    """Let scripts of any origin read every answer of the app, errors included.

    Flask-CORS would echo the caller's origin, and so split shared caches by it, unless told to
    send the wildcard.
    """
    CORS(
        app,
        resources={"/mcp": MCP, "/.*": {"methods": list(READING)}},
        origins="*",
        send_wildcard=True,
        always_send=True,
        expose_headers=EXPOSED,
        max_age=DAY,
    )
    app.before_request(answer_options)


def answer_options() -> Response | None:
    """Answer OPTIONS on any path, so that a browser's script may read a 404 after its preflight."""
    if request.method != "OPTIONS":
        return None
    response = current_app.make_default_options_response()
    response.status_code = 204
    response.headers["Allow"] = ", ".join(sorted(response.allow) or READING)
    response.headers.remove("Content-Type")
    return response
