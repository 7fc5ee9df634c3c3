"""The JSON API: one function for each endpoint."""

from collections.abc import Collection
from functools import partial
from operator import attrgetter

from msgspec import Struct

from store.history import HistoryError
from store.rankings.leaderboards import Leaderboard, leader_changes
from store.web import as_of, change_shapes, lookup
from store.web import shapes as wire
from store.web.answers import QUICK
from store.web.endpoints import Endpoint, Result, endpoint, rows
from store.web.errors import Refused
from store.web.history_shapes import PollRecord
from store.web.labs_view import labs
from store.web.queries import (
    AsOf,
    Categories,
    Changes,
    History,
    OfProduct,
    Query,
    Search,
    Tabular,
    spelled,
)
from store.web.search_shapes import SearchResults
from store.web.search_view import search_results
from store.web.tables import POLL_COLUMNS, flat_poll, rows_as
from store.web.view import View

TAGS = {
    "Search": "From a topic, a need or a brand to slugs.",
    "Rankings": "What the assistants recommend now.",
    "Over time": "What they answered before, and what changed.",
    "About": "The service's experiments, and how to use it.",
}
"""Groups of operations, with what each answers."""

MOST_LEADERS = 1000
"""Changes of a leader that one answer lists."""


class Polls(Struct, frozen=True):
    """Lines of a category's history, newest first; ``cursor`` is the id to go on from, if any."""

    lines: list[bytes]
    cursor: str | None


def of_search(view: View, **_: str) -> tuple[int, str]:
    """Return the basis of what is searched for: a sentence model may come or go."""
    edition = view.meaning.edition if view.meaning else ""
    return view.snapshot.step, edition


@endpoint(
    "/api/v1/search",
    "Search",
    page=lambda view, query: view.at.search_page(query.q),
    level=QUICK,
    basis=of_search,
)
def search(view: View, query: Search) -> Result[SearchResults]:
    """Resolve a topic or a brand.

    Fuzzy match on categories and brands, best first. The way to resolve category and
    product slugs. Act on hits whose match is exact or likely; with any other, ask back.
    Where nothing is exact or likely, related holds the categories closest in meaning. Both
    arrays of hits are empty when nothing fits.
    """
    hits = view.search(query.q, query.limit, query.kind)
    return Result(search_results(query.q, hits, view), is_final=hits.is_final)


@endpoint(
    "/api/v1/categories.json",
    "Rankings",
    page=lambda view, query: view.at.topic_page(query.topic) if query.topic else view.at.page(),
    write=rows(wire.CategoryItem),
    problems=(404,),
)
def list_categories(view: View, query: Categories) -> list[wire.CategoryItem]:
    """All ranked categories.

    Every category with at least one counted answer, by title; with `topic`, one topic's.
    """
    given = spelled(query, topic=None)
    topic = lookup.topic_parameter(view, query.topic, partial(view.at.topic, **given))
    return view.category_items(topic.leaderboards if topic else None)


@endpoint("/api/v1/topics.json", "Rankings", page=lambda view, _: view.at.page("topics"))
def list_topics(view: View, query: Query) -> list[wire.TopicItem]:  # noqa: ARG001
    """Topics to browse by.

    Topics with their parts and the ranked categories in each; a category may be in several.
    """
    return view.topic_items()


@endpoint(
    "/api/v1/best/<slug>.json",
    "Rankings",
    page=lambda view, query: view.at.category_page(query.slug, query.as_of),
    problems=(404, 410),
    moves=True,
)
def get_best_in_category(view: View, query: AsOf) -> wire.CategoryVerdict:
    """The verdict of a category.

    The merged ranking of a category, how far the models agree, and what each one said.
    """
    board = lookup.board(view, query.slug, partial(view.at.category, as_of=query.as_of))
    return view.category_verdict(board_of_day(view, board, query.as_of), query.as_of)


def board_of_day(view: View, board: Leaderboard, day: str | None) -> Leaderboard:
    """Return a ranking as of a day, or as it stands.

    Raises:
        Refused: it cannot be shown as of that day.
        HistoryError: its history cannot be read just now.
    """
    if day is None:
        return board
    lookup.check_day(view, board, day)
    then = as_of.leaderboard(view.snapshot, board.slug, day, view.lines)
    if then is None:
        raise HistoryError(f"its answers up to {day} were added after that day was closed")
    return then


@endpoint(
    "/api/v1/product/<slug>.json",
    "Rankings",
    page=lambda view, query: view.at.product_page(query.slug),
    problems=(404,),
    moves=True,
)
def get_product(view: View, query: OfProduct) -> wire.ProductRecord:
    """The record of a product.

    A product and every leaderboard it appears on, with the models' reasons and with what
    they say it would take to rank higher.
    """
    return view.product_record(lookup.product(view, query.slug, view.at.product))


@endpoint(
    "/api/v1/mentions.json",
    "Over time",
    page=lambda view, _: view.at.page("mentions"),
    write=rows(wire.Mention, attrgetter("products")),
)
def get_mentions(view: View, query: Tabular) -> wire.MentionList:  # noqa: ARG001
    """The most mentioned products.

    All-time mentions across every successful poll, with a 7-day trend that compares only
    what was polled in both weeks.
    """
    return view.mention_list()


@endpoint(
    "/api/v1/changes.json",
    "Over time",
    page=lambda view, _: view.at.page("changes"),
    write=rows(change_shapes.Change, attrgetter("changes")),
    problems=(404,),
)
def get_changes(view: View, query: Changes) -> Result[change_shapes.ChangeList]:
    """Flips of a model's #1, and changes of a ranking's leader.

    The newest changes of one model's #1 in one category, newest first. A change is
    confirmed once the model's next answer agrees with it. Beside them, under `leaders`,
    are those of the merged rankings: another product came to lead by more than chance.
    """
    slugs = _slugs(view, query)
    known = [
        change
        for change in view.snapshot.summary.changes
        if query.confirmed in (None, change.confirmed)
        and (slugs is None or change.slug in slugs)
        and change.current_at[:10] >= (query.since or "")
    ]
    ranked = view.snapshot.summary.ranked
    boards = [board for board in ranked if slugs is None or board.slug in slugs]
    leaders = [
        (board, day) for board, day in leader_changes(boards) if day.date >= (query.since or "")
    ]
    start = 0
    if query.before is not None:
        places = (i for i, change in enumerate(known, 1) if change.poll == query.before)
        start = next(places, 0)
        if not start:
            raise _no_cursor("change")
    end = start + query.limit
    following = None
    if end < len(known):
        part = {"limit": str(query.limit), "before": known[end - 1].poll}
        following = view.at.changes(**spelled(query, **part))
    shown = view.change_list(known[start:end], len(known), leaders[:MOST_LEADERS])
    return Result(shown, following)


def _slugs(view: View, query: Changes) -> Collection[str] | None:
    """Return the categories that a query asks about; ``None`` if about all."""
    others = spelled(query, topic=None)
    topic = lookup.topic_parameter(
        view, query.topic, lambda slug: view.at.changes(topic=slug, **others)
    )
    slugs = {board.slug for board in topic.leaderboards} if topic else None
    if query.slug is not None:
        given = spelled(query, slug=None)
        lookup.board(view, query.slug, lambda slug: view.at.changes(slug=slug, **given))
        slugs = {query.slug} if slugs is None else slugs & {query.slug}
    return slugs


def _write_polls(polls: Polls, query: History) -> bytes:
    if query.format == "json":
        return b"[" + b",".join(polls.lines) + b"]"
    return rows_as(query.format, POLL_COLUMNS, polls.lines, flat_poll)


@endpoint(
    "/api/v1/history",
    "Over time",
    page=lambda view, query: view.at.category_page(query.slug),
    write=_write_polls,
    answer=list[PollRecord],
    problems=(404,),
    moves=True,
    level=QUICK,
)
def get_history(view: View, query: History) -> Result[Polls]:
    """The poll history of a category.

    Every poll, newest first, failed ones included. A record is the line of the history
    file as it stands. A category that is gone keeps its history.
    """
    slug, given = query.slug, spelled(query, slug=None)
    model = lookup.model_parameter(
        view, query.model, lambda name: view.at.history(slug, **{**given, "model": name})
    )
    index = view.snapshot.line_indexes.get(slug)
    if index is None:
        lookup.refuse_category(view, slug, partial(view.at.history, **given))
    before = index.position(query.before) if query.before else None
    if query.before and before is None:
        raise _no_cursor("poll of this category")
    positions = index.newest(model, query.limit + 1, before)
    shown = positions[: query.limit]
    cursor = f"{index.ids[shown[-1]]:016x}" if len(positions) > query.limit else None
    following = None
    if cursor:
        part = spelled(query, slug=None, model=model, limit=str(query.limit), before=cursor)
        following = view.at.history(slug, **part)
    return Result(Polls(view.lines(index, shown), cursor), following)


def _no_cursor(what: str) -> Refused:
    why = f"before is the id of no {what}. Take it from the end of the part before this one."
    return Refused("unknown-cursor", why)


@endpoint("/api/v1/instruments.json", "Over time", page=lambda view, _: view.at.page("methodology"))
def get_instruments(view: View, query: Query) -> wire.InstrumentList:  # noqa: ARG001
    """How the models were asked.

    Every way of asking that a poll of the history names as its instrument: prompt, form of the
    answer, web search, model and whatever else is sent. Answers to different ones are never
    compared. Polls without one are older than this record, or of sample models.
    """
    return view.instrument_list()


@endpoint("/api/v1/labs.json", "About", page=lambda view, _: view.at.page("labs"))
def get_labs(view: View, query: Query) -> wire.Labs:  # noqa: ARG001
    """The service's own experiments.

    Each with its method, its finding and the address of the full write-up.
    """
    return labs(view)


ENDPOINTS: tuple[Endpoint, ...] = (
    search, list_categories, list_topics, get_best_in_category, get_product, get_mentions,
    get_changes, get_history, get_instruments, get_labs,
)  # fmt: skip
"""The endpoints of the API but for those that describe it, see :mod:`store.web.openapi`."""
