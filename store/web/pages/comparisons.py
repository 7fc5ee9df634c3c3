"""Comparisons of two products: as a page, as what a search for both leads to, and for agents."""

import re
from typing import Any

from store.rankings import comparing
from store.rankings.products import ProductProfile
from store.snapshot import Snapshot
from store.web.pages.routes import page
from store.web.queries import FreeText, Query
from store.web.view import View

_BETWEEN = re.compile(r"\s+(?:vs\.?|versus|or|against|compared (?:to|with))\s+", re.IGNORECASE)
"""Words that people write between two names that they want compared."""

MOST_EXAMPLES = 3
"""Rankings with both products that a sentence names."""
_WORDS = 6
"""Words of a query beside "vs" that may be a name: the longest name shipped has five."""


class TwoProducts(Query, frozen=True, kw_only=True):
    """Two products."""

    a: FreeText = ""
    b: FreeText = ""


@page("/compare", "compare.html")
def compare(view: View, query: TwoProducts) -> dict[str, Any]:
    """Compare two products; without both, show a form to choose them."""
    texts = {"a": query.a.strip(), "b": query.b.strip()}
    one, other = (_named(text, view.snapshot) for text in texts.values())
    if one and other and one is not other:
        return products(one, other, view)
    sides = [
        (name, text, product, [] if product else view.suggestions(text, "brands"))
        for (name, text), product in zip(texts.items(), (one, other), strict=True)
    ]
    return {"pair": None, "sides": sides}


def products(one: ProductProfile, other: ProductProfile, view: View) -> dict[str, Any]:
    """Return two products and the rankings that hold both, with how often each is ahead.

    Rankings where one is ahead come first, then those measured at all, by title.
    """
    entries = {board.slug: entry for board, entry in view.standings(other)}
    shared = [(b, entry, entries[b.slug]) for b, entry in view.standings(one) if b.slug in entries]
    meetings = [comparing.meet(*meeting) for meeting in shared]
    meetings.sort(key=lambda meeting: meeting.plainest)
    higher = [meeting.higher for meeting in meetings]
    ahead = [meeting.ahead for meeting in meetings]
    return {
        "pair": (one, other),
        "meetings": meetings,
        "measured": sum(meeting.measured for meeting in meetings),
        "higher": (higher.count(one.id), higher.count(other.id)),
        "ahead": (ahead.count(one.id), ahead.count(other.id)),
        "preferences": comparing.preferences(meetings, one.id, other.id),
    }


def in_words(one: ProductProfile, other: ProductProfile, view: View) -> str:
    """Return how two products stand to each other, in three sentences."""
    compared = products(one, other, view)
    shared, higher, ahead = len(compared["meetings"]), compared["higher"], compared["ahead"]
    if not shared:
        return f"{one.name} and {other.name} share no ranking."
    certainty = "None of them was asked often enough to tell more."
    if measured := compared["measured"]:
        certainty = (
            f"Of those asked often enough to tell ({measured}), {one.name} is ahead by more than "
            f"chance in {ahead[0]}, {other.name} in {ahead[1]}."
        )
    beyond = " (by more than chance)"
    examples = [
        f"{m.board.category.title}, {m.places[0]} and {m.places[1]}{beyond if m.ahead else ''}"
        for m in compared["meetings"][:MOST_EXAMPLES]
    ]
    return (
        f"{one.name} and {other.name} are both in {shared} ranking{'s' if shared > 1 else ''}: "
        f"{one.name} is higher in {higher[0]}, {other.name} in {higher[1]}, "
        f"level in {shared - sum(higher)}. {certainty} "
        f"Their places: {'; '.join(examples)}{' …' if shared > MOST_EXAMPLES else ''}."
    )


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


def _named(text: str, snapshot: Snapshot) -> ProductProfile | None:
    """Return the product whose slug, former slug or name a text is, by the rules for answers."""
    redirects = snapshot.summary.product_redirects
    if product := snapshot.product(text) or snapshot.product(redirects.get(text, "")):
        return product
    return snapshot.products.get(snapshot.names.resolve(text, None, ()).product) if text else None
