"""The service's description of itself: docs, llms.txt, site map, API catalog, robots.txt."""

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

from store.web import as_of, listings, openapi
from store.web.errors import CODES
from store.web.pages.routes import from_snapshot, page
from store.web.queries import Query
from store.web.responses import Route
from store.web.view import View

TEXT = "text/plain; charset=utf-8"
LINK_SET = 'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"'
"""That of an API catalog (RFC 9727, as a link set of RFC 9264)."""
MOST_URLS = 50_000
"""Addresses one site map may hold (sitemaps.org)."""

PAGES = (
    "", "topics", "search", "compare", "models", "changes", "mentions", "labs", "methodology",
    "data", "docs",
)  # fmt: skip
"""Paths of the pages without a slug that the site map lists."""


@page("/sitemap.xml", "sitemap.xml", media_type="application/xml; charset=utf-8")
def site_map(view: View, query: Query) -> dict[str, Any]:
    """List every page worth finding, and the date of its newest answer."""
    snapshot = view.snapshot
    newest = as_of.newest_day(snapshot) or None
    places: list[tuple[str, str | None]] = [(view.at.page(page), newest) for page in PAGES]
    places += [(lab.url, lab.date) for lab in listings.get_labs(view, query).experiments]
    places += [(view.at.topic_page(topic.slug), newest) for topic in snapshot.summary.topics]
    places += [
        (view.at.category_page(board.slug), board.updated) for board in snapshot.summary.ranked
    ]
    dates: dict[str, str] = {}
    for board in snapshot.summary.ranked:
        for entry in board.entries:
            # A product page changes with the newest of its rankings.
            dates[entry.product] = max(board.updated, dates.get(entry.product, ""))
    products = sorted((snapshot.products[id_].slug, date) for id_, date in dates.items())
    places += [(view.at.product_page(slug), date) for slug, date in products]
    # Products come last: each stands in a ranking, so crawlers find what is cut off.
    return {"places": places[:MOST_URLS]}


@page("/docs", "docs.html", alternate=lambda view, _: view.at.api("openapi.json"))
def documentation(view: View, query: Query) -> dict[str, Any]:
    """Show the API, from its own description."""
    document = openapi.get_openapi(view, query)
    return {"document": document, "endpoints": list(_endpoints(document)), "codes": CODES}


def _endpoints(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield every operation of an OpenAPI document with its path and an address to try."""
    base = document["servers"][0]["url"]
    for path, operations in document["paths"].items():
        operation = operations["get"]
        media = next(iter(operation["responses"]["200"]["content"].values()))
        example = media.get("example")
        yield {
            **operation,
            "path": path,
            "answer": media["schema"],
            "address": base + _filled(path, operation["parameters"]),
            "example": json.dumps(example, indent=2, ensure_ascii=False) if example else None,
        }


def _filled(path: str, parameters: list[Mapping[str, Any]]) -> str:
    """Return a path with the parameters' examples filled in."""
    query = {}
    for parameter in parameters:
        if "example" in parameter:
            if parameter["in"] == "path":
                path = path.replace(f"{{{parameter['name']}}}", str(parameter["example"]))
            else:
                query[parameter["name"]] = parameter["example"]
    return f"{path}?{urlencode(query)}" if query else path


ROUTES: tuple[Route, ...] = (
    documentation,
    site_map,
    from_snapshot("/llms.txt", "llms.txt", media_type=TEXT),
    from_snapshot("/robots.txt", "robots.txt", media_type=TEXT),
    from_snapshot("/.well-known/api-catalog", "api-catalog.json", media_type=LINK_SET),
)
