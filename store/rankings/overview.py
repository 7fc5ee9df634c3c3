"""What is over all categories: lists, changes, mentions, experiments, redirects and search."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from msgspec import Struct

from store.rankings import experiments, products
from store.rankings.mentions import Trends
from store.rankings.search import Index, Titled

if TYPE_CHECKING:
    from collections.abc import Mapping

    from store.rankings.boards import Board
    from store.rankings.changes import Change
    from store.rankings.experiments import Experiment
    from store.rankings.names import ProductId
    from store.rankings.products import Named
    from store.rankings.readings import Reading
    from store.records import Category


_EPOCH = "1970-01-01"


class Searched(Struct, frozen=True):
    """What a search index is made from; equal ones make equal indexes."""

    categories: tuple[Titled, ...]
    brands: tuple[Titled, ...]
    synonyms: tuple[tuple[str, ...], ...]
    words: tuple[str, ...]


class Overview(Struct, frozen=True):
    """Everything that is over all categories.

    ``ranked`` is by title, ``changes`` newest first, ``mentioned`` most mentioned first.
    ``successes`` counts successful polls, ``tracked`` categories with at least one.
    """

    ranked: tuple[Board, ...]
    changes: tuple[Change, ...]
    successes: int
    tracked: int
    last_poll: str | None
    trends: Trends
    mentioned: tuple[Named, ...]
    experiments: tuple[Experiment, ...]
    retired: tuple[str, ...]
    product_redirects: Mapping[str, str]
    category_redirects: Mapping[str, str]
    searched: Searched
    index: Index


def overlook(
    categories: Mapping[str, Category],
    models: tuple[str, ...],
    vocabulary: tuple[tuple[tuple[str, ...], ...], tuple[str, ...]],
    readings: Mapping[str, Reading],
    boards: Mapping[str, Board],
    named: Mapping[ProductId, Named],
    before: Overview | None,
) -> Overview:
    """Survey all readings and boards; ``vocabulary`` is the synonyms and the common words.

    The search index of before is kept while the titles are the same.
    """
    every = readings.values()
    last_poll = max((r.last_poll for r in every if r.last_poll), default=None)
    ranked = tuple(sorted(boards.values(), key=lambda b: (b.category.title.casefold(), b.slug)))
    searched = _searched(ranked, named, vocabulary)
    return Overview(
        ranked=ranked,
        changes=tuple(
            sorted(
                (change for reading in every for change in reading.changes),
                key=lambda change: (change.current_at, change.slug, change.model),
                reverse=True,
            )
        ),
        successes=sum(reading.successes for reading in every),
        tracked=sum(reading.successes > 0 for reading in every),
        last_poll=last_poll,
        trends=Trends(
            (cell for reading in every for cell in reading.recent.values()),
            dt.date.fromisoformat((last_poll or _EPOCH)[:10]),
        ),
        mentioned=tuple(sorted(named.values(), key=lambda p: (-p.mentions, p.slug))),
        experiments=experiments.compute(ranked, list(every)),
        retired=tuple(sorted({m for reading in every for m in reading.models} - set(models))),
        product_redirects=products.redirects(every, {p.id: p.slug for p in named.values()}),
        category_redirects={
            former: slug
            for slug, category in categories.items()
            for former in category.former_slugs
            if former not in categories
        },
        searched=searched,
        index=before.index if before and before.searched == searched else _index(searched),
    )


def _searched(
    ranked: tuple[Board, ...],
    named: Mapping[ProductId, Named],
    vocabulary: tuple[tuple[tuple[str, ...], ...], tuple[str, ...]],
) -> Searched:
    return Searched(
        categories=tuple(
            Titled(board.slug, (board.category.title, *board.category.aliases)) for board in ranked
        ),
        brands=tuple(
            Titled(product.slug, (product.name, *product.aliases), product.domain)
            for product in sorted(named.values(), key=lambda product: product.slug)
        ),
        synonyms=vocabulary[0],
        words=vocabulary[1],
    )


def _index(searched: Searched) -> Index:
    return Index(searched.categories, searched.brands, searched.synonyms, searched.words)
