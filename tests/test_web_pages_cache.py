"""Rendered pages are kept while what they show is current, and never beyond the budget."""

from __future__ import annotations

from store.snapshot import Prepared
from store.web.pages.cache import Cache


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
    cache, make, part = Cache(), Maker(), object()
    first = cache.get("a", part, make)
    assert cache.get("a", part, make) is first
    assert make.made == 1
    cache.get("a", object(), make)
    assert make.made == 2


def test_the_budget_bounds_what_is_kept() -> None:
    """Over budget, what was used longest ago goes first."""
    cache, make, part = Cache(budget=25), Maker(10), object()
    for key in ("a", "b", "a", "c"):
        cache.get(key, part, make)
    assert make.made == 3
    cache.get("a", part, make)
    assert make.made == 3
    cache.get("b", part, make)
    assert make.made == 4


def test_a_page_larger_than_the_budget_is_still_served() -> None:
    """One huge page replaces the others and is kept until the next."""
    cache, make, part = Cache(budget=5), Maker(50), object()
    cache.get("a", part, make)
    cache.get("a", part, make)
    assert make.made == 1


def test_a_renewed_page_counts_once() -> None:
    """Renewing a page a thousand times takes no more of the budget than one."""
    cache, make, other = Cache(budget=25), Maker(10), Maker(10)
    part = object()
    cache.get("other", part, other)
    for _ in range(1000):
        cache.get("a", object(), make)
        cache.get("other", part, other)
    assert other.made == 1
