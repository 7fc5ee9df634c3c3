"""Leaderboards: one category's merged ranking as it stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from store.rankings import agreement, merging

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from store.rankings.names import ProductId
    from store.rankings.readings import Reading
    from store.records import Category, Site


class Board(Struct, frozen=True):
    """A ranked category. ``newest`` is the time of the newest counted poll."""

    slug: str
    category: Category
    counted: tuple[merging.Counted, ...]
    missing: tuple[str, ...]
    entries: tuple[merging.Entry, ...]
    agreement: agreement.Agreement | None
    newest: str

    @property
    def updated(self) -> str:
        """The UTC date of the newest counted poll."""
        return self.newest[:10]

    @property
    def configured(self) -> int:
        """How many models are asked, whether they answered or not."""
        return len(self.counted) + len(self.missing)


def board(
    reading: Reading, models: Sequence[str], site: Site, slugs: Mapping[ProductId, str]
) -> Board | None:
    """Merge a category's answers of the configured models; ``None`` when there are none."""
    counted = merging.count(reading.latest, models, site.stale_after_days, site.drop_after_days)
    if not counted:
        return None
    entries = merging.merge(counted, slugs)
    present = {answer.model for answer in counted}
    return Board(
        slug=reading.slug,
        category=reading.category,
        counted=counted,
        missing=tuple(model for model in models if model not in present),
        entries=entries,
        agreement=agreement.measure(counted, entries),
        newest=max(answer.answered.poll.polled_at for answer in counted),
    )
