"""A query interpreted in one index: what its words may mean, and the postings of each meaning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct
from rapidfuzz import process
from rapidfuzz.distance import OSA

from store.rankings.search.words import (
    ARTICLES,
    BEFORE_NAMES,
    FILLERS,
    FUNCTION_WORDS,
    Words,
    singular,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from store.rankings.search.inverted_index import InvertedIndex, Kind, Posting

LIKENESS: Final[dict[Kind, float]] = {
    "word": 1.0,
    "joined": 0.97,
    "domain": 0.97,
    "singular": 0.96,
    "group": 0.92,
    "part": 0.9,
    "initials": 0.7,
}
"""Likeness of what was asked to a term of each kind, 0..1.

.2 less loses 19 right hits for `group`, 3 for `word`, 2 for `initials`, 1 or none elsewhere.
"""

PREFIX_LIKENESS = 0.6
"""Least likeness of a word to its first letters, growing to 1. At .4, 2 right hits are lost."""

EDITS_FROM_LENGTH = (4, 7)
"""Letters from which a word may have one or two mistakes. At (3, 6), 3 more negatives."""

FILLER_WEIGHT = 0.05
"""Share of its weight that a function or shopping word keeps. At .01, 2 right hits are lost."""
SENTENCE_WORDS = 3
"""Words from which a query is a sentence; with a function word it always is. At 5, 3 hits less."""
MOST_WORDS = 40
"""Words of a query that are read; 200 characters, the limit of `q`, rarely hold more."""


class TermCandidate(Struct, frozen=True, gc=False):
    """A term that a word may mean, and its likeness to the word, 0..1."""

    likeness: float
    kind: Kind
    term: str


class Match(Struct, frozen=True, gc=False):
    """Some words of a query, by position, and the postings they lead to."""

    asked: tuple[int, ...]
    postings: tuple[Posting, ...]
    likeness: float


class ParsedQuery(NamedTuple):
    """A query interpreted in one index; `weights` (0..1) are its words' idf there.

    That of fillers is reduced. `head` is the position of the head noun of keywords: the last word
    that is no filler. Sentences and names have none. `bare` are the positions of words used like
    names, `nouns` of those after an article in a sentence.
    """

    text: str
    weights: list[float]
    sentence: bool
    head: int | None
    bare: list[int]
    nouns: list[int]
    matches: list[Match]


def parse_query(words: Words, index: InvertedIndex) -> ParsedQuery:
    """Interpret a query of at least one word in one index."""
    words = words[:MOST_WORDS]
    sentence = len(words) >= SENTENCE_WORDS or not FUNCTION_WORDS.isdisjoint(words)
    fillers = FILLERS.intersection(words) if not FILLERS.issuperset(words) else frozenset()
    matches = [*_together(words, index), *_in_other_words(words, index)]
    weights = []
    for i, word in enumerate(words):
        unfinished = i == len(words) - 1 and not (sentence and index.is_ordinary(word))
        meanings = _written(word) if word in fillers else _meanings(word, index, unfinished)
        likeness, weight = 0.0, 1.0
        for meaning in meanings:
            if postings := index.postings(meaning.kind, meaning.term):
                matches.append(Match((i,), postings, meaning.likeness))
                if meaning.likeness > likeness and meaning.kind in ("word", "singular"):
                    likeness, weight = meaning.likeness, index.idf[singular(meaning.term)]
        weights.append(weight * (FILLER_WEIGHT if word in fillers else 1))
    telling = [i for i, word in enumerate(words) if word not in fillers]
    head = telling[-1] if index.synonyms and not sentence else None
    nouns = [i for i in range(1, len(words)) if sentence and words[i - 1] in ARTICLES]
    return ParsedQuery(" ".join(words), weights, sentence, head, _bare(words), nouns, matches)


def _bare(words: Words) -> list[int]:
    """Return the positions of words without an article or another word about them."""
    return [
        i
        for i in range(len(words))
        if (i == 0 or words[i - 1] in BEFORE_NAMES) and FILLERS.issuperset(words[i + 1 : i + 2])
    ]


def _written(word: str) -> Iterator[TermCandidate]:
    """Yield a word as it is written, and its singular."""
    yield TermCandidate(LIKENESS["word"], "word", word)
    yield TermCandidate(LIKENESS["singular"], "singular", singular(word))


def _meanings(word: str, index: InvertedIndex, unfinished: bool) -> Iterator[TermCandidate]:  # noqa: FBT001
    """Yield all that a word may mean: itself, what it is a part of, the word it mistypes."""
    yield from _written(word)
    yield TermCandidate(LIKENESS["part"], "part", word)
    yield TermCandidate(LIKENESS["initials"], "initials", word)
    if unfinished:
        for whole in index.words_beginning(word):
            typed = len(word) / len(whole)
            yield TermCandidate(PREFIX_LIKENESS + (1 - PREFIX_LIKENESS) * typed, "word", whole)
    if not index.is_ordinary(word) and not index.postings("singular", singular(word)):
        yield from _mistyped(word, index)


def _mistyped(word: str, index: InvertedIndex) -> Iterator[TermCandidate]:
    """Yield the words that differ by a few typing mistakes and by no digit.

    One length at a time: rapidfuzz holds the interpreter lock for a fraction of a millisecond.
    """
    edits = sum(len(word) >= length for length in EDITS_FROM_LENGTH)
    for length in range(len(word) - edits, len(word) + edits + 1) if edits else ():
        words = index.words_of_length(length)
        near = process.extract(word, words, scorer=OSA.distance, score_cutoff=edits, limit=None)
        for other, distance, _ in near:
            if _digits(other) == _digits(word):
                yield TermCandidate(1 - distance / max(len(word), length), "word", other)


def _digits(word: str) -> str:
    return "".join(filter(str.isdecimal, word))


def _together(words: Words, index: InvertedIndex) -> Iterator[Match]:
    """Yield what adjacent words mean together: a split word, joined words, a domain."""
    aggregates: tuple[tuple[Kind, str, range], ...] = (
        ("joined", "", range(1, 4)),
        ("word", "", range(2, 4)),
        ("domain", " ", range(2, 5)),
    )
    for kind, glue, lengths in aggregates:
        likeness = LIKENESS["joined" if kind == "word" else kind]
        for length in lengths:
            for i in range(len(words) - length + 1):
                if postings := index.postings(kind, glue.join(words[i : i + length])):
                    yield Match(tuple(range(i, i + length)), postings, likeness)


def _in_other_words(words: Words, index: InvertedIndex) -> Iterator[Match]:
    """Yield what the words mean through synonyms."""
    for group, positions in index.synonyms.mentioned(words) if index.synonyms else ():
        if postings := index.postings("group", str(group)):
            yield Match(positions, postings, LIKENESS["group"])
