"""What is served equals what a second, independent computation finds, for all the data."""

from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from builders import BASE_URL, answered, app_over, append, failed, line_of, write_data, write_json
from recomputation import Recomputation

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from flask import Flask
    from flask.testing import FlaskClient

    from store.records import Poll

WORLDS = ("shipped", "odd names", "odd times")

ODD = (
    "Zoho CRM", "Zoho", "zoho crm™", "CRM by Zoho", "Zoho CRM Plus", "Salesforce Sales Cloud",
    "Sales Cloud", "Salesforce", "HubSpot", "HubSpot CRM", "Hubspot crm software", "Pipedrive",
    "Pipedrive 3.1", "Pipedrive 31", "Attio", "Attio+", "Attio#", "Café CRM", "Cafe", "Monday.com",
    "monday", "Yahoo!", "Ωmega", "omega", "日本CRM", "C", "C++", "1,000 CRM",
    "Ørsted", "Orsted 7C9BF7", "Orsted-C0FFEE", "Decade", "The Decade", "Old Notion", "Notion",
)  # fmt: skip
DOMAINS = (None, None, "zoho.com", "salesforce.com", "elsewhere.example", "monday.com")

PRODUCTS: dict[str, dict[str, Any]] = {
    "zoho-crm": {"name": "Zoho CRM", "maker": "Zoho", "domain": "zoho.com"},
    "sales-cloud": {"name": "Salesforce Sales Cloud", "maker": "Salesforce"},
    "hubspot": {
        "name": "HubSpot",
        "aliases": ["Hub Spot", "Attio+"],
        "not_same_as": ["hubspot-crm"],
    },
    "attio": {"name": "Attio", "aliases": ["Attio+"]},
    "monday": {"name": "monday.com", "domain": "monday.com", "domain_is_product": True},
    "never-named": {"name": "Never Named", "former_slugs": ["pipedrive-31"]},
    "notion": {"name": "Notion", "former_slugs": ["old-notion"]},
}

WORDS = (
    "Quick",
    "steady",
    "plain.",
    "Tidy!",
    "Cheap?",
    "Long,",
    "and so on…",
    "(truly.)",
    "done..",
)


def _prose(draw: Random) -> str | None:
    """Nothing, a few words or very many, with every kind of ending."""
    return (
        " ".join(draw.choices(WORDS, k=draw.choice([1, 3, 30, 60])))
        if draw.random() < 0.8
        else None
    )


def _polls(seed: int, slugs: dict[str, str], names: tuple[str, ...], gap: int) -> Iterator[Poll]:
    """Random polls at random distances, with failures, a retired model and changed questions."""
    draw = Random(seed)
    for slug, question in slugs.items():
        day = 0
        for _ in range(draw.randint(1, 14)):
            day += draw.randint(0, gap)
            at = f"2026-{1 + day // 28:02}-{1 + day % 28:02}T06:00:00Z"
            model = draw.choice(["A", "B", "C", "D", "Retired"])
            if draw.random() < 0.15:
                yield failed(model, at=at, slug=slug)
                continue
            poll = answered(
                model,
                draw.sample(names, draw.randint(1, 5)),
                at,
                slug=slug,
                question=question if draw.random() < 0.9 else "What was asked before?",
                domains={name: draw.choice(DOMAINS) for name in names},
                reason=_prose(draw),
                caveat=_prose(draw),
            )
            yield poll


def _odd_world(directory: Path, names: tuple[str, ...], gap: int) -> Path:
    """Forty categories about few products, some with nouns, one with a former slug."""
    categories: dict[str, dict[str, Any]] = {
        f"crm-{i}": {
            "title": f"Best CRM {i}",
            "question": f"What is the best CRM {i}?",
            "nouns": [[], ["CRM"], ["CRM", "software", "CRM software"]][i % 3],
            "former_slugs": ["crm-old"] if i == 7 else [],
            "former_questions": ["What was asked before?"] if i % 4 == 3 else [],
        }
        for i in range(40)
    }
    write_data(directory, categories=categories, products=PRODUCTS, stale_after_days=20)
    asked = {slug: fields["question"] for slug, fields in categories.items()}
    polls = list(_polls(gap, {**asked, "crm-old": asked["crm-7"]}, names, gap))
    append(directory, polls)
    assistants: list[dict[str, Any]] = [{"name": name, "api": "sample"} for name in "ABCD"]
    assistants[1]["former_names"] = ["Retired"] if gap > 9 else []
    write_json(directory / "models.json", {"version": 1, "models": assistants})
    _damage(directory / "history")
    hidden = {poll.id: {"reason": "a test", "date": "2026-11-20"} for poll in polls[::25]}
    write_json(directory / "withheld.json", {"version": 1, "withheld": hidden})
    return directory


def _damage(history: Path) -> None:
    """Put what counts nowhere behind sound lines: repeats, other files' lines, what cannot be."""
    lines = {path: path.read_bytes().splitlines(keepends=True) for path in history.iterdir()}
    for path, own in lines.items():
        other = lines[history / "crm-3.jsonl"]
        impossible = {**json.loads(own[0]), "withheld": True}
        beyond = {**json.loads(own[-1]), "polledAt": "9999-01-01T00:00:00Z"}
        bad = [own[0], other[-1], line_of(impossible), line_of(beyond), b"{\n"]
        path.write_bytes(b"".join([*own[:-1], *bad, own[-1]]))


@pytest.fixture(scope="module", params=WORLDS)
def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Recomputation, FlaskClient]:
    """A data directory's recomputed figures, and a reader of its live answers."""
    directory: Path
    if request.param == "shipped":
        directory = request.getfixturevalue("shipped")
        app: Flask = request.getfixturevalue("app")
    else:
        names, gap = (ODD, 9) if request.param == "odd names" else (ODD[:8], 28)
        directory = _odd_world(tmp_path_factory.mktemp("odd") / "data", names, gap)
        app = app_over(directory)
    return Recomputation(directory, BASE_URL), app.test_client()


World = tuple[Recomputation, "FlaskClient"]


def test_every_category_is_as_recomputed(world: World) -> None:
    """Scores, order, ties, ranks, agreement, overlap and every sentence of every category."""
    recomputed, client = world
    for slug in recomputed.categories:
        answer = client.get(f"/api/v1/best/{slug}.json")
        expected = recomputed.category(slug)
        if expected is None:
            assert answer.status_code == (503 if slug in recomputed.damaged else 404), slug
            continue
        body = answer.get_json()
        if expected["agreement"]:
            exact = expected["agreement"].pop("overlap")
            assert abs(body["agreement"].pop("overlap") - exact) <= 0.00005 + 1e-12, slug
        assert {key: body[key] for key in expected} == expected, slug


def test_the_list_holds_exactly_the_ranked_categories(world: World) -> None:
    """Categories with a counted answer, by title, with the date of their newest one."""
    recomputed, client = world
    listed = {c["slug"]: c["updated"] for c in client.get("/api/v1/categories.json").get_json()}
    assert listed == {
        slug: figures["updated"]
        for slug in recomputed.categories
        if (figures := recomputed.category(slug))
    }


def test_every_change_is_as_recomputed(world: World) -> None:
    """Which flips there are, from what to what, confirmed or not, newest first."""
    recomputed, client = world
    expected, body = recomputed.changes(), client.get("/api/v1/changes.json").get_json()
    shown = body["changes"]
    assert body["total"] == len(expected)
    assert body["count"] == len(shown) == min(1000, len(expected))
    assert len({change["id"] for change in shown}) == len(shown)
    times = [expected[change["id"]]["at"] for change in shown]
    assert times == sorted(times, reverse=True)
    assert min(times) >= max(
        (c["at"] for id_, c in expected.items() if id_ not in {s["id"] for s in shown}), default=""
    )
    for change in shown:
        assert {**change, "at": expected[change["id"]]["at"]} == expected[change["id"]]
    assert body["lastChecked"] == recomputed.last_poll()
    assert body["tracked"] == len({slug for slug, _ in recomputed.successes})


def test_every_mention_is_as_recomputed(world: World) -> None:
    """Counts, windows, denominators, differences and directions of the most mentioned."""
    recomputed, client = world
    expected, body = recomputed.mentions(), client.get("/api/v1/mentions.json").get_json()
    assert body["polls"] == len(recomputed.successes)
    assert body["asOf"] == recomputed.last_poll()
    assert [product["mentions"] for product in body["products"]] == sorted(
        (product["mentions"] for product in expected.values()), reverse=True
    )[:100]
    for rank, product in enumerate(body["products"], start=1):
        assert product["rank"] == rank
        wanted = expected[product["slug"]]
        delta = wanted.pop("delta")
        assert (product["delta"] is None) == (delta is None)
        assert delta is None or abs(product["delta"] - delta) <= 0.05 + 1e-9
        assert {key: product[key] for key in wanted} == wanted


def test_every_address_leads_to_the_product_that_owns_it(world: World) -> None:
    """Each slug that a spelling ever had answers with its product, or moved to it for good."""
    recomputed, client = world
    owners = recomputed.owners()
    for address, product in list(owners.items())[:: 1 + len(owners) // 3000]:
        answer = client.get(f"/api/v1/product/{address}.json")
        slug = recomputed.slug(product)
        if slug == address:
            assert answer.get_json()["name"] == recomputed.name(product)
        else:
            assert answer.status_code == 308, address
            assert answer.location == f"{BASE_URL}/api/v1/product/{slug}.json"


def test_a_product_file_that_no_poll_named_has_no_record(world: World) -> None:
    """A record is what models said; a curator's file alone is none."""
    recomputed, client = world
    unnamed = recomputed.files.keys() - recomputed.first_use.keys() - recomputed.owners().keys()
    for slug in unnamed:
        assert client.get(f"/api/v1/product/{slug}.json").status_code == 404, slug
