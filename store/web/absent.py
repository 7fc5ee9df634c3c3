"""Why a category is not there: unknown, not yet polled, gone, or only not to be had just now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from store.web.errors import Gone, Unavailable

if TYPE_CHECKING:
    from store.snapshot import Snapshot
    from store.web.errors import ApiError


def category(slug: str, snapshot: Snapshot) -> ApiError | None:
    """What to answer for a category that has no ranking for a reason of its own; else ``None``.

    Deleted is what nobody broke: history holds the slug and its file is gone (CONTRACT section 9).
    Where a file is bad or history lost, its ranking is there and cannot be shown.
    """
    if fault := snapshot.fault_of(slug):
        return Unavailable(f'"{slug}" cannot be shown until this is mended: {fault}')
    if deleted := snapshot.gone(slug):
        answered = deleted.last_success
        last = f"its last answer is of {answered[:10]}" if answered else "it was never answered"
        return Gone(
            f'The category "{slug}" is gone: {last}. Its polls stay at /api/v1/history?slug={slug}.'
        )
    return None
