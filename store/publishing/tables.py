"""The tables of the dataset: their rows from polls and rankings.

What they and their columns say stands in ``templates/tables.json``.

Rows are tuples in the order of the columns; dates and times are RFC 3339 text. Tables of lines
follow from the evidence and the ledger, all others also from the catalogue as it is now.
"""

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Struct

from store.category_history import history_files, under_present_names
from store.rankings.merging import ResolvedAnswer, Wordings, merge, points
from store.records import Poll
from store.snapshot import Snapshot

Row = tuple[Any, ...]
Type = Literal[
    "string", "integer", "number", "boolean", "date", "datetime", "texts", "picks", "misses"
]


class Column(Struct, frozen=True):
    """A column: its type, and its meaning."""

    type: Type
    about: str


class Table(Struct, frozen=True):
    """A table: what a row is, and its columns by name."""

    about: str
    columns: dict[str, Column]


class Line(Struct, frozen=True):
    """A line of history with its poll: its file, its number, when its day was closed, if it was."""

    poll: Poll
    file: str
    number: int
    day_closed: str | None


def _polls(line: Line) -> Iterator[Row]:
    poll, usage = line.poll, line.poll.usage
    yield (
        poll.id, poll.slug, poll.model, poll.polled_at, poll.question, poll.instrument or None,
        poll.pick, poll.ranking, poll.reason, poll.missed, poll.caveat, poll.error, poll.failure,
        poll.notes, poll.served_model, poll.request_id, poll.web_search,
        usage.input_tokens if usage else None, usage.output_tokens if usage else None,
        (usage.searches if usage and usage.searches is not UNSET else None),
        usage.usd if usage else None, poll.latency_ms, poll.withheld is True, poll.crc,
        line.file, line.number, line.day_closed,
    )  # fmt: skip


def _picks(line: Line) -> Iterator[Row]:
    poll = line.poll
    # Ranks as written, whatever merging makes of them: dataset.md and data.html count with these.
    for pick in poll.ranking:
        yield (
            poll.id, poll.slug, poll.model, poll.polled_at, poll.question, poll.instrument or None,
            pick.rank, points(pick.rank), pick.product, pick.domain, pick.reason, pick.fixes,
            line.file, line.number, line.day_closed,
        )  # fmt: skip


def rankings_by_day(
    snapshot: Snapshot, slug: str, polls: Sequence[tuple[int, Poll]]
) -> Iterator[Row]:
    """Yield the rankings of a category as of each closed day on which it got lines.

    ``polls`` are with their positions in its line index. A day before an accepted loss has none.
    """
    index, ledger, aggregate = (
        snapshot.poll_indexes[slug], snapshot.ledger, snapshot.aggregates[slug],
    )  # fmt: skip
    lost = max((ledger.accepted[f].day for f in index.files if f in ledger.accepted), default="")
    entries = (entry for file in index.files for entry in ledger.ends.get(file, ()))
    days = sorted({day for day, _ in entries if lost <= day <= ledger.last_closed_day})
    resolved, site = aggregate.resolved, snapshot.catalogue.site
    slugs = {
        id_: snapshot.products[id_].slug for id_ in resolved.values() if id_ in snapshot.products
    }
    former = snapshot.catalogue.former_names
    successes = {
        position: under_present_names([poll], former)[0]
        for position, poll in polls
        if poll.succeeded
    }
    positions: list[int] = []
    collected: Wordings[ResolvedAnswer] = Wordings(aggregate.category.question)
    for day in days:
        ends = [ledger.lines_on(file, day) for file in index.files]
        before, positions = (
            positions,
            [i for i in sorted(successes) if index.line[i] <= ends[index.file[i]]],
        )
        if positions[: len(before)] != before:  # files of former slugs, one longer than it was then
            before, collected = [], Wordings(aggregate.category.question)
        for position in positions[len(before) :]:
            collected.add(ResolvedAnswer.of(successes[position], aggregate.category, resolved))
        standing = collected.standing(snapshot.models, site)
        for entry in merge(standing.answers, slugs) if standing else ():
            yield (
                slug,
                day,
                entry.rank,
                slugs[entry.product],
                entry.score,
                entry.appearances,
                entry.tied,
            )


def _names(snapshot: Snapshot) -> Iterator[Row]:
    for slug, aggregate in sorted(snapshot.aggregates.items()):
        for file in history_files(slug, snapshot.catalogue.categories):
            for name, domain in sorted(aggregate.resolved, key=lambda use: (use[0], use[1] or "")):
                if product := snapshot.products.get(aggregate.resolved[name, domain]):
                    yield file, name, domain, product.slug


def _answers(snapshot: Snapshot) -> Iterator[Row]:
    for slug, board in sorted(snapshot.leaderboards.items()):
        for answer in board.counted:
            poll = answer.answer.poll
            yield slug, answer.model, poll.id, poll.polled_at, answer.stale


def _rankings(snapshot: Snapshot) -> Iterator[Row]:
    for slug, board in sorted(snapshot.leaderboards.items()):
        for entry in board.entries:
            product = snapshot.products[entry.product]
            yield (
                slug, entry.rank, product.slug, product.name, entry.score, entry.appearances,
                entry.tied,
            )  # fmt: skip


def _categories(snapshot: Snapshot) -> Iterator[Row]:
    topics: dict[str, str] = {}
    for topic in snapshot.summary.topics:
        for board in topic.leaderboards:
            # A category may be in several topics; the column holds the first.
            topics.setdefault(board.slug, topic.slug)
    for slug, board in sorted(snapshot.leaderboards.items()):
        agreement = board.agreement
        yield (
            slug, board.category.title, board.question, topics.get(slug), board.updated,
            len(board.counted), board.certainty.level, agreement and agreement.label,
            agreement and agreement.overlap, snapshot.products[board.entries[0].product].slug,
            board.entries[0].tied, sum(board.rules.values()), len(board.rules), board.answers,
            board.polls,
        )  # fmt: skip


def _instruments(snapshot: Snapshot) -> Iterator[Row]:
    for id_, own in sorted(snapshot.catalogue.instruments.items()):
        yield (
            id_, own.api, own.model, own.web_search, own.structured, own.system, own.prompt,
            msgspec.json.encode(own.request, order="sorted").decode(),
        )  # fmt: skip


def _products(snapshot: Snapshot) -> Iterator[Row]:
    for product in sorted(snapshot.products.values(), key=attrgetter("slug")):
        yield product.slug, product.name, product.domain, product.mentions, product.first_mention


def _changes(snapshot: Snapshot) -> Iterator[Row]:
    # Oldest first, so that a newer dataset adds its rows at the end.
    for change in reversed(snapshot.summary.changes):
        before, after = snapshot.products[change.previous], snapshot.products[change.current]
        yield (
            change.poll, change.slug, change.model, before.slug, after.slug, change.previous_at,
            change.current_at, change.confirmed,
        )  # fmt: skip


def _track_record(snapshot: Snapshot) -> Iterator[Row]:
    for level, agreed in sorted(snapshot.summary.track_record.agreed.items()):
        yield level, sum(agreed), len(agreed)


LINE_TABLES: dict[str, Callable[[Line], Iterator[Row]]] = {"polls": _polls, "picks": _picks}
"""Tables over lines of history, in Parquet alone: by name what yields the rows of a line."""
SNAPSHOT_TABLES: dict[str, Callable[[Snapshot], Iterator[Row]]] = {
    "answers": _answers,
    "categories": _categories,
    "changes": _changes,
    "instruments": _instruments,
    "names": _names,
    "products": _products,
    "rankings": _rankings,
    "track_record": _track_record,
}
"""Tables over the snapshot, in Parquet and CSV: by name what yields the rows."""
BY_DAY = "rankings_by_day"
"""The table of rankings as of closed days, in Parquet alone: its rows need a category's polls."""
ALL = msgspec.json.decode(
    (Path(__file__).parents[2] / "templates/tables.json").read_bytes(), type=dict[str, Table]
)
"""All tables by name, in the order in which they are described."""
