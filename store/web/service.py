"""The web service: its routes, and what happens around every request to them.

That is: the check of its host, other spellings of an address, CORS, and errors as pages.
"""

from collections.abc import Callable, Container
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from flask import Flask, Request, Response, current_app, g, request
from flask_cors import CORS
from werkzeug.exceptions import BadRequest, HTTPException, NotFound
from werkzeug.routing import MapAdapter

from store.files import Catalogue
from store.search.meaning import Meaning
from store.store import Store
from store.text import is_slug
from store.web import errors, health, hosts, mcp, openapi, responses
from store.web.errors import ProblemResponse, Refused
from store.web.pages import feeds, pictures, views
from store.web.pages.data import DataFiles
from store.web.pages.routes import error_page, is_for_people
from store.web.rendering import HTML, MEDIA_TYPES, asset_digest, assets
from store.web.responses import (
    ANY_ORIGIN,
    FOR_GOOD,
    Body,
    FinalResponse,
    Route,
    redirect,
    security_headers,
)
from store.web.view import View

EXPOSED_BY_MCP = "MCP-Protocol-Version, Mcp-Session-Id"
READING = ("GET", "HEAD", "OPTIONS")
DAY = 86_400
UNTRUSTED = (
    "The Host header names a host that is not this service. Its operator can add it to HOSTS, or "
    "to hosts in site.json."
)
API = "/api/v1"
_SAFE_IN_QUERY = "!$&'()*+,/:;=?@-._~%"
"""What stands in a query string as it was sent (RFC 3986, section 3.4); the rest is encoded."""


class Service(Flask):
    """A Flask app that leaves it to us whose requests are answered."""

    def create_url_adapter(self, request: Request | None) -> MapAdapter | None:
        """Bind the routes to a request without a look at its Host or what it would upgrade to."""
        if request is None:
            return super().create_url_adapter(request)
        return self.url_map.bind(
            "localhost",
            script_name=request.root_path,
            path_info=request.path,
            default_method=request.method,
        )

    def ensure_sync(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """Take views as they are: none is a coroutine, and to look costs a request 6 of 58 µs."""
        return func


def register(
    app: Flask,
    store: Store,
    meaning: Meaning,
    base_url: Callable[[Catalogue], str],
    names: tuple[str, ...],
) -> None:
    """Serve everything that a store holds, below a base URL, to requests for our hosts.

    Those are the base URL's, ``localhost``, those of site.json and the operator's own ``names``.
    """
    files = DataFiles(store.directory)
    routes = (
        *openapi.ENDPOINTS, mcp.card, *views.ROUTES, *feeds.ROUTES, *pictures.routes(),
        files.page(),
    )  # fmt: skip
    latest: tuple[int, str, frozenset[str]] = (-1, "", frozenset())

    def current() -> tuple[View, frozenset[str]]:
        """Return the view of a request that comes now, and the hosts it may be for."""
        nonlocal latest
        snapshot = store.snapshot
        step, base, own = latest
        if step != snapshot.step:  # once for each snapshot
            base = base_url(snapshot.catalogue)
            own = hosts.host_names((base, *snapshot.catalogue.site.hosts, *names))
            latest = snapshot.step, base, own
        return View(snapshot, base, store.lines, meaning), own

    errors.register(app)
    _add_request_hooks(app, routes, current)
    responses.register(app, routes, responses.Cache())
    app.add_url_rule("/data/<path:name>", "data_file", files.send)
    app.add_url_rule("/static/<name>", "static", _send_asset)
    mcp.register(app)
    health.register(app, store)


def _send_asset(name: str) -> Response:
    """Answer with the style sheet, the script or the icon."""
    if name not in assets():
        raise Refused("not-found", "There is no such file.")
    # An old address must not keep new content for good.
    is_current = request.args.get("v") == asset_digest(name)
    return _asset(name, is_current=is_current).response(request.environ)


@cache
def _asset(name: str, *, is_current: bool) -> Body:
    headers = {"Content-Type": MEDIA_TYPES[Path(name).suffix]}
    return Body(assets()[name], headers | ({"Cache-Control": FOR_GOOD} if is_current else {}))


def _add_request_hooks(
    app: Flask, routes: tuple[Route, ...], current: Callable[[], tuple[View, frozenset[str]]]
) -> None:
    """Add what happens before and after every request."""
    by_name = {route.name: route for route in routes}
    app.url_map.merge_slashes = False  # one resource has one address

    @app.before_request
    def prepare() -> Response | None:
        """Refuse other hosts, answer OPTIONS, and lead other spellings to their address."""
        environ = request.environ
        g.view, names = current()  # one snapshot for all of the request
        if not (hosts.is_trusted(environ, names) or environ["PATH_INFO"] in hosts.PROBES):
            raise BadRequest(UNTRUSTED)
        if request.method == "OPTIONS":
            return _options()
        sent: str = environ["PATH_INFO"]
        if sent.startswith("//"):  # which Werkzeug would route as if it had one slash
            raise NotFound
        if not environ.get("QUERY_STRING", "").isascii():  # else nobody could read an argument
            request.query_string = quote(request.query_string, safe=_SAFE_IN_QUERY).encode()
        is_odd = (
            request.routing_exception or sent[-1:] == "/" or sent == API or sent != sent.lower()
        )
        path = _canonical(sent, by_name) if is_odd and sent != "/" else None
        if path is None or path == sent:
            return None
        query = quote(request.query_string, safe=_SAFE_IN_QUERY)
        address = g.view.at.page(f"{path.removeprefix('/')}{query and f'?{query}'}")
        return redirect(address).response(environ)

    @app.after_request
    def finish(response: Response) -> Response:
        """Give responses that are not final their security headers; show errors as pages."""
        if isinstance(response, FinalResponse):  # they have them already
            return response
        if isinstance(response, ProblemResponse) and is_for_people(request, by_name):
            response.set_data(error_page(g.view, response.refused))
            response.content_type = HTML
        response.headers.update(security_headers(response.content_type or ""))
        return response

    _allow_any_origin(app)


def _allow_any_origin(app: Flask) -> None:
    """Let the scripts of any site read every answer, errors included."""
    # Flask-CORS would echo the caller's origin, and so split shared caches by it, unless told to
    # send the wildcard.
    mcp = {"methods": ["POST", "OPTIONS"], "expose_headers": EXPOSED_BY_MCP}
    CORS(
        app,
        resources={"/mcp": mcp, "/.*": {"methods": list(READING)}},
        origins="*",
        send_wildcard=True,
        always_send=True,
        expose_headers=ANY_ORIGIN["Access-Control-Expose-Headers"],
        max_age=DAY,
    )


def _options() -> Response:
    """Answer OPTIONS on any path, so that a browser's script may read a 404 after its preflight."""
    response = current_app.make_default_options_response()
    response.status_code = 204
    response.headers["Allow"] = ", ".join(sorted(response.allow) or READING)
    response.headers.remove("Content-Type")  # of no content
    return response


def _canonical(sent: str, routes: Container[str]) -> str | None:
    """Return the path of ours that another spelling stands for; ``None`` if there is none."""
    if not sent.isascii():
        return None
    if sent == API:
        return f"{API}/"
    plain = sent.removesuffix("/") if sent != f"{API}/" else sent
    spellings = [plain, plain.lower()]
    if sent.startswith(f"{API}/"):
        spellings.append(f"{plain.lower()}.json")
    adapter = current_app.url_map.bind("localhost")
    for path in spellings:
        try:
            endpoint, variables = adapter.match(path, request.method)
        except HTTPException:
            continue
        lower = {name: value.lower() for name, value in variables.items()}
        if not lower or (endpoint in routes and all(map(is_slug, lower.values()))):
            return adapter.build(endpoint, lower)
    return None
