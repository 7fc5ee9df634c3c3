"""The timeline of a category: the ranking that stood at the end of each day with polls."""

import msgspec
from builders import answered, failed
from hypothesis import given
from hypothesis import strategies as st

from store.rankings import aggregates, leaderboards
from store.rankings.names import Names
from store.rankings.timelines import Day, follow
from store.records import Category, Poll, Site

CATEGORY = Category(version=1, title="Best CRM software", question="What is the best CRM software?")
SITE = Site(version=1, name="Test")
MODELS = ("A", "B", "C")


def days(polls: list[Poll]) -> list[Day]:
    """The timeline of polls, every product's slug being its id."""
    aggregate = aggregates.read("crm-software", CATEGORY, polls, Names({}))
    slugs = {product: product for product in aggregate.product_stats}
    return list(follow(polls, CATEGORY, aggregate.resolved, MODELS, SITE, slugs, ()))


@given(st.lists(st.tuples(st.sampled_from(MODELS), st.permutations("vwxyz")), min_size=1))
def test_the_last_day_is_the_leaderboard(answers: list[tuple[str, list[str]]]) -> None:
    """Whatever was answered, the last day's ranks are those of the board, place by place."""
    polls = [answered(model, names[:3]) for model, names in answers]
    aggregate = aggregates.read("crm-software", CATEGORY, polls, Names({}))
    slugs = {product: product for product in aggregate.product_stats}
    board = leaderboards.board(aggregate, MODELS, SITE, slugs)
    assert board
    last = days(polls)[-1]
    assert last.ranks == {entry.product: entry.rank for entry in board.entries}
    for entry in board.entries:
        assert (last.places[entry.product] == entry.rank) or entry.tied


def test_a_failure_is_marked_and_changes_no_rank() -> None:
    """A day with only failures bears its marks over the ranking of the day before."""
    before, after = days(
        [answered("A", ["x", "y"], "2026-01-01T06:00:00Z"), failed("A", at="2026-01-08T06:00:00Z")]
    )
    assert after.ranks == before.ranks
    assert after.marks["A"].kind == "failed"
    assert before.answered
    assert not after.answered


def test_an_answer_of_the_day_outweighs_a_failure_of_the_day() -> None:
    """A retry that succeeds, or a second poll that fails, leaves the day answered."""
    answer = answered("A", ["x"], "2026-01-01T07:00:00Z")
    for polls in (
        [failed("A", at="2026-01-01T06:00:00Z"), answer],
        [answer, failed("A", at="2026-01-01T08:00:00Z")],
    ):
        (day,) = days(polls)
        assert day.marks["A"].kind == "first"


def test_a_day_shows_the_wording_that_stood_then() -> None:
    """Old answers and new are never in one day's ranking."""
    found = days(
        [
            answered("A", ["x"], "2026-01-01T06:00:00Z", question="Old?"),
            answered("B", ["y"], "2026-01-01T06:00:00Z", question="Old?"),
            answered("A", ["z"], "2026-01-02T06:00:00Z"),
            answered("B", ["z"], "2026-01-03T06:00:00Z"),
        ]
    )
    assert [sorted(day.ranks) for day in found] == [["=x", "=y"], ["=x", "=y"], ["=z"]]


def test_a_withheld_poll_under_a_wrong_clock_makes_no_day() -> None:
    """It is left out where a poll after it is earlier, and shown on its day otherwise."""
    hidden = msgspec.structs.replace(failed("A", at="2099-01-01T06:00:00Z"), withheld=True)
    usual = msgspec.structs.replace(hidden, polled_at="2026-01-02T06:00:00Z")
    last = answered("B", ["x"], "2026-01-03T06:00:00Z")
    assert [day.date for day in days([hidden, last])] == ["2026-01-03"]
    before, _ = days([usual, last])
    assert before.marks["A"].kind == "withheld"


def test_tied_products_share_the_better_place() -> None:
    """Two products with equal merits keep their positions and share the first's place."""
    (day,) = days([answered("A", ["x", "y", "z"]), answered("B", ["y", "x"])])
    assert sorted(day.ranks.values()) == [1, 2, 3]
    assert sorted(day.places.values()) == [1, 1, 3]
