"""Differences between two days of a category: places, first choices, and what else happened.

Like is compared with like: the same assistants, asked the same question in the same way.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import Literal

from msgspec import Struct

from store.rankings import sentences
from store.rankings.leaderboards import Leaderboard
from store.rankings.merging import RunKey, best_ranks
from store.rankings.names import ProductId
from store.rankings.products import ProductProfile
from store.rankings.runs import VersionChange
from store.rankings.sentences import listed
from store.web import as_of
from store.web.pages.answer_box import level_in_words
from store.web.view import View

Obstacle = Literal["question", "assistants", "instrument"]
"""An obstacle to comparing two rankings: what was asked, who answered, how it was asked."""

FIRST: Mapping[Obstacle, str] = {
    "question": "The first ranking for this question",
    "assistants": "The first ranking of these assistants",
    "instrument": "The first ranking since the way of asking changed",
}
"""The name of a ranking that cannot be compared with the one before."""


class Shift(Struct, frozen=True):
    """A product's place and points on each of two days; ``None`` where it was not ranked."""

    product: ProductProfile
    before: int | None
    after: int | None
    points_before: int | None
    points_after: int | None

    @property
    def move(self) -> int | None:
        """The places it rose, or fell, below 0; ``None`` if it is new or dropped out."""
        return None if self.before is None or self.after is None else self.before - self.after


class FirstChoice(Struct, frozen=True):
    """An assistant's #1 on each of two days, if it counts, and its ``reason`` for the later.

    ``is_new`` if it answered between them; ``comparable`` if both answer the same question, asked
    in the same way; ``support`` says how firm a changed choice is.
    """

    model: str
    is_new: bool
    comparable: bool
    before: ProductProfile | None
    after: ProductProfile | None
    reason: str | None
    support: str

    @property
    def changed(self) -> bool:
        """True if it ranks a different product first than before."""
        both = self.before and self.after and self.comparable
        return bool(both and self.before != self.after)


class Differences(Struct, frozen=True):
    """Two days of a category; ``obstacle`` is what keeps their places from being compared.

    ``leader`` says in a sentence who leads, ``levels`` how sure that was and is, in words, if that
    differs, and ``unchanged`` pairs assistants with the product that they still put first; those
    that are ``silent`` brought no new answer. ``events`` are dated sentences of all days up to the
    later, newest first.
    """

    start: str
    end: str
    before: Leaderboard
    after: Leaderboard
    obstacle: Obstacle | None
    leader: str
    levels: tuple[str, str] | None
    shifts: list[Shift]
    choices: list[FirstChoice]
    unchanged: list[tuple[str, str]]
    silent: str
    events: list[tuple[str, str]]


def between(
    view: View, board: Leaderboard, start: str | None = None, end: str | None = None
) -> Differences | None:
    """Return what differs between the ends of two UTC days; ``board`` is the later ranking.

    Days not given are the last two that brought answers; ``None`` where only one did.

    Raises:
        HistoryError: the history cannot be read just now.
    """
    # A day on which only a retired assistant answered is none of this ranking.
    configured = (*board.models, *board.missing)
    days = sorted({a.polled_at[:10] for a in board.log if a.model in configured})
    if start is None:
        start = days[-2] if len(days) > 1 else ""
    before = as_of.leaderboard(view.snapshot, board.slug, start, view.lines) if start else None
    if before is None:
        return None
    obstacle = _obstacle(before, board)
    choices = list(_first_choices(before, board, view))
    levels = level_in_words(before)[0], level_in_words(board)[0]
    unchanged: dict[ProductId, list[str]] = {}
    for choice in choices:
        if choice.is_new and choice.comparable and choice.after and choice.before == choice.after:
            unchanged.setdefault(choice.after.id, []).append(choice.model)
    return Differences(
        start=start,
        end=end or days[-1],
        before=before,
        after=board,
        obstacle=obstacle,
        leader=_leader(before, board, obstacle, view),
        levels=None if obstacle or levels[0] == levels[1] else levels,
        shifts=_shifts(before, board, view),
        choices=choices,
        unchanged=[(listed(models), view.name(id_)) for id_, models in unchanged.items()],
        silent=listed([choice.model for choice in choices if choice.after and not choice.is_new]),
        events=sorted(_events(board, view), key=itemgetter(0), reverse=True),
    )


def _obstacle(before: Leaderboard, after: Leaderboard) -> Obstacle | None:
    """Return what keeps the places of two rankings from being compared."""
    old, new = _instruments(before), _instruments(after)
    if before.question != after.question:
        return "question"
    # Places of three assistants and of four are sums of different things.
    if old.keys() != new.keys():
        return "assistants"
    return None if old == new else "instrument"


def _instruments(board: Leaderboard) -> dict[str, str | None]:
    return {answer.model: answer.answered.poll.instrument or None for answer in board.counted}


def _shifts(before: Leaderboard, after: Leaderboard, view: View) -> list[Shift]:
    """Return every product ranked on either day: by its later rank, then those that dropped out."""
    old, new = ({e.product: e.score for e in board.entries} for board in (before, after))
    ranks = best_ranks(before.entries), best_ranks(after.entries)
    return [
        Shift(
            product=view.snapshot.products[id_],
            before=ranks[0].get(id_),
            after=ranks[1].get(id_),
            points_before=old.get(id_),
            points_after=new.get(id_),
        )
        for id_ in (*new, *(id_ for id_ in old if id_ not in new))
    ]


def _first_choices(before: Leaderboard, after: Leaderboard, view: View) -> Iterator[FirstChoice]:
    """Yield the choice of every configured assistant that counts on either day."""
    products = view.snapshot.products
    old, new = ({a.model: a.answered for a in board.counted} for board in (before, after))
    instruments = _instruments(before), _instruments(after)
    for model in view.snapshot.models:
        first, now = old.get(model), new.get(model)
        is_same = before.question == after.question and (
            instruments[0].get(model) == instruments[1].get(model)
        )
        if first or now:
            yield FirstChoice(
                model=model,
                is_new=first is None or now is None or first.poll.id != now.poll.id,
                comparable=is_same,
                before=products[first.first] if first else None,
                after=products[now.first] if now else None,
                reason=now.poll.reason if now else None,
                support=_support(after, model, products[now.first], products[first.first])
                if first and now
                else "",
            )


def _support(board: Leaderboard, model: str, now: ProductProfile, before: ProductProfile) -> str:
    """Return how firm a choice is over the last answers of an assistant."""
    firsts = Counter(answer.places[0] for answer in board.windows[model])
    of = firsts.total()
    if firsts[before.id] > firsts[now.id]:
        return (
            f"It still said {before.name} in {firsts[before.id]} of its last {of} answers, so this "
            "may be chance."
        )
    if of == 1:
        return "It has answered only once since."
    return f"{now.name} came first in {firsts[now.id]} of its last {of} answers."


def _leader(before: Leaderboard, after: Leaderboard, obstacle: Obstacle | None, view: View) -> str:
    """Return whether another product leads the merged ranking than before."""
    names = listed([view.name(product) for product in after.firsts])
    verb = "leads" if len(after.firsts) == 1 else "lead"
    if obstacle:
        return f"{FIRST[obstacle]}: {names} {verb}."
    if set(before.firsts) == set(after.firsts):
        return f"{names} still {verb}."
    return f"{names} now {verb}; before, {listed([view.name(id_) for id_ in before.firsts])} did."


def _events(board: Leaderboard, view: View) -> Iterator[tuple[str, str]]:
    """Yield what happened beyond noise: another version, another way of asking, another leader."""
    keys: dict[str, RunKey] = {}
    renewed: dict[tuple[str, bool], list[str]] = {}
    for answer in board.log:
        model, date, key = answer.model, answer.polled_at[:10], answer.key
        before = keys.get(model, key)
        keys[model] = key
        # The log holds equal keys once, so identity tells that nothing changed.
        if before is key or model not in view.snapshot.models:
            continue
        if version := VersionChange.of(model, before.version, key.version):
            yield date, sentences.version_change(version)
        if before.instrument != key.instrument:
            renewed.setdefault((date, before.instrument is not None), []).append(model)
    # A new prompt reaches all assistants on one day: one sentence for all of them.
    for (date, is_known), models in renewed.items():
        yield date, sentences.asked_anew(models, is_known=is_known)
    for day in board.leader_changes:
        if day.leader:
            yield day.date, sentences.leader_change(day.leader, view.name)
