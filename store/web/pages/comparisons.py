"""Comparisons of two products: as a page, as what a search for both leads to, and for agents."""

from typing import Any

from store.rankings import comparing
from store.rankings.products import ProductProfile
from store.web import lookup
from store.web.pages.routes import page
from store.web.queries import FreeText, Query
from store.web.view import View

MOST_EXAMPLES = 10
"""Rankings with both products that a sentence names."""


class ComparisonQuery(Query, frozen=True, kw_only=True):
    """Two products."""

    a: FreeText = ""
    b: FreeText = ""


@page("/compare", "compare.html")
def compare(view: View, query: ComparisonQuery) -> dict[str, Any]:
    """Compare two products; without both, show a form to choose them."""
    texts = {"a": query.a.strip(), "b": query.b.strip()}
    one, other = (lookup.product_named(text, view) for text in texts.values())
    # A product beside itself says nothing: the form is shown again.
    if one and other and one is not other:
        return compare_pair(one, other, view)
    sides = [
        (name, text, product, [] if product else view.suggestions(text, "brands"))
        for (name, text), product in zip(texts.items(), (one, other), strict=True)
    ]
    return {"pair": None, "sides": sides}


def compare_pair(one: ProductProfile, other: ProductProfile, view: View) -> dict[str, Any]:
    """Return two products and the rankings that hold both, with how often each is ahead.

    Rankings where one is ahead come first, then those measured at all, by title.
    """
    entries = {board.slug: entry for board, entry in view.standings(other)}
    shared = [(b, entry, entries[b.slug]) for b, entry in view.standings(one) if b.slug in entries]
    meetings = [comparing.meet(*meeting) for meeting in shared]
    meetings.sort(key=lambda m: (m.ahead is None, not m.measured, m.board.by_title))
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


def in_short(one: ProductProfile, other: ProductProfile, view: View) -> dict[str, str]:
    """Return how two products stand to each other in a few sentences, and the page with more."""
    address = view.at.compare_page(one.slug, other.slug)
    return {"sentence": _in_words(one, other, view), "page": address}


def _in_words(one: ProductProfile, other: ProductProfile, view: View) -> str:
    """Return how two products stand to each other, in three sentences."""
    compared = compare_pair(one, other, view)
    shared, higher, ahead = len(compared["meetings"]), compared["higher"], compared["ahead"]
    if not shared:
        return f"{one.name} and {other.name} share no ranking."
    certainty = "None of them was asked often enough to tell more."
    if measured := compared["measured"]:
        certainty = (
            f"Of those asked often enough to tell ({measured}), {one.name} is ahead by more than "
            f"chance in {ahead[0]}, {other.name} in {ahead[1]}."
        )
    # Who is ahead over all answers may have the lower place of the latest.
    examples = [
        f"{m.board.category.title}, {m.entries[0].place} and {m.entries[1].place} "
        f"({_sureness(m, view)})"
        for m in compared["meetings"][:MOST_EXAMPLES]
    ]
    return (
        f"{one.name} and {other.name} are both in {shared} ranking{'s' if shared > 1 else ''}: "
        f"{one.name} is higher in {higher[0]}, {other.name} in {higher[1]}, "
        f"level in {shared - sum(higher)}. {certainty} "
        f"Their places: {'; '.join(examples)}{' …' if shared > MOST_EXAMPLES else ''}."
    )


def _sureness(meeting: comparing.Meeting, view: View) -> str:
    """Return how sure the order of two products in a ranking is."""
    if meeting.ahead:
        return f"{view.name(meeting.ahead)} is ahead by more than chance"
    return "too close to tell" if meeting.measured else "asked too few times to tell"
