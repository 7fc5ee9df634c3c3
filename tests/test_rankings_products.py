"""Products as readers see them: one name, one address, one domain, and every old address kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from builders import answered, category
from hypothesis import given
from hypothesis import strategies as st

from store.rankings import names, products, readings
from store.rankings.names import Names
from store.records import Product

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from store.rankings.products import Named
    from store.rankings.readings import Reading
    from store.records import Poll


def read(files: Mapping[str, Product], **polls: Sequence[Poll]) -> list[Reading]:
    """Readings of categories by slug."""
    return [readings.read(slug, category(), said, Names(files)) for slug, said in polls.items()]


def described(found: Sequence[Reading], files: Mapping[str, Product]) -> dict[str, Named]:
    """Every product of the readings, by its id."""
    ids = sorted({id_ for reading in found for id_ in reading.sightings})
    return {
        id_: products.describe(
            id_,
            {r.slug: r.sightings[id_] for r in found if id_ in r.sightings},
            files.get(id_),
            files,
        )
        for id_ in ids
    }


def redirected(found: Sequence[Reading], files: Mapping[str, Product]) -> dict[str, str]:
    """Old address to new."""
    slugs = {id_: product.slug for id_, product in described(found, files).items()}
    return products.redirects(found, slugs)


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


def test_the_domain_is_the_one_that_most_polls_give() -> None:
    """Over all categories; of equals the first of the alphabet; none given, none shown."""

    def of(*domains: str | None) -> str | None:
        said = [answered("A", ["Attio"], domains={"Attio": domain}) for domain in domains]
        return described(read({}, a=said[:1], b=said[1:]), {})["=attio"].domain

    assert of("b.example", "b.example", "a.example") == "b.example"
    assert of("b.example", "a.example", None) == "a.example"
    assert of(None, None) is None


def test_a_provisional_product_gives_way_to_a_file_of_its_slug() -> None:
    """Two products never share an address: the one without a file carries its key's hash."""
    files = {
        "attio": Product(version=1, name="Attio the Great"),
        "mercury": Product(version=1, name="First Mercury", aliases=("Mercury",)),
        "other": Product(version=1, name="Other Mercury", aliases=("Mercury",)),
    }
    found = read(files, a=[answered("A", ["Attio", "Mercury", "Attio the Great"])])
    slugs = {id_: product.slug for id_, product in described(found, files).items()}
    assert slugs["=attio"] == names.hashed_slug("Attio")
    assert slugs["=mercury"] == names.hashed_slug("Mercury")
    assert slugs["attio"] == "attio"


def test_every_old_address_moves_to_the_product_that_owns_it_now() -> None:
    """A merge, a rename and another spelling leave no dead link."""
    said = [answered("A", ["WH-1000XM5", "Sony WH1000XM5"])]
    before = read({}, a=said)
    alone = described(before, {})
    assert {product.slug for product in alone.values()} == {"wh-1000xm5", "sony-wh1000xm5"}
    files = {"xm5": Product(version=1, name="Sony WH-1000XM5", maker="Sony")}
    moved = redirected(read(files, a=said), files)
    for product in alone.values():
        assert moved[product.slug] == "xm5"


def test_an_address_that_a_product_bears_is_never_moved() -> None:
    """Only addresses nobody bears lead elsewhere."""
    files = {"zoho-crm": Product(version=1, name="Zoho CRM", aliases=("zohocrm suite",))}
    found = read(files, a=[answered("A", ["Zoho CRM", "Zoho", "zohocrm suite"])])
    moved = redirected(found, files)
    assert "zoho" not in moved
    assert "zoho-crm" not in moved
    assert moved["zohocrm-suite"] == "zoho-crm"


def test_an_address_two_products_had_is_the_first_users() -> None:
    """A spelling that stands for two products in two categories leads to the earlier one."""
    files = {
        "one": Product(version=1, name="Attio CRM"),
        "two": Product(version=1, name="Attio Suite"),
    }
    late, early = (
        readings.read(slug, category(nouns=(noun,)), [answered("A", ["Attio"], at)], Names(files))
        for slug, noun, at in [("a", "CRM", LATE), ("b", "Suite", EARLY)]
    )
    for order in ([late, early], [early, late]):
        assert redirected(order, files)["attio"] == "two"


SPELLINGS = st.lists(
    st.sampled_from(
        ["Zoho", "zoho", "Zoho CRM", "zoho-crm", "C", "C++", "3.1", "31", "3 1", "日本"]
    ),
    unique=True,
    min_size=1,
    max_size=5,
)


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
        for address in (names.slug(spelling), names.hashed_slug(spelling)):
            assert address in moved or address in slugs
