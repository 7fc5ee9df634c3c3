"""Own maker: whether an assistant ranks its own maker's products higher than the others do."""

from __future__ import annotations

from fractions import Fraction
from statistics import fmean
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from store.rankings.leaderboards import Leaderboard
    from store.rankings.names import ProductId
    from store.rankings.windows import Window


def advantages(
    leaderboards: Iterable[Leaderboard],
    makers: Mapping[str, str],
    made_by: Mapping[ProductId, str],
) -> list[float]:
    """Per category, the points that an assistant gives its own maker's products beyond the others.

    ``makers`` are by model, ``made_by`` by product. A category's figure is the mean over all such
    pairs of assistant and product; categories without one are left out.
    """
    found = []
    for board in leaderboards if makers and made_by else ():
        named = [product for product in board.slugs if product in made_by]
        each = [
            _advantage(model, product, board.windows, makers)
            for product in named
            for model in board.windows
            if makers.get(model) == made_by[product]
            and any(makers.get(other) != made_by[product] for other in board.windows)
        ]
        if each:
            found.append(fmean(each))
    return found


def _advantage(
    model: str, product: ProductId, windows: Mapping[str, Window], makers: Mapping[str, str]
) -> Fraction:
    """One assistant's mean points for a product, less the mean of those of other makers'."""
    others = [
        window.mean_points(product)
        for each, window in windows.items()
        if makers.get(each) != makers[model]
    ]
    return windows[model].mean_points(product) - sum(others, Fraction(0)) / len(others)
