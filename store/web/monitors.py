"""What monitors ask: health, and whether the process lives and is ready. Nothing here is kept."""

import time

import msgspec
from flask import Flask, Response, current_app, request

from store.store import Store
from store.web import health
from store.web.errors import Refused
from store.web.lookup import check_history
from store.web.view import View


def register(app: Flask, store: Store) -> None:
    """Serve the probes.

    ``app.extensions["scheduler"]`` may hold a function that says how the scheduler is.
    """

    def report() -> Response:
        scheduler, meaning = map(current_app.extensions.get, ("scheduler", "meaning"))
        found = health.examine(store, time.time(), scheduler, meaning)
        return _unstored(found, ok=found.is_well or "strict" not in request.args)

    def live() -> Response:
        return _unstored({"status": "ok"})

    def ready() -> Response:
        if not store.made_at:
            return _unstored({"status": "starting"}, ok=False)
        try:
            check_history(View(store.snapshot, "", store.lines))
        except Refused as lost:
            return _unstored({"status": "unavailable", "detail": lost.detail}, ok=False)
        return _unstored({"status": "ok"})

    app.add_url_rule("/healthz", "health", report)
    app.add_url_rule("/livez", "live", live)
    app.add_url_rule("/readyz", "ready", ready)


def _unstored(body: object, *, ok: bool = True) -> Response:
    """Return an answer about this moment: 200, or 503 when it is not ``ok``."""
    response = Response(msgspec.json.encode(body), 200 if ok else 503, mimetype="application/json")
    response.headers["Cache-Control"] = "no-store"
    return response
