"""Preparing bodies: what the store keeps with a snapshot, so that a request only sends bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from msgspec import to_builtins

from store.history import HistoryError
from store.web import openapi
from store.web.payloads import Payloads
from store.web.routes import ROUTES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from store.rankings.boards import Board
    from store.rankings.names import ProductId
    from store.rankings.products import Named
    from store.records import Site
    from store.snapshot import Ledger, Snapshot

EXAMPLE_ROWS = 5
"""Elements of any list that an example in the OpenAPI document shows at most."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.decode


class Render(Protocol):
    """Renders a template by name."""

    def __call__(self, template: str, /, **context: Any) -> str:
        """The rendered text."""


Lines = Callable[["Ledger", Sequence[int]], list[bytes]]
"""Reads lines of history at positions of a ledger."""


class Publishing:
    """Encodes every prepared resource of one site at one base URL.

    ``lines`` reads the one line of history that is shown as an example.
    """

    def __init__(self, site: Site, base_url: str, render: Render, lines: Lines) -> None:
        self.payloads = Payloads(site, base_url)
        self._base_url = base_url
        self._render = render
        self._lines = lines

    def category(self, board: Board, products: Mapping[ProductId, Named]) -> bytes:
        """The encoded verdict of a category."""
        return _encode(self.payloads.category_verdict(board, products))

    def product(self, product: Named, boards: Mapping[str, Board]) -> bytes:
        """The encoded record of a product."""
        return _encode(self.payloads.product_record(product, boards))

    def documents(self, snapshot: Snapshot) -> dict[str, bytes]:
        """The encoded resources that are over everything, by path below ``/api/v1/``."""
        documents = {
            "categories.json": _encode(self.payloads.category_items(snapshot)),
            "changes.json": _encode(self.payloads.change_list(snapshot)),
            "mentions.json": _encode(self.payloads.mention_list(snapshot)),
            "labs.json": _encode(self.payloads.labs(snapshot)),
        }
        examples = self._examples(snapshot, documents)
        models = (*snapshot.models, *snapshot.overview.retired)
        described = openapi.document(self.payloads.site, self._base_url, models, examples)
        readme = self._render(
            "agents.md",
            site=self.payloads.site,
            at=self.payloads.at,
            routes=ROUTES,
            examples=examples,
            models=snapshot.models,
            snapshot=snapshot,
        )
        return {**documents, "openapi.json": _encode(described), "README.md": readme.encode()}

    def _examples(
        self, snapshot: Snapshot, documents: Mapping[str, bytes]
    ) -> dict[str, openapi.Examples]:
        """Real answers of the data at hand by operation id, with the parameters that bring them."""
        answers: dict[str, tuple[dict[str, Any], Any]] = {
            "listCategories": ({}, _decode(documents["categories.json"])),
            "getChanges": ({}, _decode(documents["changes.json"])),
            "getMentions": ({}, _decode(documents["mentions.json"])),
            "getLabs": ({}, _decode(documents["labs.json"])),
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
        leader = snapshot.products[board.entries[0].product]
        topic = board.category.subject
        model, ledger = board.counted[0].model, snapshot.ledgers[board.slug]
        answers: dict[str, tuple[dict[str, Any], Any]] = {
            "search": ({"q": topic}, to_builtins(self.payloads.search_results(topic, snapshot))),
            "getBestInCategory": (
                {"slug": board.slug},
                to_builtins(self.payloads.category_verdict(board, snapshot.products)),
            ),
            "getProduct": (
                {"slug": leader.slug},
                to_builtins(self.payloads.product_record(leader, snapshot.boards)),
            ),
        }
        with suppress(HistoryError):  # while the file cannot be read there is one example less
            lines = self._lines(ledger, ledger.newest(model, 1))
            parameters = {"slug": board.slug, "model": model, "limit": 1}
            answers["getHistory"] = (parameters, [_decode(line) for line in lines])
        return answers


def _shortened(value: Any) -> Any:
    """A value with every list in it cut to its first elements."""
    if isinstance(value, list):
        return [_shortened(item) for item in value[:EXAMPLE_ROWS]]
    if isinstance(value, dict):
        return {key: _shortened(item) for key, item in value.items()}
    return value
