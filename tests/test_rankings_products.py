"""Products as readers see them: one name, one address, one domain, and every old address kept."""

from collections.abc import Mapping, Sequence
from random import Random

import msgspec
import pytest
from builders import answered, category, hashed_slug
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from store.rankings import aggregates, names, products
from store.rankings.aggregates import CategoryAggregate
from store.rankings.names import Names
from store.rankings.products import ProductProfile
from store.records import Poll, Product


def read(files: Mapping[str, Product], **polls: Sequence[Poll]) -> list[CategoryAggregate]:
    """Readings of categories by slug."""
    return [aggregates.gather(slug, category(), said, Names(files)) for slug, said in polls.items()]


def described(
    found: Sequence[CategoryAggregate], files: Mapping[str, Product]
) -> dict[str, ProductProfile]:
    """Every product of the readings, by its id, at the address that it bears."""
    ids = sorted({id_ for aggregate in found for id_ in aggregate.product_stats})
    named = {
        id_: products.describe(
            id_,
            {r.slug: r.product_stats[id_] for r in found if id_ in r.product_stats},
            files.get(id_),
        )
        for id_ in ids
    }
    bearers = products.addresses(named, files)
    assert sorted(bearers.values()) == ids
    return {id_: msgspec.structs.replace(named[id_], slug=slug) for slug, id_ in bearers.items()}


def redirected(found: Sequence[CategoryAggregate], files: Mapping[str, Product]) -> dict[str, str]:
    """Old address to new."""
    return products.redirects(found, described(found, files).values())


EARLY, LATE = "2026-10-01T06:00:00Z", "2026-10-02T06:00:00Z"


def test_a_provisional_product_bears_the_spelling_of_its_earliest_poll() -> None:
    """By time, then by the category's slug, then by model and rank."""
    found = read(
        {},
        b=[answered("A", ["ATTIO"], EARLY), answered("A", ["attio"], LATE)],
        a=[answered("B", ["Attio"], EARLY)],
    )
    attio = described(found, {})["=attio"]
    assert attio.name == "Attio"
    assert attio.slug == "attio"
    assert attio.aliases == ("ATTIO", "attio")
    assert attio.categories == ("a", "b")
    assert attio.mentions == 3
    assert attio.first_mention == EARLY


def test_a_file_gives_name_address_and_domain() -> None:
    """What a curator wrote stands above what the models wrote."""
    files = {"attio": Product(version=1, name="Attio CRM", domain="attio.com", aliases=("Attio",))}
    found = read(files, a=[answered("A", ["attio!"], domains={"attio!": "attio.io"})])
    attio = described(found, files)["attio"]
    assert (attio.name, attio.slug, attio.domain) == ("Attio CRM", "attio", "attio.com")
    assert attio.aliases == ("Attio", "attio!")


ORSTED, MIMIC = "Ørsted Air", "Orsted Air 0D2217"


@pytest.mark.parametrize("first", [ORSTED, MIMIC])
def test_no_name_takes_the_address_of_another(first: str) -> None:
    """A name that ends like an address with a digest gets a digest of its own."""
    second = MIMIC if first == ORSTED else ORSTED
    found = read({}, a=[answered("A", [first], EARLY), answered("B", [second], LATE)])
    slugs = {product.name: product.slug for product in described(found, {}).values()}
    assert slugs == {ORSTED: "orsted-air-0d2217", MIMIC: "orsted-air-0d2217-a8b7b4"}
    assert "orsted-air-0d2217" not in redirected(found, {})
    owned = {"orsted": Product(version=1, name="Orsted", aliases=(ORSTED,))}
    again = read(owned, a=[answered("A", [first], EARLY), answered("B", [second], LATE)])
    assert redirected(again, owned)["orsted-air-0d2217"] == "orsted"


def test_a_former_address_with_a_foreign_digest_moves_unless_somebody_bears_it() -> None:
    """What a name was once called by still leads to it, where nobody is due that address."""
    found = read({}, a=[answered("A", [MIMIC])])
    assert redirected(found, {})["orsted-air-0d2217"] == "orsted-air-0d2217-a8b7b4"


LOOKALIKES = ["Orsted", "Ørsted", "\u041ersted", "\u039frsted", "Orst\u0435d", "Ørst\u0435d"]
HOSTILE = st.builds(
    lambda name, end: f"{name}{end}",
    st.sampled_from([*LOOKALIKES, *(f"{name} Air" for name in LOOKALIKES), "!", "?", "★"]),
    st.sampled_from(["", *(f" {digit}" for digit in "0123456789abcdef")]),
)
FILE_SLUGS = st.from_regex("orsted(-air)?(-[0-9a-f])?", fullmatch=True)
FILES = st.dictionaries(
    FILE_SLUGS,
    st.builds(lambda name: Product(version=1, name=name), st.sampled_from(["Other", *LOOKALIKES])),
    max_size=3,
)


@pytest.mark.usefixtures("one_digit")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(HOSTILE, unique=True, max_size=30), FILES, st.randoms())
def test_addresses_that_collide_go_to_the_file_or_the_first_user(
    spellings: list[str], files: dict[str, Product], chance: Random
) -> None:
    """Each in turn has the first of its addresses that is free, in whatever order they are read."""
    times = [f"2026-10-01T06:{minute:02}:00Z" for minute in range(len(spellings))]
    said = [answered("A", [name], at) for name, at in zip(spellings, times, strict=True)]
    all_ = described(read(files, a=said), files)
    taken = set(files)
    for product in sorted(all_.values(), key=lambda product: product.first_use):
        if product.id not in files:
            assert product.slug == next(s for s in names.slugs(product.name) if s not in taken)
            taken.add(product.slug)
    shuffled = list(all_.items())
    chance.shuffle(shuffled)
    assert products.addresses(dict(shuffled), files) == {p.slug: id_ for id_, p in all_.items()}


@pytest.mark.usefixtures("one_digit")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(HOSTILE, unique=True, min_size=1, max_size=12), HOSTILE)
def test_a_newcomer_takes_nothing(spellings: list[str], newcomer: str) -> None:
    """Whatever is named next, every product stays where it was."""
    said = [answered("A", [name], EARLY, slug="a") for name in spellings]
    before = described(read({}, a=said), {})
    after = described(read({}, a=[*said, answered("B", [newcomer], LATE)]), {})
    assert {id_: after[id_].slug for id_ in before} == {id_: p.slug for id_, p in before.items()}


ODD = (
    "Zoho", "zoho", "Zoho CRM", "zoho-crm", "C", "C++", "3.1", "31", "3 1", "日本", MIMIC, ORSTED,
)  # fmt: skip
SPELLINGS = st.lists(st.sampled_from(ODD), unique=True, min_size=1, max_size=5)


@given(SPELLINGS, SPELLINGS, st.sampled_from([{}, {"zoho": Product(version=1, name="Zoho CRM")}]))
def test_every_product_has_an_address_of_its_own(
    one: list[str], other: list[str], files: dict[str, Product]
) -> None:
    """No two products share a slug, and every spelling's slugs lead to a product that exists."""
    found = read(files, a=[answered("A", one, EARLY)], b=[answered("B", other, LATE)])
    all_ = described(found, files)
    slugs = [product.slug for product in all_.values()]
    assert len(set(slugs)) == len(slugs)
    moved = redirected(found, files)
    assert not set(moved) & set(slugs)
    assert set(moved.values()) <= set(slugs)
    for spelling in {*one, *other}:
        for address in (names.slug(spelling), hashed_slug(spelling)):
            assert address in moved or address in slugs
