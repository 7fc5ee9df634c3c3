"""The inverted index of one array of titles.

A title has postings for its words, for adjacent words written as one, for its initials, its domain
and the synonym groups it mentions. A posting says which words of the title
are meant. They are many and live long, so the garbage collector skips them (`gc=False`, tuples).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter, defaultdict
from functools import partial
from itertools import chain
from operator import attrgetter
from sys import intern
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
    from collections.abc import Collection, Iterable, Iterator, Mapping

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


class _Row(Struct, frozen=True, gc=False):
    """What one title is by itself; `singulars` are those of its words."""

    slug: str
    text: str
    singulars: tuple[str, ...]
    domain: str
    doubtful: bool

    def weighed(self, idf: Mapping[str, float]) -> Title:
        """Return the title with the weights of its words."""
        pairs = zip(self.text.split(), self.singulars, strict=True)
        weights = tuple(
            [
                idf[one] * (FUNCTION_WORD_SHARE if word in FUNCTION_WORDS else 1)
                for word, one in pairs
            ]
        )
        return Title(self.slug, self.text, weights, sum(weights), self.doubtful)


class Posting(Struct, frozen=True, gc=False):
    """A posting: the number of a title, and the positions of the words that are meant."""

    title: int
    words: tuple[int, ...]


class InvertedIndex:
    """The titles of one array by number, and the postings of each term, in the order of numbers."""

    def __init__(
        self,
        items: Iterable[Document],
        ordinary: frozenset[str],
        synonyms: Synonyms | None = None,
        before: InvertedIndex | None = None,
    ) -> None:
        """Index every title of every item, each of a slug of its own; their order does not matter.

        The words in `ordinary`, all singular, are plain English: no typing mistakes are looked for
        in them. Without `synonyms` the titles are names. `before` only saves work: of its items,
        made with the same other arguments, those that are still there are taken over.
        """
        self._ordinary = ordinary
        self.synonyms = synonyms
        self._items = frozenset(items)
        known = before._items if before else frozenset()  # noqa: SLF001 - of the same class
        self._rows: dict[int, _Row] = dict(before._rows) if before else {}  # noqa: SLF001
        self._places: dict[TermKind, dict[str, tuple[Posting, ...]]] = (
            {kind: dict(terms) for kind, terms in before._places.items()} if before else {}  # noqa: SLF001
        )
        self._remove({item.slug for item in known - self._items})
        self._add(sorted(self._items - known, key=attrgetter("slug")))
        self.idf = _idfs(self._rows.values())
        self.titles = {number: row.weighed(self.idf) for number, row in self._rows.items()}
        self._by_text = sorted((row.text, number) for number, row in self._rows.items())
        self._words = sorted(self._places.get("word", ()))
        similar: dict[tuple[str, int], list[str]] = defaultdict(list)
        for word in self._words:
            similar[word[0], len(word)].append(word)
        self.mistyped = partial(_mistyped, dict(similar))

    def _remove(self, slugs: Collection[str]) -> None:
        """Take out the titles of some slugs, with their postings."""
        numbers = {number for number, row in self._rows.items() if row.slug in slugs}
        rows = [self._rows.pop(number) for number in numbers]
        for kind, term in {term[:2] for row in rows for term in _terms(row, self.synonyms)}:
            postings = self._places[kind][term]
            left = tuple([posting for posting in postings if posting.title not in numbers])
            if left:
                self._places[kind][term] = left
            else:
                del self._places[kind][term]

    def _add(self, items: Iterable[Document]) -> None:
        """Add the titles of new items under new numbers, so that postings stay in their order."""
        postings: defaultdict[TermKind, defaultdict[str, list[Posting]]]
        postings = defaultdict(lambda: defaultdict(list))
        spans: dict[tuple[int, ...], tuple[int, ...]] = {}
        start = max(self._rows, default=-1) + 1
        for number, row in enumerate(chain.from_iterable(map(self._read, items)), start):
            self._rows[number] = row
            shared: dict[tuple[int, ...], Posting] = {}
            for kind, term, span in _terms(row, self.synonyms):
                posting = shared.get(span)
                if posting is None:
                    posting = shared[span] = Posting(number, spans.setdefault(span, span))
                postings[kind][term].append(posting)
        for kind, added in postings.items():
            terms = self._places.setdefault(kind, {})
            for term, found in added.items():
                terms[term] = (*terms.get(term, ()), *found)

    def _read(self, item: Document) -> list[_Row]:
        """Return the titles of an item that have words, each once."""
        titles = {words: None for text in item.titles if (words := words_of(text))}
        return [
            _Row(
                item.slug,
                " ".join(words),
                tuple([intern(singular(word)) for word in words]),
                item.domain or "",
                self.synonyms is None and all(map(self._is_doubtful, words)),
            )
            for words in titles
        ]

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


def _idfs(rows: Iterable[_Row]) -> dict[str, float]:
    """Return each word's inverse document frequency, 0..1: 1 for a word that only one slug uses."""
    used: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        used[row.slug].update(row.singulars)
    counts = Counter(word for words in used.values() for word in words)
    top = math.log1p(len(used))
    return {word: math.log1p(len(used) / count) / top for word, count in counts.items()}


def _terms(row: _Row, synonyms: Synonyms | None) -> Iterator[tuple[TermKind, str, tuple[int, ...]]]:
    """Yield each term of a title: its kind, the term, the positions of the words it stands for."""
    words = tuple(row.text.split())
    everything = tuple(range(len(words)))
    for i, word in enumerate(words):
        yield "word", word, (i,)
        yield "singular", row.singulars[i], (i,)
        if part := model_part(word):
            yield "part", part, (i,)
        if everything[i + 1 :]:
            yield "joined", word + words[i + 1], (i, i + 1)
    for initials, length in _initials(words):
        yield "initials", initials, everything[:length]
    for group, positions in synonyms.mentioned(words) if synonyms else ():
        yield "group", str(group), positions
    if row.domain:
        host = words_of(row.domain)
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
