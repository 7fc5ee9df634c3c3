"""Merging: each model's latest answer in, one ranking out (store/README.md, Ranking).

Rank 1 is worth 5 points, rank 5 one; points are summed over models and never rescaled.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Protocol, TypeVar

from msgspec import Struct

from store.text import rfc3339

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from store.rankings.names import ProductId, Spelling
    from store.records import Category, Pick, Poll

PLACES = 5
"""Ranks of an answer that count: the question asks for five picks at most."""


Places = tuple["ProductId | None", ...]
"""The products of an answer from rank 1; ``None`` where a product is named a second time."""


class Answered(Protocol):
    """An assistant's answer, as far as counting it needs it."""

    @property
    def model(self) -> str:
        """The assistant that gave it."""

    @property
    def question(self) -> str:
        """The wording that it answers."""

    @property
    def polled_at(self) -> str:
        """Its time of history."""


A = TypeVar("A", bound=Answered)


# Answers and entries are many and form no cycles, so the collector is spared them.
class ResolvedAnswer(Struct, frozen=True, gc=False):
    """A model's answer with its names resolved: ``products`` are those of the poll's ranking.

    ``question`` is the wording that it answers, equivalent ones being one.
    """

    model: str
    question: str
    poll: Poll
    products: tuple[ProductId, ...]
    missed: tuple[ProductId, ...]

    @classmethod
    def of(
        cls, poll: Poll, category: Category, resolved: Mapping[Spelling, ProductId]
    ) -> ResolvedAnswer:
        """A successful poll's answer."""
        products = [resolved[pick.product, pick.domain] for pick in poll.ranking]
        missed = [resolved[miss.product, None] for miss in poll.missed]
        question = category.wording(poll.question)
        return cls(poll.model, question, poll, tuple(products), tuple(missed))

    @property
    def polled_at(self) -> str:
        """Its time of history."""
        return self.poll.polled_at

    @property
    def first(self) -> ProductId:
        """The product that the model ranks #1."""
        return self.products[0]


class CountedAnswer(Struct, frozen=True, gc=False):
    """An answer that counts towards the ranking; stale when it lags far behind the newest.

    ``picks`` are by product, best first; a product named twice keeps its better rank.
    """

    model: str
    answered: ResolvedAnswer
    picks: Mapping[ProductId, Pick]
    stale: bool

    @classmethod
    def of(cls, answered: ResolvedAnswer, *, stale: bool = False) -> CountedAnswer:
        """An answer, counted."""
        picks: dict[ProductId, Pick] = {}
        for product, pick in zip(answered.products, answered.poll.ranking, strict=True):
            picks.setdefault(product, pick)
        return cls(answered.model, answered, picks, stale)


class Entry(Struct, frozen=True, gc=False):
    """One entry of a merged ranking; ``reason`` is uncut, from a model that ranks it highest."""

    rank: int
    product: ProductId
    score: int
    appearances: int
    model_ranks: Mapping[str, int]
    tied: bool
    reason: str | None

    @property
    def merit(self) -> tuple[int, ...]:
        """What orders entries, see :func:`merit`; entries of equal merit are truly tied."""
        return merit(self.model_ranks.values())


def days_before(time: str, days: int) -> str:
    """The time ``days`` days before another, as history writes it; such times compare as text."""
    return rfc3339(dt.datetime.fromisoformat(time) - dt.timedelta(days))


def newest_of(answers: Iterable[A], latest: Mapping[str, A]) -> str:
    """Return the time of the newest of some answers; ``latest`` is in order of appending."""
    order = list(latest)
    return max(answers, key=lambda answer: order.index(answer.model)).polled_at


def select(
    latest: Mapping[str, A], models: Sequence[str], stale_after: int, drop_after: int
) -> tuple[tuple[A, bool], ...]:
    """Return the answers that count, in the configured order, and whether each is stale.

    ``latest`` holds each model's latest successful answer, the newest last. Ages, in days, are
    measured from the newest of them, so that a category nobody polls any more keeps its ranking.
    """
    present = [latest[model] for model in models if model in latest]
    if not present:
        return ()
    newest = newest_of(present, latest)
    fresh_since, counted_since = days_before(newest, stale_after), days_before(newest, drop_after)
    return tuple(
        [
            (answer, answer.polled_at < fresh_since)
            for answer in present
            if answer.polled_at >= counted_since
        ]
    )


def count(answers: Iterable[tuple[ResolvedAnswer, bool]]) -> tuple[CountedAnswer, ...]:
    """Return answers that count, with their picks by product."""
    return tuple([CountedAnswer.of(answer, stale=stale) for answer, stale in answers])


def first_of(answers: Iterable[Places], slugs: Mapping[ProductId, str]) -> tuple[ProductId, bool]:
    """Return the #1 of the merged ranking of some answers, and whether it is truly tied."""
    ranks: dict[ProductId, list[int]] = {}
    for places in answers:
        for rank, product in enumerate(places, start=1):
            if product:
                ranks.setdefault(product, []).append(rank)
    points = {product: (PLACES + 1) * len(own) - sum(own) for product, own in ranks.items()}
    most = max(points.values())
    merits = {
        product: merit(ranks[product]) for product, number in points.items() if number == most
    }
    first = min(merits, key=lambda product: (*merits[product], slugs[product]))
    return first, list(merits.values()).count(merits[first]) > 1


def merge(counted: Sequence[CountedAnswer], slugs: Mapping[ProductId, str]) -> tuple[Entry, ...]:
    """The merged ranking, best first; ``slugs`` break ties that nothing else breaks."""
    picks: dict[ProductId, dict[str, Pick]] = {}
    for answer in counted:
        for product, pick in answer.picks.items():
            picks.setdefault(product, {})[answer.model] = pick
    merits = {product: merit([p.rank for p in named.values()]) for product, named in picks.items()}
    order = sorted(picks, key=lambda product: (*merits[product], slugs[product]))
    shared = [merits[product] for product in order]
    entries = [
        Entry(
            rank=place,
            product=product,
            score=-merits[product][0],
            appearances=len(picks[product]),
            model_ranks={model: pick.rank for model, pick in picks[product].items()},
            tied=shared.count(merits[product]) > 1,
            reason=_argument(list(picks[product].values())),
        )
        for place, product in enumerate(order, start=1)
    ]
    return tuple(entries)


def merit(ranks: Iterable[int]) -> tuple[int, ...]:
    """Return what orders products by the ranks they have, smallest first.

    Score, appearances, then #1s, #2s … #5s, each negative. That of several answers is the sum of
    theirs, part by part.
    """
    listed = list(ranks)
    score = (PLACES + 1) * len(listed) - sum(listed)
    return (-score, -len(listed), *[-listed.count(place) for place in range(1, PLACES + 1)])


def leaders(entries: Sequence[Entry]) -> list[ProductId]:
    """Return the #1 of a merged ranking, and whatever is truly tied with it."""
    leader = entries[0]
    level = [entry for entry in entries if entry.merit == leader.merit] if leader.tied else [leader]
    return [entry.product for entry in level]


def _argument(picks: Sequence[Pick]) -> str | None:
    """The reason given by the first of the models that rank a product highest and give one."""
    best = min([pick.rank for pick in picks])
    reasons = [pick.reason for pick in picks if pick.rank == best and pick.reason]
    return reasons[0] if reasons else None
