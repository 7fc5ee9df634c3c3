"""How well one title answers a query, 0..1."""

from __future__ import annotations

from math import exp2
from operator import mul
from typing import TYPE_CHECKING

from rapidfuzz import fuzz

if TYPE_CHECKING:
    from collections.abc import Collection

    from store.search.inverted_index import Posting, Title
    from store.search.query import Match, ParsedQuery

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

QUALIFIED = 0.03
"""What a title gains with each qualifier that it has, too.

At 0, 35 of 44 titles with "free" or "budget" lose to the same without it for "vpn free" or "laptop
cheap"; at .05, one more of 190 needs is missed.
"""
NAMED_COVERAGE, NOT_NAMED = 0.5, 0.5
"""Coverage from which one ordinary word is a brand; else its score keeps the second share.

At a coverage of .4, 1 more negative is answered; at .6, 2 right hits are lost.
"""


def score(query: ParsedQuery, title: Title, found: Collection[tuple[Match, Posting]]) -> float:
    """Return how well a title answers a query, 0..1: the better of two scores.

    Keywords: how much of the query the title covers. A sentence: how much of the title the query
    covers, since most words of a sentence are about the one who asks.
    """
    asked, told = [0.0] * len(query.weights), [0.0] * len(title.weights)
    for match, place in found:
        for i in match.asked:
            asked[i] = max(asked[i], match.likeness)
        for i in place.words:
            told[i] = max(told[i], match.likeness)
    matched: float = sum(map(mul, query.weights, asked))
    query_coverage = matched / sum(query.weights)
    title_coverage: float = sum(map(mul, title.weights, told)) / title.weight
    keywords = _keywords(query, title, query_coverage, title_coverage)
    other = OTHER_HEAD if query.head is not None and not asked[query.head] else 1
    keywords *= other
    keywords += QUALIFIED * sum([asked[i] > 0 for i in query.qualifiers])
    if keywords > INEXACT and _is_guess(query, found):
        keywords = INEXACT
    if title.doubtful and not _is_named(query, title, asked):
        a_noun = any(asked[i] for i in query.nouns)
        named = len(told) > 1 or (query_coverage >= NAMED_COVERAGE and not a_noun)
        return keywords if named else keywords * NOT_NAMED
    if not query.sentence:
        return keywords
    said = other * title_coverage * (1 - LITTLE_SAID * exp2(-matched))
    return max(keywords, min(INEXACT, said))


def _keywords(
    query: ParsedQuery, title: Title, query_coverage: float, title_coverage: float
) -> float:
    """Blend both coverages with the likeness of the whole texts."""
    alike: float = fuzz.ratio(query.text, title.text) / 100
    blended = QUERY_SHARE * query_coverage + TITLE_SHARE * title_coverage + TEXT_SHARE * alike
    return max(blended, alike * SAME_TEXT_SHARE) if alike >= SAME_TEXT else blended


def _is_guess(query: ParsedQuery, found: Collection[tuple[Match, Posting]]) -> bool:
    """Tell whether a telling word of the query counts in a title by a guess alone."""
    certain = {i for match, _ in found if not match.guessed for i in match.asked}
    return not all(certain | query.fillers >= set(match.asked) for match, _ in found)


def _is_named(query: ParsedQuery, title: Title, asked: list[float]) -> bool:
    """Tell whether ordinary words are used as a name: several together, or one that stands bare."""
    if len(title.weights) > 1:
        return title.text in query.text
    return any(asked[i] == 1 for i in query.bare)
