"""The answers over the shipped data, held to the published contract, written here by hand.

Nothing in the table is derived from our structs: what readers were promised does not change with
the code. That every answer fits the served schema is shown in `test_web_openapi.py`.
"""

from typing import Any

import pytest
from flask.testing import FlaskClient

BASE = "https://rankings.example"
MODELS = ["Model A", "Model B", "Model C", "Model D"]

# Component of the document: its published fields, by type; `?` is "or null".
PROMISED = {
    "CategoryVerdict": {
        "string": "slug title question url updated", "string?": "verdict consensus disagreement",
        "array": "models combined", "object": "perModel missedByModel",
    },
    "RankedEntry": {
        "integer": "rank score appearances", "string": "product", "string?": "domain reason",
        "object": "modelRanks",
    },
    "ProductRecord": {
        "string": "slug name page check", "string?": "domain verdict",
        "integer": "best_rank categories", "array": "entries",
    },
    "ProductEntry": {
        "string": "slug title api", "integer": "rank of", "object": "modelRanks",
        "string?": "reason", "array": "fixes",
    },
    "ChangeList": {"string?": "lastChecked", "integer": "tracked count", "array": "changes"},
    "Change": {
        "string": "slug title model from to fromDate toDate page api", "string?": "reason",
    },
    "SearchResults": {"array": "categories brands"},
    "CategoryHit": {"string": "api", "string?": "verdict"},
    "BrandHit": {"string": "api", "string?": "verdict", "array": "ranked_in"},
    "CategoryItem": {"string": "api"},
    "PollRecord": {
        "string": "polledAt model slug", "string?": "pick reason error", "array": "ranking",
    },
    "LabsExperiment": {"string": "method finding url"},
}  # fmt: skip


def kind_of(schema: dict[str, Any], components: dict[str, Any]) -> str:
    """Return the type of a schema, with `?` where it may be null."""
    if "$ref" in schema:
        return kind_of(components[schema["$ref"].rpartition("/")[2]], components)
    if options := schema.get("anyOf"):
        (kind,) = {kind_of(o, components) for o in options if o.get("type") != "null"}
        return f"{kind}?"
    return str(schema["type"])


@pytest.mark.parametrize("name", PROMISED)
def test_published_fields_are_there_with_their_types(client: FlaskClient, name: str) -> None:
    """Names and types never change within version 1, and a documented field is always present."""
    components = client.get("/api/v1/openapi.json").get_json()["components"]["schemas"]
    schema = components[name]
    for kind, fields in PROMISED[name].items():
        for field in fields.split():
            assert kind_of(schema["properties"][field], components) == kind, field
            assert field in schema["required"]


def ranked(client: FlaskClient) -> list[str]:
    return [item["slug"] for item in client.get("/api/v1/categories.json").get_json()]


def test_every_category_verdict_agrees_with_itself(verdicts: dict[str, Any]) -> None:
    """Addresses, models and scores of every ranked category of the shipped data."""
    assert verdicts
    for slug, verdict in verdicts.items():
        assert verdict["slug"] == slug
        assert verdict["url"] == f"{BASE}/best/{slug}"
        assert verdict["url"] in verdict["verdict"]
        assert list(verdict["perModel"]) == list(verdict["answers"]) == verdict["models"]
        assert sorted(verdict["models"] + verdict["missing"]) == MODELS
        assert set(verdict["missedByModel"]) <= set(verdict["models"])
        assert (verdict["agreement"] is None) == (len(verdict["models"]) < 2)
        combined = verdict["combined"]
        assert [e["rank"] for e in combined] == list(range(1, len(combined) + 1))
        for entry in combined:
            assert entry["score"] == sum(6 - rank for rank in entry["modelRanks"].values())
            assert entry["appearances"] == len(entry["modelRanks"])
            assert set(entry["modelRanks"]) <= set(verdict["models"])


def test_every_product_record_agrees_with_itself(product_records: dict[str, Any]) -> None:
    """Addresses and counts of every product that any shipped poll names."""
    assert product_records
    for slug, record in product_records.items():
        assert record["slug"] == slug
        assert record["page"] == f"{BASE}/product/{slug}"
        assert record["check"] == f"{BASE}/product/{slug}/polls"
        assert record["categories"] == len(record["entries"])
        assert record["best_rank"] == min((e["rank"] for e in record["entries"]), default=0)
        assert (record["verdict"] is None) == (not record["entries"])
        for entry in record["entries"]:
            assert entry["api"] == f"{BASE}/api/v1/best/{entry['slug']}.json"


def test_a_product_record_agrees_with_the_verdicts_it_points_to(client: FlaskClient) -> None:
    """Rank, of and modelRanks of a product's entries are those of the category's ranking."""
    for slug in ranked(client)[::50]:
        verdict = client.get(f"/api/v1/best/{slug}.json").get_json()
        for place in verdict["combined"]:
            record = client.get(f"/api/v1/product/{place['slug']}.json").get_json()
            (entry,) = [e for e in record["entries"] if e["slug"] == slug]
            assert entry["rank"] == place["rank"]
            assert entry["of"] == len(verdict["combined"])
            assert entry["modelRanks"] == place["modelRanks"]
            assert record["name"] == place["product"]


def test_changes_are_the_newest_first(client: FlaskClient) -> None:
    """Each from one product to another, in order, with the addresses of its category."""
    changes = client.get("/api/v1/changes.json").get_json()
    assert changes["count"] == len(changes["changes"]) <= 1000
    assert changes["total"] >= changes["count"] > 0
    assert changes["tracked"] == len(ranked(client))
    for change in changes["changes"]:
        assert change["from"] != change["to"]
        assert change["fromDate"] <= change["toDate"]
        assert change["page"] == f"{BASE}/best/{change['slug']}"
        assert change["api"] == f"{BASE}/api/v1/best/{change['slug']}.json"
    days = [change["toDate"] for change in changes["changes"]]
    assert days == sorted(days, reverse=True)


@pytest.mark.parametrize(
    "query", ["software", "best", "vpn", "zzqx", "coffee", "x", "£", "a" * 200]
)
def test_a_search_has_two_arrays_of_ten_best_first(client: FlaskClient, query: str) -> None:
    """Their addresses answer; categories stand beside them only where nothing is sure."""
    results = client.get("/api/v1/search", query_string={"q": query}).get_json()
    assert results["query"] == query
    for hits in (results["categories"], results["brands"]):
        assert len(hits) <= 10
        assert [h["score"] for h in hits] == sorted((h["score"] for h in hits), reverse=True)
        for hit in hits:
            assert client.get(hit["api"].removeprefix(BASE)).status_code == 200
    sure = [h for h in results["categories"] + results["brands"] if h["match"] != "related"]
    assert len(results["related"]) <= (0 if sure else 5)
    slugs = {hit["slug"] for hit in results["categories"]}
    assert slugs.isdisjoint(near["slug"] for near in results["related"])
    for hit in results["brands"]:
        places = [place["rank"] for place in hit["ranked_in"]]
        assert places == sorted(places)
        assert hit["best_rank"] == (places[0] if places else 0)
        assert hit["ranked_in_count"] == len(places)


def test_search_hits_carry_what_the_full_records_say(client: FlaskClient) -> None:
    """A hit's verdict, updated and first five are those of the record behind its api."""
    results = client.get("/api/v1/search?q=software").get_json()
    for hit in results["categories"]:
        verdict = client.get(hit["api"].removeprefix(BASE)).get_json()
        assert (hit["verdict"], hit["updated"]) == (verdict["verdict"], verdict["updated"])
        fields = ("rank", "place", "product", "slug", "score", "tied")
        assert hit["top"] == [{f: entry[f] for f in fields} for entry in verdict["combined"][:5]]
        if siblings := hit["siblings"]:
            listed = client.get(siblings["api"].removeprefix(BASE)).get_json()
            assert 1 <= siblings["count"] < len(listed)
            assert hit["slug"] in [item["slug"] for item in listed]
            assert siblings["api"].endswith(f"?topic={siblings['topic']}")
            page, part = siblings["page"].removeprefix(BASE).split("#")
            section = client.get(page).text.split(f'<h2 id="{part}">')[1].split("</section>")[0]
            assert section.count("/best/") == siblings["count"] + 1
            assert f"/best/{hit['slug']}" in section
    for hit in results["brands"]:
        record = client.get(hit["api"].removeprefix(BASE)).get_json()
        for name in ("slug", "name", "domain", "verdict", "best_rank", "page"):
            assert hit[name] == record[name]


def test_categories_are_listed_by_title(client: FlaskClient) -> None:
    """A top-level array, each item with the address of its verdict."""
    items = client.get("/api/v1/categories.json").get_json()
    assert all(item["api"] == f"{BASE}/api/v1/best/{item['slug']}.json" for item in items)
    titles = [item["title"].casefold() for item in items]
    assert titles == sorted(titles)


def test_mentions_are_the_hundred_most_mentioned(client: FlaskClient) -> None:
    """Most mentioned first, with a trend over the same cells."""
    products = client.get("/api/v1/mentions.json").get_json()["products"]
    assert 0 < len(products) <= 100
    assert [p["rank"] for p in products] == list(range(1, len(products) + 1))
    counts = [p["mentions"] for p in products]
    assert counts == sorted(counts, reverse=True)
    for product in products:
        assert product["polls7d"] == product["pollsPrev7d"]
        assert (product["delta"] is None) == (product["polls7d"] == 0)
        assert product["api"] == f"{BASE}/api/v1/product/{product['slug']}.json"


def test_history_has_answers_and_failures_newest_first(client: FlaskClient) -> None:
    """A failed poll has an error and no pick, an answer a pick and no error."""
    kinds = set()
    for slug in ranked(client)[::40]:
        records = client.get(f"/api/v1/history?slug={slug}&limit=500").get_json()
        times = [record["polledAt"] for record in records]
        assert times == sorted(times, reverse=True)
        for record in records:
            assert record["slug"] == slug
            failed = record["failure"] is not None
            assert failed == (record["error"] is not None) == (record["pick"] is None)
            assert failed == (record["ranking"] == [])
            kinds.add(record["failure"])
    assert None in kinds
    assert len(kinds) > 1, "the shipped data holds failed polls too"


def test_labs_lead_to_their_write_ups(client: FlaskClient) -> None:
    """Each experiment has the address of its page."""
    labs = client.get("/api/v1/labs.json").get_json()
    assert labs["count"] == len(labs["experiments"]) > 0
    for experiment in labs["experiments"]:
        assert experiment["url"] == f"{BASE}/labs/{experiment['slug']}"
