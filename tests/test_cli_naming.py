"""``flask names``: what may be one product, and what a curator writes about it."""

from pathlib import Path

import pytest
from builders import (
    answered,
    app_over,
    append,
    bodies,
    command,
    output,
    store_over,
    write_data,
    write_json,
)
from click.testing import Result


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Two categories in which Zoho goes by three names, beside a file for Pipedrive."""
    polls = [
        answered("A", ["Zoho CRM", "Pipedrive", "Notion"], slug="crm-software"),
        answered("B", ["Zoho", "HubSpot", "Pipedrive CRM"], slug="crm-software"),
        answered("C", ["Zoho CRM", "Hubspot Inc"], slug="crm-software"),
        answered("A", ["ZohoOne", "Notion AI"], slug="office-suite"),
    ]
    return write_data(
        tmp_path / "data",
        categories={
            "crm-software": {"title": "Best CRM software", "nouns": ["CRM", "CRM software"]},
            "office-suite": {"title": "Best office suite"},
        },
        products={"pipedrive": {"name": "Pipedrive"}},
        polls=polls,
    )


def names(directory: Path, *args: str) -> Result:
    """Run the command over a data directory."""
    return command(directory, "names", *args)


def answers(directory: Path) -> dict[str, bytes]:
    """Every answer that does not depend on a query, of a fresh server, by path."""
    return bodies(store_over(directory))


def history(directory: Path) -> dict[str, bytes]:
    """The history files as they are."""
    return {path.name: path.read_bytes() for path in (directory / "history").iterdir()}


SCHEMA = '{"$schema": "../schemas/product.json", "version": 1, '


def test_the_queue_lists_what_may_be_one_and_why(directory: Path) -> None:
    """Each suggestion says how often, where and why, and what to write if it is so or not."""
    append(directory, [answered("D", ["Pipedriver"], slug="crm-software")])
    done = names(directory, "queue")
    assert done.exit_code == 0
    assert done.stdout == (
        'zoho: "Zoho", named 1x in crm-software\n'
        '  may be zoho-crm: "Zoho CRM" (in no file yet), named 2x in crm-software\n'
        '  because: the same but for a noun of crm-software ("Best CRM software"); '
        '"Zoho CRM" has crm more\n'
        f'  if so, as products/zoho-crm.json: {SCHEMA}"name": "Zoho CRM", "aliases": ["Zoho"]}}\n'
        f'  if not, as products/zoho-crm.json: {SCHEMA}"name": "Zoho CRM", '
        '"not_same_as": ["zoho"]}\n'
        'notion-ai: "Notion AI", named 1x in office-suite\n'
        '  may be notion: "Notion" (in no file yet), named 1x in crm-software\n'
        '  because: "Notion AI" has ai more; spelt alike (85 of 100)\n'
        f'  if so, as products/notion.json: {SCHEMA}"name": "Notion", "aliases": ["Notion AI"]}}\n'
        f'  if not, as products/notion.json: {SCHEMA}"name": "Notion", '
        '"not_same_as": ["notion-ai"]}\n'
        'pipedriver: "Pipedriver", named 1x in crm-software\n'
        '  may be pipedrive: "Pipedrive" (products/pipedrive.json), named 2x in crm-software\n'
        "  because: one name starts as the other; spelt alike (94 of 100)\n"
        '  if so, in products/pipedrive.json: "aliases": ["Pipedriver"]\n'
        '  if not, in products/pipedrive.json: "not_same_as": ["pipedriver"]\n'
        'hubspot-inc: "Hubspot Inc", named 1x in crm-software\n'
        '  may be hubspot: "HubSpot" (in no file yet), named 1x in crm-software\n'
        '  because: "Hubspot Inc" has inc more\n'
        f'  if so, as products/hubspot.json: {SCHEMA}"name": "HubSpot", '
        '"aliases": ["Hubspot Inc"]}\n'
        f'  if not, as products/hubspot.json: {SCHEMA}"name": "HubSpot", '
        '"not_same_as": ["hubspot-inc"]}\n'
    )
    assert names(directory, "queue", "--category", "office-suite").stdout.count("may be") == 1
    one = names(directory, "queue", "--limit", "1")
    assert one.stdout.count("may be") == 1
    assert "\n1 of 4 suggestions; `flask check` lists what else a new file takes in." in one.stderr


def test_the_queue_of_an_unknown_category_is_refused(directory: Path) -> None:
    """An empty one would say that there is nothing to decide."""
    done = names(directory, "queue", "--category", "crm-sofware")
    assert done.exit_code == 2
    assert 'No category has the slug "crm-sofware". Closest: crm-software' in done.output


@pytest.mark.parametrize("answer", ["if so", "if not"])
def test_what_the_queue_prints_can_be_pasted(directory: Path, answer: str) -> None:
    """The names are one product or two, its address leads there, and nobody is asked again.

    Without the file all is as before.
    """
    before, lines = answers(directory), history(directory)
    printed = names(directory, "queue", "--limit", "1").stdout
    path, _, text = printed.partition(f"{answer}, as ")[2].splitlines()[0].partition(": ")
    (directory / path).write_text(text, encoding="utf-8")
    client = app_over(directory).test_client()
    top = client.get("/api/v1/best/crm-software.json").get_json()["combined"][0]
    assert top["product"] == "Zoho CRM"
    assert len(top["modelRanks"]) == (3 if answer == "if so" else 2)
    assert client.get("/api/v1/product/zoho.json").status_code == (
        308 if answer == "if so" else 200
    )
    assert "zoho:" not in names(directory, "queue").stdout
    assert (answers(directory) == before) == (answer == "if not")
    (directory / path).unlink()
    assert (answers(directory), history(directory)) == (before, lines)


def test_a_spelling_is_needed(directory: Path) -> None:
    """A blank one is nobody's name."""
    assert "Give a spelling." in output(directory, "names", "explain", " ", exit_code=2)


PIPEDRIVE = "Pipedrive (products/pipedrive.json)"
KNOWN = "/product/pipedrive, named 2x in crm-software"


@pytest.mark.parametrize(
    ("spelling", "product", "rule", "places", "key", "uses"),
    [
        ("PIPEDRIVE\u2122", f"Pipedrive: {PIPEDRIVE}", "name or alias", "crm-software", "pipedrive",
         KNOWN),
        ("Pipedrive CRM", f"Pipedrive CRM: {PIPEDRIVE}", "name without maker or noun",
         "crm-software", "pipedrivecrm", KNOWN),
        ("Zoho Two", "Zoho Two: Zoho Two (a product of its own, in no file)", "own name",
         "no category", "zohotwo", "named in no successful poll"),
    ],
)  # fmt: skip
def test_explain_says_which_rule_resolved_a_spelling(
    directory: Path, spelling: str, product: str, rule: str, places: str, key: str, uses: str
) -> None:
    """Product, rule, categories, key and address of any spelling, known or not."""
    lines = names(directory, "explain", spelling).stdout.splitlines()
    assert lines == [product, f"rule: {rule}", f"in: {places}", f"key: {key}", uses]


def test_explain_tells_categories_and_domains_apart(directory: Path) -> None:
    """A spelling that is two products is explained for each, with the domain if that decides."""
    pipedrive = {"version": 1, "name": "Pipedrive", "domain": "pipedrive.com"}
    write_json(directory / "products" / "pipedrive.json", pipedrive)
    spelt = {"Pipedrive CRM": "other.example"}
    append(
        directory,
        [
            answered("C", ["Pipedrive CRM"], slug="crm-software", domains=spelt),
            answered("C", ["Pipedrive CRM"], slug="office-suite"),
        ],
    )
    done = names(directory, "explain", "Pipedrive CRM").stdout
    assert [line for line in done.splitlines() if line.startswith(("Pipe", "in"))] == [
        "Pipedrive CRM: Pipedrive CRM (a product of its own, in no file)",
        "in: crm-software (other.example) and office-suite",
        f"Pipedrive CRM: {PIPEDRIVE}",
        "in: crm-software (no domain)",
    ]
