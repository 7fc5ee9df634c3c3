"""The inverted index of one array of titles.

A title has postings for its words, for adjacent words written as one, for its initials, its domain
and the synonym groups it mentions. A posting says which words of the title
are meant. They are many and live long, so the garbage collector skips them (`gc=False`, tuples).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import cache
from hashlib import blake2b
from itertools import chain
from operator import attrgetter
from typing import Literal, get_args

from msgspec import Struct
from rapidfuzz import process
from rapidfuzz.distance import OSA

from store.search.synonyms import Synonyms
from store.search.words import (
    FILLERS,
    FUNCTION_WORDS,
    Words,
    head_of,
    model_part,
    singular,
    words_of,
)

TermKind = Literal["word", "singular", "part", "joined", "initials", "domain", "group"]
Term = tuple[TermKind, str]
Span = tuple[int, ...]
"""The positions of some words of a title."""
Lemma = Callable[[str], str]

FUNCTION_WORD_SHARE = 0.1
"""Share of its weight that a title's function word keeps. At 1, 1 right hit is lost."""

EDITS_FROM_LENGTH = (4, 7)
"""Letters from which a word may have one or two mistakes. At (3, 6), 3 more negatives."""

COUNT_DIGITS = 4
"""Binary digits of a count of documents that count: within an eighth of the true one."""

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
    may use in their plain sense. `head` is the position of a category's head noun; names and
    aliases have none.
    """

    slug: str
    text: str
    weights: tuple[float, ...]
    weight: float
    doubtful: bool
    head: int | None


class Posting(Struct, frozen=True, gc=False):
    """A posting: the key of a title, and the positions of the words that are meant."""

    title: int
    words: Span


_title_of = attrgetter("title")


class InvertedIndex:
    """The titles of one array by their keys, and the postings of each term.

    It is a pure function of its documents, whatever it was before :meth:`update`: keys do not
    depend on other titles, and counts are rounded, so that one document more changes few weights.
    """

    def __init__(
        self,
        documents: Iterable[Document],
        ordinary: frozenset[str],
        synonyms: Synonyms | None = None,
    ) -> None:
        """Index every title of every document; their order does not matter.

        The words in `ordinary`, all singular, are plain English: no typing mistakes are looked for
        in them. Without `synonyms` the titles are names.
        """
        self._ordinary = ordinary
        self.synonyms = synonyms
        self._documents: dict[str, Document] = {}
        self._counts: Counter[str] = Counter()
        self.idf: dict[str, float] = {}
        self.titles: dict[int, Title] = {}
        self.postings: dict[TermKind, dict[str, tuple[Posting, ...]]] = {
            kind: {} for kind in get_args(TermKind)
        }
        self._words: list[str] = []
        self._similar: dict[tuple[str, int], list[str]] = {}
        self._replace(documents)

    def update(self, documents: Iterable[Document]) -> InvertedIndex:
        """Return the index of other documents, which shares what both have in common.

        One document more or less costs a few milliseconds, whatever the size of the index.
        """
        other = copy(self)
        other._replace(documents)
        return other

    def _replace(self, documents: Iterable[Document]) -> None:
        """Take out what is not among these documents, and take in what is new, in own tables."""
        self._counts, self.idf, self.titles = copy(self._counts), copy(self.idf), copy(self.titles)
        self._similar = copy(self._similar)
        self.postings = {kind: copy(terms) for kind, terms in self.postings.items()}
        before, self._documents = self._documents, {each.slug: each for each in documents}
        new = [each for slug, each in self._documents.items() if each != before.get(slug)]
        old = [before[each.slug] for each in new if each.slug in before]
        old += [before[slug] for slug in before.keys() - self._documents.keys()]
        lemma = cache(singular)  # gone with this call: what readers type is never remembered
        removed = {key for each in old for key, _ in _readings(each)}
        self._replace_postings(self._terms(old, lemma), self._terms(new, lemma), removed)
        readings = {key: (each.slug, words) for each in new for key, words in _readings(each)}
        for word in self._recount(len(before), old, new, lemma):
            for place in self.postings["singular"].get(word, ()):
                if place.title not in readings:
                    title = self.titles[place.title]
                    readings[place.title] = (title.slug, tuple(title.text.split()))
        for key in removed:
            del self.titles[key]
        for key, (slug, words) in readings.items():
            self.titles[key] = self._title(slug, words, lemma)

    def _terms(self, documents: list[Document], lemma: Lemma) -> dict[Term, list[Posting]]:
        """Return the postings of each term of some documents."""
        terms: defaultdict[Term, list[Posting]] = defaultdict(list)
        spans: dict[Span, Span] = {}
        for each in documents:
            for key, words in _readings(each):
                shared: dict[Span, Posting] = {}
                for kind, term, span in _terms(words, each.domain or "", self.synonyms, lemma):
                    place = shared.get(span)
                    if place is None:
                        place = shared[span] = Posting(key, spans.setdefault(span, span))
                    terms[kind, term].append(place)
        return terms

    def _replace_postings(
        self,
        old: Mapping[Term, Sequence[Posting]],
        new: Mapping[Term, Sequence[Posting]],
        removed: set[int],
    ) -> None:
        """Take the postings of removed titles out of the old terms, and the new ones in."""
        changed: set[str] = set()
        for kind, term in old.keys() | new.keys():
            terms = self.postings[kind]
            rest = [each for each in terms.get(term, ()) if each.title not in removed]
            places = sorted([*rest, *new.get((kind, term), ())], key=_title_of)
            if kind == "word" and (term not in terms or not places):
                changed.add(term)
            terms[term] = tuple(places)
            if not places:
                del terms[term]
        words = self.postings["word"]
        present = [word for word in self._words if word not in changed]
        self._words = sorted([*present, *(changed & words.keys())])
        for letter, length in {(word[0], len(word)) for word in changed}:
            similar = [word for word in self.words_beginning(letter) if len(word) == length]
            self._similar[letter, length] = similar

    def _recount(
        self, size: int, old: list[Document], new: list[Document], lemma: Lemma
    ) -> set[str]:
        """Count the documents that use each word; return the words whose weight is another now.

        The weight is the word's inverse document frequency, 0..1: 1 if one document alone uses it.
        """
        before: dict[str, int] = {}
        for sign, documents in ((-1, old), (1, new)):
            for each in documents:
                for word in {lemma(word) for _, words in _readings(each) for word in words}:
                    before.setdefault(word, self._counts[word])
                    self._counts[word] += sign
        total = _rounded(len(self._documents))
        if total != _rounded(size):
            before = dict.fromkeys(self._counts, 0)
        changed = {w for w, count in before.items() if _rounded(count) != _rounded(self._counts[w])}
        for word in changed:
            if count := _rounded(self._counts[word]):
                self.idf[word] = math.log1p(total / count) / math.log1p(total)
            else:
                del self._counts[word], self.idf[word]
        return changed

    def _title(self, slug: str, words: Words, lemma: Lemma) -> Title:
        """Weigh the words of a title."""
        weights = tuple(
            self.idf[lemma(word)] * (FUNCTION_WORD_SHARE if word in FUNCTION_WORDS else 1)
            for word in words
        )
        doubtful = self.synonyms is None and all(map(self._is_doubtful, words))
        is_title = self.synonyms and words == words_of(self._documents[slug].titles[0])
        head = head_of(words) if is_title else None
        return Title(slug, " ".join(words), weights, sum(weights), doubtful, head)

    def _is_doubtful(self, word: str) -> bool:
        """Tell whether a word alone may mean anything: plain English, a number, a letter."""
        return word.isdecimal() or len(word) == 1 or self.is_ordinary(word)

    def is_ordinary(self, word: str) -> bool:
        """Tell whether a word is plain English, so neither mistyped nor by itself a name."""
        return word in FILLERS or singular(word) in self._ordinary

    def words_beginning(self, prefix: str) -> list[str]:
        """Return the words of the titles that begin with a prefix, in alphabetical order."""
        start, end = bisect_left(self._words, prefix), bisect_left(self._words, prefix + LAST)
        return self._words[start:end]

    def beginning(self, prefix: str) -> list[Title]:
        """Return the titles whose plain text begins with a prefix."""
        words = self.words_beginning(prefix.partition(" ")[0])
        places = chain.from_iterable(self.postings["word"].get(word, ()) for word in words)
        titles = [self.titles[place.title] for place in places if place.words == (0,)]
        return [title for title in titles if title.text.startswith(prefix)]

    def mistyped(self, word: str) -> tuple[tuple[str, float], ...]:
        """Return the words that one may mistype, each with its likeness: few edits, no digit other.

        They begin with its first letter, or its second where the first is one too many or
        misplaced: hardly anybody mistypes a first letter, and a tenth is left to compare.
        """
        edits = sum(len(word) >= length for length in EDITS_FROM_LENGTH)
        near = (
            process.extract(word, words, scorer=OSA.distance, score_cutoff=edits, limit=None)
            for letter in dict.fromkeys(word[:2])
            for length in range(len(word) - edits, len(word) + edits + 1 if edits else 0)
            if (words := self._similar.get((letter, length)))
        )
        return tuple(
            (other, 1 - distance / max(len(word), len(other)))
            for words in near
            for other, distance, _ in words
            if _digits(other) == _digits(word)
        )


def _rounded(count: int) -> int:
    """Return a count without all but its first binary digits.

    >>> _rounded(15), _rounded(17), _rounded(1425)
    (15, 16, 1408)
    """
    rest = max(count.bit_length() - COUNT_DIGITS, 0)
    return count >> rest << rest


def _readings(document: Document) -> Iterator[tuple[int, Words]]:
    """Yield the words of each title that has any, once, and the key it has in every index."""
    for words in {words_of(text) for text in document.titles}:
        if words:
            text = f"{document.slug} {' '.join(words)}"
            yield int.from_bytes(blake2b(text.encode(), digest_size=7).digest()), words


def _digits(word: str) -> str:
    return "".join(filter(str.isdecimal, word))


def _terms(
    words: Words, domain: str, synonyms: Synonyms | None, lemma: Lemma
) -> Iterator[tuple[TermKind, str, Span]]:
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
