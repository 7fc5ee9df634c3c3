"""Feeds of changes: Atom (RFC 4287) and JSON Feed 1.1, with ids that never change."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from store.web.pages.contexts import PickChange
    from store.web.snapshot_view import SnapshotView

ENTRIES = 100


def identity(kind: str, key: str) -> str:
    """A stable id that depends on neither the site's name nor its address."""
    return uuid.uuid5(uuid.NAMESPACE_OID, f"consensus-ranking:{kind}:{key}").urn


def json_feed(items: Iterable[Mapping[str, Any]], view: SnapshotView) -> bytes:
    """The JSON Feed of all changes."""
    feed: dict[str, Any] = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": f"{view.site.name}: changes of a #1",
        "home_page_url": view.at.page("changes"),
        "feed_url": view.at.page("feeds/changes.json"),
        "description": "When an assistant's #1 pick for a category becomes another product.",
        "language": "en",
        "items": items,
    }
    return msgspec.json.encode(feed)


def item(flip: PickChange, view: SnapshotView) -> dict[str, Any]:
    """A change as an item of a JSON Feed; its id follows from the poll that brought the change."""
    change = flip.change
    said = f' {change.model}\'s reason: "{change.reason}"' if change.reason else ""
    status = (
        "Confirmed by its next answer." if change.confirmed else "Not confirmed by a second answer."
    )
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
