"""The data of every chart as CSV: what the table beside it shows."""

from store.web import lookup
from store.web.answers import Route
from store.web.errors import Refused
from store.web.pages import evidence
from store.web.pages.routes import of_category, of_product, resource
from store.web.queries import OfCategory, OfProduct, OfSlug, Query
from store.web.tables import MEDIA_TYPES, table
from store.web.view import View

CSV = MEDIA_TYPES["csv"]


@resource(
    "/best/<slug>/ranks.csv",
    CSV,
    basis=of_category,
    link=lambda view, query: view.link(view.at.category_page(query.slug)),
)
def ranks(view: View, query: OfCategory) -> bytes:
    """Return the merged rank of every product on the days of the chart."""
    lookup.board(view, query.slug, view.at.ranks_table)
    products = view.snapshot.products
    rows = [
        (day.date, rank, day.places[id_], products[id_].slug, products[id_].name)
        for day in evidence.days(view, query.slug)
        for id_, rank in sorted(day.ranks.items(), key=lambda pair: pair[1])
    ]
    return table(("date", "rank", "place", "slug", "product"), rows)


@resource(
    "/product/<slug>/mentions.csv",
    CSV,
    basis=of_product,
    link=lambda view, query: view.link(view.at.product_page(query.slug)),
)
def mentions(view: View, query: OfProduct) -> bytes:
    """Return how many answers named a product, by day."""
    product = lookup.product(view, query.slug, view.at.mentions_table)
    return table(("date", "named", "answers"), evidence.mentions(view, product))


@resource("/labs/<slug>/chart.csv", CSV)
def experiment(view: View, query: OfSlug) -> bytes:
    """Return the figures of a computed experiment."""
    experiments = view.snapshot.summary.experiments
    chart = next((each.chart for each in experiments if each.slug == query.slug), None)
    if chart is None:
        why = f'No experiment with a chart has the slug "{query.slug}". /labs lists them all.'
        raise Refused("unknown-experiment", why)
    rows = [(bar.label, bar.value, *bar.interval, bar.n) for bar in chart.bars]
    return table(("label", "value", "low", "high", "n"), rows)


@resource("/models.csv", CSV)
def matrix(view: View, query: Query) -> bytes:  # noqa: ARG001
    """Return the mean overlap of each two assistants' lists."""
    overlaps = sorted(view.snapshot.summary.overlaps.items())
    rows = [(*pair, overlap, boards) for pair, (overlap, boards) in overlaps]
    return table(("assistant", "other", "overlap", "categories"), rows)


ROUTES: tuple[Route, ...] = (ranks, mentions, experiment, matrix)
