"""Keeping up with the files while serving: what a curator saves, removes, renames or breaks."""

from __future__ import annotations

import gc
import logging
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any

import pytest
from broken import KINDS, SLIPS, Broken, mend, write_one_of_each
from builders import answered, app_over, bodies, prepared, same_as_fresh, write_json
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from store.search import Index
from store.store import Watcher

if TYPE_CHECKING:
    from pathlib import Path

    from flask import Flask

    from store.store import Store


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """One good file of every kind."""
    return write_one_of_each(tmp_path / "data")


@pytest.fixture
def app(directory: Path) -> Flask:
    """A server over it."""
    return app_over(directory)


@pytest.fixture
def store(app: Flask) -> Store:
    """Its store."""
    held: Store = app.extensions["store"]
    return held


@pytest.mark.parametrize("slip", SLIPS, ids=[slip.name for slip in SLIPS])
def test_no_mistake_changes_an_answer(
    directory: Path, store: Store, slip: Broken, caplog: pytest.LogCaptureFixture
) -> None:
    """All kinds of file broken at once: every byte stays, each is named once in the log."""
    before = bodies(store)
    texts = {kind: (directory / kind).read_text(encoding="utf-8") for kind in KINDS}
    for kind in KINDS:
        slip.write(directory / kind)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            store.reload()
    assert bodies(store) == before
    assert {problem.file for problem in store.problems} == set(KINDS)
    ours = threading.get_ident()  # watchers of earlier tests' stores may log meanwhile
    told = [record.getMessage() for record in caplog.records if record.thread == ours]
    assert sorted(told) == sorted(map(str, store.problems))
    for kind, text in texts.items():
        mend(directory / kind, text)
    store.reload()
    assert store.problems == ()
    assert bodies(store) == before


def edit(path: Path, old: str, new: str) -> None:
    """Change a file's text."""
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_every_kind_of_file_can_be_edited_live(directory: Path, store: Store) -> None:
    """A saved file is what a fresh start would read, whatever kind it is."""
    for kind, old, new in (
        ("site.json", "Consensus Test", "Consensus Two"),
        ("models.json", '"D"', '"E"'),
        ("categories/vpn.json", "Best VPN", "Best VPNs"),
        ("products/zoho-crm.json", '"Zoho CRM"', '"Zoho"'),
        ("labs/by-hand.json", "By hand", "By eye"),
        ("withheld.json", "A slur", "An insult"),
        ("synonyms.json", "couch", "settee"),
        ("words.json", '"the"', '"and"'),
    ):
        before = store.snapshot
        edit(directory / kind, old, new)
        store.reload()
        assert store.snapshot is not before, kind
        assert same_as_fresh(store, directory), kind


def test_categories_come_and_go(directory: Path, app: Flask, store: Store) -> None:
    """A new file is a category at once; a deleted one is gone, and its history stays."""
    client = app.test_client()
    record = {"version": 1, "title": "Best tea", "question": "What is the best tea?"}
    write_json(directory / "categories" / "tea.json", record)
    (directory / "categories" / "vpn.json").unlink()
    store.reload()
    assert client.get("/api/v1/history?slug=tea").get_json() == []
    assert client.get("/api/v1/best/vpn.json").status_code == 410
    assert (directory / "history" / "vpn.jsonl").exists()
    assert same_as_fresh(store, directory)


def test_an_unforeseen_fault_is_a_problem_and_is_tried_again(
    directory: Path, store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """If deriving ever fails, the old state stays served, it is logged once, and it recovers."""

    def fail(*_: object) -> None:
        raise KeyError

    before = bodies(store)
    edit(directory / "categories" / "vpn.json", "Best VPN", "Best VPNs")
    with monkeypatch.context() as patched:
        patched.setattr("store.store.derive", fail)
        for _ in range(3):
            store.keep_current()
    assert bodies(store) == before
    assert [str(problem) for problem in store.problems] == [
        ".:1:1: the files could not be taken in: KeyError"
    ]
    assert len([r for r in caplog.records if r.thread == threading.get_ident()]) == 1
    store.keep_current()
    assert store.problems == ()
    assert same_as_fresh(store, directory)


def test_recording_waits_for_no_derivation(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a look makes a snapshot and its index, a poll is recorded; the next look shows it."""
    deriving, go_on = threading.Event(), threading.Event()
    prepare = Index.prepare

    def slow(index: Index) -> None:
        deriving.set()
        assert go_on.wait(60)
        prepare(index)

    _ = store.snapshot
    monkeypatch.setattr(Index, "prepare", slow)
    look = threading.Thread(target=store.keep_current, kwargs={"prepare": True})
    look.start()
    assert deriving.wait(60)
    store.record([answered("A", ["Late"], slug="vpn")], "2026-11-09T06:00:00Z")
    go_on.set()
    look.join(60)
    assert b"Late" not in prepared(store)["best/vpn.json"].body
    store.reload()
    assert b"Late" in prepared(store)["best/vpn.json"].body


def test_the_watcher_takes_in_what_is_saved(directory: Path, store: Store) -> None:
    """With nobody asking, an edit is served within moments, once it holds still."""
    Watcher(store, every=0.01, rest=0.005).ensure_running()
    edit(directory / "categories" / "vpn.json", "Best VPN", "Best VPNs")
    deadline = time.monotonic() + 120
    while b"Best VPNs" not in prepared(store)["best/vpn.json"].body:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_the_watcher_shows_a_recorded_poll_at_once(store: Store) -> None:
    """However long it would rest, an append in this process wakes it."""
    Watcher(store, every=1000).ensure_running()
    store.record([answered("A", ["Late"], slug="vpn")], "2026-11-09T06:00:00Z")
    deadline = time.monotonic() + 120
    while b"Late" not in prepared(store)["best/vpn.json"].body:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_no_search_waits_for_its_index(directory: Path, store: Store) -> None:
    """Once watched, the index is made before anybody searches, and the next before it is shown."""
    assert not store.snapshot.summary.index.is_prepared
    Watcher(store, every=1000).ensure_running()
    deadline = time.monotonic() + 120
    while not (before := store.snapshot.summary.index).is_prepared:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    edit(directory / "categories" / "vpn.json", "Best VPN", "Best VPNs")
    store.reload()
    assert store.snapshot.summary.index is not before
    assert store.snapshot.summary.index.is_prepared


def test_the_first_request_sees_what_changed_since_the_start(directory: Path, store: Store) -> None:
    """A worker forked long after the data was loaded answers from the files as they are."""
    _ = store.snapshot
    edit(directory / "categories" / "vpn.json", "Best VPN", "Best VPNs")
    Watcher(store, every=3600).ensure_running()
    assert b"Best VPNs" in prepared(store)["best/vpn.json"].body


def test_a_fault_in_preparing_ends_no_watching(
    directory: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is a problem that the operator sees, and edits go on being served."""

    def fail(_: Index) -> None:
        raise MemoryError

    monkeypatch.setattr(Index, "prepare", fail)
    watcher = Watcher(store, every=0.01, rest=0.005)
    watcher.ensure_running()
    edit(directory / "categories" / "vpn.json", "Best VPN", "Best VPNs")
    deadline = time.monotonic() + 120
    while b"Best VPNs" not in prepared(store)["best/vpn.json"].body:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    while not any("MemoryError" in problem.message for problem in store.problems):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_descriptions_follow_from_the_files_alone(
    directory: Path, store: Store, app: Flask
) -> None:
    """However the data came to be as it is, they are those of a fresh start."""
    client = app.test_client()
    before = client.get("/api/v1/openapi.json").data
    edit(directory / "categories" / "vpn.json", "Best VPN", "Best VPNs")
    store.record([answered("A", ["Late"], slug="vpn")], "2026-11-09T06:00:00Z")
    store.reload()
    fresh = app_over(directory).test_client()
    for address in ("/api/v1/openapi.json", "/api/v1/README.md"):
        one, two = client.get(address), fresh.get(address)
        assert one.data == two.data
        assert one.data != before
        assert one.headers["ETag"] == two.headers["ETag"]


def test_the_watcher_ends_with_its_store() -> None:
    """Nothing keeps looking at files that nobody serves any more."""

    class Fleeting:
        made_at = 0.0
        appended = threading.Event()

        def keep_current(self, *_: Any, **__: Any) -> None:
            """Look at nothing."""

        keep = keep_current

    store: Any = Fleeting()
    others = set(threading.enumerate())
    watcher = Watcher(store, every=0.01, rest=0.005)
    watcher.ensure_running()
    (thread,) = set(threading.enumerate()) - others
    gone = weakref.ref(store)
    del store, watcher
    gc.collect()
    thread.join(60)
    assert not thread.is_alive()
    assert gone() is None


CATEGORIES = st.fixed_dictionaries(
    {
        "title": st.sampled_from(["Best CRM software", "Best VPN", "Best tea"]),
        "nouns": st.lists(st.sampled_from(["CRM", "VPN"]), max_size=2, unique=True),
        "former_slugs": st.lists(st.sampled_from(["sales", "tunnel"]), max_size=2, unique=True),
    }
)
PRODUCTS = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["Zoho CRM", "Zoho", "Pipe", "Pipe VPN"]),
        "aliases": st.lists(st.sampled_from(["Zoho", "Pipe", "ZOHO crm"]), max_size=2),
        "domain": st.sampled_from([None, "zoho.example"]),
        "maker": st.sampled_from([None, "Zoho"]),
        "former_slugs": st.lists(st.sampled_from(["older", "old"]), max_size=2, unique=True),
    }
)
EDITS = st.one_of(
    st.tuples(st.sampled_from(["categories/crm", "categories/vpn", "categories/tea"]), CATEGORIES),
    st.tuples(st.sampled_from(["products/zoho", "products/pipe", "products/z"]), PRODUCTS),
    st.tuples(
        st.sampled_from(["categories/vpn", "categories/tea", "products/zoho", "products/pipe"]),
        st.sampled_from(["broken", None]),
    ),
)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(EDITS, min_size=1, max_size=8))
def test_any_edits_taken_in_one_by_one_are_as_a_fresh_start(
    tmp_path_factory: pytest.TempPathFactory, edits: list[tuple[str, Any]]
) -> None:
    """Whatever is saved, broken and removed in whatever order, mended data gives the same bytes."""
    directory = write_one_of_each(tmp_path_factory.mktemp("edits") / "data")
    store = app_over(directory).extensions["store"]
    broken = {}
    for name, fields in edits:
        path = directory / f"{name}.json"
        if fields is None:
            path.unlink(missing_ok=True)
        elif fields == "broken":
            path.write_text("{", encoding="utf-8")
        else:
            question = {"question": "?"} if name.startswith("categories") else {}
            write_json(path, {"version": 1, **question, **fields})
        broken[name] = fields == "broken"
        store.reload()
        if any("take it out of one" in problem.message for problem in store.problems):
            path.unlink()  # two files that claim one slug: whose it was first is what then counts
            broken[name] = False
            store.reload()
    for name in (name for name, is_broken in broken.items() if is_broken):
        (directory / f"{name}.json").unlink()
    store.reload()
    fresh = app_over(directory).extensions["store"]
    assert bodies(store) == bodies(fresh)
    assert store.problems == fresh.problems
    assert store.snapshot.summary.product_redirects == fresh.snapshot.summary.product_redirects
    assert store.snapshot.summary.category_redirects == fresh.snapshot.summary.category_redirects
