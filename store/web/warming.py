"""Making what requests will ask for before they do."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from store.web import resolution

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from store.snapshot import Snapshot
    from store.web.cache import BodyCache
    from store.web.resolution import Resource
    from store.web.snapshot_view import SnapshotView


class CacheWarmer:
    """Fills a cache with every resource that does not depend on a query.

    Each generation is made once: what the cache had no room to keep is made when it is asked for.
    """

    def __init__(self, cache: BodyCache, view: Callable[[Snapshot], SnapshotView]) -> None:
        self._cache = cache
        self._view = view
        self._warmed = 0

    def warm(
        self, snapshot: Snapshot, is_current: Callable[[], bool]
    ) -> list[tuple[str, Exception]]:
        """Make what changed since all was made, while it is current; what cannot be, by name."""
        faults: list[tuple[str, Exception]] = []
        for name, make in self._steps(snapshot):
            try:
                make()
            except Exception as error:  # noqa: BLE001 - the store tells the operator
                faults.append((name, error))
            if not is_current():
                return faults
        if not faults:
            self._warmed = snapshot.generations.newest
        return faults

    def _steps(self, snapshot: Snapshot) -> Iterator[tuple[str, Callable[[], object]]]:
        yield "what searches and old addresses need", snapshot.summary.prepare
        made, view = snapshot.generations, self._view(snapshot)
        if made.summary > self._warmed:
            for name in resolution.DOCUMENTS:
                yield name, self._make(resolution.document(name, view))
        for slug, step in made.categories.items():
            if step > self._warmed:
                found = resolution.verdict(snapshot.leaderboards[slug], view)
                yield f"the verdict of {slug}", self._make(found)
        for id_, step in made.products.items():
            if step > self._warmed:
                product = snapshot.products[id_]
                found = resolution.record(product, view)
                yield f"the record of {product.slug}", self._make(found)

    def _make(self, found: Resource) -> Callable[[], object]:
        return partial(self._cache.get, found.path, found.generation, found.make)
