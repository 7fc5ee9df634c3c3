"""Two spellings become one product only by exact rules, and every product has its own address."""

import re
from typing import Any

import pytest
from builders import hashed_slug
from hypothesis import example, given
from hypothesis import strategies as st

from store.rankings import names
from store.rankings.names import Names
from store.records import Product
from store.text import SLUG_PATTERN

SAME = "same"
DIFFERENT = "different"
CURATED = "same, but only a curator can know"

# A spelling, another, and what they are. "CURATED" pairs stay apart until a file says otherwise.
PAIRS = [
    # model numbers and how they are joined
    ("Sony WH-1000XM5", "Sony WH 1000XM5", SAME),
    ("Sony WH-1000XM5", "SONY  WH–1000XM5", SAME),  # noqa: RUF001 - a dash is meant
    ("Sony WH-1000XM5", "Sony WH-1000XM4", DIFFERENT),
    ("Sony WH-1000XM5", "Sony WF-1000XM5", DIFFERENT),
    ("Sony WH-1000XM5", "WH-1000XM5", CURATED),
    ("Bose QuietComfort 45", "Bose QuietComfort Ultra", DIFFERENT),
    ("Dyson V15", "Dyson V 15", SAME),
    ("iRobot Roomba j7+", "iRobot Roomba j7", DIFFERENT),
    ("iRobot Roomba j7+", "iRobot Roomba J7 Plus", SAME),
    ("Canon EOS R6", "Canon EOS R6 Mark II", DIFFERENT),
    ("Nikon Z 6II", "Nikon Z6 II", SAME),
    ("Nikon Z6 II", "Nikon Z6 III", DIFFERENT),
    ("F-150", "F150", SAME),
    ("Mazda CX-5", "Mazda CX-50", DIFFERENT),
    ("Garmin Fenix 7", "Garmin Fenix 7X", DIFFERENT),
    ("Logitech MX Master 3", "Logitech MX Master 3S", DIFFERENT),
    # digits beside digits
    ("GPT 3.1", "GPT 31", DIFFERENT),
    ("GPT 3.1", "GPT 3-1", SAME),
    ("GPT 3.1", "GPT 3_1", SAME),
    ("GPT 3.1", "GPT 3 _ 1", SAME),
    ("Studio 54 3000", "Studio 543 000", DIFFERENT),
    ("Instant Pot 7-in-1", "Instant Pot 7 in 1", SAME),
    ("Windows 11", "Windows 1 1", DIFFERENT),
    ("1,000 Trees", "1000 Trees", DIFFERENT),
    # versions, years and what stands in parentheses
    ("MacBook Air (M2)", "MacBook Air (M3)", DIFFERENT),
    ("MacBook Air (M2)", "MacBook Air M2", SAME),
    ("MacBook Air (M2)", "MacBook Air", DIFFERENT),
    ("Kindle Paperwhite (2021)", "Kindle Paperwhite (2024)", DIFFERENT),
    # suffixes that are another product
    ("iPhone 15 Pro", "iPhone 15 Pro Max", DIFFERENT),
    ("Galaxy S24", "Galaxy S24+", DIFFERENT),
    ("Galaxy S24+", "Galaxy S24 Plus", SAME),
    ("Notion", "Notion AI", DIFFERENT),
    ("Zoho CRM", "Zoho CRM Plus", DIFFERENT),
    ("AirPods Pro 2", "AirPods 2", DIFFERENT),
    # plus, sharp, and
    ("Disney+", "Disney Plus", SAME),
    ("Disney+", "Disney", DIFFERENT),
    ("Paramount⁺", "Paramount+", SAME),
    ("C", "C++", DIFFERENT),
    ("C", "C#", DIFFERENT),
    ("C#", "C Sharp", SAME),
    ("Notepad++", "Notepad+", DIFFERENT),
    ("Notepad++", "Notepad Plus Plus", SAME),
    ("AT&T", "AT and T", SAME),
    ("Arm & Hammer", "Arm and Hammer", SAME),
    ("Bed Bath & Beyond", "Bed Bath Beyond", CURATED),
    # makers and nouns: only product files know them
    ("Salesforce Sales Cloud", "Sales Cloud", CURATED),
    ("HubSpot", "HubSpot CRM", CURATED),
    ("Zoho", "Zoho CRM", CURATED),
    ("Google Nest Thermostat", "Nest Thermostat", CURATED),
    ("Hewlett-Packard LaserJet", "HP LaserJet", CURATED),
    # trade signs, case, spaces, dots, apostrophes
    ("Nespresso® Vertuo™", "Nespresso Vertuo", SAME),
    ("Nespresso®\ufe0f Vertuo", "Nespresso Vertuo", SAME),
    ("Toys ℠ Us", "Toys Us", SAME),
    ("monday.com", "Monday.com", SAME),
    ("monday.com", "monday", CURATED),
    ("Yahoo!", "Yahoo", SAME),
    ("Joe's Pizza", "Joe’s Pizza", SAME),
    ("YouTube", "You Tube", SAME),
    ("7-Zip", "7zip", SAME),
    ("Ｚｏｏｍ", "Zoom", SAME),  # noqa: RUF001 - full-width letters are meant
    # accents and other scripts
    ("Café Bustelo", "Cafe\u0301 Bustelo", SAME),
    ("Häagen-Dazs", "Haagen Dazs", SAME),
    ("Häagen-Dazs", "Haeagen-Dazs", DIFFERENT),
    ("L'Oréal Paris", "LOreal Paris", SAME),
    ("Miele Straße", "MIELE STRASSE", SAME),
    ("Ørsted", "Orsted", CURATED),
    ("Ωmega", "Ώmega", SAME),
    ("Ωmega", "Omega", CURATED),
    ("Яндекс", "яндекс", SAME),
    ("Чёрный", "Черный", SAME),
    ("か", "が", DIFFERENT),
    ("無印良品", "无印良品", CURATED),
    ("किताब", "कताब", DIFFERENT),
    ("Sony α7 IV", "Sony A7 IV", CURATED),  # noqa: RUF001 - the Greek letter is meant
    ("Chapter Ⅳ", "Chapter IV", SAME),
    ("№ 5", "No 5", SAME),
    ("!!!", "???", DIFFERENT),
]


@pytest.mark.parametrize(("one", "other", "what"), PAIRS)
def test_two_spellings_are_one_product_exactly_where_the_rules_say(
    one: str, other: str, what: str
) -> None:
    """Same keys are the same product and nothing else is, with a file for one or without."""
    assert (names.key(one) == names.key(other)) is (what == SAME)
    assert (names.provisional(one) == names.provisional(other)) is (what == SAME)
    assert what == SAME or names.slug(one) != names.slug(other)
    for name, spelling in ((one, other), (other, one)):
        owner = Names({"x": product(name)}).resolve(spelling, None, ("software", "VPN")).product
        assert (owner == "x") is (what == SAME)


# ------------------------------------------------------------------ product files


def product(name: str, **fields: Any) -> Product:
    return Product(version=1, name=name, **fields)


CATALOGUE = Names(
    {
        "sony-wh-1000xm5": product("Sony WH-1000XM5", maker="Sony", domain="sony.com"),
        "sony-wh-1000xm4": product("Sony WH-1000XM4 Headphones", maker="Sony", domain="sony.com"),
        "sony-ultra": product("Sony Ultra Headphones", maker="Sony"),
        "quietcomfort-45": product("QuietComfort 45", maker="Bose"),
        "sales-cloud": product("Salesforce Sales Cloud", maker="Salesforce"),
        "hubspot": product("HubSpot", aliases=("Hub Spot CRM Suite",)),
        "zoho-crm": product("Zoho CRM", maker="Zoho", domain="zoho.com", aliases=("Zoho",)),
        "notion": product("Notion", domain="notion.example", domain_is_product=True),
        "drift": product("Drift", maker="Acme"),
        "hp-envy": product("Hewlett-Packard Envy 15", maker="Hewlett Packard"),
        "acme-cloud-suite": product("Acme Cloud Suite", maker="Acme", domain="acme.example"),
        "other-cloud-suite": product("Other Cloud Suite", maker="Other", domain="b.example"),
        "first-mercury": product("First Mercury", aliases=("Mercury",)),
        "second-mercury": product("Second Mercury", aliases=("mercury™",)),
    }
)
HEADPHONES = ("headphones", "wireless headphones")
CRM = ("CRM", "CRM software", "software")


@pytest.mark.parametrize(
    ("spelling", "domain", "nouns", "owner"),
    [
        ("Sony WH-1000XM5", None, (), "sony-wh-1000xm5"),
        ("sony wh1000xm5™", "elsewhere.example", (), "sony-wh-1000xm5"),
        ("WH-1000XM5", None, (), "sony-wh-1000xm5"),
        ("WH-1000XM5 wireless headphones", None, HEADPHONES, "sony-wh-1000xm5"),
        ("Sony WH-1000XM5 Headphones", "sony.com", HEADPHONES, "sony-wh-1000xm5"),
        ("Sony WH-1000XM5 Headphones", None, (), None),  # the noun is not this category's
        ("WH-1000XM5", "sonyfakes.example", (), None),  # a domain blocks what is only alike
        ("WH-1000XM4", None, HEADPHONES, "sony-wh-1000xm4"),
        ("WH-1000XM4", None, (), None),
        ("Sony WH-1000XM4", None, HEADPHONES, "sony-wh-1000xm4"),
        ("Sony WH-1000XM6", None, HEADPHONES, None),
        ("1000XM5", None, HEADPHONES, None),
        ("Ultra", None, HEADPHONES, None),  # one word without a digit says too little
        ("Ultra Headphones", None, HEADPHONES, "sony-ultra"),
        ("Sony Ultra", None, HEADPHONES, "sony-ultra"),
        ("Bose QuietComfort 45", None, (), "quietcomfort-45"),
        ("Bose QuietComfort 45 Headphones", None, HEADPHONES, "quietcomfort-45"),
        ("Bose QuietComfort", None, HEADPHONES, None),
        ("Sales Cloud", None, (), "sales-cloud"),
        ("Cloud", None, (), None),
        ("Salesforce", None, CRM, None),
        ("HubSpot CRM", None, CRM, "hubspot"),
        ("HubSpot CRM Software", None, CRM, "hubspot"),
        ("HubSpot Marketing Hub", None, CRM, None),
        ("Zoho CRM software", None, CRM, "zoho-crm"),
        ("Zoho CRM Plus", None, CRM, None),
        ("Zoho Desk", "zoho.com", CRM, None),  # a shared domain causes no merge
        ("Notion Labs", "notion.example", (), "notion"),  # unless the file says that it may
        ("Notion Labs", "elsewhere.example", (), None),
        ("Acme Drift", None, (), None),  # what is left says too little, so only an alias can tell
        ("Envy 15", None, (), "hp-envy"),
        ("Hewlett Packard Envy 15", None, (), "hp-envy"),
        ("Cloud Suite", None, (), None),  # two products are called so
        ("Cloud Suite", "acme.example", (), None),  # nor does its domain decide
        ("Mercury", None, (), None),  # claimed twice, so it belongs to neither
        ("First Mercury", None, (), "first-mercury"),
        ("headphones", None, HEADPHONES, None),
        ("CRM software", None, CRM, None),
    ],
)
def test_a_spelling_is_resolved_by_exact_rules_only(
    spelling: str, domain: str | None, nouns: tuple[str, ...], owner: str | None
) -> None:
    """Names, aliases, declared makers, the category's nouns and declared domains; nothing else."""
    found = CATALOGUE.resolve(spelling, domain, nouns)
    assert found.product == (owner or names.provisional(spelling)), found.rule


def test_each_resolution_says_its_rule() -> None:
    """Whoever asks why a spelling is a product gets the rule's name."""
    rules = {
        CATALOGUE.resolve(spelling, domain, HEADPHONES).rule
        for spelling, domain in [
            ("Zoho", None),
            ("WH-1000XM5", None),
            ("Notion Labs", "notion.example"),
            ("Mercury", None),
            ("Sony WH-1000XM6", None),
        ]
    }
    assert rules == {
        "name or alias",
        "name without maker or noun",
        "domain is the product",
        "claimed by several products",
        "own name",
    }


@pytest.mark.parametrize("spelling", ["Nimbrel CRM", "nimbrel-crm\u2122", "Nimbrél CRM"])
def test_what_a_file_calls_not_the_same_is_not_taken_in(spelling: str) -> None:
    """By no maker, noun or domain: only an alias would outweigh a curator's own word."""
    site = {"domain": "nimbrel.example", "domain_is_product": True}
    apart = {"not_same_as": ("nimbrel-crm", names.slug("Nimbrøl CRM"))}
    asked = (spelling, "nimbrel.example", ("CRM",))
    assert Names({"nimbrel": product("Nimbrel", **site)}).resolve(*asked).product == "nimbrel"
    told = Names({"nimbrel": product("Nimbrel", **site, **apart)})
    assert told.resolve(*asked).product == names.provisional(spelling)
    assert told.resolve("Nimbrøl CRM", "nimbrel.example", ()).product == "=nimbrølcrm"
    assert told.resolve("Nimbrel App", "nimbrel.example", ("CRM",)).product == "nimbrel"
    named = Names({"nimbrel": product("Nimbrel", aliases=("Nimbrel CRM",), **apart)})
    assert named.resolve(*asked).product == "nimbrel"


def test_every_contested_name_is_reported_with_both_places() -> None:
    """A key that two files claim is listed once, with the title that claims it in each."""
    contested = [
        [(claim.slug, claim.title) for claim in claims] for claims in CATALOGUE.contested_keys()
    ]
    assert contested == [[("first-mercury", "Mercury"), ("second-mercury", "mercury™")]]


def test_one_file_that_says_a_name_twice_contests_nothing() -> None:
    """An alias that is the name itself in another spelling is no clash."""
    catalogue = Names({"a": product("Acme One", aliases=("ACME-One", "AcmeOne"))})
    assert not catalogue.contested_keys()
    assert catalogue.resolve("acme one", None, ()).product == "a"


def test_nouns_come_off_the_end_only_and_never_all() -> None:
    """What is left of a name is never empty, and nouns inside it stay."""
    nouns = ("CRM", "CRM software", "software", "tool")
    assert names.without_nouns("Zoho CRM software tool", nouns) == "Zoho"
    assert names.without_nouns("CRM Zoho", nouns) == "CRM Zoho"
    assert names.without_nouns("CRM software", nouns) == "CRM"
    assert names.without_nouns("Software", nouns) == "Software"
    assert names.without_nouns("Zoho – crm", nouns) == "Zoho –"  # noqa: RUF001 - a dash is meant


# ------------------------------------------------------------------ laws

TEXTS = st.text(min_size=1, max_size=120).filter(str.strip)
NAMES = TEXTS | st.from_regex(
    r"[A-Za-z]{1,6}[ \-.]?[0-9]{1,3}[ .,\-_/]?[0-9+#&]{0,3}", fullmatch=True
)


@given(NAMES)
@example("3 _ 1")
@example("+")
@example("日本" * 60)
@example("x" * 120)
@example("\ufe0f")
@example("İstanbul")
def test_an_address_is_a_slug_that_is_the_names_own(name: str) -> None:
    """It fits the pattern and the length; its key is the name's, or it carries the key's hash."""
    slug = names.slug(name)
    assert re.fullmatch(SLUG_PATTERN, slug)
    assert len(slug) <= 100
    hashed = hashed_slug(name)
    assert re.fullmatch(SLUG_PATTERN, hashed)
    assert len(hashed) <= 100
    assert names.key(slug) == names.key(name) or slug == hashed


@given(NAMES, NAMES)
def test_plain_addresses_are_shared_by_one_product_only(one: str, other: str) -> None:
    """Two names with one plain slug have one key, so no product hides behind another's address."""
    if names.slug(one) == names.slug(other) and names.slug(one) != hashed_slug(one):
        assert names.key(one) == names.key(other)


@given(NAMES)
def test_a_key_does_not_see_case_signs_or_outer_space(name: str) -> None:
    """A key is never empty, and case of ASCII, trade signs and surrounding spaces never matter."""
    key = names.key(name)
    assert key
    if any(char.isalnum() for char in name):
        assert names.key(f"  {name}™ ") == key
    if name.isascii():
        assert names.key(name.upper()) == names.key(name.lower())


TITLES = st.lists(
    st.sampled_from(["Sony", "Zoho", "CRM", "XM4", "XM5", "3.1", "31", "Plus", "+", "Max", "Air"]),
    min_size=1,
    max_size=4,
).map(" ".join)
FILES = st.dictionaries(
    st.from_regex("[a-e]{1,2}", fullmatch=True),
    st.builds(
        product,
        TITLES,
        maker=st.sampled_from([None, "Sony", "Zoho"]),
        domain=st.sampled_from([None, "a.example", "b.example"]),
        domain_is_product=st.booleans(),
        aliases=st.lists(TITLES, max_size=2).map(tuple),
    ),
    max_size=6,
)
NOUNS = st.sampled_from([(), ("CRM",), ("CRM", "Air"), ("Max", "XM5 Max")])


@given(FILES, TITLES, st.sampled_from([None, "a.example", "b.example"]), NOUNS)
def test_the_order_of_the_files_decides_nothing(
    files: dict[str, Product], spelling: str, domain: str | None, nouns: tuple[str, ...]
) -> None:
    """The same files in another order resolve every spelling alike."""
    backwards = dict(reversed(files.items()))
    assert Names(files).resolve(spelling, domain, nouns) == Names(backwards).resolve(
        spelling, domain, nouns
    )


@given(FILES, NOUNS)
def test_every_uncontested_name_is_its_files_own(
    files: dict[str, Product], nouns: tuple[str, ...]
) -> None:
    """Whatever other files hold, a product's own name and aliases lead to it or are reported."""
    catalogue = Names(files)
    contested = {claim.key for claims in catalogue.contested_keys() for claim in claims}
    for slug, file in files.items():
        for title in (file.name, *file.aliases):
            found = catalogue.resolve(title, "elsewhere.example", nouns).product
            owner = names.provisional(title) if names.key(title) in contested else slug
            assert found == owner
