"""Every answer over the shipped data, held to tables of fields and types written by hand.

Nothing here is derived from our structs: what readers were promised does not change with the code.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from flask.testing import FlaskClient

DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
TIME = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z")
SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
MODELS = ["Model A", "Model B", "Model C", "Model D"]
BASE = "https://rankings.example"
TYPES: dict[str, set[type]] = {
    "integer": {int},
    "number": {int, float},
    "string": {str},
    "boolean": {bool},
    "object": {dict},
    "null": {type(None)},
}

# Field: type. The verdict of a category
CATEGORY_VERDICT = {
    "slug": "string",
    "title": "string",
    "question": "string",
    "verdict": "string or null",
    "url": "string",
    "updated": "date",
    "models": "array of string",
    "consensus": "string or null",
    "disagreement": "string or null",
    "combined": "array of object",
    "perModel": "object",
    "missedByModel": "object",
}
CATEGORY_VERDICT_MORE = {"asOf": "date or null", "final": "boolean or null",
                         "nextQuestion": "string or null",
                         "missing": "array of string", "agreement": "object or null",
                         "answers": "object", "certainty": "object", "quote": "string",
                         "rules": "object", "response": "object",
                         "asked": "string"}  # fmt: skip
# An entry of its merged ranking
RANKED_ENTRY = {
    "rank": "integer",
    "product": "string",
    "domain": "string or null",
    "score": "number",
    "appearances": "integer",
    "modelRanks": "object",
    "reason": "string or null",
}
RANKED_ENTRY_MORE = {
    "slug": "slug",
    "tied": "boolean",
    "meanScore": "number or null",
    "range": "array of integer or null",
    "presence": "object",
    "firsts": "object or null",
    "ownMaker": "boolean",
}
SHARE = {"named": "integer", "of": "integer", "share": "number", "interval": "array of number"}
CERTAINTY = {
    "level": "string",
    "sentence": "string",
    "answers": "integer",
    "runs": "object",
    "from": "date",
    "to": "date",
    "leader": "object or null",
    "contenders": "array of object",
}
# The record of a product
PRODUCT_RECORD = {
    "slug": "slug",
    "name": "string",
    "domain": "string or null",
    "verdict": "string or null",
    "best_rank": "integer",
    "categories": "integer",
    "entries": "array of object",
    "page": "string",
    "check": "string",
}
PRODUCT_ENTRY = {
    "slug": "slug",
    "title": "string",
    "rank": "integer",
    "of": "integer",
    "modelRanks": "object",
    "reason": "string or null",
    "fixes": "array of object",
    "api": "string",
    "range": "array of integer or null",
    "level": "string",
    "levelSentence": "string",
}
# The list of changes
CHANGE_LIST = {
    "lastChecked": "time or null",
    "tracked": "integer",
    "count": "integer",
    "changes": "array of object",
}
CHANGE = {
    "slug": "slug",
    "title": "string",
    "model": "string",
    "from": "string",
    "to": "string",
    "reason": "string or null",
    "fromDate": "date",
    "toDate": "date",
    "page": "string",
    "api": "string",
    "servedModelFrom": "string or null",
    "servedModelTo": "string or null",
}
# Search, and the lists
CATEGORY_HIT = {
    "slug": "slug",
    "title": "string",
    "question": "string",
    "verdict": "string or null",
    "updated": "date",
    "page": "string",
    "api": "string",
    "score": "number",
    "match": "string",
    "siblings": "object or null",
    "top": "array of object",
    "level": "string",
    "levelSentence": "string",
}
RELATED = {name: CATEGORY_HIT[name] for name in ("slug", "title", "question", "page", "api")}
TOP = {"rank": "integer", "product": "string", "slug": "slug", "score": "number", "tied": "boolean"}
BRAND_HIT = {
    "slug": "slug",
    "name": "string",
    "domain": "string or null",
    "verdict": "string or null",
    "best_rank": "integer",
    "page": "string",
    "api": "string",
    "score": "number",
    "match": "string",
    "ranked_in": "array of object",
    "ranked_in_count": "integer",
}
RANKED_IN = {"slug": "slug", "title": "string", "rank": "integer", "of": "integer", "api": "string"}
# Mentions, history and labs
MODEL_PICK = {
    "rank": "integer",
    "product": "string",
    "named": "string",
    "slug": "slug",
    "domain": "string or null",
    "reason": "string or null",
    "ownMaker": "boolean",
}
MISSED = {"product": "string", "slug": "slug or null", "reason": "string or null"}
STAMP = {"polledAt": "time", "poll": "string", "stale": "boolean"}
AGREEMENT = {
    "top1": "object",
    "overlap": "number",
    "selfOverlap": "number or null",
    "relativeOverlap": "number or null",
}
TOP1 = {"product": "string", "slug": "slug", "votes": "integer", "of": "integer", "label": "string"}
CATEGORY_ITEM = {"slug": "slug", "title": "string", "updated": "date", "api": "string"}
MENTION_LIST = {"asOf": "time or null", "polls": "integer", "products": "array of object"}
MENTION = {
    "rank": "integer",
    "slug": "slug",
    "name": "string",
    "domain": "string or null",
    "mentions": "integer",
    "mentions7d": "integer",
    "polls7d": "integer",
    "mentionsPrev7d": "integer",
    "pollsPrev7d": "integer",
    "delta": "number or null",
    "direction": "string",
    "categories": "integer",
    "page": "string",
    "api": "string",
}
POLL = {
    "v": "integer",
    "id": "string",
    "slug": "slug",
    "model": "string",
    "polledAt": "time",
    "question": "string",
    "pick": "string or null",
    "ranking": "array of object",
    "reason": "string or null",
    "missed": "array of object",
    "caveat": "string or null",
    "error": "string or null",
    "failure": "string or null",
    "notes": "array of string",
    "servedModel": "string or null",
    "requestId": "string or null",
    "webSearch": "boolean",
    "usage": "object or null",
    "latencyMs": "integer or null",
    "crc": "string",
}
POLL_PICK = {
    "rank": "integer",
    "product": "string",
    "domain": "string or null",
    "reason": "string or null",
    "fixes": "array of string",
}
POLL_MISS = {"product": "string", "reason": "string or null"}
USAGE = {"inputTokens": "integer", "outputTokens": "integer", "usd": "number or null"}
LABS = {"count": "integer", "experiments": "array of object"}
EXPERIMENT = {
    "slug": "slug",
    "title": "string",
    "method": "string",
    "finding": "string",
    "date": "date",
    "url": "string",
}


@cache
def is_a(kind: str) -> Callable[[Any], bool]:
    """Whether a JSON value is of a type as the tables write it: a function of the value."""
    if " or " in kind:
        either = [is_a(part) for part in kind.split(" or ")]
        return lambda value: any(fits(value) for fits in either)
    if kind.startswith("array of "):
        fits = is_a(kind.removeprefix("array of "))
        return lambda value: isinstance(value, list) and all(map(fits, value))
    if kind in ("slug", "date", "time"):
        matches = {"slug": SLUG, "date": DATE, "time": TIME}[kind].fullmatch
        return lambda value: isinstance(value, str) and matches(value) is not None
    types: set[type] = TYPES[kind]
    return lambda value: type(value) in types


def hold(value: dict[str, Any], *tables: dict[str, str], exactly: bool = True) -> None:
    """Assert that an object has every field of the tables with its type, and no other."""
    table = {name: kind for part in tables for name, kind in part.items()}
    wrong = {n: value.get(n, "missing") for n, k in table.items() if not is_a(k)(value.get(n, ...))}
    assert not wrong
    assert not exactly or value.keys() == table.keys()


def ranked(client: FlaskClient) -> list[str]:
    return [item["slug"] for item in client.get("/api/v1/categories.json").get_json()]


def test_every_category_verdict_is_what_was_promised(verdicts: dict[str, Any]) -> None:
    """Fields and types hold for every ranked category of the shipped data."""
    assert verdicts
    for slug, verdict in verdicts.items():
        hold(verdict, CATEGORY_VERDICT, CATEGORY_VERDICT_MORE)
        assert verdict["slug"] == slug
        assert verdict["url"] == f"{BASE}/best/{slug}"
        assert verdict["url"] in verdict["verdict"]
        assert list(verdict["perModel"]) == list(verdict["answers"]) == verdict["models"]
        assert sorted(verdict["models"] + verdict["missing"]) == MODELS
        assert set(verdict["missedByModel"]) <= set(verdict["models"])
        assert [e["rank"] for e in verdict["combined"]] == list(
            range(1, len(verdict["combined"]) + 1)
        )
        for entry in verdict["combined"]:
            hold(entry, RANKED_ENTRY, RANKED_ENTRY_MORE)
            assert entry["score"] == sum(6 - rank for rank in entry["modelRanks"].values())
            assert entry["appearances"] == len(entry["modelRanks"])
            assert set(entry["modelRanks"]) <= set(verdict["models"])


def test_every_inner_part_of_a_verdict_is_what_was_promised(verdicts: dict[str, Any]) -> None:
    """perModel, missedByModel, answers and agreement, for every ranked category."""
    for verdict in verdicts.values():
        for picks in verdict["perModel"].values():
            assert picks
            for pick in picks:
                hold(pick, MODEL_PICK)
        for missed in verdict["missedByModel"].values():
            for miss in missed:
                hold(miss, MISSED)
        for stamp in verdict["answers"].values():
            hold(stamp, STAMP)
        hold(verdict["certainty"], CERTAINTY)
        hold(verdict["rules"], {"agree": "integer", "of": "integer"})
        hold(verdict["response"], {"answered": "integer", "of": "integer"})
        for entry in verdict["combined"]:
            hold(entry["presence"], SHARE)
            if entry["firsts"]:
                hold(entry["firsts"], SHARE)
        if len(verdict["models"]) > 1:
            hold(verdict["agreement"], AGREEMENT)
            hold(verdict["agreement"]["top1"], TOP1)
            assert verdict["agreement"]["top1"]["label"] in ("unanimous", "majority", "split")
        else:
            assert verdict["agreement"] is None


def test_every_product_record_is_what_was_promised(product_records: dict[str, Any]) -> None:
    """Fields and types hold for every product that any shipped poll names."""
    assert product_records
    for slug, record in product_records.items():
        hold(record, PRODUCT_RECORD)
        assert record["slug"] == slug
        assert record["page"] == f"{BASE}/product/{slug}"
        assert record["check"] == f"{BASE}/product/{slug}/polls"
        assert record["categories"] == len(record["entries"])
        assert record["best_rank"] == min((e["rank"] for e in record["entries"]), default=0)
        assert (record["verdict"] is None) == (not record["entries"])
        for entry in record["entries"]:
            hold(entry, PRODUCT_ENTRY)
            assert entry["api"] == f"{BASE}/api/v1/best/{entry['slug']}.json"
            for fix in entry["fixes"]:
                hold(fix, {"model": "string", "fix": "string"})


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


def test_changes_are_what_was_promised(client: FlaskClient) -> None:
    """Fields and types hold for every change, newest first."""
    changes = client.get("/api/v1/changes.json").get_json()
    hold(changes, CHANGE_LIST, {"total": "integer", "leaders": "array of object"})
    assert changes["count"] == len(changes["changes"]) <= 1000
    assert changes["total"] >= changes["count"] > 0
    assert changes["tracked"] == len(ranked(client))
    for change in changes["changes"]:
        hold(change, CHANGE, {"id": "string", "confirmed": "boolean"})
        assert change["from"] != change["to"]
        assert change["fromDate"] <= change["toDate"]
        assert change["page"] == f"{BASE}/best/{change['slug']}"
        assert change["api"] == f"{BASE}/api/v1/best/{change['slug']}.json"
    days = [change["toDate"] for change in changes["changes"]]
    assert days == sorted(days, reverse=True)


@pytest.mark.parametrize(
    "query", ["software", "best", "vpn", "zzqx", "coffee", "x", "£", "a" * 200]
)
def test_search_is_what_was_promised(client: FlaskClient, query: str) -> None:
    """Two arrays of at most ten hits with their addresses, and five categories beside them."""
    found = client.get("/api/v1/search", query_string={"q": query}).get_json()
    arrays = dict.fromkeys(("categories", "brands", "related"), "array of object")
    hold(found, {"query": "string", **arrays})
    assert found["query"] == query
    for name, table in (("categories", CATEGORY_HIT), ("brands", BRAND_HIT)):
        hits = found[name]
        assert len(hits) <= 10
        assert [h["score"] for h in hits] == sorted((h["score"] for h in hits), reverse=True)
        for hit in hits:
            hold(hit, table)
            assert 0 <= hit["score"] <= 1
            assert client.get(hit["api"].removeprefix(BASE)).status_code == 200
    sure = [h for h in found["categories"] + found["brands"] if h["match"] != "related"]
    assert len(found["related"]) <= (0 if sure else 5)
    for near in found["related"]:
        hold(near, RELATED)
        assert near["slug"] not in [hit["slug"] for hit in found["categories"]]
    for hit in found["categories"]:
        assert 1 <= len(hit["top"]) <= 5
        for top in hit["top"]:
            hold(top, TOP)
    for hit in found["brands"]:
        for place in hit["ranked_in"]:
            hold(place, RANKED_IN)
        places = [place["rank"] for place in hit["ranked_in"]]
        assert places == sorted(places)
        assert hit["best_rank"] == (places[0] if places else 0)
        assert hit["ranked_in_count"] == len(places)


def test_search_hits_carry_what_the_full_records_say(client: FlaskClient) -> None:
    """A hit's verdict, updated and first five are those of the record behind its api."""
    found = client.get("/api/v1/search?q=software").get_json()
    for hit in found["categories"]:
        verdict = client.get(hit["api"].removeprefix(BASE)).get_json()
        assert (hit["verdict"], hit["updated"]) == (verdict["verdict"], verdict["updated"])
        first = [{name: entry[name] for name in TOP} for entry in verdict["combined"][:5]]
        assert hit["top"] == first
        if siblings := hit["siblings"]:
            listed = client.get(siblings["api"].removeprefix(BASE)).get_json()
            assert 1 <= siblings["count"] < len(listed)
            assert hit["slug"] in [item["slug"] for item in listed]
            page, part = siblings["page"].removeprefix(BASE).split("#")
            section = client.get(page).text.split(f'<h2 id="{part}">')[1].split("</section>")[0]
            assert section.count("/best/") == siblings["count"] + 1
            assert f"/best/{hit['slug']}" in section
    for hit in found["brands"]:
        record = client.get(hit["api"].removeprefix(BASE)).get_json()
        for name in ("slug", "name", "domain", "verdict", "best_rank", "page"):
            assert hit[name] == record[name]


def test_categories_is_the_list_that_was_promised(client: FlaskClient) -> None:
    """A top-level array sorted by title, four fields each."""
    items = client.get("/api/v1/categories.json").get_json()
    for item in items:
        hold(item, CATEGORY_ITEM)
        assert item["api"] == f"{BASE}/api/v1/best/{item['slug']}.json"
    titles = [item["title"].casefold() for item in items]
    assert titles == sorted(titles)


def test_mentions_are_what_was_promised(client: FlaskClient) -> None:
    """The hundred most mentioned, most mentioned first, with a trend over the same cells."""
    mentions = client.get("/api/v1/mentions.json").get_json()
    hold(mentions, MENTION_LIST)
    products = mentions["products"]
    assert 0 < len(products) <= 100
    assert [p["rank"] for p in products] == list(range(1, len(products) + 1))
    counts = [p["mentions"] for p in products]
    assert counts == sorted(counts, reverse=True)
    for product in products:
        hold(product, MENTION)
        assert product["polls7d"] == product["pollsPrev7d"]
        assert (product["delta"] is None) == (product["polls7d"] == 0)
        assert product["direction"] in ("new", "insufficient", "up", "down", "flat")
        assert product["api"] == f"{BASE}/api/v1/product/{product['slug']}.json"


def test_history_records_are_what_was_promised(client: FlaskClient) -> None:
    """Newest first, failures included, each the line of the history file."""
    kinds = set()
    for slug in ranked(client)[::40]:
        records = client.get(f"/api/v1/history?slug={slug}&limit=500").get_json()
        times = [record["polledAt"] for record in records]
        assert times == sorted(times, reverse=True)
        for record in records:
            hold(record, POLL)
            assert record["slug"] == slug
            for pick in record["ranking"]:
                hold(pick, POLL_PICK)
            for miss in record["missed"]:
                hold(miss, POLL_MISS)
            if record["usage"] is not None:
                hold(record["usage"], USAGE)
            failed = record["failure"] is not None
            assert failed == (record["error"] is not None) == (record["pick"] is None)
            assert failed == (record["ranking"] == [])
            kinds.add(record["failure"])
    assert None in kinds
    assert len(kinds) > 1, "the shipped data holds failed polls too"


def test_labs_are_what_was_promised(client: FlaskClient) -> None:
    """Each experiment with method, finding and the address of its write-up."""
    labs = client.get("/api/v1/labs.json").get_json()
    hold(labs, LABS)
    assert labs["count"] == len(labs["experiments"]) > 0
    for experiment in labs["experiments"]:
        hold(experiment, EXPERIMENT)
        assert experiment["url"] == f"{BASE}/labs/{experiment['slug']}"
