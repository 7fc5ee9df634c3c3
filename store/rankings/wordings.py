"""Wordings: which question of a category its ranking answers (store/README.md, Questions).

Answers to different wordings are never merged. Two wordings are one where the category's file says
that they mean the same; :meth:`store.records.Category.wording` has then made them one already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic

from msgspec import Struct

from store.rankings.merging import A, days_before, newest_of, select

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from store.records import Site

TAKEOVER_DAYS = 7
"""Days after which a new wording takes over regardless: the default of ``poll_every_days``."""


class Wording(Struct, Generic[A], frozen=True):
    """The answers to one wording: each model's latest, the newest of all last.

    ``first_at`` is the time of the first ever.
    """

    question: str
    latest: Mapping[str, A]
    first_at: str


class CurrentWording(Struct, Generic[A], frozen=True):
    """The wording that a ranking rests on, with the answers to it that count.

    ``answers`` stand with whether each is stale; ``newest`` is the time of the newest.
    """

    question: str
    answers: tuple[tuple[A, bool], ...]
    newest: str


class Wordings(Generic[A]):
    """Collects a category's answers by wording, oldest first; ``current`` is its file's wording."""

    def __init__(self, current: str, answers: Iterable[A] = ()) -> None:
        self._current = current
        self._latest: dict[str, dict[str, A]] = {}
        self._first_at: dict[str, str] = {}
        for answer in answers:
            self.add(answer)

    def add(self, answer: A) -> None:
        """Take in the next answer."""
        question, model = answer.question, answer.model
        self._first_at.setdefault(question, answer.polled_at)
        latest = self._latest.pop(question, {})
        latest.pop(model, None)
        latest[model] = answer
        self._latest[question] = latest

    def all(self) -> tuple[Wording[A], ...]:
        """Return every wording that was answered: the file's, then others by newest answer."""
        others = [question for question in reversed(self._latest) if question != self._current]
        order = [self._current, *others] if self._current in self._latest else others
        return tuple([Wording(q, self._latest[q], self._first_at[q]) for q in order])


def standing(
    wordings: Sequence[Wording[A]], newest: str | None, models: Sequence[str], site: Site
) -> CurrentWording[A] | None:
    """Return the wording that a ranking rests on; ``None`` where no configured model answered any.

    An older one stands until every model counted for it has answered the next, or until
    ``newest``, the time of the category's newest answer, is seven days after the first answer to
    the next.
    """
    stands: CurrentWording[A] | None = None
    for wording in reversed(wordings):
        answers = select(wording.latest, models, site.stale_after_days, site.drop_after_days)
        if answers and (stands is None or _takes_over(wording, stands, newest)):
            last = newest_of([answer for answer, _ in answers], wording.latest)
            stands = CurrentWording(wording.question, answers, last)
    return stands


def _takes_over(wording: Wording[A], stands: CurrentWording[A], newest: str | None) -> bool:
    if all(answer.model in wording.latest for answer, _ in stands.answers):
        return True
    return newest is not None and wording.first_at <= days_before(newest, TAKEOVER_DAYS)
