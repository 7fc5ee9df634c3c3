"""What requests will ask for is made before they do, once for each generation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from builders import answered, app_over, view_of, write_data

from store.web.cache import BodyCache
from store.web.snapshot_view import SnapshotView
from store.web.warming import CacheWarmer

if TYPE_CHECKING:
    from pathlib import Path

    from store.memory import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Two categories with a product each."""
    polls = [answered("A", ["X"]), answered("A", ["Y"], slug="help-desk")]
    categories = {slug: {"title": f"Best {slug}"} for slug in ("crm-software", "help-desk")}
    held: Store = app_over(
        write_data(tmp_path / "data", categories=categories, polls=polls)
    ).extensions["store"]
    return held


class Counting:
    """Payloads that write down which verdicts and records they make."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made: list[str] = []
        for name in ("category_verdict", "product_record"):
            monkeypatch.setattr(SnapshotView, name, self._counted(getattr(SnapshotView, name)))

    def _counted(self, make: Any) -> Any:
        def counted(view: SnapshotView, subject: Any, *given: Any) -> Any:
            self.made.append(subject.slug)
            return make(view, subject, *given)

        return counted


@pytest.mark.parametrize("budget", [1 << 20, 0])
def test_each_generation_is_made_once(
    store: Store, monkeypatch: pytest.MonkeyPatch, budget: int
) -> None:
    """A poll renews its category and products alone; what finds no room is not made for ever."""
    counting = Counting(monkeypatch)
    warmer = CacheWarmer(BodyCache(budget), view_of)
    for _ in range(2):
        assert warmer.warm(store.snapshot, lambda: True) == []
    assert sorted(counting.made) == ["crm-software", "help-desk", "x", "y"]
    counting.made.clear()
    store.record([answered("B", ["X"])], "2026-11-09T06:00:00Z")
    for _ in range(2):
        assert warmer.warm(store.snapshot, lambda: True) == []
    assert sorted(counting.made) == ["crm-software", "x"]


def test_what_was_interrupted_is_taken_up_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once the snapshot is no longer current the rest is left, and made the next time."""
    counting = Counting(monkeypatch)
    warmer = CacheWarmer(BodyCache(), view_of)
    assert warmer.warm(store.snapshot, lambda: False) == []
    assert counting.made == []
    warmer.warm(store.snapshot, lambda: True)
    assert sorted(counting.made) == ["crm-software", "help-desk", "x", "y"]
