"""``flask check`` says what every product file makes of the names in history."""

from pathlib import Path
from typing import Any

import pytest
from builders import answered, app_over, command, write_data, write_json

KINDS = ("crm", "billing", "podcasts")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Three categories, each with a noun, in which Nimbrel sells three different things."""
    return write_data(
        tmp_path / "data",
        categories={kind: {"title": f"Best {kind}", "nouns": [kind]} for kind in KINDS},
        polls=[
            answered(model, [f"Nimbrel {kind.capitalize()}", "Nimbrel"], slug=kind)
            for kind in KINDS
            for model in ("A", "B")
        ],
    )


def said(directory: Path, **fields: Any) -> list[str]:
    """What the check says with such a product file."""
    if fields:
        write_json(directory / "products/nimbrel.json", {"version": 1, **fields})
    lines = command(directory, "check").stdout.splitlines()
    return [line for line in lines if "products/" in line and "no answer names" not in line]


def test_without_product_files_there_is_nothing_to_say(directory: Path) -> None:
    """What no curator touched is as models call it."""
    assert said(directory) == []


def test_what_a_file_takes_in_unnamed_is_told(directory: Path) -> None:
    """A file made to fix a domain swallows what differs by a noun: what, where, by which rule."""
    [notice] = said(directory, name="Nimbrel", domain="nimbrel.example")
    assert notice == (
        'products/nimbrel.json:3:3: notice: takes in "Nimbrel Billing" (billing), "Nimbrel Crm" '
        '(crm) and "Nimbrel Podcasts" (podcasts) by the rule "name without maker or noun": what '
        "is the same product belongs in aliases; what is not, by its address, in not_same_as "
        "(nimbrel-billing, nimbrel-crm and nimbrel-podcasts)"
    )


def test_what_to_do_about_it_works(directory: Path) -> None:
    """Named in aliases a spelling is meant, and in not_same_as it stays a product of its own."""
    apart = {"not_same_as": ["nimbrel-billing", "nimbrel-podcasts"]}
    assert said(directory, name="Nimbrel", aliases=["Nimbrel CRM"], **apart) == []
    client = app_over(directory).test_client()
    for slug, status in (("billing", 200), ("podcasts", 200), ("crm", 308)):
        assert client.get(f"/api/v1/product/nimbrel-{slug}.json").status_code == status


def test_a_name_that_a_file_let_go_is_a_warning(directory: Path) -> None:
    """Whoever changes a name is told of the polls that then belong to another product."""
    [warning] = said(directory, name="Nimbrel Suite")
    assert warning == (
        'products/nimbrel.json:3:3: warning: "Nimbrel" (6 polls in billing, crm and podcasts) is '
        "neither the name nor an alias, so it ranks as another product, at nimbrel-aab1a5: put "
        "it in aliases if it is this one, else nimbrel-aab1a5 in not_same_as"
    )
    assert said(directory, name="Nimbrel Suite", not_same_as=["nimbrel-aab1a5"]) == []
    [notice] = said(directory, name="Nimbrel Suite", aliases=["Nimbrel"])
    assert ": notice: takes in " in notice
    (directory / "products/nimbrel.json").unlink()
    suite = {"version": 1, "name": "Nimbrel Suite", "former_slugs": ["nimbrel"]}
    write_json(directory / "products/nimbrel-suite.json", suite)
    [warning] = said(directory)
    assert 'nimbrel-suite.json:3:3: warning: "Nimbrel" (6 polls in' in warning


CRMM = "nimbrel-crmm"
IN_VAIN = [
    (
        {"aliases": ["Nimbrle Crm"]},
        "5:5",
        'no answer names "Nimbrle Crm"; did you mean "Nimbrel Crm"?',
    ),
    ({"name": "Nimbrle"}, "3:3", 'no answer names "Nimbrle"; did you mean "Nimbrel"?'),
    ({"name": "Quite another"}, "3:3", 'no answer names "Quite another"'),
    ({"not_same_as": [CRMM]}, "5:5", f'no product is at "{CRMM}"; did you mean "nimbrel-crm"?'),
]


@pytest.mark.parametrize(("fields", "place", "sentence"), IN_VAIN)
def test_what_a_file_says_in_vain_is_told(
    directory: Path, fields: dict[str, Any], place: str, sentence: str
) -> None:
    """A spelling or an address with a typing mistake, a file for what nobody named."""
    write_json(directory / "products/velthaus.json", {"version": 1, "name": "Nimbrel", **fields})
    lines = command(directory, "check").stdout.splitlines()
    assert f"products/velthaus.json:{place}: notice: {sentence}" in lines


def test_an_alias_that_is_to_stay_apart_is_an_error_in_health_too(directory: Path) -> None:
    """One file says that it is the same product, and that it is not."""
    fields = {"aliases": ["Nimbrel CRM"], "not_same_as": ["nimbrel-crm"]}
    reason = '"Nimbrel CRM" is in not_same_as, too, and counts as an alias; take one out'
    line = f"products/nimbrel.json:5:5: {reason}"
    assert line in said(directory, name="Nimbrel", **fields)
    assert line in app_over(directory).test_client().get("/healthz").get_json()["problems"]


def test_many_names_are_counted(directory: Path) -> None:
    """However much a file takes in, it is told in one line."""
    polls = [
        answered("C", [f"Nimbrel {kind.upper()}{'!' * i}"], slug=kind)
        for kind in KINDS
        for i in range(9)
    ]
    write_data(
        directory,
        categories={kind: {"title": f"Best {kind}", "nouns": [kind]} for kind in KINDS},
        polls=polls,
    )
    [notice] = said(directory, name="Nimbrel")
    assert ") and 27 more by the rule" in notice
