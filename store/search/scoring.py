"""The score of one title for a query, 0..1, and whether it may be called sure."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp2
from operator import mul
from typing import NamedTuple

from rapidfuzz import fuzz

from store.search.inverted_index import Posting, Title
from store.search.query import LIKENESS, Match, ParsedQuery

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

Places = Sequence[tuple[Match, Posting]]
"""Matches of a query, each with its posting in one title."""

OTHER_THING = 0.75
"""Share a score keeps if the query's head noun is not the title's: a laptop bag is not a laptop.

At .8, 5 more of 260 modifiers and 2 of 59 other queries without an answer have a hit.
"""

UNASKED_PURPOSE = 0.9
"""Share a score keeps if a title is for somebody or something of which the query says nothing.

At 1, "headphones" finds those for kids first; at .8, accessories come before such titles.
"""

PART, REWORDED, WHOLE = range(3)
"""How a title reads beside a query. PART: one has a telling word that the other lacks. REWORDED:
all words correspond, some by a synonym or without a generic noun. WHOLE: word for word."""
SAME_COVERAGE = 0.1
"""Difference of coverage up to which another title may be meant as well."""

NAMED_COVERAGE, NOT_NAMED = 0.5, 0.5
"""Coverage from which one ordinary word is a brand; else its score keeps the second share.

At a coverage of .4, 1 more negative is answered; at .6, 2 right hits are lost.
"""


class Rating(NamedTuple):
    """The score of a title for a query, and the shares of both that correspond; all 0..1."""

    points: float
    coverage: float
    title_coverage: float
    query: ParsedQuery
    title: Title
    places: Places

    def is_clear(self, ratings: Sequence[Rating]) -> bool:
        """Return whether a query means this title and, among those rated, no other as well."""
        reading = self.reading()
        if reading == WHOLE or (reading == PART and self.query.of_things):
            return reading == WHOLE
        return not any(
            other.title.slug != self.title.slug
            and other.coverage > self.coverage - SAME_COVERAGE
            and (other.coverage > self.coverage or other.reading() >= reading)
            for other in ratings
        )

    def reading(self) -> int:
        """Return how far a query and a title have the same words, from ``PART`` to ``WHOLE``.

        A synonym is ignored for words of the query that the title has as written.
        """
        title, group = self.title, LIKENESS["group"]
        plain = {i for match, _ in self.places if match.likeness > group for i in match.positions}
        in_title = [0.0] * len(title.words)
        for match, place in self.places:
            if match.likeness > group or not plain.issuperset(match.positions):
                for i in place.positions:
                    in_title[i] = max(in_title[i], match.likeness)
        in_query = {i for match, _ in self.places for i in match.positions}
        # A brand is asked about in sentences full of other words; a thing has no word too many.
        if self.query.of_things and not in_query.issuperset(self.query.telling):
            return PART
        missing = [i for i, likeness in enumerate(in_title) if likeness <= group]
        if not missing:
            return WHOLE
        is_reworded = all(in_title[i] for i in missing) or all(map(title.is_generic, missing))
        return REWORDED if is_reworded else PART


def rate(query: ParsedQuery, title: Title, weights: Sequence[float], places: Places) -> Rating:
    """Return how well a title answers a query: the better of two scores.

    Keywords: how much of the query the title covers. A sentence: how much of the title the query
    covers, since most words of a sentence are about the one who asks.
    """
    in_query, in_title = [0.0] * len(query.weights), [0.0] * len(weights)
    for match, place in places:
        likeness = match.likeness
        for i in match.positions:
            if likeness > in_query[i]:  # noqa: PLR1730 - half the time of max()
                in_query[i] = likeness
        for i in place.positions:
            if likeness > in_title[i]:  # noqa: PLR1730
                in_title[i] = likeness
    matched: float = sum(map(mul, query.weights, in_query))
    query_coverage = matched / query.weight
    title_coverage: float = sum(map(mul, weights, in_title)) / sum(weights)
    is_same = query.head is None or query.text == title.text
    share = 1 if is_same else _share(query.head or 0, title, places)
    alike: float = fuzz.ratio(query.text, title.text) / 100
    keywords = QUERY_SHARE * query_coverage + TITLE_SHARE * title_coverage + TEXT_SHARE * alike
    if alike >= SAME_TEXT:
        keywords = max(keywords, alike * SAME_TEXT_SHARE)
    keywords *= share
    if (
        title.head is not None
        and title.purpose < len(in_title)
        and not any(in_title[title.purpose :])
    ):
        keywords *= UNASKED_PURPOSE
    points = INEXACT if keywords > INEXACT and _is_guess(query, places) else keywords
    if title.doubtful and not _is_named(query, title, in_query):
        is_noun = any(in_query[i] for i in query.nouns)
        is_name = len(in_title) > 1 or (query_coverage >= NAMED_COVERAGE and not is_noun)
        points *= 1 if is_name else NOT_NAMED
    elif query.sentence:
        # The more was matched, the less it matters what else the sentence says.
        covered = share * title_coverage * (1 - LITTLE_SAID * exp2(-matched))
        points = max(points, min(INEXACT, covered))
    return Rating(points, query_coverage, title_coverage, query, title, places)


def _share(head: int, title: Title, places: Places) -> float:
    """Return the share that a score keeps for the head nouns of a query and of a title.

    What is begun or mistyped may be any word.
    """
    heads = [(match, place) for match, place in places if head in match.positions]
    if any(title.head in place.positions for _, place in heads):
        return 1
    if heads and all(match.guessed or match.likeness < LIKENESS["part"] for match, _ in heads):
        return 1
    return OTHER_THING


def _is_guess(query: ParsedQuery, places: Places) -> bool:
    """Return whether a telling word of the query counts in a title by a guess alone."""
    certain = {i for match, _ in places if not match.guessed for i in match.positions}
    return not all(certain | query.fillers >= set(match.positions) for match, _ in places)


def _is_named(query: ParsedQuery, title: Title, in_query: Sequence[float]) -> bool:
    """Return whether ordinary words are a name: several together, or one that stands bare."""
    if len(title.words) > 1:
        return title.text in query.text
    return any(in_query[i] == 1 for i in query.bare)
