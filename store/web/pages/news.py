"""What is new in a category since the round before: first choices, the leader, other events.

Like is compared with like: the same assistants, asked the same question in the same way.
"""

from collections import Counter
from collections.abc import Iterator
from operator import itemgetter

from msgspec import Struct

from store.rankings import sentences
from store.rankings.leaderboards import Leaderboard
from store.rankings.merging import RunKey
from store.rankings.names import ProductId
from store.rankings.runs import VersionChange
from store.rankings.sentences import level_in_words, listed
from store.web import as_of
from store.web.view import View


class ChangedChoice(Struct, frozen=True):
    """An assistant that names another product first; ``support`` says how firm that is."""

    model: str
    before: str
    after: str
    support: str


class News(Struct, frozen=True):
    """What is new in a category ``since`` the UTC day of the round before.

    The ``sentence`` says who is #1, ``levels`` in words how sure that was and is, if
    that differs. ``unchanged`` pairs assistants with the product that they still put first; those
    that are ``silent`` brought no new answer. ``events`` are dated sentences, newest first,
    ``earlier`` those of the time before.
    """

    since: str
    sentence: str
    levels: tuple[str, str] | None
    changed: list[ChangedChoice]
    unchanged: list[tuple[str, str]]
    silent: str
    events: list[tuple[str, str]]
    earlier: list[tuple[str, str]]


def news_of(view: View, board: Leaderboard) -> News | None:
    """Return what is new in a ranking; ``None`` where only one day brought answers.

    ``None`` as well while it is shown from memory alone, for its history file is broken.

    Raises:
        HistoryError: the history cannot be read just now.
    """
    if view.snapshot.is_unreadable(board.slug):
        return None
    # A day on which only a retired assistant answered is none of this ranking.
    configured = (*board.models, *board.missing)
    days = sorted({a.polled_at[:10] for a in board.log if a.model in configured})
    since = days[-2] if len(days) > 1 else ""
    before = as_of.leaderboard(view.snapshot, board.slug, since, view.lines) if since else None
    if before is None:
        return None
    obstacle = _obstacle(before, board)
    levels = level_in_words(before), level_in_words(board)
    changed, unchanged, silent = _first_choices(before, board, view)
    events = sorted(_events(board, view), key=itemgetter(0), reverse=True)
    return News(
        since=since,
        sentence=_first_place(before, board, obstacle, view),
        levels=None if obstacle or levels[0] == levels[1] else levels,
        changed=changed,
        unchanged=unchanged,
        silent=silent,
        events=[event for event in events if event[0] > since],
        earlier=[event for event in events if event[0] <= since],
    )


def _first_choices(
    before: Leaderboard, after: Leaderboard, view: View
) -> tuple[list[ChangedChoice], list[tuple[str, str]], str]:
    """Return the choices of another product, of the same one, and who brought no new answer."""
    changed: list[ChangedChoice] = []
    unchanged: dict[ProductId, list[str]] = {}
    silent: list[str] = []
    old, new = ({a.model: a.answer for a in ranking.counted} for ranking in (before, after))
    asked = _instruments(before), _instruments(after)
    for model in view.snapshot.models:
        first, now = old.get(model), new.get(model)
        if first is None or now is None:
            continue
        if first.poll.id == now.poll.id:
            silent.append(model)
        elif before.question != after.question or asked[0][model] != asked[1][model]:
            continue
        elif first.first == now.first:
            unchanged.setdefault(now.first, []).append(model)
        else:
            support = _support(after, model, now.first, first.first, view)
            names = view.name(first.first), view.name(now.first)
            changed.append(ChangedChoice(model, *names, support))
    same = [(listed(models), view.name(product)) for product, models in unchanged.items()]
    return changed, same, listed(silent)


def _obstacle(before: Leaderboard, after: Leaderboard) -> str | None:
    """Return why places cannot be compared with those before, as the beginning of a sentence."""
    old, new = _instruments(before), _instruments(after)
    if before.question != after.question:
        return "The first ranking for this question"
    # Places of three assistants and of four are sums of different things.
    if old.keys() != new.keys():
        return "The first ranking of these assistants"
    return None if old == new else "The first ranking since the way of asking changed"


def _instruments(board: Leaderboard) -> dict[str, str | None]:
    return {answer.model: answer.answer.key.instrument for answer in board.counted}


def _support(board: Leaderboard, model: str, now: ProductId, before: ProductId, view: View) -> str:
    """Return how firm a choice is over the last answers of an assistant."""
    firsts = Counter(answer.places[0] for answer in board.windows[model])
    of = firsts.total()
    if firsts[before] > firsts[now]:
        still = f"It said {view.name(before)} in {firsts[before]} of its last {of} answers"
        return f"{still}, so this may be chance."
    if of == 1:
        return "It has answered only once since."
    return f"{view.name(now)} came first in {firsts[now]} of its last {of} answers."


def _first_place(before: Leaderboard, after: Leaderboard, obstacle: str | None, view: View) -> str:
    """Say who is #1 of the merged ranking, and whether another product was before."""
    names = listed([view.name(product) for product in after.winners])
    verb = "leads" if len(after.winners) == 1 else "lead"
    if obstacle:
        return f"{obstacle}: {names} {verb}."
    if set(before.winners) == set(after.winners):
        return f"{names} still {verb}."
    did = f"{names} now {verb}; before, {listed([view.name(id_) for id_ in before.winners])} did."
    old, new = ({a.model: a.answer.first for a in board.counted} for board in (before, after))
    return f"{did} No assistant changed its first choice: lower places did." if old == new else did


def _events(board: Leaderboard, view: View) -> Iterator[tuple[str, str]]:
    """Yield what happened beyond noise: another version, another way of asking, another leader."""
    keys: dict[str, RunKey] = {}
    renewed: dict[tuple[str, bool], list[str]] = {}
    for answer in board.log:
        model, date, key = answer.model, answer.polled_at[:10], answer.key
        before = keys.get(model, key)
        keys[model] = key
        # The log holds equal keys once, so identity tells that nothing changed.
        if before is key or model not in view.snapshot.models:
            continue
        if version := VersionChange.of(model, before.version, key.version):
            yield date, sentences.version_change(version)
        if before.instrument != key.instrument:
            renewed.setdefault((date, before.instrument is not None), []).append(model)
    # A new prompt reaches all assistants on one day: one sentence for all of them.
    for (date, is_known), models in renewed.items():
        yield date, sentences.asked_anew(models, is_known=is_known)
    for change in board.leader_changes:
        yield change.date, sentences.leader_change(change, view.name)
    if board is view.snapshot.leaderboards.get(board.slug):
        yield from _confirmed_changes(board, view)  # as of a past day none is known


def _confirmed_changes(board: Leaderboard, view: View) -> Iterator[tuple[str, str]]:
    """Yield the changes of an assistant's first choice that it confirmed."""
    for change in view.snapshot.aggregates[board.slug].changes:
        if change.confirmed:
            after, former = view.name(change.current), view.name(change.previous)
            said = f"{change.model} named {after} first in place of {former}, and said so again."
            yield change.current_at[:10], said
