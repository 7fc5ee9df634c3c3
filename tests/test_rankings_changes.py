"""Changes: when a model's #1 became another product, and when that is more than noise."""

import datetime as dt
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from leaderboards import answer

from store.rankings.changes import changes, reigns_of, streaks
from store.rankings.merging import ResolvedAnswer

START = dt.datetime(2026, 1, 5, 6, tzinfo=dt.UTC)


def weekly(picks: str, model: str = "A", question: str = "What is best?") -> list[ResolvedAnswer]:
    """One model's answers, a week apart, each with this #1."""
    return [
        answer(
            model,
            [pick, "other"],
            f"{START + dt.timedelta(days=7 * i):%Y-%m-%dT%H:%M:%SZ}",
            question=question,
        )
        for i, pick in enumerate(picks.split())
    ]


def test_a_day_that_comes_twice_stands_where_its_newest_answer_does() -> None:
    """The order is that of appending, whatever days the answers bear."""
    first, second = "2026-01-05T06:00:00Z", "2026-01-12T06:00:00Z"
    answers = [answer("A", "X", first), answer("A", "Y", second), answer("A", "Z", first)]
    [change] = changes("pens", reigns_of(answers))
    assert (change.previous, change.current) == ("Y", "Z")


def test_changes_come_in_the_order_of_time() -> None:
    """Over all models, the earlier change first."""
    found = changes("pens", reigns_of([*weekly("X X Y"), *weekly("X Y Y", "B")]))
    assert [change.model for change in found] == ["B", "A"]


@given(st.lists(st.sampled_from("XYZ"), min_size=1, max_size=12))
def test_changes_follow_the_definition(picks: list[str]) -> None:
    """One change for each pair of neighbours that differ; confirmed by walking through them."""
    sequences = reigns_of(weekly(" ".join(picks)))
    found = changes("pens", sequences)
    assert [(c.previous, c.current) for c in found] == [
        (a, b) for a, b in pairwise(picks) if a != b
    ]
    stable, confirmed = picks[0], []
    for earlier, now, after in zip(picks, picks[1:], [*picks[2:], None], strict=False):
        if now != earlier:
            confirmed.append(now == after and now != stable)
            stable = now if confirmed[-1] else stable
    assert [change.confirmed for change in found] == confirmed
    assert sum(streak.polls for streak in streaks(sequences)) == len(picks)
