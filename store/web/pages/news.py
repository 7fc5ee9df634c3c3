"""What changed in a ranking since the day before that brought answers, as sentences.

Like is compared with like: the same assistants, asked the same question in the same way.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct

from store.rankings.leaderboards import Leaderboard
from store.rankings.merging import CountedAnswer
from store.rankings.names import ProductId
from store.rankings.products import ProductProfile
from store.rankings.sentences import listed
from store.rankings.timelines import Basis, Day, Obstacle

FIRST: Mapping[Obstacle, str] = {
    "question": "The first ranking for this question",
    "assistants": "The first ranking of these assistants",
    "instrument": "The first ranking since the way of asking changed",
}
"""What a ranking is that cannot be compared with the one before."""


class ChangedChoice(Struct, frozen=True):
    """An assistant that names another product first; ``support`` says how firm that is."""

    model: str
    now: ProductProfile
    before: ProductProfile
    support: str


class News(Struct, frozen=True):
    """What changed since a day: the leader in a sentence, then each assistant.

    ``unchanged`` pairs the assistants that say the same as before with their first choice.
    """

    since: str
    leader: str
    changed: Sequence[ChangedChoice]
    unchanged: Sequence[tuple[str, ProductProfile]]


def news(
    board: Leaderboard, days: Sequence[Day], products: Mapping[ProductId, ProductProfile]
) -> News | None:
    """Return what changed between the last two days with answers; ``None`` after only one."""
    answered = [day for day in days if day.answered]
    if len(answered) < 2 or not answered[-2].places:  # noqa: PLR2004 - it takes two to compare
        return None
    before = answered[-2]
    changed, same = [], dict[str, list[str]]()
    for answer in board.counted:
        was, now = _choice_before(board, answer, answered[:-1]), answer.answered.first
        if was == now:
            same.setdefault(now, []).append(answer.model)
        elif was in products:
            support = _support(board, answer.model, products[now], products[was])
            changed.append(ChangedChoice(answer.model, products[now], products[was], support))
    return News(
        since=before.date,
        leader=_leader(board, before, products),
        changed=changed,
        unchanged=[(listed(models), products[product]) for product, models in same.items()],
    )


def _choice_before(board: Leaderboard, answer: CountedAnswer, days: Sequence[Day]) -> ProductId:
    """Return what an assistant last put first on some days, asked the same; empty if nothing."""
    poll = answer.answered.poll
    for day in reversed(days):
        mark = day.marks.get(answer.model)
        if mark and mark.product:
            is_same = board.category.wording(mark.poll.question) == board.question and (
                mark.poll.instrument or None
            ) == (poll.instrument or None)
            return mark.product if is_same else ""
    return ""


def _leader(board: Leaderboard, before: Day, products: Mapping[ProductId, ProductProfile]) -> str:
    """Return whether another product leads the merged ranking than before."""
    was = [product for product, place in before.places.items() if place == 1]
    names = listed([products[product].name for product in board.firsts])
    basis = Basis.of([answer.answered for answer in board.counted])
    if obstacle := before.basis and basis.obstacle(before.basis):
        return f"{FIRST[obstacle]}: {names} {'leads' if len(board.firsts) == 1 else 'lead'}."
    if set(was) == set(board.firsts):
        return f"{names} still {'leads' if len(was) == 1 else 'lead'}."
    old = listed([products[product].name for product in was if product in products])
    verb = "leads" if len(board.firsts) == 1 else "lead"
    return f"{names} now {verb}; before, {old} did." if old else f"{names} now {verb}."


def _support(board: Leaderboard, model: str, now: ProductProfile, before: ProductProfile) -> str:
    firsts = Counter(answer.places[0] for answer in board.windows[model])
    of = firsts.total()
    if firsts[before.id] > firsts[now.id]:
        return (
            f"It still said {before.name} in {firsts[before.id]} of its last {of} answers, so this "
            "may be chance."
        )
    if of == 1:
        return "It has answered only once since."
    return f"{now.name} came first in {firsts[now.id]} of its last {of} answers."
