"""Own maker: whether an assistant ranks its own maker's products higher than the others do."""

from __future__ import annotations

from fractions import Fraction
from statistics import fmean
from typing import TYPE_CHECKING

from store.rankings.merging import PLACES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from store.rankings.leaderboards import Leaderboard
    from store.rankings.names import ProductId
    from store.rankings.runs import Run


def advantages(
    leaderboards: Iterable[Leaderboard],
    makers: Mapping[str, str],
    made_by: Mapping[ProductId, str],
) -> list[float]:
    """Per category, the points that an assistant gives its own maker's products beyond the others.

    ``makers`` are by model, ``made_by`` by product. A category's figure is the mean over all such
    pairs of assistant and product; categories without one are left out.
    """
    figures = []
    for board in leaderboards if makers and made_by else ():
        own = [product for product in board.slugs if product in made_by]
        runs = board.runs() if own else {}
        pairs = [
            _advantage(model, product, runs, makers)
            for product in own
            for model in runs
            if makers.get(model) == made_by[product]
            and any(makers.get(other) != made_by[product] for other in runs)
            and any(_mean_points(run, product) for run in runs.values())
        ]
        if pairs:
            figures.append(fmean(pairs))
    return figures


def _advantage(
    model: str, product: ProductId, runs: Mapping[str, Run], makers: Mapping[str, str]
) -> Fraction:
    """Return one assistant's mean points for a product, less the mean of those of other makers'."""
    others = [
        _mean_points(run, product)
        for other, run in runs.items()
        if makers.get(other) != makers[model]
    ]
    return _mean_points(runs[model], product) - sum(others, Fraction(0)) / len(others)


def _mean_points(run: Run, product: ProductId) -> Fraction:
    """Return the mean points of a product over the window; none where it is not named."""
    ranks = [a.places.index(product) for a in run.window if product in a.places]
    return Fraction(sum(PLACES - at for at in ranks), len(run.window))
