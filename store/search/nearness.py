"""The categories closest to a need: BM25 over what is said of each, and a sentence model.

People who describe a situation rarely use the words of a title, and never all those of one alias.
Here a category is one bag of words: its title, its aliases, its situations, and the phrases of the
synonym groups that its title mentions. Words that few bags hold tell most.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import NamedTuple

from store.search.inverted_index import Document
from store.search.words import FILLERS, FUNCTION_WORDS, SynonymGroups, Words, root, words_of

SATURATION, LENGTH = 2.0, 0.75
"""BM25's k1 and b: what a further mention adds, and how far a long bag is discounted."""
TITLE_MENTIONS = 1.5
"""Mentions in situations and synonyms that one in a title or an alias is worth."""
BAG_FILLER_WEIGHT = 0.5
"""Share of its weight that a shopping word ("app", "cheap") keeps; function words have none."""

Likeness = Mapping[str, float]
"""Slug → how alike a text and a category are by a sentence model; empty where there is none."""
Compare = Callable[[str, Sequence[Document]], Likeness | None]
"""Compares a text with categories; ``None`` if that cannot be done now."""

MODEL_SHARE = 0.6
"""The model's share; words have the rest. At .5, 2 of 91 needs fewer are in the first five."""

NEAR = 200
"""Categories nearest by words that are looked at; at 40, a model finds 2 of 91 needs fewer in 5."""


class Nearness(NamedTuple):
    """The nearness of categories to a text, relative to the nearest, which comes first.

    `common_words` is how many, fillers aside, the text and the nearest bag share; `lead` how many
    times nearer that one is than the next.
    """

    relative_scores: dict[str, float]
    common_words: int
    lead: float


class NearnessIndex:
    """One bag of words for each category."""

    def __init__(self, items: Sequence[Document], synonyms: SynonymGroups) -> None:
        """Index the categories; their order does not matter."""
        stem = cache(root)  # gone with this call: what readers type is never remembered
        order = sorted(items, key=lambda item: item.slug)
        self.synonyms = synonyms
        bags = [(item.slug, _bag(item, synonyms, stem)) for item in order]
        self._slugs = [slug for slug, _ in bags]
        lengths = [sum(bag.values()) for _, bag in bags]
        mean = sum(lengths) / len(bags) if any(lengths) else 1
        used = Counter(word for _, bag in bags for word in bag)
        idf = {word: _idf(len(bags), count) for word, count in sorted(used.items())}
        self._postings: dict[str, tuple[array[int], array[float]]] = {
            word: (array("L"), array("f")) for word in idf
        }
        for number, (_, bag) in enumerate(bags):
            norm = SATURATION * (1 - LENGTH + LENGTH * lengths[number] / mean)
            for word, mentions in bag.items():
                numbers, weights = self._postings[word]
                numbers.append(number)
                weights.append(idf[word] * mentions / (mentions + norm))

    def knows(self, word: str) -> bool:
        """Return whether anything said of a category has a word, in some form."""
        return root(word) in self._postings

    def nearest(self, words: Words) -> Nearness:
        """Return the categories nearest to a text."""
        scores: defaultdict[int, float] = defaultdict(float)
        whole = []
        for word, share in _shares(words).items():
            numbers, weights = self._postings.get(word, ((), ()))
            for number, weight in zip(numbers, weights, strict=True):
                scores[number] += weight * share
            if share == 1:
                whole.append(numbers)
        if not scores:
            return Nearness({}, 0, 0)
        # Sorted twice, by number and then by score, since tuples would take three times as long.
        order = sorted(sorted(scores), key=scores.__getitem__, reverse=True)
        best = scores[order[0]]
        shares = {self._slugs[number]: scores[number] / best for number in order[:NEAR]}
        shared = sum([order[0] in numbers for numbers in whole])
        return Nearness(shares, shared, best / scores[order[1]] if order[1:] else math.inf)


def _idf(total: int, count: int) -> float:
    return math.log1p((total - count + 0.5) / (count + 0.5))


def fused(near: Nearness, likeness: Likeness) -> dict[str, float]:
    """Return slug → points of the categories near by words or alike by the model, best first.

    Each of both counts as a share of its best, and so do the points. Words alone speak for a
    category of which the model knows nothing.

    >>> fused(Nearness({"sofa": 1.0, "bed": 0.5}, 1, 2.0), {"lamp": 0.8, "desk": 0.6, "sofa": 0.2})
    {'lamp': 1.0, 'sofa': 0.9166666666666667, 'bed': 0.8333333333333334, 'desk': 0.75}
    >>> fused(Nearness({}, 0, 0), {"lamp": -0.1})
    {'lamp': 0.0}
    """
    most = max(*likeness.values(), 0) or 1
    points = dict(near.relative_scores)
    for slug, alike in likeness.items():
        share = (1 - MODEL_SHARE) * near.relative_scores.get(slug, 0)
        points[slug] = share + MODEL_SHARE * max(alike, 0) / most
    order = sorted(points, key=lambda slug: (-points[slug], slug))
    best = points[order[0]] or 1  # 0 where words find nothing and the model no likeness
    return {slug: points[slug] / best for slug in order}


def _shares(words: Words) -> dict[str, float]:
    """Return the root of each word of a query that counts, with its share of the full weight.

    >>> _shares(("what", "makes", "cheap", "chips"))
    {'cheap': 0.5, 'chip': 1.0}
    """
    return {
        root(word): BAG_FILLER_WEIGHT if word in FILLERS else 1.0
        for word in words
        if word not in FUNCTION_WORDS
    }


def _bag(item: Document, synonyms: SynonymGroups, stem: Callable[[str], str]) -> dict[str, float]:
    """Count the mentions of each word's root."""

    def roots(text: str) -> Iterator[str]:
        return (stem(word) for word in words_of(text) if word not in FUNCTION_WORDS)

    bag: defaultdict[str, float] = defaultdict(float)
    for word in chain.from_iterable(map(roots, item.titles)):
        bag[word] += TITLE_MENTIONS
    for text in item.situations:
        for word in set(roots(text)):
            bag[word] += 1
    for phrases in synonyms.phrases(item.titles[0]):
        mentions = Counter(word for phrase in phrases for word in set(roots(phrase)))
        # The phrases stand in for situations that are not there.
        for word, count in mentions.items():
            bag[word] += 1 if item.situations else math.sqrt(count)
    return bag
