"""Encoding bodies: what a snapshot keeps once it is made, so that a request only sends bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from store.rankings.boards import Board
    from store.rankings.names import ProductId
    from store.rankings.products import Named
    from store.snapshot import Snapshot
    from store.web.payloads import Payloads

_encode = msgspec.json.Encoder().encode


class Publishing:
    """Encodes every resource that does not depend on a query."""

    def __init__(self, payloads: Payloads) -> None:
        self._payloads = payloads

    def category(self, board: Board, products: Mapping[ProductId, Named]) -> bytes:
        """The encoded verdict of a category."""
        return _encode(self._payloads.category_verdict(board, products))

    def product(self, product: Named, boards: Mapping[str, Board]) -> bytes:
        """The encoded record of a product."""
        return _encode(self._payloads.product_record(product, boards))

    def documents(self, snapshot: Snapshot) -> dict[str, bytes]:
        """The encoded resources that are over everything, by path below ``/api/v1/``."""
        return {
            "categories.json": _encode(self._payloads.category_items(snapshot)),
            "changes.json": _encode(self._payloads.change_list(snapshot)),
            "mentions.json": _encode(self._payloads.mention_list(snapshot)),
            "labs.json": _encode(self._payloads.labs(snapshot)),
        }
