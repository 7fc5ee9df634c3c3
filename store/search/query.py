"""A query interpreted in one index: what its words may mean, and the postings of each meaning."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from msgspec import Struct

from store.search.inverted_index import InvertedIndex, Posting, TermKind
from store.search.words import (
    ARTICLES,
    BEFORE_NAMES,
    FILLERS,
    FUNCTION_WORDS,
    PREPOSITIONS,
    QUALIFIERS,
    Words,
    singular,
)

LIKENESS: Final[dict[TermKind, float]] = {
    "word": 1.0,
    "joined": 0.97,
    "singular": 0.96,
    "group": 0.92,
    "part": 0.9,
}
"""Likeness of a query's words to a term of each kind, 0..1.

.2 less loses 19 right hits for `group`, 3 for `word`, 1 or none elsewhere.
"""

PREFIX_LIKENESS = 0.6
"""Least likeness of a word to its first letters, growing to 1. At .4, 2 right hits are lost."""

QUERY_FILLER_WEIGHT = 0.05
"""Share of its weight that a function or shopping word keeps. At .01, 2 right hits are lost."""
SENTENCE_WORDS = 3
"""Words from which a query is a sentence; with a function word it always is. At 5, 3 hits less."""
MOST_WORDS = 40
"""Words of a query that are read; 200 characters, the limit of `q`, rarely hold more."""
LONGEST_JOINED = 4
"""Words of a query that may be one in a title or in a domain."""

TermCandidate = tuple[float, TermKind, str, bool]
"""The likeness of a word to a term that it may mean, 0..1, the term, whether it only begins it."""


class Match(Struct, frozen=True, gc=False):
    """Some words of a query, by position, and the postings they lead to.

    They are `guessed` where a word is only begun, or they mention a phrase, maybe scattered, that
    may describe the thing or one beside it ("chain my bike": a bike lock).
    """

    positions: tuple[int, ...]
    postings: tuple[Posting, ...]
    likeness: float
    guessed: bool = False


class ParsedQuery(NamedTuple):
    """A query interpreted in one index.

    `weights` (0..1) are its words' idf there, `weight` their sum. `fillers` weigh less;
    `filler_matches`, those of fillers, make no candidates. `of_things` if the titles name things
    and not brands. `head` is the position of the head noun of keywords, which says what is asked
    for. Sentences and names have none. `bare` are the positions of words used like names, `nouns`
    of those after an article in a sentence, `telling` of those that a title must have: no filler,
    or a shopping word that tells titles apart ("app", "free").
    """

    text: str
    weights: list[float]
    weight: float
    sentence: bool
    of_things: bool
    fillers: frozenset[int]
    filler_matches: list[Match]
    head: int | None
    bare: list[int]
    nouns: list[int]
    telling: list[int]
    matches: list[Match]


def parse_query(words: Words, index: InvertedIndex) -> ParsedQuery:
    """Interpret a query of at least one word in one index."""
    words = words[:MOST_WORDS]
    of_things = index.synonyms is not None
    sentence = len(words) >= SENTENCE_WORDS or not FUNCTION_WORDS.isdisjoint(words)
    fillers = FILLERS.intersection(words) if not FILLERS.issuperset(words) else frozenset()
    matches = [*_together(words, index), *_in_other_words(words, index)]
    # Plain English beside other words is whole in a sentence, where titles are names ("milk crate"
    # does not begin CrateDB), and where a title has it as it stands ("massage table", no tablet).
    is_whole = sentence or not of_things or words[-1] in index.postings["word"]
    is_whole = is_whole and len(words) > 1 and index.is_ordinary(words[-1])
    unfinished = None if is_whole else len(words) - 1
    # A word that no title has weighs as much as the rarest: it may be what was meant.
    weights: list[float] = []
    filler_matches: list[Match] = []
    for i, word in enumerate(words):
        is_filler = word in fillers
        written: TermCandidate = (LIKENESS["word"], "word", word, False)
        meanings = [written] if is_filler else _meanings(word, index, i == unfinished)
        likeness, weight = 0.0, 1.0
        for alike, kind, term, guessed in meanings:
            if postings := index.postings[kind].get(term):
                match = Match((i,), postings, alike, guessed)
                (filler_matches if is_filler else matches).append(match)
                if alike > likeness and kind in ("word", "singular"):
                    likeness, weight = alike, index.idf(singular(term))
        weights.append(weight * (QUERY_FILLER_WEIGHT if is_filler else 1))
    content = [i for i, word in enumerate(words) if word not in fillers]
    head = _head(words, content) if of_things else None
    if head is not None and sentence and not index.is_ordinary(words[head]):
        head = None  # a brand or a mistake, as in "vpn foreign netflix"
    filler_positions = frozenset(range(len(words))).difference(content)
    return ParsedQuery(
        text=" ".join(words),
        weights=weights,
        weight=sum(weights),
        sentence=sentence,
        of_things=of_things,
        fillers=filler_positions,
        filler_matches=filler_matches,
        head=head,
        bare=_bare(words),
        nouns=[i for i in range(1, len(words)) if sentence and words[i - 1] in ARTICLES],
        telling=[
            i for i, word in enumerate(words) if i not in filler_positions or word in QUALIFIERS
        ],
        matches=matches,
    )


def _head(words: Words, telling: list[int]) -> int | None:
    """Return the head noun of keywords: the last telling word before the first preposition.

    "blade for a table saw" is no table saw. Sentences have none: any word may come first there.
    """
    if not FUNCTION_WORDS.isdisjoint(set(words) - PREPOSITIONS - ARTICLES):
        return None
    end = next((i for i, word in enumerate(words) if i and word in PREPOSITIONS), len(words))
    return max((i for i in telling if i < end), default=None)


def _bare(words: Words) -> list[int]:
    """Return the positions of words without an article or another word about them."""
    return [
        i
        for i in range(len(words))
        if (i == 0 or words[i - 1] in BEFORE_NAMES) and FILLERS.issuperset(words[i + 1 : i + 2])
    ]


def _meanings(word: str, index: InvertedIndex, unfinished: bool) -> Iterator[TermCandidate]:  # noqa: FBT001
    """Yield all that a word may mean: itself, what it is a part of, the word it mistypes."""
    yield LIKENESS["word"], "word", word, False
    yield LIKENESS["singular"], "singular", singular(word), False
    yield LIKENESS["part"], "part", word, False
    if unfinished:
        for whole in index.words_beginning(word):
            typed = len(word) / len(whole)
            likeness = PREFIX_LIKENESS + (1 - PREFIX_LIKENESS) * typed
            yield likeness, "word", whole, whole != word
    if singular(word) not in index.postings["singular"] and not index.is_ordinary(word):
        for near, likeness in index.mistyped(word):
            yield likeness, "word", near, False


def _together(words: Words, index: InvertedIndex) -> Iterator[Match]:
    """Yield what adjacent words mean together: a split word, joined words, a domain."""
    joined, single = index.postings["joined"], index.postings["word"]
    # "Dish washers" are a dishwasher; a name has no plural.
    plural = index.postings["singular"] if index.synonyms else {}
    for length in range(1, LONGEST_JOINED + 1):
        for i in range(len(words) - length + 1):
            positions, text = tuple(range(i, i + length)), "".join(words[i : i + length])
            if postings := joined.get(text):
                yield Match(positions, postings, LIKENESS["joined"])
            if length > 1 and (postings := single.get(text) or plural.get(singular(text))):
                yield Match(positions, postings, LIKENESS["joined"])


def _in_other_words(words: Words, index: InvertedIndex) -> Iterator[Match]:
    """Yield what the words mean through synonyms."""
    for group, positions in index.synonyms.mentioned(words) if index.synonyms else ():
        if postings := index.postings["group"].get(str(group)):
            yield Match(positions, postings, LIKENESS["group"], len(positions) > 1)
