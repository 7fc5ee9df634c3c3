"""Pages, feeds and crawlers' files: one function for each address."""

from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec

from store.rankings import sentences
from store.rankings.certainty import Level
from store.rankings.experiments import track_record_sentence
from store.rankings.leaderboards import Leaderboard, leader_changes
from store.web import as_of, listings, lookup, openapi, trends, verdicts
from store.web.answers import FOR_GOOD, Body, Route, newest
from store.web.errors import CODES, ParameterError, Refused
from store.web.pages import (
    assistants,
    charts,
    comparisons,
    contexts,
    differences,
    discovery,
    docs,
    evidence,
    home,
)
from store.web.pages.routes import of_category, of_product, page, resource
from store.web.queries import (
    HITS,
    AsOf,
    Day,
    OfCategory,
    OfProduct,
    OfSlug,
    Query,
    Search,
    Tabular,
    Text,
    Words,
)
from store.web.rendering import MEDIA_TYPES, assets, version
from store.web.search import of_search, search_results
from store.web.view import View

JSON = "application/json"
TEXT = "text/plain; charset=utf-8"
SHOWN_CHANGES, SHOWN_SINCE = 40, 1000
SUGGESTED = 5, 3
"""Categories and products suggested while somebody types."""


class MaybeSearch(Query, frozen=True, kw_only=True):
    """A search, or every ranking, or those of one level."""

    q: Text | None = None
    level: Level | None = None


class FromTo(OfCategory, frozen=True, kw_only=True):
    """A category on two days."""

    from_: Day | None = msgspec.field(default=None, name="from")
    to: Day | None = None


class Since(Query, frozen=True, kw_only=True):
    """What is new since a day."""

    since: Day | None = None


class Pair(Query, frozen=True, kw_only=True):
    """Two products, or two assistants."""

    a: Words = ""
    b: Words = ""


class Asset(Query, frozen=True, kw_only=True):
    """A file of the static folder, in a version if given."""

    name: str
    v: str = ""


@page("/changes", "changes.html", same=lambda view, _: view.at.changes())
def changes(view: View, query: Since) -> dict[str, Any]:
    """Show the newest flips of a #1 by day, or those since a day."""
    summary, since = view.snapshot.summary, query.since
    later = [c for c in summary.changes if since is None or c.current_at[:10] >= since]
    most = SHOWN_CHANGES if since is None else SHOWN_SINCE
    newest = list(contexts.pick_changes(later[:most], view.snapshot))
    return {
        "leaders": [
            (board, day.date, sentences.leader_change(day.leader, view.name))
            for board, day in leader_changes(summary.ranked)[:most]
            if day.leader and day.date >= (since or "")
        ],
        "summary": summary,
        "since": since,
        "of": len(later),
        "shown": len(newest),
        "confirmed": sum(change.confirmed for change in summary.changes),
        "days": [
            (date, sorted(group, key=lambda f: (f.title.casefold(), f.change.model)))
            for date, group in groupby(newest, key=lambda f: f.change.current_at[:10])
        ],
    }


@page("/topics", "topics.html", same=lambda view, _: view.at.api("topics.json"))
def topics(view: View, query: Query) -> dict[str, Any]:  # noqa: ARG001
    """Show all topics."""
    return {}


@page("/mentions", "mentions.html", same=lambda view, _: view.at.api("mentions.json"))
def mentions(view: View, query: Query) -> dict[str, Any]:  # noqa: ARG001
    """Show the products that are named most."""
    return {"mentions": trends.get_mentions(view, Tabular())}


@page("/labs", "labs.html", same=lambda view, _: view.at.api("labs.json"))
def labs(view: View, query: Query) -> dict[str, Any]:  # noqa: ARG001
    """Show all experiments."""
    return {"labs": listings.get_labs(view, Query())}


@page("/methodology", "methodology.html")
def methodology(view: View, query: Query) -> dict[str, Any]:
    """Show how the figures are made."""
    snapshot, leaderboards = view.snapshot, view.snapshot.summary.ranked
    labels = [board.agreement.label for board in leaderboards if board.agreement]
    return {
        "levels": {level: len(boards) for level, boards in snapshot.summary.levels.items()},
        "labels": {label: labels.count(label) for label in ("unanimous", "majority", "split")},
        "tied": sum(any(entry.tied for entry in board.entries) for board in leaderboards),
        "stale": sum(answer.stale for board in leaderboards for answer in board.counted),
        "polls": sum(len(line_index.models) for line_index in snapshot.line_indexes.values()),
        "instruments": listings.get_instruments(view, query).instruments,
        "confirmed": sum(change.confirmed for change in snapshot.summary.changes),
        "record": track_record_sentence(snapshot.summary.track_record),
    }


@page("/docs", "docs.html", basis=newest, same=lambda view, _: view.at.api("openapi.json"))
def documentation(view: View, query: Query) -> dict[str, Any]:  # noqa: ARG001
    """Show the API, from its own description."""
    document = openapi.get_openapi(view, Query())
    return {
        "document": document,
        "endpoints": list(docs.endpoints(document)),
        "shapes": docs.shapes(document),
        "codes": CODES,
        "problems": docs.problems(view),
    }


@page("/llms.txt", "llms.txt", media_type=TEXT)
def llms_text(view: View, query: Query) -> dict[str, Any]:  # noqa: ARG001
    """Say to a language model what is here."""
    return {}


@page("/robots.txt", "robots.txt", media_type=TEXT, needs_history=False)
def robots(view: View, query: Query) -> dict[str, Any]:  # noqa: ARG001
    """Tell crawlers where the site map is."""
    return {}


@resource("/search/suggest", JSON, basis=newest)
def suggest(view: View, query: Search) -> bytes:
    """Return titles and paths for what is being typed."""
    snapshot = view.snapshot
    complete = snapshot.summary.index.complete
    boards = map(snapshot.leaderboards.get, complete(query.q, "categories"))
    products = map(snapshot.product, complete(query.q, "brands"))
    pair = comparisons.pair_in(query.q, view)
    suggestions = [
        *([(f"Compare {pair[0]} and {pair[1]}", pair[2])] if pair else []),
        *[(b.category.title, f"best/{b.slug}") for b in boards if b][: SUGGESTED[0]],
        *[(p.name, f"product/{p.slug}") for p in products if p][: SUGGESTED[1]],
    ]
    return msgspec.json.encode([{"title": title, "path": path} for title, path in suggestions])


def _same_search(view: View, query: MaybeSearch) -> str:
    return view.at.search(query.q) if query.q else view.at.api("categories.json")


@page("/search", "search.html", basis=of_search, same=_same_search)
def search(view: View, query: MaybeSearch) -> dict[str, Any]:
    """Show what fits a query; without one, every category, or those of one level."""
    if query.q is None:
        summary = view.snapshot.summary
        ranked = summary.levels[query.level] if query.level else summary.ranked
        ordered = sorted(ranked, key=lambda b: (b.category.subject.casefold(), b.slug))
        groups = [(letter, list(group)) for letter, group in groupby(ordered, key=_letter)]
        level = sentences.LEVELS[query.level] if query.level else None
        return {"template": "categories.html", "groups": groups, "level": level}
    if query.level is not None:
        detail = "goes with no search; leave one of both out."
        raise Refused.parameters([ParameterError(parameter="level", detail=detail)])
    hits = view.search(query.q, HITS)
    results = search_results(query.q, hits, view)
    pair = comparisons.pair_in(query.q, view)
    return {"results": results, "pair": pair, "is_final": hits.is_final}


def _letter(board: Leaderboard) -> str:
    """Return what a category stands under in the list of all."""
    first = board.category.subject[0].upper()
    return first if first.isalpha() else "0\N{EN DASH}9"


def _of_cited(view: View, slug: str) -> tuple[Any, ...]:
    """Return the basis of a category's page: also the day to cite, its age, related rankings.

    Not the newest day itself: its first poll would make every page anew, 10 s of CPU.
    """
    board = view.snapshot.leaderboards.get(slug)
    if board is None:
        return (of_category(view, slug),)
    cited = as_of.cited_day(view.snapshot, slug)
    related = [(b.slug, of_category(view, b.slug)) for b in view.snapshot.summary.related(board)]
    closed = view.snapshot.ledger.closed
    return of_category(view, slug), cited, _behind(view, board), closed, *related


def _behind(view: View, board: Leaderboard) -> str | None:
    """Return the newest day of the site, if a category's newest answer is far older."""
    newest_day = as_of.newest_day(view.snapshot, board.slug)
    is_old = as_of.is_old(board, newest_day, view.site.stale_after_days)
    return newest_day if is_old else None


@page(
    "/best/<slug>",
    "category.html",
    basis=_of_cited,
    same=lambda view, query: view.at.category(query.slug, query.as_of),
)
def category(view: View, query: AsOf) -> dict[str, Any]:
    """Show a verdict, how sure it is, and where it comes from."""
    day, slug = query.as_of, query.slug
    current = lookup.board(view, slug, partial(view.at.category_page, as_of=day))
    board = verdicts.board_of_day(view, current, day)
    verdict = verdicts.category_verdict(view, board, day)
    cited = day or as_of.cited_day(view.snapshot, slug)
    final = as_of.is_final(view.snapshot, cited)
    return {
        **contexts.category(board, verdict, evidence.days(view, slug, day), view),
        "citation": contexts.citation(verdict, cited, view, final=final),
        "behind": None if day else _behind(view, current),
    }


@page(
    "/best/<slug>/changes",
    "differences.html",
    basis=newest,
    same=lambda view, query: view.at.category(query.slug),
)
def category_changes(view: View, query: FromTo) -> dict[str, Any]:
    """Show what differs between two days of a category."""
    snapshot, slug = view.snapshot, query.slug
    days = _days(view, query)
    current = lookup.board(view, slug, partial(view.at.differences_page, **days))
    first = as_of.first_day(snapshot, slug)
    if days:
        lookup.check_first(view, current, min(days.values()))
    compared = differences.between(snapshot, slug, days.get("from"), days.get("to"), view.lines)
    last = max(current.updated, compared.end if compared else first)
    return {"board": current, "compared": compared, "first": first, "last": last}


def _days(view: View, query: FromTo) -> dict[str, str]:
    """Return the days that are compared, those given; the later one may be left out.

    Raises:
        Refused: they are not in this order.
    """
    given = {"from": query.from_, "to": query.to}
    days = {name: day for name, day in given.items() if day is not None}
    if "from" not in days:
        return days
    end = days.setdefault("to", as_of.newest_day(view.snapshot, query.slug))
    if days["from"] >= end:
        why = f"must be a day before {end}, the day to compare with."
        raise Refused.parameters([ParameterError(parameter="from", detail=why)])
    return days


@page(
    "/product/<slug>",
    "product.html",
    basis=of_product,
    same=lambda view, query: view.at.product(query.slug),
)
def product(view: View, query: OfProduct) -> dict[str, Any]:
    """Show a product on every leaderboard."""
    named = lookup.product(view, query.slug, view.at.product_page)
    record = verdicts.product_record(view, named)
    return contexts.product(named, record, evidence.mentions(view, named), view)


@page(
    "/product/<slug>/polls",
    "evidence.html",
    basis=of_product,
    same=lambda view, query: view.at.product(query.slug),
)
def product_polls(view: View, query: OfProduct) -> dict[str, Any]:
    """Show the newest polls that named a product."""
    named = lookup.product(view, query.slug, view.at.evidence_page)
    return {"product": named, "namings": evidence.product_mentions(view, named)}


@page("/labs/<slug>", "experiment.html", same=lambda view, _: view.at.api("labs.json"))
def experiment(view: View, query: OfSlug) -> dict[str, Any]:
    """Show the write-up of an experiment."""
    experiments = listings.get_labs(view, Query()).experiments
    found = next((each for each in experiments if each.slug == query.slug), None)
    if found is None:
        raise lookup.no_experiment(view, query.slug)
    written = view.snapshot.catalogue.labs.get(found.slug)
    body = written.body if written else None
    computed = () if body else view.snapshot.summary.experiments
    chart = next((e.chart for e in computed if e.slug == found.slug), None)
    shown: dict[str, Any] = {"experiment": found, "body": body, "chart": chart}
    if chart:
        rows = [(bar.value, bar.interval, bar.label) for bar in chart.bars]
        middle = (chart.low + chart.high) / 2
        shown["whiskers"] = charts.whiskers(rows, chart.low, chart.high)
        shown["ticks"] = [
            (charts.along(value, chart.low, chart.high), chart.figure(value))
            for value in (chart.low, middle, chart.high)
        ]
    return shown


@page("/topics/<slug>", "topic.html", same=lambda view, query: view.at.topic(query.slug))
def topic(view: View, query: OfSlug) -> dict[str, Any]:
    """Show the categories of a topic, part by part."""
    return {"topic": lookup.topic(view, query.slug)}


@page("/compare", "compare.html", basis=newest)
def compare(view: View, query: Pair) -> dict[str, Any]:
    """Compare two products, or two assistants; without both, show a form to choose them."""
    one, other = comparisons.side(query.a, view), comparisons.side(query.b, view)
    if one.product and other.product and one.product is not other.product:
        return comparisons.products(one.product, other.product, view)
    if one.model and other.model and one.model != other.model:
        return comparisons.models(one.model, other.model, view)
    return comparisons.choice(one, other, view)


@resource("/static/<name>", "", basis=lambda view, name: name, needs_history=False)  # noqa: ARG005
def asset(view: View, query: Asset) -> Body:  # noqa: ARG001
    """Return the style sheet, the script or the icon."""
    content = assets().get(query.name)
    if content is None:
        raise Refused("not-found", "There is no such file.")
    headers = {"Content-Type": MEDIA_TYPES[Path(query.name).suffix]}
    if query.v == version(query.name):
        headers["Cache-Control"] = FOR_GOOD
    return Body(content, headers)


ROUTES: tuple[Route, ...] = (
    home.home, changes, topics, assistants.models, mentions, labs, methodology, documentation,
    llms_text, robots, discovery.site_map, discovery.api_catalog, suggest, search, category,
    category_changes, product, product_polls, experiment, topic, assistants.model, compare, asset,
)  # fmt: skip
"""Every page but feeds, pictures, tables and the dataset."""
