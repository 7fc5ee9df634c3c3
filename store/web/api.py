"""The JSON API: the resolvers of its routes, and what monitors ask."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import msgspec
from flask import Blueprint, Response, current_app, request

from store.web import health, resolution
from store.web.parameters import Parameters, asked_query, model_names, path_slug
from store.web.routes import ROUTES

if TYPE_CHECKING:
    from collections.abc import Callable

    from store.web.api_docs import ApiDocs
    from store.web.resolution import Resolved
    from store.web.responding import Responder
    from store.web.snapshot_view import SnapshotView


class Api:
    """The JSON API; ``api_docs`` describes it."""

    def __init__(self, responder: Responder, api_docs: ApiDocs) -> None:
        self._responder = responder
        self._store = responder.store
        self._api_docs = api_docs

    def blueprint(self) -> Blueprint:
        """Every route of the table, and the probes."""
        resolvers: dict[str, Callable[..., Resolved]] = {
            "search": self.search,
            "getBestInCategory": self.category,
            "getProduct": self.product,
            "getHistory": self.history,
            "getOpenapi": self._api_docs.openapi_document,
            "getReadme": self._api_docs.readme,
        }
        blueprint = Blueprint("api", __name__)
        for route in ROUTES:
            document = partial(resolution.document, route.path.removeprefix("/api/v1/"))
            resolve = resolvers.get(route.operation_id, document)
            self._responder.add(blueprint, route.rule, route.operation_id, resolve)
        blueprint.add_url_rule("/healthz", "health", self.health)
        blueprint.add_url_rule("/livez", "live", self.live)
        blueprint.add_url_rule("/readyz", "ready", self.ready)
        return blueprint

    def search(self, view: SnapshotView) -> Resolved:
        """``/api/v1/search``: categories and brands that fit ``q``."""
        return resolution.search(asked_query(request.args), view)

    def category(self, view: SnapshotView, slug: str) -> Resolved:
        """``/api/v1/best/{slug}.json``: the verdict."""
        if board := view.snapshot.leaderboards.get(slug):
            return resolution.verdict(board, view)
        return resolution.no_category(path_slug(slug), view, view.at.category)

    def product(self, view: SnapshotView, slug: str) -> Resolved:
        """``/api/v1/product/{slug}.json``: the record."""
        if product := view.snapshot.product(slug):
            return resolution.record(product, view)
        return resolution.no_product(path_slug(slug), view, view.at.product)

    def history(self, view: SnapshotView) -> Resolved:
        """``/api/v1/history``: the newest polls of a category, as they stand in the files."""
        parameters = Parameters(request.args)
        slug = parameters.slug()
        names = model_names(view.snapshot)
        model = names.get(parameters.model(names) or "")
        limit = parameters.limit()
        parameters.check()
        found = resolution.history(slug, model, limit, view, self._store.lines)
        if found is None:
            asked = request.args
            given = {name: asked[name] for name in ("model", "limit") if name in asked}
            address = partial(view.at.history, **given)
            return resolution.no_category(slug, view, address)
        return found

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
        if lost := resolution.without_history(self._store.snapshot):
            return _unstored({"status": "unavailable", "detail": lost.api}, ok=False)
        return _unstored({"status": "ok"})


def _unstored(body: object, *, ok: bool = True) -> Response:
    """An answer about this moment, for monitors: 200, or 503 when it is not ``ok``."""
    response = Response(msgspec.json.encode(body), 200 if ok else 503, mimetype=resolution.JSON)
    response.headers["Cache-Control"] = "no-store"
    return response
