"""Changes: when a model's #1 became another product, and when that is more than noise."""

from leaderboards import answer

from store.rankings.changes import changes, reigns_of


def test_a_day_that_comes_twice_stands_where_its_newest_answer_does() -> None:
    """The order is that of appending, whatever days the answers bear."""
    first, second = "2026-01-05T06:00:00Z", "2026-01-12T06:00:00Z"
    answers = [answer("A", "X", first), answer("A", "Y", second), answer("A", "Z", first)]
    [change] = changes("pens", reigns_of(answers))
    assert (change.previous, change.current) == ("Y", "Z")
