"""Describing the service to programs and agents, with real answers of the data at hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import json, to_builtins

from store.history import HistoryError
from store.web import openapi
from store.web.routes import ROUTES

if TYPE_CHECKING:
    from store.rankings.boards import Board
    from store.snapshot import Ledger, Snapshot
    from store.web.payloads import Payloads

EXAMPLE_ROWS = 5
"""Elements of any list that an example shows at most."""


class Render(Protocol):
    """Renders a template by name."""

    def __call__(self, template: str, /, **context: Any) -> str:
        """The rendered text."""


Lines = Callable[["Ledger", Sequence[int]], list[bytes]]
"""Reads lines of history at positions of a ledger."""


class Describing:
    """Makes the OpenAPI document and the agents' README of a snapshot.

    ``payloads`` makes its resources; ``lines`` reads the line of history shown as an example.
    """

    def __init__(
        self, payloads: Callable[[Snapshot], Payloads], render: Render, lines: Lines
    ) -> None:
        self._payloads = payloads
        self._render = render
        self._lines = lines

    def openapi_document(self, snapshot: Snapshot) -> dict[str, Any]:
        """The OpenAPI document."""
        payloads = self._payloads(snapshot)
        models = (*snapshot.models, *snapshot.overview.retired)
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
        if snapshot.overview.ranked:
            answers |= self._answers_about(snapshot.overview.ranked[0], snapshot)
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
        model, ledger = board.counted[0].model, snapshot.ledgers[board.slug]
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
        with suppress(HistoryError):  # while the file cannot be read there is one example less
            lines = self._lines(ledger, ledger.newest(model, 1))
            parameters = {"slug": board.slug, "model": model, "limit": 1}
            answers["getHistory"] = (parameters, [json.decode(line) for line in lines])
        return answers


def _shortened(value: Any) -> Any:
    """A value with every list in it cut to its first elements."""
    if isinstance(value, list):
        return [_shortened(item) for item in value[:EXAMPLE_ROWS]]
    if isinstance(value, dict):
        return {key: _shortened(item) for key, item in value.items()}
    return value
