"""What crawlers and agents read first: the site map, the API catalog, and structured data."""

from typing import Any

import msgspec

from store.web.answers import newest
from store.web.listings import get_labs
from store.web.pages.routes import page, resource
from store.web.queries import Query
from store.web.shapes import CategoryVerdict
from store.web.view import View

LINK_SET = 'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"'
MOST_URLS = 50_000
"""Addresses one site map may hold (sitemaps.org)."""

PAGES = (
    "", "topics", "search", "compare", "models", "changes", "mentions", "labs", "methodology",
    "data", "docs",
)  # fmt: skip


@page("/sitemap.xml", "sitemap.xml", media_type="application/xml; charset=utf-8")
def site_map(view: View, query: Query) -> dict[str, Any]:  # noqa: ARG001
    """List every page worth finding, and the date of its newest answer."""
    snapshot = view.snapshot
    newest = (snapshot.summary.last_poll or "")[:10] or None
    places: list[tuple[str, str | None]] = [(view.at.page(page), newest) for page in PAGES]
    places += [(lab.url, lab.date) for lab in get_labs(view, Query()).experiments]
    places += [(view.at.topic_page(topic.slug), newest) for topic in snapshot.summary.topics]
    places += [(view.at.model_page(slug), newest) for slug in snapshot.summary.model_slugs]
    places += [
        (view.at.category_page(board.slug), board.updated) for board in snapshot.summary.ranked
    ]
    dates: dict[str, str] = {}
    for board in snapshot.summary.ranked:
        for entry in board.entries:
            dates[entry.product] = max(board.updated, dates.get(entry.product, ""))
    named = ((snapshot.products.get(id_), date) for id_, date in dates.items())
    products = sorted((product.slug, date) for product, date in named if product)
    places += [(view.at.product_page(slug), date) for slug, date in products]
    return {"places": places[:MOST_URLS]}


@resource("/.well-known/api-catalog", LINK_SET, basis=newest, needs_history=False)
def api_catalog(view: View, query: Query) -> bytes:  # noqa: ARG001
    """Return the API catalog of RFC 9727, as a link set (RFC 9264)."""
    at = view.at
    description = {"href": at.api("openapi.json"), "type": "application/json"}
    catalog = {
        "linkset": [
            {
                "anchor": at.api(""),
                "service-desc": [description],
                "service-doc": [
                    {"href": at.page("docs"), "type": "text/html"},
                    {"href": at.api("README.md"), "type": "text/markdown"},
                ],
                "status": [{"href": at.page("healthz"), "type": "application/json"}],
            },
            {
                "anchor": at.page("mcp"),
                "service-doc": [{"href": at.page("docs") + "#mcp", "type": "text/html"}],
            },
        ]
    }
    return msgspec.json.encode(catalog)


def structured(verdict: CategoryVerdict, view: View) -> dict[str, Any]:
    """A category in the words of schema.org: a list, and the data set it comes from."""
    at = view.at
    elements = [
        {
            "@type": "ListItem",
            "position": entry.rank,
            "name": entry.product,
            "url": at.product_page(entry.slug),
        }
        for entry in verdict.combined
    ]
    dataset = {
        "@type": "Dataset",
        "name": f"{verdict.title}: what AI assistants recommend",
        "description": f'Answers of AI assistants to "{verdict.question}", merged into a ranking. '
        "It measures what assistants recommend, not what is true.",
        "url": verdict.url,
        "dateModified": verdict.updated,
        "isAccessibleForFree": True,
        "creator": {"@type": "Organization", "name": view.site.name, "url": at.page()},
        "distribution": [
            {"@type": "DataDownload", "contentUrl": address, "encodingFormat": "application/json"}
            for address in (at.category(verdict.slug), at.history(verdict.slug))
        ],
        **({"license": view.licence} if view.licence else {}),
    }
    ranking = {
        "@type": "ItemList",
        "name": verdict.title,
        "url": verdict.url,
        "itemListOrder": "https://schema.org/ItemListOrderAscending",
        "numberOfItems": len(elements),
        "itemListElement": elements,
    }
    return {"@context": "https://schema.org", "@graph": [ranking, dataset]}
