"""The service's description of itself: docs, llms.txt, site map, API catalog, robots.txt."""

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

import msgspec
from markupsafe import Markup, escape

from store.web import listings, openapi
from store.web.answers import Route, newest
from store.web.errors import CODES
from store.web.pages.routes import page, resource
from store.web.queries import Query
from store.web.view import View

TEXT = "text/plain; charset=utf-8"
LINK_SET = 'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"'
MOST_URLS = 50_000
"""Addresses one site map may hold (sitemaps.org)."""

PAGES = (
    "", "topics", "search", "compare", "models", "changes", "mentions", "labs", "methodology",
    "data", "docs",
)  # fmt: skip


@page("/llms.txt", "llms.txt", media_type=TEXT)
def llms_text(view: View, query: Query) -> dict[str, Any]:  # noqa: ARG001
    """Tell a language model what is here."""
    return {}


@page("/robots.txt", "robots.txt", media_type=TEXT, needs_history=False)
def robots(view: View, query: Query) -> dict[str, Any]:  # noqa: ARG001
    """Tell crawlers where the site map is."""
    return {}


@page("/sitemap.xml", "sitemap.xml", media_type="application/xml; charset=utf-8")
def site_map(view: View, query: Query) -> dict[str, Any]:
    """List every page worth finding, and the date of its newest answer."""
    snapshot = view.snapshot
    newest = (snapshot.summary.last_poll or "")[:10] or None
    places: list[tuple[str, str | None]] = [(view.at.page(page), newest) for page in PAGES]
    places += [(lab.url, lab.date) for lab in listings.get_labs(view, query).experiments]
    places += [(view.at.topic_page(topic.slug), newest) for topic in snapshot.summary.topics]
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
    # Products come last: each stands in a ranking, so crawlers find what is cut off.
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


@page("/docs", "docs.html", basis=newest, same=lambda view, _: view.at.api("openapi.json"))
def documentation(view: View, query: Query) -> dict[str, Any]:
    """Show the API, from its own description."""
    document = openapi.get_openapi(view, query)
    schemas = document["components"]["schemas"]
    return {
        "document": document,
        "endpoints": list(_endpoints(document)),
        "shapes": [
            (name, schema.get("description", ""), _fields(schema, schemas))
            for name, schema in sorted(schemas.items())
        ],
        "codes": CODES,
    }


def _endpoints(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield every operation of an OpenAPI document, its parameters with their ``rule`` in words.

    ``address`` has the examples of the parameters filled in; ``answer`` is its type.
    """
    base = document["servers"][0]["url"]
    for path, operations in document["paths"].items():
        operation = operations["get"]
        media = next(iter(operation["responses"]["200"]["content"].values()))
        example = media.get("example")
        yield {
            **operation,
            "path": path,
            "parameters": [{**p, "rule": _rule(p["schema"])} for p in operation["parameters"]],
            "answer": _type(media["schema"]),
            "address": base + _filled(path, operation["parameters"]),
            "example": json.dumps(example, indent=2, ensure_ascii=False) if example else None,
        }


def _rule(schema: Mapping[str, Any]) -> str:
    """Return a parameter's schema in words."""
    if "enum" in schema:
        return "one of " + ", ".join(schema["enum"])
    words = [str(schema.get("type", ""))]
    if "maximum" in schema:
        words.append(f"{schema['minimum']} to {schema['maximum']}")
    if "maxLength" in schema:
        words.append(f"at most {schema['maxLength']} characters")
    if "default" in schema:
        words.append(f"default {schema['default']}")
    return ", ".join(words)


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


def _fields(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> list[tuple[str, Markup, str]]:
    """Return name, type and description of what an object has."""
    fields = []
    for name, member in schema.get("properties", {}).items():
        options = [member, *member.get("anyOf", [])]
        referred = [schemas.get(_reference(option), {}) for option in options]
        texts = (option.get("description", "") for option in (*options, *referred))
        fields.append((name, _type(member), next(filter(None, texts), "")))
    return fields


def _reference(schema: Mapping[str, Any]) -> str:
    """Return the name of the object that a schema refers to, if it does."""
    (referring, *_) = schema.get("allOf", [schema])
    return str(referring.get("$ref", "")).rpartition("/")[2]


def _type(schema: Mapping[str, Any]) -> Markup:
    """Return a member's type in a word or two; an object's leads to its description."""
    if "anyOf" in schema:
        return Markup(" or ").join(map(_type, schema["anyOf"]))
    if name := _reference(schema):
        return Markup('<a href="#{0}">{0}</a>').format(name)
    if "enum" in schema:
        return escape(" | ".join(json.dumps(value) for value in schema["enum"]))
    if schema.get("type") == "array":
        return Markup("array of {}").format(_type(schema.get("items", {})))
    if isinstance(schema.get("additionalProperties"), dict):
        return Markup("object of {}").format(_type(schema["additionalProperties"]))
    return escape(schema.get("format") or schema.get("type", "any"))


ROUTES: tuple[Route, ...] = (documentation, llms_text, robots, site_map, api_catalog)
