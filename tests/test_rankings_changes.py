"""Changes: when a model's #1 became another product, and when that is more than noise."""

from leaderboards import answer

from store.rankings.changes import changes, reigns_of


def test_who_says_the_same_again_on_a_day_brings_no_other_change() -> None:
    """The id of a change is for ever; an answer between with another #1 makes a later one."""
    monday, tuesday = "2026-01-05", "2026-01-06"
    said = [(monday, "X", 6), (tuesday, "Y", 6), (tuesday, "Y", 7), (tuesday, "Y", 8)]
    answers = [answer("A", first, f"{day}T0{hour}:00:00Z") for day, first, hour in said]
    for n in (2, 3, 4):
        [change] = changes("pens", reigns_of(answers[:n]))
        assert (change.poll, change.confirmed) == (answers[1].poll.id, False)
    between = [*answers[:2], answer("A", "X", f"{tuesday}T07:30:00Z"), answers[3]]
    [change] = changes("pens", reigns_of(between))
    assert change.poll == answers[3].poll.id


def test_a_day_that_comes_twice_stands_where_its_newest_answer_does() -> None:
    """The order is that of appending, whatever days the answers bear."""
    first, second = "2026-01-05T06:00:00Z", "2026-01-12T06:00:00Z"
    answers = [answer("A", "X", first), answer("A", "Y", second), answer("A", "Z", first)]
    [change] = changes("pens", reigns_of(answers))
    assert (change.previous, change.current) == ("Y", "Z")
