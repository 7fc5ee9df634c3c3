"""Products as readers see them: name, address and domain, from all polls and the product files."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from msgspec import Struct

from store.rankings import names

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

    from store.rankings.names import ProductId
    from store.rankings.readings import FirstUse, Reading, Sighting
    from store.records import Product


class Named(Struct, frozen=True):
    """A product that some successful poll ranked. ``first_mention`` is a time of history."""

    id: ProductId
    slug: str
    name: str
    domain: str | None
    aliases: tuple[str, ...]
    mentions: int
    categories: tuple[str, ...]
    first_mention: str
    former_slugs: tuple[str, ...] = ()


def describe(
    product: ProductId,
    sightings: Mapping[str, Sighting],
    file: Product | None,
    file_slugs: Container[str],
) -> Named:
    """A product from its sightings by category slug, and from its file when a curator wrote one.

    A provisional product bears the spelling of its earliest poll. The domain is the file's, else
    the one most polls give, else the first of the alphabet among equals.
    """
    uses = [use for sighting in sightings.values() for use in sighting.spellings.values()]
    first = min(uses)
    name = file.name if file else first.spelling
    domains: Counter[str] = Counter()
    for sighting in sightings.values():
        domains.update(sighting.domains)
    common = min(domains, key=lambda domain: (-domains[domain], domain), default=None)
    return Named(
        id=product,
        slug=product if file else _slug(name, file_slugs),
        name=name,
        domain=(file.domain if file else None) or common,
        aliases=tuple(
            sorted({*(file.aliases if file else ()), *(u.spelling for u in uses)} - {name})
        ),
        mentions=sum(sighting.mentions for sighting in sightings.values()),
        categories=tuple(sorted(sightings)),
        first_mention=first.polled_at,
        former_slugs=file.former_slugs if file else (),
    )


def redirects(readings: Iterable[Reading], slugs: Mapping[ProductId, str]) -> dict[str, str]:
    """Old address to new: every slug that a spelling in history ever had and no product bears.

    Where two products' spellings share a slug, the one that used it first has it.
    """
    owners: dict[str, tuple[FirstUse, ProductId]] = {}
    for reading in readings:
        for old, owner in reading.addresses.items():
            owners[old] = min(owners.get(old, owner), owner)
    borne = set(slugs.values())
    return {old: slugs[product] for old, (_, product) in owners.items() if old not in borne}


def former(products: Iterable[Named]) -> dict[str, str]:
    """Old address to new: the slugs that a curator says a product once had."""
    named = list(products)
    borne = {product.slug for product in named}
    return {old: p.slug for p in named for old in p.former_slugs if old not in borne}


def _slug(name: str, file_slugs: Container[str]) -> str:
    """A provisional product's address, which gives way to a product file of that slug."""
    plain = names.slug(name)
    return names.hashed_slug(name) if plain in file_slugs else plain
