"""Making what requests will ask for before they do."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from store.web import resolution
from store.web.resolution import RequestView

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from store.snapshot import Snapshot
    from store.web.cache import BodyCache
    from store.web.payloads import Payloads
    from store.web.resolution import Resource

    Step = tuple[str, Callable[[], object]]


class CacheWarmer:
    """Fills a cache with every resource that does not depend on a query.

    Each generation is made once: what the cache had no room to keep is made when it is asked for.
    """

    def __init__(self, cache: BodyCache, payloads: Callable[[Snapshot], Payloads]) -> None:
        self._cache = cache
        self._payloads = payloads
        self._warmed = 0
        self._failed: frozenset[str] = frozenset()

    def warm(
        self, snapshot: Snapshot, is_current: Callable[[], bool]
    ) -> list[tuple[str, Exception]]:
        """Make what changed since the last time, and what failed then; the new failures by name.

        It ends early when the snapshot is no longer the current one.
        """
        faults: list[tuple[str, Exception]] = []
        for name, make in self._steps(snapshot):
            try:
                make()
            except Exception as error:  # noqa: BLE001 - the store tells the operator
                faults.append((name, error))
            if not is_current():
                return faults
        self._warmed = snapshot.generations.newest
        self._failed = frozenset(name for name, _ in faults)
        return faults

    def _steps(self, snapshot: Snapshot) -> Iterator[Step]:
        yield "what searches and old addresses need", snapshot.overview.prepare
        if snapshot.generations.newest == self._warmed and not self._failed:
            return
        for name, generation, resource in self._resources(snapshot):
            if generation > self._warmed or name in self._failed:
                yield name, partial(self._make, generation, resource)

    def _make(self, generation: int, resource: Callable[[], Resource]) -> None:
        found = resource()
        self._cache.get(found.path, generation, found.make)

    def _resources(self, snapshot: Snapshot) -> Iterator[tuple[str, int, Callable[[], Resource]]]:
        view = RequestView(snapshot, self._payloads(snapshot))
        made = snapshot.generations
        for name in resolution.DOCUMENTS:
            yield name, made.overview, partial(resolution.document, name, view)
        for slug, board in snapshot.boards.items():
            step = made.categories[slug]
            yield f"the verdict of {slug}", step, partial(resolution.verdict, board, view)
        for id_, product in snapshot.products.items():
            step = made.products[id_]
            yield f"the record of {product.slug}", step, partial(resolution.record, product, view)
