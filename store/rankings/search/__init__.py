"""Search: what people mean, found among the titles of categories and the names of brands.

`words` reads a text, `synonyms` knows other words for it, `shelf` holds the titles of one array,
`reading` finds what a query may mean there, `scoring` says how well a title answers it. A query is
read once per array; only the titles it leads to are looked at, and only the likeliest are scored.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from heapq import nlargest
from typing import TYPE_CHECKING, NamedTuple

from store.rankings.search.reading import Match, Reading, read
from store.rankings.search.scoring import score
from store.rankings.search.shelf import Place, Shelf, Titled
from store.rankings.search.synonyms import Synonyms
from store.rankings.search.words import singular, words_of

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Hit", "Hits", "Index", "Titled"]

CATEGORY_CUT = 0.5
BRAND_CUT = 0.6
NOISE_CUT = 0.3
"""Scores below which nothing is said: names take more, a suggestion for a dead link takes less."""

FINALISTS = 80
"""Titles per array that are scored, of those a query leads to."""

BEGUN = 0.9
"""What a title scores at least, and any other at most, when it begins with what is being typed."""


class Hit(NamedTuple):
    """One thing found; `score` is 0..1 with three decimals."""

    slug: str
    score: float


class Hits(NamedTuple):
    """What was found in both arrays, best first; ties stand in the order of their slugs."""

    categories: tuple[Hit, ...]
    brands: tuple[Hit, ...]


class Index:
    """Categories and brands made searchable: immutable, and a pure function of its arguments.

    The first search shelves them, which takes a while, unless :meth:`prepare` did so before.
    """

    def __init__(
        self,
        categories: Sequence[Titled],
        brands: Sequence[Titled],
        synonyms: Sequence[Sequence[str]],
        common_words: Sequence[str],
    ) -> None:
        """Take both arrays, groups of interchangeable phrases, and a list of English words."""
        self._given = (categories, brands, synonyms, common_words)

    def prepare(self) -> None:
        """Shelve both arrays now, so that no search waits for it."""
        _ = self._categories, self._brands

    @property
    def is_prepared(self) -> bool:
        """Whether both arrays are on their shelves."""
        return vars(self).keys() >= {"_categories", "_brands"}

    @cached_property
    def _categories(self) -> Shelf:
        return Shelf(self._given[0], self._ordinary, Synonyms(self._given[2]))

    @cached_property
    def _brands(self) -> Shelf:
        return Shelf(self._given[1], self._ordinary)

    @cached_property
    def _ordinary(self) -> frozenset[str]:
        return frozenset(map(singular, self._given[3]))

    def search(self, query: str, limit: int = 10) -> Hits:
        """Return what a query means, at most `limit` of each array; nothing for nonsense."""
        return Hits(
            _best(_find(query, self._categories, CATEGORY_CUT), limit),
            _best(_find(query, self._brands, BRAND_CUT), limit),
        )

    def closest_categories(self, text: str, limit: int = 5) -> tuple[Hit, ...]:
        """Return the categories that a wrong slug or title may have meant, best first."""
        return _best(_find(text, self._categories, NOISE_CUT), limit)

    def closest_brands(self, text: str, limit: int = 5) -> tuple[Hit, ...]:
        """Return the brands that a wrong slug or name may have meant, best first."""
        return _best(_find(text, self._brands, NOISE_CUT), limit)

    def complete(self, prefix: str, limit: int = 8) -> Hits:
        """Return what may be being typed: what begins like it, shortest first, then the rest."""
        return Hits(
            _best(_begin(prefix, self._categories, CATEGORY_CUT), limit),
            _best(_begin(prefix, self._brands, BRAND_CUT), limit),
        )


def _best(scores: dict[str, float], limit: int) -> tuple[Hit, ...]:
    ordered = sorted(scores.items(), key=lambda hit: (-hit[1], hit[0]))
    return tuple(Hit(slug, points) for slug, points in ordered[:limit])


def _begin(prefix: str, shelf: Shelf, cut: float) -> dict[str, float]:
    """Return slug → score of the titles that begin with a prefix, and of what a search finds."""
    typed = " ".join(words_of(prefix))
    scores = {slug: round(BEGUN * points, 3) for slug, points in _find(prefix, shelf, cut).items()}
    for title in shelf.beginning(typed) if typed else ():
        points = round(BEGUN + (1 - BEGUN) * len(typed) / len(title.text), 3)
        scores[title.slug] = max(points, scores.get(title.slug, 0))
    return scores


def _find(text: str, shelf: Shelf, cut: float) -> dict[str, float]:
    """Return slug → score of what a text means on one shelf, by the best title of each slug."""
    scores: dict[str, float] = {}
    if not (words := words_of(text)):
        return scores
    query = read(words, shelf)
    for number, found in _finalists(query, shelf).items():
        title = shelf.titles[number]
        points = round(min(score(query, title, found), 1.0), 3)
        if points >= cut:
            scores[title.slug] = max(points, scores.get(title.slug, 0))
    return scores


def _finalists(query: Reading, shelf: Shelf) -> dict[int, list[tuple[Match, Place]]]:
    """Return the likeliest titles a query leads to, each with what was found in it.

    Likely is a title of which much was found for its length: a rough mean of the two ways to score.
    """
    worth: dict[int, float] = defaultdict(float)
    for match in query.matches:
        points = match.likeness * sum(query.weights[i] for i in match.asked)
        for place in match.places:
            worth[place.title] += points
    likely = nlargest(FINALISTS, worth, key=lambda n: (worth[n] / (1 + shelf.titles[n].weight), -n))
    found: dict[int, list[tuple[Match, Place]]] = {number: [] for number in likely}
    for match in query.matches:
        for place in match.places:
            if place.title in found:
                found[place.title].append((match, place))
    return found
