"""The views of pages and feeds: each finds its part of the snapshot and shows it."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import msgspec
from flask import Blueprint, Response, request

from store.web import absent
from store.web.addresses import category_path, product_path
from store.web.answers import answer, moved
from store.web.errors import NotFound
from store.web.pages import contexts, discovery, docs, feeds
from store.web.pages.evidence import Evidence
from store.web.parameters import Parameters, path_slug

if TYPE_CHECKING:
    from collections.abc import Callable

    from store.web.describing import Describing
    from store.web.pages.assets import Assets
    from store.web.pages.serving import Moment, Serving

ATOM = "application/atom+xml; charset=utf-8"
JSON = "application/json"
JSON_FEED = "application/feed+json"
LINK_SET = 'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"'
XML = "application/xml; charset=utf-8"
TEXT = "text/plain; charset=utf-8"

KEEP = "public, max-age=31536000, immutable"
"""An asset's address changes with its content, so its bytes may be kept for good."""
SUGGESTED = 5, 3
"""Categories and products suggested while somebody types."""


class Pages:
    """Every page, feed and crawler's file."""

    def __init__(self, serving: Serving, assets: Assets, describing: Describing) -> None:
        self._serving = serving
        self._assets = assets
        self._describing = describing

    def blueprint(self) -> Blueprint:
        """Every rule with its view."""
        blueprint = Blueprint("pages", __name__)
        absent.guard(blueprint, lambda: self._serving.store.snapshot)
        for rule, view in (
            ("/", self.home),
            ("/search", self.search),
            ("/search/suggest", self.suggest),
            ("/best/<slug>", self.category),
            ("/product/<slug>", self.product),
            ("/product/<slug>/polls", self.polls),
            ("/changes", self.changes),
            ("/mentions", self.mentions),
            ("/labs", self.labs),
            ("/labs/<slug>", self.experiment),
            ("/methodology", self.methodology),
            ("/docs", self.docs),
            ("/llms.txt", self.llms),
            ("/robots.txt", self.robots),
            ("/sitemap.xml", self.site_map),
            ("/.well-known/api-catalog", self.api_catalog),
            ("/feeds/changes.atom", self.changes_atom),
            ("/feeds/changes.json", self.changes_json),
            ("/feeds/best/<slug>.atom", self.category_atom),
            ("/static/<name>", self.asset),
        ):
            blueprint.add_url_rule(rule, view.__name__, view)
        return blueprint

    def home(self) -> Response:
        """``/``: what this is, search, and what is new."""
        now = self._serving.now()
        return self._serving.overall(now, "home.html", lambda: contexts.home(now.snapshot))

    def search(self) -> Response:
        """``/search``: what fits ``q``; without it, every category."""
        now = self._serving.now()
        if not request.args.get("q", "").strip():
            return self._serving.overall(
                now,
                "categories.html",
                lambda: {"groups": contexts.by_letter(now.snapshot.overview.ranked)},
                resource="categories.json",
            )
        query = self._query()
        return self._serving.overall(
            now,
            "search.html",
            lambda: contexts.search(query, now.snapshot, now.payloads),
            key=("search", query),
            resource="search?" + urlencode({"q": query}),
        )

    def suggest(self) -> Response:
        """``/search/suggest``: titles and paths for what is being typed."""
        now = self._serving.now()
        hits = now.snapshot.overview.index.complete(self._query())
        boards = (now.snapshot.boards.get(hit.slug) for hit in hits.categories)
        products = (now.snapshot.product(hit.slug) for hit in hits.brands)
        found = [
            *({"title": b.category.title, "path": f"best/{b.slug}"} for b in boards if b),
        ][: SUGGESTED[0]]
        found += [
            *({"title": p.name, "path": f"product/{p.slug}"} for p in products if p),
        ][: SUGGESTED[1]]
        return self._serving.encoded(now, msgspec.json.encode(found), JSON)

    def category(self, slug: str) -> Response:
        """``/best/<slug>``: the verdict, how sure it is, and where it comes from."""
        now = self._serving.now()
        board = now.snapshot.boards.get(slug)
        if board is None:
            return _no_category(slug, now, now.payloads.at.category_page)

        def context() -> dict[str, Any]:
            days = Evidence(self._serving.store, now.snapshot).days(slug)
            return contexts.category(board, days, now.snapshot, now.payloads)

        verdict = now.snapshot.verdict_of(board)
        return self._serving.of(now, verdict, category_path(slug), "category.html", context)

    def product(self, slug: str) -> Response:
        """``/product/<slug>``: a product on every leaderboard."""
        now = self._serving.now()
        product = now.snapshot.product(slug)
        if product is None:
            return _no_product(slug, now, now.payloads.at.product_page)

        def context() -> dict[str, Any]:
            mentions = Evidence(self._serving.store, now.snapshot).mentions(product)
            return contexts.product(product, mentions, now.snapshot, now.payloads)

        record = now.snapshot.record_of(product)
        return self._serving.of(now, record, product_path(slug), "product.html", context)

    def polls(self, slug: str) -> Response:
        """``/product/<slug>/polls``: the newest polls that named a product."""
        now = self._serving.now()
        product = now.snapshot.product(slug)
        if product is None:
            return _no_product(slug, now, now.payloads.at.evidence_page)

        def context() -> dict[str, Any]:
            namings = Evidence(self._serving.store, now.snapshot).namings(product)
            return {"product": product, "namings": namings}

        record = now.snapshot.record_of(product)
        return self._serving.of(now, record, product_path(slug), "evidence.html", context)

    def changes(self) -> Response:
        """``/changes``: the newest flips of a #1."""
        now = self._serving.now()
        return self._serving.overall(
            now, "changes.html", lambda: contexts.changes(now.snapshot), resource="changes.json"
        )

    def mentions(self) -> Response:
        """``/mentions``: the most mentioned products."""
        now = self._serving.now()
        return self._serving.overall(
            now,
            "mentions.html",
            lambda: {"mentions": now.payloads.mention_list(now.snapshot)},
            resource="mentions.json",
        )

    def labs(self) -> Response:
        """``/labs``: the service's own experiments."""
        now = self._serving.now()
        return self._serving.overall(
            now,
            "labs.html",
            lambda: {"labs": now.payloads.labs(now.snapshot)},
            resource="labs.json",
        )

    def experiment(self, slug: str) -> Response:
        """``/labs/<slug>``: the write-up of an experiment."""
        now = self._serving.now()
        experiments = now.payloads.labs(now.snapshot).experiments
        found = next((e for e in experiments if e.slug == path_slug(slug)), None)
        if found is None:
            raise NotFound(f'No experiment with the slug "{slug}". /labs lists them all.')
        written = now.snapshot.catalogue.labs.get(slug)
        return self._serving.overall(
            now,
            "experiment.html",
            lambda: {"experiment": found, "body": written.body if written else None},
            key=("experiment", slug),
            resource="labs.json",
        )

    def methodology(self) -> Response:
        """``/methodology``: how every figure is made, with the figures of today."""
        now = self._serving.now()
        return self._serving.overall(
            now, "methodology.html", lambda: contexts.methodology(now.snapshot)
        )

    def docs(self) -> Response:
        """``/docs``: the API, from its own description."""
        now = self._serving.now()

        def context() -> dict[str, Any]:
            document = self._describing.openapi_document(now.snapshot)
            return {"document": document, "endpoints": list(docs.endpoints(document))}

        return self._serving.overall(now, "docs.html", context, resource="openapi.json")

    def llms(self) -> Response:
        """``/llms.txt``: the docs text file (llmstxt.org)."""
        now = self._serving.now()
        return self._serving.overall(
            now, "llms.txt", lambda: {"snapshot": now.snapshot}, media_type=TEXT
        )

    def robots(self) -> Response:
        """``/robots.txt``: all may be read."""
        return self._serving.overall(self._serving.now(), "robots.txt", dict, media_type=TEXT)

    def site_map(self) -> Response:
        """``/sitemap.xml``: every page worth finding, with the date of its newest answer."""
        now = self._serving.now()
        return self._serving.overall(
            now,
            "sitemap.xml",
            lambda: {"places": discovery.site_map(now.snapshot, now.payloads)},
            media_type=XML,
        )

    def api_catalog(self) -> Response:
        """``/.well-known/api-catalog``: where the API and its descriptions are (RFC 9727)."""
        now = self._serving.now()
        return self._serving.encoded(now, discovery.api_catalog(now.payloads), LINK_SET)

    def changes_atom(self) -> Response:
        """``/feeds/changes.atom``: the newest changes of all categories."""
        now = self._serving.now()
        return self._serving.overall(
            now,
            "changes.atom.xml",
            lambda: {
                "items": _newest_items(now),
                "updated": now.snapshot.overview.last_poll or "1970-01-01T00:00:00Z",
                "id": feeds.identity("feed", "changes"),
            },
            media_type=ATOM,
        )

    def changes_json(self) -> Response:
        """``/feeds/changes.json``: the same as a JSON Feed."""
        now = self._serving.now()
        body = feeds.json_feed(_newest_items(now), now.payloads)
        return self._serving.encoded(now, body, JSON_FEED)

    def category_atom(self, slug: str) -> Response:
        """``/feeds/best/<slug>.atom``: the changes of one category."""
        now = self._serving.now()
        board = now.snapshot.boards.get(slug)
        if board is None:
            return _no_category(slug, now, now.payloads.at.category_feed)

        def context() -> dict[str, Any]:
            changes = now.snapshot.readings[slug].changes[-feeds.ENTRIES :]
            items = feeds.items(contexts.flips(reversed(changes), now.snapshot), now.payloads)
            return {"board": board, "items": items, "id": feeds.identity("feed", slug)}

        verdict, path = now.snapshot.verdict_of(board), category_path(slug)
        return self._serving.of(now, verdict, path, "category.atom.xml", context, media_type=ATOM)

    def asset(self, name: str) -> Response:
        """``/static/<name>``: the style sheet, the script, the icon."""
        found = self._assets.get(name)
        if found is None:
            raise NotFound("There is no such file.")
        response = answer(found.prepared, found.media_type, "")
        del response.headers["Link"]
        if request.args.get("v") == self._assets.version(name):
            response.headers["Cache-Control"] = KEEP
        return response

    def _query(self) -> str:
        parameters = Parameters(request.args)
        query = parameters.query()
        parameters.check()
        return query


def _newest_items(now: Moment) -> list[feeds.Item]:
    newest = islice(now.snapshot.overview.changes, feeds.ENTRIES)
    return feeds.items(contexts.flips(newest, now.snapshot), now.payloads)


def _no_category(slug: str, now: Moment, address: Callable[[str], str]) -> Response:
    """Where an unknown category's slug leads: to its new one, or to the closest."""
    slug = path_slug(slug)
    if current := now.snapshot.overview.category_redirects.get(slug):
        return moved(address(current))
    if reason := absent.category(slug, now.snapshot):
        raise reason
    if category := now.snapshot.catalogue.categories.get(slug):
        raise NotFound(
            f'"{category.title}" has no successful poll yet. Its ranking appears here as soon as '
            "one assistant has answered."
        )
    raise NotFound(
        f'There is no category with the slug "{slug}".',
        suggestions=now.payloads.suggested_categories(slug, now.snapshot),
    )


def _no_product(slug: str, now: Moment, address: Callable[[str], str]) -> Response:
    """Where an unknown product's slug leads: to its new one, or to the closest."""
    slug = path_slug(slug)
    if current := now.snapshot.overview.product_redirects.get(slug):
        return moved(address(current))
    if reason := absent.product(slug, now.snapshot):
        raise reason
    raise NotFound(
        f'There is no product with the slug "{slug}".',
        suggestions=now.payloads.suggested_products(slug, now.snapshot),
    )
