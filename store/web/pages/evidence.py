"""Evidence: what the pages read from history, beyond what the snapshot keeps in memory."""

from __future__ import annotations

import heapq
from collections import Counter
from itertools import islice, takewhile
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec import Struct

from store.counting import as_known
from store.line_codec import POLL_DECODER
from store.rankings import timelines
from store.web.pages.charts import DAYS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from store.memory import Store
    from store.rankings.products import ProductProfile
    from store.rankings.timelines import Day
    from store.records import Category, Pick, Poll
    from store.snapshot import Snapshot

FOLLOWED = 5000
"""Polls that a category's days are followed through at most, the newest; 2,600 take 0.1 s."""
MOST_POLLS = 500
"""Polls that a page shows at most, the newest."""
PIECE = 100
"""Lines of history that are read at once."""

Placed = TypeVar("Placed", "Pick", "_Place")


class _Place(Struct):
    """Of a place in an answer, what tells the product."""

    product: str
    domain: str | None


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


class Evidence:
    """Reads polls of a snapshot from the history files."""

    def __init__(self, store: Store, snapshot: Snapshot) -> None:
        self._store = store
        self._snapshot = snapshot

    def days(self, slug: str, last: str | None = None) -> list[Day]:
        """The days of a category's polls, not after the ``last`` if given, oldest first."""
        snapshot = self._snapshot
        newest_first = (POLL_DECODER.decode(line) for line in self._lines(slug))
        until = (poll for poll in newest_first if last is None or poll.polled_at[:10] <= last)
        polls = list(islice(until, FOLLOWED))[::-1]
        days = timelines.follow(
            as_known(polls, snapshot.catalogue.former_names),
            snapshot.aggregates[slug].category,
            snapshot.aggregates[slug].resolved,
            snapshot.models,
            snapshot.catalogue.site,
            {id_: snapshot.products[id_].slug for id_ in snapshot.aggregates[slug].product_stats},
        )
        return list(days)

    def product_mentions(self, product: ProductProfile) -> list[ProductMention]:
        """The newest polls that named a product, newest first, and at most 500."""
        each = (self._product_mentions(product, slug) for slug in sorted(product.categories))
        newest_first = heapq.merge(*each, key=lambda n: n.poll.polled_at, reverse=True)
        found = list(islice(newest_first, MOST_POLLS))
        if found:
            oldest = found[-1].poll.polled_at
            found += takewhile(lambda n: n.poll.polled_at == oldest, newest_first)
        found.sort(key=lambda n: (n.slug, n.poll.model))
        found.sort(key=lambda n: n.poll.polled_at, reverse=True)
        return found[:MOST_POLLS]

    def mentions(self, product: ProductProfile) -> list[tuple[str, int, int]]:
        """Per day, oldest first: answers that named a product, and answers in its categories."""
        named: Counter[str] = Counter()
        asked: Counter[str] = Counter()
        for slug in product.categories:
            for line in islice(self._lines(slug), 2 * DAYS * len(self._snapshot.models)):
                poll = _POLL_SUMMARIES.decode(line)
                if poll.pick is not None:
                    date = poll.polled_at[:10]
                    asked[date] += 1
                    named[date] += self._pick(poll.ranking, product, slug) is not None
        return [(date, named[date], asked[date]) for date in sorted(asked)][-DAYS:]

    def _product_mentions(self, product: ProductProfile, slug: str) -> Iterator[ProductMention]:
        """The polls of a category that named a product, newest first, read as they are taken."""
        aggregate = self._snapshot.aggregates[slug]
        stats = aggregate.product_stats[product.id]
        spellings = [msgspec.json.encode(spelling) for spelling in stats.spellings]
        left = stats.mentions
        for line in self._lines(slug):
            if b"\\" not in line and not any(spelling in line for spelling in spellings):
                continue  # decoding costs more than looking; an escape may spell a name otherwise
            [poll] = as_known([POLL_DECODER.decode(line)], self._snapshot.catalogue.former_names)
            if pick := self._pick(poll.ranking, product, slug):
                yield ProductMention(slug, poll, aggregate.category, pick)
                left -= 1
                if left == 0:
                    return

    def _pick(self, ranking: Iterable[Placed], product: ProductProfile, slug: str) -> Placed | None:
        """Where in a ranking a product stands."""
        resolved = self._snapshot.aggregates[slug].resolved
        named = (p for p in ranking if resolved.get((p.product, p.domain)) == product.id)
        return next(named, None)

    def _lines(self, slug: str) -> Iterator[bytes]:
        """A category's lines, newest first, read from disk in pieces as they are taken."""
        line_index = self._snapshot.line_indexes[slug]
        positions = line_index.newest(None, len(line_index.models))
        for start in range(0, len(positions), PIECE):
            yield from self._store.lines(line_index, positions[start : start + PIECE])
