"""The pages of lists, searches, findings and the method; the routes of all pages."""

from itertools import groupby
from typing import Any

import msgspec

from store.rankings import sentences
from store.rankings.certainty import Level
from store.rankings.experiments import track_record_sentence
from store.rankings.leaderboards import Leaderboard, leader_changes
from store.search import SURE
from store.web import listings, lookup, trends
from store.web.errors import ParameterError, Refused
from store.web.pages import category, comparisons, discovery, home, products
from store.web.pages.routes import from_snapshot, page, resource
from store.web.queries import DEFAULT_HITS, Day, MentionsQuery, Query, SearchQuery, SlugQuery, Text
from store.web.responses import Route
from store.web.search import search_basis, search_results
from store.web.view import View

JSON = "application/json"
SHOWN_CHANGES, SHOWN_SINCE = 40, 1000
"""Changes that a page lists: the newest, or those since a day."""
SHOWN_CONFIRMED = 10
"""Confirmed changes that are listed before all."""
SUGGESTED = 5, 3
"""Categories and products suggested while somebody types."""


class SearchPageQuery(Query, frozen=True, kw_only=True):
    """A search, or every ranking, or those of one level."""

    q: Text | None = None
    level: Level | None = None


class ChangesPageQuery(Query, frozen=True, kw_only=True):
    """The changes since a day."""

    since: Day | None = None


@page("/changes", "changes.html", alternate=lambda view, _: view.at.api("changes.json"))
def changes(view: View, query: ChangesPageQuery) -> dict[str, Any]:
    """Show the newest changes of a #1 by day, or those since a day."""
    summary, since = view.snapshot.summary, query.since
    later = [c for c in summary.changes if since is None or c.current_at[:10] >= since]
    most = SHOWN_CHANGES if since is None else SHOWN_SINCE
    newest = later[:most]
    from_day = since or trends.last_interval_start(view)
    return {
        "from_day": from_day,
        "firsts": trends.first_place_changes(view, summary.ranked, from_day),
        "are_ranked_before": trends.are_ranked_before(summary.ranked, from_day),
        "leaders": [
            (board, change.date, sentences.leader_change(change, view.name))
            for board, change in leader_changes(summary.ranked)[:most]
            if change.date >= (since or "")
        ],
        "summary": summary,
        "since": since,
        "of": len(later),
        "shown": len(newest),
        "confirmed": sum(change.confirmed for change in summary.changes),
        "held": [] if since else [change for change in later if change.confirmed][:SHOWN_CONFIRMED],
        "days": [
            (date, list(group))
            for date, group in groupby(newest, key=lambda change: change.current_at[:10])
        ],
    }


@page("/mentions", "mentions.html", alternate=lambda view, _: view.at.api("mentions.json"))
def mentions(view: View, query: Query) -> dict[str, Any]:  # noqa: ARG001
    """Show the products that are named most."""
    return {"mentions": trends.get_mentions(view, MentionsQuery())}


@page("/labs", "labs.html", alternate=lambda view, _: view.at.api("labs.json"))
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
        "polls": sum(len(index.models) for index in snapshot.poll_indexes.values()),
        "withheld": sum(len(index.withheld) for index in snapshot.poll_indexes.values()),
        "instruments": listings.get_instruments(view, query).instruments,
        "confirmed": sum(change.confirmed for change in snapshot.summary.changes),
        "record": track_record_sentence(snapshot.summary.track_record),
    }


@resource("/search/suggest", JSON)
def suggest(view: View, query: SearchQuery) -> bytes:
    """Return titles and paths for what is being typed."""
    snapshot = view.snapshot
    complete = snapshot.summary.index.complete
    boards = map(snapshot.leaderboards.get, complete(query.q, "categories"))
    products = map(snapshot.product, complete(query.q, "brands"))
    suggestions = [
        *[(b.category.title, f"best/{b.slug}") for b in boards if b][: SUGGESTED[0]],
        *[(p.name, f"product/{p.slug}") for p in products if p][: SUGGESTED[1]],
    ]
    return msgspec.json.encode([{"title": title, "path": path} for title, path in suggestions])


def _json_of_search(view: View, query: SearchPageQuery) -> str:
    return view.at.api("search", q=query.q) if query.q else view.at.api("categories.json")


@page("/search", "search.html", basis=search_basis, alternate=_json_of_search)
def search(view: View, query: SearchPageQuery) -> dict[str, Any]:
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
    hits = view.search(query.q, DEFAULT_HITS)
    results = search_results(query.q, hits, view)
    pair = lookup.compared_products(query.q, view)
    is_sure = any(hit.match in SURE for hit in (*hits.categories, *hits.brands))
    is_exact = any(hit.match == "exact" for hit in results.categories)
    unknown = [] if pair or is_exact else lookup.unknown_names(query.q, view)
    return {
        "results": results,
        "pair": pair,
        "unknown": unknown,
        "is_sure": is_sure,
        "news": lookup.news_in(query.q, view) is not None,
        "may_be_kept": hits.is_final,
    }


def _letter(board: Leaderboard) -> str:
    """Return the heading of a category in the list of all."""
    first = board.category.subject[0].upper()
    return first if first.isalpha() else "0\N{EN DASH}9"


@page("/labs/<slug>", "experiment.html", alternate=lambda view, _: view.at.api("labs.json"))
def experiment(view: View, query: SlugQuery) -> dict[str, Any]:
    """Show the write-up of an experiment, one of the history with its figures."""
    by_slug = {own.slug: own for own in listings.get_labs(view, Query()).experiments}
    if query.slug not in by_slug:
        raise lookup.no_experiment(view, query.slug)
    written = view.snapshot.catalogue.labs.get(query.slug)
    computed = () if written else view.snapshot.summary.experiments
    chart = next((own for own in computed if own.slug == query.slug), None)
    body = written.body if written else None
    return {"experiment": by_slug[query.slug], "body": body, "chart": chart}


@page("/topics/<slug>", "topic.html", alternate=lambda view, query: view.at.topic(query.slug))
def topic(view: View, query: SlugQuery) -> dict[str, Any]:
    """Show the categories of a topic, part by part."""
    return {"topic": lookup.topic(view, query.slug)}


topics = from_snapshot(
    "/topics", "topics.html", alternate=lambda view, _: view.at.api("topics.json")
)
assistants = from_snapshot("/models", "models.html")

ROUTES: tuple[Route, ...] = (
    home.home, category.category, *products.ROUTES, comparisons.compare, changes, topics, topic,
    assistants, mentions, labs, experiment, methodology, suggest, search, *discovery.ROUTES,
)  # fmt: skip
"""Every page but feeds, pictures and the dataset."""
