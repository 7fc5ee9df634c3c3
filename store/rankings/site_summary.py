"""Aggregates over all categories: lists, changes, mentions, experiments, redirects, search."""

from __future__ import annotations

import datetime as dt
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING

from msgspec import Struct

from store.rankings import experiments, products
from store.rankings.mentions import Trends
from store.rankings.search import Document, Index

if TYPE_CHECKING:
    from collections.abc import Mapping

    from store.rankings.aggregates import CategoryAggregate
    from store.rankings.changes import Change
    from store.rankings.experiments import Experiment
    from store.rankings.leaderboards import Leaderboard
    from store.rankings.names import ProductId
    from store.rankings.products import ProductProfile
    from store.records import Category


_EPOCH = "1970-01-01"  # stands for the newest day where there is no poll; no window holds any


class Curated(Struct, frozen=True):
    """What people wrote that is over all categories; ``models`` are the configured names."""

    categories: Mapping[str, Category]
    models: tuple[str, ...]
    synonyms: tuple[tuple[str, ...], ...]
    words: tuple[str, ...]


class SiteSummary(Struct, frozen=True, dict=True):
    """Everything that is over all categories.

    ``ranked`` is by title, ``changes`` newest first, ``mentioned`` most mentioned first.
    ``successes`` counts successful polls, those of deleted categories too; ``tracked`` counts
    categories with at least one. ``aggregates`` are there for what is only made when it is needed.
    """

    aggregates: tuple[CategoryAggregate, ...]
    ranked: tuple[Leaderboard, ...]
    changes: tuple[Change, ...]
    successes: int
    tracked: int
    last_poll: str | None
    trends: Trends
    mentioned: tuple[ProductProfile, ...]
    experiments: tuple[Experiment, ...]
    retired: tuple[str, ...]
    category_redirects: Mapping[str, str]
    index: Index

    @cached_property
    def product_redirects(self) -> dict[str, str]:
        """Old address to new, of every product."""
        slugs = {product.id: product.slug for product in self.mentioned}
        return {
            **products.redirects(self.aggregates, slugs),
            **products.former(self.mentioned),
        }

    def prepare(self) -> None:
        """Make redirects and search index now, so that no request waits for them."""
        _ = self.product_redirects
        self.index.prepare()


def summarise(
    curated: Curated,
    aggregates: Mapping[str, CategoryAggregate],
    leaderboards: Mapping[str, Leaderboard],
    named: Mapping[ProductId, ProductProfile],
    before: SiteSummary | None,
) -> SiteSummary:
    """Aggregate all readings and boards; the search index is reused while its titles are the same.

    Readings of deleted categories count in all-time figures only.
    """
    every = tuple(aggregates.values())
    current = {
        slug: aggregate for slug, aggregate in aggregates.items() if slug in curated.categories
    }
    living = tuple(current.values())
    models = {model for aggregate in every for model in aggregate.states}
    last_poll = max([r.last_poll for r in every if r.last_poll], default=None)
    ranked = tuple(sorted(leaderboards.values(), key=attrgetter("by_title")))
    by_slug = sorted(named.values(), key=attrgetter("slug"))
    searched = (
        tuple([Document(b.slug, (b.category.title, *b.category.aliases)) for b in ranked]),
        tuple([Document(p.slug, (p.name, *p.aliases), p.domain) for p in by_slug]),
        curated.synonyms,
        curated.words,
    )
    return SiteSummary(
        aggregates=every,
        ranked=ranked,
        changes=_newest_first(current),
        successes=sum([aggregate.successes for aggregate in every]),
        tracked=sum([aggregate.successes > 0 for aggregate in living]),
        last_poll=last_poll,
        trends=Trends(
            [cell for aggregate in living for cell in aggregate.recent],
            dt.date.fromisoformat((last_poll or _EPOCH)[:10]),
        ),
        mentioned=tuple(sorted(by_slug, key=attrgetter("mentions"), reverse=True)),
        experiments=experiments.compute(ranked, living),
        retired=tuple(sorted(models.difference(curated.models))),
        category_redirects={
            former: slug
            for slug, category in curated.categories.items()
            for former in category.former_slugs
            if former not in curated.categories
        },
        index=before.index if before and before.index.given == searched else Index(*searched),
    )


def _newest_first(aggregates: Mapping[str, CategoryAggregate]) -> tuple[Change, ...]:
    """All changes, the newest first; within one second by category and model."""
    changes = [change for aggregate in aggregates.values() for change in aggregate.changes]
    order = sorted(changes, key=attrgetter("slug", "model"))
    return tuple(sorted(order, key=attrgetter("current_at"), reverse=True))
