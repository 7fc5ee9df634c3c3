"""The views of the JSON API: find the snapshot's body, or make the one that depends on a query."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec
from flask import Blueprint, Response, current_app, request

from store.snapshot import Prepared
from store.web import absent, health
from store.web.answers import Passing, answer, moved
from store.web.errors import NotFound
from store.web.parameters import Parameters, model_names, path_slug
from store.web.recent import Recent
from store.web.routes import ROUTES

if TYPE_CHECKING:
    from collections.abc import Callable

    from store.memory import Store
    from store.snapshot import Snapshot
    from store.web.describing import Describing
    from store.web.payloads import Payloads

JSON = "application/json"
MARKDOWN = "text/markdown; charset=utf-8"

PAGES = {"changes.json": "changes", "mentions.json": "mentions", "labs.json": "labs"}
"""The page that shows a document, where it is not the home page."""


class Api:
    """The JSON API over one store; ``payloads`` makes the resources of a snapshot.

    ``describing`` describes them.
    """

    def __init__(
        self,
        store: Store,
        payloads: Callable[[Snapshot], Payloads],
        describing: Describing,
    ) -> None:
        self._store = store
        self._payloads = payloads
        self._describing = describing
        self._recent = Recent()

    def blueprint(self) -> Blueprint:
        """Every route of the table with its view."""
        views: dict[str, Callable[..., Response]] = {
            "search": self.search,
            "getBestInCategory": self.category,
            "getProduct": self.product,
            "getHistory": self.history,
            "getOpenapi": self.openapi,
            "getReadme": self.readme,
        }
        blueprint = Blueprint("api", __name__)
        absent.guard(blueprint, lambda: self._store.snapshot)
        for route in ROUTES:
            view = views.get(route.operation_id) or self._document_view(route.path)
            blueprint.add_url_rule(route.rule, route.operation_id, view)
        blueprint.add_url_rule("/healthz", "health", self.health)
        blueprint.add_url_rule("/livez", "live", self.live)
        blueprint.add_url_rule("/readyz", "ready", self.ready)
        return blueprint

    def search(self) -> Response:
        """``/api/v1/search``: categories and brands that fit ``q``."""
        parameters = Parameters(request.args)
        query = parameters.query()
        parameters.check()
        snapshot = self._store.snapshot
        payloads = self._payloads(snapshot)
        prepared = self._recent.get(
            snapshot,
            ("search", query),
            lambda: Passing(
                msgspec.json.encode(payloads.search_results(query, snapshot)),
                snapshot.modified,
            ),
        )
        return answer(prepared, JSON, links(payloads, payloads.at.search_page(query)))

    def category(self, slug: str) -> Response:
        """``/api/v1/best/{slug}.json``: the verdict."""
        snapshot = self._store.snapshot
        payloads = self._payloads(snapshot)
        board = snapshot.boards.get(slug)
        if board is None:
            return self._no_category(path_slug(slug), snapshot, payloads.at.category)
        verdict = snapshot.verdict_of(board)
        return answer(verdict, JSON, links(payloads, payloads.at.category_page(slug)))

    def product(self, slug: str) -> Response:
        """``/api/v1/product/{slug}.json``: the record."""
        snapshot = self._store.snapshot
        payloads = self._payloads(snapshot)
        if product := snapshot.product(slug):
            record = snapshot.record_of(product)
            return answer(record, JSON, links(payloads, payloads.at.product_page(slug)))
        slug = path_slug(slug)
        if current := snapshot.overview.product_redirects.get(slug):
            return moved(payloads.at.product(current))
        if reason := absent.product(slug, snapshot):
            raise reason
        raise NotFound(
            f'No product with the slug "{slug}". Resolve names through /api/v1/search?q=.',
            suggestions=payloads.suggested_products(slug, snapshot),
        )

    def history(self) -> Response:
        """``/api/v1/history``: the newest polls of a category, as they stand in the files."""
        snapshot = self._store.snapshot
        payloads = self._payloads(snapshot)
        parameters = Parameters(request.args)
        slug = parameters.slug()
        names = model_names(snapshot)
        model = names.get(parameters.model(names) or "")
        limit = parameters.limit()
        parameters.check()
        if slug not in snapshot.ledgers:
            given = request.args.to_dict()
            narrowed = {name: given[name] for name in ("model", "limit") if name in given}
            return self._no_category(
                slug, snapshot, lambda current: payloads.at.history(current, **narrowed)
            )
        prepared = self._recent.get(
            snapshot,
            ("history", slug, model, limit),
            lambda: self._history(snapshot, slug, model, limit),
        )
        return answer(prepared, JSON, links(payloads, payloads.at.category_page(slug)))

    def openapi(self) -> Response:
        """``/api/v1/openapi.json``: the description of the endpoints."""

        def make(snapshot: Snapshot) -> bytes:
            return msgspec.json.encode(self._describing.openapi_document(snapshot))

        return self._description("openapi.json", make, JSON)

    def readme(self) -> Response:
        """``/api/v1/README.md``: the instructions for agents."""

        def make(snapshot: Snapshot) -> bytes:
            return self._describing.readme(snapshot).encode()

        return self._description("README.md", make, MARKDOWN)

    def health(self) -> Response:
        """``/healthz``: whether the service is what its files say; ``?strict`` answers 503 if not.

        ``app.extensions["scheduler"]`` may hold a function that says how the scheduler is.
        """
        scheduler = current_app.extensions.get("scheduler")
        found = health.examine(self._store, time.time(), scheduler)
        return _unstored(found, ok=found.is_well or "strict" not in request.args)

    def live(self) -> Response:
        """``/livez``: that the process answers."""
        return _unstored({"status": "ok"})

    def ready(self) -> Response:
        """``/readyz``: whether there is something to serve; 503 until then, and without history."""
        if not self._store.made_at:
            return _unstored({"status": "starting"}, ok=False)
        if reason := absent.history(self._store.snapshot):
            return _unstored({"status": "unavailable", "detail": reason.detail}, ok=False)
        return _unstored({"status": "ok"})

    def _document_view(self, path: str) -> Callable[[], Response]:
        """A view of a document that was prepared with the snapshot."""
        name = path.removeprefix("/api/v1/")

        def document() -> Response:
            snapshot = self._store.snapshot
            payloads = self._payloads(snapshot)
            page = payloads.at.page(PAGES.get(name, ""))
            return answer(snapshot.documents[name], JSON, links(payloads, page))

        return document

    def _description(
        self, name: str, make: Callable[[Snapshot], bytes], media_type: str
    ) -> Response:
        """An answer that describes the service as it is."""
        snapshot = self._store.snapshot
        payloads = self._payloads(snapshot)
        prepared = self._recent.get(
            snapshot, (name,), lambda: Prepared(make(snapshot), snapshot.modified)
        )
        return answer(prepared, media_type, links(payloads, payloads.at.page("")))

    def _no_category(
        self, slug: str, snapshot: Snapshot, address: Callable[[str], str]
    ) -> Response:
        """Where an unknown category's slug leads: to its new one, or to the closest."""
        if current := snapshot.overview.category_redirects.get(slug):
            return moved(address(current))
        if reason := absent.category(slug, snapshot):
            raise reason
        if slug in snapshot.catalogue.categories:
            raise NotFound(f'The category "{slug}" has no successful poll yet.')
        raise NotFound(
            f'No category with the slug "{slug}". Resolve slugs through /api/v1/search?q=.',
            suggestions=self._payloads(snapshot).suggested_categories(slug, snapshot),
        )

    def _history(self, snapshot: Snapshot, slug: str, model: str | None, limit: int) -> Prepared:
        ledger = snapshot.ledgers[slug]
        lines = self._store.lines(ledger, ledger.newest(model, limit))
        stamps = (msgspec.json.decode(line, type=_Stamp) for line in lines)
        newest = next((stamp.polled_at for stamp in stamps if not stamp.withheld), None)
        times = snapshot.catalogue.modified
        files = (times.get(name, 0) for name in (f"categories/{slug}.json", "withheld.json"))
        return Passing.of(b"[" + b",".join(lines) + b"]", files, newest)


def _unstored(body: object, *, ok: bool = True) -> Response:
    """An answer about this moment, for monitors: 200, or 503 when it is not ``ok``."""
    response = Response(msgspec.json.encode(body), 200 if ok else 503, mimetype=JSON)
    response.headers["Cache-Control"] = "no-store"
    return response


class _Stamp(msgspec.Struct, rename="camel"):
    """Of a line of history, when it was polled, and whether that counts."""

    polled_at: str
    withheld: bool = False


def links(payloads: Payloads, page: str) -> str:
    """The ``Link`` header: licence, description of the API, and the page that shows the same."""
    return f'{payloads.service_links}, <{page}>; rel="alternate"; type="text/html"'
