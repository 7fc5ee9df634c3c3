"""Changes: when a model's #1 became another product, and when that is more than noise."""

import pytest
from leaderboards import answer

from store.rankings.certainty import wilson
from store.rankings.changes import Streak, changes, reigns_of, survival


def test_a_day_that_comes_twice_stands_where_its_newest_answer_does() -> None:
    """The order is that of appending, whatever days the answers bear."""
    first, second = "2026-01-05T06:00:00Z", "2026-01-12T06:00:00Z"
    answers = [answer("A", "X", first), answer("A", "Y", second), answer("A", "Z", first)]
    [change] = changes("pens", reigns_of(answers))
    assert (change.previous, change.current) == ("Y", "Z")


def test_first_places_stand_as_kaplan_and_meier_say() -> None:
    """Their shares and standard errors for the 21 patients under 6-MP of Freireich (1963).

    Weeks are answers, a relapse is a first place lost, and who was still well has not lost it.
    """
    lost = [6, 6, 6, 7, 10, 13, 16, 22, 23]
    lasting = [6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35]
    found = survival(
        [Streak("", weeks, over=True) for weeks in lost]
        + [Streak("", weeks + 1, over=False) for weeks in lasting],
        40,
    )
    published = {5: (1, 0), 6: (0.8571, 0.0764), 7: (0.8067, 0.0869), 10: (0.7529, 0.0963)}
    published |= {13: (0.6902, 0.1068), 22: (0.5378, 0.1282), 23: (0.4482, 0.1346)}
    for weeks, (share, error) in published.items():
        step = found[weeks - 1]
        assert step.share == pytest.approx(share, abs=5e-5)
        size = share * (1 - share) / error**2 if error else step.streaks
        assert step.interval == pytest.approx(wilson(share * size, size), abs=5e-4)
    assert [found[weeks - 1].streaks for weeks in (1, 6, 7, 10, 23)] == [21, 21, 17, 15, 6]
    assert len(found) == 35
    assert survival([], 5) == []
