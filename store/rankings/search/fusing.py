"""What is not sure, in the order of words and a sentence model together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from heapq import nlargest
from typing import TYPE_CHECKING

from store.rankings.search.inverted_index import Document

if TYPE_CHECKING:
    from store.rankings.search.meaning import Nearness

Likeness = Mapping[str, float]
"""Slug → how alike a text and a category are by a sentence model; empty where there is none."""
Compare = Callable[[str, Sequence[Document]], Likeness | None]
"""Compares a text with categories; ``None`` if that cannot be done now."""

MODEL_SHARE = 0.6
"""The model's share; words have the rest. At .5, 2 of 91 needs fewer are in the first five."""

LIKELIEST = 50
"""Categories most alike by the model that are looked at; 25 and 100 find the same needs."""


def fused(near: Nearness, likeness: Likeness) -> dict[str, float]:
    """Return slug → points of the categories near by words or alike by the model, best first.

    Each of both counts as a share of its best, and so do the points. Words alone speak for a
    category of which the model knows nothing.

    >>> from store.rankings.search.meaning import Nearness
    >>> fused(Nearness({"sofa": 1.0, "bed": 0.5}, 1, 2.0), {"lamp": 0.8, "desk": 0.6, "sofa": 0.2})
    {'lamp': 1.0, 'sofa': 0.9166666666666667, 'bed': 0.8333333333333334, 'desk': 0.75}
    """
    likeliest = nlargest(LIKELIEST, likeness, key=likeness.__getitem__)
    most = max(likeness[likeliest[0]], 0) or 1
    points = dict(near.shares)
    for slug in {*likeliest, *near.shares} & likeness.keys():
        share = (1 - MODEL_SHARE) * near.shares.get(slug, 0)
        points[slug] = share + MODEL_SHARE * max(likeness[slug], 0) / most
    order = sorted(points, key=lambda slug: (-points[slug], slug))
    return {slug: points[slug] / points[order[0]] for slug in order}
