"""Products as readers see them: name, address and domain, from all polls and the product files."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from msgspec import Struct

from store.rankings import names
from store.rankings.aggregates import AddressClaim, CategoryAggregate, FirstUse, ProductStats
from store.rankings.names import ProductId
from store.records import Product


class ProductProfile(Struct, frozen=True, gc=False):
    """A product that a successful poll ranked; ``mentions`` counts such polls.

    ``maker`` is the key of the name of the company that makes it, if its file tells.
    """

    id: ProductId
    slug: str
    name: str
    domain: str | None
    aliases: tuple[str, ...]
    mentions: int
    categories: tuple[str, ...]
    first_use: FirstUse
    former_slugs: tuple[str, ...] = ()
    maker: str | None = None

    @property
    def first_mention(self) -> str:
        """The time of history at which it was first named."""
        return self.first_use.polled_at


def describe(
    product: ProductId, product_stats: Mapping[str, ProductStats], file: Product | None
) -> ProductProfile:
    """Return a product from its figures by category slug, and its file if a curator wrote one.

    A provisional product bears the spelling of its earliest poll, and the address that follows
    from it if no other product does; see :func:`addresses`. The domain is the file's, else the one
    most polls give, else the first of the alphabet among equals.
    """
    uses = [use for stats in product_stats.values() for use in stats.spellings.values()]
    first = min(uses)
    name = file.name if file else first.spelling
    domains: defaultdict[str, int] = defaultdict(int)
    for stats in product_stats.values():
        for domain, polls in stats.domains.items():
            domains[domain] += polls
    common = min(domains, key=lambda domain: (-domains[domain], domain), default=None)
    return ProductProfile(
        id=product,
        slug=product if file else names.slug(name),
        name=name,
        domain=(file.domain if file else None) or common,
        aliases=tuple(
            sorted({*(file.aliases if file else ()), *(u.spelling for u in uses)} - {name})
        ),
        mentions=sum(stats.mentions for stats in product_stats.values()),
        categories=tuple(sorted(product_stats)),
        first_use=first,
        former_slugs=file.former_slugs if file else (),
        maker=names.key(file.maker) if file and file.maker else None,
    )


def addresses(
    named: Mapping[ProductId, ProductProfile], files: Mapping[str, Product]
) -> dict[str, ProductId]:
    """Return the product that bears each address; no two share one, whatever is named.

    A product file has its slug, and its former slugs are kept for it. Of the others each has the
    first of its addresses (:func:`names.slugs`) that neither a file nor a product named earlier
    takes.
    """
    bearers = {former: slug for slug, file in files.items() for former in file.former_slugs}
    bearers |= {slug: slug for slug in files}
    # In order of first use, so that nobody who comes later takes an address away.
    others = sorted(named.keys() - files.keys(), key=lambda id_: named[id_].first_use)
    for id_ in others:
        slug = next(slug for slug in names.slugs(named[id_].name) if slug not in bearers)
        bearers[slug] = id_
    return {
        slug: id_
        for slug, id_ in bearers.items()
        if id_ in named and (id_ not in files or id_ == slug)
    }


def redirects(
    aggregates: Iterable[CategoryAggregate], products: Iterable[ProductProfile]
) -> dict[str, str]:
    """Return old addresses that no product bears with new: slugs of spellings, and former ones.

    Where two products' spellings share a slug, it is as in :attr:`CategoryAggregate.addresses`.
    What a curator says a product once had goes before spellings.
    """
    owners: dict[str, AddressClaim] = {}
    for aggregate in aggregates:
        for old, owner in aggregate.addresses.items():
            owners[old] = min(owners.get(old, owner), owner)
    profiles = {product.id: product for product in products}
    moved = {old: profiles[product].slug for old, (*_, product) in owners.items()}
    moved |= {old: product.slug for product in profiles.values() for old in product.former_slugs}
    borne = {product.slug for product in profiles.values()}
    return {old: slug for old, slug in moved.items() if old not in borne}
