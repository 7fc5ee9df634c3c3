"""Wordings: which question of a category its ranking answers (store/README.md, Questions).

Answers to different wordings are never merged. Two wordings are one where the category's file says
that they mean the same; :meth:`store.records.Category.wording` has then made them one already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from store.rankings import merging
from store.rankings.windows import Window, Windows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from store.records import Site

TAKEOVER_DAYS = 7
"""Days after which a new wording takes over regardless: the default of ``poll_every_days``."""


class Wording(Struct, frozen=True):
    """The answers to one wording: each model's latest, the newest of all last.

    ``windows`` are the models' last answers to it, ``first_at`` is the time of the first ever.
    """

    question: str
    latest: Mapping[str, merging.ResolvedAnswer]
    windows: Mapping[str, Window]
    first_at: str


class CurrentWording(Struct, frozen=True):
    """The wording that a ranking rests on, with the answers to it that count, and their windows.

    ``newest`` is the time of the newest answer counted.
    """

    question: str
    counted: tuple[merging.CountedAnswer, ...]
    newest: str
    windows: Mapping[str, Window]


class Wordings:
    """Collects a category's answers by wording, oldest first; ``current`` is its file's wording."""

    def __init__(self, current: str, answers: Iterable[merging.ResolvedAnswer] = ()) -> None:
        self._current = current
        self._latest: dict[str, dict[str, merging.ResolvedAnswer]] = {}
        self._first_at: dict[str, str] = {}
        self._windows = Windows()
        for answered in answers:
            self.add(answered)

    def add(self, answered: merging.ResolvedAnswer) -> None:
        """Take in the next answer."""
        question, model = answered.question, answered.model
        self._first_at.setdefault(question, answered.poll.polled_at)
        latest = self._latest.pop(question, {})
        latest.pop(model, None)
        latest[model] = answered
        self._latest[question] = latest
        self._windows.add(answered)

    def all(self) -> tuple[Wording, ...]:
        """Every wording that was answered: the file's, then the others by their newest answer."""
        others = [question for question in reversed(self._latest) if question != self._current]
        order = [self._current, *others] if self._current in self._latest else others
        return tuple(map(self._wording, order))

    def _wording(self, question: str) -> Wording:
        latest = self._latest[question]
        windows = {model: self._windows.of(question, model) for model in latest}
        return Wording(question, latest, windows, self._first_at[question])


def standing(
    wordings: Sequence[Wording], newest: str | None, models: Sequence[str], site: Site
) -> CurrentWording | None:
    """The wording that a ranking rests on; ``None`` where no configured model answered any.

    An older one stands until every model counted for it has answered the next, or until
    ``newest``, the time of the category's newest answer, is seven days after the first answer to
    the next.
    """
    stands: CurrentWording | None = None
    for wording in reversed(wordings):
        counted = merging.count(wording.latest, models, site.stale_after_days, site.drop_after_days)
        if counted and (stands is None or _takes_over(wording, stands, newest)):
            stands = _current(wording, counted, site.drop_after_days)
    return stands


def _current(
    wording: Wording, counted: tuple[merging.CountedAnswer, ...], drop_after: int
) -> CurrentWording:
    newest = merging.newest_of([answer.answered for answer in counted], wording.latest)
    since = merging.days_before(newest, drop_after)
    windows = {answer.model: wording.windows[answer.model].since(since) for answer in counted}
    return CurrentWording(wording.question, counted, newest, windows)


def _takes_over(wording: Wording, stands: CurrentWording, newest: str | None) -> bool:
    if all(answer.model in wording.latest for answer in stands.counted):
        return True
    return newest is not None and wording.first_at <= merging.days_before(newest, TAKEOVER_DAYS)
