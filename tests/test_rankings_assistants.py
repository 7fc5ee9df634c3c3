"""What each assistant does follows from all of its polls."""

from pathlib import Path
from typing import get_args

from builders import answered, app_over, failed, write_data
from flask import Flask
from small_world import WITHHELD

from store.rankings.poll_states import Service, Tally, tallies, total
from store.records import FailureKind
from store.web.pages.assistants import FAILURES


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
    assert found.firsts.total() == 3
    alone = store.snapshot.summary.assistants["C"]
    assert (alone.counted, alone.agreeing, alone.shared) == (2, 1, 2)


def test_every_kind_of_failure_is_told_in_words() -> None:
    """A new kind of failure needs words for readers."""
    assert set(FAILURES) == set(get_args(FailureKind))


def test_no_two_assistants_share_an_address(tmp_path: Path) -> None:
    """Names that make one slug are told apart, and a later one never takes an address away."""
    write_data(tmp_path, models=["Model A", "Model-A", "\u6a21\u578b", "!!!"])
    slugs = app_over(tmp_path).extensions["store"].snapshot.summary.model_slugs
    assert list(slugs.values()) == ["Model A", "Model-A", "\u6a21\u578b", "!!!"]
    assert next(iter(slugs)) == "model-a"
    client = app_over(tmp_path).test_client()
    for slug, name in slugs.items():
        page = client.get(f"/models/{slug}")
        assert (page.status_code, name in page.text) == (200, True)
