"""Comparisons of two products over all rankings that hold both."""

from collections.abc import Iterable

from msgspec import Struct

from store.rankings.certainty import Comparison
from store.rankings.leaderboards import Leaderboard
from store.rankings.merging import Entry
from store.rankings.names import ProductId


class Meeting(Struct, frozen=True):
    """A ranking that holds two products, as ``entries``.

    ``ahead`` is the one that is ahead by more than chance over all comparable answers; ``None``
    with ``measured`` says that they cannot be told apart.
    """

    board: Leaderboard
    entries: tuple[Entry, Entry]
    ahead: ProductId | None
    measured: bool

    @property
    def higher(self) -> ProductId | None:
        """The product with the better place; ``None`` for a tie."""
        first, second = self.entries
        if first.place == second.place:
            return None
        return first.product if first.place < second.place else second.product


def meet(board: Leaderboard, first: Entry, second: Entry) -> Meeting:
    """Return how two products of a leaderboard stand to each other."""
    comparison = Comparison(list(board.runs().values()), board.slugs)
    ahead = None
    for one, other in ((first.product, second.product), (second.product, first.product)):
        if comparison.is_measured and comparison.is_ahead(one, other):
            ahead = one
    return Meeting(
        board=board,
        entries=(first, second),
        ahead=ahead,
        measured=comparison.is_measured,
    )


def preferences(
    meetings: Iterable[Meeting], one: ProductId, other: ProductId
) -> dict[str, tuple[int, int]]:
    """Return per assistant in how many of the rankings it puts either product higher.

    A product that it names stands above one that it does not.
    """
    counts: dict[str, tuple[int, int]] = {}
    for meeting in meetings:
        for answer in meeting.board.counted:
            picks = answer.answer.picks  # best first
            order = [product for product in picks if product in (one, other)]
            if order:
                mine, its = counts.get(answer.model, (0, 0))
                counts[answer.model] = (mine + (order[0] == one), its + (order[0] == other))
    return counts
