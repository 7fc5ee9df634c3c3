"""Aggregates over all categories: lists, changes, mentions, experiments, redirects, search."""

from __future__ import annotations

import datetime as dt
from bisect import insort
from functools import cached_property
from operator import attrgetter
from statistics import fmean
from typing import TYPE_CHECKING, get_args

from msgspec import Struct

from store.rankings import (
    agreement,
    assistants,
    experiments,
    mentions,
    products,
    repeatability,
    rounds,
    topics,
)
from store.rankings.certainty import Level
from store.rankings.names import slugs
from store.rankings.repeatability import Noise
from store.search import Document, Index

if TYPE_CHECKING:
    from collections.abc import Mapping

    from store.rankings.aggregates import CategoryAggregate
    from store.rankings.assistants import AssistantProfile
    from store.rankings.changes import Change
    from store.rankings.experiments import Experiment
    from store.rankings.leaderboards import Leaderboard
    from store.rankings.mentions import Trend
    from store.rankings.names import ProductId
    from store.rankings.products import ProductProfile
    from store.rankings.repeatability import Repeats
    from store.rankings.rounds import TrackRecord
    from store.rankings.topics import RankedPart, RankedTopic
    from store.records import Category, Topic


_EPOCH = "1970-01-01"  # stands for the newest day where there is no poll; no window holds any


_Searched = tuple[
    tuple[Document, ...], tuple[Document, ...], tuple[tuple[str, ...], ...], tuple[str, ...]
]


class Curated(Struct, frozen=True):
    """What people wrote that is over all categories; ``models`` are the configured names.

    ``makers`` are keys of company names by model.
    """

    categories: Mapping[str, Category]
    models: tuple[str, ...]
    makers: Mapping[str, str]
    synonyms: tuple[tuple[str, ...], ...]
    words: tuple[str, ...]
    topics: tuple[Topic, ...] = ()


class SiteSummary(Struct, frozen=True, dict=True):
    """Everything that is over all categories.

    ``makers`` are keys of company names by model. ``ranked`` is by title, ``changes`` newest first,
    ``mentioned`` most mentioned first, ``closed`` the last closed day, empty if none is.
    ``successes`` counts successful polls, those of deleted categories too; ``tracked`` counts
    categories with at least one. ``aggregates`` are there for
    what is only made when it is needed, ``living`` without those of deleted categories.
    """

    aggregates: tuple[CategoryAggregate, ...]
    living: tuple[CategoryAggregate, ...]
    models: tuple[str, ...]
    makers: Mapping[str, str]
    ranked: tuple[Leaderboard, ...]
    changes: tuple[Change, ...]
    successes: int
    tracked: int
    last_poll: str | None
    mentioned: tuple[ProductProfile, ...]
    closed: str
    retired: tuple[str, ...]
    category_redirects: Mapping[str, str]
    index: Index
    topics: tuple[RankedTopic, ...]

    @cached_property
    def experiments(self) -> tuple[Experiment, ...]:
        """The computed experiments; the first time takes a millisecond a category."""
        made_by = {product.id: product.maker for product in self.mentioned if product.maker}
        return experiments.compute(
            self.ranked, self.living, self.makers, made_by, self.repeats, self.track_record
        )

    @cached_property
    def track_record(self) -> TrackRecord:
        """How often the next round of a category had the same #1, by the level before."""
        return rounds.track_record([board.rounds for board in self.ranked], self.closed)

    @cached_property
    def repeats(self) -> dict[str, list[Repeats]]:
        """By model, how alike its answers are in each category that it answered twice."""
        return repeatability.by_model(self.ranked)

    @cached_property
    def noise(self) -> Noise | None:
        """How alike the answers of all assistants are when they are asked again."""
        return Noise.of([repeats for own in self.repeats.values() for repeats in own])

    @cached_property
    def trends(self) -> dict[ProductId, Trend]:
        """Whether each product is named more or less often than a week before."""
        today = dt.date.fromisoformat((self.last_poll or _EPOCH)[:10])
        first_mentions = {p.id: dt.date.fromisoformat(p.first_mention[:10]) for p in self.mentioned}
        return mentions.trends([a.recent for a in self.living], today, first_mentions)

    @cached_property
    def levels(self) -> dict[Level, tuple[Leaderboard, ...]]:
        """The ranked categories by how sure their #1 is, each level's by title."""
        return {
            level: tuple(board for board in self.ranked if board.certainty.level == level)
            for level in get_args(Level)
        }

    @cached_property
    def model_slugs(self) -> dict[str, str]:
        """The configured models by the slugs of their pages; a later one never takes a slug."""
        found: dict[str, str] = {}
        for model in self.models:
            found[next(slug for slug in slugs(model) if slug not in found)] = model
        return found

    def topic(self, slug: str) -> RankedTopic | None:
        """A topic by its slug."""
        return next((topic for topic in self.topics if topic.slug == slug), None)

    @cached_property
    def assistants(self) -> dict[str, AssistantProfile]:
        """What each configured assistant does; the first time as slow as the experiments."""
        return {
            model: assistants.profile(
                model, self.ranked, self.aggregates, self.repeats.get(model, ())
            )
            for model in self.models
        }

    @cached_property
    def overlaps(self) -> dict[tuple[str, str], tuple[float, int]]:
        """The mean overlap of each two assistants' lists, and in how many categories both count."""
        overlaps = agreement.by_pair(board.agreement for board in self.ranked)
        return {pair: (fmean(each), len(each)) for pair, each in overlaps.items()}

    @cached_property
    def topics_of(self) -> dict[str, list[tuple[RankedTopic, RankedPart]]]:
        """The topics, and their parts, that each ranked category is in."""
        return topics.by_category(self.topics)

    def related(self, board: Leaderboard) -> tuple[Leaderboard, ...]:
        """Return a few rankings that a reader of one may want to see next."""
        if board.slug not in self._related:
            parts = self.topics_of.get(board.slug, [])
            self._related[board.slug] = topics.related(board, parts)
        return self._related[board.slug]

    @cached_property
    def _related(self) -> dict[str, tuple[Leaderboard, ...]]:
        return {}

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
    closed: str,
    before: SiteSummary | None,
) -> SiteSummary:
    """Aggregate all categories and leaderboards; the same titles keep the search index.

    Aggregates of deleted categories count in all-time figures only.
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
    redirects = {
        former: slug
        for slug, category in curated.categories.items()
        for former in category.former_slugs
        if former not in curated.categories
    }
    searched = (
        tuple([_document(board) for board in ranked]),
        tuple([Document(p.slug, (p.name, *p.aliases), p.domain) for p in by_slug]),
        curated.synonyms,
        curated.words,
    )
    return SiteSummary(
        aggregates=every,
        living=living,
        models=curated.models,
        makers=curated.makers,
        ranked=ranked,
        changes=_newest_first(current, before),
        successes=sum([aggregate.successes for aggregate in every]),
        tracked=sum([aggregate.successes > 0 for aggregate in living]),
        last_poll=last_poll,
        mentioned=tuple(sorted(by_slug, key=attrgetter("mentions"), reverse=True)),
        closed=closed,
        retired=tuple(sorted(models.difference(curated.models))),
        category_redirects=redirects,
        index=_index(searched, before.index if before else None),
        topics=topics.ranked(curated.topics, leaderboards, redirects),
    )


def _index(searched: _Searched, before: Index | None) -> Index:
    return before if before and before.given == searched else Index(*searched, before)


def _document(board: Leaderboard) -> Document:
    """A category as search finds it."""
    category = board.category
    titles = (category.title, *category.aliases)
    return Document(board.slug, titles, situations=category.situations)


def _newest_first(
    aggregates: Mapping[str, CategoryAggregate], before: SiteSummary | None
) -> tuple[Change, ...]:
    """All changes, the newest first; within one second by category and model."""
    known = {aggregate.slug: aggregate.changes for aggregate in before.living} if before else {}
    changes = {slug: aggregate.changes for slug, aggregate in aggregates.items()}
    differing = {
        slug for slug in known.keys() | changes.keys() if known.get(slug) is not changes.get(slug)
    }
    fresh = [change for slug in differing for change in changes.get(slug, ())]
    order = [change for change in before.changes if change.slug not in differing] if before else []
    if not order:
        return tuple(sorted(fresh, key=_order))
    for change in fresh:  # few in a step; sorting all would keep every reader waiting
        insort(order, change, key=_order)
    return tuple(order)


def _order(change: Change) -> tuple[float, str, str]:
    return -dt.datetime.fromisoformat(change.current_at).timestamp(), change.slug, change.model
