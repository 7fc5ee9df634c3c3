"""Curation: the review queue, and how product files affect the names in history.

Nothing here changes a name: it suggests to a curator what may be one product, and tells what
follows from an edit. rapidfuzz is used here alone, and never to merge (store/README.md, Names).
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter
from typing import NamedTuple

from msgspec import Struct
from rapidfuzz import fuzz

from store.rankings import names as naming
from store.rankings.aggregates import CategoryAggregate
from store.rankings.names import Names, ProductId, key, without_nouns
from store.rankings.products import ProductProfile
from store.records import Category, Product

ALIKE = 84
"""Least likeness of two spellings (fuzz.ratio, of 100) that makes a suggestion by itself.

Of the sample's 4,754 suggestions 5 rest on it alone; 76 adds 25 (Imbrella, Nimbrel), 92 keeps 1.
"""
_MIN_PREFIX = 4
"""Letters of a name that make being the beginning of another a reason; fewer begin too many."""
_DIGITS = re.compile(r"\d+")


class Use(NamedTuple):
    """A spelling as models gave it in a category that has these nouns."""

    slug: str
    nouns: tuple[str, ...]
    name: str
    domain: str | None


class NameResolution(Struct, frozen=True, order=True):
    """A spelling that stands for one product by one rule, and the categories where it does.

    ``places`` are slugs, with the domain in brackets if only that decides the product.
    """

    spelling: str
    product: ProductId
    rule: str
    places: tuple[str, ...]


class MergeSuggestion(Struct, frozen=True):
    """A product that no file owns, the ``known`` one that it may be, and why, best reason first.

    ``likeness`` is that of their names, of 100. ``weight`` only orders the queue: the reasons' own
    are powers of two, so that a better one outweighs all lesser ones together.
    """

    product: ProductProfile
    known: ProductProfile
    likeness: int
    weight: int
    why: tuple[str, ...]


class _Product(Struct, frozen=True):
    """A product as suggestions compare it: by the key, words and numbers of its name."""

    profile: ProductProfile
    file: Product | None
    key: str
    words: frozenset[str]
    numbers: Counter[str]

    @classmethod
    def of(cls, profile: ProductProfile, file: Product | None) -> "_Product":
        own_key = key(profile.name)
        words = frozenset(filter(None, map(key, profile.name.split())))
        return cls(profile, file, own_key, words, Counter(_DIGITS.findall(own_key)))

    @property
    def blocks(self) -> set[str]:
        """The groups of products that it is compared with: same category, first word or site."""
        site = {f"site {self.profile.domain}"} if self.profile.domain else set()
        first = f"word {key(self.profile.name.split()[0])}"
        return {first, *site, *(f"category {slug}" for slug in self.profile.categories)}


def uses(aggregates: Iterable[CategoryAggregate]) -> Iterator[Use]:
    """Yield every spelling of every category, with each domain that models gave for it there."""
    for aggregate in aggregates:
        for name, domain in aggregate.resolved:
            yield Use(aggregate.slug, aggregate.category.nouns, name, domain)


def spelt(text: str, uses: Iterable[Use]) -> list[Use]:
    """Return the uses of a spelling; where there is none, those of spellings with the same key."""
    own_key = key(text)
    alike = [use for use in uses if key(use.name) == own_key]
    return [use for use in alike if use.name == text] or alike


def resolve_uses(uses: Iterable[Use], names: Names) -> list[NameResolution]:
    """Return what spellings stand for, by spelling, product and rule."""
    places: defaultdict[tuple[str, ProductId, str], set[tuple[str, str | None]]]
    places = defaultdict(set)
    for use in uses:
        resolution = names.resolve(use.name, use.domain, use.nouns)
        places[use.name, resolution.product, resolution.rule].add((use.slug, use.domain))
    # A domain is named only where one category has the name with several.
    products = Counter((name, slug) for (name, *_), at in places.items() for slug in dict(at))

    def place(name: str, slug: str, domain: str | None) -> str:
        return f"{slug} ({domain or 'no domain'})" if products[name, slug] > 1 else slug

    return sorted(
        NameResolution(name, product, rule, tuple(sorted({place(name, *use) for use in at})))
        for (name, product, rule), at in places.items()
    )


def find_inferred(aggregates: Iterable[CategoryAggregate], names: Names) -> list[NameResolution]:
    """Return the spellings that stand for a product file without being its name or an alias."""
    return [
        resolution
        for resolution in resolve_uses(uses(aggregates), names)
        if resolution.product in names.products and resolution.rule != naming.NAMED
    ]


def find_detached(
    named: Mapping[ProductId, ProductProfile], names: Names
) -> Iterator[tuple[str, ProductProfile]]:
    """Yield product files, each with another product whose own address the file has or had.

    This happens when the name of a file was changed and the old one is no alias. Names that several
    files claim are left out, and so are products in the file's ``not_same_as``.
    """
    contested = {naming.provisional(claims[0].title) for claims in names.contested_keys()}
    others = {
        naming.slug(title): product
        for id_, product in sorted(named.items())
        if id_ not in names.products and id_ not in contested
        for title in (product.name, *product.aliases)
    }
    for slug, file in names.products.items():
        for address in (slug, *file.former_slugs):
            product = others.get(address)
            if product and product.slug not in file.not_same_as:
                yield slug, product


def queue(
    named: Mapping[ProductId, ProductProfile],
    files: Mapping[str, Product],
    categories: Mapping[str, Category],
) -> list[MergeSuggestion]:
    """Return for each provisional product the known one it may be, if any; best reasons first.

    Known is what a file owns, and what is named more often. Left out are pairs in ``not_same_as``
    and names whose numbers contradict each other.
    """
    products = {id_: _Product.of(named[id_], files.get(id_)) for id_ in sorted(named)}
    blocks: defaultdict[str, list[_Product]] = defaultdict(list)  # all pairs would be millions
    for product in products.values():
        for block in product.blocks:
            blocks[block].append(product)
    suggestions = []
    for product in products.values():
        if product.file:
            continue
        near = {other.profile.id for block in product.blocks for other in blocks[block]}
        candidates = [products[id_] for id_ in sorted(near) if _may_be(product, products[id_])]
        options = [_suggestion(product, candidate, categories) for candidate in candidates]
        known = [option for option in options if option]
        if known:
            suggestions.append(max(known, key=attrgetter("weight", "likeness", "known.mentions")))
    return sorted(suggestions, key=lambda s: (-s.weight, -s.product.mentions, s.product.slug))


def _may_be(product: _Product, candidate: _Product) -> bool:
    """Return whether a product may be another, known one, as far as numbers and files say."""
    one, other = product.profile, candidate.profile
    is_known = candidate.file or (other.mentions, one.slug) > (one.mentions, other.slug)
    if one.id == other.id or not is_known:
        return False
    if candidate.file and one.slug in candidate.file.not_same_as:
        return False
    # XM4 is not XM5, but Pixel may be Pixel 8.
    return product.numbers <= candidate.numbers or candidate.numbers <= product.numbers


def _suggestion(
    product: _Product, candidate: _Product, categories: Mapping[str, Category]
) -> MergeSuggestion | None:
    likeness = int(fuzz.ratio(product.key, candidate.key))
    reasons = dict(_reasons(product, candidate, likeness, categories))
    why = tuple(reasons.values())
    return (
        MergeSuggestion(product.profile, candidate.profile, likeness, sum(reasons), why)
        if why
        else None
    )


def _reasons(
    product: _Product, candidate: _Product, likeness: int, categories: Mapping[str, Category]
) -> Iterator[tuple[int, str]]:
    """Yield why two products may be one, each reason with its weight, the best first."""
    one, other = product.profile, candidate.profile
    maker = candidate.file.maker if candidate.file else None
    if maker and key(f"{maker} {one.name}") == candidate.key:
        yield 16, f'the same but for its maker "{maker}"'
    for slug in sorted({*one.categories, *other.categories} & categories.keys()):
        nouns = categories[slug].nouns
        if key(without_nouns(one.name, nouns)) == key(without_nouns(other.name, nouns)):
            yield 8, f'the same but for a noun of {slug} ("{categories[slug].title}")'
            break
    if one.domain and one.domain == other.domain:
        yield 4, f"both at {one.domain}"
    if product.words < candidate.words or candidate.words < product.words:
        longer = other if product.words < candidate.words else one
        more = ", ".join(sorted(product.words ^ candidate.words))
        yield 2, f'"{longer.name}" has {more} more'
    else:
        short, long = sorted((product.key, candidate.key), key=len)
        if len(short) >= _MIN_PREFIX and long.startswith(short):
            yield 2, "one name starts as the other"
    if likeness >= ALIKE:
        yield 1, f"spelt alike ({likeness} of 100)"
