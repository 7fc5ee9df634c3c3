"""A snapshot is made from what changed and takes the rest over as it is."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from builders import (
    BASE_URL,
    answered,
    app_over,
    append,
    documents,
    failed,
    prepared,
    same_as_fresh,
    store_over,
    withhold,
    write_data,
    write_json,
)
from flask import Flask
from small_world import TOPICS, write_small_world
from werkzeug.test import TestResponse

from store.category_history import history_files
from store.records import FOLDERS, SINGLE, Poll
from store.store import Store

Shown = dict[str, TestResponse]

SLUGS = ("crm-software", "help-desk", "email-tool")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_data(
        tmp_path / "data",
        categories={slug: {"title": f"Best {slug}"} for slug in SLUGS},
        polls=[
            answered("A", ["Zoho", "HubSpot"], slug="crm-software"),
            answered("A", ["Zendesk", "Zoho"], slug="help-desk"),
            answered("A", ["Mailer"], slug="email-tool"),
        ],
    )


@pytest.fixture
def store(data: Path) -> Store:
    found: Store = app_over(data).extensions["store"]
    return found


class TestLedger:
    """Where polls stand."""

    def test_the_newest_come_first_and_models_are_told_apart(self, store: Store) -> None:
        """Order is that of appending, not of time; a limit counts after the filter."""
        store.record([failed("B"), answered("A", ["Zoho"])], "2026-01-01T00:00:00Z")
        store.reload()
        poll_index = store.snapshot.poll_indexes["crm-software"]
        assert poll_index.newest(None, 10) == [2, 1, 0]
        assert poll_index.newest(None, 2) == [2, 1]
        assert poll_index.newest("A", 1) == [2]
        assert poll_index.newest("nobody", 5) == []

    def test_a_former_slug_that_lives_again_keeps_its_own_file(self, store: Store) -> None:
        """A slug in the catalogue is nobody else's history."""
        categories = store.snapshot.catalogue.categories
        heir = categories["help-desk"].__class__(
            version=1, title="Best", question="What?", former_slugs=("crm-software", "gone")
        )
        assert history_files("help-desk", {**categories, "help-desk": heir}) == [
            "gone",
            "help-desk",
        ]


class TestDeriving:
    """How much of a snapshot is made anew."""

    def test_a_renamed_product_renews_every_place_that_names_it(
        self, store: Store, data: Path
    ) -> None:
        """A curator's product file reaches all leaderboards and their other products' records."""
        write_json(
            data / "products/zoho-crm.json", {"version": 1, "name": "Zoho CRM", "aliases": ["Zoho"]}
        )
        before = prepared(store)
        store.reload()
        after = prepared(store)
        assert "product/zoho.json" not in after
        assert store.snapshot.summary.product_redirects["zoho"] == "zoho-crm"
        for slug in ("crm-software", "help-desk"):
            assert b"Zoho CRM" in after[f"best/{slug}.json"]
        assert after["best/email-tool.json"] is before["best/email-tool.json"]

    @pytest.mark.usefixtures("one_digit")
    def test_who_has_to_give_way_is_renewed_everywhere(self, tmp_path: Path) -> None:
        """An address that an earlier name, then a file takes, and what else it bore, come back."""
        later, earlier = "\u00d8rst\u0435d", "\u041ersted"
        data = write_data(
            tmp_path / "alike",
            categories={slug: {"title": f"Best {slug}"} for slug in SLUGS},
            polls=[
                answered("A", [later], "2026-11-01T06:00:00Z"),
                answered("A", ["Other"], "2026-11-02T06:00:00Z"),
            ],
        )
        store = store_over(data)
        assert self.bearer(store, data) == later
        [poll] = store.record([answered("A", [earlier], slug="help-desk")], "2026-10-01T06:00:00Z")
        assert self.bearer(store, data) == earlier
        write_json(data / "products/orsted-a.json", {"version": 1, "name": "Other"})
        assert self.bearer(store, data) == "Other"
        (data / "products/orsted-a.json").unlink()
        assert self.bearer(store, data) == earlier
        withhold(data, poll.id)
        assert self.bearer(store, data) == later

    @staticmethod
    def bearer(store: Store, data: Path) -> str:
        """The name of the product at an address, all answers being as of a fresh server."""
        store.reload()
        assert same_as_fresh(store, data)
        product = store.snapshot.product("orsted-a")
        return product.name if product else ""


LATER = 1_900_000_000
EDITS: list[tuple[str, dict[str, Any]]] = [
    ("site.json", {"name": "Another name"}),
    ("models.json", {"models": [{"name": name, "api": "sample"} for name in "ABC"]}),
    ("synonyms.json", {"synonyms": [["CRM", "rolodex"]]}),
    ("words.json", {"source": "Ours.", "words": ["keettle"]}),
    ("topics.json", {"topics": [{**TOPICS[0], "title": "Beverages"}]}),
    ("withheld.json", {"withheld": {}}),
    ("categories/crm-software.json", {"title": "Best software for sales"}),
    ("products/alpha.json", {"name": "Alpha Prime"}),
    ("products/alpha.json", {"domain": "home.example"}),
    ("products/omega.json", {"name": "Omega", "aliases": ["Gamma"]}),  # two rivals are one
    ("products/pot.json", {"name": "Teapot", "aliases": ["Pot"]}),  # only missed in one category
    ("labs/by-hand.json", {"finding": "It is not so."}),
]
"""Edits of each kind of data file that readers notice: members of the file, with new values."""


def test_there_is_an_edit_of_each_kind() -> None:
    """So that the next test holds for a new kind, too; nobody edits what was asked with."""
    kinds = {*SINGLE, *FOLDERS} - {"instruments"}
    assert {name.partition("/")[0] for name, _ in EDITS} == kinds


@pytest.mark.parametrize(("name", "fields"), EDITS)
def test_what_an_edit_changes_is_new_to_every_reader(
    tmp_path: Path, name: str, fields: dict[str, Any]
) -> None:
    """A copy is current for 304 exactly where its bytes are, however the file's time was set."""
    path = write_small_world(tmp_path / "data") / name
    missed = answered("B", ["Sencha"], "2026-11-04T06:00:00Z", slug="green-tea", missed=["Pot"])
    append(tmp_path / "data", [missed])
    app = app_over(tmp_path / "data")
    before = shown(app)
    said = json.loads(path.read_text()) if path.exists() else {"version": 1}
    write_json(path, {**said, **fields})
    os.utime(path, (LATER, LATER))
    app.extensions["store"].reload()
    assert_new_where_changed(app, before)
    assert same_as_fresh(app.extensions["store"], tmp_path / "data")
    fresh = shown(app_over(tmp_path / "data"))
    assert {p: a.data for p, a in shown(app).items()} == {p: a.data for p, a in fresh.items()}


@pytest.mark.parametrize(
    "poll",
    [
        answered("A", ["Gamma", "Omega"]),
        failed("A"),
        answered("A", ["Omega", "Alpha"], question="Which CRM is the finest?"),
        answered("Retired", ["Omega", "Alpha"]),
        failed("Retired"),
    ],
    ids=["answer", "failure", "answer to another wording", "retired", "failure of a retired"],
)
def test_what_a_poll_changes_is_new_to_every_reader(tmp_path: Path, poll: Poll) -> None:
    """Be it one that changes no ranking, on a day that has answers."""
    app = app_over(write_small_world(tmp_path / "data"))
    before, store = shown(app), app.extensions["store"]
    store.record([poll], store.snapshot.summary.last_poll)
    store.reload()
    assert_new_where_changed(app, before)


def assert_new_where_changed(app: Flask, before: Shown) -> None:
    """What changed is sent whole, and nothing else, to whoever has the copies of ``before``."""
    after, client = shown(app), app.test_client()
    both = before.keys() & after.keys()
    changed = {path for path in both if after[path].data != before[path].data}
    assert changed
    tags = {path: {"If-None-Match": before[path].headers["ETag"]} for path in both}
    sent = {path for path in both if client.get(path, headers=tags[path]).status_code == 200}
    assert sent == changed


def shown(app: Flask) -> Shown:
    """What readers are shown: the API, every page, and searches."""
    client, store = app.test_client(), app.extensions["store"]
    pages = re.findall(f"<loc>{BASE_URL}([^<]+)</loc>", client.get("/sitemap.xml").text)
    listed = [f"/api/v1/{name}" for name in (*prepared(store), *documents(store))]
    searches = [f"/api/v1/search?q={query}" for query in ("rolodex", "keettle")]
    about = ["/api/v1/openapi.json", "/api/v1/README.md"]
    return {path: client.get(path) for path in (*listed, *about, *pages, *searches)}
