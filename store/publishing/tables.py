"""The tables of the dataset: which columns they have, and their rows from polls and rankings.

Rows are tuples in the order of the columns; dates and times are RFC 3339 text. Tables of lines
follow from the evidence and the ledger, all others also from the catalogue as it is now.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from store.counting import as_known, history_files
from store.rankings.merging import PLACES, ResolvedAnswer, merge
from store.rankings.wordings import Wordings, standing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from store.ledger import Ledger
    from store.records import Poll
    from store.snapshot import Snapshot

Row = tuple[Any, ...]
Type = Literal[
    "string", "integer", "number", "boolean", "date", "datetime", "texts", "picks", "misses"
]


class Column(Struct, frozen=True):
    """A column: its name, its type, and what it says."""

    name: str
    type: Type
    about: str


class Table(Struct, frozen=True):
    """A table: its name, what a row is, and its columns."""

    name: str
    about: str
    columns: tuple[Column, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def csv(self) -> str:
        """The name of its file in CSV."""
        return f"{self.name}.csv"

    @property
    def parquet(self) -> str:
        """The name of its file in Parquet."""
        return f"{self.name}.parquet"


class Line(Struct, frozen=True):
    """A line of history with its poll: its file, its number, when its day was closed, if it was."""

    poll: Poll
    file: str
    number: int
    day_closed: str | None


def _table(name: str, about: str, *columns: tuple[str, Type, str]) -> Table:
    return Table(name, about, tuple([Column(*column) for column in columns]))


POLLS = _table(
    "polls",
    "one poll: a question put to an assistant, and what came of it, failures included",
    ("id", "string", "the id of the poll, the start of the SHA-256 of its line"),
    ("slug", "string", "the category's slug when it was asked"),
    ("model", "string", "the assistant, as it was called when it was asked"),
    ("polled_at", "datetime", "when the poll was recorded, UTC"),
    ("question", "string", "the question as it was put"),
    ("instrument", "string", "what was asked with, but for the question; null: not recorded yet"),
    ("pick", "string", "the assistant's #1 as it wrote it; null if the poll failed"),
    ("ranking", "picks", "the picks, best first"),
    ("reason", "string", "why the #1 is first, in the assistant's words"),
    ("missed", "misses", "near misses, with reasons"),
    ("caveat", "string", "what the assistant says against its #1"),
    ("error", "string", "why the poll failed, or why it is withheld"),
    ("failure", "string", "the kind of failure"),
    ("notes", "texts", "what was mended in the answer"),
    ("served_model", "string", "the model that the provider says it used"),
    ("request_id", "string", "the provider's id of the request"),
    ("web_search", "boolean", "whether the assistant could search the web"),
    ("input_tokens", "integer", "tokens in, as the provider counted them"),
    ("output_tokens", "integer", "tokens out"),
    ("usd", "number", "what it cost, in US dollars"),
    ("latency_ms", "integer", "how long the answer took, in milliseconds"),
    ("withheld", "boolean", "whether the texts are withheld; such a poll counts nowhere"),
    ("crc", "string", "the CRC-32 of the sealed line, 8 hex digits"),
    (
        "file",
        "string",
        "the history file, without .jsonl; a category's former ones count as its own",
    ),
    ("line", "integer", "the number of the line in that file and in its evidence, from 1"),
    ("day_closed", "date", "the UTC day under which the ledger lists the line; null: still open"),
)
PICKS = _table(
    "picks",
    "one place in one answer, in the assistant's own spelling",
    ("poll_id", "string", "the poll"),
    ("slug", "string", "the category's slug when it was asked"),
    ("model", "string", "the assistant, as it was called when it was asked"),
    ("polled_at", "datetime", "when the poll was recorded, UTC"),
    ("question", "string", "the question as it was put"),
    ("instrument", "string", "what was asked with, but for the question; null: not recorded yet"),
    ("rank", "integer", "1 to 5"),
    ("points", "integer", "what the pick is worth: 5 for a #1, 1 for a #5"),
    ("product", "string", "the name as the assistant wrote it; see the table names"),
    ("domain", "string", "the domain that the assistant gave"),
    ("reason", "string", "why, in the assistant's words"),
    ("fixes", "texts", "what would make it rank higher, in the assistant's words"),
    (
        "file",
        "string",
        "the history file, without .jsonl; a category's former ones count as its own",
    ),
    ("line", "integer", "the number of the line in that file and in its evidence, from 1"),
    ("day_closed", "date", "the UTC day under which the ledger lists the line; null: still open"),
)
NAMES = _table(
    "names",
    "one spelling in one category, and the product that it stands for today",
    ("slug", "string", "the category's slug, as in picks"),
    ("name", "string", "the spelling, as product in picks"),
    ("domain", "string", "the domain given with it, as in picks"),
    ("product", "string", "the product's slug"),
)
ANSWERS = _table(
    "answers",
    "one answer that counts today: each assistant's latest success in a category",
    ("slug", "string", "the category"),
    ("model", "string", "the assistant, as it is called today"),
    ("poll_id", "string", "the poll"),
    ("polled_at", "datetime", "when it was recorded"),
    ("stale", "boolean", "whether it lags far behind the category's newest"),
)
RANKINGS = _table(
    "rankings",
    "one entry of one category's merged ranking as it stands",
    ("slug", "string", "the category"),
    ("rank", "integer", "1 and up"),
    ("product", "string", "the product's slug"),
    ("name", "string", "the product's name"),
    ("score", "integer", "the sum of points over the answers that count"),
    ("appearances", "integer", "how many of these answers name it"),
    ("tied", "boolean", "whether another entry is its equal in everything but the slug"),
)
BY_DAY = _table(
    "rankings_by_day",
    "one entry of one category's ranking as of a closed day on which it got lines",
    ("slug", "string", "the category"),
    ("day", "date", "the UTC day; until the category's next day here the ranking stays the same"),
    ("rank", "integer", "1 and up"),
    ("product", "string", "the product's slug"),
    ("score", "integer", "the sum of points over the answers that counted"),
    ("appearances", "integer", "how many of these answers name it"),
    ("tied", "boolean", "whether another entry is its equal in everything but the slug"),
)
CATEGORIES = _table(
    "categories",
    "one ranked category",
    ("slug", "string", "its address"),
    ("title", "string", "its title"),
    ("question", "string", "the question that the ranking answers"),
    ("topic", "string", "the slug of the first topic that has it; null: none"),
    ("updated", "date", "the UTC date of its newest counted poll"),
    ("models", "integer", "how many assistants are counted"),
    ("level", "string", "how sure the #1 is: clear, open, contradicted or unmeasured"),
    ("agreement", "string", "unanimous, majority or split; null: fewer than two assistants"),
    ("overlap", "number", "mean overlap of their lists, 0 to 1; null: fewer than two assistants"),
    ("first", "string", "the slug of the product at rank 1"),
    ("tied", "boolean", "whether another product is the #1's equal in everything but the slug"),
)
PRODUCTS = _table(
    "products",
    "one product that a successful poll named",
    ("slug", "string", "its address"),
    ("name", "string", "its name"),
    ("domain", "string", "its domain"),
    ("mentions", "integer", "successful polls that rank it, all time"),
    ("first_mention", "datetime", "when it was first named"),
)
CHANGES = _table(
    "changes",
    "one change of one assistant's #1",
    ("poll_id", "string", "the poll that brought it"),
    ("slug", "string", "the category"),
    ("model", "string", "the assistant"),
    ("from", "string", "the slug of the #1 before"),
    ("to", "string", "the slug of the #1 since"),
    ("from_at", "datetime", "when the one before was last named first"),
    ("to_at", "datetime", "when the other was first named first"),
    ("confirmed", "boolean", "whether the next answer agreed"),
)


def _polls(line: Line) -> Iterator[Row]:
    poll, usage = line.poll, line.poll.usage
    yield (
        poll.id, poll.slug, poll.model, poll.polled_at, poll.question, None, poll.pick,
        poll.ranking, poll.reason, poll.missed, poll.caveat, poll.error, poll.failure, poll.notes,
        poll.served_model, poll.request_id, poll.web_search,
        usage.input_tokens if usage else None, usage.output_tokens if usage else None,
        usage.usd if usage else None, poll.latency_ms, poll.withheld is True, poll.crc,
        line.file, line.number, line.day_closed,
    )  # fmt: skip


def _picks(line: Line) -> Iterator[Row]:
    poll = line.poll
    for pick in poll.ranking:
        yield (
            poll.id, poll.slug, poll.model, poll.polled_at, poll.question, None, pick.rank,
            PLACES + 1 - pick.rank, pick.product, pick.domain, pick.reason, pick.fixes,
            line.file, line.number, line.day_closed,
        )  # fmt: skip


def closings(ledger: Ledger, file: str) -> Callable[[int], str | None]:
    """Return what gives the day under which a file's line, by its number, was closed."""
    ends = sorted((end, day) for day, end in ledger.ends.get(file, ()) if day <= ledger.closed)
    days = list(accumulate((day for _, day in reversed(ends)), min))[::-1]
    numbers = [end for end, _ in ends]

    def day_of(line: int) -> str | None:
        at = bisect_left(numbers, line)
        return days[at] if at < len(days) else None

    return day_of


def rankings_by_day(
    snapshot: Snapshot, slug: str, polls: Sequence[tuple[int, Poll]]
) -> Iterator[Row]:
    """Yield the rankings of a category as of each closed day on which it got lines.

    ``polls`` are by their place in its line index. A day before an accepted loss has none.
    """
    index, ledger, aggregate = (
        snapshot.line_indexes[slug], snapshot.ledger, snapshot.aggregates[slug],
    )  # fmt: skip
    lost = max((ledger.accepted[f].day for f in index.files if f in ledger.accepted), default="")
    entries = (entry for file in index.files for entry in ledger.ends.get(file, ()))
    days = sorted({day for day, _ in entries if lost <= day <= ledger.closed})
    resolved, site = aggregate.resolved, snapshot.catalogue.site
    slugs = {
        id_: snapshot.products[id_].slug for id_ in resolved.values() if id_ in snapshot.products
    }
    former = snapshot.catalogue.former_names
    known = {place: as_known([poll], former)[0] for place, poll in polls if poll.succeeded}
    places: list[int] = []
    collected, newest = Wordings(aggregate.category.question), None
    for day in days:
        ends = [ledger.lines_on(file, day) for file in index.files]
        before, places = places, [i for i in sorted(known) if index.line[i] <= ends[index.file[i]]]
        if places[: len(before)] != before:  # files of former slugs, one longer than it was then
            before, collected = [], Wordings(aggregate.category.question)
        for place in places[len(before) :]:
            collected.add(ResolvedAnswer.of(known[place], aggregate.category, resolved))
        newest = known[places[-1]].polled_at if places else None
        stands = standing(collected.all(), newest, snapshot.models, site)
        for entry in merge(stands.counted, slugs) if stands else ():
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
            for name, domain in sorted(
                aggregate.resolved, key=lambda each: (each[0], each[1] or "")
            ):
                if product := snapshot.products.get(aggregate.resolved[name, domain]):
                    yield file, name, domain, product.slug


def _answers(snapshot: Snapshot) -> Iterator[Row]:
    for slug, board in sorted(snapshot.leaderboards.items()):
        for answer in board.counted:
            poll = answer.answered.poll
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
            topics.setdefault(board.slug, topic.slug)
    for slug, board in sorted(snapshot.leaderboards.items()):
        agreement = board.agreement
        yield (
            slug, board.category.title, board.question, topics.get(slug), board.updated,
            len(board.counted), board.certainty.level, agreement and agreement.label,
            agreement and agreement.overlap, snapshot.products[board.entries[0].product].slug,
            board.entries[0].tied,
        )  # fmt: skip


def _products(snapshot: Snapshot) -> Iterator[Row]:
    for product in sorted(snapshot.products.values(), key=attrgetter("slug")):
        yield product.slug, product.name, product.domain, product.mentions, product.first_mention


def _changes(snapshot: Snapshot) -> Iterator[Row]:
    for change in reversed(snapshot.summary.changes):
        before, after = snapshot.products[change.previous], snapshot.products[change.current]
        yield (
            change.poll, change.slug, change.model, before.slug, after.slug, change.previous_at,
            change.current_at, change.confirmed,
        )  # fmt: skip


OF_LINES: dict[Table, Callable[[Line], Iterator[Row]]] = {POLLS: _polls, PICKS: _picks}
"""The tables of lines, in Parquet alone, and their rows of one; lists are as the poll has them."""
WHOLE: dict[Table, Callable[[Snapshot], Iterator[Row]]] = {
    ANSWERS: _answers,
    CATEGORIES: _categories,
    CHANGES: _changes,
    NAMES: _names,
    PRODUCTS: _products,
    RANKINGS: _rankings,
}
"""The tables over the whole history, in Parquet and CSV, and their rows."""
ALL = (*OF_LINES, *WHOLE, BY_DAY)
