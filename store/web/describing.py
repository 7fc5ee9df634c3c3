"""Describing the service to programs and agents, with real answers of the data at hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from msgspec import json, to_builtins

from store.web import openapi
from store.web.parameters import model_names
from store.web.routes import ROUTES

if TYPE_CHECKING:
    from collections.abc import Callable

    from store.rankings.boards import Board
    from store.records import Poll
    from store.snapshot import Snapshot
    from store.web.payloads import Payloads

EXAMPLE_ROWS = 5
"""Elements of any list that an example shows at most."""


class Render(Protocol):
    """Renders a template by name."""

    def __call__(self, template: str, /, **context: Any) -> str:
        """The rendered text."""


class Describing:
    """Makes the OpenAPI document and the agents' README of a snapshot.

    ``payloads`` makes its resources.
    """

    def __init__(self, payloads: Callable[[Snapshot], Payloads], render: Render) -> None:
        self._payloads = payloads
        self._render = render

    def openapi_document(self, snapshot: Snapshot) -> dict[str, Any]:
        """The OpenAPI document."""
        payloads = self._payloads(snapshot)
        models = list(model_names(snapshot))
        examples = self._examples(snapshot)
        return openapi.document(payloads.site, payloads.at.base, models, examples)

    def readme(self, snapshot: Snapshot) -> str:
        """The README for agents, in Markdown."""
        payloads = self._payloads(snapshot)
        return self._render(
            "agents.md",
            site=payloads.site,
            at=payloads.at,
            routes=ROUTES,
            examples=self._examples(snapshot),
            models=snapshot.models,
            snapshot=snapshot,
        )

    def _examples(self, snapshot: Snapshot) -> dict[str, openapi.Examples]:
        """Real answers by operation id, with the parameters that bring them."""
        answers: dict[str, tuple[dict[str, Any], Any]] = {
            operation: ({}, json.decode(snapshot.documents[name].body))
            for operation, name in (
                ("listCategories", "categories.json"),
                ("getChanges", "changes.json"),
                ("getMentions", "mentions.json"),
                ("getLabs", "labs.json"),
            )
        }
        ranked = (b for b in snapshot.overview.ranked if snapshot.boards.get(b.slug) is b)
        if board := next(ranked, None):  # while the overview is behind, its first may be gone
            answers |= self._answers_about(board, snapshot)
        return {
            operation: {"parameters": parameters, "answer": _shortened(answer)}
            for operation, (parameters, answer) in answers.items()
        }

    def _answers_about(
        self, board: Board, snapshot: Snapshot
    ) -> dict[str, tuple[dict[str, Any], Any]]:
        """Answers that need a parameter, about one category and the product that leads it."""
        payloads = self._payloads(snapshot)
        leader = snapshot.products[board.entries[0].product]
        topic = board.category.subject
        answers: dict[str, tuple[dict[str, Any], Any]] = {
            "search": ({"q": topic}, to_builtins(payloads.search_results(topic, snapshot))),
            "getBestInCategory": (
                {"slug": board.slug},
                to_builtins(payloads.category_verdict(board, snapshot.products)),
            ),
            "getProduct": (
                {"slug": leader.slug},
                to_builtins(payloads.product_record(leader, snapshot.boards)),
            ),
        }
        if poll := _newest_poll(board, snapshot):
            parameters = {"slug": board.slug, "model": poll.model, "limit": 1}
            answers["getHistory"] = (parameters, [json.decode(json.encode(poll))])
        return answers


def _newest_poll(board: Board, snapshot: Snapshot) -> Poll | None:
    """The newest poll of the first model whose newest is an answer that is shown."""
    ledger, states = snapshot.ledgers[board.slug], snapshot.readings[board.slug].states
    for answer in board.counted:
        poll = answer.answered.poll
        shown = ledger.withheld.keys().isdisjoint(ledger.newest(answer.model, 1))
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
