"""Errors as people see them."""

from collections.abc import Container

from flask import Request, request

from store.text import MAX_SLUG
from store.web.errors import Refused, Suggestion
from store.web.rendering import render_page
from store.web.view import View

MACHINES = (
    "/api/", "/mcp", "/healthz", "/livez", "/readyz", "/.well-known/", "/feeds/", "/static/",
    "/search/suggest", "/data/", "/badge/", "/embed/", "/cards/",
)  # fmt: skip
"""Where programs read; their errors stay problem details."""

HEADINGS = {
    400: "This address cannot be read",
    404: "There is nothing here",
    410: "This is gone",
    503: "This cannot be shown just now",
}
"""What pages say instead of the phrase of a status."""


def is_for_people(asked: Request, pages: Container[str]) -> bool:
    """Return whether an error belongs to one of our pages, or a browser asks for something unknown.

    No cache keeps an error, so this may depend on what is accepted.
    """
    if asked.path.startswith(MACHINES):
        return False
    return asked.endpoint in pages or "text/html" in asked.headers.get("Accept", "")


def error_page(view: View, refused: Refused) -> bytes:
    """Return a page that says what a problem detail says."""
    suggestions = refused.suggestions or _suggestions(refused, view)
    api = view.at.api("")
    return render_page(
        "error.html",
        view,
        status=refused.status,
        heading=refused.heading or HEADINGS.get(refused.status, refused.phrase),
        detail=refused.sentence,
        suggestions=[(s.title, s.api.removeprefix(api).removesuffix(".json")) for s in suggestions],
    )


def _suggestions(refused: Refused, view: View) -> list[Suggestion]:
    """Return the categories or products that a mistyped path may have meant."""
    kind, _, wanted = request.path.strip("/").rpartition("/")
    malformed = refused.status == 400 and kind in ("best", "product")  # noqa: PLR2004
    if refused.status != 404 and not malformed:  # noqa: PLR2004
        return []
    wanted = wanted[:MAX_SLUG].casefold()
    if kind == "product":
        return view.suggestions(wanted, "brands")
    return view.suggestions(wanted, "categories")
