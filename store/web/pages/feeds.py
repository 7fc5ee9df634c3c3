"""Feeds of changes: Atom (RFC 4287) and JSON Feed 1.1, with ids that never change."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable

    from store.web.pages.contexts import PickChange
    from store.web.snapshot_view import SnapshotView

ENTRIES = 100


class Item(Struct, frozen=True):
    """A change as a feed tells it."""

    id: str
    title: str
    text: str
    page: str
    at: str
    confirmed: bool


def identity(kind: str, key: str) -> str:
    """A stable id that depends on neither the site's name nor its address."""
    return uuid.uuid5(uuid.NAMESPACE_OID, f"consensus-ranking:{kind}:{key}").urn


def items(pick_changes: Iterable[PickChange], view: SnapshotView) -> list[Item]:
    """Changes as feed items; the id follows from the poll that brought the change."""
    return [_item(flip, view) for flip in pick_changes]


def json_feed(found: Iterable[Item], view: SnapshotView) -> bytes:
    """The JSON Feed of all changes."""
    feed: dict[str, Any] = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": f"{view.site.name}: changes of a #1",
        "home_page_url": view.at.page("changes"),
        "feed_url": view.at.page("feeds/changes.json"),
        "description": "When an assistant's #1 pick for a category becomes another product.",
        "language": "en",
        "items": [
            {
                "id": item.id,
                "url": item.page,
                "title": item.title,
                "content_text": item.text,
                "date_published": item.at,
                "tags": ["confirmed" if item.confirmed else "unconfirmed"],
            }
            for item in found
        ],
    }
    return msgspec.json.encode(feed)


def _item(flip: PickChange, view: SnapshotView) -> Item:
    change = flip.change
    said = f' {change.model}\'s reason: "{change.reason}"' if change.reason else ""
    status = (
        "Confirmed by its next answer." if change.confirmed else "Not confirmed by a second answer."
    )
    return Item(
        id=identity("change", change.poll),
        title=f"{flip.title}: {change.model} now ranks {flip.after.name} #1",
        text=(
            f"{change.model} moved from {flip.before.name} ({change.previous_at[:10]}) to "
            f"{flip.after.name} ({change.current_at[:10]}). {status}{said}"
        ),
        page=view.at.category_page(change.slug),
        at=change.current_at,
        confirmed=change.confirmed,
    )
