"""Rows as files: Parquet, the one place that knows pyarrow (the extra ``data``), and CSV."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from datetime import datetime
from importlib.util import find_spec
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from store.times import rfc3339

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from store.dataset.tables import Column, Row, Table

ROW_GROUP = 20_000
"""Rows read together: 0.5 MB of polls, so that one category costs little and statistics are few."""
_BATCH = 2_000
"""Rows that are turned at a time: as Python objects they take ten times their room in Arrow."""
_GZIP_LEVEL = 6
_WORDS = {True: "true", False: "false"}
MOST = 1 << 30
"""Bytes that a compressed file may unpack to: 50 times a month of 1,425 categories asked daily."""


def has_parquet() -> bool:
    """Whether the extra ``data`` is installed."""
    return find_spec("pyarrow") is not None


def parquet(table: Table, rows: Iterable[Row]) -> bytes:
    """Rows as Parquet, zstd; one version of pyarrow always gives the same bytes."""
    import pyarrow as pa  # noqa: PLC0415 - 0.4 s, and an extra
    import pyarrow.parquet as pq  # noqa: PLC0415

    pa.set_memory_pool(pa.system_memory_pool())  # the others keep 40 MB of a month for later
    fields = [pa.field(column.name, _arrow_type(column)) for column in table.columns]
    sink, schema = io.BytesIO(), pa.schema(fields)
    batches = (pa.record_batch([*_arrays(schema, some)], schema) for some in _columns(rows))
    with pq.ParquetWriter(sink, schema, compression="zstd") as writer:
        while group := list(islice(batches, ROW_GROUP // _BATCH)):
            writer.write_table(pa.Table.from_batches(group))
    return sink.getvalue()


def _columns(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Rows as columns, a few rows at a time."""
    remaining = iter(rows)
    while some := list(islice(remaining, _BATCH)):
        yield list(zip(*some, strict=True))


def _arrays(schema: Any, columns: Iterable[Row]) -> Iterator[Any]:
    import pyarrow as pa  # noqa: PLC0415 - as above

    for type_, each in zip(schema.types, columns, strict=True):
        plain: Iterable[Any] = each
        if pa.types.is_nested(type_):
            plain = msgspec.to_builtins(each)
        elif pa.types.is_timestamp(type_):
            plain = map(datetime.fromisoformat, each)
        yield pa.array(plain, type_)


def parquet_rows(table: Table, data: bytes) -> list[Row]:
    """The rows of a Parquet file, as they were written.

    Raises:
        ValueError: it is no Parquet file, or has other columns.
    """
    import pyarrow.parquet as pq  # noqa: PLC0415 - as above

    found = pq.read_table(io.BytesIO(data))
    if tuple(found.column_names) != table.names:
        raise ValueError(f"its columns are {', '.join(found.column_names)}")
    columns = [
        [value and rfc3339(value) for value in each.to_pylist()]
        if column.type == "datetime"
        else each.to_pylist()
        for column, each in zip(table.columns, found.columns, strict=True)
    ]
    return list(zip(*columns, strict=True))


def csv_bytes(table: Table, rows: Iterable[Row]) -> bytes:
    """The slim table as UTF-8 with LF; no value and an empty text are both an empty field."""
    text, slim = io.TextIOWrapper(io.BytesIO(), "utf-8", newline=""), table.slim()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(slim.names)
    for some in _columns(rows):
        kept = [
            map(_WORDS.get, each) if column.type == "boolean" else each
            for column, each in zip(table.columns, some, strict=True)
            if column in slim.columns
        ]
        writer.writerows(zip(*kept, strict=True))
    text.seek(0)
    return text.buffer.read()


def packed(data: bytes) -> bytes:
    """The same bytes compressed, without the time at which that was done."""
    return gzip.compress(data, _GZIP_LEVEL, mtime=0)


def unpacked(data: bytes) -> bytes:
    """What was compressed.

    Raises:
        ValueError: it is no gzip file, or unpacks to more than any month holds.
    """
    reader = zlib.decompressobj(wbits=31)
    try:
        found = reader.decompress(data, MOST)
    except zlib.error as error:
        raise ValueError(f"it is no gzip file: {error}") from None
    if not reader.eof or reader.unused_data:
        raise ValueError(f"it is cut short, or holds more than {MOST:,} bytes")
    return found


def _arrow_type(column: Column) -> Any:
    import pyarrow as pa  # noqa: PLC0415 - as above

    texts = pa.list_(pa.string())
    named: list[tuple[str, Any]] = [("product", pa.string())]
    small = pa.int8() if column.name in ("rank", "points") else pa.int64()
    return {
        "string": pa.string(),
        "integer": small,
        "number": pa.float64(),
        "boolean": pa.bool_(),
        "datetime": pa.timestamp("ms", tz="UTC"),
        "texts": texts,
        "picks": pa.list_(
            pa.struct(
                [
                    ("rank", pa.int8()),
                    *named,
                    ("domain", pa.string()),
                    ("reason", pa.string()),
                    ("fixes", texts),
                ]
            )
        ),
        "misses": pa.list_(pa.struct([*named, ("reason", pa.string())])),
    }[column.type]
