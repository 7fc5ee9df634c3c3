"""The resolvers of pages and feeds: each finds its part of the snapshot and how to show it."""

from __future__ import annotations

from http import HTTPStatus
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlencode

import msgspec
from flask import Blueprint, request

from store.web import resolution
from store.web import resources as wire
from store.web.cache import EncodedBody
from store.web.pages import contexts, discovery, docs, feeds
from store.web.pages.evidence import Evidence
from store.web.pages.rendering import HTML, page_link
from store.web.parameters import asked_query, path_slug
from store.web.resolution import JSON, Absent, Resource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from store.rankings.changes import Change
    from store.web.api_docs import ApiDocs
    from store.web.pages.rendering import PageRenderer
    from store.web.resolution import Resolved
    from store.web.responding import Responder
    from store.web.snapshot_view import SnapshotView

Shape = TypeVar("Shape")

ATOM = "application/atom+xml; charset=utf-8"
JSON_FEED = "application/feed+json"
LINK_SET = 'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"'
XML = "application/xml; charset=utf-8"
TEXT = "text/plain; charset=utf-8"

API_CATALOG, ROBOTS = ".well-known/api-catalog", "robots.txt"
WITHOUT_HISTORY = (f"/{API_CATALOG}", f"/{ROBOTS}", "/static/<name>")
"""Rules of what says nothing that follows from history."""

_VERDICTS = msgspec.json.Decoder(wire.CategoryVerdict)
_RECORDS = msgspec.json.Decoder(wire.ProductRecord)
_LABS = msgspec.json.Decoder(wire.Labs)
_MENTIONS = msgspec.json.Decoder(wire.MentionList)
_DOCUMENTS = msgspec.json.Decoder(dict[str, Any])
KEEP = "public, max-age=31536000, immutable"
"""An asset's address changes with its content, so its bytes may be kept for good."""
SUGGESTED = 5, 3
"""Categories and products suggested while somebody types."""


class Pages:
    """Every page, feed and crawler's file."""

    def __init__(self, responder: Responder, renderer: PageRenderer, api_docs: ApiDocs) -> None:
        self._responder = responder
        self._renderer = renderer
        self._assets = renderer.assets
        self._api_docs = api_docs

    def blueprint(self) -> Blueprint:
        """Every rule with its resolver; what does not follow from history needs none."""
        blueprint = Blueprint("pages", __name__)
        resolvers: tuple[tuple[str, Callable[..., Resolved]], ...] = (
            *self._over_all(),
            ("/search", self.search),
            ("/search/suggest", self.suggest),
            ("/best/<slug>", self.category),
            ("/product/<slug>", self.product),
            ("/product/<slug>/polls", self.polls),
            ("/labs/<slug>", self.experiment),
            (f"/{API_CATALOG}", self.api_catalog),
            ("/feeds/changes.json", self.changes_json),
            ("/feeds/best/<slug>.atom", self.category_atom),
            ("/static/<name>", self.asset),
        )
        for rule, resolve in resolvers:
            name, needs_history = rule.replace(".", "_"), rule not in WITHOUT_HISTORY
            self._responder.add(blueprint, rule, name, resolve, needs_history=needs_history)
        return blueprint

    def search(self, view: SnapshotView) -> Resolved:
        """``/search``: what fits ``q``; without it, every category."""
        if not request.args.get("q", "").strip():
            return self._page(
                view,
                "search",
                "categories.html",
                lambda: {"groups": contexts.by_letter(view.snapshot.summary.ranked)},
                same="categories.json",
            )
        query = asked_query(request.args)
        return self._page(
            view,
            f"search?q={query}",
            "search.html",
            lambda: {"results": view.search_results(query)},
            same="search?" + urlencode({"q": query}),
        )

    def suggest(self, view: SnapshotView) -> Resolved:
        """``/search/suggest``: titles and paths for what is being typed."""
        snapshot, query = view.snapshot, asked_query(request.args)

        def make() -> bytes:
            hits = snapshot.summary.index.complete(query)
            leaderboards = (snapshot.leaderboards.get(hit.slug) for hit in hits.categories)
            products = (snapshot.product(hit.slug) for hit in hits.brands)
            found = [
                *[(b.category.title, f"best/{b.slug}") for b in leaderboards if b][: SUGGESTED[0]],
                *[(p.name, f"product/{p.slug}") for p in products if p][: SUGGESTED[1]],
            ]
            return msgspec.json.encode([{"title": title, "path": path} for title, path in found])

        return _small(view, "search/suggest", make, JSON)

    def category(self, view: SnapshotView, slug: str) -> Resolved:
        """``/best/<slug>``: the verdict, how sure it is, and where it comes from."""
        snapshot = view.snapshot
        board = snapshot.leaderboards.get(slug)
        if board is None:
            return resolution.no_category(path_slug(slug), view, view.at.category_page)

        found = resolution.verdict(board, view)

        def context() -> dict[str, Any]:
            verdict = self._decoded(found, _VERDICTS)
            days = Evidence(self._responder.store, snapshot).days(slug)
            return contexts.category(board, verdict, days, view)

        return self._page(view, f"best/{slug}", "category.html", context, about=found)

    def product(self, view: SnapshotView, slug: str) -> Resolved:
        """``/product/<slug>``: a product on every leaderboard."""
        product = view.snapshot.product(slug)
        if product is None:
            return resolution.no_product(path_slug(slug), view, view.at.product_page)

        found = resolution.record(product, view)

        def context() -> dict[str, Any]:
            record = self._decoded(found, _RECORDS)
            mentions = Evidence(self._responder.store, view.snapshot).mentions(product)
            return contexts.product(product, record, mentions, view)

        return self._page(view, f"product/{slug}", "product.html", context, about=found)

    def polls(self, view: SnapshotView, slug: str) -> Resolved:
        """``/product/<slug>/polls``: the newest polls that named a product."""
        product = view.snapshot.product(slug)
        if product is None:
            return resolution.no_product(path_slug(slug), view, view.at.evidence_page)

        def context() -> dict[str, Any]:
            evidence = Evidence(self._responder.store, view.snapshot)
            return {"product": product, "namings": evidence.product_mentions(product)}

        found = resolution.record(product, view)
        return self._page(view, f"product/{slug}/polls", "evidence.html", context, about=found)

    def experiment(self, view: SnapshotView, slug: str) -> Resolved:
        """``/labs/<slug>``: the write-up of an experiment."""
        experiments = self._labs(view).experiments
        found = next((e for e in experiments if e.slug == path_slug(slug)), None)
        if found is None:
            why = f'No experiment with the slug "{slug}". /labs lists them all.'
            return Absent.because(HTTPStatus.NOT_FOUND, why)
        written = view.snapshot.catalogue.labs.get(slug)
        shown = {"experiment": found, "body": written.body if written else None}
        return self._page(view, f"labs/{slug}", "experiment.html", lambda: shown, same="labs.json")

    def api_catalog(self, view: SnapshotView) -> Resolved:
        """``/.well-known/api-catalog``: where the API and its descriptions are (RFC 9727)."""
        return _small(view, API_CATALOG, lambda: discovery.api_catalog(view), LINK_SET)

    def changes_json(self, view: SnapshotView) -> Resolved:
        """``/feeds/changes.json``: the same as a JSON Feed."""
        path = "feeds/changes.json"
        return _small(view, path, lambda: feeds.json_feed(_newest_items(view), view), JSON_FEED)

    def category_atom(self, view: SnapshotView, slug: str) -> Resolved:
        """``/feeds/best/<slug>.atom``: the changes of one category."""
        board = view.snapshot.leaderboards.get(slug)
        if board is None:
            return resolution.no_category(path_slug(slug), view, view.at.category_feed)

        def context() -> dict[str, Any]:
            changes = view.snapshot.aggregates[slug].changes[-feeds.ENTRIES :]
            items = _items(reversed(changes), view)
            return {"board": board, "items": items, "id": feeds.identity("feed", slug)}

        found, path = resolution.verdict(board, view), f"feeds/best/{slug}.atom"
        return self._page(view, path, "category.atom.xml", context, about=found, media_type=ATOM)

    def asset(self, view: SnapshotView, name: str) -> Resolved:  # noqa: ARG002 - it never changes
        """``/static/<name>``: the style sheet, the script, the icon."""
        found = self._assets.get(name)
        if found is None:
            return Absent.because(HTTPStatus.NOT_FOUND, "There is no such file.")
        named = Resource(f"static/{name}", None, lambda: found.encoded, found.media_type, link="")
        if request.args.get("v") == found.version:
            return msgspec.structs.replace(named, cache_control=KEEP)
        return named

    def _labs(self, view: SnapshotView) -> wire.Labs:
        return self._decoded(resolution.document("labs.json", view), _LABS)

    def _mentions(self, view: SnapshotView) -> dict[str, Any]:
        document = resolution.document("mentions.json", view)
        return {"mentions": self._decoded(document, _MENTIONS)}

    def _described(self, view: SnapshotView) -> dict[str, Any]:
        """The API, from its own description."""
        document = self._decoded(self._api_docs.openapi_document(view), _DOCUMENTS)
        return {"document": document, "endpoints": list(docs.endpoints(document))}

    def _over_all(self) -> tuple[tuple[str, Callable[[SnapshotView], Resource]], ...]:
        """The rules of pages over everything, with their resolvers."""
        return (
            self._general("", "home.html", contexts.home),
            self._general("changes", "changes.html", contexts.changes, "changes.json"),
            self._general("mentions", "mentions.html", self._mentions, "mentions.json"),
            self._general(
                "labs", "labs.html", lambda view: {"labs": self._labs(view)}, "labs.json"
            ),
            self._general("methodology", "methodology.html", contexts.methodology),
            self._general("docs", "docs.html", self._described, "openapi.json"),
            self._general("llms.txt", "llms.txt", media_type=TEXT),
            self._general(ROBOTS, "robots.txt", media_type=TEXT),
            self._general(
                "sitemap.xml",
                "sitemap.xml",
                lambda view: {"places": discovery.site_map(self._labs(view), view)},
                media_type=XML,
            ),
            self._general(
                "feeds/changes.atom", "changes.atom.xml", _newest_changes, media_type=ATOM
            ),
        )

    def _general(
        self,
        path: str,
        template: str,
        context: Callable[[SnapshotView], Mapping[str, Any]] = lambda _: {},
        same: str | None = None,
        media_type: str = HTML,
    ) -> tuple[str, Callable[[SnapshotView], Resource]]:
        def resolve(view: SnapshotView) -> Resource:
            return self._page(
                view, path, template, lambda: context(view), same=same, media_type=media_type
            )

        return f"/{path}", resolve

    def _page(
        self,
        view: SnapshotView,
        path: str,
        template: str,
        context: Callable[[], Mapping[str, Any]],
        *,
        about: Resource | None = None,
        same: str | None = None,
        media_type: str = HTML,
    ) -> Resource:
        """A page of what a resource of the API is ``about``, or over everything.

        ``same`` is the path below ``/api/v1/`` of what a page over everything shows, if anything.
        """

        def make() -> EncodedBody:
            body = self._renderer.render(template, view, **context())
            found = self._responder.body(about) if about else view.snapshot
            return EncodedBody(body, found.modified)

        generation = about.generation if about else view.snapshot.generations.summary
        resource = about.path if about else same and f"api/v1/{same}"
        return Resource(path, generation, make, media_type, page_link(view, resource))

    def _decoded(self, found: Resource, shape: msgspec.json.Decoder[Shape]) -> Shape:
        """What a resource says; decoding its body costs a tenth of making it."""
        return shape.decode(self._responder.body(found).body)


def _small(view: SnapshotView, path: str, make: Callable[[], bytes], media_type: str) -> Resource:
    """A resource that no template makes, so quickly that it is not kept."""

    def encoded() -> EncodedBody:
        return EncodedBody(make(), view.snapshot.modified)

    return Resource(path, None, encoded, media_type, page_link(view))


def _newest_items(view: SnapshotView) -> list[dict[str, Any]]:
    return _items(islice(view.snapshot.summary.changes, feeds.ENTRIES), view)


def _newest_changes(view: SnapshotView) -> dict[str, Any]:
    return {
        "items": _newest_items(view),
        "updated": view.snapshot.summary.last_poll or "1970-01-01T00:00:00Z",
        "id": feeds.identity("feed", "changes"),
    }


def _items(changes: Iterable[Change], view: SnapshotView) -> list[dict[str, Any]]:
    return [feeds.item(flip, view) for flip in contexts.pick_changes(changes, view.snapshot)]
