"""The data of every chart as CSV: what the table beside it shows."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from store.web import resolution
from store.web.cache import EncodedBody
from store.web.pages.evidence import Evidence
from store.web.pages.making import PageMaker
from store.web.pages.rendering import page_link
from store.web.parameters import checked_slug
from store.web.resolution import Absent, Resolved, Resource
from store.web.tables import MEDIA_TYPES, table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from store.web.snapshot_view import SnapshotView

    Rows = Callable[[], Iterable[Sequence[str | float | None]]]

CSV = MEDIA_TYPES["csv"]


class ChartData(PageMaker):
    """Charts as CSV."""

    def rules(self) -> tuple[tuple[str, Callable[..., Resolved]], ...]:
        """Every rule with its resolver."""
        return (
            ("/best/<slug>/ranks.csv", self.ranks),
            ("/product/<slug>/mentions.csv", self.mentions),
            ("/labs/<slug>/chart.csv", self.experiment),
            ("/models.csv", self.matrix),
        )

    def ranks(self, view: SnapshotView, slug: str) -> Resolved:
        """``/best/<slug>/ranks.csv``: the merged rank of every product on the days of the chart."""
        snapshot = view.snapshot
        board = snapshot.leaderboards.get(slug)
        if board is None:
            return resolution.no_category(checked_slug(slug), view, view.at.ranks_table)

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
            return resolution.no_product(checked_slug(slug), view, view.at.mentions_table)
        columns, path = ("date", "named", "answers"), f"product/{slug}/mentions.csv"
        evidence = Evidence(self.responder.store, view.snapshot)
        about = resolution.record(product, view)
        return self._table(about, path, columns, lambda: evidence.mentions(product))

    def experiment(self, view: SnapshotView, slug: str) -> Resolved:
        """``/labs/<slug>/chart.csv``: the figures of a computed experiment."""
        experiments = view.snapshot.summary.experiments
        found = next((e for e in experiments if e.slug == checked_slug(slug)), None)
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
            return EncodedBody(table(columns, rows()))

        return Resource(path, about.generation, make, CSV, about.link)


def _over_all(path: str, columns: Sequence[str], rows: Rows, view: SnapshotView) -> Resource:
    def make() -> EncodedBody:
        return EncodedBody(table(columns, rows()))

    return Resource(path, view.snapshot.generations.summary, make, CSV, page_link(view))
