"""Pictures as routes: badges, embedded rankings, cards."""

from collections.abc import Callable, Hashable
from typing import Any

import msgspec

from store.web import lookup
from store.web.answers import Body, Route
from store.web.pages import pictures
from store.web.pages.pictures import PNG, SVG
from store.web.pages.routes import of_category, of_product, page, resource
from store.web.queries import OfCategory, Slug
from store.web.rendering import render_page
from store.web.view import View


class Place(OfCategory, frozen=True, kw_only=True):
    """A product's place in a ranking."""

    product: Slug


def _of_both(view: View, slug: str, product: str) -> Hashable:
    """Return the basis of what follows from a ranking and a product."""
    return of_category(view, slug), of_product(view, product)


def _service_links(view: View, _: Any) -> str:
    return view.service_links


def _same(view: View, query: OfCategory) -> str:
    return view.at.category(query.slug)


@resource("/badge/<slug>/<product>.svg", SVG, basis=_of_both, link=_service_links)
def badge(view: View, query: Place) -> bytes:
    """Draw rank, certainty and date."""
    found = lookup.place(view, query.slug, query.product, "svg")
    return render_page("badge.svg", view, **pictures.drawn_badge(*found, view))


@resource("/badge/<slug>/<product>.json", "application/json", basis=_of_both, link=_service_links)
def shield(view: View, query: Place) -> bytes:
    """Return the same for shields.io's endpoint badge."""
    found = lookup.place(view, query.slug, query.product, "json")
    return msgspec.json.encode(pictures.badge(*found, view))


@page("/embed/best/<slug>.svg", "ranking.svg", basis=of_category, same=_same, media_type=SVG)
def ranking(view: View, query: OfCategory) -> dict[str, Any]:
    """Draw a ranking's first places, with their source."""
    board = lookup.board(view, query.slug, view.at.ranking_picture)
    return pictures.ranking(board, view.category_verdict(board), view)


def card(draw: Callable[[bytes], bytes]) -> Route:
    """Return the route of what sites show beside a link to a ranking."""

    @resource("/cards/best/<slug>.png", PNG, basis=of_category)
    def drawn(view: View, query: OfCategory) -> Body:
        board = lookup.board(view, query.slug, view.at.card)
        context = pictures.card(board, view.category_verdict(board), view)
        source = render_page("card.svg", view, **context) + pictures.mark_of(draw)
        headers = {"Content-Type": PNG, "Link": view.page_link(_same(view, query))}
        return Body(source, headers, draw=draw)

    return drawn


def routes() -> tuple[Route, ...]:
    """Return every picture; cards only where they can be drawn."""
    draw = pictures.rasteriser()
    return (badge, shield, ranking, *([card(draw)] if draw else []))
