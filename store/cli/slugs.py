"""The error of commands for an unknown slug."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from rapidfuzz import process

if TYPE_CHECKING:
    from collections.abc import Iterable


def unknown_category(slug: str, known: Iterable[str]) -> click.UsageError:
    """The error for a slug that no category has, with those that come close in any case."""
    close = process.extract(slug, list(known), limit=3, score_cutoff=60, processor=str.lower)
    hint = f" Closest: {', '.join(name for name, *_ in close)}." if close else ""
    return click.UsageError(f'No category has the slug "{slug}".{hint}')
