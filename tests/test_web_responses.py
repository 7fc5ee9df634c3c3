"""Bodies are kept while what they were made from is current, and never beyond the budget."""

import gc
import threading
import tracemalloc
import weakref
from pathlib import Path

import pytest
from builders import answered, app_over, write_data

from store.rankings.leaderboards import Leaderboard
from store.search import Kind
from store.web.errors import Suggestion
from store.web.responses import OVERHEAD, Body, Cache
from store.web.view import View


def body(size: int = 4096) -> Body:
    """A body of so many bytes."""
    return Body(b"x" * size, {})


def test_the_budget_bounds_what_is_kept() -> None:
    """Over budget, what was used longest ago goes first; compressed forms count."""
    cache = Cache(budget=2 * (6 * 1024 + 2 * OVERHEAD))
    for address in "ab":
        cache.keep(address, 1, body())
    assert cache.get("a", 1)
    cache.keep("c", 1, body())
    cache.keep("huge", 1, body(50_000))
    assert [name for name in ("a", "b", "c", "huge") if cache.get(name, 1)] == ["a", "c"]
    for number in range(100):  # empty bodies take room, too
        cache.keep(f"{number}", 1, body(0))
    assert cache.size <= 2 * (6 * 1024 + 2 * OVERHEAD)


def test_all_that_a_kept_body_takes_is_counted() -> None:
    """Keys, headers and compressed forms too: memory grows by no more than the cache says."""
    cache, environ = Cache(), {"HTTP_ACCEPT_ENCODING": "gzip"}
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(300):
            text = b",".join(b'{"n": %d}' % (number * i) for i in range(20 + 2 * number))
            made = Body(text, {"Content-Type": "application/json", "Link": f"<{number}>" * 9})
            cache.keep(f"api/v1/best/{number}.json", 1, made)
            for sent in ({}, environ, {"HTTP_IF_NONE_MATCH": made.etag}):
                made.response(sent)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before <= cache.size <= 2 * (after - before)


def test_threads_may_ask_at_once() -> None:
    """Eight threads over a small room: every answer is the one for its address."""
    cache = Cache(budget=10 * OVERHEAD)
    wrong: list[bytes] = []

    def ask() -> None:
        for number in range(2000):
            expected = b"%d" % (number % 37) * 9
            kept = cache.get(f"{number % 37}", 1)
            if kept is None:
                cache.keep(f"{number % 37}", 1, Body(expected, {}))
            elif kept.content != expected:
                wrong.append(expected)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_refusal_for_programs_is_made_once_for_each_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its suggestions are looked for once, again after the next poll, and never on a later hit."""
    app = app_over(write_data(tmp_path / "data", polls=[answered("A", ["X"])]))
    store, client = app.extensions["store"], app.test_client()
    lookups: list[str] = []
    suggest = View.suggestions

    def counted(view: View, slug: str, kind: Kind) -> list[Suggestion]:
        lookups.append(slug)
        return suggest(view, slug, kind)

    monkeypatch.setattr(View, "suggestions", counted)
    answers = [client.get("/api/v1/product/yellow.json") for _ in range(3)]
    assert {(a.status_code, a.headers["Cache-Control"], a.data) for a in answers} == {
        (404, "no-store", answers[0].data)
    }
    assert lookups == ["yellow"]
    store.record([answered("A", ["Yellow"])], "2026-11-10T06:00:00Z")
    store.reload()
    assert client.get("/api/v1/product/yellow.json").status_code == 200
    client.get("/api/v1/product/yello.json")
    assert lookups == ["yellow", "yello"]


def test_a_poll_of_another_category_makes_no_verdict_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless it gives a page to a product that the verdict names as a near miss."""
    slugs = ("help-desk", "crm-software")
    polls = [answered("A", ["X"], slug="help-desk", missed=["Omega"]), answered("A", ["X"])]
    made = {slug: {"title": slug} for slug in slugs}
    app = app_over(write_data(tmp_path / "data", categories=made, polls=polls))
    store, client = app.extensions["store"], app.test_client()
    verdicts: list[str] = []
    really = View.verdict_sentence

    def counted(view: View, board: Leaderboard) -> str:
        verdicts.append(board.slug)
        return really(view, board)

    monkeypatch.setattr(View, "verdict_sentence", counted)
    for name in ("Y", "Omega"):
        client.get("/api/v1/best/help-desk.json")
        store.record([answered("A", [name])], "2026-11-10T06:00:00Z")
        store.reload()
    assert verdicts == ["help-desk"]
    body = client.get("/api/v1/best/help-desk.json").get_json()
    assert body["missedByModel"]["A"][0]["slug"] == "omega"


def test_bodies_hold_no_old_snapshots(tmp_path: Path) -> None:
    """Polls with pages and a search after each leave nothing of the snapshots they were made of."""
    app = app_over(write_data(tmp_path / "data", polls=[answered("A", ["X"])]))
    store, client = app.extensions["store"], app.test_client()
    pages = ["/", "/changes", "/mentions", "/labs", "/methodology", "/docs", "/llms.txt"]
    old = []
    for day, page in enumerate(pages, start=10):
        for path in (page, "/best/crm-software", "/product/x", "/api/v1/search?q=x"):
            assert client.get(path).status_code == 200
        old.append(weakref.ref(store.snapshot))
        store.record([answered("A", ["X"])], f"2026-11-{day}T06:00:00Z")
        store.reload()
    gc.collect()
    assert [ref() for ref in old] == [None] * len(old)
