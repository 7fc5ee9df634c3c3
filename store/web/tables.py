"""Answers as tables: the same rows as JSON Lines, or as CSV for spreadsheets and data frames."""

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

import msgspec

from store.rankings.merging import PLACES

Format = Literal["json", "jsonl", "csv"]

MEDIA_TYPES: dict[Format, str] = {
    "json": "application/json",
    "jsonl": "application/x-ndjson",
    "csv": "text/csv; charset=utf-8; header=present",
}
"""What ``format`` may ask for (RFC 8259; one JSON value a line; RFC 4180, but with LF)."""

_PICKS = tuple(range(1, PLACES + 1))
POLL_COLUMNS = (
    "id", "slug", "model", "polledAt", "question",
    *(f"{name}{rank}" for rank in _PICKS for name in ("product", "domain")),
    "reason", "caveat", "error", "failure", "servedModel", "requestId", "webSearch",
    "instrument", "inputTokens", "outputTokens", "usd", "searches", "latencyMs", "withheld",
)  # fmt: skip
"""The columns of a poll: product and domain of its ranks 1 to 5, and one reason, that of its #1."""


def rows_as(
    form: Literal["jsonl", "csv"],
    columns: Sequence[str],
    lines: Iterable[bytes],
    flat: Callable[[dict[str, Any]], dict[str, Any]] = dict,
) -> bytes:
    """JSON objects as they stand, one a line; or, made flat, as CSV: RFC 4180 with LF."""
    if form == "jsonl":
        return b"".join(line + b"\n" for line in lines)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for line in lines:
        row = flat(msgspec.json.decode(line))
        writer.writerow([_cell(row.get(column)) for column in columns])
    return text.getvalue().encode()


def flat_poll(record: dict[str, Any]) -> dict[str, Any]:
    """A record of history without lists or objects in it."""
    places = {
        f"{name}{pick['rank']}": pick[name]
        for pick in record["ranking"]
        for name in ("product", "domain")
    }
    return {**record, **places, **(record["usage"] or {})}


def _cell(value: Any) -> Any:
    return ("true" if value else "false") if isinstance(value, bool) else value
