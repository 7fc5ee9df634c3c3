"""Feeds of changes: Atom (RFC 4287) and JSON Feed 1.1, with ids that never change.

A page of a feed has at least all changes of its newest day: enough for a reader who comes once
after each pass over all categories. Older ones are on the pages that it names
(RFC 5005, ``next_url``).
"""

import uuid
from collections.abc import Sequence
from typing import Any

import msgspec

from store.rankings import sentences
from store.rankings.changes import Change
from store.web import lookup
from store.web.pages.routes import page, resource
from store.web.queries import PollId, Query, Slug
from store.web.responses import Route, category_basis
from store.web.view import View

ATOM = "application/atom+xml; charset=utf-8"
JSON_FEED = "application/feed+json"
ENTRIES = 100
NEVER = "1970-01-01T00:00:00Z"
"""The time of a feed without any answer."""


class FeedQuery(Query, frozen=True, kw_only=True):
    """A page of a feed: what is older than a change, if given."""

    before: PollId | None = None


class CategoryFeedQuery(FeedQuery, frozen=True, kw_only=True):
    """A page of the feed of a category."""

    slug: Slug


@page("/feeds/changes.atom", "feed.atom.xml", media_type=ATOM)
def changes_atom(view: View, query: FeedQuery) -> dict[str, Any]:
    """Show the changes of all categories."""
    answered = [aggregate.wordings.newest for aggregate in view.snapshot.summary.living]
    return {
        **_changes(view, query, "feeds/changes.atom"),
        "id": identity("feed", "changes"),
        "proof": view.at.page("methodology#check"),
        "answered": max(filter(None, answered), default=NEVER),
    }


@resource("/feeds/changes.json", JSON_FEED)
def changes_json(view: View, query: FeedQuery) -> bytes:
    """Return the changes of all categories as a JSON Feed."""
    part = _changes(view, query, "feeds/changes.json")
    feed = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": part["title"] + (" (sample data, invented)" if view.site.sample else ""),
        "home_page_url": part["page"],
        "feed_url": part["address"],
        "description": part["subtitle"],
        "authors": [{"name": view.site.name, "url": view.at.page()}],
        "language": "en",
        **({"next_url": part["following"]} if part["following"] else {}),
        "items": part["items"],
    }
    return msgspec.json.encode(feed)


def _changes(view: View, query: FeedQuery, path: str) -> dict[str, Any]:
    """Return a page of the feed of all changes, with the root over all present lines."""
    present = view.snapshot.provisional_head
    return {
        "title": f"{view.site.name}: changes of a #1",
        "subtitle": "When an assistant’s #1 for a category becomes another product. How to check "
        f"all polls: {view.at.page('methodology#check')}. Now {present.lines:,} lines, "
        f"{present.closed:,} of them of closed days, have the root {present.root}",
        "page": view.at.page("changes"),
        **_page_of(view, query, view.snapshot.summary.changes, view.at.page(path)),
    }


@page(
    "/feeds/best/<slug>.atom",
    "feed.atom.xml",
    basis=category_basis,
    alternate=lambda view, query: view.at.category(query.slug),
    media_type=ATOM,
)
def category_atom(view: View, query: CategoryFeedQuery) -> dict[str, Any]:
    """Show the changes of one category."""
    board = lookup.board(view, query.slug)
    changes = view.snapshot.aggregates[board.slug].changes[::-1]
    return {
        "id": identity("feed", (*board.category.former_slugs, board.slug)[0]),
        "title": f"{board.category.title}: changes of a #1",
        "subtitle": f"When an assistant’s #1 becomes another product. “{board.question}”",
        "page": view.at.category_page(board.slug),
        **_page_of(view, query, changes, view.at.feed(board.slug)),
        "answered": board.newest,
    }


ROUTES: tuple[Route, ...] = (changes_atom, changes_json, category_atom)


def _page_of(
    view: View, query: FeedQuery, changes: Sequence[Change], address: str
) -> dict[str, Any]:
    """Return the items of a page of a feed, its address and that of the next, if any."""
    places = (i for i, change in enumerate(changes, 1) if change.poll == query.before)
    start = next(places, len(changes)) if query.before else 0
    end = start + ENTRIES
    # A pass over all categories brings more changes than a page holds: none may be missed.
    if start < len(changes):
        newest = changes[start].current_at[:10]
        of_day = (i for i in range(start, len(changes)) if changes[i].current_at[:10] < newest)
        end = max(end, next(of_day, len(changes)))
    last = changes[end - 1].poll if end < len(changes) else None
    return {
        "address": f"{address}?before={query.before}" if query.before else address,
        "following": f"{address}?before={last}" if last else None,
        "items": [_item(change, view) for change in changes[start:end]],
    }


def identity(kind: str, key: str) -> str:
    """Return a stable id that depends on neither the site's name nor its address."""
    # Readers know entries by their ids: a move of the site must not bring all of them again.
    return uuid.uuid5(uuid.NAMESPACE_OID, f"consensus-ranking:{kind}:{key}").urn


def _item(change: Change, view: View) -> dict[str, Any]:
    """Return a change as an item; its id follows from the poll that brought the change."""
    title = view.snapshot.aggregates[change.slug].category.title
    before, after = view.name(change.previous), view.name(change.current)
    status = (
        "Confirmed by its next answer." if change.confirmed else "Unconfirmed: it may be chance."
    )
    if change.version:
        status += f" It {sentences.coincidence(change.version)}."
    reason = f' {change.model}\'s reason: "{change.reason}"' if change.reason else ""
    heads = view.snapshot.ledger.heads
    head = next((x for x in reversed(heads) if x.day < change.current_at[:10]), None)
    proof = f" The head of {head.day}, before it: {head.root}" if head else ""
    return {
        "id": identity("change", change.poll),
        "url": view.at.category_page(change.slug),
        "title": f"{title}: {change.model} now ranks {after} #1",
        "content_text": (
            f"{change.model} moved from {before} ({change.previous_at[:10]}) to {after} "
            f"({change.current_at[:10]}). {status}{reason}{proof}"
        ),
        "date_published": change.current_at,
        "tags": ["confirmed" if change.confirmed else "unconfirmed"],
    }
