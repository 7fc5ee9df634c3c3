"""What stands at an address: a resource, an address that it moved to, or nothing, and why.

The JSON API, pages, feeds, MCP tools, the documentation's examples and what is made in advance all
resolve what they show here.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from store.history import HistoryError
from store.web import as_of
from store.web import resources as wire
from store.web.addresses import category_path, product_path, topic_path
from store.web.cache import EncodedBody
from store.web.http_responses import CACHE_CONTROL
from store.web.routes import DEFAULT_HITS, MAX_CHANGES
from store.web.search_view import search_results
from store.web.snapshot_view import SnapshotView
from store.web.tables import MEDIA_TYPES, polls_as, rows_as

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from store.rankings.leaderboards import Leaderboard
    from store.rankings.products import ProductProfile
    from store.rankings.topics import RankedTopic
    from store.records import Problem
    from store.search import Kind
    from store.snapshot import Snapshot
    from store.web.as_of import Lines
    from store.web.resources import Suggestion
    from store.web.tables import Format

JSON = "application/json"
PER_REQUEST = 1
"""Compression level of what a query asked for: a third of the time of level 6, a tenth longer."""

_encode = msgspec.json.Encoder().encode


class Resource(Struct, frozen=True):
    """Something that can be shown.

    ``path`` is its address below the base URL. ``make`` gives its body, which may be kept until
    ``generation`` moves; ``None`` is never kept. ``link`` is its ``Link`` header, ``cursor`` what
    ``before`` takes for the part of a list that follows it.
    """

    path: str
    generation: int | None
    make: Callable[[], EncodedBody]
    media_type: str
    link: str
    cache_control: str = CACHE_CONTROL
    cursor: str | None = None


class Document(Struct, frozen=True):
    """What is over everything.

    ``fill`` gives what it says, ``page`` is the name of the page that shows the same (empty: the
    home page). ``rows`` gives the kind of the objects in its list, which are flat, and the objects:
    what has it can also be had as CSV and JSON Lines.
    """

    fill: Callable[[SnapshotView], object]
    page: str = ""
    rows: Callable[[Any], tuple[type[wire.JsonObject], Sequence[Any]]] | None = None


class Part(Struct, frozen=True):
    """Which part of a list is asked for: up to ``limit`` of what is older than an id."""

    limit: int
    before: str | None = None
    form: Format = "json"

    @property
    def path(self) -> str:
        """What tells this part from any other, as a query."""
        return f"limit={self.limit}&before={self.before or ''}&format={self.form}"

    def after(self, last: str) -> dict[str, str]:
        """The query of the part that follows one that ends with an id."""
        form = {} if self.form == "json" else {"format": self.form}
        return {"limit": str(self.limit), "before": last, **form}


class Moved(Struct, frozen=True):
    """What was asked for has another address."""

    address: str


class Absent(Struct, frozen=True):
    """Nothing can be shown: why, as the API, a page and an MCP tool say it.

    ``closest`` is what may have been meant by an unknown slug, ``heading`` that of the page where
    the status alone would say the wrong thing.
    """

    status: HTTPStatus
    api: str
    page: str
    tool: str
    closest: list[Suggestion] | None = None
    heading: str | None = None

    @classmethod
    def because(cls, status: HTTPStatus, why: str) -> Absent:
        """Nothing, for a reason that is told to everybody alike."""
        return cls(status, why, why, why)


Resolved = Resource | Moved | Absent


def verdict(board: Leaderboard, view: SnapshotView) -> Resource:
    """The verdict of a category."""
    return _json(
        view,
        category_path(board.slug),
        view.snapshot.generations.categories[board.slug],
        lambda: view.category_verdict(board),
        page=view.at.category_page(board.slug),
    )


def verdict_as_of(
    board: Leaderboard, day: str | None, view: SnapshotView, lines: Lines
) -> Resource | Absent:
    """The verdict of a category at the end of a day; without a day the verdict as it stands.

    Making the body raises
    :class:`~store.history.HistoryError` while a file that ``lines`` reads cannot be read.
    """
    if day is None:
        return verdict(board, view)
    snapshot, slug = view.snapshot, board.slug
    if loss := as_of.loss_after(snapshot, slug, day):
        return Absent.because(
            HTTPStatus.SERVICE_UNAVAILABLE,
            f'What "{slug}" ranked before {loss.day} cannot be shown: history was lost, which a '
            f"person accepted on that day ({loss.reason}).",
        )
    first = as_of.first_day(snapshot, slug)
    if day < first:
        return before_the_first(slug, day, first)

    def make() -> EncodedBody:
        then = as_of.leaderboard(snapshot, slug, day, lines)
        if then is None:
            raise HistoryError(f"its answers up to {day} were added after that day was closed")
        return EncodedBody(_encode(view.category_verdict(then, day)))

    return Resource(
        path=f"api/v1/{category_path(slug, day)}",
        generation=snapshot.generations.categories[slug],
        make=make,
        media_type=JSON,
        link=view.link(view.at.category_page(slug, day)),
    )


def before_the_first(slug: str, day: str, first: str) -> Absent:
    """Why a category has no ranking as of a day before its ``first`` answer's."""
    return Absent.because(
        HTTPStatus.NOT_FOUND,
        f'The category "{slug}" had no ranking on {day}: its first answer is of {first}. Ask for '
        "that day or a later one.",
    )


def record(product: ProductProfile, view: SnapshotView) -> Resource:
    """The record of a product."""
    return _json(
        view,
        product_path(product.slug),
        view.snapshot.generations.products[product.id],
        lambda: view.product_record(product),
        page=view.at.product_page(product.slug),
    )


def document(name: str, view: SnapshotView, form: Format = "json") -> Resource:
    """A resource that is over everything, by its path below ``/api/v1/``.

    Only those with ``rows`` have another form than JSON; ``make`` raises ValueError for any other.
    """
    path = name if form == "json" else f"{name}?format={form}"
    return _over_all(name, path, lambda: DOCUMENTS[name].fill(view), form, view)


def changes(part: Part, view: SnapshotView) -> Resource | Absent:
    """Changes of the models' #1 picks, newest first."""
    known, name = view.snapshot.summary.changes, "changes.json"
    places = (i for i, change in enumerate(known, start=1) if change.poll == part.before)
    start = next(places, None) if part.before else 0
    if start is None:
        return _no_cursor("change")
    end = start + part.limit
    following = view.at.changes(**part.after(known[end - 1].poll)) if end < len(known) else None
    path = name if part == ALL_CHANGES else f"{name}?{part.path}"
    return _over_all(
        name, path, lambda: view.change_list(start, part.limit), part.form, view, following
    )


def topic(found: RankedTopic, view: SnapshotView, form: Format = "json") -> Resource:
    """The categories of a topic."""

    def shape() -> list[wire.CategoryItem]:
        return view.category_items(found.leaderboards)

    path = topic_path(found.slug) + ("" if form == "json" else f"&format={form}")
    made = _over_all("categories.json", path, shape, form, view)
    return msgspec.structs.replace(made, link=view.link(view.at.topic_page(found.slug)))


def _over_all(
    name: str,
    path: str,
    shape: Callable[[], Any],
    form: Format,
    view: SnapshotView,
    following: str | None = None,
) -> Resource:
    """A document, or a part of it, in one of the forms that it has."""
    about = DOCUMENTS[name]

    def make() -> EncodedBody:
        found = shape()
        if form == "json":
            body = _encode(found)
        elif about.rows:
            body = rows_as(form, *about.rows(found))
        else:
            raise ValueError(f"{name} has no rows to write as {form}")
        return EncodedBody(body)

    return Resource(
        path=f"api/v1/{path}",
        generation=view.snapshot.generations.summary,
        make=make,
        media_type=MEDIA_TYPES[form],
        link=view.link(view.at.page(about.page), following),
    )


def search(
    query: str, view: SnapshotView, limit: int = DEFAULT_HITS, kind: Kind | None = None
) -> Resource:
    """What fits a query; the query is last in the path, so that no two searches share one."""

    def make() -> EncodedBody:
        hits = view.search(query, limit, kind)
        body = _encode(search_results(query, hits, view))
        return EncodedBody(body, PER_REQUEST, is_final=hits.is_final)

    return Resource(
        f"api/v1/search?limit={limit}&kind={kind or ''}&edition={view.edition}&q={query}",
        view.snapshot.generations.newest,
        make,
        JSON,
        view.link(view.at.search_page(query)),
    )


def _json(
    view: SnapshotView,
    path: str,
    generation: int,
    shape: Callable[[], object],
    *,
    page: str,
) -> Resource:
    """A resource of the API: the ``shape`` at a path below ``/api/v1/``, as JSON."""

    def make() -> EncodedBody:
        return EncodedBody(_encode(shape()))

    return Resource(f"api/v1/{path}", generation, make, JSON, view.link(page))


def history(
    slug: str, model: str | None, part: Part, view: SnapshotView, lines: Lines
) -> Resource | Absent | None:
    """Polls of a category, newest first, as they stand in its files, which ``lines`` reads.

    ``None`` where no history bears the slug. Making the body raises
    :class:`~store.history.HistoryError` while a file cannot be read.
    """
    snapshot = view.snapshot
    line_index = snapshot.line_indexes.get(slug)
    if line_index is None:
        return None
    before = line_index.position(part.before) if part.before else None
    if part.before and before is None:
        return _no_cursor("poll of this category")
    positions = line_index.newest(model, part.limit + 1, before)
    shown = positions[: part.limit]
    cursor = f"{line_index.ids[shown[-1]]:016x}" if len(positions) > part.limit else None

    def make() -> EncodedBody:
        found = lines(line_index, shown)
        array = b"[" + b",".join(found) + b"]"
        body = array if part.form == "json" else polls_as(part.form, found)
        return EncodedBody(body, PER_REQUEST)

    asked = {"model": model} if model else {}
    following = view.at.history(slug, **asked, **part.after(cursor)) if cursor else None
    return Resource(
        path=f"api/v1/history?slug={slug}&model={model or ''}&{part.path}",
        generation=snapshot.generations.newest,
        make=make,
        media_type=MEDIA_TYPES[part.form],
        link=view.link(view.at.category_page(slug), following),
        cursor=cursor,
    )


def _no_cursor(what: str) -> Absent:
    why = f"before is the id of no {what}. Take it from the end of the part before this one."
    return Absent.because(HTTPStatus.NOT_FOUND, why)


def no_category(slug: str, view: SnapshotView, address: Callable[[str], str]) -> Moved | Absent:
    """Where an unknown category's slug leads: to its new ``address``, or nowhere."""
    if current := view.snapshot.summary.category_redirects.get(slug):
        return Moved(address(current))
    return absent_category(slug, view)


def no_product(slug: str, view: SnapshotView, address: Callable[[str], str]) -> Moved | Absent:
    """Where an unknown product's slug leads: to its new ``address``, or nowhere."""
    current = view.snapshot.summary.product_redirects.get(slug)
    if current and not view.snapshot.catalogue.fault_of("products", slug):
        return Moved(address(current))
    return absent_product(slug, view)


def without_history(snapshot: Snapshot) -> Absent | None:
    """What to answer in place of anything that follows from history, if nothing of it is known.

    Else lists would be empty and products unknown, as if nobody had ever answered.
    """
    if snapshot.lost and not any(
        line_index.models for line_index in snapshot.line_indexes.values()
    ):
        why = f"Nothing can be shown until this is mended: {snapshot.lost[0]}"
        return Absent.because(HTTPStatus.SERVICE_UNAVAILABLE, why)
    return None


def absent_product(slug: str, view: SnapshotView) -> Absent:
    """Why there is no product; its file may be bad, or it be named in history that is lost."""
    if fault := view.snapshot.catalogue.fault_of("products", slug):
        return _faulty(slug, fault)
    if view.snapshot.lost:
        return Absent.because(
            HTTPStatus.SERVICE_UNAVAILABLE,
            f'No product with the slug "{slug}" is known, but it may be named in history that '
            f"cannot be read until this is mended: {view.snapshot.lost[0]}",
        )
    return Absent(
        HTTPStatus.NOT_FOUND,
        api=f'No product with the slug "{slug}". Resolve names through /api/v1/search?q=.',
        page=f'There is no product with the slug "{slug}".',
        tool=f'No product has the slug "{slug}".',
        closest=view.suggested_products(slug),
    )


def absent_experiment(slug: str, view: SnapshotView) -> Absent:
    """Return why there is no write-up of an experiment."""
    if fault := view.snapshot.catalogue.fault_of("labs", slug):
        return _faulty(slug, fault)
    why = f'No experiment with the slug "{slug}". /labs lists them all.'
    return Absent.because(HTTPStatus.NOT_FOUND, why)


def _faulty(slug: str, fault: Problem) -> Absent:
    why = f'"{slug}" cannot be shown until this is mended: {fault}'
    return Absent.because(HTTPStatus.SERVICE_UNAVAILABLE, why)


def absent_category(slug: str, view: SnapshotView) -> Absent:
    """Why there is no ranking of a category.

    Deleted means that history holds the slug and its file is gone (store/README.md, Damage).
    Where a file is bad or history lost, its ranking is there and cannot be shown.
    """
    snapshot = view.snapshot
    if lost := without_history(snapshot):
        return lost
    if fault := snapshot.fault_of(slug):
        return _faulty(slug, fault)
    if deleted := snapshot.gone(slug):
        answered = deleted.last_success
        last = f"its last answer is of {answered[:10]}" if answered else "it was never answered"
        return Absent.because(
            HTTPStatus.GONE,
            f'The category "{slug}" is gone: {last}. '
            f"Its polls stay at /api/v1/history?slug={slug}.",
        )
    if category := snapshot.catalogue.categories.get(slug):
        unpolled = f'The category "{slug}" has no successful poll yet.'
        return Absent(
            HTTPStatus.NOT_FOUND,
            api=unpolled,
            heading=f"{category.title}: no answer yet",
            page=f"“{category.question}” has no successful poll yet. Its ranking appears here as "
            "soon as one assistant has answered.",
            tool=f"{unpolled} get_poll_history shows the attempts; search_best finds other "
            "categories.",
        )
    return Absent(
        HTTPStatus.NOT_FOUND,
        api=f'No category with the slug "{slug}". Resolve slugs through /api/v1/search?q=.',
        page=f'There is no category with the slug "{slug}".',
        tool=f'No category has the slug "{slug}".',
        closest=view.suggested_categories(slug),
    )


DOCUMENTS = {
    "categories.json": Document(
        SnapshotView.category_items, rows=lambda items: (wire.CategoryItem, items)
    ),
    "topics.json": Document(SnapshotView.topic_items, page="topics"),
    "changes.json": Document(
        SnapshotView.change_list, page="changes", rows=lambda f: (wire.Change, f.changes)
    ),
    "mentions.json": Document(
        SnapshotView.mention_list, page="mentions", rows=lambda f: (wire.Mention, f.products)
    ),
    "labs.json": Document(SnapshotView.labs, page="labs"),
}
"""The resources that are over everything, by their path below ``/api/v1/``."""

ALL_CHANGES = Part(MAX_CHANGES)
"""The part of the changes that the document shows."""
