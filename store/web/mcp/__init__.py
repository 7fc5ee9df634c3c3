"""The MCP server at ``POST /mcp``, and its card: tools over what the JSON API serves.

``protocol`` knows JSON-RPC and the two eras of MCP, ``tools`` answers.
"""

from contextlib import suppress

import msgspec
from flask import Flask, Response, g, request
from werkzeug.datastructures import Headers
from werkzeug.exceptions import RequestEntityTooLarge, UnsupportedMediaType

from store.web.hosts import host_of, is_ip
from store.web.mcp import tools
from store.web.mcp.protocol import SUPPORTED, Server, dispatch
from store.web.openapi import VERSION
from store.web.pages.routes import resource
from store.web.queries import Query
from store.web.rendering import render
from store.web.responses import NOSNIFF, FinalResponse
from store.web.view import View

MAX_BODY = 64 * 1024
"""Bytes that a message may have."""


def register(app: Flask) -> None:
    """Serve ``POST /mcp``."""

    @app.post("/mcp")
    def messages() -> Response:
        view = g.view
        server = Server(
            _info(view),
            lambda: render("mcp.md", view, tool="").strip(),
            tools.listing,
            lambda name, arguments: tools.call(name, view, arguments),
        )
        status, headers, body = dispatch(server, _body(), request.headers)
        final = {**headers, **NOSNIFF, "Content-Length": str(len(body))}
        return FinalResponse(status, Headers(final.items()), body)


def _body() -> bytes:
    """Return the body of the request, if it is JSON and short enough."""
    # What is not declared as JSON any page could post without a CORS preflight.
    if request.mimetype != "application/json":
        raise UnsupportedMediaType("Send a JSON-RPC message with Content-Type: application/json.")
    # Werkzeug cuts a chunked body off silently: one byte more tells it apart.
    request.max_content_length = MAX_BODY + 1
    with suppress(RequestEntityTooLarge):
        body = request.get_data(cache=False)
        if len(body) <= MAX_BODY:
            return body
    raise RequestEntityTooLarge(f"A message may have {MAX_BODY} bytes at most.")


@resource("/.well-known/mcp/server-card.json", "application/mcp-server-card+json")
def card(view: View, query: Query) -> bytes:  # noqa: ARG001
    """Return the server card (SEP-2127)."""
    remote = {
        "type": "streamable-http",
        "url": view.at.page("mcp"),
        "supportedProtocolVersions": SUPPORTED,
    }
    about = {
        "$schema": "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json",
        **_info(view),
        "description": "What AI assistants recommend for 'best X' questions, as rankings.",
        "websiteUrl": view.at.page(),
        "remotes": [remote],
    }
    return msgspec.json.encode(about)


def _info(view: View) -> dict[str, str]:
    host = host_of(view.at.base)
    domain = "localhost" if is_ip(host) else ".".join(reversed(host.split(".")))
    title = view.site.name[:100]
    return {"name": f"{domain}/consensus-rankings", "title": title, "version": VERSION}
