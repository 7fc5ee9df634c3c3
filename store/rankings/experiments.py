"""The service's own experiments, computed from the history whenever it changes.

Each finding quotes its figures with their n, and each method says how they were computed. An
experiment without enough data is left out.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from statistics import fmean, median
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from store.rankings.aggregates import CategoryAggregate
    from store.rankings.leaderboards import Leaderboard

MIN_BOARDS = 5
"""Categories under which a share would mislead, so that no experiment is shown; a judgement."""

PACK = 3
"""Answers of a category from which one can stand alone against a majority."""


class Experiment(Struct, frozen=True):
    """A question put to the data; ``date`` is that of the newest poll it rests on, YYYY-MM-DD."""

    slug: str
    title: str
    method: str
    finding: str
    date: str


def compute(
    leaderboards: Sequence[Leaderboard], aggregates: Sequence[CategoryAggregate]
) -> tuple[Experiment, ...]:
    """Every experiment that the data at hand can answer."""
    shared = [board for board in leaderboards if board.agreement]
    packs = [board for board in leaderboards if len(board.counted) >= PACK]
    found = []
    if len(shared) >= MIN_BOARDS:
        found += [_agreement_on_first(shared), _overlap_of_lists(shared)]
    if len(packs) >= MIN_BOARDS:
        found.append(_outsider(packs))
    return (*found, *_reigns(aggregates), *_flips(aggregates))


def _agreement_on_first(leaderboards: Sequence[Leaderboard]) -> Experiment:
    labels = Counter([board.agreement.label for board in leaderboards if board.agreement])
    n = len(leaderboards)
    return Experiment(
        slug="agreement-on-first",
        title="How often do the assistants agree on #1?",
        method=(
            "For every category that at least two assistants answered, count the product with the "
            "most first places: all of them (unanimous), more than half (majority), fewer (split)."
        ),
        finding=(
            f"Unanimous in {_share(labels['unanimous'], n)}, a majority in "
            f"{_share(labels['majority'], n)}, split in {_share(labels['split'], n)} "
            f"(n = {n} categories)."
        ),
        date=_newest(leaderboards),
    )


def _overlap_of_lists(leaderboards: Sequence[Leaderboard]) -> Experiment:
    overlaps: dict[tuple[str, str], list[float]] = {}
    for board in leaderboards:
        for pair, overlap in board.agreement.overlaps.items() if board.agreement else ():
            overlaps.setdefault(pair, []).append(overlap)
    means = {pair: fmean(values) for pair, values in overlaps.items()}
    pairs = sorted(means, key=lambda pair: (-means[pair], pair))
    told = [
        f"{first} and {second} are {what} alike ({means[first, second]:.2f}, "
        f"n = {len(overlaps[first, second])})"
        for (first, second), what in zip(
            dict.fromkeys([pairs[0], pairs[-1]]), ("most", "least"), strict=False
        )
    ]
    every = [overlap for values in overlaps.values() for overlap in values]
    return Experiment(
        slug="overlap-of-lists",
        title="How much do two assistants' lists overlap?",
        method=(
            "Average overlap (from 0, disjoint, to 1, identical; higher places weigh more) of two "
            "assistants' lists in every category that both answered, then the mean over categories."
        ),
        finding=(
            f"{', '.join(told)}. The mean of all comparisons is {fmean(every):.2f} "
            f"(n = {len(every)} comparisons)."
        ),
        date=_newest(leaderboards),
    )


def _outsider(leaderboards: Sequence[Leaderboard]) -> Experiment:
    """Which model stands alone against a #1 that all the others share."""
    asked: Counter[str] = Counter()
    alone: Counter[str] = Counter()
    for board in leaderboards:
        asked.update(board.models)
        if board.outsider:
            alone[board.outsider] += 1
    order = sorted(asked, key=lambda model: (-alone[model] / asked[model], model))
    shares = ", ".join(f"{model} in {_share(alone[model], asked[model])}" for model in order)
    return Experiment(
        slug="who-leaves-the-pack",
        title="Which assistant leaves the pack most often?",
        method=(
            "For every category that at least three assistants answered, see whether exactly one "
            "names another #1 than the one all others share; count that per assistant, as a share "
            "of the categories it answered."
        ),
        finding=f"Alone against all others: {shares} (n = {len(leaderboards)} categories).",
        date=_newest(leaderboards),
    )


def _reigns(aggregates: Sequence[CategoryAggregate]) -> Iterator[Experiment]:
    """How long a #1 holds, over the streaks that ended."""
    followed = [r for aggregate in aggregates for r in aggregate.streaks if r.over or r.polls > 1]
    ended = [streak for streak in followed if streak.over]
    if not ended:
        return
    time = dt.datetime.fromisoformat
    polls = median([streak.polls for streak in ended])
    days = median([(time(streak.end) - time(streak.start)).days for streak in ended])
    yield Experiment(
        slug="how-long-a-first-place-lasts",
        title="How long does an assistant's #1 last?",
        method=(
            "Follow each assistant's #1 through its successful polls of one question, of each day "
            "the last. A reign ends when another product takes over; its length is the number of "
            "its polls and the days from its first to its last. Reigns seen in one poll only and "
            "not yet ended are left out; those that still last are not counted as ended."
        ),
        finding=(
            f"{len(ended)} of {len(followed)} reigns have ended; in the median these held for "
            f"{_number(polls, 'poll')}, {_number(days, 'day')} from the first to the last "
            f"(n = {_number(len(ended), 'ended reign')})."
        ),
        date=max([streak.end for streak in followed])[:10],
    )


def _flips(aggregates: Sequence[CategoryAggregate]) -> Iterator[Experiment]:
    """How often #1 changes: changes per repeated answer."""
    changes = [change for aggregate in aggregates for change in aggregate.changes]
    streaks = [streak for aggregate in aggregates for streak in aggregate.streaks]
    repeats = sum([streak.polls - (not streak.over) for streak in streaks])
    if not changes:
        return
    confirmed = sum([change.confirmed for change in changes])
    yield Experiment(
        slug="how-often-a-first-place-flips",
        title="How often does a repeated question bring another #1?",
        method=(
            "Compare every successful poll with the same assistant's previous successful poll of "
            "the same question, of each day the last. A flip is confirmed when the next answer "
            "names the new #1 again and the last confirmed #1 was another."
        ),
        finding=(
            f"{_share(len(changes), repeats)} of repeated answers named another #1; "
            f"{confirmed} of {_number(len(changes), 'flip')} confirmed "
            f"(n = {_number(repeats, 'repeated answer')})."
        ),
        date=max([streak.end for streak in streaks])[:10],
    )


def _newest(leaderboards: Sequence[Leaderboard]) -> str:
    return max([board.newest for board in leaderboards])[:10]


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}%"


def _number(number: float, what: str) -> str:
    return f"{number:g} {what}" if number == 1 else f"{number:g} {what}s"
