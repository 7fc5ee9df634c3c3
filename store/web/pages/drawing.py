"""The resolvers of pictures: badges, embedded rankings, cards."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from store.web import resolution
from store.web.cache import EncodedBody
from store.web.pages import pictures
from store.web.pages.making import PageMaker
from store.web.pages.pictures import PNG, SVG
from store.web.parameters import checked_slug
from store.web.resolution import JSON, Absent, Moved, Resolved, Resource
from store.web.resources import CategoryVerdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from store.rankings.leaderboards import Leaderboard
    from store.rankings.products import ProductProfile
    from store.web.snapshot_view import SnapshotView


VERDICTS = msgspec.json.Decoder(CategoryVerdict)


class Drawing(PageMaker):
    """Pictures of rankings."""

    def rules(self) -> tuple[tuple[str, Callable[..., Resolved]], ...]:
        """Every rule with its resolver; cards only where they can be drawn."""
        draw = pictures.rasteriser()
        return (
            ("/badge/<slug>/<product>.svg", self.badge),
            ("/badge/<slug>/<product>.json", self.shield),
            ("/embed/best/<slug>.svg", self.ranking),
            *([("/cards/best/<slug>.png", partial(self.card, draw))] if draw else []),
        )

    def badge(self, view: SnapshotView, slug: str, product: str) -> Resolved:
        """``/badge/<category>/<product>.svg``: rank, certainty and date."""
        found = _place(view, slug, product, "svg")
        if not isinstance(found, tuple):
            return found
        return self._of_both(
            f"badge/{slug}/{product}.svg",
            found,
            view,
            lambda: self.renderer.render("badge.svg", view, **pictures.drawn_badge(*found, view)),
            SVG,
        )

    def shield(self, view: SnapshotView, slug: str, product: str) -> Resolved:
        """``/badge/<category>/<product>.json``: the same for shields.io's endpoint badge."""
        found = _place(view, slug, product, "json")
        if not isinstance(found, tuple):
            return found
        return self._of_both(
            f"badge/{slug}/{product}.json",
            found,
            view,
            lambda: msgspec.json.encode(pictures.badge(*found, view)),
            JSON,
        )

    def ranking(self, view: SnapshotView, slug: str) -> Resolved:
        """``/embed/best/<slug>.svg``: a ranking's first places, with their source."""
        board = view.snapshot.leaderboards.get(slug)
        if board is None:
            return resolution.no_category(checked_slug(slug), view, view.at.ranking_picture)
        found = resolution.verdict(board, view)

        def context() -> dict[str, Any]:
            return pictures.ranking(board, self.decoded(found, VERDICTS), view)

        return self.page(
            view, f"embed/best/{slug}.svg", "ranking.svg", context, about=found, media_type=SVG
        )

    def card(self, draw: Callable[[bytes], bytes], view: SnapshotView, slug: str) -> Resolved:
        """``/cards/best/<slug>.png``: what sites show beside a link to a ranking."""
        board = view.snapshot.leaderboards.get(slug)
        if board is None:
            return resolution.no_category(checked_slug(slug), view, view.at.card)
        found = resolution.verdict(board, view)
        path = f"cards/best/{slug}.png"
        page = self.page(view, path, "", dict, about=found, media_type=PNG)

        def make() -> EncodedBody:
            context = pictures.card(board, self.decoded(found, VERDICTS), view)
            source = self.renderer.render("card.svg", view, **context) + pictures.mark_of(draw)
            return EncodedBody(source, draw=draw)

        return msgspec.structs.replace(page, make=make)

    def _of_both(
        self,
        path: str,
        found: tuple[Leaderboard, ProductProfile],
        view: SnapshotView,
        make: Callable[[], bytes],
        media_type: str,
    ) -> Resource:
        """What follows from a ranking and a product, kept while neither changes."""
        board, product = found
        steps = view.snapshot.generations
        newest = max(steps.categories[board.slug], steps.products[product.id])
        return Resource(path, newest, lambda: EncodedBody(make()), media_type, view.service_links)


def _place(
    view: SnapshotView, slug: str, product: str, kind: str
) -> tuple[Leaderboard, ProductProfile] | Moved | Absent:
    """A ranking and a product, where both are known by these slugs."""
    snapshot, summary = view.snapshot, view.snapshot.summary
    checked_slug(slug), checked_slug(product)
    board, named = snapshot.leaderboards.get(slug), snapshot.product(product)
    if board and named:
        return board, named
    now = (
        summary.category_redirects.get(slug, slug),
        summary.product_redirects.get(product, product),
    )
    if now != (slug, product):
        return Moved(view.at.badge(*now, kind))
    if board is None:
        return resolution.absent_category(slug, view)
    return resolution.absent_product(product, view)
