"""Answering with a body: validators, compression and caching, the same for every resource."""

from __future__ import annotations

from email.utils import formatdate
from functools import lru_cache
from typing import TYPE_CHECKING

from flask import Response, request
from werkzeug.http import parse_date

if TYPE_CHECKING:
    from werkzeug.wrappers import Request

    from store.snapshot import Prepared

CACHE_CONTROL = "public, max-age=60, stale-while-revalidate=600"
SMALL = 1024
"""Bodies up to this size, in bytes, are not worth compressing."""


def answer(prepared: Prepared, media_type: str, link: str) -> Response:
    """A prepared body, or 304 when the reader has it; compressed when the reader accepts it."""
    headers = {
        "ETag": prepared.etag,
        "Last-Modified": _http_date(prepared.modified),
        "Cache-Control": CACHE_CONTROL,
        "Vary": "Accept-Encoding",
        "Link": link,
    }
    if _is_known(request, prepared):
        return Response(status=304, headers=headers)
    body = prepared.body
    if len(body) > SMALL and _accepts_gzip(request):
        body = prepared.gzipped
        headers["Content-Encoding"] = "gzip"
    return Response(body, 200, headers, content_type=media_type)


def moved(address: str) -> Response:
    """A permanent redirect to the address that an old slug has now."""
    return Response(status=308, headers={"Location": address, "Cache-Control": CACHE_CONTROL})


def _is_known(request: Request, prepared: Prepared) -> bool:
    """Whether the reader's copy is current: by its tag, or by its date if it sends no tag."""
    if "If-None-Match" in request.headers:
        return request.if_none_match.contains_weak(prepared.etag[3:-1])
    since = request.headers.get("If-Modified-Since")
    if since is None:
        return False
    date = parse_date(since)
    return date is not None and prepared.modified <= date.timestamp()


def _accepts_gzip(request: Request) -> bool:
    header = request.headers.get("Accept-Encoding", "")
    if ";" not in header:
        return "gzip" in header
    return bool(request.accept_encodings["gzip"])


@lru_cache(maxsize=4096)
def _http_date(seconds: int) -> str:
    return formatdate(seconds, usegmt=True)
