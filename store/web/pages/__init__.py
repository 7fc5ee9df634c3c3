"""Web pages, feeds and what crawlers read: rendered from a snapshot on first request, then kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from store.web.pages import headers
from store.web.pages.assets import Assets
from store.web.pages.rendering import PageRenderer
from store.web.pages.views import Pages

if TYPE_CHECKING:
    from flask import Flask

    from store.web.api_docs import ApiDocs
    from store.web.responding import Responder


def register(app: Flask, responder: Responder, api_docs: ApiDocs) -> None:
    """Serve every page, and show errors on page paths as pages."""
    assets = Assets()
    renderer = PageRenderer(assets)
    app.register_blueprint(Pages(responder, renderer, assets, api_docs).blueprint())
    headers.register(app, responder, renderer)
