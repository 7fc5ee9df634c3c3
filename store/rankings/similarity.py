"""Which products look like one another: suggestions for a person, never a decision.

rapidfuzz is used here and never to merge (store/README.md, Names): what it finds goes into a
review queue, with the reason in words.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from msgspec import Struct
from rapidfuzz import fuzz, process

from store.rankings.names import key, without_nouns

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from store.rankings.names import ProductId
    from store.rankings.products import ProductProfile
    from store.records import Category, Product

ALIKE = 84
"""Least likeness of two spellings (fuzz.ratio, of 100) that makes a suggestion by itself.

Of the sample's 4,754 suggestions 5 rest on it alone; 76 adds 25 (Imbrella, Nimbrel), 92 keeps 1.
"""
_MEANS_SOMETHING = 4
"""Letters from which the beginning of a name is a reason; shorter ones begin too many names."""
_DIGITS = re.compile(r"\d+")


class Reason(Struct, frozen=True, order=True):
    """Why two products may be one, in words. Weights only order the queue.

    They are powers of two, so that a better reason outweighs all lesser ones together.
    """

    weight: int
    text: str


class MergeSuggestion(Struct, frozen=True):
    """A product that no file owns, the one it may be, how alike they are (of 100), and why."""

    product: ProductProfile
    known: ProductProfile
    likeness: int
    why: tuple[Reason, ...]


def queue(
    named: Mapping[ProductId, ProductProfile],
    files: Mapping[str, Product],
    categories: Mapping[str, Category],
) -> list[MergeSuggestion]:
    """For each provisional product the closest known one, if any; best reasons first.

    Known is what a file owns, and what is named more often. Left out are pairs in ``not_same_as``
    and names whose numbers contradict each other.
    """
    neighbours = _Neighbours(named, files)
    found: list[MergeSuggestion] = []
    for id_, product in named.items():
        if id_ in files:
            continue
        options = [
            MergeSuggestion(
                product, known, likeness, tuple(_reasons(product, known, files, categories))
            )
            for known, likeness in neighbours.of(product)
        ]
        if options:
            found.append(max(options, key=lambda s: (_weight(s), s.likeness, s.known.mentions)))
    return sorted(found, key=lambda s: (-_weight(s), -s.product.mentions, s.product.slug))


class _Neighbours:
    """Candidates for a product: same category, same first word or same domain."""

    def __init__(
        self, named: Mapping[ProductId, ProductProfile], files: Mapping[str, Product]
    ) -> None:
        self._named = named
        self._files = files
        self._blocks: defaultdict[str, set[ProductId]] = defaultdict(set)
        for id_, product in named.items():
            for block in self._blocks_of(product):
                self._blocks[block].add(id_)

    def of(self, product: ProductProfile) -> Iterator[tuple[ProductProfile, int]]:
        """Every known product near this one that may be the same, with its likeness."""
        near = {id_ for block in self._blocks_of(product) for id_ in self._blocks[block]}
        known = [
            self._named[id_] for id_ in sorted(near) if self._is_known(self._named[id_], product)
        ]
        keys = {i: key(each.name) for i, each in enumerate(known)}
        words = {i: _words(each.name) for i, each in enumerate(known)}
        for scorer, asked, choices, least in (
            (fuzz.ratio, key(product.name), keys, ALIKE),
            (fuzz.token_set_ratio, _words(product.name), words, 100),
        ):
            for _, likeness, i in process.extract(
                asked, choices, scorer=scorer, score_cutoff=least, limit=5
            ):
                yield known[i], int(likeness)
        for i, letters in keys.items():
            if _starts_like(letters, key(product.name)):
                yield known[i], int(fuzz.ratio(letters, key(product.name)))
        for each in known:
            if each.domain and each.domain == product.domain:
                yield each, int(fuzz.ratio(key(each.name), key(product.name)))

    def _blocks_of(self, product: ProductProfile) -> set[str]:
        first = f"word {key(product.name.split()[0])}"
        site = {f"site {product.domain}"} if product.domain else set()
        return {first, *site, *(f"category {slug}" for slug in product.categories)}

    def _is_known(self, known: ProductProfile, product: ProductProfile) -> bool:
        if known.id == product.id or not _numbers_agree(known.name, product.name):
            return False
        for one, other in ((known, product), (product, known)):
            file = self._files.get(one.id)
            if file and other.slug in file.not_same_as:
                return False
        more = (known.mentions, product.slug) > (product.mentions, known.slug)
        return known.id in self._files or more


def _reasons(
    product: ProductProfile,
    known: ProductProfile,
    files: Mapping[str, Product],
    categories: Mapping[str, Category],
) -> Iterator[Reason]:
    """Why two products may be one, the best reason first."""
    file = files.get(known.id)
    if file and file.maker and key(f"{file.maker} {product.name}") == key(known.name):
        yield Reason(16, f'the same but for its maker "{file.maker}"')
    for slug in sorted({*product.categories, *known.categories} & categories.keys()):
        nouns = categories[slug].nouns
        if key(without_nouns(product.name, nouns)) == key(without_nouns(known.name, nouns)):
            yield Reason(8, f'the same but for a noun of {slug} ("{categories[slug].title}")')
            break
    if product.domain and product.domain == known.domain:
        yield Reason(4, f"both at {product.domain}")
    ours, theirs = set(_words(product.name).split()), set(_words(known.name).split())
    if ours < theirs or theirs < ours:
        longer = known if ours < theirs else product
        yield Reason(2, f'"{longer.name}" has {", ".join(sorted(ours ^ theirs))} more')
    elif _starts_like(key(product.name), key(known.name)):
        yield Reason(2, "one name starts as the other")
    likeness = int(fuzz.ratio(key(product.name), key(known.name)))
    if likeness >= ALIKE:
        yield Reason(1, f"spelt alike ({likeness} of 100)")


def _weight(suggestion: MergeSuggestion) -> int:
    return sum(reason.weight for reason in suggestion.why)


def _numbers_agree(one: str, other: str) -> bool:
    """Whether one name has all numbers of the other: XM4 is not XM5, Pixel may be Pixel 8."""
    first, second = (Counter(_DIGITS.findall(key(name))) for name in (one, other))
    return first <= second or second <= first


def _starts_like(one: str, other: str) -> bool:
    """Whether one key, if it is long enough to mean something, begins the other."""
    short, long = sorted((one, other), key=len)
    return len(short) >= _MEANS_SOMETHING and long.startswith(short)


def _words(name: str) -> str:
    return " ".join(filter(None, (key(word) for word in name.split())))
