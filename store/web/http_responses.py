"""Answering with a body: validators, compression and caching, the same for every resource."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flask import Response, request
from werkzeug.http import parse_accept_header, parse_etags

from store.web import crossorigin

if TYPE_CHECKING:
    from collections.abc import Mapping

    from _typeshed.wsgi import WSGIEnvironment
    from werkzeug.datastructures import Headers

    from store.web.cache import EncodedBody

CACHE_CONTROL = "public, max-age=60, stale-while-revalidate=600"
FOR_GOOD = "public, max-age=31536000, immutable"
"""That of addresses that change with their content."""

SMALL = 1024
"""Bodies up to this size, in bytes, are not worth compressing."""

COMPRESSED = ("image/png",)
"""Media types that are compressed already."""

POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""The content security policy of pages: nothing inline, nothing from anybody else."""

PICTURE_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""That of SVG, which is a document when it is opened by itself; the icon has a style of its own."""

NOSNIFF = {"X-Content-Type-Options": "nosniff"}
SECURITY_HEADERS = {
    "text/html": {
        **NOSNIFF,
        "Content-Security-Policy": POLICY,
        "Referrer-Policy": "strict-origin-when-cross-origin",
    },
    "image/svg+xml": {**NOSNIFF, "Content-Security-Policy": PICTURE_POLICY},
}
"""By media type; every other has ``NOSNIFF`` alone."""


class Answer(Response):
    """A response whose headers are final: Werkzeug need not look at them again."""

    default_mimetype = None

    def __init__(
        self, status: str | int, headers: Mapping[str, str], body: bytes | None = None
    ) -> None:
        """Take all headers but the length of the body; ``None`` is no body at all."""
        pieces = [] if body is None else [body]
        length = {} if body is None else {"Content-Length": str(len(body))}
        final = {**headers, **security_headers(headers.get("Content-Type", "")), **length}
        super().__init__(pieces, status, final.items(), direct_passthrough=True)

    def get_wsgi_headers(self, environ: WSGIEnvironment) -> Headers:  # noqa: ARG002 - Werkzeug's
        """The headers as they were given."""
        return self.headers


def security_headers(content_type: str) -> Mapping[str, str]:
    """What a browser may make of an answer of this type."""
    return SECURITY_HEADERS.get(content_type.partition(";")[0], NOSNIFF)


def answer(
    encoded: EncodedBody, media_type: str, link: str, cache_control: str = CACHE_CONTROL
) -> Response:
    """A body, or 304 when the reader has it; compressed when the reader accepts it."""
    environ = request.environ
    headers = {
        "ETag": encoded.etag,
        "Cache-Control": cache_control if encoded.is_final else "no-store",
        "Vary": "Accept-Encoding",
        **({"Link": link} if link else {}),
        **crossorigin.HEADERS,
    }
    if _is_known(environ, encoded):
        return Answer("304 NOT MODIFIED", headers)
    body = encoded.body
    if (
        len(body) > SMALL
        and media_type not in COMPRESSED
        and _prefers_gzip(environ.get("HTTP_ACCEPT_ENCODING", ""))
    ):
        body = encoded.gzipped
        headers["Content-Encoding"] = "gzip"
    headers["Content-Type"] = media_type
    return Answer("200 OK", headers, body)


def moved(address: str) -> Response:
    """A permanent redirect to the address that an old slug has now."""
    response = Response(status=308, headers={"Location": address, "Cache-Control": CACHE_CONTROL})
    response.headers.remove("Content-Type")
    return response


def _is_known(environ: Mapping[str, str], encoded: EncodedBody) -> bool:
    """Return whether the reader's copy is current, by its tag alone.

    No date could say so: two polls may come in one second, and an edit may take a file away.
    """
    tags = environ.get("HTTP_IF_NONE_MATCH")
    if tags is None:
        return False
    return tags == encoded.etag or parse_etags(tags).contains_weak(encoded.etag[3:-1])


def _prefers_gzip(accepted: str) -> bool:
    """Whether an Accept-Encoding allows gzip and does not prefer the plain body."""
    if ";" not in accepted:  # no weights, as browsers send it: a tenth of the parser's time
        return not {"gzip", "*"}.isdisjoint(map(str.strip, accepted.lower().split(",")))
    codings = parse_accept_header(accepted.lower())
    return 0 < codings["gzip"] >= codings["identity"]
