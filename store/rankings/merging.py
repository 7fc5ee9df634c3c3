"""Merging: the answers that count in, one ranking out (store/README.md, Ranking and Questions).

Rank 1 is worth 5 points, rank 5 one; points are summed over models and never rescaled. Answers to
different wordings are never merged. Two wordings are one where the category's file says that they
mean the same; :meth:`store.records.Category.wording` has then made them one already.
"""

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from typing import Generic, Self, TypeVar

from msgspec import Struct

from store.rankings.names import ProductId, Spelling
from store.records import MOST_PICKS, Category, Pick, Poll, Site
from store.text import rfc3339

PLACES = MOST_PICKS
"""Ranks of an answer that count: all that it may have."""

TAKEOVER_DAYS = 7
"""Days after which a new wording takes over regardless: the default of ``poll_every_days``."""

ProductsByRank = tuple["ProductId | None", ...]
"""The products at ranks 1 to 5; ``None`` where the list ends, or names a product once more."""


def points(rank: int) -> int:
    """Return the points of a rank: 5 for the first, one for the fifth."""
    return PLACES + 1 - rank


class RunKey(Struct, frozen=True):
    """The things that all answers of a run have in common; ``None`` equals ``None``.

    ``question`` is the wording that they answer, equivalent ones being one.
    """

    model: str
    question: str
    instrument: str | None
    version: str | None


# Answers and entries are many and form no cycles, so the collector is spared them.
class LoggedAnswer(Struct, frozen=True, gc=False):
    """One answer as a log has it; ``polled_at`` is the time of history."""

    key: RunKey
    polled_at: str
    places: ProductsByRank

    @property
    def model(self) -> str:
        """The assistant that gave it."""
        return self.key.model

    @property
    def question(self) -> str:
        """The wording that it answers."""
        return self.key.question


class ResolvedAnswer(LoggedAnswer, frozen=True, gc=False):
    """An answer with its texts; ``products`` has one for each pick of the poll, repeats too."""

    poll: Poll
    products: tuple[ProductId, ...]
    missed: tuple[ProductId, ...]

    @classmethod
    def of(cls, poll: Poll, category: Category, resolved: Mapping[Spelling, ProductId]) -> Self:
        """Return a successful poll's answer."""
        question, instrument = category.wording(poll.question), poll.instrument or None
        products = [resolved[pick.product, pick.domain] for pick in poll.ranking]
        places: list[ProductId | None] = [None] * PLACES
        for product, pick in zip(products, poll.ranking, strict=True):
            if product not in places:  # one named twice keeps its better rank
                places[pick.rank - 1] = product
        return cls(
            RunKey(poll.model, question, instrument, poll.served_model),
            poll.polled_at,
            tuple(places),
            poll,
            tuple(products),
            tuple([resolved[miss.product, None] for miss in poll.missed]),
        )

    @property
    def first(self) -> ProductId:
        """The product that the model ranks #1; its poll's ``reason`` and ``caveat`` are of it."""
        return self.products[0]

    @property
    def picks(self) -> dict[ProductId, Pick]:
        """Its picks by product, best first; a product named twice keeps its better rank."""
        picks: dict[ProductId, Pick] = {}
        for product, pick in zip(self.products, self.poll.ranking, strict=True):
            picks.setdefault(product, pick)
        return picks


A = TypeVar("A", bound=LoggedAnswer)
"""An answer, with its texts or as a log has it."""


class Counted(Struct, Generic[A], frozen=True, gc=False):
    """An answer that counts towards the ranking.

    It is ``stale`` if it is over ``stale_after_days`` older than the newest that counts.
    """

    answer: A
    stale: bool

    @property
    def model(self) -> str:
        """The assistant that gave it."""
        return self.answer.model


CountedAnswer = Counted[ResolvedAnswer]


class Entry(Struct, frozen=True, gc=False):
    """One entry of a merged ranking.

    ``rank`` counts 1, 2, 3 …; ``place`` is the same for all that are tied: 1, 2, 2, 4.

    ``reason`` is uncut, from ``speaker``: the first of the models that rank the product highest and
    give a reason. Both are ``None`` where none of them does.
    """

    rank: int
    place: int
    product: ProductId
    score: int
    appearances: int
    model_ranks: Mapping[str, int]
    tied: bool
    reason: str | None
    speaker: str | None


class EligibleWording(Struct, Generic[A], frozen=True):
    """A wording that a ranking may rest on, with the answers to it that count.

    ``newest`` is the time of the newest of them.
    """

    question: str
    answers: tuple[Counted[A], ...]
    newest: str


class Wordings(Struct, Generic[A]):
    """A category's answers by wording, added oldest first; ``current`` is its file's wording.

    ``latest`` has by wording each model's latest answer, the newest of all last; ``first_at`` has
    the time of the first. ``newest`` is the time of the newest answer to any, empty without one.
    """

    current: str
    latest: dict[str, dict[str, A]] = {}
    first_at: dict[str, str] = {}
    newest: str = ""

    def add(self, answer: A) -> None:
        """Take in the next answer."""
        question, model = answer.question, answer.model
        self.newest = answer.polled_at
        self.first_at.setdefault(question, answer.polled_at)
        latest = self.latest.pop(question, {})  # put back last: the order says what is newest
        latest.pop(model, None)
        latest[model] = answer
        self.latest[question] = latest

    def standing(self, models: Sequence[str], site: Site) -> EligibleWording[A] | None:
        """Return the wording that a ranking rests on; ``None`` if no configured model answered any.

        An older one stands until every model counted for it has answered the newer one, or until
        the category's newest answer is seven days after the newer one's first.
        """
        standing: EligibleWording[A] | None = None
        # Oldest first, the file's last: each takes over from the one before, if it may.
        for question in sorted(self.latest, key=self.current.__eq__):
            candidate = eligible_wording(question, self.latest[question], models, site)
            if candidate and (standing is None or self._takes_over(question, standing)):
                standing = candidate
        return standing

    def _takes_over(self, question: str, standing: EligibleWording[A]) -> bool:
        if all(answer.model in self.latest[question] for answer in standing.answers):
            return True
        return self.first_at[question] <= _days_before(self.newest, TAKEOVER_DAYS)


def eligible_wording(
    question: str, latest: Mapping[str, A], models: Sequence[str], site: Site
) -> EligibleWording[A] | None:
    """Return a wording with those of the ``latest`` answers to it that count; ``None`` without any.

    They are those of configured models that are not too old, in the configured order. Ages
    are measured from the newest of them, so that a category nobody polls any more keeps its
    ranking.
    """
    present = [answer for model, answer in latest.items() if model in models]
    if not present:
        return None
    newest = present[-1].polled_at  # appended last, whatever time another bears
    fresh_since = _days_before(newest, site.stale_after_days)
    counted_since = _days_before(newest, site.drop_after_days)
    answers = [
        Counted(answer, answer.polled_at < fresh_since)
        for answer in sorted(present, key=lambda answer: models.index(answer.model))
        if answer.polled_at >= counted_since
    ]
    return EligibleWording(question, tuple(answers), newest)


def _days_before(time: str, days: int) -> str:
    """Return the time some days before another, as history writes it; these compare as text."""
    return rfc3339(dt.datetime.fromisoformat(time) - dt.timedelta(days))


def merged_winners(
    answers: Iterable[ProductsByRank], slugs: Mapping[ProductId, str]
) -> tuple[ProductId, ...]:
    """Return the #1 of the merged ranking of some answers, and what is truly tied with it.

    They are those of :func:`merge`, for every day of a history.
    """
    ranks: dict[ProductId, list[int]] = {}
    for answer in answers:
        for rank, product in enumerate(answer, start=1):
            if product:
                ranks.setdefault(product, []).append(rank)
    totals = {product: sum(map(points, own)) for product, own in ranks.items()}
    most = max(totals.values())  # only whoever has them can be first, and merits are costly
    merits = {product: merit(ranks[product]) for product, total in totals.items() if total == most}
    best = min(merits.values())
    return tuple(sorted((p for p, own in merits.items() if own == best), key=slugs.__getitem__))


def merge(counted: Sequence[CountedAnswer], slugs: Mapping[ProductId, str]) -> tuple[Entry, ...]:
    """Return the merged ranking, best first; ``slugs`` break ties that nothing else breaks."""
    picks: dict[ProductId, dict[str, Pick]] = {}
    for answer in counted:
        for product, pick in answer.answer.picks.items():
            # By model in the configured order, which so decides whose reason is told.
            picks.setdefault(product, {})[answer.model] = pick
    merits = {product: merit([p.rank for p in own.values()]) for product, own in picks.items()}
    order = sorted(picks, key=lambda product: (*merits[product], slugs[product]))
    shared = [merits[product] for product in order]
    entries = []
    for rank, product in enumerate(order, start=1):
        speaker, reason = _best_reason(picks[product])
        entry = Entry(
            rank=rank,
            place=1 + shared.index(merits[product]),
            product=product,
            score=-merits[product][0],
            appearances=len(picks[product]),
            model_ranks={model: pick.rank for model, pick in picks[product].items()},
            tied=shared.count(merits[product]) > 1,
            reason=reason,
            speaker=speaker,
        )
        entries.append(entry)
    return tuple(entries)


def merit(ranks: Iterable[int]) -> tuple[int, ...]:
    """Return what orders products by the ranks they have, smallest first.

    Score, appearances, then #1s, #2s … #5s, each negative; products of equal merit are truly tied.
    Merits of several answers add up element by element.
    """
    # Of one product alone: what has to know the others belongs in `merge` and `merged_winners`.
    listed = list(ranks)
    score = sum(map(points, listed))
    return (-score, -len(listed), *[-listed.count(place) for place in range(1, PLACES + 1)])


def _best_reason(picks: Mapping[str, Pick]) -> tuple[str, str] | tuple[None, None]:
    """Return the first of the models that rank a product highest and give a reason, and that."""
    best = min([pick.rank for pick in picks.values()])
    for model, pick in picks.items():
        if pick.rank == best and pick.reason:
            return model, pick.reason
    return None, None
