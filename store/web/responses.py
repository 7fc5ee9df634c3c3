"""Answering: a ``Route`` makes a Flask rule of a function (view, query) → answer.

The bytes are kept: one cache holds what was asked for most recently, by address, while the basis of
the address is the same: the step of the snapshot, or of the part that the answer follows from.
"""

import gzip
import sys
import threading
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from functools import cached_property, partial
from hashlib import blake2b
from typing import Any

import msgspec
from cachetools import LRUCache
from flask import Flask, Response, current_app, g, request
from msgspec import Struct
from werkzeug.datastructures import Headers
from werkzeug.http import parse_accept_header, parse_etags

from store.web.errors import MEDIA_TYPE, Moved, Refused, problem
from store.web.lookup import check_history
from store.web.queries import Query, from_address, parameters_of
from store.web.view import View

OK = 200
CACHE_CONTROL = "public, max-age=60, stale-while-revalidate=600"
FOR_GOOD = "public, max-age=31536000, immutable"
"""Cache-Control of addresses that change with their content."""

BUDGET = 120 << 20
"""Bytes kept at most, as :attr:`Body.size` counts them.

All JSON bodies of the shipped data (1,425 verdicts, 5,630 records) take 42 MB. Queries do no harm
by crowding out verdicts: a search answer costs 1.9 ms and takes 11 KB, a verdict takes 16 KB and is
made again in 0.14 ms.
"""
OVERHEAD = 2048
"""Bytes that a kept body takes beside its key, itself and its compressed form: objects, headers."""
PICTURE_SIZE = 80 << 10
"""Bytes that a drawn picture takes: no card of the shipped data takes more than 76 KB."""
SMALL = 1024
"""Bodies up to this size, in bytes, are not worth compressing."""
GZIP_LEVEL = 6
"""Level of gzip: 9 saves no more."""

ANY_ORIGIN = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": "ETag, Link",
}
"""What Flask-CORS adds to an answer; it leaves alone one that has it, a fifth of Flask's time."""
NOSNIFF = {"X-Content-Type-Options": "nosniff"}
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""The content security policy of pages: nothing inline, nothing from anybody else."""
SECURITY_HEADERS = {
    "text/html": {
        **NOSNIFF,
        "Content-Security-Policy": POLICY,
        "Referrer-Policy": "strict-origin-when-cross-origin",
    },
    # SVG is a document when it is opened by itself; the icon has a style of its own.
    "image/svg+xml": {
        **NOSNIFF,
        "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
    },
}
"""By media type; every other has ``NOSNIFF`` alone."""


class FinalResponse(Response):
    """A response whose headers Werkzeug sends as they are; hooks may still add some."""

    default_mimetype = None

    def __init__(self, status: str | int, headers: Headers, body: bytes | None = None) -> None:
        super().__init__([] if body is None else [body], status, headers, direct_passthrough=True)

    def get_wsgi_headers(self, environ: Any) -> Headers:  # noqa: ARG002 - Werkzeug's
        """Return the headers as they were given."""
        return self.headers


class Body:
    """The bytes and headers sent for an address, plain and compressed, with their tag.

    ``source`` is what is sent or, with ``draw``, the SVG that the picture is drawn from. The tag is
    the source's: a reader who has the picture is answered without drawing it. Tag, picture and
    compressed form are made when they are first sent. See :class:`Result` for ``may_be_kept``;
    `flask export` leaves out what may not be kept.
    """

    def __init__(
        self,
        source: bytes,
        headers: Mapping[str, str],
        *,
        status: int = 200,
        draw: Callable[[bytes], bytes] | None = None,
        may_be_kept: bool = True,
    ) -> None:
        self.status = status
        self.may_be_kept = may_be_kept
        self._source = source
        self._headers = headers
        self._draw = draw

    @cached_property
    def content(self) -> bytes:
        """The bytes that are sent."""
        return self._draw(self._source) if self._draw else self._source

    @cached_property
    def etag(self) -> str:
        """The weak tag, different for every other body of the address."""
        return f'W/"{blake2b(self._source, digest_size=8).hexdigest()}"'

    @cached_property
    def gzipped(self) -> bytes:
        """The content compressed; the same content always gives the same bytes."""
        # nginx.conf lets this coding alone pass.
        return gzip.compress(self.content, GZIP_LEVEL, mtime=0)

    @property
    def size(self) -> int:
        """Bytes that it may take with its compressed form: gzip at least halves text."""
        return 3 * len(self._source) // 2 + (PICTURE_SIZE if self._draw else 0)

    def response(self, environ: Mapping[str, str]) -> Response:
        """Answer a request: 304 to a client that has it, compressed to one that accepts gzip."""
        if self.status == OK and _is_current(environ, self.etag):
            return FinalResponse("304 NOT MODIFIED", Headers([*self._common, *NOSNIFF.items()]))
        content, encoding = self.content, dict[str, str]()
        if self._is_compressible and _prefers_gzip(environ.get("HTTP_ACCEPT_ENCODING", "")):
            content, encoding = self.gzipped, {"Content-Encoding": "gzip"}
        media_type = self._headers.get("Content-Type", "")
        headers = {
            **({"Content-Type": media_type} if media_type else {}),
            **security_headers(media_type),
            "Content-Length": str(len(content)),
            **encoding,
        }
        return FinalResponse(self.status, Headers([*self._common, *headers.items()]), content)

    @cached_property
    def _is_compressible(self) -> bool:
        is_worth_it = self.status == OK and self._headers.get("Content-Type") != "image/png"
        return is_worth_it and len(self.content) > SMALL

    @cached_property
    def _common(self) -> list[tuple[str, str]]:
        """The headers of every form but those of its content; only what is there has a tag."""
        tags = {"ETag": self.etag, "Vary": "Accept-Encoding"} if self.status == OK else {}
        cache_control = CACHE_CONTROL if self.may_be_kept else "no-store"
        common = {"Cache-Control": cache_control, **tags, **ANY_ORIGIN, **self._headers}
        return [pair for pair in common.items() if pair[0] != "Content-Type"]


class Route(Struct, frozen=True, kw_only=True):
    """An address and the function that answers it, given a view and a query.

    ``encode`` makes the body of the function's answer. Kept bytes are served as long
    as ``basis(view, **variables)`` returns what it did when they were made. A ``strict`` route
    refuses parameters that its query does not have.
    """

    rule: str
    name: str
    function: Callable[[View, Any], Any]
    query: type[Query]
    encode: Callable[[View, Any, Any], Body]
    basis: Callable[..., Hashable]
    strict: bool = False

    def __call__(self, view: View, query: Any) -> Any:
        """Answer without HTTP."""
        return self.function(view, query)

    def body(self, view: View, query: Any) -> Body:
        """Return the body of the answer to a query."""
        return self.encode(view, query, self.function(view, query))


def snapshot_basis(view: View, **_: str) -> Hashable:
    """Return the basis of what may follow from anything."""
    return view.snapshot.step


def category_basis(view: View, slug: str) -> Hashable:
    """Return the basis of what follows from one ranking alone: a poll of another changes nothing.

    Without a ranking it is minus the snapshot's step, a value that no ranking has, so that one is
    shown as soon as there is one.
    """
    return view.snapshot.board_steps.get(slug, -view.snapshot.step)


class _Entry(Struct, frozen=True, gc=False):
    """A body, its basis, and the bytes it takes."""

    basis: Hashable
    body: Body
    size: int


class Cache:
    """The bodies asked for most recently, by address, within a budget of bytes.

    It holds bytes and numbers alone, so it keeps no snapshot alive.
    """

    def __init__(self, budget: int = BUDGET) -> None:
        self._entries: LRUCache[str, _Entry] = LRUCache(budget, getsizeof=lambda entry: entry.size)
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """Bytes kept now."""
        return int(self._entries.currsize)

    def get(self, address: str, basis: Hashable) -> Body | None:
        """Return the body of an address if it is kept and has this basis."""
        with self._lock:
            try:
                entry = self._entries[address]  # ``get`` would look twice
            except KeyError:
                return None
        return entry.body if entry.basis == basis else None

    def keep(self, address: str, basis: Hashable, body: Body) -> None:
        """Keep a body in place of any other of its address."""
        size = sys.getsizeof(address) + body.size + OVERHEAD
        with self._lock, suppress(ValueError):  # larger than the whole budget: it is not kept
            self._entries[address] = _Entry(basis, body, size)


def register(app: Flask, routes: tuple[Route, ...], cache: Cache) -> None:
    """Serve routes, their bodies kept in a cache."""
    for route in routes:
        respond = partial(_respond, route, cache)
        app.add_url_rule(route.rule, route.name, respond, strict_slashes=route.rule[-1:] != "/")


def _respond(route: Route, cache: Cache, /, **variables: str) -> Response:
    environ, view = request.environ, g.view
    query = environ.get("QUERY_STRING")
    address = f"{environ['PATH_INFO']}?{query}" if query else environ["PATH_INFO"]
    basis = route.basis(view, **variables)
    body = cache.get(address, basis)
    if body is None:  # two readers at once may both make it: cheaper than that one waits
        body = _body_of(route, view, variables)
        if body.may_be_kept:
            # The basis is that of before the body was made: a poll may have come meanwhile.
            cache.keep(address, basis, body)
    return body.response(environ)


def _body_of(route: Route, view: View, variables: Mapping[str, str]) -> Body:
    """Return what a route answers to the request at hand: its body, a redirect or a refusal.

    Raises:
        Refused: it cannot be answered, and people may read why; that page is not kept.
    """
    query: Query = Query()
    try:
        check_history(view.snapshot)
        query = from_address(route.query, request.args, variables, refuses_unknown=route.strict)
        return route.body(view, query)
    except Moved as moved:
        present = {**parameters_of(query), **moved.parameters}
        path = current_app.url_map.bind("localhost").build(route.name, present)
        return redirect(view.at.page(path.removeprefix("/")))
    except Refused as refused:
        if not route.strict:
            raise
        # Our cache keeps it like an answer, for it has the same basis; others must not.
        headers = {"Content-Type": MEDIA_TYPE, "Cache-Control": "no-store"}
        return Body(msgspec.json.encode(problem(refused)), headers, status=refused.status)


def redirect(address: str) -> Body:
    """Return the permanent redirect to an address."""
    return Body(b"", {"Location": address}, status=308)


def security_headers(content_type: str) -> Mapping[str, str]:
    """Return what a browser may make of an answer of this type."""
    return SECURITY_HEADERS.get(content_type.partition(";")[0], NOSNIFF)


def _is_current(environ: Mapping[str, str], etag: str) -> bool:
    """Return whether the reader's copy is current, by its tag alone.

    No date could say so: two polls may come in one second, and an edit may take a file away.
    """
    tags = environ.get("HTTP_IF_NONE_MATCH")
    return tags is not None and (tags == etag or parse_etags(tags).contains_weak(etag[3:-1]))


def _prefers_gzip(accepted: str) -> bool:
    """Return whether an Accept-Encoding allows gzip and does not prefer the plain body."""
    if ";" not in accepted:  # no weights, as browsers send it: a tenth of the parser's time
        return not {"gzip", "*"}.isdisjoint(map(str.strip, accepted.lower().split(",")))
    codings = parse_accept_header(accepted.lower())
    return 0 < codings["gzip"] >= codings["identity"]
