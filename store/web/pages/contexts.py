"""What templates are given beside the wire resources: rows and figures worked out beforehand."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct

from store.rankings import sentences
from store.rankings.changes import Change
from store.rankings.leaderboards import Leaderboard
from store.rankings.merging import PLACES, Entry, places
from store.rankings.products import ProductProfile
from store.rankings.timelines import Day
from store.snapshot import Snapshot
from store.web.pages import charts, comparisons, discovery, pictures
from store.web.pages.answer_box import answer_box, level_in_words, speaker
from store.web.pages.news import news
from store.web.shapes import CategoryVerdict, Fix, ProductEntry, ProductRecord
from store.web.view import View

LONG_LIST = 10
_TEX = str.maketrans(
    {char: f"\\{char}" for char in "{}$&#%_"}
    | {"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}"}
)
"""How TeX spells the characters that have a meaning to it."""


class Row(Struct, frozen=True):
    """A place of a merged ranking as it is shown; ``place`` is the best rank it ties with.

    ``speaker`` is the assistant whose reason is quoted.
    """

    entry: Entry
    product: ProductProfile
    place: int
    speaker: str


class PickChange(Struct, frozen=True):
    """A change with the products it is between."""

    change: Change
    title: str
    before: ProductProfile
    after: ProductProfile


def category(
    board: Leaderboard,
    verdict: CategoryVerdict,
    days: Sequence[Day],
    view: View,
) -> dict[str, Any]:
    """A category: its ranking, how sure it is, what each model said, and how it got there."""
    snapshot = view.snapshot
    charted = days[-charts.DAYS :]
    return {
        "board": board,
        "topics": snapshot.summary.topics_of.get(board.slug, []),
        "verdict": verdict,
        "box": answer_box(board, days, snapshot),
        "rows": rows(board, snapshot),
        "points": PLACES * len(board.counted),
        "news": news(board, days, snapshot.products),
        "events": _events(days, snapshot),
        "days": charted,
        "bump": charts.bump(charted, [entry.product for entry in board.entries]),
        **_reach(verdict),
        "caveats": _caveats(board),
        "related": [
            (other, snapshot.products[other.entries[0].product])
            for other in snapshot.summary.related(board)
        ],
        "structured": discovery.structured(verdict, view),
        "embedding": pictures.embedding(board, view),
        "has_card": pictures.rasteriser() is not None,
    }


def _reach(verdict: CategoryVerdict) -> dict[str, Any]:
    """Return the bands of the first ten places; none while they are not measured."""
    shown = [entry for entry in verdict.combined[:LONG_LIST] if entry.range]
    lowest = max([2, *(entry.range[1] for entry in shown if entry.range)])
    return {
        "lowest": lowest,
        "reach": [
            charts.reach(entry.product, entry.rank, entry.range, lowest)
            for entry in shown
            if entry.range
        ],
    }


def _caveats(board: Leaderboard) -> list[tuple[str, str]]:
    """Return what the assistants that rank the first product first say against it."""
    first = board.entries[0].product
    own = [answer for answer in board.counted if answer.answered.first == first]
    return [(a.model, a.answered.poll.caveat) for a in own if a.answered.poll.caveat][:2]


def _events(days: Sequence[Day], snapshot: Snapshot) -> list[tuple[str, str]]:
    """What happened beyond noise: another version, another way of asking, another leader."""
    found, asked = [], dict[str, str | None]()
    for day in days:
        found += [
            (day.date, sentences.version_change(version))
            for version in day.versions
            if version.model in snapshot.models
        ]
        now = day.basis.instruments if day.basis else {}
        renewed = [m for m in snapshot.models if m in now and asked.get(m, now[m]) != now[m]]
        for known in (True, False):
            if models := [model for model in renewed if bool(asked[model]) is known]:
                found.append((day.date, sentences.asked_anew(models, is_known=known)))
        asked |= now
        if day.leader:
            sentence = sentences.leader_change(day.leader, lambda id_: snapshot.products[id_].name)
            found.append((day.date, sentence))
    return found[::-1]


class Citation(Struct, frozen=True):
    """A ranking as of a ``day``, ``final`` if it is closed: its address, and what to paste."""

    day: str
    final: bool
    address: str
    text: str
    bibtex: str


def citation(verdict: CategoryVerdict, day: str, view: View, *, final: bool) -> Citation:
    """How to cite a category's ranking as of a UTC day, ``final`` if that day is closed."""
    site, address = view.site, view.at.category_page(verdict.slug, day)
    text = f"{site.name}: {verdict.title}, as of {day}. {address} ({site.licence})"
    fields = {
        "author": f"{{{site.name.translate(_TEX)}}}",
        "title": f"{{{verdict.title.translate(_TEX)}}}",
        "year": day[:4],
        "url": address,
        "note": f"Ranking of AI assistants' answers as of {day}. {site.licence.translate(_TEX)}",
    }
    lines = "".join(f"  {name} = {{{value}}},\n" for name, value in fields.items())
    return Citation(day, final, address, text, f"@misc{{{verdict.slug}-{day},\n{lines}}}")


class Standing(Struct, frozen=True):
    """A product's place in one ranking, as its page shows it.

    ``range`` are its likely places, ``fixes`` what assistants say would make it rank higher: none
    where it stands first alone.
    """

    board: Leaderboard
    entry: Entry
    place: int
    level: str
    tone: str
    range: tuple[int, ...] | None
    fixes: Sequence[Fix]
    speaker: str


def product(
    named: ProductProfile,
    record: ProductRecord,
    mentions: Sequence[tuple[str, int, int]],
    view: View,
) -> dict[str, Any]:
    """A product: its rankings and how often it is named."""
    standings = [
        _standing(board, entry, wire)
        for (board, entry), wire in zip(view.standings(named), record.entries, strict=True)
    ]
    return {
        "product": named,
        "record": record,
        "standings": standings,
        "best": min(standings, key=_weight, default=None),
        "bars": charts.bars(charts.with_gaps(mentions, 2 * view.site.poll_every_days)),
        "rivals": comparisons.rivals(named, view),
        "has_card": pictures.rasteriser() is not None,
    }


def _standing(board: Leaderboard, entry: Entry, wire: ProductEntry) -> Standing:
    place = places(board.entries)[entry.product]
    level, tone = level_in_words(board)
    is_first = place == 1 and not entry.tied
    return Standing(
        board=board,
        entry=entry,
        place=place,
        level=level,
        tone=tone,
        range=wire.range,
        fixes=[] if is_first else wire.fixes,
        speaker=speaker(entry, board),
    )


def _weight(standing: Standing) -> tuple[int, int, float, str]:
    """Order places by what they are worth: the place, how sure it is, the share of its points."""
    tones = {"sure": 0, "unsure": 1, "unknown": 2}
    share = standing.entry.score / len(standing.board.counted)
    return standing.place, tones[standing.tone], -share, standing.board.slug


def rows(board: Leaderboard, snapshot: Snapshot) -> list[Row]:
    """Return the merged ranking; each reason is quoted from the assistant that ranks highest."""
    now = places(board.entries)
    return [
        Row(
            entry=entry,
            product=snapshot.products[entry.product],
            place=now[entry.product],
            speaker=speaker(entry, board),
        )
        for entry in board.entries
    ]


def pick_changes(changes: Iterable[Change], snapshot: Snapshot) -> Iterator[PickChange]:
    """Yield changes with titles and products under their current names."""
    products = snapshot.products
    for change in changes:
        yield PickChange(
            change=change,
            title=snapshot.aggregates[change.slug].category.title,
            before=products[change.previous],
            after=products[change.current],
        )
