"""Summary of the site: lists, changes, mentions, topics, experiments, redirects, search."""

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from operator import attrgetter
from statistics import fmean
from typing import get_args

from msgspec import Struct

from store.files import Catalogue
from store.rankings import experiments, mention_trends, products, rounds
from store.rankings.aggregates import CategoryAggregate
from store.rankings.agreement import Repeats
from store.rankings.certainty import Level
from store.rankings.changes import Change
from store.rankings.experiments import Experiment
from store.rankings.leaderboards import Leaderboard
from store.rankings.mention_trends import Trend
from store.rankings.names import ProductId, key
from store.rankings.products import ProductProfile
from store.rankings.rounds import TrackRecord
from store.records import Category, Topic
from store.search import Document, Index

_EPOCH = "1970-01-01"  # stands for the newest day where there is no poll; no window holds any

MAX_RELATED = 6
"""Related rankings that a page lists: as many as are seen at a glance."""


class RankedPart(Struct, frozen=True):
    """A part of a topic and its ranked categories, by title."""

    slug: str
    title: str
    leaderboards: tuple[Leaderboard, ...]


class RankedTopic(Struct, frozen=True):
    """A topic and those of its parts in which something is ranked."""

    slug: str
    title: str
    group: str | None
    parts: tuple[RankedPart, ...]

    @property
    def leaderboards(self) -> list[Leaderboard]:
        """Its ranked categories, each once, by title."""
        boards = {board.slug: board for part in self.parts for board in part.leaderboards}
        return sorted(boards.values(), key=attrgetter("by_title"))


class AssistantProfile(Struct, frozen=True):
    """An assistant over all categories.

    ``polls`` and ``answers`` count deleted categories, too. ``counted`` is the number of rankings
    that count it, ``shared`` of those that count another one, too, ``agreeing`` of the shared ones
    whose most frequent #1 is its own. ``repeats`` says how alike its answers to one question are.
    """

    model: str
    polls: int
    answers: int
    counted: int
    agreeing: int
    shared: int
    repeats: Repeats | None


class SiteSummary(Struct, frozen=True, dict=True):
    """The figures that span all categories.

    ``models`` are the configured assistants, ``retired`` those only in history;
    ``assistant_maker_keys`` are the key of each assistant's company, by assistant. ``ranked`` is by
    title, ``mentioned`` most mentioned first, ``last_closed_day`` is empty if none is.
    ``successes`` counts successful polls, those of deleted categories too; ``tracked`` counts
    categories with at least one. ``aggregates`` stay for the figures made on first use; ``living``
    are those of categories that are not deleted.
    """

    aggregates: tuple[CategoryAggregate, ...]
    living: tuple[CategoryAggregate, ...]
    models: tuple[str, ...]
    assistant_maker_keys: Mapping[str, str]
    ranked: tuple[Leaderboard, ...]
    successes: int
    tracked: int
    last_poll: str | None
    mentioned: tuple[ProductProfile, ...]
    last_closed_day: str
    retired: tuple[str, ...]
    category_redirects: Mapping[str, str]
    index: Index
    topics: tuple[RankedTopic, ...]

    @cached_property
    def last_answer(self) -> str:
        """The time of the newest answer; empty without any."""
        return max((aggregate.wordings.newest for aggregate in self.aggregates), default="")

    @cached_property
    def changes(self) -> tuple[Change, ...]:
        """Every change of an assistant's #1, newest first."""
        changes = [c for own in sorted(self.living, key=attrgetter("slug")) for c in own.changes]
        # The sort is stable: of equal times slugs, then models, stand in order as before.
        return tuple(sorted(changes, key=attrgetter("current_at"), reverse=True))

    @cached_property
    def experiments(self) -> tuple[Experiment, ...]:
        """The computed experiments; the first time takes a millisecond a category."""
        made_by = {product.id: product.maker for product in self.mentioned if product.maker}
        streaks = [streak for aggregate in self.living for streak in aggregate.streaks]
        return experiments.compute(
            self.ranked,
            streaks,
            self.assistant_maker_keys,
            made_by,
            self.repeats,
            self.track_record,
        )

    @cached_property
    def track_record(self) -> TrackRecord:
        """Our own record of whether the next round of a category had the same #1."""
        return rounds.track_record([board.rounds for board in self.ranked], self.last_closed_day)

    @cached_property
    def repeats(self) -> dict[str, list[Repeats]]:
        """By model, how alike its answers are in each category that it answered twice."""
        repeats: dict[str, list[Repeats]] = {}
        for board in self.ranked:
            for model, own in board.repeatability.repeats.items() if board.repeatability else ():
                repeats.setdefault(model, []).append(own)
        return repeats

    @cached_property
    def mean_repeats(self) -> Repeats | None:
        """The likeness of all assistants' answers to one question that is asked again."""
        return Repeats.mean([repeats for own in self.repeats.values() for repeats in own])

    @cached_property
    def trends(self) -> dict[ProductId, Trend]:
        """The trend of each product's mentions from one week to the next."""
        today = dt.date.fromisoformat((self.last_poll or _EPOCH)[:10])
        first_mentions = {p.id: dt.date.fromisoformat(p.first_mention[:10]) for p in self.mentioned}
        return mention_trends.trends([a.log for a in self.living], today, first_mentions)

    @cached_property
    def levels(self) -> dict[Level, tuple[Leaderboard, ...]]:
        """The ranked categories by how sure their #1 is, each level's by title."""
        return {
            level: tuple(board for board in self.ranked if board.certainty.level == level)
            for level in get_args(Level)
        }

    def topic(self, slug: str) -> RankedTopic | None:
        """Return a topic by its slug."""
        return next((topic for topic in self.topics if topic.slug == slug), None)

    @cached_property
    def assistants(self) -> dict[str, AssistantProfile]:
        """The profile of each configured assistant; the first time as slow as the experiments."""
        return {
            model: _profile(model, self.ranked, self.aggregates, self.repeats.get(model, ()))
            for model in self.models
        }

    @cached_property
    def overlaps(self) -> dict[tuple[str, str], tuple[float, int]]:
        """The mean overlap of each two assistants' lists, and in how many categories both count."""
        overlaps: dict[tuple[str, str], list[float]] = {}
        for board in self.ranked:
            for pair, overlap in board.agreement.overlaps.items() if board.agreement else ():
                overlaps.setdefault(pair, []).append(overlap)
        return {pair: (fmean(of_pair), len(of_pair)) for pair, of_pair in overlaps.items()}

    @cached_property
    def topics_of(self) -> dict[str, list[tuple[RankedTopic, RankedPart]]]:
        """The topics, and their parts, that each ranked category is in, in the topics' order."""
        places: dict[str, list[tuple[RankedTopic, RankedPart]]] = {}
        for topic in self.topics:
            for part in topic.parts:
                for board in part.leaderboards:
                    places.setdefault(board.slug, []).append((topic, part))
        return places

    def related(self, board: Leaderboard) -> tuple[Leaderboard, ...]:
        """Return a few other rankings of the same parts, those with most words in common first."""
        parts = [part for _, part in self.topics_of.get(board.slug, ())]
        others = {o.slug: o for part in parts for o in part.leaderboards if o.slug != board.slug}
        words = set(board.category.subject.casefold().split())

        def in_common(other: Leaderboard) -> int:
            return len(words.intersection(other.category.subject.casefold().split()))

        return tuple(sorted(others.values(), key=in_common, reverse=True)[:MAX_RELATED])

    @cached_property
    def product_redirects(self) -> dict[str, str]:
        """Old addresses with the new ones, of all products."""
        return products.redirects(self.aggregates, self.mentioned)

    def prepare_pages(self) -> None:
        """Make what some pages ask of every ranking now, so that none waits for all of them."""
        for board in self.ranked:  # 4 s at 74,100 polls after a start; later only what is new
            _ = board.certainty, board.rounds, board.repeatability


def summarise(
    catalogue: Catalogue,
    aggregates: Mapping[str, CategoryAggregate],
    leaderboards: Mapping[str, Leaderboard],
    named: Mapping[ProductId, ProductProfile],
    last_closed_day: str,
    before: SiteSummary | None,
) -> SiteSummary:
    """Summarise all categories and leaderboards; the same titles keep the search index of before.

    Aggregates of deleted categories count in all-time figures only.
    """
    living = {slug: own for slug, own in aggregates.items() if slug in catalogue.categories}
    models = tuple(assistant.name for assistant in catalogue.assistants)
    asked = {model for aggregate in aggregates.values() for model in aggregate.states}
    times = [aggregate.last_poll for aggregate in aggregates.values() if aggregate.last_poll]
    ranked = tuple(sorted(leaderboards.values(), key=attrgetter("by_title")))
    by_slug = sorted(named.values(), key=attrgetter("slug"))
    redirects = {
        former: slug
        for former, slug in catalogue.renamed.items()
        if former not in catalogue.categories
    }
    searched = (
        tuple([document(board.slug, board.category) for board in ranked]),
        tuple([Document(p.slug, (p.name, *p.aliases), p.domain) for p in by_slug]),
        catalogue.synonyms,
        catalogue.words,
    )
    index = before.index if before else None
    return SiteSummary(
        aggregates=tuple(aggregates.values()),
        living=tuple(living.values()),
        models=models,
        assistant_maker_keys={a.name: key(a.maker) for a in catalogue.assistants if a.maker},
        ranked=ranked,
        successes=sum([aggregate.successes for aggregate in aggregates.values()]),
        tracked=sum([aggregate.successes > 0 for aggregate in living.values()]),
        last_poll=max(times, default=None),
        mentioned=tuple(sorted(by_slug, key=attrgetter("mentions"), reverse=True)),
        last_closed_day=last_closed_day,
        retired=tuple(sorted(asked.difference(models))),
        category_redirects=redirects,
        # An index takes a second of CPU; one that differs little takes over the rest.
        index=index if index and index.given == searched else Index(*searched, index),
        topics=ranked_topics(catalogue.topics, leaderboards, redirects),
    )


def ranked_topics(
    topics: Iterable[Topic],
    leaderboards: Mapping[str, Leaderboard],
    redirects: Mapping[str, str],
) -> tuple[RankedTopic, ...]:
    """Return the topics in their own order, with what is ranked.

    ``redirects`` lead from a category's old slug to its new one.
    """

    def boards(slugs: Iterable[str]) -> tuple[Leaderboard, ...]:
        current = {redirects.get(slug, slug) for slug in slugs}
        ranked = [leaderboards[slug] for slug in current if slug in leaderboards]
        return tuple(sorted(ranked, key=attrgetter("by_title")))

    return tuple(
        RankedTopic(
            topic.slug,
            topic.title,
            topic.group,
            tuple(
                RankedPart(part.slug, part.title, ranked)
                for part in topic.parts
                if (ranked := boards(part.categories))
            ),
        )
        for topic in topics
    )


def document(slug: str, category: Category) -> Document:
    """Return a category as search finds it."""
    titles = (category.title, *category.aliases)
    questions = (category.question, *category.former_questions)
    return Document(slug, titles, situations=category.situations, questions=questions)


def _profile(
    model: str,
    leaderboards: Iterable[Leaderboard],
    aggregates: Iterable[CategoryAggregate],
    repeats: Sequence[Repeats],
) -> AssistantProfile:
    """Return an assistant over all categories."""
    states = [own for aggregate in aggregates if (own := aggregate.states.get(model))]
    firsts = [(b, a.answer.first) for b in leaderboards for a in b.counted if a.model == model]
    agreeing = [first == b.agreement.product for b, first in firsts if b.agreement]
    return AssistantProfile(
        model=model,
        polls=sum(state.polls for state in states),
        answers=sum(state.successes for state in states),
        counted=len(firsts),
        agreeing=sum(agreeing),
        shared=len(agreeing),
        repeats=Repeats.mean(repeats),
    )
