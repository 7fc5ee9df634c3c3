"""Names in history: what product files make of them, and what the review queue suggests.

The pairs of names are as real catalogues have them: no wrong merge, nothing overlooked.
"""

from collections.abc import Mapping, Sequence

import pytest
from builders import answered, category
from hypothesis import given
from hypothesis import strategies as st
from test_rankings_products import described

from store.rankings import aggregates, curation
from store.rankings.aggregates import CategoryAggregate, FirstUse
from store.rankings.curation import MergeSuggestion, NameResolution
from store.rankings.names import NAMED, Names, provisional
from store.rankings.products import ProductProfile
from store.records import Product

NIMBREL = Product(version=1, name="Nimbrel", domain="nimbrel.example")
NOUNS = {"crm": ("CRM",), "billing": ("Billing",), "desks": ()}


def read(
    names: Names, said: Mapping[str, Sequence[str]], domain: str | None = None
) -> dict[str, CategoryAggregate]:
    """Readings of one poll in each category, all of its names with one domain."""
    return {
        slug: aggregates.gather(
            slug,
            category(nouns=NOUNS[slug]),
            [answered("A", given, domains=dict.fromkeys(given, domain) if domain else {})],
            names,
        )
        for slug, given in said.items()
        if given
    }


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
    taken = curation.find_inferred(held.values(), names)
    for slug, aggregate in held.items():
        for (spelling, _), product in aggregate.resolved.items():
            meant = curation.resolve_uses(curation.spelt(spelling, uses), names)
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
    assert curation.resolve_uses(uses, names) == [
        NameResolution("Nimbrel CRM", "=nimbrelcrm", "own name", ("crm (other.example)",)),
        NameResolution(
            "Nimbrel CRM", "nimbrel", by_noun, ("crm (nimbrel.example)", "crm (no domain)")
        ),
    ]
    assert curation.resolve_uses(uses[:2], names) == [
        NameResolution("Nimbrel CRM", "nimbrel", by_noun, ("crm",))
    ]


def test_a_file_whose_address_is_anothers_own_is_found() -> None:
    """Its slug or a former one; not if several files claim the name, nor if it is told apart."""

    def found(**files: Product) -> list[tuple[str, str]]:
        names = Names({slug.replace("_", "-"): file for slug, file in files.items()})
        readings = read(names, {"desks": ["Nimbrel", "Zoho"]})
        held = described([*readings.values()], names.products)
        return [(slug, product.name) for slug, product in curation.find_detached(held, names)]

    suite = Product(version=1, name="Nimbrel Suite")
    assert found(nimbrel=suite) == [("nimbrel", "Nimbrel")]
    assert found(nimbrel=NIMBREL) == []
    moved = Product(version=1, name="Nimbrel Suite", former_slugs=("nimbrel",))
    assert found(suite=moved) == [("suite", "Nimbrel")]
    apart = Product(version=1, name="Nimbrel Suite", not_same_as=("nimbrel-aab1a5",))
    assert found(nimbrel=apart) == []
    assert found(nimbrel=NIMBREL, other=NIMBREL) == []


USE = FirstUse("2026-11-02T06:00:00Z", "c", "A", 1, "Acme")
QUEUE_NOUNS = ("CRM", "software", "app", "headphones", "phone", "VPN")

ALIASES = [
    ("Zoho", "Zoho CRM"),
    ("Salesforce", "Salesforce CRM"),
    ("Salesforce", "Salesforce Sales Cloud"),
    ("HubSpot", "Hubspot Inc"),
    ("Sony WH-1000XM5", "WH-1000XM5"),
    ("Apple AirPods Pro", "AirPods Pro"),
    ("ExpressVPN", "Express VPN app"),
    ("NordVPN", "Nord VPN Basic"),
    ("Logitech MX Master 3S", "Logitech MX Master 3S Wireless"),
    ("Bitwarden", "Bitwarden Password Manager"),
    ("Grammarly", "Gramarly"),
    ("Mailchimp", "Mailchimp by Intuit"),
    ("Dyson V15 Detect", "Dyson V15"),
    ("Freshsales", "Freshsales Suite"),
]


def profile(id_: str, slug: str, name: str, mentions: int = 2) -> ProductProfile:
    """A product that so many polls of one category name."""
    return ProductProfile(id_, slug, name, None, (), mentions, ("c",), USE)


@pytest.mark.parametrize(("one", "other"), ALIASES)
def test_what_needs_an_alias_is_in_the_queue(one: str, other: str) -> None:
    """A likely second name is suggested, with a reason, whichever of the two has a file."""
    for file in (None, one, other):
        (suggestion,) = queue(one, other, file)
        assert {suggestion.product.name, suggestion.known.name} == {one, other}
        assert suggestion.why


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("WH-1000XM4", "WH-1000XM5"),
        ("iPhone 16", "iPhone 15"),
        ("QC 45", "QC 35"),
        ("Tab 8", "Tab 9"),
    ],
)
def test_numbers_that_contradict_are_not_even_suggested(one: str, other: str) -> None:
    """XM4 and XM5 are two products, and nobody is asked whether they are one."""
    assert queue(one, other, None) == []


def queue(one: str, other: str, file: str | None) -> list[MergeSuggestion]:
    """The queue over two products, one of which may have a file."""
    products, named = {}, {}
    for slug, name in (("one", one), ("other", other)):
        id_ = slug if name == file else provisional(name)
        if name == file:
            products[slug] = Product(version=1, name=name)
        named[id_] = profile(id_, slug, name)
    return curation.queue(named, products, {"c": category(nouns=QUEUE_NOUNS)})


def test_of_equals_the_first_in_the_alphabet_is_suggested() -> None:
    """Which product `names accept` would merge into is no matter of chance."""
    profiles = [profile("=acme", "acme", "Acme", 1)]
    profiles += [profile(f"=acme{c}", f"acme-{c}", f"Acme {c.upper()}") for c in "bcdefghijk"]
    named = {product.id: product for product in profiles}
    [suggestion] = [s for s in curation.queue(named, {}, {}) if s.product.id == "=acme"]
    assert suggestion.known.slug == "acme-b"
