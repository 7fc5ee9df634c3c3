"""Another spelling of an address, in upper case or with a slash at its end, leads to its own.

A query with raw bytes in it is read as if they had been sent percent-encoded.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from flask import current_app, request
from werkzeug.exceptions import HTTPException

from store.web.http_responses import moved

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from flask import Flask, Response

_KEPT = "!$&'()*+,/:;=?@-._~%"
"""What stands in a query string as it was sent (RFC 3986, section 3.4); the rest is encoded."""


def register(
    app: Flask, base: Callable[[], str], is_known: Callable[[str, Mapping[str, Any]], bool]
) -> None:
    """Redirect other spellings of an address whose endpoint and variables are known."""

    @app.before_request
    def redirect_other_spellings() -> Response | None:
        environ = request.environ
        if not environ.get("QUERY_STRING", "").isascii():  # else nobody could read an argument
            request.query_string = quote(request.query_string, safe=_KEPT).encode()
        sent: str = environ["PATH_INFO"]
        if sent == "/" or not (sent.endswith("/") or sent != sent.lower()):
            return None
        path = _canonical(sent, is_known)
        if path is None or path == sent:
            return None
        query = quote(request.query_string, safe=_KEPT)
        return moved(f"{base()}{path}{query and f'?{query}'}")


def _canonical(sent: str, is_known: Callable[[str, Mapping[str, Any]], bool]) -> str | None:
    """The path of ours that another spelling stands for; ``None`` if nothing is there."""
    plain = sent.removesuffix("/")
    if sent.startswith("//") or not sent.isascii():
        return None
    routes = current_app.url_map.bind("localhost")
    for path in (plain, plain.lower()):
        with suppress(HTTPException):
            endpoint, given = routes.match(path, request.method)
            found = {name: value.lower() for name, value in given.items()}
            if not found or is_known(endpoint, found):
                return routes.build(endpoint, found)
    return None
