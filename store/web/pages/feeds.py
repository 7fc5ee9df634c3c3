"""Feeds of changes: Atom (RFC 4287) and JSON Feed 1.1, with ids that never change.

A part of a feed is long enough for a reader who comes once a round: at least all changes of its
newest day. Older ones are on the pages that it names (RFC 5005, ``next_url``).
"""

import uuid
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from store.rankings import sentences
from store.rankings.changes import Change
from store.web import lookup
from store.web.answers import Route
from store.web.pages.contexts import PickChange, pick_changes
from store.web.pages.routes import of_category, of_product, page, resource
from store.web.queries import FeedOf, FeedPart
from store.web.view import View

ATOM = "application/atom+xml; charset=utf-8"
JSON_FEED = "application/feed+json"
ENTRIES = 100
NEVER = "1970-01-01T00:00:00Z"
"""When a feed was updated that nothing was ever answered for."""


@page("/feeds/changes.atom", "feed.atom.xml", media_type=ATOM)
def changes_atom(view: View, query: FeedPart) -> dict[str, Any]:
    """Show the changes of all categories."""
    answered = [aggregate.last_success for aggregate in view.snapshot.summary.living]
    return {
        "id": identity("feed", "changes"),
        "title": f"{view.site.name}: changes of a #1",
        "subtitle": "When an assistant’s #1 for a category becomes another product. "
        f"The proof over all polls: {_proof(view)}",
        "page": view.at.page("changes"),
        "proof": view.at.page("data/heads.jsonl"),
        **_part(view, query, view.snapshot.summary.changes, view.at.page("feeds/changes.atom")),
        "answered": max(filter(None, answered), default=NEVER),
    }


@resource("/feeds/changes.json", JSON_FEED)
def changes_json(view: View, query: FeedPart) -> bytes:
    """Return the same as JSON Feed."""
    address = view.at.page("feeds/changes.json")
    part = _part(view, query, view.snapshot.summary.changes, address)
    feed = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": f"{view.site.name}: changes of a #1{_sample(view)}",
        "home_page_url": view.at.page("changes"),
        "feed_url": part["address"],
        "description": "When an assistant's #1 pick for a category becomes another product. The "
        f"proof over all polls: {_proof(view)}",
        "authors": [{"name": view.site.name, "url": view.at.page()}],
        "language": "en",
        **({"next_url": part["following"]} if part["following"] else {}),
        "items": part["items"],
    }
    return msgspec.json.encode(feed)


@page(
    "/feeds/best/<slug>.atom",
    "feed.atom.xml",
    basis=of_category,
    same=lambda view, query: view.at.category(query.slug),
    media_type=ATOM,
)
def category_atom(view: View, query: FeedOf) -> dict[str, Any]:
    """Show the changes of one category."""
    board = lookup.board(view, query.slug, lambda slug: view.at.feed("best", slug))
    changes = view.snapshot.aggregates[board.slug].changes[::-1]
    return {
        "id": identity("feed", board.slug),
        "title": f"{board.category.title}: changes of a #1",
        "subtitle": f"When an assistant’s #1 becomes another product. “{board.question}”",
        "page": view.at.category_page(board.slug),
        **_part(view, query, changes, view.at.feed("best", board.slug)),
        "answered": board.newest,
    }


@page(
    "/feeds/product/<slug>.atom",
    "feed.atom.xml",
    basis=of_product,
    same=lambda view, query: view.at.product(query.slug),
    media_type=ATOM,
)
def product_atom(view: View, query: FeedOf) -> dict[str, Any]:
    """Show where a product became an assistant's #1, or lost that place."""
    product = lookup.product(view, query.slug, lambda slug: view.at.feed("product", slug))
    changes = _newest_first(
        change
        for slug in product.categories
        for change in view.snapshot.aggregates[slug].changes
        if product.id in (change.previous, change.current)
    )
    return {
        "id": identity("feed", f"product/{product.id}"),
        "title": f"{product.name}: won and lost #1s",
        "subtitle": f"When {product.name} becomes an assistant's #1 for a category, or another "
        "does.",
        "page": view.at.product_page(product.slug),
        **_part(view, query, changes, view.at.feed("product", product.slug)),
        "answered": product.first_mention,
    }


@page("/feeds/topics/<slug>.atom", "feed.atom.xml", media_type=ATOM)
def topic_atom(view: View, query: FeedOf) -> dict[str, Any]:
    """Show the changes of a topic's categories."""
    topic = lookup.topic(view, query.slug)
    boards, aggregates = topic.leaderboards, view.snapshot.aggregates
    changes = _newest_first(c for board in boards for c in aggregates[board.slug].changes)
    return {
        "id": identity("feed", f"topic/{topic.slug}"),
        "title": f"{topic.title}: changes of a #1",
        "subtitle": "When an assistant's #1 for one of its categories becomes another product.",
        "page": view.at.topic_page(topic.slug),
        **_part(view, query, changes, view.at.feed("topics", topic.slug)),
        "answered": max((board.newest for board in boards), default=NEVER),
    }


ROUTES: tuple[Route, ...] = (changes_atom, changes_json, category_atom, product_atom, topic_atom)


def _part(view: View, query: FeedPart, changes: Sequence[Change], address: str) -> dict[str, Any]:
    """Return the items of a part of a feed, its address and that of the next part, if any."""
    places = (i for i, change in enumerate(changes, 1) if change.poll == query.before)
    start = next(places, len(changes)) if query.before else 0
    end = start + ENTRIES
    if start < len(changes):
        newest = changes[start].current_at[:10]
        of_day = (i for i in range(start, len(changes)) if changes[i].current_at[:10] < newest)
        end = max(end, next(of_day, len(changes)))
    last = changes[end - 1].poll if end < len(changes) else None
    return {
        "address": f"{address}?before={query.before}" if query.before else address,
        "following": f"{address}?before={last}" if last else None,
        "items": [_item(flip, view) for flip in pick_changes(changes[start:end], view.snapshot)],
    }


def _newest_first(changes: Iterable[Change]) -> list[Change]:
    """Return changes, newest first; within one second by category and assistant."""
    order = sorted(changes, key=lambda change: (change.slug, change.model))
    return sorted(order, key=lambda change: change.current_at, reverse=True)


def identity(kind: str, key: str) -> str:
    """Return a stable id that depends on neither the site's name nor its address."""
    return uuid.uuid5(uuid.NAMESPACE_OID, f"consensus-ranking:{kind}:{key}").urn


def _sample(view: View) -> str:
    return " (sample data, invented)" if view.site.sample else ""


def _proof(view: View) -> str:
    """Say where the heads are, and what the root over all present lines is."""
    present = view.snapshot.present
    return (
        f"{view.at.page('data/heads.jsonl')}. Now {present.lines:,} lines, {present.closed:,} of "
        f"them of closed days, have the root {present.root}"
    )


def _item(flip: PickChange, view: View) -> dict[str, Any]:
    """Return a change as an item; its id follows from the poll that brought the change."""
    change = flip.change
    told = f' {change.model}\'s reason: "{change.reason}"' if change.reason else ""
    status = (
        "Confirmed by its next answer." if change.confirmed else "Not confirmed by a second answer."
    )
    if change.version:
        status += f" It {sentences.coincidence(change.version)}."
    heads = view.snapshot.ledger.heads
    head = next((x for x in reversed(heads) if x.day < change.current_at[:10]), None)
    proof = f" The head of {head.day}, before it: {head.root}" if head else ""
    return {
        "id": identity("change", change.poll),
        "url": view.at.category_page(change.slug),
        "title": f"{flip.title}: {change.model} now ranks {flip.after.name} #1",
        "content_text": (
            f"{change.model} moved from {flip.before.name} ({change.previous_at[:10]}) to "
            f"{flip.after.name} ({change.current_at[:10]}). {status}{told}{proof}"
        ),
        "date_published": change.current_at,
        "tags": ["confirmed" if change.confirmed else "unconfirmed"],
    }
