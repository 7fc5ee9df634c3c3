"""Evidence: what the pages read from history, beyond what the snapshot keeps in memory."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from store.counting import as_known
from store.rankings import timelines
from store.records import Poll
from store.web.pages.charts import DAYS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from store.memory import Store
    from store.rankings.products import Named
    from store.rankings.timelines import Day
    from store.records import Category, Pick
    from store.snapshot import Snapshot

MOST_POLLS = 500
"""Polls of one category that a page reads at most, the newest."""

_DECODER = msgspec.json.Decoder(Poll)


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
        polls = list(self._newest(slug))[::-1]
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
        found = [naming for slug in product.categories for naming in self._namings(product, slug)]
        found.sort(key=lambda n: (n.slug, n.poll.model))
        found.sort(key=lambda n: n.poll.polled_at, reverse=True)
        return found[:MOST_POLLS]

    def mentions(self, product: Named) -> list[tuple[str, int, int]]:
        """Per day, oldest first: answers that named a product, and answers in its categories."""
        named: Counter[str] = Counter()
        asked: Counter[str] = Counter()
        for slug in product.categories:
            for poll in self._newest(slug, 2 * DAYS * len(self._snapshot.models)):
                if poll.succeeded:
                    date = poll.polled_at[:10]
                    asked[date] += 1
                    named[date] += self._pick(poll, product, slug) is not None
        return [(date, named[date], asked[date]) for date in sorted(asked)][-DAYS:]

    def _namings(self, product: Named, slug: str) -> Iterator[Naming]:
        category = self._snapshot.readings[slug].category
        for poll in self._newest(slug):
            if pick := self._pick(poll, product, slug):
                yield Naming(slug, poll, category, pick)

    def _pick(self, poll: Poll, product: Named, slug: str) -> Pick | None:
        resolved = self._snapshot.readings[slug].resolved
        named = (p for p in poll.ranking if resolved.get((p.product, p.domain)) == product.id)
        return next(named, None)

    def _newest(self, slug: str, limit: int = MOST_POLLS) -> Iterator[Poll]:
        """The newest polls of a category, newest first."""
        ledger = self._snapshot.ledgers[slug]
        for line in self._store.lines(ledger, ledger.newest(None, limit)):
            yield _DECODER.decode(line)
