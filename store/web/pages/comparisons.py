"""Comparisons: what is asked for, and what the page of two products or two assistants shows."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from store.rankings import assistants, comparing
from store.rankings.leaderboards import Leaderboard
from store.rankings.merging import Entry, places
from store.rankings.names import slug as slug_of
from store.rankings.products import ProductProfile
from store.snapshot import Snapshot
from store.web.view import View, compare_path

MODELS = "models/"
"""What stands before an assistant's slug where a product's could stand too."""

MOST_SHARED = 100
"""Rankings of two products that a page lists: more than any two of the shipped data share."""

MOST_ALONE = 12
"""Rankings with only one of two products that a page lists; the rest is on the product's page."""

LONG_LIST = 10
RIVALS = 5

_BETWEEN = re.compile(r"\s+(?:vs\.?|versus|or|against|compared (?:to|with))\s+", re.IGNORECASE)
"""What people write between two names that they want compared."""

_WORDS = 6
"""Words of a query beside "vs" that may be a name: the longest name shipped has five."""


class Side(Struct, frozen=True):
    """What is ``asked`` for: a product, an assistant, or neither, and which may be meant."""

    asked: str
    product: ProductProfile | None = None
    model: str | None = None
    suggested: tuple[ProductProfile, ...] = ()


def side(asked: str, view: View) -> Side:
    """What one of the two parameters means: an address, or else a name exactly as written."""
    snapshot = view.snapshot
    text = asked.strip()
    if text.startswith(MODELS):
        return Side(asked, model=snapshot.summary.model_slugs.get(text.removeprefix(MODELS)))
    if product := named(text, snapshot):
        return Side(asked, product=product)
    if model := snapshot.summary.model_slugs.get(slug_of(text)) if text else None:
        return Side(asked, model=model)
    return Side(asked, suggested=tuple(_meant(text, view)) if text else ())


def named(text: str, snapshot: Snapshot) -> ProductProfile | None:
    """The product whose slug, former slug or name a text is, by the rules for names in answers."""
    redirects = snapshot.summary.product_redirects
    if product := snapshot.product(text) or snapshot.product(redirects.get(text, "")):
        return product
    return snapshot.products.get(snapshot.names.resolve(text, None, ()).product) if text else None


def _meant(text: str, view: View) -> Iterator[ProductProfile]:
    """The products that a text may mean, best first."""
    for hit in view.snapshot.summary.index.search(text, LONG_LIST).brands:
        if product := view.snapshot.product(hit.slug):
            yield product


def pair_in(query: str, view: View) -> tuple[str, str, str] | None:
    """The two names in a query such as "is x or y better", and the path of their comparison.

    Each is a product or an assistant exactly as spelled.
    """
    parts = _BETWEEN.split(query, maxsplit=1)
    if len(parts) != 2:  # noqa: PLR2004 - what stands before and after
        return None
    before, after = (part.strip(" ?!.,\"'").split() for part in parts)
    one = _first_known(
        (" ".join(before[i:]) for i in range(max(0, len(before) - _WORDS), len(before))), view
    )
    other = _first_known((" ".join(after[:i]) for i in range(min(len(after), _WORDS), 0, -1)), view)
    if one is None or other is None or one == other:
        return None
    return one[0], other[0], compare_path(one[1], other[1])


def _first_known(texts: Iterable[str], view: View) -> tuple[str, str] | None:
    """Name and address of the first text that names a product or an assistant."""
    snapshot = view.snapshot
    for text in texts:
        if product := named(text, snapshot):
            return product.name, product.slug
        slug = slug_of(text)
        if model := snapshot.summary.model_slugs.get(slug):
            return model, MODELS + slug
    return None


def products_in(query: str, view: View) -> tuple[ProductProfile, ProductProfile] | None:
    """Return the two products that a query such as "x or y" names, if both are known."""
    pair = pair_in(query, view)
    one, other = (side(name, view).product for name in pair[:2]) if pair else (None, None)
    return (one, other) if one and other else None


def summary(one: ProductProfile, other: ProductProfile, view: View) -> dict[str, Any]:
    """Return two products in figures: the rankings that hold both, with both places."""
    found = products(one, other, view)
    return {
        "products": [one.name, other.name],
        "slugs": [one.slug, other.slug],
        "sentence": _in_words(one.name, other.name, found),
        "rankings": [
            {
                "slug": meeting.board.slug,
                "title": meeting.board.category.title,
                "places": list(meeting.places),
                "ahead": {one.id: one.name, other.id: other.name}.get(meeting.ahead or ""),
            }
            for meeting in found["meetings"][:LONG_LIST]
        ],
        "page": view.at.compare_page(one.slug, other.slug),
    }


def _in_words(one: str, other: str, found: Mapping[str, Any]) -> str:
    """Return how two products stand to each other, in two sentences."""
    shared, higher, ahead = found["shared"], found["higher"], found["ahead"]
    if not shared:
        return f"{one} and {other} share no ranking."
    told = (
        f"Of those asked often enough to tell ({found['measured']}), {one} is ahead by more than "
        f"chance in {ahead[0]}, {other} in {ahead[1]}."
    )
    return (
        f"{one} and {other} are both in {shared} ranking{'s' if shared > 1 else ''}: {one} is "
        f"higher in {higher[0]}, {other} in {higher[1]}. "
        f"{told if found['measured'] else 'None of them was asked often enough to tell more.'}"
    )


def choice(one: Side, other: Side, view: View) -> dict[str, Any]:
    """What to choose from where not both sides are known, or where they cannot be compared."""
    return {
        "kind": "choice",
        "sides": (("a", one), ("b", other)),
        "models": list(view.snapshot.summary.model_slugs.items()),
        "mentioned": view.snapshot.summary.mentioned[:LONG_LIST],
    }


def products(one: ProductProfile, other: ProductProfile, view: View) -> dict[str, Any]:
    """Two products: the rankings that hold both, and those that hold one."""
    mine, its = view.standings(one), view.standings(other)
    others = {board.slug: entry for board, entry in its}
    shared = [(b, entry, others[b.slug]) for b, entry in mine if b.slug in others]
    meetings = [comparing.meet(*each) for each in sorted(shared, key=lambda s: s[0].by_title)]
    both = {board.slug for board, _, _ in shared}
    higher = [meeting.higher for meeting in meetings]
    ahead = [meeting.ahead for meeting in meetings]
    return {
        "kind": "products",
        "pair": (one, other),
        "meetings": meetings[:MOST_SHARED],
        "shared": len(meetings),
        "measured": sum(meeting.measured for meeting in meetings),
        "higher": (higher.count(one.id), higher.count(other.id)),
        "ahead": (ahead.count(one.id), ahead.count(other.id)),
        "preferences": comparing.preferences(meetings, one.id, other.id),
        "alone": (_alone(mine, both), _alone(its, both)),
        "most_alone": MOST_ALONE,
    }


def _alone(
    standings: Sequence[tuple[Leaderboard, Entry]], both: set[str]
) -> list[tuple[Leaderboard, int, bool]]:
    """The rankings of which ``both`` has none, a product's place there, and whether it is a tie."""
    return [
        (board, places(board.entries)[entry.product], entry.tied)
        for board, entry in standings
        if board.slug not in both
    ]


def rivals(product: ProductProfile, view: View) -> list[ProductProfile]:
    """The products that stand beside one most often."""
    found = comparing.rivals(view.standings(product), product.id, RIVALS)
    return [view.snapshot.products[id_] for id_ in found]


def models(one: str, other: str, view: View) -> dict[str, Any]:
    """Two assistants: how alike they are, where they differ, and what each likes best."""
    summary, known = view.snapshot.summary, view.snapshot.products
    slugs = {model: slug for slug, model in summary.model_slugs.items()}
    found = assistants.pair(summary.ranked, one, other, LONG_LIST)
    profiles = [summary.assistants[model] for model in (one, other)]

    def firsts(board: Leaderboard) -> list[ProductProfile | None]:
        by_model = assistants.firsts_of(board)
        return [known.get(by_model[model]) for model in (one, other)]

    favourites = [
        [
            (known[id_], count, profiles[1 - i].firsts[id_])
            for id_, count in sorted(each.firsts.items(), key=lambda f: (-f[1], f[0]))[:LONG_LIST]
            if id_ in known
        ]
        for i, each in enumerate(profiles)
    ]
    return {
        "kind": "models",
        "pair": ((one, slugs[one]), (other, slugs[other])),
        "alike": found,
        "differ": [(b, o, firsts(b)) for b, o in found.furthest] if found else [],
        "agree": [(b, o, firsts(b)) for b, o in found.closest] if found else [],
        "favourites": favourites,
    }
