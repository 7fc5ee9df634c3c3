"""Comparisons of two products: as a page, as what a search for both leads to, and for agents."""

import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from store.rankings import comparing
from store.rankings.products import ProductProfile
from store.snapshot import Snapshot
from store.web.answers import newest
from store.web.pages.routes import page
from store.web.queries import FreeText, Query
from store.web.view import View

MOST_SHARED = 100
"""Rankings of two products that a page lists: more than any two of the shipped data share."""

LONG_LIST = 10
RIVALS = 5

_BETWEEN = re.compile(r"\s+(?:vs\.?|versus|or|against|compared (?:to|with))\s+", re.IGNORECASE)
"""Words that people write between two names that they want compared."""

_WORDS = 6
"""Words of a query beside "vs" that may be a name: the longest name shipped has five."""


class Pair(Query, frozen=True, kw_only=True):
    """Two products."""

    a: FreeText = ""
    b: FreeText = ""


class Side(Struct, frozen=True):
    """The ``text`` of one of the two parameters, its product, or which may be meant."""

    text: str
    product: ProductProfile | None = None
    suggested: tuple[ProductProfile, ...] = ()


@page("/compare", "compare.html", basis=newest)
def compare(view: View, query: Pair) -> dict[str, Any]:
    """Compare two products; without both, show a form to choose them."""
    one, other = _side(query.a, view), _side(query.b, view)
    if one.product and other.product and one.product is not other.product:
        return products(one.product, other.product, view)
    return {"pair": None, "sides": (("a", one), ("b", other))}


def products(one: ProductProfile, other: ProductProfile, view: View) -> dict[str, Any]:
    """Return two products: the rankings that hold both, and those that hold one."""
    standings, others = view.standings(one), view.standings(other)
    entries = {board.slug: entry for board, entry in others}
    shared = [(b, entry, entries[b.slug]) for b, entry in standings if b.slug in entries]
    shared.sort(key=lambda meeting: meeting[0].by_title)
    meetings = [comparing.meet(*meeting) for meeting in shared]
    both = {board.slug for board, _, _ in shared}
    higher = [meeting.higher for meeting in meetings]
    ahead = [meeting.ahead for meeting in meetings]
    return {
        "pair": (one, other),
        "meetings": meetings[:MOST_SHARED],
        "shared": len(meetings),
        "measured": sum(meeting.measured for meeting in meetings),
        "higher": (higher.count(one.id), higher.count(other.id)),
        "ahead": (ahead.count(one.id), ahead.count(other.id)),
        "preferences": comparing.preferences(meetings, one.id, other.id),
        "alone": [
            [standing for standing in own if standing[0].slug not in both]
            for own in (standings, others)
        ],
    }


def summary(one: ProductProfile, other: ProductProfile, view: View) -> dict[str, Any]:
    """Return two products in figures: the rankings that hold both, with both places."""
    compared = products(one, other, view)
    return {
        "products": [one.name, other.name],
        "slugs": [one.slug, other.slug],
        "sentence": _in_words(one.name, other.name, compared),
        "rankings": [
            {
                "slug": meeting.board.slug,
                "title": meeting.board.category.title,
                "places": list(meeting.places),
                "ahead": {one.id: one.name, other.id: other.name}.get(meeting.ahead or ""),
            }
            for meeting in compared["meetings"][:LONG_LIST]
        ],
        "page": view.at.compare_page(one.slug, other.slug),
    }


def _in_words(one: str, other: str, compared: dict[str, Any]) -> str:
    """Return how two products stand to each other, in two sentences."""
    shared, higher, ahead = compared["shared"], compared["higher"], compared["ahead"]
    if not shared:
        return f"{one} and {other} share no ranking."
    certainty = "None of them was asked often enough to tell more."
    if measured := compared["measured"]:
        certainty = (
            f"Of those asked often enough to tell ({measured}), {one} is ahead by more than chance "
            f"in {ahead[0]}, {other} in {ahead[1]}."
        )
    return (
        f"{one} and {other} are both in {shared} ranking{'s' if shared > 1 else ''}: {one} is "
        f"higher in {higher[0]}, {other} in {higher[1]}. {certainty}"
    )


def rivals(product: ProductProfile, view: View) -> list[ProductProfile]:
    """Return the products that stand beside one most often."""
    ids = comparing.rivals(view.standings(product), product.id, RIVALS)
    return [view.snapshot.products[id_] for id_ in ids]


def pair_in(query: str, view: View) -> tuple[ProductProfile, ProductProfile] | None:
    """Return the two products in a query such as "is x or y better", each exactly as spelled."""
    parts = _BETWEEN.split(query, maxsplit=1)
    if len(parts) != 2:  # noqa: PLR2004 - what stands before and after
        return None
    before, after = (part.strip(" ?!.,\"'").split() for part in parts)
    # The longest name first: "Alpha One" is another product than "Alpha".
    ends = [" ".join(before[i:]) for i in range(max(0, len(before) - _WORDS), len(before))]
    starts = [" ".join(after[:i]) for i in range(min(len(after), _WORDS), 0, -1)]
    one, other = (
        next(filter(None, (_named(text, view.snapshot) for text in texts)), None)
        for texts in (ends, starts)
    )
    return (one, other) if one and other and one is not other else None


def _side(text: str, view: View) -> Side:
    """Return what a parameter means: an address, or else a name exactly as written."""
    if product := _named(text.strip(), view.snapshot):
        return Side(text, product)
    return Side(text, suggested=tuple(_suggested(text, view)) if text.strip() else ())


def _named(text: str, snapshot: Snapshot) -> ProductProfile | None:
    """Return the product whose slug, former slug or name a text is, by the rules for answers."""
    redirects = snapshot.summary.product_redirects
    if product := snapshot.product(text) or snapshot.product(redirects.get(text, "")):
        return product
    return snapshot.products.get(snapshot.names.resolve(text, None, ()).product) if text else None


def _suggested(text: str, view: View) -> Iterator[ProductProfile]:
    """Yield the products that a text may mean, best first."""
    for hit in view.snapshot.summary.index.search(text, LONG_LIST).brands:
        if product := view.snapshot.product(hit.slug):
            yield product
