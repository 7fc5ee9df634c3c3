"""The pages of a product: its rankings, and the polls that named it."""

import heapq
from collections.abc import Iterator
from itertools import islice
from typing import Any

from msgspec import Struct

from store.category_history import under_present_names
from store.line_codec import POLL_DECODER
from store.rankings.merging import PLACES
from store.rankings.products import ProductProfile
from store.records import Pick, Poll
from store.web import lookup, verdicts
from store.web.pages import pictures
from store.web.pages.routes import page
from store.web.queries import ProductQuery
from store.web.responses import Route
from store.web.view import View, quoted_first

MOST_POLLS = 500
"""Polls that a page shows at most, the newest."""
PIECE = 100
"""Lines of history that are read at once."""


class ProductMention(Struct, frozen=True):
    """A poll that named a product, the slug of its category, and where in its answer."""

    slug: str
    poll: Poll
    pick: Pick


@page(
    "/product/<slug>",
    "product.html",
    alternate=lambda view, query: view.at.product(query.slug),
)
def product(view: View, query: ProductQuery) -> dict[str, Any]:
    """Show a product in every ranking; ``standings`` are those of the entries of its record."""
    profile = lookup.product(view, query.slug)
    standings = view.standings(profile)
    return {
        "product": profile,
        "places": PLACES,
        "record": verdicts.product_record(view, profile),
        "standings": standings,
        "best": min(standings, key=quoted_first, default=None),
        "has_card": pictures.rasteriser() is not None,
    }


@page(
    "/product/<slug>/polls",
    "evidence.html",
    alternate=lambda view, query: view.at.product(query.slug),
)
def product_polls(view: View, query: ProductQuery) -> dict[str, Any]:
    """Show the newest polls that named a product."""
    profile, snapshot = lookup.product(view, query.slug), view.snapshot
    return {
        "product": profile,
        "mentions": product_mentions(view, profile),
        "unreadable": [
            snapshot.aggregates[slug].category.title
            for slug in sorted(profile.categories)
            if snapshot.is_unreadable(slug)
        ],
    }


def product_mentions(view: View, product: ProductProfile) -> list[ProductMention]:
    """Return the newest polls that named a product, at most 500; of one second, by category."""
    readable = (s for s in sorted(product.categories) if not view.snapshot.is_unreadable(s))
    by_category = (_product_mentions(view, product, slug) for slug in readable)
    newest_first = heapq.merge(*by_category, key=lambda n: n.poll.polled_at, reverse=True)
    return list(islice(newest_first, MOST_POLLS))


def _product_mentions(view: View, product: ProductProfile, slug: str) -> Iterator[ProductMention]:
    """Yield the polls of a category that named a product, newest first, read as they are taken."""
    aggregate = view.snapshot.aggregates[slug]
    resolved = aggregate.resolved
    left = aggregate.product_stats[product.id].mentions  # most lines need not be read
    for line in _lines(view, slug):
        former_names = view.snapshot.catalogue.former_names
        [poll] = under_present_names([POLL_DECODER.decode(line)], former_names)
        own = (p for p in poll.ranking if resolved.get((p.product, p.domain)) == product.id)
        if pick := next(own, None):
            yield ProductMention(slug, poll, pick)
            left -= 1
            if left == 0:
                return


def _lines(view: View, slug: str) -> Iterator[bytes]:
    """Yield a category's lines, newest first, read from disk in pieces as they are taken."""
    index = view.snapshot.poll_indexes[slug]
    positions = index.newest(None, len(index.models))
    for start in range(0, len(positions), PIECE):
        yield from view.lines(index, positions[start : start + PIECE])


ROUTES: tuple[Route, ...] = (product, product_polls)
