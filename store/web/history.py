"""The poll history of a category: its shapes, and its lines as they stand in the files."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Struct, UnsetType

from store.rankings.merging import PLACES
from store.records import NearMiss, Pick, ServedFailure, Usage
from store.web import lookup
from store.web.endpoints import Result, endpoint, rows_as
from store.web.errors import Refused
from store.web.queries import HistoryQuery, parameters_of
from store.web.shapes import TIME_PATTERN, JsonObject, Time, doc
from store.web.view import View

_PICKS = tuple(range(1, PLACES + 1))
POLL_COLUMNS = (
    "id", "slug", "model", "polledAt", "question",
    *(f"{name}{rank}" for rank in _PICKS for name in ("product", "domain")),
    "reason", "caveat", "error", "failure", "servedModel", "requestId", "webSearch",
    "instrument", "inputTokens", "outputTokens", "usd", "searches", "latencyMs", "withheld",
)  # fmt: skip
"""The columns of a poll: product and domain of its ranks 1 to 5, and one reason, that of its #1."""


class PollRecord(JsonObject, frozen=True, kw_only=True):
    """One poll: its line of history; of a withheld one, what is published in its place."""

    v: Literal[1]
    id: Annotated[
        str,
        doc(
            "First 16 hex digits of the SHA-256 over the record's own bytes without its "
            "members id and crc.",
            pattern="^[0-9a-f]{16}$",
        ),
    ]
    slug: str
    model: str
    polled_at: Time
    question: str
    pick: Annotated[str | None, doc("The #1 as the model wrote it; null if failed.")]
    ranking: list[Pick]
    reason: Annotated[str | None, doc("Verbatim reason for the pick.")]
    missed: list[NearMiss]
    caveat: str | None
    error: Annotated[str | None, doc("Why a poll failed, or why it is withheld; else null.")]
    failure: Annotated[
        ServedFailure | None,
        doc("null for an answer, which has a pick; else what kind, or withheld."),
    ]
    notes: Annotated[list[str], doc("What was mended when the answer was read.")]
    served_model: str | None
    request_id: str | None
    web_search: bool
    instrument: Annotated[
        str | UnsetType,
        doc(
            "What it was asked with, see instruments.json: 12 hex digits; absent in "
            "older polls and those of sample models."
        ),
    ] = UNSET
    usage: Usage | None
    latency_ms: int | None
    cooldown_until: (
        Annotated[
            str,
            doc(
                "Present if the model is left alone until this time.",
                pattern=TIME_PATTERN,
                extra_json_schema={"format": "date-time"},
            ),
        ]
        | UnsetType
    ) = UNSET
    withheld: Annotated[bool | UnsetType, doc("Present and true when the texts are not shown.")] = (
        UNSET
    )
    crc: Annotated[str, doc("CRC-32 of the line without this member, in hex.")]


class Polls(Struct, frozen=True):
    """Lines of a category's history, newest first; ``cursor`` is the id to go on from, if any."""

    lines: list[bytes]
    cursor: str | None


def _write_polls(polls: Polls, query: HistoryQuery) -> bytes:
    if query.format == "json":
        # The lines are the records: nothing is parsed and written again.
        return b"[" + b",".join(polls.lines) + b"]"
    return rows_as(query.format, POLL_COLUMNS, polls.lines, flat_poll)


@endpoint(
    "/api/v1/history",
    "Over time",
    page=lambda view, query: view.at.category_page(query.slug),
    write=_write_polls,
    answer=list[PollRecord],
    problems=("unknown-category", "unknown-cursor"),
)
def get_history(view: View, query: HistoryQuery) -> Result[Polls]:
    """The poll history of a category.

    Every poll, newest first, failed ones included. A record is the line of the history
    file as it stands, but for the texts of one that is withheld. A category that is gone
    keeps its history.
    """
    slug, model = query.slug, lookup.model_parameter(view, query.model)
    index = view.snapshot.poll_indexes.get(slug)
    if index is None:  # a deleted category still has one
        lookup.refuse_category(view, slug)
    before = index.position(query.before) if query.before else None
    if query.before and before is None:
        why = "before is the id of no poll of this category. Take it from the end of the part "
        raise Refused("unknown-cursor", f"{why}before this one.")
    positions = index.newest(model, query.limit + 1, before)  # one more tells of a next part
    shown = positions[: query.limit]
    cursor = f"{index.ids[shown[-1]]:016x}" if len(positions) > query.limit else None
    following = None
    if cursor:
        part = parameters_of(query, model=model, limit=str(query.limit), before=cursor)
        following = view.at.api("history", **part)
    return Result(Polls(view.lines(index, shown), cursor), following)


def flat_poll(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record of history without lists or objects in it."""
    places = {
        f"{name}{pick['rank']}": pick[name]
        for pick in record["ranking"]
        for name in ("product", "domain")
    }
    return {**record, **places, **(record["usage"] or {})}  # null for failures and samples
