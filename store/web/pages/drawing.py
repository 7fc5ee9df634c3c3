"""The resolvers of pictures, and of the data of every chart: what the tables beside it show."""

from __future__ import annotations

from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import msgspec

from store.web import resolution
from store.web.cache import EncodedBody
from store.web.pages import pictures
from store.web.pages.evidence import Evidence
from store.web.pages.making import PageMaker
from store.web.pages.pictures import PNG, SVG
from store.web.pages.rendering import page_link
from store.web.parameters import path_slug
from store.web.resolution import JSON, Absent, Moved, Resolved, Resource
from store.web.resources import CategoryVerdict
from store.web.tables import MEDIA_TYPES, table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from store.rankings.leaderboards import Leaderboard
    from store.rankings.products import ProductProfile
    from store.web.snapshot_view import SnapshotView

    Rows = Callable[[], Iterable[Sequence[str | float | None]]]


CSV = MEDIA_TYPES["csv"]
VERDICTS = msgspec.json.Decoder(CategoryVerdict)


class Drawing(PageMaker):
    """Pictures of rankings; charts as CSV."""

    def rules(self) -> tuple[tuple[str, Callable[..., Resolved]], ...]:
        """Every rule with its resolver; cards only where they can be drawn."""
        draw = pictures.rasteriser()
        return (
            ("/badge/<slug>/<product>.svg", self.badge),
            ("/badge/<slug>/<product>.json", self.shield),
            ("/embed/best/<slug>.svg", self.ranking),
            ("/best/<slug>/ranks.csv", self.ranks),
            ("/product/<slug>/mentions.csv", self.mentions),
            ("/labs/<slug>/chart.csv", self.experiment),
            ("/models.csv", self.matrix),
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
            return resolution.no_category(path_slug(slug), view, view.at.ranking_picture)
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
            return resolution.no_category(path_slug(slug), view, view.at.card)
        found = resolution.verdict(board, view)
        page = self.page(view, f"cards/best/{slug}.png", "", dict, about=found)

        def make() -> EncodedBody:
            context = pictures.card(board, self.decoded(found, VERDICTS), view)
            source = self.renderer.render("card.svg", view, **context) + pictures.mark_of(draw)
            return EncodedBody(source, self.responder.body(found).modified, draw=draw)

        return msgspec.structs.replace(page, make=make, media_type=PNG)

    def ranks(self, view: SnapshotView, slug: str) -> Resolved:
        """``/best/<slug>/ranks.csv``: the merged rank of every product on the days of the chart."""
        snapshot = view.snapshot
        board = snapshot.leaderboards.get(slug)
        if board is None:
            return resolution.no_category(path_slug(slug), view, view.at.ranks_table)

        def rows() -> Iterable[Sequence[str | float | None]]:
            for day in Evidence(self.responder.store, snapshot).days(slug):
                for id_, rank in sorted(day.ranks.items(), key=lambda each: each[1]):
                    product = snapshot.products[id_]
                    yield day.date, rank, day.places[id_], product.slug, product.name

        columns = ("date", "rank", "place", "slug", "product")
        return self._table(resolution.verdict(board, view), f"best/{slug}/ranks.csv", columns, rows)

    def mentions(self, view: SnapshotView, slug: str) -> Resolved:
        """``/product/<slug>/mentions.csv``: answers that named a product, by day."""
        product = view.snapshot.product(slug)
        if product is None:
            return resolution.no_product(path_slug(slug), view, view.at.mentions_table)
        columns, path = ("date", "named", "answers"), f"product/{slug}/mentions.csv"
        evidence = Evidence(self.responder.store, view.snapshot)
        about = resolution.record(product, view)
        return self._table(about, path, columns, lambda: evidence.mentions(product))

    def experiment(self, view: SnapshotView, slug: str) -> Resolved:
        """``/labs/<slug>/chart.csv``: the figures of a computed experiment."""
        experiments = view.snapshot.summary.experiments
        found = next((e for e in experiments if e.slug == path_slug(slug)), None)
        if found is None or found.chart is None:
            why = f'No experiment with a chart has the slug "{slug}". /labs lists them all.'
            return Absent.because(HTTPStatus.NOT_FOUND, why)
        bars = found.chart.bars
        columns = ("label", "value", "low", "high", "n")
        rows = [(bar.label, bar.value, *bar.interval, bar.n) for bar in bars]
        return _over_all(f"labs/{slug}/chart.csv", columns, lambda: rows, view)

    def matrix(self, view: SnapshotView) -> Resolved:
        """``/models.csv``: the mean overlap of each two assistants' lists."""

        def rows() -> Iterable[Sequence[str | float | None]]:
            for pair, (overlap, boards) in sorted(view.snapshot.summary.overlaps.items()):
                yield *pair, overlap, boards

        return _over_all("models.csv", ("assistant", "other", "overlap", "categories"), rows, view)

    def _table(self, about: Resource, path: str, columns: Sequence[str], rows: Rows) -> Resource:
        """A table that is kept as long as what it is about."""

        def make() -> EncodedBody:
            return EncodedBody(table(columns, rows()), self.responder.body(about).modified)

        return Resource(path, about.generation, make, CSV, about.link)

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
        about, made = resolution.verdict(board, view), view.snapshot.generations

        def encoded() -> EncodedBody:
            return EncodedBody(make(), self.responder.body(about).modified)

        newest = max(made.categories[board.slug], made.products[product.id])
        return Resource(path, newest, encoded, media_type, view.service_links)


def _place(
    view: SnapshotView, slug: str, product: str, kind: str
) -> tuple[Leaderboard, ProductProfile] | Moved | Absent:
    """A ranking and a product, where both are known by these slugs."""
    snapshot, summary = view.snapshot, view.snapshot.summary
    path_slug(slug), path_slug(product)
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


def _over_all(path: str, columns: Sequence[str], rows: Rows, view: SnapshotView) -> Resource:
    def make() -> EncodedBody:
        return EncodedBody(table(columns, rows()), view.snapshot.modified)

    return Resource(path, view.snapshot.generations.summary, make, CSV, page_link(view))
