"""Why something is not there: gone, or only not to be had just now, since history is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flask import request

from store.web.errors import Gone, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    from flask import Blueprint

    from store.snapshot import Snapshot
    from store.web.errors import ApiError

WITHOUT_HISTORY = frozenset(
    {"api.health", "api.live", "api.ready", "pages.api_catalog", "pages.asset", "pages.robots"}
)
"""Endpoints whose answers say nothing that follows from history."""


def guard(blueprint: Blueprint, snapshot: Callable[[], Snapshot]) -> None:
    """Let a blueprint's views answer 503 while nothing of the history is known."""

    @blueprint.before_request
    def refuse_without_history() -> None:
        if request.endpoint not in WITHOUT_HISTORY and (reason := history(snapshot())):
            raise reason


def history(snapshot: Snapshot) -> ApiError | None:
    """What to answer in place of anything that follows from history, if nothing of it is known.

    Else lists would be empty and products unknown, as if nobody had ever answered.
    """
    if snapshot.lost and not any(ledger.models for ledger in snapshot.ledgers.values()):
        return Unavailable(f"Nothing can be shown until this is mended: {snapshot.lost[0]}")
    return None


def product(slug: str, snapshot: Snapshot) -> ApiError | None:
    """What to answer for a product that may be named in history that is lost; else ``None``."""
    if snapshot.lost:
        fault = snapshot.lost[0]
        return Unavailable(
            f'No product with the slug "{slug}" is known, but it may be named in history that '
            f"cannot be read until this is mended: {fault}"
        )
    return None


def category(slug: str, snapshot: Snapshot) -> ApiError | None:
    """What to answer for a category that has no ranking for a reason of its own; else ``None``.

    Deleted is what history holds and whose file is gone (store/README.md, Damage). Where a file is
    bad or history lost, the ranking is there and cannot be shown.
    """
    if reason := history(snapshot):
        return reason
    if fault := snapshot.fault_of(slug):
        return Unavailable(f'"{slug}" cannot be shown until this is mended: {fault}')
    if deleted := snapshot.gone(slug):
        answered = deleted.last_success
        last = f"its last answer is of {answered[:10]}" if answered else "it was never answered"
        return Gone(
            f'The category "{slug}" is gone: {last}. Its polls stay at /api/v1/history?slug={slug}.'
        )
    return None
