"""Charts hold the figures they are drawn from, inside their drawing, at any number of days."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from store.rankings.timelines import Day
from store.web.pages import charts

PRODUCTS = [f"p{i}" for i in range(8)]


@st.composite
def days(draw: st.DrawFn) -> list[Day]:
    """One to sixteen days with rankings of some of eight products."""
    found = []
    for number in range(draw(st.integers(1, charts.DAYS))):
        order = draw(st.permutations(PRODUCTS))[: draw(st.integers(0, 8))]
        ranks = {product: rank for rank, product in enumerate(order, 1)}
        found.append(Day(f"2026-01-{number + 1:02}", ranks, ranks, {}, (), None, None))
    return found


@given(days())
def test_every_dot_stands_where_its_rank_says(found: list[Day]) -> None:
    """A line has one dot for each day that ranks its product, at that rank's row."""
    bump = charts.bump(found, PRODUCTS)
    for line in bump.lines:
        ranked = [day.ranks[line.product] for day in found if line.product in day.ranks]
        assert len(line.dots) == len(ranked)
        for dot, rank in zip(line.dots, ranked, strict=True):
            assert dot.y == charts.ROW * (min(rank, charts.LINES + 1) - 0.5)
            assert 0 < dot.x < 100
            assert dot.y < bump.height
            assert dot.title.endswith(f"#{rank}")


@given(days())
def test_lines_join_only_neighbouring_days(found: list[Day]) -> None:
    """A day without the product breaks its line; nothing is drawn across the gap."""
    for line in charts.bump(found, PRODUCTS).lines:
        joined = sum(
            line.product in a.ranks and line.product in b.ranks for a, b in pairwise(found)
        )
        assert len(line.segments) == joined


COUNTS = st.tuples(st.just("2026-01-01"), st.integers(0, 9), st.integers(0, 9))


@given(st.lists(COUNTS, max_size=16))
def test_bars_fit_their_drawing(counts: list[tuple[str, int, int]]) -> None:
    """Bars stand side by side from left to right, as high as their share."""
    counts = [(date, min(part, whole), whole) for date, part, whole in counts]
    right = 0.0
    for bar, (_, part, whole) in zip(charts.bars(counts), counts, strict=True):
        assert bar.x >= right
        right = bar.x + bar.width
        assert right <= 100.01
        assert bar.height == (round(charts.BARS * part / whole, 1) if whole else 0)


def test_a_single_day_stands_at_the_end() -> None:
    """With one day there is no line to draw, and its dot stands beside its label."""
    assert charts.places(1) == [95]
    assert charts.places(3) == [5, 50, 95]
