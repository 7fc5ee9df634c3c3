"""How sure a ranking is, as resources: windows and names in, what readers get out."""

from collections.abc import Mapping
from functools import cached_property

from store.rankings import certainty, sentences
from store.rankings.certainty import UNIT, PointTable
from store.rankings.leaderboards import Leaderboard
from store.rankings.names import ProductId
from store.rankings.products import ProductProfile
from store.web import shapes as wire

PLACES = 4
"""Decimals of a share: a hundredth of a percent, far below any interval's width."""


class CertaintyView:
    """One leaderboard's certainty; ``products`` are those of the snapshot."""

    def __init__(self, board: Leaderboard, products: Mapping[ProductId, ProductProfile]) -> None:
        self._board = board
        self._products = products
        self._answers = board.answers

    @cached_property
    def _table(self) -> PointTable | None:
        """The points of all products; none while they are not measured."""
        measured = self._board.certainty.level != "unmeasured"
        return PointTable(self._answers, self._board.slugs) if measured else None

    def summary(self) -> wire.Certainty:
        """The level, its sentence, and what they rest on."""
        board, found = self._board, self._board.certainty
        share = (
            certainty.first_share(self._answers, board.slugs, found.first) if self._table else None
        )
        times = [a.polled_at for window in board.windows.values() for a in window.answers]
        return wire.Certainty(
            level=found.level,
            sentence=self.sentence(share),
            answers=len(times),
            window={model: len(window.answers) for model, window in board.windows.items()},
            from_=sentences.dated(min(times)),
            to=sentences.dated(max(times)),
            leader=self._reference(found.contenders[0]) if found.contenders else None,
            contenders=[self._reference(product) for product in found.contenders],
            combinations=share.combinations if share else None,
            first_in=share.first_in if share else None,
            first_share=round(share.share, PLACES) if share else None,
            interval=_rounded(share.interval) if share else None,
        )

    def sentence(self, share: certainty.FirstShare | None = None) -> str:
        """The level in words, with the #1's first share if that is given."""
        board, found = self._board, self._board.certainty
        told = {id_: self._products[id_].name for id_ in (*board.firsts, *found.contenders)}
        return sentences.certainty(found, board.firsts, board.windows, told, share)

    def mean_score(self, product: ProductId) -> float | None:
        """A product's mean points, summed over assistants."""
        return round(self._table.mean[product] / UNIT, PLACES) if self._table else None

    def range(self, product: ProductId) -> tuple[int, int] | None:
        """The best and the worst rank that a product may have."""
        return self._board.ranges.get(product)

    def presence(self, product: ProductId) -> wire.AnswerShare:
        """How often a product is named."""
        return _share(certainty.presence(self._answers, product))

    def firsts(self, product: ProductId) -> wire.AnswerShare | None:
        """How often a product is ranked #1."""
        return _share(certainty.firsts(self._answers, product)) if self._table else None

    def _reference(self, product: ProductId) -> wire.ProductReference:
        found = self._products[product]
        return wire.ProductReference(product=found.name, slug=found.slug)


def _share(found: certainty.Share) -> wire.AnswerShare:
    return wire.AnswerShare(
        named=found.named,
        of=found.of,
        share=round(found.share, PLACES),
        interval=_rounded(found.interval),
    )


def _rounded(interval: tuple[float, float]) -> tuple[float, float]:
    low, high = interval
    return round(low, PLACES), round(high, PLACES)
