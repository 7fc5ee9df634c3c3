"""The answers over the shipped data, held to the published contract, written here by hand.

Nothing in the table is derived from our structs: what readers were promised does not change with
the code. That every answer fits the served schema is shown in `test_web_openapi.py`.
"""

from typing import Any

import pytest
from flask.testing import FlaskClient

BASE = "https://rankings.example"

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
    "ChangeItem": {
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
        places = [place["place"] for place in hit["ranked_in"]]
        assert places == sorted(places)
        assert hit["best_rank"] == min((place["rank"] for place in hit["ranked_in"]), default=0)
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
