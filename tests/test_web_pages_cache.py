"""Rendered pages are kept while what they show is current, and never beyond the budget."""

from __future__ import annotations

import gc
import weakref
from typing import TYPE_CHECKING

from builders import answered, app_over, write_data

from store.snapshot import Prepared
from store.web.pages.cache import Cache

if TYPE_CHECKING:
    from pathlib import Path


def made(size: int = 10) -> Prepared:
    """A body that a page may be made beside."""
    return Prepared(b"x" * size, 0)


class Maker:
    """Makes bodies of a size and counts how often it was asked."""

    def __init__(self, size: int = 10) -> None:
        self.size = size
        self.made = 0

    def __call__(self) -> Prepared:
        """A body."""
        self.made += 1
        return Prepared(b"x" * self.size, 0)


def test_a_page_is_rendered_once_while_its_part_is_current() -> None:
    """The same part gives the same body; another part, however equal, makes it anew."""
    cache, make, part = Cache(), Maker(), made()
    first = cache.get("a", part, make)
    assert cache.get("a", part, make) is first
    assert make.made == 1
    cache.get("a", made(), make)
    assert make.made == 2


def test_the_budget_bounds_what_is_kept() -> None:
    """Over budget, what was used longest ago goes first."""
    cache, make, part = Cache(budget=35), Maker(10), made()
    for key in ("a", "b", "a", "c"):
        cache.get(key, part, make)
    assert make.made == 3
    cache.get("a", part, make)
    assert make.made == 3
    cache.get("b", part, make)
    assert make.made == 4


def test_a_page_larger_than_the_budget_is_still_served() -> None:
    """One huge page replaces the others and is kept until the next."""
    cache, make, part = Cache(budget=5), Maker(50), made()
    cache.get("a", part, make)
    cache.get("a", part, make)
    assert make.made == 1


def test_a_renewed_page_counts_once() -> None:
    """Renewing a page a thousand times takes no more of the budget than one."""
    cache, make, other = Cache(budget=35), Maker(10), Maker(10)
    part = made()
    cache.get("other", part, other)
    for _ in range(1000):
        cache.get("a", made(), make)
        cache.get("other", part, other)
    assert other.made == 1


def test_a_page_keeps_nothing_alive_but_itself() -> None:
    """What a page was made beside is let go as soon as nobody else holds it."""
    cache, make, source = Cache(), Maker(), made()
    cache.get("a", source, make)
    held = weakref.ref(source)
    del source
    assert held() is None
    cache.get("a", made(), make)
    assert make.made == 2


def test_the_compressed_form_is_counted() -> None:
    """A page takes half as much again: of three that would fit plain, two are held."""
    cache, make, source = Cache(budget=30), Maker(10), made()
    for key in ("a", "b", "c", "b", "c"):
        cache.get(key, source, make)
    assert make.made == 3
    cache.get("a", source, make)
    assert make.made == 4


def test_pages_hold_no_documents_of_old_snapshots(tmp_path: Path) -> None:
    """Polls with other pages looked at after each leave one set of documents in memory."""
    app = app_over(write_data(tmp_path / "data", polls=[answered("A", ["X"])]))
    store, client = app.extensions["store"], app.test_client()
    pages = ["/", "/changes", "/mentions", "/labs", "/methodology", "/docs", "/llms.txt"]
    old = []
    for day, page in enumerate(pages, start=10):
        assert client.get(page).status_code == 200
        old += [weakref.ref(document) for document in store.snapshot.documents.values()]
        store.record([answered("A", ["X"])], f"2026-11-{day}T06:00:00Z")
        store.flush()
    gc.collect()
    current = list(store.snapshot.documents.values())
    assert all(ref() is None or ref() in current for ref in old)
