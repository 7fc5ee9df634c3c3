"""Evidence: what the pages read from history, beyond what the snapshot keeps in memory."""

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice, takewhile
from typing import TypeVar

import msgspec
from msgspec import Struct

from store.counting import as_known
from store.line_codec import POLL_DECODER
from store.rankings import timelines
from store.rankings.products import ProductProfile
from store.rankings.timelines import Day
from store.records import Category, Pick, Poll
from store.web.pages.charts import DAYS
from store.web.view import View

FOLLOWED = 5000
"""Polls that a category's days are followed through at most, the newest; 2,600 take 0.1 s."""
MOST_POLLS = 500
"""Polls that a page shows at most, the newest."""
PIECE = 100
"""Lines of history that are read at once."""


class _Place(Struct):
    """Of a place in an answer, what tells the product."""

    product: str
    domain: str | None


Placed = TypeVar("Placed", Pick, _Place)


class _PollSummary(Struct, rename="camel"):
    """Of a line of history, what counting takes: a third of the time of the whole."""

    polled_at: str
    pick: str | None
    ranking: tuple[_Place, ...]


_POLL_SUMMARIES = msgspec.json.Decoder(_PollSummary)


class ProductMention(Struct, frozen=True):
    """A poll that named a product, and where in its answer."""

    slug: str
    poll: Poll
    category: Category
    pick: Pick


def days(view: View, slug: str, last: str | None = None) -> list[Day]:
    """Return the days of a category's polls, not after the ``last`` if given, oldest first."""
    snapshot = view.snapshot
    newest_first = (POLL_DECODER.decode(line) for line in _lines(view, slug))
    until = (poll for poll in newest_first if last is None or poll.polled_at[:10] <= last)
    polls = list(islice(until, FOLLOWED))[::-1]
    aggregate = snapshot.aggregates[slug]
    return list(
        timelines.follow(
            as_known(polls, snapshot.catalogue.former_names),
            aggregate.category,
            aggregate.resolved,
            snapshot.models,
            snapshot.catalogue.site,
            {id_: snapshot.products[id_].slug for id_ in aggregate.product_stats},
            board.rounds if (board := snapshot.leaderboards.get(slug)) else (),
        )
    )


def product_mentions(view: View, product: ProductProfile) -> list[ProductMention]:
    """Return the newest polls that named a product, newest first, and at most 500."""
    of_each = (_product_mentions(view, product, slug) for slug in sorted(product.categories))
    newest_first = heapq.merge(*of_each, key=lambda n: n.poll.polled_at, reverse=True)
    newest = list(islice(newest_first, MOST_POLLS))
    if newest:
        oldest = newest[-1].poll.polled_at
        newest += takewhile(lambda n: n.poll.polled_at == oldest, newest_first)
    newest.sort(key=lambda n: (n.slug, n.poll.model))
    newest.sort(key=lambda n: n.poll.polled_at, reverse=True)
    return newest[:MOST_POLLS]


def mentions(view: View, product: ProductProfile) -> list[tuple[str, int, int]]:
    """Return per day, oldest first: answers that named a product, and answers to its categories."""
    named: Counter[str] = Counter()
    answered: Counter[str] = Counter()
    for slug in product.categories:
        for line in islice(_lines(view, slug), 2 * DAYS * len(view.snapshot.models)):
            poll = _POLL_SUMMARIES.decode(line)
            if poll.pick is not None:
                date = poll.polled_at[:10]
                answered[date] += 1
                named[date] += _pick(view, poll.ranking, product, slug) is not None
    return [(date, named[date], answered[date]) for date in sorted(answered)][-DAYS:]


def _product_mentions(view: View, product: ProductProfile, slug: str) -> Iterator[ProductMention]:
    """Yield the polls of a category that named a product, newest first, read as they are taken."""
    aggregate = view.snapshot.aggregates[slug]
    stats = aggregate.product_stats[product.id]
    spellings = [msgspec.json.encode(spelling) for spelling in stats.spellings]
    left = stats.mentions
    for line in _lines(view, slug):
        if b"\\" not in line and not any(spelling in line for spelling in spellings):
            continue  # decoding costs more than looking; an escape may spell a name otherwise
        [poll] = as_known([POLL_DECODER.decode(line)], view.snapshot.catalogue.former_names)
        if pick := _pick(view, poll.ranking, product, slug):
            yield ProductMention(slug, poll, aggregate.category, pick)
            left -= 1
            if left == 0:
                return


def _pick(
    view: View, ranking: Iterable[Placed], product: ProductProfile, slug: str
) -> Placed | None:
    """Return where in a ranking a product stands."""
    resolved = view.snapshot.aggregates[slug].resolved
    named = (p for p in ranking if resolved.get((p.product, p.domain)) == product.id)
    return next(named, None)


def _lines(view: View, slug: str) -> Iterator[bytes]:
    """Yield a category's lines, newest first, read from disk in pieces as they are taken."""
    index = view.snapshot.line_indexes[slug]
    positions = index.newest(None, len(index.models))
    for start in range(0, len(positions), PIECE):
        yield from view.lines(index, positions[start : start + PIECE])
