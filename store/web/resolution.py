"""What stands at an address: a resource, an address that it moved to, or nothing, and why.

The JSON API, pages, feeds, MCP tools, the documentation's examples and what is made in advance all
resolve what they show here.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from store.web.addresses import category_path, product_path
from store.web.cache import EncodedBody
from store.web.http_responses import CACHE_CONTROL
from store.web.snapshot_view import SnapshotView

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from store.rankings.leaderboards import Leaderboard
    from store.rankings.products import ProductProfile
    from store.snapshot import LineIndex, Snapshot
    from store.web.resources import Suggestion

    Lines = Callable[[LineIndex, Sequence[int]], list[bytes]]

JSON = "application/json"
PER_REQUEST = 1
"""Compression level of what a query asked for: a third of the time of level 6, a tenth longer."""

PAGES = {"changes.json": "changes", "mentions.json": "mentions", "labs.json": "labs"}
"""The page that shows a document, where it is not the home page."""

_encode = msgspec.json.Encoder().encode


class Resource(Struct, frozen=True):
    """Something that can be shown.

    ``path`` is its address below the base URL. ``make`` gives its body, which may be kept until
    ``generation`` moves; ``None`` is never kept. ``link`` is its ``Link`` header.
    """

    path: str
    generation: int | None
    make: Callable[[], EncodedBody]
    media_type: str
    link: str
    cache_control: str = CACHE_CONTROL


class Moved(Struct, frozen=True):
    """What was asked for has another address."""

    address: str


class Absent(Struct, frozen=True):
    """Nothing can be shown: why, as the API, a page and an MCP tool say it.

    ``closest`` is what may have been meant by an unknown slug.
    """

    status: HTTPStatus
    api: str
    page: str
    tool: str
    closest: list[Suggestion] | None = None

    @classmethod
    def because(cls, status: HTTPStatus, why: str) -> Absent:
        """Nothing, for a reason that is told to everybody alike."""
        return cls(status, why, why, why)


Resolved = Resource | Moved | Absent


def verdict(board: Leaderboard, view: SnapshotView) -> Resource:
    """The verdict of a category."""
    return _json(
        view,
        category_path(board.slug),
        view.snapshot.generations.categories[board.slug],
        lambda: view.category_verdict(board),
        lambda: view.snapshot.category_modified(board),
        page=view.at.category_page(board.slug),
    )


def record(product: ProductProfile, view: SnapshotView) -> Resource:
    """The record of a product."""
    return _json(
        view,
        product_path(product.slug),
        view.snapshot.generations.products[product.id],
        lambda: view.product_record(product),
        lambda: view.snapshot.product_modified(product),
        page=view.at.product_page(product.slug),
    )


def document(name: str, view: SnapshotView) -> Resource:
    """A resource that is over everything, by its path below ``/api/v1/``."""
    return _json(
        view,
        name,
        view.snapshot.generations.summary,
        lambda: DOCUMENTS[name](view),
        lambda: view.snapshot.modified,
        page=view.at.page(PAGES.get(name, "")),
    )


def search(query: str, view: SnapshotView) -> Resource:
    """What fits a query."""
    return _json(
        view,
        f"search?q={query}",
        view.snapshot.generations.newest,
        lambda: view.search_results(query),
        lambda: view.snapshot.modified,
        page=view.at.search_page(query),
        level=PER_REQUEST,
    )


def _json(
    view: SnapshotView,
    path: str,
    generation: int,
    shape: Callable[[], object],
    modified: Callable[[], int],
    *,
    page: str,
    level: int = 6,
) -> Resource:
    """A resource of the API: the ``shape`` at a path below ``/api/v1/``, as JSON."""

    def make() -> EncodedBody:
        return EncodedBody(_encode(shape()), modified(), level)

    return Resource(f"api/v1/{path}", generation, make, JSON, view.link(page))


def history(
    slug: str, model: str | None, limit: int, view: SnapshotView, lines: Lines
) -> Resource | None:
    """The newest polls of a category as they stand in its files, which ``lines`` reads.

    ``None`` where no history bears the slug. Making the body raises
    :class:`~store.history.HistoryError` while a file cannot be read.
    """
    snapshot = view.snapshot
    line_index = snapshot.line_indexes.get(slug)
    if line_index is None:
        return None

    def make() -> EncodedBody:
        found = lines(line_index, line_index.newest(model, limit))
        stamps = (_STAMPS.decode(line) for line in found)
        newest = next((stamp.polled_at for stamp in stamps if not stamp.withheld), None)
        modified = snapshot.history_modified(slug, newest)
        return EncodedBody(b"[" + b",".join(found) + b"]", modified, PER_REQUEST)

    return Resource(
        path=f"api/v1/history?slug={slug}&limit={limit}&model={model or ''}",
        generation=snapshot.generations.newest,
        make=make,
        media_type=JSON,
        link=view.link(view.at.category_page(slug)),
    )


def no_category(slug: str, view: SnapshotView, address: Callable[[str], str]) -> Moved | Absent:
    """Where an unknown category's slug leads: to its new ``address``, or nowhere."""
    if current := view.snapshot.summary.category_redirects.get(slug):
        return Moved(address(current))
    return absent_category(slug, view)


def no_product(slug: str, view: SnapshotView, address: Callable[[str], str]) -> Moved | Absent:
    """Where an unknown product's slug leads: to its new ``address``, or nowhere."""
    if current := view.snapshot.summary.product_redirects.get(slug):
        return Moved(address(current))
    return absent_product(slug, view)


def without_history(snapshot: Snapshot) -> Absent | None:
    """What to answer in place of anything that follows from history, if nothing of it is known.

    Else lists would be empty and products unknown, as if nobody had ever answered.
    """
    if snapshot.lost and not any(
        line_index.models for line_index in snapshot.line_indexes.values()
    ):
        why = f"Nothing can be shown until this is mended: {snapshot.lost[0]}"
        return Absent.because(HTTPStatus.SERVICE_UNAVAILABLE, why)
    return None


def absent_product(slug: str, view: SnapshotView) -> Absent:
    """Why there is no product; it may be named in history that is lost."""
    if view.snapshot.lost:
        return Absent.because(
            HTTPStatus.SERVICE_UNAVAILABLE,
            f'No product with the slug "{slug}" is known, but it may be named in history that '
            f"cannot be read until this is mended: {view.snapshot.lost[0]}",
        )
    return Absent(
        HTTPStatus.NOT_FOUND,
        api=f'No product with the slug "{slug}". Resolve names through /api/v1/search?q=.',
        page=f'There is no product with the slug "{slug}".',
        tool=f'No product has the slug "{slug}".',
        closest=view.suggested_products(slug),
    )


def absent_category(slug: str, view: SnapshotView) -> Absent:
    """Why there is no ranking of a category.

    Deleted means that history holds the slug and its file is gone (store/README.md, Damage).
    Where a file is bad or history lost, its ranking is there and cannot be shown.
    """
    snapshot = view.snapshot
    if lost := without_history(snapshot):
        return lost
    if fault := snapshot.fault_of(slug):
        why = f'"{slug}" cannot be shown until this is mended: {fault}'
        return Absent.because(HTTPStatus.SERVICE_UNAVAILABLE, why)
    if deleted := snapshot.gone(slug):
        answered = deleted.last_success
        last = f"its last answer is of {answered[:10]}" if answered else "it was never answered"
        return Absent.because(
            HTTPStatus.GONE,
            f'The category "{slug}" is gone: {last}. '
            f"Its polls stay at /api/v1/history?slug={slug}.",
        )
    if category := snapshot.catalogue.categories.get(slug):
        unpolled = f'The category "{slug}" has no successful poll yet.'
        return Absent(
            HTTPStatus.NOT_FOUND,
            api=unpolled,
            page=f'"{category.title}" has no successful poll yet. Its ranking appears here as soon '
            "as one assistant has answered.",
            tool=f"{unpolled} get_poll_history shows the attempts; search_best finds other "
            "categories.",
        )
    return Absent(
        HTTPStatus.NOT_FOUND,
        api=f'No category with the slug "{slug}". Resolve slugs through /api/v1/search?q=.',
        page=f'There is no category with the slug "{slug}".',
        tool=f'No category has the slug "{slug}".',
        closest=view.suggested_categories(slug),
    )


class _Stamp(Struct, rename="camel"):
    """Of a line of history, when it was polled, and whether that counts."""

    polled_at: str
    withheld: bool = False


_STAMPS = msgspec.json.Decoder(_Stamp)

DOCUMENTS: dict[str, Callable[[SnapshotView], object]] = {
    "categories.json": SnapshotView.category_items,
    "changes.json": SnapshotView.change_list,
    "mentions.json": SnapshotView.mention_list,
    "labs.json": SnapshotView.labs,
}
"""The resources that are over everything, by their path below ``/api/v1/``."""
