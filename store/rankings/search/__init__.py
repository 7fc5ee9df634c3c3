"""Search over the titles of categories and the names of brands.

`words` tokenises, `synonyms` maps phrases to groups, `inverted_index` indexes one array, `query`
interprets a query in it, `scoring` rates a title. A query is interpreted once per array; only
titles with a posting are candidates, and only the likeliest of them are scored.

Weights and thresholds are held to the judged queries in `tests/data/search`. Comments say what
`tests/search_evaluation.py` gives for another value; with these, 663 of 694 first hits are right,
and 6 of 354 negatives (queries without an answer) get one.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from heapq import nlargest
from typing import TYPE_CHECKING, NamedTuple

from store.rankings.search.inverted_index import Document, InvertedIndex, Posting
from store.rankings.search.query import Match, ParsedQuery, parse_query
from store.rankings.search.scoring import score
from store.rankings.search.synonyms import Synonyms
from store.rankings.search.words import singular, words_of

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Document", "Hit", "Hits", "Index"]

CATEGORY_CUT = 0.5
"""Least score of a category hit. At .4, 14 more negatives are answered for 2 more right hits."""
BRAND_CUT = 0.6
"""Least score of a brand hit. At .5, 13 more negatives for 2 hits; at .7, 14 hits are lost."""
NOISE_CUT = 0.3
"""Least score of a suggestion for an unknown slug, where a wrong one does little harm."""

FINALISTS = 80
"""Candidates per array that are scored; bounds the time. 20 and 160 give the same hits."""

BEGUN = 0.9
"""Least score of a title that begins with what is being typed, and most of any other."""


class Hit(NamedTuple):
    """One thing found; `score` is 0..1 with three decimals."""

    slug: str
    score: float


class Hits(NamedTuple):
    """Hits of both arrays, best first; equal scores by slug."""

    categories: tuple[Hit, ...]
    brands: tuple[Hit, ...]


class Index:
    """An immutable index of categories and brands, a pure function of its arguments.

    It is built by :meth:`prepare`, or else by the first search, which then takes a while. ``given``
    are the arguments: equal ones make equal indexes.

    >>> index = Index([Document("couch", ("Best sofa",))], [], [["sofa", "couch"]], [])
    >>> index.search("a couch for two").categories[0].slug
    'couch'
    """

    def __init__(
        self,
        categories: Sequence[Document],
        brands: Sequence[Document],
        synonyms: Sequence[Sequence[str]],
        common_words: Sequence[str],
    ) -> None:
        """Take both arrays, groups of interchangeable phrases, and a list of English words."""
        self.given = (categories, brands, synonyms, common_words)

    def prepare(self) -> None:
        """Build the index now, so that no search waits for it."""
        _ = self._categories, self._brands

    @property
    def is_prepared(self) -> bool:
        """Whether the index is built."""
        return vars(self).keys() >= {"_categories", "_brands"}

    @cached_property
    def _categories(self) -> InvertedIndex:
        return InvertedIndex(self.given[0], self._ordinary, Synonyms(self.given[2]))

    @cached_property
    def _brands(self) -> InvertedIndex:
        return InvertedIndex(self.given[1], self._ordinary)

    @cached_property
    def _ordinary(self) -> frozenset[str]:
        return frozenset(map(singular, self.given[3]))

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
        """Return completions: titles with this beginning, shortest first, then other hits."""
        return Hits(
            _best(_begin(prefix, self._categories, CATEGORY_CUT), limit),
            _best(_begin(prefix, self._brands, BRAND_CUT), limit),
        )


def _best(scores: dict[str, float], limit: int) -> tuple[Hit, ...]:
    ordered = sorted(scores.items(), key=lambda hit: (-hit[1], hit[0]))
    return tuple(Hit(slug, points) for slug, points in ordered[:limit])


def _begin(prefix: str, index: InvertedIndex, cut: float) -> dict[str, float]:
    """Return slug → score of the titles that begin with a prefix, and of what a search finds."""
    typed = " ".join(words_of(prefix))
    scores = {slug: round(BEGUN * points, 3) for slug, points in _find(prefix, index, cut).items()}
    for title in index.beginning(typed) if typed else ():
        points = round(BEGUN + (1 - BEGUN) * len(typed) / len(title.text), 3)
        scores[title.slug] = max(points, scores.get(title.slug, 0))
    return scores


def _find(text: str, index: InvertedIndex, cut: float) -> dict[str, float]:
    """Return slug → score of the hits of a text in one index, by the best title of each slug."""
    scores: dict[str, float] = {}
    if not (words := words_of(text)):
        return scores
    query = parse_query(words, index)
    for number, found in _finalists(query, index).items():
        title = index.titles[number]
        points = round(min(score(query, title, found), 1.0), 3)
        if points >= cut:
            scores[title.slug] = max(points, scores.get(title.slug, 0))
    return scores


def _finalists(query: ParsedQuery, index: InvertedIndex) -> dict[int, list[tuple[Match, Posting]]]:
    """Return the likeliest candidates, each with the postings found in it.

    A title is likely if much of it was found for its length: a rough mean of both scores.
    """
    worth: dict[int, float] = defaultdict(float)
    for match in query.matches:
        points = match.likeness * sum(query.weights[i] for i in match.asked)
        for place in match.postings:
            worth[place.title] += points
    likely = nlargest(FINALISTS, worth, key=lambda n: (worth[n] / (1 + index.titles[n].weight), -n))
    found: dict[int, list[tuple[Match, Posting]]] = {number: [] for number in likely}
    for match in query.matches:
        for place in match.postings:
            if place.title in found:
                found[place.title].append((match, place))
    return found
