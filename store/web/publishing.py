"""Preparing bodies: what the store keeps with a snapshot, so that a request only sends bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from store.web import openapi
from store.web.payloads import Payloads
from store.web.routes import ROUTES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from store.rankings.boards import Board
    from store.rankings.names import ProductId
    from store.rankings.products import Named
    from store.records import Site
    from store.snapshot import Snapshot

EXAMPLE_ROWS = 2
"""Elements of a long list that an example in the OpenAPI document shows."""

_encode = msgspec.json.Encoder().encode


class Render(Protocol):
    """Renders a template by name."""

    def __call__(self, template: str, /, **context: Any) -> str:
        """The rendered text."""


class Publishing:
    """Encodes every prepared resource of one site at one base URL."""

    def __init__(self, site: Site, base_url: str, render: Render) -> None:
        self.payloads = Payloads(site, base_url)
        self._base_url = base_url
        self._render = render

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
        """Real answers of the data at hand, long lists shortened to their first elements."""
        overview = snapshot.overview
        examples: dict[str, openapi.Examples] = {
            "listCategories": {"answer": _decoded(documents["categories.json"])[:EXAMPLE_ROWS]},
            "getChanges": {"answer": _shortened(documents["changes.json"], "changes")},
            "getMentions": {"answer": _shortened(documents["mentions.json"], "products")},
            "getLabs": {"answer": _shortened(documents["labs.json"], "experiments")},
        }
        if not overview.ranked:
            return examples
        board = overview.ranked[0]
        leader = snapshot.products[board.entries[0].product]
        topic = board.category.subject
        results = self.payloads.search_results(topic, snapshot)
        return examples | {
            "getBestInCategory": {
                "parameters": {"slug": board.slug},
                "answer": msgspec.to_builtins(
                    self.payloads.category_verdict(board, snapshot.products)
                ),
            },
            "getProduct": {
                "parameters": {"slug": leader.slug},
                "answer": msgspec.to_builtins(
                    self.payloads.product_record(leader, snapshot.boards)
                ),
            },
            "search": {"parameters": {"q": topic}, "answer": msgspec.to_builtins(results)},
            "getHistory": {
                "parameters": {
                    "slug": board.slug,
                    "model": board.counted[0].model,
                    "limit": 1,
                },
                "answer": [msgspec.to_builtins(board.counted[0].answered.poll)],
            },
        }


def _decoded(body: bytes) -> Any:
    return msgspec.json.decode(body)


def _shortened(body: bytes, key: str) -> dict[str, Any]:
    document: dict[str, Any] = _decoded(body)
    return {**document, key: document[key][:EXAMPLE_ROWS]}
