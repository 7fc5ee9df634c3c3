"""Endpoints that describe the service to programs and agents, with real answers as examples."""

from collections.abc import Iterator
from typing import Any

from msgspec import to_builtins

from store.rankings.leaderboards import Leaderboard
from store.records import Poll
from store.snapshot import Snapshot
from store.web import api, openapi
from store.web import shapes as wire
from store.web.endpoints import Endpoint, Result, endpoint
from store.web.errors import Refused
from store.web.lookup import model_names
from store.web.queries import AsOf, Categories, Changes, OfProduct, Query, Search, Tabular, spelled
from store.web.rendering import render
from store.web.view import View

EXAMPLE_ROWS = 5
"""Elements of any list that an example shows at most."""


@endpoint("/api/v1/", "About")
def get_root(view: View, query: Query) -> wire.Root:  # noqa: ARG001
    """Where to begin.

    The service's name, its newest poll, its licence, and the addresses of all endpoints.
    """
    return wire.Root(
        name=view.site.name,
        version=openapi.VERSION,
        last_poll=view.snapshot.summary.last_poll,
        licence=view.site.licence,
        sample=view.site.sample,
        docs=view.at.page("docs"),
        mcp=view.at.page("mcp"),
        endpoints={each.name: view.at.page(each.path.removeprefix("/")) for each in ENDPOINTS},
    )


@endpoint("/api/v1/openapi.json", "About", page=lambda view, _: view.at.page())
def get_openapi(view: View, query: Query) -> dict[str, Any]:  # noqa: ARG001
    """This description.

    The OpenAPI 3.1 description of the endpoints.
    """
    values = {
        "model": list(model_names(view.snapshot)),
        "topic": [topic.slug for topic in view.snapshot.catalogue.topics],
    }
    # The root is not among them: linters take a slash at the end of a path for a mistake.
    described = tuple(each for each in ENDPOINTS if each is not get_root)
    return openapi.document(view.site, view.at.base, described, api.TAGS, examples(view), values)


@endpoint(
    "/api/v1/README.md",
    "About",
    write=lambda text, _: text.encode(),
    media_type="text/markdown; charset=utf-8",
)
def get_readme(view: View, query: Query) -> str:  # noqa: ARG001
    """Instructions for agents.

    What the data is, how to find, quote and attribute it.
    """
    described = [
        {"name": each.name, "path": each.path, "summary": each.summary,
         "description": each.description,
         "parameters": openapi.parameters(each.query, each.rule)}
        for each in ENDPOINTS
    ]  # fmt: skip
    return render("agents.md", view, endpoints=described, examples=examples(view))


def examples(view: View) -> dict[str, openapi.Examples]:
    """Return real answers by operation id, with the parameters that bring them."""
    found: dict[str, openapi.Examples] = {}
    for endpoint_, query in _asked(view):
        try:
            answer = endpoint_(view, query)
        except Refused:  # its file is bad just now
            continue
        value = answer.value if isinstance(answer, Result) else answer
        answered = _shortened(to_builtins(value))
        found[endpoint_.name] = {"parameters": spelled(query), "answer": answered}
    if (board := _board(view)) and (poll := _newest_poll(board, view.snapshot)):
        parameters = {"slug": board.slug, "model": poll.model, "limit": 1}
        found["getHistory"] = {"parameters": parameters, "answer": _shortened([to_builtins(poll)])}
    return found


def _asked(view: View) -> Iterator[tuple[Endpoint, Query]]:
    """Yield what the examples ask."""
    for each in (api.list_topics, api.get_instruments, api.get_labs):
        yield each, Query()
    yield api.get_mentions, Tabular()
    yield api.get_changes, Changes()
    topics = [topic.slug for topic in view.snapshot.summary.topics if topic.parts]
    yield api.list_categories, Categories(topic=topics[0] if topics else None)
    if board := _board(view):
        leader = view.snapshot.products[board.entries[0].product]
        yield api.search, Search(q=board.category.subject)
        yield api.get_best_in_category, AsOf(slug=board.slug)
        yield api.get_product, OfProduct(slug=leader.slug)


def _board(view: View) -> Leaderboard | None:
    return next(iter(view.snapshot.summary.ranked), None)


def _newest_poll(board: Leaderboard, snapshot: Snapshot) -> Poll | None:
    """Return the newest poll of the first model whose newest is an answer that is shown."""
    line_index, states = snapshot.line_indexes[board.slug], snapshot.aggregates[board.slug].states
    for answer in board.counted:
        poll = answer.answered.poll
        shown = line_index.withheld.keys().isdisjoint(line_index.newest(answer.model, 1))
        if shown and states[answer.model].polled_at == poll.polled_at:
            return poll
    return None


def _shortened(value: Any) -> Any:
    """Return a value with every list in it cut to its first elements."""
    if isinstance(value, list | tuple):
        return [_shortened(item) for item in value[:EXAMPLE_ROWS]]
    if isinstance(value, dict):
        return {key: _shortened(item) for key, item in value.items()}
    return value


ENDPOINTS: tuple[Endpoint, ...] = (*api.ENDPOINTS, get_root, get_openapi, get_readme)
"""Every endpoint of the API."""
