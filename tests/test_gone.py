"""Categories that are deleted or renamed: gone is said, and no link dies on the way."""

import json
from pathlib import Path

import pytest
from broken import write_one_of_each
from builders import BASE_URL, answered, app_over, append, edit, failed, same_as_fresh, write_json
from flask import Flask
from flask.testing import FlaskClient
from mcp_rankings import used
from recomputation import Recomputation
from small_world import write_small_world

from store.store import Store

TEA = "green-tea"
ADDRESSES = (f"/api/v1/best/{TEA}.json", f"/best/{TEA}", f"/feeds/best/{TEA}.atom")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The little world; Sencha is named in green tea alone."""
    return write_small_world(tmp_path / "data")


@pytest.fixture
def app(data: Path) -> Flask:
    """A server that ran while the category was deleted."""
    app = app_over(data)
    store: Store = app.extensions["store"]
    store.reload()
    (data / f"categories/{TEA}.json").unlink()
    store.reload()
    return app


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    """Its reader."""
    return app.test_client()


def test_it_is_gone_with_the_date_of_its_last_answer(client: FlaskClient) -> None:
    """410 for every reader; the reason names the day and where the polls are."""
    for address in ADDRESSES:
        answer = client.get(address)
        assert answer.status_code == 410, address
        assert "its last answer is of 2026-11-02" in answer.text
        assert f"/api/v1/history?slug={TEA}" in answer.text
        assert answer.headers["Cache-Control"] == "no-store"
    assert client.get(ADDRESSES[0]).mimetype == "application/problem+json"
    assert client.get(ADDRESSES[1]).mimetype == "text/html"
    told = used(client, "get_best_in_category", slug=TEA)
    assert told["isError"]
    assert "is gone" in told["content"][0]["text"]


def test_its_history_is_still_served(client: FlaskClient, data: Path) -> None:
    """Every line, as before, also by model."""
    lines = (data / f"history/{TEA}.jsonl").read_bytes().splitlines()
    served = client.get(f"/api/v1/history?slug={TEA}").get_json()
    assert served == [json.loads(line) for line in reversed(lines)]
    assert len(client.get(f"/api/v1/history?slug={TEA}&model=A").get_json()) == 2


def test_it_is_named_nowhere_but_on_old_product_pages(client: FlaskClient) -> None:
    """In no list, search, sitemap, change or experiment; evidence pages have its slug as title."""
    for address in (
        "/", "/search", "/search?q=green+tea", "/changes", "/labs", "/sitemap.xml", "/llms.txt",
        "/api/v1/search?q=green%20tea", "/api/v1/categories.json", "/api/v1/changes.json",
        "/api/v1/labs.json", "/api/v1/mentions.json", "/api/v1/openapi.json", "/feeds/changes.atom",
        "/product/sencha", "/api/v1/product/sencha.json",
    ):  # fmt: skip
        answer = client.get(address)
        assert answer.status_code == 200, address
        assert f"best/{TEA}" not in answer.text, address
        assert "Best green tea" not in answer.text, address
    evidence = client.get("/product/sencha/polls").text
    assert f">{TEA}</a>" in evidence


def test_its_polls_stay_in_all_time_figures(client: FlaskClient) -> None:
    """What was said was said: mentions and their number of polls count it."""
    mentions = client.get("/api/v1/mentions.json").get_json()
    sencha = next(p for p in mentions["products"] if p["slug"] == "sencha")
    assert (sencha["mentions"], sencha["categories"], sencha["mentions7d"]) == (4, 0, 0)
    assert mentions["polls"] == 12
    record = client.get("/api/v1/product/sencha.json").get_json()
    assert (record["categories"], record["entries"], record["verdict"]) == (0, [], None)
    assert client.get("/api/v1/changes.json").get_json()["tracked"] == 2


def test_the_figures_are_what_the_contract_says(client: FlaskClient, data: Path) -> None:
    """A second computation from the files finds the same mentions, changes and windows."""
    expected = Recomputation(data, BASE_URL)
    mentions = expected.mentions()
    live = client.get("/api/v1/mentions.json").get_json()
    assert live["polls"] == len(expected.successes)
    assert live["products"]
    for product in live["products"]:
        wanted = mentions[product["slug"]]
        assert {name: product[name] for name in wanted if name != "delta"} == {
            name: value for name, value in wanted.items() if name != "delta"
        }
    changes = client.get("/api/v1/changes.json").get_json()["changes"]
    assert {change["id"] for change in changes} == expected.changes().keys()


def test_a_fresh_start_says_the_same(app: Flask, data: Path) -> None:
    """To the byte, and so after the category is back."""
    store: Store = app.extensions["store"]
    assert same_as_fresh(store, data)
    question = {"version": 1, "title": "Best tea", "question": "What is the best green tea?"}
    write_json(data / f"categories/{TEA}.json", question)
    store.reload()
    assert app.test_client().get(ADDRESSES[0]).status_code == 200
    assert same_as_fresh(store, data)


def test_polls_that_come_in_late_count(app: Flask, data: Path) -> None:
    """An answer under way when the file was deleted is recorded and in its history."""
    store: Store = app.extensions["store"]
    store.record([answered("A", ["Late"], slug=TEA)], "2026-11-09T06:00:00Z")
    store.reload()
    assert "2026-11-09" in app.test_client().get(ADDRESSES[0]).text
    assert same_as_fresh(store, data)
    store.record([answered("A", ["Late"], slug="unheard")], "2026-11-09T06:00:00Z")
    store.reload()
    assert app.test_client().get("/best/unheard").status_code == 410
    assert same_as_fresh(store, data)


def test_a_former_slug_of_a_living_category_is_not_gone(app: Flask, data: Path) -> None:
    """Its history is that category's, and its address leads there."""
    append(data, [answered("A", ["Old"], "2026-10-01T06:00:00Z", slug="crm-tools")])
    app.extensions["store"].reload()
    answer = app.test_client().get("/best/crm-tools")
    assert answer.status_code == 308


def test_a_history_of_failures_alone_is_gone_without_a_date(data: Path) -> None:
    """What was asked in vain is said to have had no answer."""
    append(data, [failed("A", slug="old")])
    (data / "history/empty.jsonl").write_bytes(b"")
    client = app_over(data).test_client()
    assert client.get("/best/old").status_code == 410
    assert "it was never answered" in client.get("/best/old").text
    assert client.get("/best/empty").status_code == 404


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """One good file of every kind."""
    return write_one_of_each(tmp_path / "data")


def statuses(app: Flask, *addresses: str) -> tuple[int, ...]:
    """What these addresses answer after one more look at the files."""
    app.extensions["store"].reload()
    client = app.test_client()
    return tuple(client.get(address).status_code for address in addresses)


def test_a_category_is_renamed_in_one_look(world: Path) -> None:
    """From 200 to 308 and from 404 to 200 at once; its polls are those of before."""
    app, new = app_over(world), world / "categories/vpn-service.json"
    history = "/api/v1/history?slug=vpn"
    before = app.test_client().get(history).data
    (world / "categories/vpn.json").rename(new)
    edit(new, former_slugs=["vpn"])
    assert statuses(app, "/best/vpn", "/best/vpn-service", history) == (308, 200, 308)
    assert app.test_client().get(f"{history}-service").data == before
    assert same_as_fresh(app.extensions["store"], world)


def test_a_rename_in_two_saves_passes_through_gone(world: Path) -> None:
    """Between ``mv`` and the saved former_slugs nobody is told that there is nothing."""
    app, new = app_over(world), world / "categories/vpn-service.json"
    (world / "categories/vpn.json").rename(new)
    assert statuses(app, "/best/vpn", "/best/vpn-service") == (410, 404)
    edit(new, former_slugs=["vpn"])
    assert statuses(app, "/best/vpn", "/best/vpn-service") == (308, 200)


def test_a_product_is_renamed_in_one_look(world: Path) -> None:
    """By a new file name, a new alias, a merge: old address and new in the same look."""
    app, new = app_over(world), world / "products/zoho.json"
    addresses = ("/product/zoho-crm", "/product/zoho", "/product/pipe")
    (world / "products/zoho-crm.json").rename(new)
    edit(new, former_slugs=["zoho-crm"])
    assert statuses(app, *addresses) == (308, 200, 200)
    moved = app.test_client().get("/api/v1/product/zoho-crm.json")
    assert moved.headers["Location"].endswith("/api/v1/product/zoho.json")
    edit(new, aliases=["Pipe"])
    assert statuses(app, *addresses) == (308, 200, 308)
    assert same_as_fresh(app.extensions["store"], world)
