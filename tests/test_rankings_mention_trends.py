"""Mentions and trends: like compared with like, and silence where there is too little to say."""

import datetime as dt
from fractions import Fraction

import pytest

from store.rankings.mention_trends import Trend, discoveries, trends
from store.rankings.merging import PLACES, LoggedAnswer, RunKey
from store.rankings.runs import AnswerLog

TODAY = dt.date(2026, 11, 20)
NOW, BEFORE = TODAY, TODAY - dt.timedelta(days=7)
LONG_AGO = dt.date(2026, 1, 1)


Cell = list[tuple[dt.date, str]]
"""One model's answers to one category, oldest first: each day, and the products named."""


def cell(now: str | None, before: str | None) -> Cell:
    """One model's answers to one category; None where there was none."""
    return [(day, named) for day, named in ((BEFORE, before), (NOW, now)) if named is not None]


def log(*cells: Cell) -> AnswerLog:
    """The answers of a category, each cell those of another model."""
    return AnswerLog.of(
        LoggedAnswer(
            RunKey(f"M{number}", "Best?", None, None),
            f"{day}T06:00:00Z",
            (*named, *[None] * (PLACES - len(named))),
        )
        for number, own in enumerate(cells)
        for day, named in own
    )


def trend(answers: AnswerLog, product: str = "X", first: dt.date = LONG_AGO) -> Trend:
    """The trend of one product that is tried alone."""
    return trends([answers], TODAY, {product: first})[product]


def counts(both: int = 0, only_now: int = 0, only_before: int = 0, neither: int = 0) -> AnswerLog:
    """So many cells that list X in both windows, in one, in none."""
    cells = [cell("X", "X")] * both + [cell("X", "")] * only_now
    cells += [cell("", "X")] * only_before + [cell("", "")] * neither
    return log(*cells)


@pytest.mark.parametrize(
    ("both", "only_now", "only_before", "direction", "delta"),
    [
        (0, 0, 0, "insufficient", None),
        (7, 0, 0, "insufficient", 0.0),
        (100, 0, 0, "insufficient", 0.0),  # nothing moved: too little to test
        (100, 3, 2, "insufficient", 1.0),
        (1, 6, 0, "insufficient", 85.7),  # 7 cells
        (2, 6, 0, "up", 75.0),  # 8 cells, p = 2/64
        (2, 0, 6, "down", -75.0),
        (4, 5, 1, "flat", 40.0),  # p = 14/64
        (4, 1, 5, "flat", -40.0),
        (0, 9, 1, "up", 80.0),  # p = 22/1024
        (0, 9, 2, "flat", 63.6),  # p = 134/2048, though (9-2)²/11 is above 3.84
        (0, 8, 2, "flat", 60.0),  # p = 112/1024
        (0, 4, 4, "flat", 0.0),
        (0, 1, 9, "down", -80.0),
        (197, 0, 6, "down", -3.0),
    ],
)
def test_a_direction_needs_cells_and_moves(
    both: int, only_now: int, only_before: int, direction: str, delta: float | None
) -> None:
    """Under 8 cells or 6 moves nothing is said; beyond chance it is up or down, else flat."""
    found = trend(counts(both, only_now, only_before, neither=50))
    assert (found.direction, found.delta) == (direction, delta)


def test_of_many_products_tried_few_are_called_moved_by_chance() -> None:
    """The k smallest p at k/m of 5 %: the example of Benjamini and Hochberg (1995), 4 of 15.

    One by one nine of the fifteen would be below 5 %.
    """
    p = "1 4 19 95 201 278 298 344 459 3240 4262 5719 6528 7590 10000"
    tried = {str(number): Fraction(int(value), 10000) for number, value in enumerate(p.split())}
    assert discoveries(tried) == {"0", "1", "2", "3"}
    assert discoveries({}) == set()
    assert discoveries({"last": Fraction(1, 20), "first": Fraction(1, 20)}) == {"last", "first"}


def test_products_are_held_to_all_that_were_tried_with_them() -> None:
    """What moves when it is tried alone may not when others that do not move are tried, too.

    Products that are new, or in too few cells, are not tried.
    """
    cells = [cell("X", "")] * 9 + [cell("", "X")]
    for name in "PQRS":
        cells += [cell(name, "")] * 6 + [cell("", name)] * 4
    found = log(*cells)
    alone = trends([found], TODAY, {"X": LONG_AGO, **dict.fromkeys("PQRS", TODAY), "T": LONG_AGO})
    assert alone["X"].direction == "up"  # p = 22/1024
    together = trends([found], TODAY, dict.fromkeys("XPQRS", LONG_AGO))
    assert [trend.direction for trend in together.values()] == ["flat"] * 5


def test_an_earlier_time_after_a_later_one_counts_all_the_same() -> None:
    """Of each window one counts: the last appended, wherever the other window's poll stands."""
    day = dt.timedelta(days=1)
    polls = [(NOW, "Z"), (BEFORE - day, "X"), (NOW, "X"), (NOW + day, "Z"), (BEFORE, "Y")]
    found = log(polls)
    counted = {name: trend(found, name) for name in "XYZ"}
    assert [(t.mentions, t.mentions_before) for t in counted.values()] == [(1, 0), (0, 1), (0, 0)]


def test_windows_are_seven_days_and_the_seven_before() -> None:
    """The current window ends with the newest poll's day; a day further back is another window."""
    days = [TODAY - dt.timedelta(days=age) for age in (6, 7, 13, 14)]
    pairs = {
        (0, 1): 1,  # the last day of now, the first of before
        (0, 2): 1,  # the last day of before
        (0, 3): 0,  # too long ago
        (1, 2): 0,  # both before
    }
    for (newer, older), cells in pairs.items():
        found = trend(log([(days[older], "X"), (days[newer], "X")]))
        assert found.cells == cells


def test_new_is_what_was_first_named_in_the_current_window() -> None:
    """New comes before every other direction, on the window's first day and not a day earlier."""
    up = counts(both=2, only_now=20)
    assert trend(up, first=TODAY - dt.timedelta(days=6)).direction == "new"
    assert trend(up, first=TODAY - dt.timedelta(days=7)).direction == "up"
    assert trend(log(), "Q", TODAY).direction == "new"
