"""Pages as routes: a function gives what a template is filled with."""

from collections.abc import Callable, Hashable, Mapping
from typing import Any, get_type_hints

from store.web.answers import CACHE_CONTROL, Body, Route
from store.web.rendering import HTML, render_page
from store.web.view import View


def summary(view: View, **_: str) -> Hashable:
    """Return the basis of what is over everything."""
    return view.snapshot.step


def of_category(view: View, slug: str) -> Hashable:
    """Return the basis of what follows from a ranking: not other rankings, or a page costs 8 ms.

    What is not there has the snapshot's own, so that it is found as soon as it is.
    """
    return view.snapshot.board_steps.get(slug, -view.snapshot.step)


def of_product(view: View, slug: str) -> Hashable:  # noqa: ARG001 - of the whole snapshot
    """Return the basis of what follows from a product: made in 3 ms, it is any change's."""
    return view.snapshot.step


def page(
    rule: str,
    template: str,
    *,
    basis: Callable[..., Hashable] = summary,
    same: Callable[[View, Any], str] | None = None,
    media_type: str = HTML,
    needs_history: bool = True,
) -> Callable[[Callable[[View, Any], Mapping[str, Any]]], Route]:
    """Make a page of a function; ``same`` is the address of the JSON that says the same.

    What the function gives may name another ``template``, and say that it is not ``is_final``.
    """

    def encode(view: View, query: Any, context: Mapping[str, Any]) -> Body:
        link = view.page_link(same(view, query) if same else None)
        is_final = context.get("is_final", True)
        cache_control = CACHE_CONTROL if is_final else "no-store"
        headers = {"Content-Type": media_type, "Cache-Control": cache_control, "Link": link}
        body = render_page(context.get("template", template), view, **context)
        return Body(body, headers, is_final=is_final)

    return _route(rule, encode, basis, needs_history=needs_history)


def resource(
    rule: str,
    media_type: str,
    *,
    basis: Callable[..., Hashable] = summary,
    link: Callable[[View, Any], str] = lambda view, _: view.page_link(),
    needs_history: bool = True,
) -> Callable[[Callable[[View, Any], bytes | Body]], Route]:
    """Make an address of a function that gives bytes, or a whole body."""

    def encode(view: View, query: Any, found: bytes | Body) -> Body:
        if isinstance(found, Body):
            return found
        return Body(found, {"Content-Type": media_type, "Link": link(view, query)})

    return _route(rule, encode, basis, needs_history=needs_history)


def _route(
    rule: str,
    encode: Callable[[View, Any, Any], Body],
    basis: Callable[..., Hashable],
    *,
    needs_history: bool,
) -> Callable[[Callable[[View, Any], Any]], Route]:
    return lambda function: Route(
        rule=rule,
        name=rule.replace(".", "_"),
        function=function,
        query=get_type_hints(function)["query"],
        encode=encode,
        basis=basis,
        needs_history=needs_history,
    )
