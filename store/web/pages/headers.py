"""Security headers of answers that others make, and errors shown as pages to people."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from flask import Flask, Response, request

from store.records import MAX_SLUG
from store.web.errors import ProblemResponse
from store.web.http_responses import Answer, security_headers
from store.web.pages.rendering import HTML

if TYPE_CHECKING:
    from store.web.pages.rendering import PageRenderer
    from store.web.resources import ProblemDetails, Suggestion
    from store.web.responding import Responder
    from store.web.snapshot_view import SnapshotView

MACHINES = (
    "/api/", "/mcp", "/healthz", "/livez", "/readyz", "/.well-known/", "/feeds/", "/static/",
    "/search/suggest", "/data/", "/badge/", "/embed/", "/cards/",
)  # fmt: skip
"""Where programs read; their errors stay problem details."""

HEADINGS = {
    HTTPStatus.BAD_REQUEST.value: "This address is not right",
    HTTPStatus.NOT_FOUND.value: "There is nothing here",
    HTTPStatus.GONE.value: "This is gone",
    HTTPStatus.SERVICE_UNAVAILABLE.value: "This cannot be shown just now",
}
"""What pages say instead of the phrase of a status."""

UNKNOWN = {HTTPStatus.NOT_FOUND.value: "There is no page at this address."}
"""What people are told of a path that no view has, in place of directions for programs."""


def register(app: Flask, responder: Responder, renderer: PageRenderer) -> None:
    """Give what is no ``Answer`` its security headers, and show errors on page paths as pages."""

    @app.after_request
    def finish(response: Response) -> Response:
        if isinstance(response, Answer):  # it has its headers
            return response
        if isinstance(response, ProblemResponse) and _is_for_people():
            _show(response, responder.view(), renderer)
        response.headers.update(security_headers(response.content_type or ""))
        return response


def _is_for_people() -> bool:
    """Whether an error belongs to one of our pages, or a browser asks for something unknown.

    No cache keeps an error, so this may depend on what is accepted.
    """
    if request.path.startswith(MACHINES):
        return False
    return request.blueprint == "pages" or "text/html" in request.headers.get("Accept", "")


def _show(response: ProblemResponse, view: SnapshotView, renderer: PageRenderer) -> None:
    """Turn a problem detail into a page that says the same, status and headers kept."""
    problem = response.details
    found = problem.suggestions or _suggestions(problem, view)
    api = view.at.api("")
    body = renderer.render(
        "error.html",
        view,
        status=problem.status,
        heading=response.heading or HEADINGS.get(problem.status, problem.title),
        detail=problem.detail if request.blueprint else UNKNOWN.get(problem.status, problem.detail),
        suggestions=[(s.title, s.api.removeprefix(api).removesuffix(".json")) for s in found],
    )
    response.set_data(body)
    response.content_type = HTML


def _suggestions(problem: ProblemDetails, view: SnapshotView) -> list[Suggestion]:
    """The categories or products that a mistyped path may have meant."""
    kind, _, wanted = request.path.strip("/").rpartition("/")
    malformed = problem.status == HTTPStatus.BAD_REQUEST and kind in ("best", "product")
    if problem.status != HTTPStatus.NOT_FOUND and not malformed:
        return []
    wanted = wanted[:MAX_SLUG].casefold()
    if kind == "product":
        return view.suggested_products(wanted)
    return view.suggested_categories(wanted)
