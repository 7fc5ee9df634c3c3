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

OTHER_HEAD = 0.8
"""Share a score keeps if the title lacks the head noun, which names another thing.

At .7, 2 right hits are lost; at .9, 17 more of 319 everyday negatives are answered.
"""

ACCESSORY, REVERSED = 0.75, 0.95
"""Shares a score keeps if the query's head noun is not the title's, which it has not, or has.

A laptop bag is no laptop, and printer ink no ink printer.
"""
UNASKED_PURPOSE = 0.9
"""Share a score keeps if a title is for somebody or something of which the query says nothing.

At 1, "headphones" finds those for kids first; at .8, accessories come before such titles.
"""

QUALIFIER, WHOLE = 0, 3
"""Readings of a title: a query has not its head noun, or all its telling words as they are."""
LITTLE_WORDS = PREPOSITIONS | ARTICLES
"""Words of a title that a query may leave out and be whole; without "down" no jacket is one."""
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
    the title, 2 where it has all telling words but some in other words, 3 where as they are.
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
    begun = all(match.guessed and len(match.asked) == 1 for match, _ in places)
    reading = 1 if begun else _reading(title, places)
    share = _same_thing(query, title, told, places) if reading < WHOLE else 1
    if query.head is not None and not asked[query.head]:
        share = OTHER_HEAD
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
    """Return how a query has the telling words of a title; see :class:`Rating`.

    What other words make of words that the title has as they are says nothing more of it.
    """
    group = LIKENESS["group"]
    plain = {i for match, _ in places if match.likeness > group for i in match.asked}
    told = [0.0] * len(title.words)
    for match, place in places:
        if match.likeness > group or not plain.issuperset(match.asked):
            for i in place.words:
                told[i] = max(told[i], match.likeness)
    pairs = zip(title.words, told, strict=True)
    is_name = title.head is None
    least = min((alike for word, alike in pairs if is_name or word not in LITTLE_WORDS), default=1)
    if least > group:
        return WHOLE
    if title.head is not None and not told[title.head]:
        return QUALIFIER
    return 2 if least else 1


def _same_thing(
    query: ParsedQuery,
    title: Title,
    told: list[float],
    places: Sequence[tuple[Match, Posting]],
) -> float:
    """Return the share that a score keeps for the head noun of a title of which a part is asked.

    What is begun or mistyped may be any word, and a phrase in other words names the thing before
    its head noun.
    """
    is_certain = False
    for match, place in places:
        if query.head in match.asked:
            is_phrase = match.guessed and len(match.asked) > 1
            if title.head in place.words or (is_phrase and place.words[-1] < (title.head or 0)):
                return 1
            is_certain |= match.likeness >= LIKENESS["part"] and (is_phrase or not match.guessed)
    if not is_certain:
        return 1
    return ACCESSORY if title.head is None or not told[title.head] else REVERSED


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
