"""The inverted index of one array of titles.

A title has postings for its words, for adjacent words written as one, for its initials, its domain
and the synonym groups it mentions. A posting says which words of the title
are meant. They are many and live long, so the garbage collector skips them (`gc=False`, tuples).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter, defaultdict
from functools import cache, partial
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from rapidfuzz import process
from rapidfuzz.distance import OSA

from store.search.words import (
    FILLERS,
    FUNCTION_WORDS,
    Words,
    model_part,
    singular,
    words_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from store.search.synonyms import Synonyms

TermKind = Literal["word", "singular", "part", "joined", "initials", "domain", "group"]

FUNCTION_WORD_SHARE = 0.1
"""Share of its weight that a title's function word keeps. At 1, 1 right hit is lost."""

EDITS_FROM_LENGTH = (4, 7)
"""Letters from which a word may have one or two mistakes. At (3, 6), 3 more negatives."""

LAST = "\U0010ffff"
"""The last of all characters: sorts after everything that a prefix may continue with."""
SHORTEST_INITIALS, LONGEST_INITIALS = 3, 6
"""Letters of initials that find a title (CRM); two letters would be too many words."""


class Document(Struct, frozen=True, gc=False):
    """A document: its slug, its title followed by its aliases, and a brand's domain."""

    slug: str
    titles: tuple[str, ...]
    domain: str | None = None
    situations: tuple[str, ...] = ()


class Title(Struct, frozen=True, gc=False):
    """One title or alias; `weights` (0..1 each, in sum `weight`) are its words' idf.

    That of function words is reduced. `doubtful` is a brand made of ordinary words, which a query
    may use in their plain sense.
    """

    slug: str
    text: str
    weights: tuple[float, ...]
    weight: float
    doubtful: bool


class Posting(Struct, frozen=True, gc=False):
    """A posting: the number of a title, and the positions of the words that are meant."""

    title: int
    words: tuple[int, ...]


class InvertedIndex:
    """The titles of one array in a fixed order, and the postings of each term."""

    def __init__(
        self,
        items: Iterable[Document],
        ordinary: frozenset[str],
        synonyms: Synonyms | None = None,
    ) -> None:
        """Index every title of every item; the order of the items does not matter.

        The words in `ordinary`, all singular, are plain English: no typing mistakes are looked for
        in them. Without `synonyms` the titles are names.
        """
        self._ordinary = ordinary
        self.synonyms = synonyms
        read = {
            (item.slug, words_of(text), item.domain or "") for item in items for text in item.titles
        }
        named = sorted(row for row in read if row[1])
        lemma = cache(singular)  # gone with this call: what readers type is never remembered
        self.idf = _idfs(((slug, words) for slug, words, _ in named), lemma)
        self.titles = [self._title(slug, words, lemma) for slug, words, _ in named]
        self._by_text = sorted((title.text, number) for number, title in enumerate(self.titles))
        postings: defaultdict[TermKind, defaultdict[str, list[Posting]]]
        postings = defaultdict(lambda: defaultdict(list))
        spans: dict[tuple[int, ...], tuple[int, ...]] = {}
        for number, (_, words, domain) in enumerate(named):
            shared: dict[tuple[int, ...], Posting] = {}
            for kind, term, span in _terms(words, domain, synonyms, lemma):
                place = shared.get(span)
                if place is None:
                    place = shared[span] = Posting(number, spans.setdefault(span, span))
                postings[kind][term].append(place)
        self._places: dict[TermKind, dict[str, tuple[Posting, ...]]] = {
            kind: {term: tuple(found) for term, found in terms.items()}
            for kind, terms in postings.items()
        }
        self._words = sorted(self._places.get("word", ()))
        similar: dict[tuple[str, int], list[str]] = defaultdict(list)
        for word in self._words:
            similar[word[0], len(word)].append(word)
        self.mistyped = partial(_mistyped, dict(similar))

    def _title(self, slug: str, words: Words, lemma: Callable[[str], str]) -> Title:
        """Weigh the words of a title."""
        weights = tuple(
            self.idf[lemma(word)] * (FUNCTION_WORD_SHARE if word in FUNCTION_WORDS else 1)
            for word in words
        )
        doubtful = self.synonyms is None and all(map(self._is_doubtful, words))
        return Title(slug, " ".join(words), weights, sum(weights), doubtful)

    def _is_doubtful(self, word: str) -> bool:
        """Tell whether a word alone may mean anything: plain English, a number, a letter."""
        return word.isdecimal() or len(word) == 1 or self.is_ordinary(word)

    def postings(self, kind: TermKind, term: str) -> tuple[Posting, ...]:
        """Return the postings of a term of one kind, in the order of the titles."""
        return self._places.get(kind, {}).get(term, ())

    def is_ordinary(self, word: str) -> bool:
        """Tell whether a word is plain English, so neither mistyped nor by itself a name."""
        return word in FILLERS or singular(word) in self._ordinary

    def words_beginning(self, prefix: str) -> list[str]:
        """Return the words of the titles that begin with a prefix, in alphabetical order."""
        start, end = bisect_left(self._words, prefix), bisect_left(self._words, prefix + LAST)
        return self._words[start:end]

    def beginning(self, prefix: str) -> list[Title]:
        """Return the titles whose plain text begins with a prefix, in alphabetical order."""
        start, end = (bisect_left(self._by_text, (text,)) for text in (prefix, prefix + LAST))
        return [self.titles[number] for _, number in self._by_text[start:end]]


def _mistyped(
    similar: Mapping[tuple[str, int], list[str]], word: str
) -> tuple[tuple[str, float], ...]:
    """Return the words that a word may mistype, each with its likeness: few edits, no digit other.

    They begin with its first letter, or its second where the first is one too many or misplaced:
    hardly anybody mistypes a first letter, and a tenth of the words is left to compare.
    """
    edits = sum(len(word) >= length for length in EDITS_FROM_LENGTH)
    near = (
        process.extract(word, words, scorer=OSA.distance, score_cutoff=edits, limit=None)
        for letter in dict.fromkeys(word[:2])
        for length in range(len(word) - edits, len(word) + edits + 1 if edits else 0)
        if (words := similar.get((letter, length)))
    )
    return tuple(
        (other, 1 - distance / max(len(word), len(other)))
        for found in near
        for other, distance, _ in found
        if _digits(other) == _digits(word)
    )


def _digits(word: str) -> str:
    return "".join(filter(str.isdecimal, word))


def _idfs(named: Iterable[tuple[str, Words]], lemma: Callable[[str], str]) -> dict[str, float]:
    """Return each word's inverse document frequency, 0..1: 1 for a word that only one slug uses."""
    used: dict[str, set[str]] = defaultdict(set)
    for slug, words in named:
        used[slug].update(map(lemma, words))
    counts = Counter(word for words in used.values() for word in words)
    top = math.log1p(len(used))
    return {word: math.log1p(len(used) / count) / top for word, count in counts.items()}


def _terms(
    words: Words, domain: str, synonyms: Synonyms | None, lemma: Callable[[str], str]
) -> Iterator[tuple[TermKind, str, tuple[int, ...]]]:
    """Yield each term of a title: its kind, the term, the positions of the words it stands for."""
    everything = tuple(range(len(words)))
    for i, word in enumerate(words):
        yield "word", word, (i,)
        yield "singular", lemma(word), (i,)
        if part := model_part(word):
            yield "part", part, (i,)
        if everything[i + 1 :]:
            yield "joined", word + words[i + 1], (i, i + 1)
    for initials, length in _initials(words):
        yield "initials", initials, everything[:length]
    for group, positions in synonyms.mentioned(words) if synonyms else ():
        yield "group", str(group), positions
    if domain:
        host = words_of(domain)
        label = "".join(host)
        length = next((i for i in everything if "".join(words[: i + 1]) not in label), len(words))
        yield "domain", " ".join(host), everything[:length] or everything


def _initials(words: Words) -> set[tuple[str, int]]:
    """Return initialisms of the first words, with and without function words, and their lengths."""
    return {
        ("".join(word[0] for word in picked), length)
        for length in range(SHORTEST_INITIALS, min(LONGEST_INITIALS, len(words)) + 1)
        for picked in (words[:length], [w for w in words[:length] if w not in FUNCTION_WORDS])
        if len(picked) >= SHORTEST_INITIALS
    }
