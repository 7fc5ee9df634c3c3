"""Leaderboards: a category's ranking as it stands, or none."""

from builders import SITE, answered, category, failed

from store.rankings import aggregates, leaderboards
from store.rankings.names import Names
from store.records import Poll, Site

RULES = Site(version=1, name=str(SITE["name"]), stale_after_days=10, drop_after_days=20)


def board(
    *polls: Poll, models: tuple[str, ...] = ("A", "B", "C")
) -> leaderboards.Leaderboard | None:
    aggregate = aggregates.read("crm", category(), polls, Names({}))
    slugs = {id_: id_.removeprefix("=") for id_ in aggregate.ids}
    return leaderboards.board(aggregate, models, RULES, slugs)


def test_a_category_without_a_counted_answer_has_no_board() -> None:
    """Failures, near misses of the configuration and retired models rank nothing."""
    assert board() is None
    assert board(failed("A")) is None
    assert board(answered("Retired", ["X"])) is None


def test_a_board_says_who_counts_and_who_is_missing() -> None:
    """Whoever is configured is one or the other, in configured order, by the site's rules."""
    found = board(
        answered("C", ["X"], "2026-10-01T06:00:00Z"),
        answered("B", ["Y", "X"], "2026-10-19T06:00:00Z"),
        answered("A", ["X"], "2026-10-30T06:00:00Z"),
    )
    assert found
    assert [(each.model, each.stale) for each in found.counted] == [("A", False), ("B", True)]
    assert found.missing == ("C",)
    assert found.configured == 3
    assert [entry.product for entry in found.entries] == ["=x", "=y"]
    assert found.agreement
    assert found.agreement.of == 2


def test_a_board_is_as_old_as_its_newest_counted_answer() -> None:
    """Neither a failed poll nor a retired model's makes a ranking newer."""
    found = board(
        answered("A", ["X"], "2026-10-01T23:59:59Z"),
        answered("Retired", ["X"], "2026-10-03T06:00:00Z"),
        failed("B", at="2026-10-05T06:00:00Z"),
    )
    assert found
    assert found.newest == "2026-10-01T23:59:59Z"
    assert found.updated == "2026-10-01"
    assert found.agreement is None
