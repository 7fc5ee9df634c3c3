"""Evidence: what the pages read from history, beyond what the snapshot keeps in memory."""

from __future__ import annotations

import heapq
from collections import Counter
from itertools import islice, takewhile
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec import Struct

from store.counting import as_known
from store.rankings import timelines
from store.records import Poll
from store.web.pages.charts import DAYS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from store.memory import Store
    from store.rankings.products import Named
    from store.rankings.timelines import Day
    from store.records import Category, Pick
    from store.snapshot import Snapshot

MOST_POLLS = 500
"""Polls that a page shows at most, the newest."""
PIECE = 100
"""Lines of history that are read at once."""

Placed = TypeVar("Placed", "Pick", "_Place")


class _Place(Struct):
    """Of a place in an answer, what tells the product."""

    product: str
    domain: str | None


class _Glance(Struct, rename="camel"):
    """Of a line of history, what counting takes: a third of the time of the whole."""

    polled_at: str
    pick: str | None
    ranking: tuple[_Place, ...]


_POLLS = msgspec.json.Decoder(Poll)
_GLANCES = msgspec.json.Decoder(_Glance)


class Naming(Struct, frozen=True):
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

    def days(self, slug: str) -> list[Day]:
        """The last days of a category's polls, oldest first."""
        snapshot = self._snapshot
        polls = [_POLLS.decode(line) for line in islice(self._lines(slug), MOST_POLLS)][::-1]
        days = timelines.follow(
            as_known(polls, snapshot.catalogue.former_names),
            snapshot.readings[slug].category,
            snapshot.readings[slug].resolved,
            snapshot.models,
            snapshot.catalogue.site,
            {id_: snapshot.products[id_].slug for id_ in snapshot.readings[slug].sightings},
        )
        return list(days)[-DAYS:]

    def namings(self, product: Named) -> list[Naming]:
        """The newest polls that named a product, newest first, and at most 500."""
        each = (self._namings(product, slug) for slug in sorted(product.categories))
        newest_first = heapq.merge(*each, key=lambda n: n.poll.polled_at, reverse=True)
        found = list(islice(newest_first, MOST_POLLS))
        if found:
            oldest = found[-1].poll.polled_at
            found += takewhile(lambda n: n.poll.polled_at == oldest, newest_first)
        found.sort(key=lambda n: (n.slug, n.poll.model))
        found.sort(key=lambda n: n.poll.polled_at, reverse=True)
        return found[:MOST_POLLS]

    def mentions(self, product: Named) -> list[tuple[str, int, int]]:
        """Per day, oldest first: answers that named a product, and answers in its categories."""
        named: Counter[str] = Counter()
        asked: Counter[str] = Counter()
        for slug in product.categories:
            for line in islice(self._lines(slug), 2 * DAYS * len(self._snapshot.models)):
                poll = _GLANCES.decode(line)
                if poll.pick is not None:
                    date = poll.polled_at[:10]
                    asked[date] += 1
                    named[date] += self._pick(poll.ranking, product, slug) is not None
        return [(date, named[date], asked[date]) for date in sorted(asked)][-DAYS:]

    def _namings(self, product: Named, slug: str) -> Iterator[Naming]:
        """The polls of a category that named a product, newest first, read as they are taken."""
        reading = self._snapshot.readings[slug]
        sighting = reading.sightings[product.id]
        spellings = [msgspec.json.encode(spelling) for spelling in sighting.spellings]
        left = sighting.mentions
        for line in self._lines(slug):
            if b"\\" not in line and not any(spelling in line for spelling in spellings):
                continue  # decoding costs more than looking; an escape may spell a name otherwise
            [poll] = as_known([_POLLS.decode(line)], self._snapshot.catalogue.former_names)
            if pick := self._pick(poll.ranking, product, slug):
                yield Naming(slug, poll, reading.category, pick)
                left -= 1
                if left == 0:
                    return

    def _pick(self, ranking: Iterable[Placed], product: Named, slug: str) -> Placed | None:
        """Where in a ranking a product stands."""
        resolved = self._snapshot.readings[slug].resolved
        named = (p for p in ranking if resolved.get((p.product, p.domain)) == product.id)
        return next(named, None)

    def _lines(self, slug: str) -> Iterator[bytes]:
        """A category's lines, newest first, read from disk in pieces as they are taken."""
        ledger = self._snapshot.ledgers[slug]
        positions = ledger.newest(None, len(ledger.models))
        for start in range(0, len(positions), PIECE):
            yield from self._store.lines(ledger, positions[start : start + PIECE])
