"""How sure a ranking is, as resources: runs and names in, what readers get out."""

from collections.abc import Mapping
from functools import cached_property

from store.rankings import certainty, sentences
from store.rankings.certainty import Comparison
from store.rankings.leaderboards import Leaderboard
from store.rankings.merging import Places
from store.rankings.names import ProductId
from store.rankings.products import ProductProfile
from store.rankings.runs import Run
from store.web import shapes as wire

PLACES = 4
"""Decimals of a share: a hundredth of a percent, far below any interval's width."""


class CertaintyView:
    """One leaderboard's certainty; ``products`` are those of the snapshot."""

    def __init__(self, board: Leaderboard, products: Mapping[ProductId, ProductProfile]) -> None:
        self._board = board
        self._products = products

    @cached_property
    def _runs(self) -> list[Run]:
        return list(self._board.runs().values())

    @cached_property
    def _comparison(self) -> Comparison | None:
        """The points of all products; none while they are not measured."""
        comparison = Comparison(self._runs, self._board.slugs)
        return comparison if comparison.is_measured else None

    @cached_property
    def _windows(self) -> list[list[Places]]:
        return [[answer.places for answer in run.window] for run in self._runs]

    def summary(self) -> wire.Certainty:
        """The level, its sentence, and what they rest on."""
        sure = self._board.certainty
        return wire.Certainty(
            level=sure.level,
            sentence=sentences.certainty(self._board, lambda id_: self._products[id_].name),
            answers=sure.answers,
            runs=dict(sure.runs),
            from_=sure.since,
            to=sure.until,
            leader=self._reference(sure.leader) if sure.leader else None,
            contenders=[self._reference(product) for product in sure.contenders],
        )

    def mean_score(self, product: ProductId) -> float | None:
        """A product's mean points, summed over assistants."""
        return round(self._comparison.mean_points(product), PLACES) if self._comparison else None

    def presence(self, product: ProductId) -> wire.AnswerShare:
        """How often a product is named."""
        return _share(certainty.presence(self._windows, product))

    def firsts(self, product: ProductId) -> wire.AnswerShare | None:
        """How often a product is ranked #1."""
        return _share(certainty.firsts(self._windows, product)) if self._comparison else None

    def _reference(self, product: ProductId) -> wire.ProductReference:
        found = self._products[product]
        return wire.ProductReference(product=found.name, slug=found.slug)


def _share(found: certainty.Share) -> wire.AnswerShare:
    return wire.AnswerShare(
        named=found.named,
        of=found.of,
        share=round(found.share, PLACES),
        interval=tuple(round(end, PLACES) for end in found.interval),
    )
