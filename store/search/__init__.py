"""Search over the titles of categories and the names of brands.

`words` tokenises, knows synonyms and words that only ask about a ranking, `inverted_index` indexes
one array, `query` interprets a query in it, `scoring` rates a title. A query is interpreted once
per array; only titles with a posting are candidates, and only the likeliest of them are scored.
Where no score is that of an exact match, `nearness` compares the query with all that is said of
each category; where a query has no sure hit, the bare name in it is searched, too, and its sureness
counts if both find the same.

Weights and thresholds are held to the judged queries in `tests/data/search`. Comments say what
`tests/benchmarks/relevance.py` gives for another value; with these, 663 of 694 first hits
are right, and 6 of 354 negatives (queries without an answer) get one.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from itertools import chain
from operator import itemgetter
from typing import Literal, NamedTuple

from msgspec import structs

from store.search.inverted_index import Document, InvertedIndex, Posting, Title
from store.search.nearness import Compare, Likeness, Nearness, NearnessIndex, fused
from store.search.query import Match, ParsedQuery, parse_query
from store.search.scoring import Rating, rate
from store.search.words import (
    FILLERS,
    SynonymGroups,
    Words,
    singular,
    split_at_best,
    subject_of,
    words_of,
)

__all__ = ["MOST_RELATED", "SURE", "Compare", "Document", "Hit", "Hits", "Index", "Kind", "Label"]

CATEGORY_CUT = 0.5
"""Least score of a category hit by words alone. At .4, 14 more negatives for 2 more hits."""
BRAND_CUT = 0.6
"""Least score of a brand hit. At .5, 13 more negatives for 2 hits; at .7, 14 hits are lost."""
NOISE_CUT = 0.3
"""Least score of a suggestion for an unknown slug, where a wrong one does little harm."""

FINALISTS = 60
"""Candidates of each kind that are scored; bounds the time. 20 and 160 give the same hits."""
PROMISING = 0.3
"""Share of the best candidate's rough score that another needs to be scored at all."""

MIN_NEARNESS_SHARE = 0.6
"""Share of the nearest category's nearness that a hit needs. At .7, 3 right hits are lost."""
MIN_SHARED_TO_CORRECT, MIN_SHARED_TO_FIND, MIN_SHARED_TO_BE_LIKELY = 2, 3, 4
"""Words, fillers aside, that a text must share with the nearest category: to correct hits, to find
one, to be likely.

At 2 to find, 97 more of 319 everyday negatives are answered; at 4, 6 of 99 needs have no hit. At 3
to be likely, 15 more negatives are called likely; at 5, 15 needs fewer.
"""
MIN_LEAD = 1.3
"""Least ratio of a likely match to the next category. At 1.1, 14 more are likely, 2 wrongly."""
DEMOTED_KEYWORDS_FROM, DEMOTED_OTHERS_FROM = 0.6, 0.78
"""Scores, of keywords and of other queries, from which a hit is brought below likely if another
title may be meant as well.

At .6 for both, 2 of 99 needs fewer are first; at .78 for both, near ties of keywords are lost.
"""
NEAREST_SCORE, NEAREST_LIKELY_SCORE = 0.75, 0.85
"""Scores of the nearest category, not sure and likely. At .65 for the first, 2 hits are lost."""
MIN_COVERAGE_TO_RELATE = 0.25
"""Least coverage from which a title that stands whole in a query ("vpn china") is related first.

At 0, 1 of 39 riddles more has a wrong one first; at .4, "vpn that works in China" has none.
"""
MOST_RELATED = 5

VERSUS = re.compile(r"\b(?:vs|versus)\b", re.IGNORECASE)
"""The word between two things that are to be compared."""
OR = re.compile(r"\bor\b", re.IGNORECASE)
"""The word between two things of which either may be meant."""


Kind = Literal["categories", "brands"]
"""The kinds of hits."""
Label = Literal["exact", "likely", "related"]
"""How sure a hit is, by its score."""

EXACT, LIKELY, MOST_UNSURE = 0.9, 0.8, 0.799
"""Least scores of the labels; tests/README.md has how many first hits of each are right."""
SURE: tuple[Label, ...] = ("exact", "likely")
"""Labels of hits that may be acted on without asking back."""


class Hit(NamedTuple):
    """One thing found; `score` is 0..1 with three decimals."""

    slug: str
    score: float

    @property
    def match(self) -> Label:
        """The sureness of the hit."""
        return "exact" if self.score >= EXACT else "likely" if self.score >= LIKELY else "related"


class Hits(NamedTuple):
    """Hits of both kinds, best first; equal scores by slug.

    `related` are slugs of the categories closest in meaning, where nothing exact or likely was
    found. `is_final` unless a sentence model was to be asked and could not be at that moment.
    """

    categories: tuple[Hit, ...]
    brands: tuple[Hit, ...]
    related: tuple[str, ...] = ()
    is_final: bool = True


class _Arrays(NamedTuple):
    """The parts of a built index."""

    categories: InvertedIndex
    brands: InvertedIndex
    nearness: NearnessIndex


class Index:
    """An immutable index of categories and brands, a pure function of its arguments.

    It is built by :meth:`prepare`, or else by the first search, which then takes a while. ``given``
    are the arguments: equal ones make equal indexes. ``before`` only saves work: what was built of
    it is taken over where that is the same.

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
        before: Index | None = None,
    ) -> None:
        """Take both arrays, groups of interchangeable phrases, and a list of English words."""
        self.given = (categories, brands, synonyms, common_words)
        self._before = before if before and before.is_prepared else None

    def prepare(self) -> None:
        """Build the index now, so that no search waits for it."""
        _ = self._arrays

    @property
    def is_prepared(self) -> bool:
        """A flag: the index is built."""
        return "_arrays" in vars(self)

    @cached_property
    def _arrays(self) -> _Arrays:
        """The parts of the index; those that did not change are the objects of the index before."""
        categories, brands, groups, common = self.given
        before, self._before = self._before, None
        if before is None or before.given[2:] != (groups, common):
            synonyms, ordinary = SynonymGroups(groups), frozenset(map(singular, common))
            return _Arrays(
                InvertedIndex(categories, ordinary, synonyms),
                InvertedIndex(brands, ordinary),
                NearnessIndex(categories, synonyms),
            )
        arrays = before._arrays  # noqa: SLF001 - of the same class
        if categories != before.given[0]:
            arrays = arrays._replace(
                categories=arrays.categories.update(categories),
                nearness=NearnessIndex(categories, arrays.nearness.synonyms),
            )
        if brands != before.given[1]:
            arrays = arrays._replace(brands=arrays.brands.update(brands))
        return arrays

    @cached_property
    def compared(self) -> tuple[Document, ...]:
        """The categories as a sentence model reads them.

        In place of situations that are not there, it reads the phrases of the groups that a title
        mentions: without them 7 of 240 right first hits fall behind others.
        """
        phrases = self._arrays.nearness.synonyms.phrases
        return tuple(
            structs.replace(
                item,
                situations=item.situations or tuple(sorted(chain(*phrases(item.titles[0])))),
            )
            for item in self.given[0]
        )

    @cached_property
    def _titles_by_question(self) -> dict[Words, str]:
        """The titles of the categories, by the words of each question that is of one alone."""
        titles: dict[Words, set[str]] = {}
        for item in self.given[0]:
            for question in item.questions:
                titles.setdefault(words_of(question), set()).add(item.titles[0])
        return {words: own.pop() for words, own in titles.items() if len(own) == 1}

    def search(self, query: str, limit: int = 10, compare: Compare | None = None) -> Hits:
        """Return what a query means, at most `limit` of each kind; nothing for nonsense.

        Where nothing is exact or likely, `compare` has a say in the order of the categories.
        """
        # Who asks a category's own question means nothing else.
        title = self._titles_by_question.get(words_of(query))
        whole = title or subject_of(query)
        sides = [whole] if title else OR.split(whole)
        if len(sides) > 1 and (found := self._each_of(sides, limit)):
            return found
        hits = self._search(whole, limit, compare)
        if any(hit.match in SURE for hit in (*hits.categories, *hits.brands)):
            return hits
        before, thing = split_at_best(whole)
        knows = self._arrays.nearness.knows  # a wish, as in "for kids, the best headphones"
        if any(knows(word) for word in before if word not in FILLERS):
            return hits
        named = self._search(" ".join(thing), limit, None)
        first = next(iter(named.categories), None)
        near = [hit.slug for hit in hits.categories] or hits.related
        return named if first and first.match in SURE and first.slug in near else hits

    def _each_of(self, sides: Sequence[str], limit: int) -> Hits | None:
        """Return the hits of "X or Y" if each side has a sure one: a title may have both words."""
        categories: dict[str, float] = {}
        brands: dict[str, float] = {}
        for side in sides:
            hits = self._search(side, limit, None)
            if not any(hit.match in SURE for hit in (*hits.categories, *hits.brands)):
                return None
            _take_best(categories, dict(hits.categories))
            _take_best(brands, dict(hits.brands))
        return Hits(_best(categories, limit), _best(brands, limit))

    def _search(self, query: str, limit: int, compare: Compare | None) -> Hits:
        arrays = self._arrays
        categories: dict[str, float] = {}
        brands: dict[str, float] = {}
        has_no_head = is_sure = True
        rated: list[Rating] = []
        sides = [words for text in VERSUS.split(query) if (words := words_of(text))]
        for words in sides:  # each side of "X vs Y" is searched for alone
            ratings = _rate(words, arrays.categories)
            has_no_head = not ratings or ratings[0].query.head is None
            things = _hits(ratings, CATEGORY_CUT)
            rated += ratings
            names = _hits(_rate(words, arrays.brands), BRAND_CUT, ratings)
            is_sure = is_sure and max((*things.values(), *names.values()), default=0) >= LIKELY
            _take_best(categories, things)
            _take_best(brands, names)
        if len(sides) > 1 and not is_sure:  # an answer about one side is none to the question
            categories, brands = _unsure(categories), _unsure(brands)
        best = max((*categories.values(), *brands.values()), default=0)
        # Nearness takes a fifth of a search, and can add nothing to an exact hit.
        if best >= EXACT or (best and len(sides) > 1):
            return Hits(_best(categories, limit), _best(brands, limit))
        words = words_of(query)
        titled, near = categories, arrays.nearness.nearest(words)
        categories = _corrected(titled, near, {} if has_no_head else titled)
        related: list[str] = []
        likeness: Likeness | None = {}
        if max((*categories.values(), *brands.values()), default=0) < LIKELY:
            whole = [
                rating.title.slug
                for rating in rated
                if rating.title_coverage == 1 and rating.coverage >= MIN_COVERAGE_TO_RELATE
            ]
            nearest = dict.fromkeys([*whole, *near.relative_scores])
            related = [slug for slug in nearest if slug not in categories]
            if sum(word not in FILLERS for word in words) == 1:
                related = []  # one word alone is near to nothing: a lawyer buys no shoes for one
            if compare and (related or categories):  # where words find nothing, a model may not
                likeness = compare(query, self.compared)
            if likeness:
                categories, related = _ordered(categories, titled, fused(near, likeness))
        hits = _best(categories, limit), _best(brands, limit)
        return Hits(*hits, tuple(related[:MOST_RELATED]), likeness is not None)

    def closest(
        self, text: str, kind: Kind, limit: int = 5, cut: float = NOISE_CUT
    ) -> tuple[Hit, ...]:
        """Return what a wrong slug, title or name may have meant, best first."""
        words = words_of(text)
        ratings = _rate(words, getattr(self._arrays, kind), 4 * limit) if words else []
        return _best(_hits(ratings, cut), limit)

    def complete(self, prefix: str, kind: Kind, limit: int = 8) -> tuple[str, ...]:
        """Return slugs of completions: titles with this beginning, shortest first, then hits."""
        typed, index = " ".join(words_of(prefix)), getattr(self._arrays, kind)
        begun = sorted((len(title.text), title.slug) for title in index.beginning(typed) if typed)
        cut = CATEGORY_CUT if kind == "categories" else BRAND_CUT
        others = [hit.slug for hit in self.closest(prefix, kind, limit, cut)]
        return tuple(dict.fromkeys([*(slug for _, slug in begun), *others]))[:limit]


def _corrected(
    scores: dict[str, float], near: Nearness, unsure: Collection[str]
) -> dict[str, float]:
    """Return the hits of the words, none of them exact, corrected by nearness in meaning.

    A hit that shares far fewer words with the text than the nearest category is dropped, and only
    the nearest may be a likely match. A text that shares enough words with the nearest one finds
    it, and those almost as near; it is a likely match where no other comes close. None of the
    `unsure` is: what keywords have left over does not become what was asked for by being nearest.
    """
    if near.common_words < MIN_SHARED_TO_CORRECT:
        return scores
    agreed = {
        slug: share for slug, share in near.relative_scores.items() if share >= MIN_NEARNESS_SHARE
    }
    corrected = {
        slug: points if agreed[slug] == 1 else min(points, MOST_UNSURE)
        for slug, points in scores.items()
        if slug in agreed
    }
    if near.common_words < MIN_SHARED_TO_FIND:
        return corrected
    for place, (slug, share) in enumerate(agreed.items()):
        sure = (
            place == 0
            and slug not in unsure
            and near.common_words >= MIN_SHARED_TO_BE_LIKELY
            and near.lead >= MIN_LEAD
        )
        points = NEAREST_LIKELY_SCORE if sure else round(NEAREST_SCORE * share, 3)
        corrected[slug] = max(corrected.get(slug, 0), points)
    return corrected


def _ordered(
    hits: dict[str, float], titled: dict[str, float], points: dict[str, float]
) -> tuple[dict[str, float], list[str]]:
    """Return hits that are not sure, and what is related, where a model has a say.

    As many are hits as there were, so that it makes none where words found none. What a title's own
    words score stands: else 5 of 694 right first hits fall behind others.
    """
    scores = {slug: round(NEAREST_SCORE * share, 3) for slug, share in points.items()}
    for slug in hits.keys() & titled.keys():
        scores[slug] = max(scores.get(slug, 0), min(hits[slug], titled[slug]))
    order = sorted(scores, key=lambda slug: (-scores[slug], slug))
    return {slug: scores[slug] for slug in order[: len(hits)]}, order[len(hits) :]


def _best(scores: dict[str, float], limit: int) -> tuple[Hit, ...]:
    ordered = sorted(scores.items(), key=lambda hit: (-hit[1], hit[0]))
    return tuple(Hit(slug, points) for slug, points in ordered[:limit])


def _rate(words: Words, index: InvertedIndex, most: int = FINALISTS) -> list[Rating]:
    """Return the ratings of the likeliest titles of one index."""
    query = parse_query(words, index)
    titles = _finalists(query, most)
    return [rate(query, title, index.weights(title), places) for title, places in titles]


def _hits(ratings: list[Rating], cut: float, rivals: Sequence[Rating] = ()) -> dict[str, float]:
    """Return slug → score, by the best title of each slug; what is one of many is not sure."""
    scores: dict[str, float] = {}
    others = (*ratings, *rivals)
    for rating in ratings:
        points, slug = min(rating.points, 1.0), rating.title.slug
        least = DEMOTED_OTHERS_FROM if rating.query.head is None else DEMOTED_KEYWORDS_FROM
        if points >= least and not rating.is_clear(others):
            points = least + (points - least) / (1 - least) * (MOST_UNSURE - least)
        if points >= cut:
            scores[slug] = max(round(points, 3), scores.get(slug, 0))
    return scores


def _unsure(scores: dict[str, float]) -> dict[str, float]:
    """Return the same hits, none of them sure."""
    return {slug: min(points, MOST_UNSURE) for slug, points in scores.items()}


def _take_best(scores: dict[str, float], others: dict[str, float]) -> None:
    """Take other scores in where they are better."""
    scores.update({slug: max(points, scores.get(slug, 0)) for slug, points in others.items()})


def _finalists(
    query: ParsedQuery, most: int
) -> Iterable[tuple[Title, list[tuple[Match, Posting]]]]:
    """Return the likeliest candidates, each with the postings found in it.

    A title is likely if much of it was found for its length: a rough mean of both scores. Fillers
    alone make no candidate, but count in one that a telling word has made.
    """
    worth: defaultdict[Title, float] = defaultdict(float)
    telling = [match for match in query.matches if not query.fillers.issuperset(match.positions)]
    for match in telling or query.matches:
        points = match.likeness * sum([query.weights[i] for i in match.positions])
        for place in match.postings:
            worth[place.title] += points
    rough = [(points / (1 + len(title.words)), title) for title, points in worth.items()]
    least = PROMISING * max(rough, default=(0,), key=itemgetter(0))[0]
    promising = [
        (-points, title.slug, title.words, title) for points, title in rough if points >= least
    ]
    places: dict[Title, list[tuple[Match, Posting]]] = {
        title: [] for *_, title in sorted(promising)[:most]
    }
    for match in (*query.filler_matches, *query.matches):
        for place in [place for place in match.postings if place.title in places]:
            places[place.title].append((match, place))
    return places.items()
