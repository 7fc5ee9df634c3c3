"""Describing the service to programs and agents, with real answers of the data at hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import json, to_builtins

from store.web import openapi
from store.web.cache import EncodedBody
from store.web.pages.rendering import environment
from store.web.parameters import model_names
from store.web.resolution import DOCUMENTS, JSON, Resource, document, record, search, topic, verdict
from store.web.routes import MODEL, ROUTES, TOPIC

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from store.rankings.leaderboards import Leaderboard
    from store.records import Poll
    from store.snapshot import Snapshot
    from store.web.snapshot_view import SnapshotView

MARKDOWN = "text/markdown; charset=utf-8"

EXAMPLE_ROWS = 5
"""Elements of any list that an example shows at most."""


class ApiDocs:
    """Describes the service as it is; its examples are the bodies that readers get."""

    def __init__(self, body: Callable[[Resource], EncodedBody]) -> None:
        self._body = body

    def openapi_document(self, view: SnapshotView) -> Resource:
        """``/api/v1/openapi.json``: the OpenAPI document."""

        def make() -> bytes:
            site, at = view.site, view.at
            accepted = {
                MODEL.name: list(model_names(view.snapshot)),
                TOPIC.name: [topic.slug for topic in view.snapshot.catalogue.topics],
            }
            return json.encode(openapi.document(site, at.base, accepted, self._examples(view)))

        return _description("openapi.json", make, view, JSON)

    def readme(self, view: SnapshotView) -> Resource:
        """``/api/v1/README.md``: the instructions for agents."""

        def make() -> bytes:
            text = (
                environment()
                .get_template("agents.md")
                .render(
                    site=view.site,
                    at=view.at,
                    routes=ROUTES,
                    examples=self._examples(view),
                    models=view.snapshot.models,
                    snapshot=view.snapshot,
                )
            )
            return text.encode()

        return _description("README.md", make, view, MARKDOWN)

    def _examples(self, view: SnapshotView) -> dict[str, openapi.Examples]:
        """Real answers by operation id, with the parameters that bring them."""
        snapshot = view.snapshot
        examples = {
            route.operation_id: self._example({}, document(name, view))
            for route in ROUTES
            if (name := route.path.removeprefix("/api/v1/")) in DOCUMENTS
        }
        if topics := [t for t in snapshot.summary.topics if t.parts]:
            examples["listCategories"] = self._example(
                {"topic": topics[0].slug}, topic(topics[0], view)
            )
        ranked = (b for b in snapshot.summary.ranked if snapshot.leaderboards.get(b.slug) is b)
        if board := next(ranked, None):  # while the overview is behind, its first may be gone
            leader, asked = snapshot.products[board.entries[0].product], board.category.subject
            examples |= {
                "search": self._example({"q": asked}, search(asked, view)),
                "getBestInCategory": self._example({"slug": board.slug}, verdict(board, view)),
                "getProduct": self._example({"slug": leader.slug}, record(leader, view)),
            }
            if poll := _newest_poll(board, snapshot):
                parameters = {"slug": board.slug, "model": poll.model, "limit": 1}
                answer = [to_builtins(poll)]
                examples["getHistory"] = {"parameters": parameters, "answer": _shortened(answer)}
        return examples

    def _example(self, parameters: Mapping[str, Any], found: Resource) -> openapi.Examples:
        answer = json.decode(self._body(found).body)
        return {"parameters": parameters, "answer": _shortened(answer)}


def _description(
    name: str, make: Callable[[], bytes], view: SnapshotView, media_type: str
) -> Resource:
    """A resource that describes all others, so that anything new renews it."""
    return Resource(
        path=f"api/v1/{name}",
        generation=view.snapshot.generations.newest,
        make=lambda: EncodedBody(make()),
        media_type=media_type,
        link=view.link(view.at.page()),
    )


def _newest_poll(board: Leaderboard, snapshot: Snapshot) -> Poll | None:
    """The newest poll of the first model whose newest is an answer that is shown."""
    line_index, states = snapshot.line_indexes[board.slug], snapshot.aggregates[board.slug].states
    for answer in board.counted:
        poll = answer.answered.poll
        shown = line_index.withheld.keys().isdisjoint(line_index.newest(answer.model, 1))
        if shown and states[answer.model].polled_at == poll.polled_at:
            return poll
    return None


def _shortened(value: Any) -> Any:
    """A value with every list in it cut to its first elements."""
    if isinstance(value, list):
        return [_shortened(item) for item in value[:EXAMPLE_ROWS]]
    if isinstance(value, dict):
        return {key: _shortened(item) for key, item in value.items()}
    return value
