"""How well one title answers a query, 0..1."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp2
from operator import mul
from typing import NamedTuple

from rapidfuzz import fuzz

from store.search.inverted_index import Posting, Title
from store.search.query import LIKENESS, Match, ParsedQuery
from store.search.words import ARTICLES, PREPOSITIONS

QUERY_SHARE, TITLE_SHARE, TEXT_SHARE = 0.55, 0.3, 0.15
"""Shares of a keyword score: the query covered, the title covered, the likeness of the texts.

A tenth less of the first loses 10 right hits, a tenth more answers 4 more negatives.
"""

SAME_TEXT, SAME_TEXT_SHARE = 0.85, 0.8
"""Texts this alike differ by typing mistakes and score this share of it. At .9, 1 hit is lost."""

LITTLE_SAID = 0.6
"""Loss of a sentence score, halved with each unit of weight matched. At .4, 11 more negatives."""

INEXACT = 0.899
"""Most that a title scores by a sentence that covers it, or if a word of the query is only guessed.

What else the sentence says may mean something else, and so may the word: 3 of 344
first hits called exact were wrong by such a guess, and are called likely now.
"""

OTHER_THING, REVERSED = 0.75, 0.95
"""Shares a score keeps if the query's head noun is not the title's, and if the title has both.

A laptop bag is no laptop, a table saw no blade for one, and printer ink no ink printer. At .8 for
the first, 5 more of 260 modifiers and 2 of 59 other queries without an answer have a hit.
"""

UNASKED_PURPOSE = 0.9
"""Share a score keeps if a title is for somebody or something of which the query says nothing.

At 1, "headphones" finds those for kids first; at .8, accessories come before such titles.
"""

QUALIFIER, WHOLE = 0, 3
"""Readings of a title: a query has not its head noun, or all its words as they are."""
LITTLE_WORDS = PREPOSITIONS | ARTICLES
"""Words that a query may leave out: a gaming TV is one for gaming, but no jacket a down jacket."""
SAME_COVERAGE = 0.1
"""How much less of a query another title may cover, and be meant as well."""

QUALIFIED = 0.03
"""What a title gains with each qualifier that it has, too.

At 0, 35 of 44 titles with "free" or "budget" lose to the same without it for "vpn free" or "laptop
cheap"; at .05, one more of 190 needs is missed.
"""
NAMED_COVERAGE, NOT_NAMED = 0.5, 0.5
"""Coverage from which one ordinary word is a brand; else its score keeps the second share.

At a coverage of .4, 1 more negative is answered; at .6, 2 right hits are lost.
"""


class Rating(NamedTuple):
    """How well a title answers a query: `points`, and the share of the query it covers, 0..1.

    ``reading`` is 0 where the query has not the head noun of the title, 1 where it has a part of
    the title, 2 where it has all words but some in other words, 3 where as they are.
    ``ordered`` if the query is keywords.
    """

    slug: str
    points: float
    coverage: float
    reading: int
    ordered: bool

    def is_clear(self, ratings: Sequence[Rating]) -> bool:
        """Tell whether a query means this title and, among those rated, no other as well."""
        if self.reading in (QUALIFIER, WHOLE):
            return self.reading == WHOLE
        return not any(
            other.slug != self.slug
            and other.coverage
            > self.coverage - (SAME_COVERAGE if other.reading >= self.reading else 0)
            for other in ratings
        )


def rate(
    query: ParsedQuery,
    title: Title,
    weights: Sequence[float],
    places: Sequence[tuple[Match, Posting]],
) -> Rating:
    """Return how well a title answers a query: the better of two scores.

    Keywords: how much of the query the title covers. A sentence: how much of the title the query
    covers, since most words of a sentence are about the one who asks.
    """
    asked, told = [0.0] * len(query.weights), [0.0] * len(weights)
    for match, place in places:
        for i in match.asked:
            asked[i] = max(asked[i], match.likeness)
        for i in place.words:
            told[i] = max(told[i], match.likeness)
    matched: float = sum(map(mul, query.weights, asked))
    query_coverage = matched / sum(query.weights)
    title_coverage: float = sum(map(mul, weights, told)) / sum(weights)
    reading = _reading(title, places)
    is_whole = query.head is None or (reading == WHOLE and asked[query.head])
    share = 1 if is_whole else _share(query, title, told, places)
    keywords = _keywords(query, title, query_coverage, title_coverage) * share
    purpose = told[title.purpose :] if title.head is not None else ()
    if purpose and not any(purpose):
        keywords *= UNASKED_PURPOSE
    keywords += QUALIFIED * sum([asked[i] > 0 for i in query.qualifiers])
    points = INEXACT if keywords > INEXACT and _is_guess(query, places) else keywords
    if title.doubtful and not _is_named(query, title, asked):
        a_noun = any(asked[i] for i in query.nouns)
        is_name = len(told) > 1 or (query_coverage >= NAMED_COVERAGE and not a_noun)
        points *= 1 if is_name else NOT_NAMED
    elif query.sentence:
        said = share * title_coverage * (1 - LITTLE_SAID * exp2(-matched))
        points = max(points, min(INEXACT, said))
    return Rating(title.slug, points, query_coverage, reading, query.head is not None)


def _reading(title: Title, places: Sequence[tuple[Match, Posting]]) -> int:
    """Return how a query has the words of a title; see :class:`Rating`.

    What other words make of words that the title has as they are says nothing more of it.
    """
    little = LITTLE_WORDS if title.head is not None else ()
    group = LIKENESS["group"]
    plain = {i for match, _ in places if match.likeness > group for i in match.asked}
    told = [0.0] * len(title.words)
    for match, place in places:
        if match.likeness > group or not plain.issuperset(match.asked):
            for i in place.words:
                told[i] = max(told[i], match.likeness)
    pairs = zip(title.words, told, strict=True)
    least = min([alike for word, alike in pairs if word not in little], default=1)
    if least > group:
        return WHOLE
    if title.head is not None and not told[title.head]:
        return QUALIFIER
    return 2 if least else 1


def _share(
    query: ParsedQuery,
    title: Title,
    told: list[float],
    places: Sequence[tuple[Match, Posting]],
) -> float:
    """Return the share that a score keeps for the head nouns of a query and of a title.

    What is begun or mistyped may be any word.
    """
    heads = [(match, place) for match, place in places if query.head in match.asked]
    if any(title.head in place.words for _, place in heads):
        return 1
    if heads and all(match.guessed or match.likeness < LIKENESS["part"] for match, _ in heads):
        return 1
    return REVERSED if heads and title.head is not None and told[title.head] else OTHER_THING


def _keywords(
    query: ParsedQuery, title: Title, query_coverage: float, title_coverage: float
) -> float:
    """Blend both coverages with the likeness of the whole texts."""
    alike: float = fuzz.ratio(query.text, title.text) / 100
    blended = QUERY_SHARE * query_coverage + TITLE_SHARE * title_coverage + TEXT_SHARE * alike
    return max(blended, alike * SAME_TEXT_SHARE) if alike >= SAME_TEXT else blended


def _is_guess(query: ParsedQuery, places: Sequence[tuple[Match, Posting]]) -> bool:
    """Tell whether a telling word of the query counts in a title by a guess alone."""
    certain = {i for match, _ in places if not match.guessed for i in match.asked}
    return not all(certain | query.fillers >= set(match.asked) for match, _ in places)


def _is_named(query: ParsedQuery, title: Title, asked: list[float]) -> bool:
    """Tell whether ordinary words are used as a name: several together, or one that stands bare."""
    if len(title.words) > 1:
        return title.text in query.text
    return any(asked[i] == 1 for i in query.bare)
