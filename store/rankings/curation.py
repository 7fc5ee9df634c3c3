"""How product files affect the names in history: matched, detached and contested spellings.

Nothing here changes a name; it tells a curator what follows from an edit.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from store.rankings import names as naming

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from store.rankings.aggregates import CategoryAggregate
    from store.rankings.names import Names, ProductId
    from store.rankings.products import ProductProfile


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


def uses(aggregates: Iterable[CategoryAggregate]) -> Iterator[Use]:
    """Every spelling of every category, with each domain that models gave for it there."""
    for aggregate in aggregates:
        for name, domain in aggregate.resolved:
            yield Use(aggregate.slug, aggregate.category.nouns, name, domain)


def spelt(text: str, found: Iterable[Use]) -> list[Use]:
    """The uses of a spelling; where there is none, those of spellings with the same key."""
    key = naming.key(text)
    alike = [use for use in found if naming.key(use.name) == key]
    return [use for use in alike if use.name == text] or alike


def meanings(found: Iterable[Use], names: Names) -> list[NameResolution]:
    """What spellings stand for, by spelling, product and rule."""
    places: defaultdict[tuple[str, ProductId, str], set[tuple[str, str | None]]]
    places = defaultdict(set)
    for use in found:
        resolution = names.resolve(use.name, use.domain, use.nouns)
        places[use.name, resolution.product, resolution.rule].add((use.slug, use.domain))
    meant = Counter((name, slug) for (name, *_), at in places.items() for slug in dict(at))
    return sorted(
        NameResolution(
            *meaning,
            tuple(sorted({_place(slug, site, meant[meaning[0], slug]) for slug, site in at})),
        )
        for meaning, at in places.items()
    )


def taken_in(aggregates: Iterable[CategoryAggregate], names: Names) -> list[NameResolution]:
    """The spellings that stand for a product file without being its name or an alias."""
    return [
        meaning
        for meaning in meanings(uses(aggregates), names)
        if meaning.product in names.products and meaning.rule != naming.NAMED
    ]


def detached(
    named: Mapping[ProductId, ProductProfile], names: Names
) -> Iterator[tuple[str, ProductProfile]]:
    """Product files, each with another product whose own address the file has or had.

    This happens when the name of a file was changed and the old one is no alias. Names that several
    files claim are left out, and so are products in the file's ``not_same_as``.
    """
    contested = {naming.provisional(claims[0].title) for claims in names.contested()}
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


def _place(slug: str, domain: str | None, products: int) -> str:
    """A category, with the domain where the spelling stands for several products in it."""
    return f"{slug} ({domain or 'no domain'})" if products > 1 else slug
