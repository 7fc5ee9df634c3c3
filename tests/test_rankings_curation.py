"""What product files take in, lose and contest is found as the rankings have it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from builders import answered, category
from hypothesis import given
from hypothesis import strategies as st

from store.rankings import aggregates, curation, products
from store.rankings.curation import NameResolution
from store.rankings.names import NAMED, Names
from store.records import Product

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from store.rankings.aggregates import CategoryAggregate
    from store.rankings.products import ProductProfile

NIMBREL = Product(version=1, name="Nimbrel", domain="nimbrel.example")
NOUNS = {"crm": ("CRM",), "billing": ("Billing",), "desks": ()}


def read(
    names: Names, said: Mapping[str, Sequence[str]], domain: str | None = None
) -> dict[str, CategoryAggregate]:
    """Readings of one poll in each category, all of its names with one domain."""
    return {
        slug: aggregates.read(
            slug,
            category(nouns=NOUNS[slug]),
            [answered("A", given, domains=dict.fromkeys(given, domain) if domain else {})],
            names,
        )
        for slug, given in said.items()
        if given
    }


def described(held: Mapping[str, CategoryAggregate], names: Names) -> dict[str, ProductProfile]:
    """The products of readings, at the addresses that they bear."""
    ids = {id_ for aggregate in held.values() for id_ in aggregate.product_stats}
    found = {
        id_: products.describe(
            id_,
            {slug: r.product_stats[id_] for slug, r in held.items() if id_ in r.product_stats},
            names.products.get(id_),
        )
        for id_ in ids
    }
    bearers = products.addresses(found, names.products)
    return {id_: msgspec.structs.replace(found[id_], slug=slug) for slug, id_ in bearers.items()}


SPELLINGS = st.sampled_from(
    ["Nimbrel", "Nimbrel CRM", "nimbrel crm", "Nimbrel Billing", "NimbrelCRM", "Zoho", "Zoho CRM"]
)
FILES = st.dictionaries(
    st.sampled_from(["nimbrel", "zoho", "zoho-crm"]),
    st.builds(
        lambda name, aliases, domain, is_product, apart: Product(
            version=1,
            name=name,
            aliases=tuple(aliases),
            domain=domain,
            domain_is_product=is_product,
            not_same_as=tuple(apart),
        ),
        SPELLINGS,
        st.lists(SPELLINGS, max_size=1),
        st.sampled_from([None, "nimbrel.example", "zoho.example"]),
        st.booleans(),
        st.lists(st.sampled_from(["nimbrel-crm", "zoho"]), max_size=1),
    ),
    max_size=3,
)
SAID = st.dictionaries(
    st.sampled_from(sorted(NOUNS)), st.lists(SPELLINGS, unique=True, min_size=1, max_size=5)
)


@given(FILES, SAID, st.sampled_from([None, "nimbrel.example", "other.example"]))
def test_every_spelling_means_what_it_is_ranked_as(
    files: dict[str, Product], said: dict[str, list[str]], domain: str | None
) -> None:
    """In each category that names it, and by a rule that is the name's own or is told."""
    names = Names(files)
    held = read(names, said, domain)
    uses = list(curation.uses(held.values()))
    taken = curation.taken_in(held.values(), names)
    for slug, aggregate in held.items():
        for (spelling, _), product in aggregate.resolved.items():
            meant = curation.meanings(curation.spelt(spelling, uses), names)
            [meaning] = [m for m in meant if slug in m.places]
            assert (meaning.spelling, meaning.product) == (spelling, product)
            if product in files:
                assert (meaning.rule == NAMED) != (meaning in taken)


def test_domains_are_told_where_they_decide() -> None:
    """One spelling of two products in one category is told apart by what models gave with it."""
    names = Names({"nimbrel": NIMBREL})
    uses = [
        curation.Use("crm", ("CRM",), "Nimbrel CRM", domain)
        for domain in (None, "nimbrel.example", "other.example")
    ]
    by_noun = "name without maker or noun"
    assert curation.meanings(uses, names) == [
        NameResolution("Nimbrel CRM", "=nimbrelcrm", "own name", ("crm (other.example)",)),
        NameResolution(
            "Nimbrel CRM", "nimbrel", by_noun, ("crm (nimbrel.example)", "crm (no domain)")
        ),
    ]
    assert curation.meanings(uses[:2], names) == [
        NameResolution("Nimbrel CRM", "nimbrel", by_noun, ("crm",))
    ]


def test_a_file_whose_address_is_anothers_own_is_found() -> None:
    """Its slug or a former one; not if several files claim the name, nor if it is told apart."""

    def found(**files: Product) -> list[tuple[str, str]]:
        names = Names({slug.replace("_", "-"): file for slug, file in files.items()})
        held = described(read(names, {"desks": ["Nimbrel", "Zoho"]}), names)
        return [(slug, product.name) for slug, product in curation.detached(held, names)]

    suite = Product(version=1, name="Nimbrel Suite")
    assert found(nimbrel=suite) == [("nimbrel", "Nimbrel")]
    assert found(nimbrel=NIMBREL) == []
    moved = Product(version=1, name="Nimbrel Suite", former_slugs=("nimbrel",))
    assert found(suite=moved) == [("suite", "Nimbrel")]
    apart = Product(version=1, name="Nimbrel Suite", not_same_as=("nimbrel-aab1a5",))
    assert found(nimbrel=apart) == []
    assert found(nimbrel=NIMBREL, other=NIMBREL) == []
