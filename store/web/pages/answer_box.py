"""The answer box of a category's page: what came first, how sure that is, and who said it."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from store.rankings.certainty import Comparison
from store.rankings.leaderboards import Leaderboard
from store.rankings.names import ProductId
from store.rankings.products import ProductProfile
from store.rankings.sentences import (
    MAX_NAMED,
    Name,
    certainty_sentence,
    counted_clause,
    day_in_words,
    level_on_points,
    listed,
    number_in_words,
    plural,
    some,
)
from store.snapshot import Snapshot
from store.web import as_of
from store.web.view import View

NOTABLE = 0.1
"""The least difference of two shares of first places that is worth a word."""
PRODUCTS_COLOURED = 5
"""Products with a colour of their own; any other is grey."""

Square = int | None
"""The colour of an answer's first choice, 0 if it is grey; ``None`` where a poll failed."""


class Choices(Struct, frozen=True):
    """One assistant's first choices, oldest first.

    ``usual`` are the products that came first most often, each ``count`` times of ``of``;
    ``latest`` is the newest choice where that is another one. ``last_failure`` says what became of
    a poll since; ``absence`` why an assistant is not counted.
    """

    model: str
    squares: Sequence[Square]
    usual: Sequence[ProductProfile] = ()
    count: int = 0
    of: int = 0
    latest: ProductProfile | None = None
    last_failure: str | None = None
    absence: str | None = None


def answer_box(board: Leaderboard, view: View, day: str | None = None) -> dict[str, Any]:
    """Return what an answer box says beside names and level, as of a UTC day if given.

    ``first_places`` are a product, the colour of its squares, and how often it came first in all
    windows, of so many ``answers``.
    """
    products, firsts, numbers = view.snapshot.products, _first_places(board), colours(board)
    counted = _counted_choices(board, view.snapshot, day)
    return {
        "sentence": _sentence(board, firsts, view.name, _when(board, day)),
        "choices": [*counted, *_missing_choices(board, view.snapshot, day)],
        "first_places": [
            (products[product], numbers.get(product, 0), count)
            for product, count in firsts.most_common()
            if product in products
        ],
        "answers": firsts.total(),
    }


def colours(board: Leaderboard) -> dict[ProductId, int]:
    """Return the colours of a ranking's #1, then of first choices, then of others, from 1."""
    choices = {board.entries[0].product, *board.votes}
    order = sorted(board.entries, key=lambda entry: entry.product not in choices)  # stable
    return {entry.product: number for number, entry in enumerate(order[:PRODUCTS_COLOURED], 1)}


def squares_now(board: Leaderboard) -> list[Square]:
    """Return one square for each assistant's counted answer; ``None`` for one that is missing."""
    numbers = colours(board)
    counted = [numbers.get(answer.answer.first, 0) for answer in board.counted]
    return [*counted, *(None for _ in board.missing)]


def _first_places(board: Leaderboard) -> Counter[ProductId]:
    """Count how often each product came first in the windows."""
    answers = (answer for window in board.windows.values() for answer in window)
    return Counter(answer.places[0] for answer in answers if answer.places[0])


def _counted_choices(board: Leaderboard, snapshot: Snapshot, day: str | None) -> Iterator[Choices]:
    """Yield the rows of assistants that count, as of a UTC day if given."""
    numbers, products = colours(board), snapshot.products
    for model, window in board.windows.items():
        # Windows begin with the newest answer, rows of squares with the oldest.
        firsts = [answer.places[0] for answer in reversed(window) if answer.places[0]]
        counts = Counter(firsts)
        most = max(counts.values())
        usual = [product for product, count in counts.items() if count == most]
        squares: list[Square] = [numbers.get(product, 0) for product in firsts]
        last_failure = _last_failure(board.slug, model, snapshot, day)
        if last_failure:
            squares.append(None)
        yield Choices(
            model=model,
            squares=squares,
            usual=[products[product] for product in usual],
            count=most,
            of=len(firsts),
            latest=None if firsts[-1] in usual else products[firsts[-1]],
            last_failure=last_failure,
        )


def _last_failure(slug: str, model: str, snapshot: Snapshot, day: str | None = None) -> str | None:
    """Return what became of the newest poll of an assistant, if it brought no answer."""
    if day is None and _is_withheld(slug, model, snapshot):
        return "withheld"
    state = snapshot.aggregates[slug].states.get(model)
    is_shown = state and state.failure and state.polled_at[:10] <= (day or state.polled_at)
    return "failed" if is_shown else None


def _is_withheld(slug: str, model: str, snapshot: Snapshot, day: str | None = None) -> bool:
    """Return whether the newest poll of an assistant, up to a UTC day if given, is withheld."""
    # States leave withheld polls out; only the lines still show that one was made.
    index = snapshot.poll_indexes[slug]
    if not index.withheld:
        return False
    positions = as_of.positions_until(snapshot, slug, day) if day else range(len(index.models))
    return next((i in index.withheld for i in positions[::-1] if index.models[i] == model), False)


def _missing_choices(board: Leaderboard, snapshot: Snapshot, day: str | None) -> Iterator[Choices]:
    """Yield the rows of assistants that do not count, with the day of their last answer."""
    if not board.missing:  # nor need the whole log be gone through
        return
    # Who has answered another wording has not answered this one.
    latest = {a.model: a.polled_at for a in board.log if a.question == board.question}
    for model in board.missing:
        absence = "no answer yet"
        if model in latest:
            absence = f"no answer since {day_in_words(latest[model][:10])}"
        elif _is_withheld(board.slug, model, snapshot, day):
            absence = "its answer is withheld"
        yield Choices(model, [], absence=absence)


def _when(board: Leaderboard, day: str | None) -> str:
    """Return when the counted answers were given, at the end of a clause."""
    if any(answer.stale for answer in board.counted):
        return "in their latest answers"
    return "then" if day else "now"


def _sentence(board: Leaderboard, firsts: Counter[ProductId], name: Name, when: str) -> str:
    """Return what the level rests on, for people; also that first places would say otherwise."""
    sure = board.certainty
    if sure.level == "unmeasured" and len(board.winners) == 1:
        votes, most = board.votes[board.winners[0]], max(board.votes.values())
        most_points = "second to fifth places give it the most points"
        if level_on_points(board):
            most_points = "no other product has more points"
        is_alone = votes == most and list(board.votes.values()).count(most) == 1
        points = "" if is_alone else f"{';' if votes == most else ', but'} {most_points}"
        return f"{_votes(board, when if when == 'then' else '')}{points}. {_once(board)}"
    shown = {*board.winners}
    if sure.level == "contradicted":
        said = _contradicted(board, firsts, name)
        shown.add(sure.ahead_of_first[0])
    elif len(board.winners) > 1:
        said = _tie(board, firsts, name)
    elif sure.level == "clear":
        said = _clear(board, firsts, when)
    else:
        rival = _rival(board)
        said = _close(board, firsts, rival, name)
        shown.add(rival)
    most = max(firsts.values())
    often = [product for product, count in firsts.items() if count == most]
    if sure.level == "unmeasured" or not shown.isdisjoint(often):
        return said
    times = f"{plural(most, 'time')}{' each' if len(often) > 1 else ''}"
    more = f"{some([name(product) for product in often])} came first more often, {times}"
    return f"{said} {more}, with fewer points in the latest answers."


def _clear(board: Leaderboard, firsts: Counter[ProductId], when: str) -> str:
    """Return why a lead is clear; by first places only where they show it."""
    first, answers = board.entries[0].product, firsts.total()
    if 2 * firsts[first] <= answers:
        often = f"it came first in {firsts[first]} of the last {answers} answers"
        why = "It leads on points by more than chance: second to fifth places count, too."
        return f"{why} {_votes(board, when)}; {often}."
    others = max((n for p, n in firsts.items() if p != first), default=0)
    rest = f" and no other product in more than {number_in_words(others)}" if others else ""
    often = f"It came first in {firsts[first]} of the last {answers} answers{rest}"
    return f"{_votes(board, when)}. {often}; on points it leads by more than chance."


def _contradicted(board: Leaderboard, firsts: Counter[ProductId], name: Name) -> str:
    """Return what the latest answers say, and what all of them say against it."""
    first = listed([name(product) for product in board.winners])
    latest, but = f"The latest answers put {first} first, but", "though"
    if board.votes.keys().isdisjoint(board.winners):
        but = "but"
        latest = f"{first} has the most points in the latest answers, though none names it first;"
    rival, answers = board.certainty.ahead_of_first[0], firsts.total()
    ahead = "is ahead of it by more than chance"
    comparison = Comparison(list(board.runs().values()), board.slugs)
    others = [p for p in board.certainty.contenders if p != rival]
    if level := [name(p) for p in others if not comparison.is_ahead(rival, p)]:
        ahead += f", {but} not of {some(level)}"
    if 2 * firsts[rival] > answers:
        often = f"came first in {firsts[rival]} of the last {answers}"
        return f"{latest} {name(rival)} {often} and {ahead}."
    return f"{latest} over all comparable ones {name(rival)} {ahead}."


def _rival(board: Leaderboard) -> ProductId:
    """Return the product that may as well be first: one of the latest answers, if any is."""
    rivals = board.certainty.rivals
    # In the order of the published ranking, which the reader sees beside the sentence.
    ranked = [entry.product for entry in board.entries if entry.product in rivals]
    return (*ranked, *rivals)[0]


def _close(board: Leaderboard, firsts: Counter[ProductId], rival: ProductId, name: Name) -> str:
    """Return why a lead may be chance, however many first places there are."""
    scores = {entry.product: entry.score for entry in board.entries}
    first, sure = board.entries[0].product, board.certainty
    others = [product for product in sure.rivals if product != rival]
    lead = f"{name(first)} leads {name(rival)} by {scores[first]} points to {scores.get(rival, 0)}"
    is_level = scores[first] == scores.get(rival)
    if is_level:
        who = f"{name(first)} and {name(rival)} have {scores[first]} points each"
        more = board.entries[0].appearances > _appearances(board, rival)
        why = "more assistants name it" if more else "of its better places"
        lead = f"{who}; {name(first)} comes first because {why}"
    chance = "That order may be chance" if is_level else "That lead is small enough to be chance"
    often, answers = firsts[first], firsts.total()
    if 2 * often > answers:
        # The shortest run decides how large a lead has to be.
        days = number_in_words(min(sure.runs.values()))
        cause = f"with answers of {days} days such a lead on points can still be chance"
        in_all = _first_in_all(board, first)
        if in_all / sure.answers < often / answers - NOTABLE:
            cause = f"in only {in_all} of all {sure.answers} that count, so its lead may be chance"
        chance = f"It came first in {often} of the last {answers}, but {cause}"
    return f"{lead}. {chance}: ask again, and {_either([rival, *others], name)} may come first."


def _appearances(board: Leaderboard, product: ProductId) -> int:
    return next(entry.appearances for entry in board.entries if entry.product == product)


def _first_in_all(board: Leaderboard, product: ProductId) -> int:
    """Return in how many of all comparable answers a product came first."""
    days = (day for run in board.runs().values() for day in run.days)
    return sum(answer.places[0] == product for day in days for answer in day)


def _either(products: Sequence[ProductId], name: Name) -> str:
    """Return products as a choice; of many the first, and how many others there are."""
    first, *others = map(name, products)
    if len(others) >= MAX_NAMED:
        others = [f"one of {number_in_words(len(others))} others"]
    return " or ".join(filter(None, [", ".join([first, *others[:-1]]), *others[-1:]]))


def _tie(board: Leaderboard, firsts: Counter[ProductId], name: Name) -> str:
    score, answers = board.entries[0].score, firsts.total()
    counts = [firsts[product] for product in board.winners]
    if board.certainty.level == "unmeasured":
        return f"{score} points each. {_once(board)}"
    others = [product for product in board.certainty.rivals if product not in board.winners]
    more = f" Ask again, and {_either(others, name)} may come first as well." if others else ""
    if len(set(counts)) == 1:
        often = f"each came first in {counts[0]} of the last {answers}"
        return f"{score} points each, and {often}.{more}"
    shares = listed([f"{name(id_)} came first in {firsts[id_]}" for id_ in board.winners])
    return f"{score} points each. Of the last {answers} answers, {shares}.{more}"


def _votes(board: Leaderboard, when: str) -> str:
    """Return who names the first product first: "Three of four assistants name it first now"."""
    votes, of = board.votes[board.entries[0].product], len(board.counted)
    verb = "named" if when == "then" else "name" if votes > 1 else "names"
    end = f"{verb} it first{f' {when}' if when not in ('', 'then') else ''}"
    if of == 1:
        return f"{board.counted[0].model}, the only one {counted_clause(board)}, {end}"
    who = f"{number_in_words(of)} assistants{f' {counted_clause(board)}' if board.missing else ''}"
    if votes == of:
        return f"{'Both' if of == 2 else 'All'} {who.removeprefix('two ')} {end}"  # noqa: PLR2004
    nobody = "Neither of the" if of == 2 else "None of the"  # noqa: PLR2004
    count = f"{number_in_words(votes).capitalize()} of" if votes else nobody
    return f"{count} {who} {end}"


def _once(board: Leaderboard) -> str:
    """Return why nothing can be told yet."""
    days = set(board.certainty.runs.values())
    if len(days) == 1 and not board.certainty.began_anew and days != {1}:
        on = number_in_words(days.pop())
        return f"Each assistant has answered on only {on} days, too few to tell a lead from chance."
    if not board.certainty.is_asked_once:
        return certainty_sentence(board, str)
    who, they = ("Each assistant", "they") if len(board.counted) > 1 else ("It", "it")
    return f"{who} has answered once, so we cannot tell yet whether {they} would say so again."
