"""The service's own experiments, computed from the history whenever it changes.

Each finding quotes its figures with their n; each says how it was computed. Where there is
nothing to count yet, there is no experiment.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from itertools import combinations
from statistics import mean, median
from typing import TYPE_CHECKING

from msgspec import Struct

from store.rankings.agreement import average_overlap

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from store.rankings.boards import Board
    from store.rankings.readings import Reading

MIN_BOARDS = 5
"""Fewer categories than this make no experiment."""


class Experiment(Struct, frozen=True):
    """A question put to the data; ``date`` is that of the newest poll it rests on, YYYY-MM-DD."""

    slug: str
    title: str
    method: str
    finding: str
    date: str


def compute(boards: Sequence[Board], readings: Sequence[Reading]) -> tuple[Experiment, ...]:
    """Every experiment that the data at hand can answer."""
    shared = [board for board in boards if len(board.counted) > 1]
    date = max((board.updated for board in shared), default="")
    found = []
    if len(shared) >= MIN_BOARDS:
        found = [
            _agreement_on_first(shared, date),
            _overlap_of_lists(shared, date),
            _outsider(shared, date),
        ]
    return (*found, *_reigns(readings), *_flips(readings))


def _agreement_on_first(boards: Sequence[Board], date: str) -> Experiment:
    labels = Counter(board.agreement.label for board in boards if board.agreement)
    n = len(boards)
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
        date=date,
    )


def _overlap_of_lists(boards: Sequence[Board], date: str) -> Experiment:
    overlaps: dict[tuple[str, str], list[float]] = {}
    for board in boards:
        lists = {a.model: [c.product for c in a.answered.choices] for a in board.counted}
        for first, second in combinations(sorted(lists), 2):
            overlap = average_overlap(lists[first], lists[second])
            overlaps.setdefault((first, second), []).append(overlap)
    means = {pair: mean(sorted(values)) for pair, values in overlaps.items()}
    ranked = sorted(means, key=lambda pair: (-means[pair], pair))
    most, least = ranked[0], ranked[-1]
    finding = (
        f"{most[0]} and {most[1]} are most alike ({means[most]:.2f}, n = {len(overlaps[most])}"
    )
    if least != most:
        finding += (
            f"), {least[0]} and {least[1]} least ({means[least]:.2f}, n = {len(overlaps[least])}"
        )
    return Experiment(
        slug="overlap-of-lists",
        title="How much do two assistants' lists overlap?",
        method=(
            "Average overlap (from 0, disjoint, to 1, identical; higher places weigh more) of two "
            "assistants' lists in every category that both answered, then the mean over categories."
        ),
        finding=f"{finding}; mean of n = {sum(map(len, overlaps.values()))} comparisons "
        f"{mean(sorted(v for values in overlaps.values() for v in values)):.2f}).",
        date=date,
    )


def _outsider(boards: Sequence[Board], date: str) -> Experiment:
    """Which model stands alone against a #1 that all the others share."""
    asked: Counter[str] = Counter()
    alone: Counter[str] = Counter()
    for board in boards:
        votes = Counter(answer.answered.first for answer in board.counted)
        if len(board.counted) < 3:  # noqa: PLR2004 - two that differ have no pack to leave
            continue
        for answer in board.counted:
            asked[answer.model] += 1
            alone[answer.model] += votes[answer.answered.first] == 1 and len(votes) == 2  # noqa: PLR2004
    order = sorted(asked, key=lambda model: (-alone[model] / asked[model], model))
    shares = ", ".join(f"{model} in {_share(alone[model], asked[model])}" for model in order)
    n = max(asked.values(), default=0)
    return Experiment(
        slug="who-leaves-the-pack",
        title="Which assistant leaves the pack most often?",
        method=(
            "For every category that at least three assistants answered, see whether exactly one "
            "names another #1 than the one all others share; count that per assistant."
        ),
        finding=f"Alone against all others: {shares} (n = {n} categories)."
        if shares
        else "No category has answers from three assistants yet (n = 0).",
        date=date,
    )


def _reigns(readings: Sequence[Reading]) -> Iterator[Experiment]:
    ended = [reign for reading in readings for reign in reading.reigns if reign.over]
    if not ended:
        return
    polled_twice = sum(
        1 for reading in readings for reign in reading.reigns if reign.over or reign.polls > 1
    )
    days = sorted(
        (dt.datetime.fromisoformat(r.end) - dt.datetime.fromisoformat(r.start)).days for r in ended
    )
    yield Experiment(
        slug="how-long-a-first-place-lasts",
        title="How long does an assistant's #1 last?",
        method=(
            "Follow each assistant's #1 through its successful polls of one category. A reign ends "
            "when another product takes over; its length is the time from its first to its last "
            "poll and the number of polls. Reigns that still last are not counted as ended."
        ),
        finding=(
            f"{len(ended)} of {polled_twice} reigns that could be followed have ended; these "
            f"held for {median(sorted(r.polls for r in ended)):g} poll(s) and {median(days):g} "
            f"day(s) in the median (n = {len(ended)} ended reigns)."
        ),
        date=max(reign.end for reign in ended)[:10],
    )


def _flips(readings: Sequence[Reading]) -> Iterator[Experiment]:
    """How settled the catalogue is: changes per poll that could have brought one."""
    changes = [change for reading in readings for change in reading.changes]
    repeats = sum(reign.polls for reading in readings for reign in reading.reigns) - sum(
        len({reign.model for reign in reading.reigns}) for reading in readings
    )
    if not changes or repeats <= 0:
        return
    confirmed = sum(change.confirmed for change in changes)
    yield Experiment(
        slug="how-often-a-first-place-flips",
        title="How often does a repeated question bring another #1?",
        method=(
            "Compare every successful poll with the same assistant's previous successful poll of "
            "the same question. A flip is confirmed when the next answer agrees with it."
        ),
        finding=(
            f"{_share(len(changes), repeats)} of repeated answers named another #1; "
            f"{confirmed} of {len(changes)} flips are confirmed (n = {repeats} repeated answers)."
        ),
        date=max(change.current_at for change in changes)[:10],
    )


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "0 %"
