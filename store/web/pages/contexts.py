"""What templates are given beside the wire resources: rows and figures worked out beforehand."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from operator import attrgetter
from typing import Any

from msgspec import Struct

from store.rankings import sentences
from store.rankings.changes import Change
from store.rankings.leaderboards import Leaderboard
from store.rankings.merging import PLACES, Entry
from store.rankings.products import ProductProfile
from store.rankings.timelines import Day, places
from store.rankings.topics import RankedTopic
from store.snapshot import Snapshot
from store.web.certainty_view import CertaintyView
from store.web.pages import charts, comparisons, discovery, pictures
from store.web.shapes import CategoryVerdict, LabsExperiment, ProductRecord
from store.web.view import View, quoted_first

SHORT_LIST = 6
LONG_LIST = 10
SHOWN_CHANGES = 100
SHOWN_SINCE = 1000


class Row(Struct, frozen=True):
    """A place of a merged ranking as it is shown; ``place`` is the best rank it ties with.

    ``move`` is how many ranks it rose (or fell, below 0) since the last poll, if there was one;
    ``new`` when it was not ranked then.
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


def home(view: View) -> dict[str, Any]:
    """The home page: what is new, what is named most, where models agree and where not."""
    snapshot, summary = view.snapshot, view.snapshot.summary
    confirmed = (change for change in summary.changes if change.confirmed)
    return {
        "confirmed": list(islice(pick_changes(confirmed, snapshot), SHORT_LIST)),
        "mentioned": summary.mentioned[:LONG_LIST],
        "together": _labelled(summary.ranked, "unanimous", -1, snapshot),
        "apart": _labelled(summary.ranked, "split", 1, snapshot),
        "levels": {level: len(boards) for level, boards in summary.levels.items()},
        "clear": _newest(summary.levels["clear"], snapshot),
        "contradicted": _newest(summary.levels["contradicted"], snapshot),
    }


def _newest(
    leaderboards: Iterable[Leaderboard], snapshot: Snapshot
) -> list[tuple[Leaderboard, ProductProfile]]:
    """A few categories and the #1 of which each level speaks, the last answered first."""
    by_slug = sorted(leaderboards, key=attrgetter("slug"))
    order = sorted(by_slug, key=attrgetter("newest"), reverse=True)
    found = ((b, snapshot.products.get(b.certainty.first)) for b in order)
    return list(islice(((board, top) for board, top in found if top), SHORT_LIST))


def categories(view: View) -> dict[str, Any]:
    """Ranked categories, sorted by subject, under their first letters; digits under ``0-9``."""
    ranked = view.snapshot.summary.ranked
    ordered = sorted(ranked, key=lambda b: (b.category.subject.casefold(), b.slug))
    return {"groups": [(letter, list(group)) for letter, group in groupby(ordered, key=_letter)]}


def topic(found: RankedTopic, snapshot: Snapshot) -> dict[str, Any]:
    """A topic, its parts, and their categories with their #1, if it has not gone meanwhile."""
    parts = [
        (
            part,
            [
                (board, top)
                for board in part.leaderboards
                if (top := snapshot.products.get(board.entries[0].product))
            ],
        )
        for part in found.parts
    ]
    return {"topic": found, "parts_shown": parts}


def category(
    board: Leaderboard,
    verdict: CategoryVerdict,
    days: Sequence[Day],
    view: View,
) -> dict[str, Any]:
    """A category: its ranking, how sure it is, what each model said, and how it got there."""
    snapshot = view.snapshot
    ranking = rows(board, days, snapshot)
    charted = days[-charts.DAYS :]
    order = [entry.product for entry in board.entries]
    return {
        "board": board,
        "topics": snapshot.summary.topics_of.get(board.slug, []),
        "verdict": verdict,
        "rows": ranking,
        "votes": votes(board),
        "points": PLACES * len(board.counted),
        "wording": view.wording(board),
        "alike": overlap_in_words(board.agreement.overlap) if board.agreement else None,
        "days": charted,
        "bump": charts.bump(charted, order),
        "strips": charts.strips(charted, snapshot.models, order, snapshot.products),
        "events": _events(days, snapshot),
        **_certainty(verdict),
        "fixes": _fixes_by_product(board, ranking),
        "structured": discovery.structured(verdict, view),
        "embedding": pictures.embedding(board, view),
        "has_card": pictures.rasteriser() is not None,
    }


def _certainty(verdict: CategoryVerdict) -> dict[str, Any]:
    """The pictures of how sure each place is, of the first ten; none while it is unmeasured."""
    shown = [entry for entry in verdict.combined[:LONG_LIST] if entry.range]
    lowest = max([2, *(entry.range[1] for entry in shown if entry.range)])
    ticks = dict.fromkeys((1, (1 + lowest) // 2, lowest))
    return {
        "outside": any(not e.range[0] <= e.rank <= e.range[1] for e in shown if e.range),
        "presences": charts.whiskers(
            [
                (
                    entry.presence.share,
                    entry.presence.interval,
                    f"{entry.product}: {entry.presence.named} of {entry.presence.of}",
                )
                for entry in shown
            ]
        ),
        "ranges": charts.whiskers(
            [
                (entry.rank, entry.range, f"{entry.product}: #{entry.rank}")
                for entry in shown
                if entry.range
            ],
            1,
            lowest,
        ),
        "rank_ticks": [(charts.along(rank, 1, lowest), f"#{rank}") for rank in ticks],
    }


def _events(days: Sequence[Day], snapshot: Snapshot) -> list[tuple[str, str]]:
    """What happened beyond noise: another version of an assistant, another leader."""
    names = {id_: product.name for id_, product in snapshot.products.items()}
    found = []
    for day in days:
        found += [
            (day.date, sentences.version_change(version))
            for version in day.versions
            if version.model in snapshot.models
        ]
        if day.leader:
            found.append((day.date, sentences.leader_change(day.leader, names)))
    return found[::-1]


def product(
    named: ProductProfile,
    record: ProductRecord,
    mentions: Sequence[tuple[str, int, int]],
    view: View,
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
        "sure": CertaintyView(best[0], view.snapshot.products).summary() if best else None,
        "best_range": record.entries[standings.index(best)].range if best else None,
        "best_of": len(best[0].slugs) if best else 0,
        "bars": charts.bars(charts.with_gaps(mentions, 2 * view.site.poll_every_days)),
        "rivals": comparisons.rivals(named, view),
        "has_card": pictures.rasteriser() is not None,
    }


def changes(view: View, since: str | None = None) -> dict[str, Any]:
    """The newest flips of a #1, by day: the last ones, or those ``since`` a day."""
    summary = view.snapshot.summary
    later = [c for c in summary.changes if since is None or c.current_at[:10] >= since]
    most = SHOWN_CHANGES if since is None else SHOWN_SINCE
    newest = list(pick_changes(later[:most], view.snapshot))
    return {
        "summary": summary,
        "since": since,
        "of": len(later),
        "shown": len(newest),
        "confirmed": sum(change.confirmed for change in summary.changes),
        "days": [
            (date, sorted(group, key=lambda f: (f.title.casefold(), f.change.model)))
            for date, group in groupby(newest, key=lambda f: sentences.dated(f.change.current_at))
        ],
    }


def experiment(found: LabsExperiment, view: View) -> dict[str, Any]:
    """An experiment with what was written about it, or the chart of a computed one."""
    written = view.snapshot.catalogue.labs.get(found.slug)
    body = written.body if written else None
    computed = () if body else view.snapshot.summary.experiments
    chart = next((e.chart for e in computed if e.slug == found.slug), None)
    shown: dict[str, Any] = {"experiment": found, "body": body, "chart": chart}
    if chart:
        rows = [(bar.value, bar.interval, bar.label) for bar in chart.bars]
        middle = (chart.low + chart.high) / 2
        shown["whiskers"] = charts.whiskers(rows, chart.low, chart.high)
        shown["ticks"] = [
            (charts.along(value, chart.low, chart.high), chart.figure(value))
            for value in (chart.low, middle, chart.high)
        ]
    return shown


def methodology(view: View) -> dict[str, Any]:
    """The figures that the methodology quotes."""
    snapshot, leaderboards = view.snapshot, view.snapshot.summary.ranked
    labels = [board.agreement.label for board in leaderboards if board.agreement]
    return {
        "levels": {level: len(boards) for level, boards in snapshot.summary.levels.items()},
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
    """Whether each configured model's #1 has most first places; the missing ones come last."""
    # One vote alone is no agreement.
    shared = board.agreement and board.agreement.votes > 1
    top = board.agreement.product if board.agreement and shared else None
    given = ["yes" if answer.answered.first == top else "no" for answer in board.counted]
    return given + ["none"] * len(board.missing)


def pick_changes(changes: Iterable[Change], snapshot: Snapshot) -> Iterator[PickChange]:
    """Changes in current names, without products that are gone: the overview may be behind."""
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
    return [row[2] for row in found[:SHORT_LIST]]


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
