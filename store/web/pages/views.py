"""The resolvers of pages and feeds: each finds its part of the snapshot and how to show it."""

from __future__ import annotations

from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import msgspec
from flask import Blueprint, request

from store.rankings.names import slug as slug_of
from store.web import as_of, resolution
from store.web import resources as wire
from store.web.addresses import compare_path, topic_path
from store.web.cache import EncodedBody
from store.web.http_responses import FOR_GOOD
from store.web.pages import (
    assistants,
    citations,
    comparisons,
    contexts,
    data,
    differences,
    discovery,
    docs,
    feeds,
)
from store.web.pages.chart_data import ChartData
from store.web.pages.drawing import VERDICTS, Drawing
from store.web.pages.evidence import Evidence
from store.web.pages.making import PageMaker, small
from store.web.pages.rendering import HTML, MEDIA_TYPES, PageRenderer, page_link, version
from store.web.parameters import Parameters, alone, asked_day, asked_days, checked_slug
from store.web.resolution import JSON, Absent, Moved, Resolved, Resource
from store.web.search_view import search_results

if TYPE_CHECKING:
    from collections.abc import Callable

    from store.web.api_docs import ApiDocs
    from store.web.responding import Responder
    from store.web.snapshot_view import SnapshotView

ATOM = "application/atom+xml; charset=utf-8"
JSON_FEED = "application/feed+json"
LINK_SET = 'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"'
XML = "application/xml; charset=utf-8"
TEXT = "text/plain; charset=utf-8"

API_CATALOG, ROBOTS = ".well-known/api-catalog", "robots.txt"
WITHOUT_HISTORY = (f"/{API_CATALOG}", f"/{ROBOTS}", "/static/<name>")
"""Rules of what says nothing that follows from history."""

_RECORDS = msgspec.json.Decoder(wire.ProductRecord)
_LABS = msgspec.json.Decoder(wire.Labs)
_MENTIONS = msgspec.json.Decoder(wire.MentionList)
_DOCUMENTS = msgspec.json.Decoder(dict[str, Any])
SUGGESTED = 5, 3
"""Categories and products suggested while somebody types."""


class Pages(PageMaker):
    """Every page, feed and crawler's file."""

    def __init__(self, responder: Responder, renderer: PageRenderer, api_docs: ApiDocs) -> None:
        super().__init__(responder, renderer)
        self._api_docs = api_docs
        self._data = data.DataFiles(responder.store.directory)

    def blueprint(self) -> Blueprint:
        """Every rule with its resolver; what does not follow from history needs none."""
        blueprint = Blueprint("pages", __name__)
        resolvers: tuple[tuple[str, Callable[..., Resolved]], ...] = (
            *self._over_all(),
            *Drawing(self.responder, self.renderer).rules(),
            *ChartData(self.responder, self.renderer).rules(),
            ("/search", self.search),
            small("search/suggest", _suggestions, JSON),
            ("/best/<slug>", self.category),
            ("/best/<slug>/changes", self.differences),
            ("/product/<slug>", self.product),
            ("/product/<slug>/polls", self.polls),
            ("/labs/<slug>", self.experiment),
            ("/topics/<slug>", self.topic),
            ("/models/<slug>", self.model),
            ("/compare", self.compare),
            ("/data", self.data),
            small(API_CATALOG, discovery.api_catalog, LINK_SET),
            small("feeds/changes.json", feeds.json_feed, JSON_FEED),
            ("/feeds/best/<slug>.atom", self.category_atom),
            ("/feeds/product/<slug>.atom", self.product_atom),
            ("/feeds/topics/<slug>.atom", self.topic_atom),
            ("/static/<name>", self.asset),
        )
        for rule, resolve in resolvers:
            name, needs_history = rule.replace(".", "_"), rule not in WITHOUT_HISTORY
            self.responder.add(blueprint, rule, name, resolve, needs_history=needs_history)
        blueprint.add_url_rule("/data/<path:name>", "data_file", self._data.send)
        return blueprint

    def search(self, view: SnapshotView) -> Resolved:
        """``/search``: what fits ``q``; without it, every category."""
        if not request.args.get("q", "").strip():
            shown = partial(contexts.categories, view)
            return self.page(view, "search", "categories.html", shown, same="categories.json")
        query = alone(request.args, Parameters.query)

        def make() -> EncodedBody:
            hits = view.search(query)
            results, pair = search_results(query, hits, view), comparisons.asked_in(query, view)
            body = self.renderer.render("search.html", view, results=results, pair=pair)
            return EncodedBody(body, is_final=hits.is_final)

        path = f"search?edition={view.edition}&q={query}"
        link = page_link(view, f"api/v1/search?{urlencode({'q': query})}")
        return Resource(path, view.snapshot.generations.summary, make, HTML, link)

    def category(self, view: SnapshotView, slug: str) -> Resolved:
        """``/best/<slug>``: the verdict, how sure it is, and where it comes from."""
        snapshot, store = view.snapshot, self.responder.store
        day = asked_day(request.args) if request.query_string else None
        current = snapshot.leaderboards.get(slug)
        if current is None:
            address = partial(view.at.category_page, as_of=day)
            return resolution.no_category(checked_slug(slug), view, address)
        found = resolution.verdict_as_of(current, day, view, store.lines)
        if isinstance(found, Absent):
            return found
        newest = as_of.newest_day(snapshot, slug)
        cited = day or as_of.cited_day(snapshot, slug)
        final = as_of.is_final(snapshot, cited)
        is_old = not day and as_of.is_old(current, newest, view.site.stale_after_days)
        behind = newest if is_old else None

        def context() -> dict[str, Any]:
            verdict = self.decoded(found, VERDICTS)
            board = (day and as_of.leaderboard(snapshot, slug, day, store.lines)) or current
            days = Evidence(store, snapshot).days(slug, day)
            return {
                **contexts.category(board, verdict, days, view),
                "citation": citations.citation(verdict, cited, view, final=final),
                "behind": behind,
            }

        # Not by the newest day itself: its first poll would make every page anew, 10 s of CPU.
        path = f"best/{slug}?asOf={day or ''}&cited={cited}&behind={behind or ''}"
        return self.page(view, path, "category.html", context, about=found)

    def differences(self, view: SnapshotView, slug: str) -> Resolved:
        """``/best/<slug>/changes``: what differs between two days of a category."""
        snapshot, store = view.snapshot, self.responder.store
        days = asked_days(request.args, slug, snapshot)
        current = snapshot.leaderboards.get(slug)
        if current is None:
            address = partial(view.at.differences_page, **days)
            return resolution.no_category(checked_slug(slug), view, address)
        first = as_of.first_day(snapshot, slug)
        early = min(days.values(), default=first)
        if early < first:
            return resolution.before_the_first(slug, early, first)

        def context() -> dict[str, Any]:
            start, end = days.get("from"), days.get("to")
            compared = differences.between(snapshot, slug, start, end, store.lines)
            last = max(current.updated, compared.end if compared else first)
            return {"board": current, "compared": compared, "first": first, "last": last}

        path = f"best/{slug}/changes?{urlencode(days)}"
        about = resolution.verdict(current, view)
        return self.page(view, path, "differences.html", context, about=about)

    def product(self, view: SnapshotView, slug: str) -> Resolved:
        """``/product/<slug>``: a product on every leaderboard."""
        product = view.snapshot.product(slug)
        if product is None:
            return resolution.no_product(checked_slug(slug), view, view.at.product_page)
        found = resolution.record(product, view)

        def context() -> dict[str, Any]:
            record = self.decoded(found, _RECORDS)
            mentions = Evidence(self.responder.store, view.snapshot).mentions(product)
            return contexts.product(product, record, mentions, view)

        return self.page(view, f"product/{slug}", "product.html", context, about=found)

    def polls(self, view: SnapshotView, slug: str) -> Resolved:
        """``/product/<slug>/polls``: the newest polls that named a product."""
        product = view.snapshot.product(slug)
        if product is None:
            return resolution.no_product(checked_slug(slug), view, view.at.evidence_page)
        evidence = Evidence(self.responder.store, view.snapshot)

        def context() -> dict[str, Any]:
            return {"product": product, "namings": evidence.product_mentions(product)}

        found = resolution.record(product, view)
        return self.page(view, f"product/{slug}/polls", "evidence.html", context, about=found)

    def experiment(self, view: SnapshotView, slug: str) -> Resolved:
        """``/labs/<slug>``: the write-up of an experiment."""
        experiments = self._labs(view).experiments
        found = next((e for e in experiments if e.slug == checked_slug(slug)), None)
        if found is None:
            return resolution.absent_experiment(slug, view)
        shown = partial(contexts.experiment, found, view)
        return self.page(view, f"labs/{slug}", "experiment.html", shown, same="labs.json")

    def topic(self, view: SnapshotView, slug: str) -> Resolved:
        """``/topics/<slug>``: the categories of a topic, part by part."""
        found = view.snapshot.summary.topic(checked_slug(slug))
        if found is None:
            return _no_topic(slug)
        shown = partial(contexts.topic, found, view.snapshot)
        return self.page(view, f"topics/{slug}", "topic.html", shown, same=topic_path(slug))

    def model(self, view: SnapshotView, slug: str) -> Resolved:
        """``/models/<slug>``: what an assistant recommends, how steadily, how often it fails."""
        model = view.snapshot.summary.model_slugs.get(checked_slug(slug))
        if model is None:
            return _no_model(slug, view)
        shown = partial(assistants.assistant, model, slug, view)
        return self.page(view, f"models/{slug}", "model.html", shown)

    def compare(self, view: SnapshotView) -> Resolved:
        """``/compare``: two products, or two assistants; without both, a form to choose them."""
        asked = alone(request.args, lambda given: (given.name("a"), given.name("b")))
        one, other = (comparisons.side(each, view) for each in asked)
        if one.product and other.product and one.product is not other.product:
            shown = partial(comparisons.products, one.product, other.product, view)
        elif one.model and other.model and one.model != other.model:
            shown = partial(comparisons.models, one.model, other.model, view)
        else:
            shown = partial(comparisons.choice, one, other, view)
        page = self.page(view, compare_path(*asked), "compare.html", shown)
        return msgspec.structs.replace(page, generation=view.snapshot.generations.newest)

    def data(self, view: SnapshotView) -> Resource:
        """``/data``: the dataset, how to load it, and the proof over it."""
        known = self._data.published()
        shown = partial(data.context, known, view)
        return self.page(view, f"data?{known.signatures}", "data.html", shown)

    def changes(self, view: SnapshotView) -> Resource:
        """``/changes``: the newest flips of a #1, or those ``since`` a day."""
        since = alone(request.args, lambda given: given.day("since"))
        path = f"changes?since={since}" if since else "changes"
        shown = partial(contexts.changes, view, since)
        return self.page(view, path, "changes.html", shown, same="changes.json")

    def category_atom(self, view: SnapshotView, slug: str) -> Resolved:
        """``/feeds/best/<slug>.atom``: the changes of one category."""
        board = view.snapshot.leaderboards.get(slug)
        if board is None:
            return resolution.no_category(checked_slug(slug), view, partial(view.at.feed, "best"))
        path, shown = f"feeds/best/{slug}.atom", partial(feeds.of_category, board, view)
        about = resolution.verdict(board, view)
        return self.page(view, path, "feed.atom.xml", shown, about=about, media_type=ATOM)

    def product_atom(self, view: SnapshotView, slug: str) -> Resolved:
        """``/feeds/product/<slug>.atom``: the #1s that a product won and lost."""
        product = view.snapshot.product(slug)
        if product is None:
            return resolution.no_product(checked_slug(slug), view, partial(view.at.feed, "product"))
        path, shown = f"feeds/product/{slug}.atom", partial(feeds.of_product, product, view)
        about = resolution.record(product, view)
        return self.page(view, path, "feed.atom.xml", shown, about=about, media_type=ATOM)

    def topic_atom(self, view: SnapshotView, slug: str) -> Resolved:
        """``/feeds/topics/<slug>.atom``: the changes of a topic's categories."""
        topic = view.snapshot.summary.topic(checked_slug(slug))
        if topic is None:
            return _no_topic(slug)
        path, shown = f"feeds/topics/{slug}.atom", partial(feeds.of_topic, topic, view)
        return self.page(view, path, "feed.atom.xml", shown, media_type=ATOM)

    def asset(self, view: SnapshotView, name: str) -> Resolved:  # noqa: ARG002 - it never changes
        """``/static/<name>``: the style sheet, the script, the icon."""
        found = self.renderer.assets.get(name)
        if found is None:
            return Absent.because(HTTPStatus.NOT_FOUND, "There is no such file.")
        media_type = MEDIA_TYPES[Path(name).suffix]
        named = Resource(f"static/{name}", None, lambda: found, media_type, link="")
        if request.args.get("v") == version(found):
            return msgspec.structs.replace(named, cache_control=FOR_GOOD)
        return named

    def _labs(self, view: SnapshotView) -> wire.Labs:
        return self.decoded(resolution.document("labs.json", view), _LABS)

    def _mentions(self, view: SnapshotView) -> dict[str, Any]:
        document = resolution.document("mentions.json", view)
        return {"mentions": self.decoded(document, _MENTIONS)}

    def _described(self, view: SnapshotView) -> dict[str, Any]:
        """The API, from its own description."""
        document = self.decoded(self._api_docs.openapi_document(view), _DOCUMENTS)
        return {"document": document, "endpoints": list(docs.endpoints(document))}

    def _over_all(self) -> tuple[tuple[str, Callable[[SnapshotView], Resource]], ...]:
        """The rules of pages over everything, with their resolvers."""
        return (
            self.general("", "home.html", contexts.home),
            ("/changes", self.changes),
            self.general("topics", "topics.html", same="topics.json"),
            self.general("models", "models.html", assistants.overview),
            self.general("mentions", "mentions.html", self._mentions, "mentions.json"),
            self.general("labs", "labs.html", lambda view: {"labs": self._labs(view)}, "labs.json"),
            self.general("methodology", "methodology.html", contexts.methodology),
            self.general("docs", "docs.html", self._described, "openapi.json"),
            self.general("llms.txt", "llms.txt", media_type=TEXT),
            self.general(ROBOTS, "robots.txt", media_type=TEXT),
            self.general(
                "sitemap.xml",
                "sitemap.xml",
                lambda view: {"places": discovery.site_map(self._labs(view), view)},
                media_type=XML,
            ),
            self.general("feeds/changes.atom", "feed.atom.xml", feeds.of_all, media_type=ATOM),
        )


def _suggestions(view: SnapshotView) -> bytes:
    """``/search/suggest``: titles and paths for what is being typed."""
    snapshot, query = view.snapshot, alone(request.args, Parameters.query)
    hits = snapshot.summary.index.complete(query)
    leaderboards = (snapshot.leaderboards.get(hit.slug) for hit in hits.categories)
    products = (snapshot.product(hit.slug) for hit in hits.brands)
    pair = comparisons.asked_in(query, view)
    found = [
        *([(f"Compare {pair[0]} and {pair[1]}", pair[2])] if pair else []),
        *[(b.category.title, f"best/{b.slug}") for b in leaderboards if b][: SUGGESTED[0]],
        *[(p.name, f"product/{p.slug}") for p in products if p][: SUGGESTED[1]],
    ]
    return msgspec.json.encode([{"title": title, "path": path} for title, path in found])


def _no_topic(slug: str) -> Absent:
    """That there is no such topic."""
    why = f'There is no topic with the slug "{slug}". /topics lists them all.'
    return Absent.because(HTTPStatus.NOT_FOUND, why)


def _no_model(slug: str, view: SnapshotView) -> Absent | Moved:
    """Where a slug leads that no configured assistant has: to its new one, or nowhere."""
    for former, model in view.snapshot.catalogue.former_names.items():
        if slug_of(former) == slug:
            slugs = {name: own for own, name in view.snapshot.summary.model_slugs.items()}
            return Moved(view.at.model_page(slugs[model]))
    retired = next((m for m in view.snapshot.summary.retired if slug_of(m) == slug), None)
    if retired:
        why = f"{retired} is not asked any more: its polls stay in the history, and count nowhere."
        return Absent.because(HTTPStatus.GONE, why)
    why = f'There is no assistant with the slug "{slug}". /models lists them all.'
    return Absent.because(HTTPStatus.NOT_FOUND, why)
