"""Feeds of changes: Atom (RFC 4287) and JSON Feed 1.1, with ids that never change."""

import uuid
from collections.abc import Iterable
from itertools import islice
from typing import Any

import msgspec

from store.rankings import sentences
from store.rankings.changes import Change
from store.rankings.leaderboards import Leaderboard
from store.rankings.products import ProductProfile
from store.rankings.topics import RankedTopic
from store.web import lookup
from store.web.answers import Route
from store.web.pages.contexts import PickChange, pick_changes
from store.web.pages.routes import of_category, of_product, page, resource
from store.web.queries import OfCategory, OfProduct, OfSlug, Query
from store.web.view import View

ATOM = "application/atom+xml; charset=utf-8"
JSON_FEED = "application/feed+json"

ENTRIES = 100
NEVER = "1970-01-01T00:00:00Z"
"""When a feed was updated that nothing was ever answered for."""


def of_all(view: View) -> dict[str, Any]:
    """The changes of all categories."""
    known = [aggregate.last_success for aggregate in view.snapshot.summary.living]
    return {
        "id": identity("feed", "changes"),
        "title": f"{view.site.name}: changes of a #1",
        "subtitle": "When an assistant’s #1 for a category becomes another product. "  # noqa: RUF001
        f"The proof over all polls: {_proof(view)}",
        "address": view.at.page("feeds/changes.atom"),
        "page": view.at.page("changes"),
        "proof": view.at.page("data/heads.jsonl"),
        **_entries(_newest_items(view), max(filter(None, known), default=None)),
    }


def of_category_(board: Leaderboard, view: View) -> dict[str, Any]:
    """The changes of one category."""
    changes = view.snapshot.aggregates[board.slug].changes[-ENTRIES:]
    return {
        "id": identity("feed", board.slug),
        "title": f"{board.category.title}: changes of a #1",
        "subtitle": f"When an assistant’s #1 becomes another product. “{board.question}”",  # noqa: RUF001
        "address": view.at.feed("best", board.slug),
        "page": view.at.category_page(board.slug),
        **_entries(_items(reversed(changes), view), board.newest),
    }


def of_product_(product: ProductProfile, view: View) -> dict[str, Any]:
    """Where a product became an assistant's #1, or lost that place."""
    known = [view.snapshot.aggregates[slug] for slug in product.categories]
    changes = _newest(
        change
        for aggregate in known
        for change in aggregate.changes
        if product.id in (change.previous, change.current)
    )
    return {
        "id": identity("feed", f"product/{product.id}"),
        "title": f"{product.name}: won and lost #1s",
        "subtitle": f"When {product.name} becomes an assistant's #1 for a category, or another "
        "does.",
        "address": view.at.feed("product", product.slug),
        "page": view.at.product_page(product.slug),
        **_entries(_items(changes, view), product.first_mention),
    }


def of_topic(topic: RankedTopic, view: View) -> dict[str, Any]:
    """The changes of a topic's categories."""
    boards = topic.leaderboards
    known = (view.snapshot.aggregates.get(board.slug) for board in boards)
    changes = _newest(change for found in known if found for change in found.changes)
    return {
        "id": identity("feed", f"topic/{topic.slug}"),
        "title": f"{topic.title}: changes of a #1",
        "subtitle": "When an assistant's #1 for one of its categories becomes another product.",
        "address": view.at.feed("topics", topic.slug),
        "page": view.at.topic_page(topic.slug),
        **_entries(_items(changes, view), max((board.newest for board in boards), default=None)),
    }


def _entries(items: list[dict[str, Any]], answered: str | None) -> dict[str, Any]:
    """Return the items and the time of the newest; without any, that of an answer, if there is one.

    Items also come from answers to a wording that does not stand, which no ranking counts.
    """
    times = [item["date_published"] for item in items]
    return {"items": items, "updated": max(times, default=answered or NEVER)}


def _newest(changes: Iterable[Change]) -> list[Change]:
    """The newest changes, newest first; within one second by category and assistant."""
    order = sorted(changes, key=lambda change: (change.slug, change.model))
    return sorted(order, key=lambda change: change.current_at, reverse=True)[:ENTRIES]


def _newest_items(view: View) -> list[dict[str, Any]]:
    return _items(islice(view.snapshot.summary.changes, ENTRIES), view)


def _items(changes: Iterable[Change], view: View) -> list[dict[str, Any]]:
    return [_item(change, view) for change in pick_changes(changes, view.snapshot)]


def identity(kind: str, key: str) -> str:
    """A stable id that depends on neither the site's name nor its address."""
    return uuid.uuid5(uuid.NAMESPACE_OID, f"consensus-ranking:{kind}:{key}").urn


def json_feed(view: View) -> bytes:
    """The JSON Feed of all changes."""
    feed = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": f"{view.site.name}: changes of a #1",
        "home_page_url": view.at.page("changes"),
        "feed_url": view.at.page("feeds/changes.json"),
        "description": "When an assistant's #1 pick for a category becomes another product. The "
        f"proof over all polls: {_proof(view)}",
        "language": "en",
        "items": _newest_items(view),
    }
    return msgspec.json.encode(feed)


def _proof(view: View) -> str:
    """Say where the heads are, and what the root over all present lines is."""
    present = view.snapshot.present
    return (
        f"{view.at.page('data/heads.jsonl')}. Now {present.lines:,} lines, {present.closed:,} of "
        f"them of closed days, have the root {present.root}"
    )


def _item(flip: PickChange, view: View) -> dict[str, Any]:
    """A change as an item of a JSON Feed; its id follows from the poll that brought the change."""
    change = flip.change
    said = f' {change.model}\'s reason: "{change.reason}"' if change.reason else ""
    status = (
        "Confirmed by its next answer." if change.confirmed else "Not confirmed by a second answer."
    )
    if change.version:
        status += f" It {sentences.coincidence(change.version)}."
    return {
        "id": identity("change", change.poll),
        "url": view.at.category_page(change.slug),
        "title": f"{flip.title}: {change.model} now ranks {flip.after.name} #1",
        "content_text": (
            f"{change.model} moved from {flip.before.name} ({change.previous_at[:10]}) to "
            f"{flip.after.name} ({change.current_at[:10]}). {status}{said}"
        ),
        "date_published": change.current_at,
        "tags": ["confirmed" if change.confirmed else "unconfirmed"],
    }


@page("/feeds/changes.atom", "feed.atom.xml", media_type=ATOM)
def changes_atom(view: View, query: Query) -> dict[str, Any]:  # noqa: ARG001
    """Show the changes of all categories."""
    return of_all(view)


@resource("/feeds/changes.json", JSON_FEED)
def changes_json(view: View, query: Query) -> bytes:  # noqa: ARG001
    """Show the same as JSON Feed."""
    return json_feed(view)


def _category_json(view: View, query: OfCategory) -> str:
    return view.at.category(query.slug)


@page(
    "/feeds/best/<slug>.atom",
    "feed.atom.xml",
    basis=of_category,
    same=_category_json,
    media_type=ATOM,
)
def category_atom(view: View, query: OfCategory) -> dict[str, Any]:
    """Show the changes of one category."""
    board = lookup.board(view, query.slug, lambda slug: view.at.feed("best", slug))
    return of_category_(board, view)


@page(
    "/feeds/product/<slug>.atom",
    "feed.atom.xml",
    basis=of_product,
    same=lambda view, query: view.at.product(query.slug),
    media_type=ATOM,
)
def product_atom(view: View, query: OfProduct) -> dict[str, Any]:
    """Show the #1s that a product won and lost."""
    named = lookup.product(view, query.slug, lambda slug: view.at.feed("product", slug))
    return of_product_(named, view)


@page("/feeds/topics/<slug>.atom", "feed.atom.xml", media_type=ATOM)
def topic_atom(view: View, query: OfSlug) -> dict[str, Any]:
    """Show the changes of a topic's categories."""
    return of_topic(lookup.topic(view, query.slug), view)


ROUTES: tuple[Route, ...] = (changes_atom, changes_json, category_atom, product_atom, topic_atom)
