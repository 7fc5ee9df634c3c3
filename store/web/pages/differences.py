"""What differs between two days of a category: who moved, came or went, who changed its mind."""

from msgspec import Struct

from store.rankings.leaderboards import Leaderboard
from store.rankings.merging import CountedAnswer, places
from store.rankings.products import ProductProfile
from store.rankings.timelines import Basis, Obstacle
from store.snapshot import Snapshot
from store.web import as_of
from store.web.as_of import Lines


class Shift(Struct, frozen=True):
    """A product's place and points on each of two days; ``None`` where it was not ranked."""

    product: ProductProfile
    before: int | None
    after: int | None
    points_before: int | None
    points_after: int | None

    @property
    def move(self) -> int | None:
        """How many places it rose, or fell, below 0; ``None`` if it came or went."""
        return None if self.before is None or self.after is None else self.before - self.after


class Mind(Struct, frozen=True):
    """An assistant's #1 on each of two days, if it counts; what it ``says`` of the later, when.

    ``comparable`` if both answer the same question, asked in the same way.
    """

    model: str
    comparable: bool
    before: ProductProfile | None
    after: ProductProfile | None
    says: str | None
    said_on: str | None

    @property
    def changed(self) -> bool:
        """Whether it ranks another product first than before."""
        both = self.before and self.after and self.comparable
        return bool(both and self.before != self.after)


class Differences(Struct, frozen=True):
    """Two days of a category; ``obstacle`` is what keeps their places from being compared."""

    start: str
    end: str
    before: Leaderboard
    after: Leaderboard
    shifts: list[Shift]
    minds: list[Mind]
    obstacle: Obstacle | None


def between(
    snapshot: Snapshot, slug: str, start: str | None, end: str | None, lines: Lines
) -> Differences | None:
    """What differs between the ends of two UTC days.

    Days not given are the last two that brought answers; ``None`` where only one did.

    Raises:
        HistoryError: ``lines`` cannot read a file just now.
    """
    polls = as_of.polls_until(snapshot, slug, end or as_of.newest_day(snapshot, slug), lines)
    answered = [p for p in polls if p.succeeded and p.model in snapshot.models]
    days = sorted({poll.polled_at[:10] for poll in answered})
    if start is None:
        start = days[-2] if len(days) > 1 else ""
    before = as_of.leaderboard(snapshot, slug, start, lines)
    after = as_of.ranked(snapshot, slug, polls)
    if before is None or after is None:
        return None
    return Differences(
        start=start,
        end=end or days[-1],
        before=before,
        after=after,
        shifts=_shifts(before, after, snapshot),
        minds=_minds(before, after, snapshot),
        obstacle=_basis(before).obstacle(_basis(after)),
    )


def _shifts(before: Leaderboard, after: Leaderboard, snapshot: Snapshot) -> list[Shift]:
    """Every product ranked on either day: by its later rank, then those that went."""
    old, new = ({e.product: e.score for e in board.entries} for board in (before, after))
    ranks = places(before.entries), places(after.entries)
    return [
        Shift(
            product=snapshot.products[id_],
            before=ranks[0].get(id_),
            after=ranks[1].get(id_),
            points_before=old.get(id_),
            points_after=new.get(id_),
        )
        for id_ in (*new, *(id_ for id_ in old if id_ not in new))
    ]


def _minds(before: Leaderboard, after: Leaderboard, snapshot: Snapshot) -> list[Mind]:
    """Every configured assistant that counts on either day."""
    old, new = ({a.model: a for a in board.counted} for board in (before, after))
    bases = [_basis(board) for board in (before, after)]
    same_question = bases[0].question == bases[1].question
    instruments = [basis.instruments for basis in bases]
    return [
        Mind(
            model=model,
            comparable=same_question and instruments[0].get(model) == instruments[1].get(model),
            before=_first(old.get(model), snapshot),
            after=_first(new.get(model), snapshot),
            says=new[model].answered.poll.reason if model in new else None,
            said_on=new[model].answered.poll.polled_at[:10] if model in new else None,
        )
        for model in snapshot.models
        if model in old or model in new
    ]


def _basis(board: Leaderboard) -> Basis:
    return Basis.of([answer.answered for answer in board.counted])


def _first(answer: CountedAnswer | None, snapshot: Snapshot) -> ProductProfile | None:
    return snapshot.products[answer.answered.first] if answer else None
