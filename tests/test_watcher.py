"""Keeping up with the files while serving: what a curator saves, removes, renames or breaks."""

import gc
import logging
import threading
import weakref
from pathlib import Path
from typing import Any

import pytest
from broken import KINDS, SLIPS, Broken, mend, write_one_of_each
from builders import answered, app_over, bodies, prepared, same_as_fresh
from flask import Flask
from processes import until

from store.search import Index
from store.store import Store, Watcher


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
    named = {problem.file: problem.line for problem in reversed(store.problems)}
    assert named == {kind: slip.line(text) for kind, text in texts.items()}
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
    assert b"Late" not in prepared(store)["best/vpn.json"]
    store.reload()
    assert b"Late" in prepared(store)["best/vpn.json"]


def test_the_watcher_takes_in_what_is_saved(directory: Path, store: Store) -> None:
    """With nobody asking, an edit is served within moments, once it holds still."""
    Watcher(store, every=0.01, rest=0.005).ensure_running()
    edit(directory / "categories" / "vpn.json", "Best VPN", "Best VPNs")
    until(lambda: b"Best VPNs" in prepared(store)["best/vpn.json"])


def test_the_watcher_shows_a_recorded_poll_at_once(store: Store) -> None:
    """However long it would rest, an append in this process wakes it."""
    Watcher(store, every=1000).ensure_running()
    store.record([answered("A", ["Late"], slug="vpn")], "2026-11-09T06:00:00Z")
    until(lambda: b"Late" in prepared(store)["best/vpn.json"])


def test_no_search_waits_for_its_index(directory: Path, store: Store) -> None:
    """Once watched, the index is made before anybody searches, and the next before it is shown."""
    assert not store.snapshot.summary.index.is_prepared
    Watcher(store, every=1000).ensure_running()
    until(lambda: store.snapshot.summary.index.is_prepared)
    before = store.snapshot.summary.index
    edit(directory / "categories" / "vpn.json", "Best VPN", "Best VPNs")
    store.reload()
    assert store.snapshot.summary.index is not before
    assert store.snapshot.summary.index.is_prepared


def test_the_first_request_sees_what_changed_since_the_start(directory: Path, store: Store) -> None:
    """A worker forked long after the data was loaded answers from the files as they are."""
    _ = store.snapshot
    edit(directory / "categories" / "vpn.json", "Best VPN", "Best VPNs")
    Watcher(store, every=3600).ensure_running()
    assert b"Best VPNs" in prepared(store)["best/vpn.json"]


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
    until(lambda: b"Best VPNs" in prepared(store)["best/vpn.json"])
    until(lambda: any("MemoryError" in problem.message for problem in store.problems))


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
