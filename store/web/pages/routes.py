"""The decorators of pages and of other resources, and errors as pages."""

from collections.abc import Callable, Container, Hashable, Mapping
from typing import Any, get_type_hints

from flask import Request, request

from store.text import MAX_SLUG
from store.web.errors import Refused, Suggestion
from store.web.queries import Query
from store.web.rendering import HTML, render_page
from store.web.responses import Body, Route, snapshot_basis
from store.web.view import View

MACHINES = (
    "/api/", "/mcp", "/healthz", "/livez", "/readyz", "/.well-known/", "/feeds/", "/static/",
    "/search/suggest", "/data/", "/badge/", "/embed/", "/cards/",
)  # fmt: skip
"""Paths where programs read; their errors stay problem details."""

HEADINGS = {
    400: "This address cannot be read",
    404: "There is nothing here",
    410: "This is gone",
    503: "This cannot be shown just now",
}
"""Headings of pages, instead of the phrase of a status."""


def page(
    rule: str,
    template: str,
    *,
    basis: Callable[..., Hashable] = snapshot_basis,
    alternate: Callable[[View, Any], str] | None = None,
    media_type: str = HTML,
) -> Callable[[Callable[[View, Any], Mapping[str, Any]]], Route]:
    """Return a decorator that makes a page; ``alternate`` gives the address of its JSON form.

    The function's context may name another ``template``, and say whether it ``may_be_kept``.
    """

    def encode(view: View, query: Any, context: Mapping[str, Any]) -> Body:
        link = view.page_link(alternate(view, query) if alternate else None)
        headers = {"Content-Type": media_type, "Link": link}
        body = render_page(context.get("template", template), view, **context)
        # Made while the sentence model is busy, for example, it may be another next time.
        return Body(body, headers, may_be_kept=context.get("may_be_kept", True))

    return _route(rule, encode, basis)


def from_snapshot(rule: str, template: str, **options: Any) -> Route:
    """Make a page whose template takes all that it shows from the snapshot."""

    def nothing(view: View, query: Query) -> dict[str, Any]:  # noqa: ARG001
        return {}

    return page(rule, template, **options)(nothing)


def resource(
    rule: str, media_type: str, *, basis: Callable[..., Hashable] = snapshot_basis
) -> Callable[[Callable[[View, Any], bytes | Body]], Route]:
    """Return a decorator for a function that gives bytes, or a whole body."""

    def encode(view: View, query: Any, content: bytes | Body) -> Body:  # noqa: ARG001
        if isinstance(content, Body):
            return content
        return Body(content, {"Content-Type": media_type, "Link": view.page_link()})

    return _route(rule, encode, basis)


def _route(
    rule: str,
    encode: Callable[[View, Any, Any], Body],
    basis: Callable[..., Hashable],
) -> Callable[[Callable[[View, Any], Any]], Route]:
    return lambda function: Route(
        rule=rule,
        name=rule.replace(".", "_"),  # Flask allows no dot in a name
        function=function,
        query=get_type_hints(function)["query"],
        encode=encode,
        basis=basis,
    )


def is_for_people(given: Request, routes: Container[str]) -> bool:
    """Return whether an error is a page: at an address of ours, or one that a browser asks for.

    No cache keeps an error, so this may depend on what is accepted.
    """
    if given.path.startswith(MACHINES):
        return False
    return given.endpoint in routes or "text/html" in given.headers.get("Accept", "")


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
    kind, _, wanted = request.path.strip("/").removesuffix("/polls").rpartition("/")
    # Only what nobody knows was mistyped.
    if refused.code in ("no-answer-yet", "no-such-day", "unknown-experiment"):
        return []
    malformed = any(error.parameter == "slug" for error in refused.errors or ())
    if refused.status != 404 and not (malformed and kind in ("best", "product")):  # noqa: PLR2004
        return []
    wanted = wanted[:MAX_SLUG].casefold()
    if kind == "product":
        return view.suggestions(wanted, "brands")
    return view.suggestions(wanted, "categories")
