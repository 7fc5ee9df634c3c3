"""How well one title answers a query, 0..1."""

from __future__ import annotations

from operator import mul
from typing import TYPE_CHECKING

from rapidfuzz import fuzz

if TYPE_CHECKING:
    from collections.abc import Iterable

    from store.rankings.search.reading import Match, Reading
    from store.rankings.search.shelf import Place, Title

QUERY_SHARE, TITLE_SHARE, TEXT_SHARE = 0.55, 0.3, 0.15
"""Shares of a keyword score: the query covered, the title covered, the likeness of the texts."""

SAME_TEXT, SAME_TEXT_SHARE = 0.85, 0.8
"""Texts so alike are one text with typing mistakes, and score this share of their likeness."""

LITTLE_SAID = 0.6
"""What a sentence score loses when nothing telling was matched; halved with each telling word."""

NAMED_COVERAGE, NOT_NAMED = 0.6, 0.5
"""An ordinary word is a name if this much of the query is about it; else the score is cut so."""


def score(query: Reading, title: Title, found: Iterable[tuple[Match, Place]]) -> float:
    """Return how well a title answers a query, by the better of two ways to ask.

    Keywords: how much of the query the title covers. A sentence: how much of the title the query
    covers, since most words of a sentence are about the one who asks.
    """
    asked, told = [0.0] * len(query.weights), [0.0] * len(title.weights)
    for match, place in found:
        for i in match.asked:
            asked[i] = max(asked[i], match.likeness)
        for i in place.words:
            told[i] = max(told[i], match.likeness)
    matched = sum(map(mul, query.weights, asked))
    query_coverage = matched / sum(query.weights)
    title_coverage = sum(map(mul, title.weights, told)) / title.weight
    keywords = _keywords(query, title, query_coverage, title_coverage)
    if not query.sentence:
        return keywords
    if title.doubtful and len(told) == 1:
        return keywords if query_coverage >= NAMED_COVERAGE else keywords * NOT_NAMED
    if title.doubtful and title.text not in query.text:
        return keywords
    return max(keywords, title_coverage * (1 - LITTLE_SAID * 0.5**matched))


def _keywords(query: Reading, title: Title, query_coverage: float, title_coverage: float) -> float:
    alike: float = fuzz.ratio(query.text, title.text) / 100
    blended = QUERY_SHARE * query_coverage + TITLE_SHARE * title_coverage + TEXT_SHARE * alike
    return max(blended, alike * SAME_TEXT_SHARE) if alike >= SAME_TEXT else blended
