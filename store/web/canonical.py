"""Another spelling of an address, in upper case or with a slash at its end, leads to its own."""

from __future__ import annotations

from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import quote

from flask import current_app, request
from werkzeug.exceptions import HTTPException

from store.web.answers import moved
from store.web.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Callable

    from flask import Flask, Response

_KEPT = "!$&'()*+,/:;=?@-._~%"
"""What stands in a query string as it was sent (RFC 3986, section 3.4); the rest is encoded."""


def register(app: Flask, base: Callable[[], str]) -> None:
    """Redirect every other spelling of an address that leads somewhere; ``base`` is our own."""

    @app.before_request
    def redirect_other_spellings() -> Response | None:
        sent: str = request.environ["PATH_INFO"]
        if sent == "/" or not (sent.endswith("/") or sent != sent.lower()):
            return None
        path = _canonical(sent)
        if path is None or path == sent:
            return None
        query = quote(request.query_string, safe=_KEPT)
        return moved(f"{base()}{path}{query and f'?{query}'}")


def _canonical(sent: str) -> str | None:
    """The path of ours that another spelling stands for; ``None`` if nothing is there."""
    plain = sent.removesuffix("/")
    if sent.startswith("//") or not sent.isascii():
        return None
    routes = current_app.url_map.bind("localhost")
    for path in (plain, plain.lower()):
        with suppress(HTTPException):
            endpoint, given = routes.match(path, request.method)
            found = {name: value.lower() for name, value in given.items()}
            if not found or _leads_somewhere(endpoint, found):
                return routes.build(endpoint, found)
    return None


def _leads_somewhere(endpoint: str, found: dict[str, str]) -> bool:
    """Whether an address has an answer, be it that it moved or is gone."""
    try:
        current_app.view_functions[endpoint](**found)
    except ApiError as error:
        return error.status not in (HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND)
    return True
