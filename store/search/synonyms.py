"""Other words for a thing, as groups of phrases: sofa and couch; humidifier and "dry air"."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from store.search.words import FUNCTION_WORDS, Words, root, singular, words_of


class Phrase(NamedTuple):
    """The roots of a phrase without function words, and the number of its group."""

    roots: frozenset[str]
    group: int


class Synonyms:
    """Groups of phrases, found in any text that holds all the words of one of them.

    A phrase is a name of the thing or what those who need it say. Its words may stand scattered and
    in any order: "my flat needs someone to clean it" mentions "clean flat".
    """

    def __init__(self, groups: Sequence[Sequence[str]]) -> None:
        """Take groups of interchangeable phrases."""
        self._words: dict[str, list[int]] = defaultdict(list)
        self._phrases: dict[str, list[Phrase]] = defaultdict(list)
        found: list[Phrase] = []
        self.groups = sorted(map(sorted, groups))
        for group, phrases in enumerate(self.groups):
            for words in map(words_of, phrases):
                if len(words) == 1:
                    self._words[singular(words[0])].append(group)
                elif words:
                    found.append(Phrase(_telling_roots(words), group))
        used = Counter(chain.from_iterable(phrase.roots for phrase in found))
        for phrase in found:
            self._phrases[min(phrase.roots, key=lambda each: (used[each], each))].append(phrase)

    def mentioned(self, words: Words) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Yield each group the words mention, with the positions of the words that mention it."""
        positions: dict[str, int] = {}
        for position, word in enumerate(words):
            positions.setdefault(root(word), position)
            for group in self._words.get(singular(word), ()):
                yield group, (position,)
        for found in positions:
            for phrase in self._phrases.get(found, ()):
                if positions.keys() >= phrase.roots:
                    yield phrase.group, tuple(sorted(positions[each] for each in phrase.roots))

    def phrases(self, title: str) -> list[list[str]]:
        """Return the phrases of each group that a title mentions."""
        return [self.groups[group] for group in {g for g, _ in self.mentioned(words_of(title))}]


def _telling_roots(words: Words) -> frozenset[str]:
    """Return the roots of a phrase without function words, if at least two words are left."""
    telling = [word for word in words if word not in FUNCTION_WORDS]
    return frozenset(root(word) for word in (telling if len(telling) > 1 else words))
