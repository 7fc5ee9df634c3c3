"""Charts as geometry: what the templates draw as inline SVG.

Positions along x are percentages of the drawing's width and y are CSS pixels, so that a chart
fills any screen while its text and dots keep their size.
"""

import datetime as dt
from collections.abc import Sequence
from itertools import pairwise

from msgspec import Struct

from store.rankings.names import ProductId
from store.rankings.timelines import Day

DAYS = 16
"""Days a chart shows at most: that many dots still stand apart on a phone."""
LINES = 5
ROW = 40
"""Height of a row in CSS pixels; the style sheet gives the labels beside it the same."""
BARS = 120
MARGIN = 5.0


class Dot(Struct, frozen=True):
    """A mark, and what it stands for."""

    x: float
    y: float
    title: str
    line: int = 0


class Segment(Struct, frozen=True):
    """A straight piece of a line."""

    x1: float
    y1: float
    x2: float
    y2: float


class Line(Struct, frozen=True):
    """One product's ranks over time; ``number`` picks its colour and mark, from 1."""

    number: int
    product: ProductId
    dots: tuple[Dot, ...]
    segments: tuple[Segment, ...]


class Bump(Struct, frozen=True):
    """Ranks over time; ``beyond`` when a last row stands for every rank below the ones shown."""

    lines: tuple[Line, ...]
    rows: int
    beyond: bool
    height: int
    dates: tuple[str, ...]


class Bar(Struct, frozen=True):
    """A column: ``part`` of ``whole`` on a date; ``height`` of :data:`BARS` pixels."""

    x: float
    width: float
    height: float
    date: str
    part: int
    whole: int


def places(number: int) -> list[float]:
    """The x of every column, in percent, evenly spread; a single one stands at the end."""
    if number == 1:
        return [100 - MARGIN]
    step = (100 - 2 * MARGIN) / (number - 1)
    return [round(MARGIN + step * i, 2) for i in range(number)]


def bump(days: Sequence[Day], products: Sequence[ProductId]) -> Bump:
    """The ranks of products (best first, now) on days (oldest first)."""
    shown = products[:LINES]
    xs = places(len(days))
    ranks = [day.ranks.get(product, 0) for day in days for product in shown]
    beyond = max(ranks, default=0) > len(shown)
    lines = [
        _line(number, product, days, xs, len(shown)) for number, product in enumerate(shown, 1)
    ]
    return Bump(
        lines=tuple(lines),
        rows=len(shown),
        beyond=beyond,
        height=ROW * (len(shown) + beyond),
        dates=tuple(day.date for day in days),
    )


def with_gaps(counts: Sequence[tuple[str, int, int]], longest: int) -> list[tuple[str, int, int]]:
    """The same with an empty column, without a date, wherever over ``longest`` days are between."""
    found = list(counts[:1])
    for (before, *_), count in pairwise(counts):
        days = dt.date.fromisoformat(count[0]) - dt.date.fromisoformat(before)
        found += [("", 0, 0), count] if days.days > longest else [count]
    return found


def bars(counts: Sequence[tuple[str, int, int]]) -> tuple[Bar, ...]:
    """Columns for (date, part, whole), oldest first; full height is the whole."""
    slot = 100 / max(len(counts), 1)
    return tuple(
        Bar(
            x=round(slot * (i + 0.15), 2),
            width=round(slot * 0.7, 2),
            height=round(BARS * part / whole, 1) if whole else 0,
            date=date,
            part=part,
            whole=whole,
        )
        for i, (date, part, whole) in enumerate(counts)
    )


class Whisker(Struct, frozen=True):
    """A figure with its interval, as percentages of the drawing's width, in the middle of a row."""

    y: float
    low: float
    x: float
    high: float
    title: str


def whiskers(
    rows: Sequence[tuple[float, Sequence[float], str]], low: float = 0.0, high: float = 1.0
) -> list[Whisker]:
    """One row for each figure, its interval and what it stands for, on an axis from low to high."""
    found = []
    for number, (value, ends, title) in enumerate(rows):
        first, x, last = (along(each, low, high) for each in (ends[0], value, ends[1]))
        found.append(Whisker(ROW * (number + 0.5), first, x, last, title))
    return found


class Reach(Struct, frozen=True):
    """A product's place now and the places it may have, also as percentages of the width."""

    name: str
    place: int
    low: int
    high: int
    start: float
    x: float
    end: float


def reach(name: str, place: int, likely: tuple[int, ...], lowest: int) -> Reach:
    """Return the band of a product's likely places on an axis from 1 to ``lowest``."""
    start, x, end = (along(rank, 1, lowest) for rank in (likely[0], place, likely[1]))
    return Reach(name, place, likely[0], likely[1], start, x, end)


def along(value: float, low: float, high: float) -> float:
    """The x of a value, in percent, on an axis from low to high."""
    share = (min(max(value, low), high) - low) / (high - low)
    return round(MARGIN + (100 - 2 * MARGIN) * share, 2)


def _line(
    number: int, product: ProductId, days: Sequence[Day], xs: Sequence[float], rows: int
) -> Line:
    dots: list[Dot | None] = []
    for x, day in zip(xs, days, strict=True):
        rank = day.ranks.get(product)
        if rank is None:
            dots.append(None)
        else:
            y = ROW * (min(rank, rows + 1) - 0.5)
            dots.append(Dot(x, y, f"{day.date}: #{rank}", line=number))
    return Line(
        number=number,
        product=product,
        dots=tuple([dot for dot in dots if dot]),
        segments=tuple([Segment(a.x, a.y, b.x, b.y) for a, b in pairwise(dots) if a and b]),
    )
