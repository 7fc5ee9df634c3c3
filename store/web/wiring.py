"""Joining the web room to Flask: every route, and what happens around it."""

from collections.abc import Callable

from flask import Flask

from store.files import Catalogue
from store.search.meaning import Meaning
from store.store import Store
from store.web import answers, descriptions, errors, monitors, service
from store.web.hosts import host_names
from store.web.mcp import endpoint
from store.web.pages import feeds, pictures, views
from store.web.pages.data import DataFiles
from store.web.view import View


def register(
    app: Flask,
    store: Store,
    meaning: Meaning,
    base_url: Callable[[Catalogue], str],
    hosts: tuple[str, ...],
) -> None:
    """Serve everything that a store holds, below a base URL, to requests for these hosts."""

    def view() -> View:
        """Return what a request sees that comes now."""
        snapshot = store.snapshot
        return View(snapshot, base_url(snapshot.catalogue), store.lines, meaning)

    def trusted() -> frozenset[str]:
        """Return the names of the hosts that are ours now."""
        catalogue = store.snapshot.catalogue
        return host_names((base_url(catalogue), *catalogue.site.hosts, *hosts))

    files = DataFiles(store.directory)
    routes = (
        *descriptions.ENDPOINTS, *endpoint.ROUTES, *views.ROUTES, *feeds.ROUTES,
        *pictures.routes(), files.page(),
    )  # fmt: skip
    errors.register(app)
    service.register(app, routes, view, trusted)
    answers.register(app, routes, view, answers.Cache())
    app.add_url_rule("/data/<path:name>", "data_file", files.send)
    endpoint.register(app, view)
    monitors.register(app, store)
