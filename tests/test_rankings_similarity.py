"""Pairs of product names as real catalogues have them: no wrong merge, nothing overlooked."""

from __future__ import annotations

import pytest
from builders import category

from store.rankings import similarity
from store.rankings.aggregates import FirstUse
from store.rankings.names import Names, provisional
from store.rankings.products import ProductProfile
from store.records import Product

USE = FirstUse("2026-11-02T06:00:00Z", "c", "A", 1, "Acme")
NOUNS = ("CRM", "software", "app", "headphones", "phone", "VPN")

SAME = [
    ("WH-1000XM5", "WH1000XM5"),
    ("WH-1000XM5", "wh 1000 xm5"),
    ("iPhone 16 Pro", "iPhone16 Pro"),
    ("Zoho CRM", "ZOHO CRM"),
    ("Zoho CRM", "ZohoCRM"),
    ("Zoho\u2122 CRM", "Zoho CRM"),
    ("Post-it\u00ae", "Post-it"),
    ("Caf\u00e9 Noir", "Cafe Noir"),
    ("Citro\u00ebn", "Citroen"),
    ("L'Or\u00e9al", "LOreal"),
    ("Notepad++", "Notepad plus plus"),
    ("C#", "C sharp"),
    ("Johnson & Johnson", "Johnson and Johnson"),
    ("Disney+", "Disney Plus"),
    ("Monday.com", "monday com"),
    ("1Password", "1password"),
    ("Bose QC 45", "Bose QC45"),
    ("USB 3.1 Hub", "USB 3,1 Hub"),
    ("\uff21\uff22\uff23", "ABC"),
    ("Node.js", "NodeJS"),
]

DIFFERENT = [
    ("WH-1000XM4", "WH-1000XM5"),
    ("iPhone 16", "iPhone 15"),
    ("iPhone 16 Pro", "iPhone 16"),
    ("iPhone 16 Pro", "iPhone 16 Pro Max"),
    ("Pixel 8", "Pixel 8a"),
    ("Python 3.1", "Python 31"),
    ("Python 3.1", "Python 3.10"),
    ("USB 3.1", "USB 31"),
    ("C", "C++"),
    ("C", "C#"),
    ("C++", "C#"),
    ("F", "F#"),
    ("Notepad", "Notepad++"),
    ("Disney", "Disney+"),
    ("Galaxy S24", "Galaxy S24+"),
    ("Galaxy S24", "Galaxy S24 Ultra"),
    ("Model 3", "Model Y"),
    ("Zoho CRM", "Zoho Desk"),
    ("Notion", "Notion Calendar"),
    ("Kindle (11th generation)", "Kindle (10th generation)"),
    ("Kindle", "Kindle (2024)"),
    ("Roomba i7", "Roomba j7"),
    ("QC 45", "QC 35"),
    ("Dyson V15", "Dyson V12"),
    ("Windows 10", "Windows 11"),
    ("Office 365", "Office 360"),
    ("Surface Pro 9", "Surface Pro 10"),
    ("1.5 L kettle", "15 L kettle"),
    ("AirPods Pro 2", "AirPods 2"),
    ("GPT-4", "GPT-4o"),
]

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


def known(name: str) -> Product:
    """A product file for a name."""
    return Product(version=1, name=name)


@pytest.mark.parametrize(("one", "other"), SAME)
def test_spellings_of_one_name_are_one_product(one: str, other: str) -> None:
    """Case, accents, spaces, signs and trade marks tell nothing apart, with a file or without."""
    assert provisional(one) == provisional(other)
    for first, second in ((one, other), (other, one)):
        assert Names({"x": known(first)}).resolve(second, None, ()).product == "x"


@pytest.mark.parametrize(("one", "other"), [*DIFFERENT, *ALIASES])
def test_different_names_are_never_one_product_by_themselves(one: str, other: str) -> None:
    """No two names become one without a word from a curator, a maker or a noun."""
    assert provisional(one) != provisional(other)
    names = Names({"x": known(one), "y": known(other)})
    assert names.resolve(one, None, NOUNS).product == "x"
    assert names.resolve(other, None, NOUNS).product == "y"


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_a_file_for_one_does_not_swallow_the_other(one: str, other: str) -> None:
    """Also where only one of two products is known, the other stays its own."""
    for first, second in ((one, other), (other, one)):
        assert Names({"x": known(first)}).resolve(second, None, NOUNS).product != "x"


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


def queue(one: str, other: str, file: str | None) -> list[similarity.MergeSuggestion]:
    """The queue over two products, one of which may have a file."""
    products, named = {}, {}
    for slug, name in (("one", one), ("other", other)):
        id_ = slug if name == file else provisional(name)
        if name == file:
            products[slug] = known(name)
        named[id_] = ProductProfile(id_, slug, name, None, (), 2, ("c",), USE)
    return similarity.queue(named, products, {"c": category(nouns=NOUNS)})


def test_of_equals_the_first_in_the_alphabet_is_suggested() -> None:
    """Which product `names accept` would merge into is no matter of chance."""
    ids = [provisional(f"Acme {letter}") for letter in "BCDEFGHIJK"]
    named = {
        id_: ProductProfile(
            id_, f"acme-{id_[-1]}", f"Acme {id_[-1].upper()}", None, (), 2, ("c",), USE
        )
        for id_ in ids
    }
    named["=acme"] = ProductProfile("=acme", "acme", "Acme", None, (), 1, ("c",), USE)
    [suggestion] = [s for s in similarity.queue(named, {}, {}) if s.product.id == "=acme"]
    assert suggestion.known.slug == "acme-b"


def test_enough_pairs_are_tried() -> None:
    """The set is as large as the issue asks for."""
    assert len({*SAME, *DIFFERENT, *ALIASES}) >= 60
