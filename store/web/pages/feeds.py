"""Feeds of changes: Atom (RFC 4287) and JSON Feed 1.1, with ids that never change.

A feed is long enough for a reader who comes once a round: it has at least all changes of the newest
day. Older ones are in ``changes.json``.
"""

import uuid
from collections.abc import Sequence
from typing import Any

import msgspec

from store.rankings import sentences
from store.rankings.changes import Change
from store.web import lookup
from store.web.pages.routes import page, resource
from store.web.queries import CategoryQuery, Query
from store.web.responses import Route, category_basis
from store.web.view import View

ATOM = "application/atom+xml; charset=utf-8"
JSON_FEED = "application/feed+json"
ENTRIES = 100
NEVER = "1970-01-01T00:00:00Z"
"""The time of a feed without any answer."""


@page("/feeds/changes.atom", "feed.atom.xml", media_type=ATOM)
def changes_atom(view: View, query: Query) -> dict[str, Any]:  # noqa: ARG001
    """Show the changes of all categories."""
    answered = [aggregate.last_success for aggregate in view.snapshot.summary.living]
    return {
        **_changes(view, "feeds/changes.atom"),
        "id": identity("feed", "changes"),
        "proof": view.at.page("data/heads.jsonl"),
        "answered": max(filter(None, answered), default=NEVER),
    }


@resource("/feeds/changes.json", JSON_FEED)
def changes_json(view: View, query: Query) -> bytes:  # noqa: ARG001
    """Return the same as JSON Feed."""
    changes = _changes(view, "feeds/changes.json")
    feed = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": changes["title"] + (" (sample data, invented)" if view.site.sample else ""),
        "home_page_url": changes["page"],
        "feed_url": changes["address"],
        "description": changes["subtitle"],
        "authors": [{"name": view.site.name, "url": view.at.page()}],
        "language": "en",
        "items": changes["items"],
    }
    return msgspec.json.encode(feed)


def _changes(view: View, path: str) -> dict[str, Any]:
    """Return the feed of all changes, with the root over all present lines."""
    present = view.snapshot.provisional_head
    return {
        "title": f"{view.site.name}: changes of a #1",
        "subtitle": "When an assistant’s #1 for a category becomes another product. The proof over "
        f"all polls: {view.at.page('data/heads.jsonl')}. Now {present.lines:,} lines, "
        f"{present.closed:,} of them of closed days, have the root {present.root}",
        "page": view.at.page("changes"),
        "address": view.at.page(path),
        "items": _items(view, view.snapshot.summary.changes),
    }


@page(
    "/feeds/best/<slug>.atom",
    "feed.atom.xml",
    basis=category_basis,
    alternate=lambda view, query: view.at.category(query.slug),
    media_type=ATOM,
)
def category_atom(view: View, query: CategoryQuery) -> dict[str, Any]:
    """Show the changes of one category."""
    board = lookup.board(view, query.slug, view.at.feed)
    changes = view.snapshot.aggregates[board.slug].changes[::-1]
    return {
        "id": identity("feed", board.slug),
        "title": f"{board.category.title}: changes of a #1",
        "subtitle": f"When an assistant’s #1 becomes another product. “{board.question}”",
        "page": view.at.category_page(board.slug),
        "address": view.at.feed(board.slug),
        "items": _items(view, changes),
        "answered": board.newest,
    }


ROUTES: tuple[Route, ...] = (changes_atom, changes_json, category_atom)


def _items(view: View, changes: Sequence[Change]) -> list[dict[str, Any]]:
    """Return the newest changes as items of a feed, at least all of the newest day."""
    newest_day = changes[0].current_at[:10] if changes else ""
    return [
        _item(change, view)
        for number, change in enumerate(changes)
        # A round may bring more: who reads once a round must miss none.
        if number < ENTRIES or change.current_at[:10] == newest_day
    ]


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
