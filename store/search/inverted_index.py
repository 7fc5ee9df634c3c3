"""The inverted index of one array of titles.

A title has postings for its words, for adjacent words and a domain written as one, and for the
synonym groups it mentions. A posting says which words of the title are meant. Titles and postings
are many and live long, so the garbage collector skips them (`gc=False`, tuples).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from functools import cache
from itertools import chain
from typing import Literal, get_args

from msgspec import Struct
from rapidfuzz import process
from rapidfuzz.distance import OSA

from store.search.words import (
    FILLERS,
    FUNCTION_WORDS,
    SOFTWARE_NOUNS,
    SynonymGroups,
    Words,
    head_of,
    model_part,
    purpose_of,
    singular,
    words_of,
)

TermKind = Literal["word", "singular", "part", "joined", "group"]
Term = tuple[TermKind, str]
Span = tuple[int, ...]
"""The positions of some words of a title."""

FUNCTION_WORD_SHARE = 0.1
"""Share of its weight that a title's function word keeps. At 1, 1 right hit is lost."""

EDITS_FROM_LENGTH = (4, 7)
"""Letters from which a word may have one or two mistakes. At (3, 6), 3 more negatives."""

LAST = "\U0010ffff"
"""The last of all characters: sorts after everything that a prefix may continue with."""


class Document(Struct, frozen=True, gc=False):
    """A document: its slug, its title and aliases, a brand's domain, situations of who needs it.

    Titles are read in three ways: here, by ``nearness`` and by ``meaning``. ``questions`` are those
    that a category puts, or has put, to assistants.
    """

    slug: str
    titles: tuple[str, ...]
    domain: str | None = None
    situations: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()


class Title(Struct, frozen=True, eq=False, gc=False):
    """One title or alias: its words, and their singulars.

    `doubtful` is a brand made of ordinary words, which a query may use in their plain sense.
    `head` is the position of a category's head noun; names and aliases have none. `purpose` is the
    position from which it says what the thing is for.
    """

    slug: str
    words: Words
    singulars: Words
    doubtful: bool
    head: int | None
    purpose: int
    text: str

    def is_generic(self, position: int) -> bool:
        """Return whether a word only says that its thing is software, a service or the like."""
        is_behind_the_head = self.head is not None and self.head < position < self.purpose
        return is_behind_the_head and self.singulars[position] in SOFTWARE_NOUNS


class Posting(Struct, frozen=True, gc=False):
    """A posting: a title, and the positions of the words that are meant."""

    title: Title
    positions: Span


class InvertedIndex:
    """The titles of one array as postings of each term; `idf` weighs a title's word, 0..1.

    It is a pure function of its documents, whatever it was before :meth:`update`.
    """

    def __init__(
        self,
        documents: Iterable[Document],
        ordinary: frozenset[str],
        synonyms: SynonymGroups | None = None,
    ) -> None:
        """Index every title of every document; their order does not matter.

        The words in `ordinary`, all singular, are plain English: no typing mistakes are looked for
        in them. Without `synonyms` the titles are names.
        """
        self._ordinary = ordinary
        self.synonyms = synonyms
        self._documents: dict[str, Document] = {}
        self.postings: dict[TermKind, dict[str, tuple[Posting, ...]]] = {
            kind: {} for kind in get_args(TermKind)
        }
        self._words: list[str] = []
        self._replace(documents)

    def update(self, documents: Iterable[Document]) -> InvertedIndex:
        """Return the index of other documents, which shares what both have in common.

        One document more or less costs a few milliseconds, whatever the size of the index.
        """
        other = copy(self)
        other._replace(documents)
        return other

    def _replace(self, documents: Iterable[Document]) -> None:
        """Take out what is not among these documents, and take in what is new, in copied tables."""
        before, self._documents = self._documents, {item.slug: item for item in documents}
        new = [item for slug, item in self._documents.items() if item != before.get(slug)]
        gone = before.keys() - self._documents.keys()
        removed = gone | {item.slug for item in new if item.slug in before}
        places: defaultdict[Term, list[Posting]] = defaultdict(list)
        for item in map(before.__getitem__, removed):
            for key, _ in self._terms(item):
                places[key] = []
        for item in new:
            for key, place in self._terms(item):
                places[key].append(place)
        # Searches may be reading the tables of the index before, so they are never changed.
        self.postings = {kind: copy(terms) for kind, terms in self.postings.items()}
        for (kind, term), added in places.items():
            terms = self.postings[kind]
            rest = (place for place in terms.get(term, ()) if place.title.slug not in removed)
            terms[term] = (*rest, *added)
            if not terms[term]:
                del terms[term]
        changed = {word for kind, word in places if kind == "word"}
        words = [word for word in self._words if word not in changed]
        self._words = sorted([*words, *(changed & self.postings["word"].keys())])
        self.idf = _idf(self.postings["singular"], len(self._documents))
        self._weights: dict[Title, list[float]] = {}  # filled by searches: most titles need none

    def _terms(self, document: Document) -> Iterator[tuple[Term, Posting]]:
        """Yield each term of a document's titles with its posting."""
        # Of titles with the same words one is enough.
        for words in {words for text in document.titles if (words := words_of(text))}:
            doubtful = self.synonyms is None and all(map(self._is_doubtful, words))
            is_title = self.synonyms and words == words_of(document.titles[0])
            head, purpose = head_of(words) if is_title else None, purpose_of(words)
            singulars = tuple(map(singular, words))
            text = " ".join(words)
            title = Title(document.slug, words, singulars, doubtful, head, purpose, text)
            for kind, term, span in _spans(title, document.domain or "", self.synonyms):
                yield (kind, term), Posting(title, span)

    def weights(self, title: Title) -> list[float]:
        """Return the weights of a title's words; that of function words is reduced."""
        if (weights := self._weights.get(title)) is None:
            weights = self._weights[title] = [
                self.idf(title.singulars[i])
                * (FUNCTION_WORD_SHARE if word in FUNCTION_WORDS or title.is_generic(i) else 1)
                for i, word in enumerate(title.words)
            ]
        return weights

    def _is_doubtful(self, word: str) -> bool:
        """Return whether a word alone may mean anything: plain English, a number, a letter."""
        return word.isdecimal() or len(word) == 1 or self.is_ordinary(word)

    def is_ordinary(self, word: str) -> bool:
        """Return whether a word is plain English, so neither mistyped nor by itself a name."""
        return word in FILLERS or singular(word) in self._ordinary

    def words_beginning(self, prefix: str) -> list[str]:
        """Return the words of the titles that begin with a prefix, in alphabetical order."""
        start, end = bisect_left(self._words, prefix), bisect_left(self._words, prefix + LAST)
        return self._words[start:end]

    def beginning(self, prefix: str) -> list[Title]:
        """Return the titles whose plain text begins with a prefix."""
        words = self.words_beginning(prefix.partition(" ")[0])
        places = chain.from_iterable(self.postings["word"][word] for word in words)
        titles = [place.title for place in places if place.positions == (0,)]
        return [title for title in titles if title.text.startswith(prefix)]

    def mistyped(self, word: str) -> Iterator[tuple[str, float]]:
        """Yield the words that one may mistype, each with its likeness: few edits, no digit other.

        They begin with its first letter, or its second where the first is one too many or
        misplaced: hardly anybody mistypes a first letter, and a tenth is left to compare.
        """
        edits = sum(len(word) >= length for length in EDITS_FROM_LENGTH)
        for letter in dict.fromkeys(word[:2]) if edits else ():
            words = self.words_beginning(letter)
            near = process.extract(word, words, scorer=OSA.distance, score_cutoff=edits, limit=None)
            for other, distance, _ in near:
                if _digits(other) == _digits(word):  # another model number is another product
                    yield other, 1 - distance / max(len(word), len(other))


def _idf(postings: Mapping[str, Iterable[Posting]], size: int) -> Callable[[str], float]:
    """Return the inverse document frequency of words: 1 if one document alone uses it."""

    @cache
    def idf(word: str) -> float:
        users = {place.title.slug for place in postings[word]}
        return math.log1p(size / len(users)) / math.log1p(size)

    return idf


def _digits(word: str) -> str:
    return "".join(filter(str.isdecimal, word))


def _spans(
    title: Title, domain: str, synonyms: SynonymGroups | None
) -> Iterator[tuple[TermKind, str, Span]]:
    """Yield each term of a title: its kind, the term, the positions of the words it stands for."""
    words = title.words
    everything = tuple(range(len(words)))
    for i, word in enumerate(words):
        yield "word", word, (i,)
        yield "singular", title.singulars[i], (i,)
        if part := model_part(word):
            yield "part", part, (i,)
        if everything[i + 1 :]:
            yield "joined", word + words[i + 1], (i, i + 1)
    for group, positions in synonyms.mentioned(words) if synonyms else ():
        yield "group", str(group), positions
    if domain:
        label = "".join(words_of(domain))
        length = next((i for i in everything if "".join(words[: i + 1]) not in label), len(words))
        yield "joined", label, everything[:length] or everything
