"""Changes: when a model's #1 for a category became another product.

Works on products, not spellings, so that a renamed or merged product is no change; one sequence
is one model's answers to one wording, asked with one instrument. Of the answers that it gave on one
UTC day only the newest counts, so that asking twice confirms nothing; it is told by the first of
those in a row that agree with it, which has the id of a change for ever.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter

from msgspec import Struct

from store.rankings.merging import ResolvedAnswer
from store.rankings.names import ProductId
from store.rankings.runs import VersionChange

Reign = list[ResolvedAnswer]
"""One model's answers in a row with the same #1, one a day."""


class Change(Struct, frozen=True):
    """A change of one model's #1; ``poll`` is the id of the poll that brought it.

    Times are those of history. ``confirmed`` when the model's next answer agreed and the last
    confirmed #1 was another. ``version`` is the change of its served version between the two
    answers, if it had one.
    """

    poll: str
    slug: str
    model: str
    previous: ProductId
    current: ProductId
    reason: str | None
    previous_at: str
    current_at: str
    confirmed: bool
    version: VersionChange | None


class Streak(Struct, frozen=True, gc=False):
    """The length of a reign in ``polls``, one a day; ``over`` if another #1 came after it.

    ``end`` is the time of its last day's answer.
    """

    end: str
    polls: int
    over: bool

    @property
    def followed(self) -> int:
        """The number of known answers after the first: of the same #1, and the one that ends it."""
        return self.polls - 1 + self.over


def reigns_of(answers: Iterable[ResolvedAnswer]) -> list[list[Reign]]:
    """Return the reigns of each model, by wording and instrument, oldest first."""
    daily: dict[tuple[str, str, str | None], dict[str, ResolvedAnswer]] = {}
    for answered in answers:
        key = answered.model, answered.question, answered.key.instrument
        day = answered.polled_at[:10]
        of_one = daily.setdefault(key, {})
        earlier = of_one.pop(day, answered)  # so that the newest of a day comes last
        is_repeat = (earlier.first, earlier.key) == (answered.first, answered.key)
        of_one[day] = earlier if is_repeat else answered  # the id of a change stays
    return [
        [list(reign) for _, reign in itertools.groupby(of_one.values(), attrgetter("first"))]
        for of_one in daily.values()
    ]


def changes(slug: str, sequences: Iterable[Sequence[Reign]]) -> tuple[Change, ...]:
    """Return every change in a category's successful answers, in the order in which they came."""
    unsorted = [change for reigns in sequences for change in _changes_in(slug, reigns)]
    return tuple(sorted(unsorted, key=lambda change: (change.current_at, change.model)))


def streaks(sequences: Iterable[Sequence[Reign]]) -> tuple[Streak, ...]:
    """Return how long each #1 of each model held."""
    return tuple(
        Streak(end=reign[-1].polled_at, polls=len(reign), over=reign is not reigns[-1])
        for reigns in sequences
        for reign in reigns
    )


def _changes_in(slug: str, reigns: Sequence[Reign]) -> Iterator[Change]:
    """Yield the changes between reigns.

    The first answer is the first confirmed pick; a reign of two or more confirms its pick if that
    is not the last confirmed one.
    """
    # What it said first is known well enough to return to.
    confirmed = reigns[0][0].first
    for before, reign in itertools.pairwise(reigns):
        lasting = len(reign) > 1 and reign[0].first != confirmed
        if lasting:
            confirmed = reign[0].first
        poll = reign[0].poll
        yield Change(
            poll=poll.id,
            slug=slug,
            model=poll.model,
            previous=before[-1].first,
            current=reign[0].first,
            reason=poll.reason,
            previous_at=before[-1].polled_at,
            current_at=poll.polled_at,
            confirmed=lasting,
            version=VersionChange.of(poll.model, before[-1].poll.served_model, poll.served_model),
        )
