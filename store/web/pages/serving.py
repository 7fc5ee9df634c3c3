"""Serving pages: rendered on first request, kept while current, answered like the API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from store.snapshot import Prepared
from store.web.addresses import LICENCES
from store.web.answers import answer
from store.web.pages.cache import Cache

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    from flask import Response

    from store.memory import Store
    from store.snapshot import Snapshot
    from store.web.pages.rendering import Renderer
    from store.web.payloads import Payloads

HTML = "text/html; charset=utf-8"


class Moment(Struct, frozen=True):
    """What one request sees: a snapshot, and the resources made from it."""

    snapshot: Snapshot
    payloads: Payloads

    @property
    def licence(self) -> str | None:
        """The address of the licence, if it is a well-known one."""
        return LICENCES.get(self.payloads.site.licence)


class Serving:
    """Renders pages over one store and keeps them while the data they show is current."""

    def __init__(
        self, store: Store, payloads: Callable[[Snapshot], Payloads], renderer: Renderer
    ) -> None:
        self.store = store
        self.renderer = renderer
        self._payloads = payloads
        self._cache = Cache()

    def now(self) -> Moment:
        """The current picture."""
        snapshot = self.store.snapshot
        return Moment(snapshot, self._payloads(snapshot))

    def overall(
        self,
        moment: Moment,
        template: str,
        context: Callable[[], Mapping[str, Any]],
        *,
        key: Hashable = None,
        resource: str | None = None,
        media_type: str = HTML,
    ) -> Response:
        """A page over all categories, current as long as the snapshot's documents are."""
        return self.page(
            moment,
            template,
            context,
            key=key or template,
            source=moment.snapshot.documents["categories.json"],
            modified=moment.snapshot.modified,
            resource=resource,
            media_type=media_type,
        )

    def of(
        self,
        moment: Moment,
        body: Prepared,
        path: str,
        template: str,
        context: Callable[[], Mapping[str, Any]],
        *,
        media_type: str = HTML,
    ) -> Response:
        """A page of one category or product, current as long as the body of its resource is."""
        return self.page(
            moment,
            template,
            context,
            key=(template, path),
            source=body,
            modified=body.modified,
            resource=path,
            media_type=media_type,
        )

    def page(  # noqa: PLR0913 - the same
        self,
        moment: Moment,
        template: str,
        context: Callable[[], Mapping[str, Any]],
        *,
        key: Hashable,
        source: Prepared,
        modified: int,
        resource: str | None,
        media_type: str,
    ) -> Response:
        """A page with the links that every page carries."""

        def make() -> Prepared:
            body = self.renderer.render(
                template, moment.payloads, licence=moment.licence, **context()
            )
            return Prepared(body, modified)

        return answer(self._cache.get(key, source, make), media_type, links(moment, resource))

    def encoded(self, moment: Moment, body: bytes, media_type: str) -> Response:
        """A body that no template makes, small enough to be made anew each time."""
        prepared = Prepared(body, moment.snapshot.modified)
        return answer(prepared, media_type, links(moment, None))


def links(moment: Moment, resource: str | None) -> str:
    """The ``Link`` header: what every answer has, the API catalog, and the same as JSON."""
    at = moment.payloads.at
    found = [
        moment.payloads.service_links,
        f'<{at.page(".well-known/api-catalog")}>; rel="api-catalog"',
    ]
    if resource:
        found.append(f'<{at.api(resource)}>; rel="alternate"; type="application/json"')
    return ", ".join(found)
