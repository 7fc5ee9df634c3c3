"""The JSON API: the resolvers of its routes, and what monitors ask."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import msgspec
from flask import Blueprint, Response, current_app, request

from store.web import health, resolution
from store.web.parameters import (
    Parameters,
    alone,
    asked_day,
    checked_slug,
    model_names,
)
from store.web.resolution import Part
from store.web.routes import (
    BEFORE,
    DEFAULT_HITS,
    FORMAT,
    LIMIT,
    MAX_CHANGES,
    MAX_HITS,
    MODEL,
    ROUTES,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from store.web.api_docs import ApiDocs
    from store.web.resolution import Resolved
    from store.web.responding import Responder
    from store.web.snapshot_view import SnapshotView


NARROWING = tuple(parameter.name for parameter in (MODEL, LIMIT, BEFORE, FORMAT))
"""Parameters of a history beside its slug."""


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
            "listCategories": self.categories,
            "getBestInCategory": self.category,
            "getProduct": self.product,
            "getHistory": self.history,
            "getChanges": self.changes,
            "getOpenapi": self._api_docs.openapi_document,
            "getReadme": self._api_docs.readme,
        }
        blueprint = Blueprint("api", __name__)
        for route in ROUTES:
            document = partial(self.document, route.path.removeprefix("/api/v1/"))
            resolve = resolvers.get(route.operation_id, document)
            self._responder.add(blueprint, route.rule, route.operation_id, resolve)
        blueprint.add_url_rule("/healthz", "health", self.health)
        blueprint.add_url_rule("/livez", "live", self.live)
        blueprint.add_url_rule("/readyz", "ready", self.ready)
        return blueprint

    def document(self, name: str, view: SnapshotView) -> Resolved:
        """What is over everything, in the form asked for if it has several."""
        has_forms = resolution.DOCUMENTS[name].rows and request.query_string
        form = alone(request.args, Parameters.format) if has_forms else "json"
        return resolution.document(name, view, form)

    def search(self, view: SnapshotView) -> Resolved:
        """``/api/v1/search``: categories and brands that fit ``q``."""
        parameters = Parameters(request.args)
        query, kind = parameters.query(), parameters.kind()
        limit = parameters.limit(DEFAULT_HITS, MAX_HITS)
        parameters.check()
        return resolution.search(query, view, limit, kind)

    def categories(self, view: SnapshotView) -> Resolved:
        """``/api/v1/categories.json``: every ranked category, or those of a ``topic``."""
        parameters = Parameters(request.args)
        slug = parameters.one_of("topic", [topic.slug for topic in view.snapshot.summary.topics])
        form = parameters.format()
        parameters.check()
        found = view.snapshot.summary.topic(slug) if slug else None
        if found is None:
            return resolution.document("categories.json", view, form)
        return resolution.topic(found, view, form)

    def category(self, view: SnapshotView, slug: str) -> Resolved:
        """``/api/v1/best/{slug}.json``: the verdict."""
        day = asked_day(request.args) if request.query_string else None
        if board := view.snapshot.leaderboards.get(slug):
            return resolution.verdict_as_of(board, day, view, self._store.lines)
        return resolution.no_category(
            checked_slug(slug), view, partial(view.at.category, as_of=day)
        )

    def product(self, view: SnapshotView, slug: str) -> Resolved:
        """``/api/v1/product/{slug}.json``: the record."""
        if product := view.snapshot.product(slug):
            return resolution.record(product, view)
        return resolution.no_product(checked_slug(slug), view, view.at.product)

    def history(self, view: SnapshotView) -> Resolved:
        """``/api/v1/history``: the newest polls of a category, as they stand in the files."""
        parameters = Parameters(request.args)
        slug = parameters.slug()
        names = model_names(view.snapshot)
        model = names.get(parameters.one_of("model", names) or "")
        part = Part(parameters.limit(), parameters.before(), parameters.format())
        parameters.check()
        found = resolution.history(slug, model, part, view, self._store.lines)
        if found is None:
            asked = request.args
            given = {name: asked[name] for name in NARROWING if name in asked}
            address = partial(view.at.history, **given)
            return resolution.no_category(slug, view, address)
        return found

    def changes(self, view: SnapshotView) -> Resolved:
        """``/api/v1/changes.json``: the newest changes, or those before one of them."""
        parameters = Parameters(request.args)
        limit = parameters.limit(default=MAX_CHANGES, most=MAX_CHANGES)
        part = Part(limit, parameters.before(), parameters.format())
        parameters.check()
        return resolution.changes(part, view)

    def health(self) -> Response:
        """``/healthz``: whether the service is what its files say; ``?strict`` answers 503 if not.

        ``app.extensions["scheduler"]`` may hold a function that says how the scheduler is.
        """
        scheduler, meaning = map(current_app.extensions.get, ("scheduler", "meaning"))
        found = health.examine(self._store, time.time(), scheduler, meaning)
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
