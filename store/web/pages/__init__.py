"""Web pages, feeds and what crawlers read: rendered from a snapshot on first request, then kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from store.web.pages import headers
from store.web.pages.assets import Assets
from store.web.pages.rendering import Renderer
from store.web.pages.serving import Serving
from store.web.pages.views import Pages

if TYPE_CHECKING:
    from collections.abc import Callable

    from flask import Flask

    from store.memory import Store
    from store.snapshot import Snapshot
    from store.web.describing import Describing
    from store.web.payloads import Payloads


def register(
    app: Flask, store: Store, payloads: Callable[[Snapshot], Payloads], describing: Describing
) -> None:
    """Serve every page of a store, and show errors on page paths as pages."""
    assets = Assets()
    serving = Serving(store, payloads, Renderer(assets))
    app.register_blueprint(Pages(serving, assets, describing).blueprint())
    headers.register(app, serving)
