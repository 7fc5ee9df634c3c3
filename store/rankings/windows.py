"""Windows: each assistant's last answers that can be compared (store/README.md, Certainty).

A window is a run of one assistant's successful answers to one wording by one served version: a new
version or another wording starts it anew.
"""

from __future__ import annotations

from collections import deque
from fractions import Fraction
from typing import TYPE_CHECKING

from msgspec import Struct

from store.rankings.merging import PLACES

if TYPE_CHECKING:
    from store.rankings.merging import ResolvedAnswer
    from store.rankings.names import ProductId

MAX_ANSWERS = 5
"""Answers of one assistant that are compared: at one a week their window spans a month, and
five of each find the product that is truly first in 92 of 100 simulated categories of low noise."""

Places = tuple["ProductId | None", ...]
"""The products of an answer from rank 1; ``None`` where a product is named a second time."""


class WindowedAnswer(Struct, frozen=True, gc=False):
    """One answer as certainty needs it; ``polled_at`` is the time of history."""

    polled_at: str
    places: Places


class VersionChange(Struct, frozen=True):
    """What a provider says that it served before and since; both are told."""

    model: str
    before: str
    after: str

    @classmethod
    def of(cls, model: str, before: str | None, after: str | None) -> VersionChange | None:
        """The change, if both versions are known and differ."""
        return cls(model, before, after) if before and after and before != after else None

    @classmethod
    def between(cls, old: ResolvedAnswer, new: ResolvedAnswer) -> VersionChange | None:
        """The change between two answers of one assistant, if there is one."""
        return cls.of(new.model, old.poll.served_model, new.poll.served_model)


class Window(Struct, frozen=True, gc=False):
    """One assistant's comparable answers, newest first, all by one served ``version``.

    ``renewed`` says that the assistant had answered before: a known change of its version is
    ``began``; else another wording, a version that is not told, or age keeps those answers out.
    """

    answers: tuple[WindowedAnswer, ...]
    version: str | None
    began: VersionChange | None
    renewed: bool

    def mean_points(self, product: ProductId) -> Fraction:
        """The mean points of a product in these answers; none where it is not named."""
        ranks = [a.places.index(product) for a in self.answers if product in a.places]
        return Fraction(sum(PLACES - at for at in ranks), len(self.answers))

    def since(self, time: str) -> Window:
        """The window without the answers from before a time of history."""
        recent = tuple([answer for answer in self.answers if answer.polled_at >= time])
        whole = len(recent) == len(self.answers)
        return self if whole else Window(recent, self.version, None, renewed=True)


class Windows:
    """Collects windows, by wording and assistant, from answers in order of appending."""

    def __init__(self) -> None:
        self._newest: dict[str, ResolvedAnswer] = {}
        self._runs: dict[tuple[str, str], tuple[deque[ResolvedAnswer], ResolvedAnswer | None]] = {}

    def add(self, answered: ResolvedAnswer) -> None:
        """Take in the next answer."""
        before = self._newest.get(answered.model)
        self._newest[answered.model] = answered
        key = answered.question, answered.model
        if before is None or _version(before) != _version(answered):
            self._runs[key] = deque(maxlen=MAX_ANSWERS), before
        self._runs[key][0].append(answered)

    def of(self, question: str, model: str) -> Window:
        """The window that ends with an assistant's newest answer to a wording."""
        run, before = self._runs[question, model]
        answers = [WindowedAnswer(a.poll.polled_at, places(a)) for a in reversed(run)]
        return Window(
            answers=tuple(answers),
            version=run[-1].poll.served_model,
            began=VersionChange.between(before, run[0]) if before else None,
            renewed=before is not None,
        )


def places(answered: ResolvedAnswer) -> Places:
    """Where an answer puts each product; one named twice keeps its better rank."""
    found: list[ProductId | None] = [None] * PLACES
    for product, pick in zip(answered.products, answered.poll.ranking, strict=True):
        if product not in found:
            found[pick.rank - 1] = product
    return tuple(found)


def _version(answered: ResolvedAnswer) -> tuple[str, str | None]:
    return answered.question, answered.poll.served_model
