"""What templates are given beside the wire resources: rows and figures worked out beforehand."""

from __future__ import annotations

from itertools import groupby, islice
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from store.rankings import sentences
from store.rankings.merging import PLACES
from store.rankings.timelines import places
from store.web.pages import charts, discovery
from store.web.snapshot_view import quoted_first

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from store.rankings.changes import Change
    from store.rankings.leaderboards import Leaderboard
    from store.rankings.merging import Entry
    from store.rankings.products import ProductProfile
    from store.rankings.timelines import Day
    from store.snapshot import Snapshot
    from store.web.resources import CategoryVerdict, ProductRecord
    from store.web.snapshot_view import SnapshotView

FEW = 6
MOST = 10
SHOWN_CHANGES = 100


class Row(Struct, frozen=True):
    """A place of a merged ranking as it is shown.

    ``place`` is the best rank among those it ties with. ``move`` is how many ranks it rose (or
    fell, below 0) since the last poll, ``None`` when there was none before; ``new`` when it was
    not ranked then.
    """

    entry: Entry
    product: ProductProfile
    place: int
    move: int | None
    new: bool


class PickChange(Struct, frozen=True):
    """A change with the products it is between."""

    change: Change
    title: str
    before: ProductProfile
    after: ProductProfile


def home(view: SnapshotView) -> dict[str, Any]:
    """The home page: what is new, what is named most, where models agree and where not."""
    snapshot, summary = view.snapshot, view.snapshot.summary
    confirmed = (change for change in summary.changes if change.confirmed)
    return {
        "confirmed": list(islice(pick_changes(confirmed, snapshot), FEW)),
        "mentioned": summary.mentioned[:MOST],
        "together": _labelled(summary.ranked, "unanimous", -1, snapshot),
        "apart": _labelled(summary.ranked, "split", 1, snapshot),
    }


def by_letter(leaderboards: Iterable[Leaderboard]) -> list[tuple[str, list[Leaderboard]]]:
    """Ranked categories, sorted by subject, under their first letters; digits under ``0-9``."""
    ordered = sorted(leaderboards, key=lambda b: (b.category.subject.casefold(), b.slug))
    return [(letter, list(group)) for letter, group in groupby(ordered, key=_letter)]


def category(
    board: Leaderboard,
    verdict: CategoryVerdict,
    days: Sequence[Day],
    view: SnapshotView,
) -> dict[str, Any]:
    """A category: its ranking, how sure it is, what each model said, and how it got there."""
    snapshot = view.snapshot
    ranking = rows(board, days, snapshot)
    order = [entry.product for entry in board.entries]
    return {
        "board": board,
        "verdict": verdict,
        "rows": ranking,
        "votes": votes(board),
        "points": PLACES * len(board.counted),
        "wording": view.wording(board),
        "alike": overlap_in_words(board.agreement.overlap) if board.agreement else None,
        "days": days,
        "bump": charts.bump(days, order),
        "strips": charts.strips(days, snapshot.models, order, snapshot.products),
        "fixes": _fixes_by_product(board, ranking),
        "structured": discovery.structured(verdict, view),
    }


def product(
    named: ProductProfile,
    record: ProductRecord,
    mentions: Sequence[tuple[str, int, int]],
    view: SnapshotView,
) -> dict[str, Any]:
    """A product: its leaderboards and how often it is named."""
    standings = view.standings(named)
    found = [
        {"board": board, "entry": entry, "place": places(board.entries)[named.id]}
        for board, entry in standings
    ]
    best = min(standings, key=quoted_first, default=None)
    return {
        "product": named,
        "record": record,
        "standings": found,
        "best": found[standings.index(best)] if best else None,
        "bars": charts.bars(mentions),
    }


def changes(view: SnapshotView) -> dict[str, Any]:
    """The newest flips of a #1, by day."""
    summary = view.snapshot.summary
    newest = list(pick_changes(summary.changes[:SHOWN_CHANGES], view.snapshot))
    return {
        "summary": summary,
        "shown": len(newest),
        "confirmed": sum(change.confirmed for change in summary.changes),
        "days": [
            (date, sorted(group, key=lambda f: (f.title.casefold(), f.change.model)))
            for date, group in groupby(newest, key=lambda f: sentences.dated(f.change.current_at))
        ],
    }


def methodology(view: SnapshotView) -> dict[str, Any]:
    """The figures that the methodology quotes."""
    snapshot, leaderboards = view.snapshot, view.snapshot.summary.ranked
    labels = [board.agreement.label for board in leaderboards if board.agreement]
    return {
        "labels": {label: labels.count(label) for label in ("unanimous", "majority", "split")},
        "tied": sum(any(entry.tied for entry in board.entries) for board in leaderboards),
        "stale": sum(answer.stale for board in leaderboards for answer in board.counted),
        "polls": sum(len(line_index.models) for line_index in snapshot.line_indexes.values()),
        "confirmed": sum(change.confirmed for change in snapshot.summary.changes),
    }


def rows(board: Leaderboard, days: Sequence[Day], snapshot: Snapshot) -> list[Row]:
    """The merged ranking with what moved between the last two days that brought answers."""
    answered = [day for day in days if day.answered]
    before = answered[-2].places if len(answered) > 1 else None
    now = places(board.entries)
    return [
        Row(
            entry=entry,
            product=snapshot.products[entry.product],
            place=now[entry.product],
            move=before[entry.product] - now[entry.product]
            if before and entry.product in before
            else None,
            new=before is not None and entry.product not in before,
        )
        for entry in board.entries
    ]


def votes(board: Leaderboard) -> list[str]:
    """Whether each configured model's #1 has most first places; one vote alone is no agreement.

    The missing ones, ``none``, come last.
    """
    shared = board.agreement and board.agreement.votes > 1
    top = board.agreement.product if board.agreement and shared else None
    given = ["yes" if answer.answered.first == top else "no" for answer in board.counted]
    return given + ["none"] * len(board.missing)


def pick_changes(changes: Iterable[Change], snapshot: Snapshot) -> Iterator[PickChange]:
    """Changes in current names.

    What is over all categories may be a moment behind the rest; a change between products that
    have gone meanwhile is left out.
    """
    products = snapshot.products
    for change in changes:
        before, after = products.get(change.previous), products.get(change.current)
        if before and after and (aggregate := snapshot.aggregates.get(change.slug)):
            yield PickChange(
                change=change, title=aggregate.category.title, before=before, after=after
            )


def overlap_in_words(overlap: float) -> str:
    """How alike the models' lists are, in words."""
    for least, words in ((0.75, "much alike"), (0.5, "partly alike"), (0.25, "little alike")):
        if overlap >= least:
            return words
    return "hardly alike"


def _letter(board: Leaderboard) -> str:
    first = board.category.subject[0].upper()
    return first if first.isalpha() else "0\N{EN DASH}9"


def _labelled(
    leaderboards: Iterable[Leaderboard], label: str, sign: int, snapshot: Snapshot
) -> list[tuple[Leaderboard, ProductProfile]]:
    """A few categories of one label and their #1, most alike first, or least."""
    found = [
        (sign * board.agreement.overlap, board.slug, (board, top))
        for board in leaderboards
        if board.agreement and board.agreement.label == label
        if (top := snapshot.products.get(board.agreement.product))
    ]
    found.sort(key=lambda row: row[:2])
    return [row[2] for row in found[:FEW]]


def _fixes_by_product(
    board: Leaderboard, ranking: Sequence[Row]
) -> list[tuple[Row, list[tuple[str, str]]]]:
    """What each model says it would take to rank higher, by product, best rank first."""
    said: dict[str, list[tuple[str, str]]] = {}
    for answer in board.counted:
        for product, pick in answer.picks.items():
            for fix in pick.fixes:
                said.setdefault(product, []).append((answer.model, fix))
    return [(row, said[row.entry.product]) for row in ranking if row.entry.product in said]
