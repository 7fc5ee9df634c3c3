"""Answers as tables: the same rows as JSON Lines, or as CSV for spreadsheets and data frames."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from store.rankings.merging import PLACES
from store.web.shapes import JsonObject

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
    "inputTokens", "outputTokens", "usd", "latencyMs", "withheld",
)  # fmt: skip
"""The columns of a poll: product and domain of its ranks 1 to 5, and one reason, that of its #1."""


def jsonl(lines: Iterable[bytes]) -> bytes:
    """JSON values, one a line."""
    return b"".join(line + b"\n" for line in lines)


def rows_as(form: Literal["jsonl", "csv"], kind: type[JsonObject], rows: Sequence[Any]) -> bytes:
    """Flat objects of one kind, in the order given."""
    if form == "jsonl":
        return jsonl(map(msgspec.json.encode, rows))
    columns = [field.encode_name for field in msgspec.structs.fields(kind)]
    return _table_of(columns, map(msgspec.to_builtins, rows))


def polls_as(form: Literal["jsonl", "csv"], lines: Sequence[bytes]) -> bytes:
    """Lines of history: as they stand, or flattened to :data:`POLL_COLUMNS`."""
    if form == "jsonl":
        return jsonl(lines)
    return _table_of(POLL_COLUMNS, map(_flat, map(msgspec.json.decode, lines)))


def table(columns: Sequence[str], rows: Iterable[Iterable[Any]]) -> bytes:
    """Rows of plain values, ``None`` as nothing, as CSV: RFC 4180 in UTF-8 with LF."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(map(_cell, row) for row in rows)
    return text.getvalue().encode()


def _table_of(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> bytes:
    return table(columns, (map(row.get, columns) for row in rows))


def _flat(record: dict[str, Any]) -> dict[str, Any]:
    """A record of history without lists or objects in it."""
    places = {
        f"{name}{pick['rank']}": pick[name]
        for pick in record["ranking"]
        for name in ("product", "domain")
    }
    return {**record, **places, **(record["usage"] or {})}


def _cell(value: Any) -> Any:
    return ("true" if value else "false") if isinstance(value, bool) else value
