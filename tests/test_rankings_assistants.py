"""What each assistant does follows from all of its polls."""

from builders import answered, failed
from flask import Flask
from small_world import WITHHELD

from store.rankings.poll_states import Service, Tally, tallies, total


def test_polls_are_counted_by_what_came_of_them() -> None:
    """Answers by served version with their first and last day, failures by kind."""
    polls = [
        answered("A", ["X"], "2026-10-05T06:00:00Z", served_model="a-1"),
        failed("A", "timeout", "2026-10-06T06:00:00Z"),
        answered("B", ["X"], "2026-10-06T06:00:00Z"),
        answered("A", ["X"], "2026-10-07T06:00:00Z", served_model="a-1"),
        failed("A", "timeout", "2026-10-08T06:00:00Z"),
        answered("A", ["X"], "2026-10-09T06:00:00Z", served_model="a-2"),
    ]
    found = tallies(polls)
    assert found["A"] == Tally(
        3,
        {"timeout": 2},
        (
            Service("a-1", "2026-10-05T06:00:00Z", "2026-10-07T06:00:00Z", 2),
            Service("a-2", "2026-10-09T06:00:00Z", "2026-10-09T06:00:00Z", 1),
        ),
    )
    assert (found["A"].asked, found["A"].failed) == (5, 2)
    assert found["B"].services[0].version is None


def test_categories_add_up() -> None:
    """A version served in two categories is one, from its first answer to its last."""
    one = tallies([answered("A", ["X"], "2026-10-05T06:00:00Z", served_model="a-2")])["A"]
    other = tallies(
        [
            answered("A", ["X"], "2026-10-01T06:00:00Z", served_model="a-1"),
            answered("A", ["X"], "2026-10-09T06:00:00Z", served_model="a-2"),
            failed("A", "auth"),
        ]
    )["A"]
    assert total([one, other]) == Tally(
        3,
        {"auth": 1},
        (
            Service("a-1", "2026-10-01T06:00:00Z", "2026-10-01T06:00:00Z", 1),
            Service("a-2", "2026-10-05T06:00:00Z", "2026-10-09T06:00:00Z", 2),
        ),
    )


def test_an_assistants_figures(small: Flask) -> None:
    """What counts, what agrees and what failed, over the little world; withheld polls nowhere."""
    store = small.extensions["store"]
    found = store.snapshot.summary.assistants["A"]
    assert WITHHELD not in {service.last for service in found.tally.services}
    assert (found.tally.answers, dict(found.tally.failures)) == (4, {"timeout": 1})
    assert (found.counted, found.agreeing, found.shared) == (3, 3, 3)
    alone = store.snapshot.summary.assistants["C"]
    assert (alone.counted, alone.agreeing, alone.shared) == (2, 1, 2)
