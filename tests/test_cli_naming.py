"""``flask names``: a curator's word on spellings, written as an edit and taken back as one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from builders import answered, app_over, append, bodies, write_data, write_json

from store.cli import naming
from store.cli.editing import members, write

if TYPE_CHECKING:
    from pathlib import Path

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
    return app_over(directory).test_cli_runner().invoke(args=["names", *args])


def said(done: Result) -> str:
    """What a command said beside its output, the line that names the data left out."""
    return done.stderr.partition("\n")[2]


def answers(directory: Path) -> dict[str, bytes]:
    """Every answer that does not depend on a query, of a fresh server, by path."""
    return bodies(app_over(directory).extensions["store"])


def history(directory: Path) -> dict[str, bytes]:
    """The history files as they are."""
    return {path.name: path.read_bytes() for path in (directory / "history").iterdir()}


def product(directory: Path, slug: str) -> dict[str, Any]:
    """A product file."""
    text = (directory / "products" / f"{slug}.json").read_text(encoding="utf-8")
    record: dict[str, Any] = json.loads(text)
    return record


def test_the_queue_lists_what_may_be_one_and_why(directory: Path) -> None:
    """Each suggestion says how often, where and why, and ends in a command to run."""
    done = names(directory, "queue")
    assert done.exit_code == 0
    assert done.stdout == (
        'zoho: "Zoho", named 1x in crm-software\n'
        '  may be zoho-crm: "Zoho CRM" (in no file yet), named 2x in crm-software\n'
        '  because: the same but for a noun of crm-software ("Best CRM software"); '
        '"Zoho CRM" has crm more\n'
        "  flask names merge zoho zoho-crm  |  flask names reject zoho zoho-crm\n"
        'notion-ai: "Notion AI", named 1x in office-suite\n'
        '  may be notion: "Notion" (in no file yet), named 1x in crm-software\n'
        '  because: "Notion AI" has ai more; spelt alike (85 of 100)\n'
        "  flask names merge notion-ai notion  |  flask names reject notion-ai notion\n"
        'hubspot-inc: "Hubspot Inc", named 1x in crm-software\n'
        '  may be hubspot: "HubSpot" (in no file yet), named 1x in crm-software\n'
        '  because: "Hubspot Inc" has inc more\n'
        "  flask names merge hubspot-inc hubspot  |  flask names reject hubspot-inc hubspot\n"
    )
    assert names(directory, "queue", "--category", "office-suite").stdout.count("may be") == 1
    assert names(directory, "queue", "--category", "crm-software").stdout.count("may be") == 3
    assert names(directory, "queue", "--limit", "1").stdout.count("may be") == 1


def test_merging_makes_one_product_of_two(directory: Path) -> None:
    """One becomes an alias of the other in a new file, and rankings and addresses follow."""
    before, kept = answers(directory), history(directory)
    done = names(directory, "merge", "zoho", "zoho-crm")
    assert done.exit_code == 0, done.output
    path = directory / "products/zoho-crm.json"
    assert path.read_text(encoding="utf-8") == (
        '{\n  "$schema": "../schemas/product.json",\n  "version": 1,\n  "name": "Zoho CRM",\n'
        '  "aliases": [\n    "Zoho"\n  ]\n}\n'
    )
    assert done.stdout == "Wrote products/zoho-crm.json.\n"
    client = app_over(directory).test_client()
    top = client.get("/api/v1/best/crm-software.json").get_json()["combined"][0]
    assert (top["product"], top["modelRanks"]) == ("Zoho CRM", {"A": 1, "B": 1, "C": 1})
    moved = client.get("/api/v1/product/zoho.json")
    assert moved.status_code == 308
    assert moved.headers["Location"].endswith("/product/zoho-crm.json")
    assert "zoho:" not in names(directory, "queue").stdout
    path.unlink()
    assert (answers(directory), history(directory)) == (before, kept)


def test_a_merged_product_with_a_file_leaves_it_to_the_other(directory: Path) -> None:
    """Its names and addresses move to the other's file, in the order that they had."""
    assert names(directory, "merge", "zoho", "zoho-crm").exit_code == 0
    before = answers(directory)
    done = names(directory, "merge", "zoho-crm", "pipedrive")
    assert done.stdout == "Wrote products/pipedrive.json.\nRemoved products/zoho-crm.json.\n"
    merged = product(directory, "pipedrive")
    assert merged["aliases"] == ["Zoho CRM", "Zoho"]
    assert merged["former_slugs"] == ["zoho-crm"]
    served = app_over(directory).test_client()
    for path in before:
        if path.startswith("product/"):
            assert served.get(f"/api/v1/{path}").status_code in (200, 308)


def test_rejecting_silences_a_suggestion_for_good(directory: Path) -> None:
    """What a curator called two is not asked again, stays two, and cannot be merged by mistake."""
    before = answers(directory)
    done = names(directory, "reject", "zoho", "zoho-crm")
    assert done.exit_code == 0, done.output
    assert product(directory, "zoho-crm")["not_same_as"] == ["zoho"]
    assert not (directory / "products" / "zoho.json").exists()
    assert "zoho:" not in names(directory, "queue").stdout
    assert answers(directory) == before
    refused = names(directory, "merge", "zoho", "zoho-crm")
    assert refused.exit_code == 1
    assert "says in not_same_as that it is not zoho; take that out first" in refused.output


@pytest.mark.parametrize(
    ("theirs", "moment"), [("zoho", "write"), ("pipedrive", "write"), ("pipedrive", "unlink")]
)
def test_what_somebody_saves_meanwhile_stays(
    directory: Path, monkeypatch: pytest.MonkeyPatch, theirs: str, moment: str
) -> None:
    """Be it the file that is to be written, a new one, or one that is to go."""

    def write_late(*arguments: Any) -> None:
        if theirs == "zoho":
            write_json(directory / "products/zoho.json", {"version": 1, "name": "Theirs"})
        write(*arguments)
        if moment == "unlink":
            write_json(directory / "products/pipedrive.json", {"version": 1, "name": "Theirs"})

    def members_late(home: Path, name: str) -> dict[str, Any]:
        record = members(home, name)
        if (theirs, moment) == ("pipedrive", "write"):
            write_json(directory / "products/pipedrive.json", {"version": 1, "name": "Theirs"})
        return record

    monkeypatch.setattr(naming, "write", write_late)
    monkeypatch.setattr(naming, "members", members_late)
    done = names(directory, "merge", "pipedrive", "zoho", "--apart")
    assert done.exit_code == 1
    assert f"products/{theirs}.json was left as it was: somebody has just changed it" in done.output
    assert product(directory, theirs) == {"version": 1, "name": "Theirs"}
    assert (directory / "products/zoho.json").exists() == (theirs == "zoho" or moment == "unlink")


def test_a_name_that_two_files_claim_already_is_not_claimed_once_more(directory: Path) -> None:
    """A contested name is settled by taking it out of one file, which is what is said."""
    for slug in ("one", "two"):
        path = directory / "products" / f"{slug}.json"
        path.write_text(
            f'{{"version": 1, "name": "{slug}", "aliases": ["Zoho"]}}', encoding="utf-8"
        )
    done = names(directory, "merge", "zoho", "one")
    assert done.exit_code == 1
    assert 'claims "Zoho" already, and so does another file; see `flask check`' in done.output


@pytest.mark.parametrize("broken", ["zoho", "unheard-of"])
@pytest.mark.parametrize(
    "args",
    [["merge", "pipedrive", "ID"], ["merge", "ID", "pipedrive"], ["reject", "ID", "pipedrive"]],
    ids=" ".join,
)
def test_a_product_file_that_was_never_good_is_to_be_mended_first(
    directory: Path, args: list[str], broken: str
) -> None:
    """Nobody knows what it names: it is no file that somebody has just written."""
    path = directory / f"products/{broken}.json"
    path.write_text("{", encoding="utf-8")
    kept = (directory / "products/pipedrive.json").read_bytes()
    done = names(directory, *(arg.replace("ID", broken) for arg in args))
    assert done.exit_code == 1
    assert f"Error: Mend this first: products/{broken}.json:1:2: " in done.stderr
    assert path.read_text(encoding="utf-8") == "{"
    assert (directory / "products/pipedrive.json").read_bytes() == kept


@pytest.mark.parametrize(
    ("args", "code", "sentence"),
    [
        (["merge", "nothing", "zoho"], 2, 'No product has the slug "nothing".'),
        (["merge", "zoho-crmm", "zoho"], 2, "Closest: zoho-crm"),
        (["merge", "zoho", "zoho"], 1, "zoho is zoho already."),
        (["explain", " "], 2, "Give a spelling."),
    ],
)
def test_what_cannot_be_done_is_said(
    directory: Path, args: list[str], code: int, sentence: str
) -> None:
    """A mistaken command changes nothing and says what to do."""
    done = names(directory, *args)
    assert done.exit_code == code
    assert sentence in done.output
    assert [path.name for path in (directory / "products").iterdir()] == ["pipedrive.json"]


def test_rejecting_takes_nothing_else_in(tmp_path: Path) -> None:
    """Of two products without a file the one gets it that would swallow fewer others."""
    poll = answered("A", ["Zoho", "Zoho CRM", "Zoho Software"])
    nouns = {"crm-software": {"title": "Best CRM software", "nouns": ["CRM"]}}
    data = write_data(tmp_path / "data", categories=nouns, polls=[poll])
    done = names(data, "reject", "zoho-software", "zoho")
    assert done.exit_code == 0
    assert [path.name for path in (data / "products").iterdir()] == ["zoho-software.json"]


@pytest.fixture
def family(tmp_path: Path) -> Path:
    """Five products of one family name, each with a noun of its category, and one without any."""
    nouns = {"crm-software": "CRM", "billing-software": "Billing", "podcast-app": "Podcasts"}
    return write_data(
        tmp_path / "data",
        categories={slug: {"title": slug, "nouns": [noun]} for slug, noun in nouns.items()},
        polls=[
            answered("A", ["Nimbrel CRM", "Nimbrel"], slug="crm-software"),
            answered("A", ["Nimbrel Billing"], slug="billing-software"),
            answered("A", ["Nimbrel Podcasts"], slug="podcast-app"),
        ],
    )


def named_by(directory: Path) -> set[str]:
    """The slugs of all products that polls name."""
    store = app_over(directory).extensions["store"]
    return {profile.slug for profile in store.snapshot.products.values()}


EVERYBODY = {"nimbrel", "nimbrel-crm", "nimbrel-billing", "nimbrel-podcasts"}


def test_nothing_that_was_not_named_is_merged(family: Path) -> None:
    """A file that would take in others by a noun is not written: they are listed first."""
    done = names(family, "merge", "nimbrel-crm", "nimbrel")
    assert (done.exit_code, done.stdout) == (1, "")
    assert said(done).splitlines()[1:] == [
        "  nimbrel-billing, in billing-software",
        "  nimbrel-podcasts, in podcast-app",
        "If one is the same product, merge it, too; of all others say --apart that they are not.",
    ]
    assert not (family / "products").exists()
    assert named_by(family) == EVERYBODY


def test_what_is_named_is_merged_and_the_rest_told_apart(family: Path) -> None:
    """Several may be named at once; `--apart` says of all others that they are not the same."""
    merge = ["merge", "nimbrel-crm", "nimbrel-billing", "nimbrel"]
    only = names(family, *merge)
    assert only.exit_code == 1
    assert "nimbrel-billing," not in only.stderr
    assert "nimbrel-podcasts," in only.stderr
    done = names(family, *merge, "--apart")
    assert done.exit_code == 0, done.output
    written = product(family, "nimbrel")
    assert written["aliases"] == ["Nimbrel CRM", "Nimbrel Billing"]
    assert written["not_same_as"] == ["nimbrel-podcasts"]
    assert named_by(family) == {"nimbrel", "nimbrel-podcasts"}


def test_telling_two_apart_merges_nobody(family: Path) -> None:
    """A file that is written to tell two apart takes in no third one, either."""
    polls = [answered("B", ["Zoho"], slug="crm-software")]
    append(family, [*polls, answered("B", ["Zoho Billing"], slug="billing-software")])
    done = names(family, "reject", "nimbrel", "zoho")
    assert done.exit_code == 1
    assert "zoho-billing," in done.stderr
    assert names(family, "reject", "nimbrel", "zoho", "--apart").exit_code == 0
    assert product(family, "zoho")["not_same_as"] == ["nimbrel", "zoho-billing"]
    assert named_by(family) == EVERYBODY | {"zoho", "zoho-billing"}


PIPEDRIVE = "Pipedrive (products/pipedrive.json)"
BY_NOUN = ["rule: name without maker or noun", "in: crm-software", "key: pipedrivecrm"]
KNOWN = "/product/pipedrive, named 2x in crm-software"


@pytest.mark.parametrize(
    ("spelling", "lines"),
    [
        (
            "PIPEDRIVE\u2122",
            [
                f"Pipedrive: {PIPEDRIVE}",
                "rule: name or alias",
                "in: crm-software",
                "key: pipedrive",
                KNOWN,
            ],
        ),
        ("Pipedrive CRM", [f"Pipedrive CRM: {PIPEDRIVE}", *BY_NOUN, KNOWN]),
        (
            "Zoho Two",
            [
                "Zoho Two: Zoho Two (a product of its own, in no file)",
                "rule: own name",
                "in: no category",
                "key: zohotwo",
                "named in no successful poll",
            ],
        ),
    ],
)
def test_explain_says_which_rule_resolved_a_spelling(
    directory: Path, spelling: str, lines: list[str]
) -> None:
    """Product, rule, categories, key and address of any spelling, known or not."""
    assert names(directory, "explain", spelling).stdout.splitlines() == lines


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


def test_every_command_has_help(directory: Path) -> None:
    """Each command says in a sentence what it does."""
    for command in ("queue", "merge", "reject", "explain"):
        done = names(directory, command, "--help")
        assert done.exit_code == 0
        assert len(done.output.splitlines()[2].strip()) > 20
