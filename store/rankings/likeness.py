"""Which products look like one another: suggestions for a person, never a decision.

rapidfuzz stands here and nowhere near a merge (CONTRACT section 7): what it finds goes into a
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
    from store.rankings.products import Named
    from store.records import Category, Product

ALIKE = 84
"""The least likeness of two spellings, of 100, that is worth a look."""

_DIGITS = re.compile(r"\d+")


class Suggestion(Struct, frozen=True):
    """A product that no file owns, the one it may be, how alike they are (of 100), and why."""

    product: Named
    known: Named
    likeness: int
    why: tuple[str, ...]


def queue(
    named: Mapping[ProductId, Named],
    files: Mapping[str, Product],
    categories: Mapping[str, Category],
) -> list[Suggestion]:
    """The closest known product of each provisional one that has any, best reasons first.

    Known is what a file owns, and what is named more often. A pair that a curator called not the
    same is left out, and so is one whose numbers contradict each other.
    """
    neighbours = _Neighbours(named, files)
    found: list[Suggestion] = []
    for id_, product in named.items():
        if id_ in files:
            continue
        options = [
            Suggestion(product, known, likeness, tuple(_reasons(product, known, files, categories)))
            for known, likeness in neighbours.of(product)
        ]
        if options:
            found.append(max(options, key=lambda s: (len(s.why), s.likeness, s.known.mentions)))
    return sorted(found, key=lambda s: (-len(s.why), -s.product.mentions, s.product.slug))


class _Neighbours:
    """Finds what stands near a product: in its categories, under its first word, at its site."""

    def __init__(self, named: Mapping[ProductId, Named], files: Mapping[str, Product]) -> None:
        self._named = named
        self._files = files
        self._blocks: defaultdict[str, set[ProductId]] = defaultdict(set)
        for id_, product in named.items():
            for block in self._blocks_of(product):
                self._blocks[block].add(id_)

    def of(self, product: Named) -> Iterator[tuple[Named, int]]:
        """Every known product near this one that may be the same, with its likeness."""
        near = {id_ for block in self._blocks_of(product) for id_ in self._blocks[block]}
        known = [self._named[id_] for id_ in near if self._is_known(self._named[id_], product)]
        for score, choices in (
            (fuzz.ratio, {i: key(each.name) for i, each in enumerate(known)}),
            (fuzz.token_set_ratio, {i: _words(each.name) for i, each in enumerate(known)}),
        ):
            asked = key(product.name) if score is fuzz.ratio else _words(product.name)
            least = ALIKE if score is fuzz.ratio else 100
            for _, likeness, i in process.extract(
                asked, choices, scorer=score, score_cutoff=least, limit=5
            ):
                yield known[i], int(likeness)
        for each in known:
            if each.domain and each.domain == product.domain:
                yield each, int(fuzz.ratio(key(each.name), key(product.name)))

    def _blocks_of(self, product: Named) -> set[str]:
        first = f"word {key(product.name.split()[0])}"
        site = {f"site {product.domain}"} if product.domain else set()
        return {first, *site, *(f"category {slug}" for slug in product.categories)}

    def _is_known(self, known: Named, product: Named) -> bool:
        if known.id == product.id or not _numbers_agree(known.name, product.name):
            return False
        for one, other in ((known, product), (product, known)):
            file = self._files.get(one.id)
            if file and other.slug in file.not_same_as:
                return False
        more = (known.mentions, product.slug) > (product.mentions, known.slug)
        return known.id in self._files or more


def _reasons(
    product: Named,
    known: Named,
    files: Mapping[str, Product],
    categories: Mapping[str, Category],
) -> Iterator[str]:
    """Why two products may be one, the strongest reason first."""
    file = files.get(known.id)
    if file and file.maker and key(f"{file.maker} {product.name}") == key(known.name):
        yield f'the same but for its maker "{file.maker}"'
    for slug in sorted({*product.categories, *known.categories} & categories.keys()):
        nouns = categories[slug].nouns
        if key(without_nouns(product.name, nouns)) == key(without_nouns(known.name, nouns)):
            yield f'the same but for a noun of {slug} ("{categories[slug].title}")'
            break
    ours, theirs = set(_words(product.name).split()), set(_words(known.name).split())
    if ours < theirs or theirs < ours:
        longer = known if ours < theirs else product
        yield f'"{longer.name}" has {", ".join(sorted(ours ^ theirs))} more'
    if product.domain and product.domain == known.domain:
        yield f"both at {product.domain}"
    likeness = int(fuzz.ratio(key(product.name), key(known.name)))
    if likeness >= ALIKE:
        yield f"spelt alike ({likeness} of 100)"


def _numbers_agree(one: str, other: str) -> bool:
    """Whether one name has all numbers of the other: XM4 is not XM5, Pixel may be Pixel 8."""
    first, second = (Counter(_DIGITS.findall(key(name))) for name in (one, other))
    return first <= second or second <= first


def _words(name: str) -> str:
    return " ".join(filter(None, (key(word) for word in name.split())))
