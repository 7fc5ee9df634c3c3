"""Rows as files: Parquet, the one place that knows pyarrow (the extra ``data``), and CSV."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from datetime import datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import msgspec

from store.times import rfc3339

if TYPE_CHECKING:
    from collections.abc import Iterable

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


class Files:
    """A table as files that grow with its rows: slim CSV, and Parquet if it is wanted."""

    def __init__(self, table: Table, *, parquet: bool) -> None:
        self.table = table
        self.rows = 0
        self._slim = table.slim().columns
        self._text = io.TextIOWrapper(io.BytesIO(), "utf-8", newline="")
        self._csv = csv.writer(self._text, lineterminator="\n")
        self._csv.writerow(table.slim().names)
        self._parquet = _Parquet(table) if parquet else None
        self._waiting: list[Row] = []

    def add(self, rows: Iterable[Row]) -> None:
        """Add rows."""
        for row in rows:
            self._waiting.append(row)
            if len(self._waiting) == _BATCH:
                self._write()

    def _write(self) -> None:
        if not self._waiting:
            return
        columns = list(zip(*self._waiting, strict=True))
        self.rows += len(self._waiting)
        self._waiting.clear()
        kept = [
            map(_WORDS.get, each) if column.type == "boolean" else each
            for column, each in zip(self.table.columns, columns, strict=True)
            if column in self._slim
        ]
        self._csv.writerows(zip(*kept, strict=True))
        if self._parquet:
            self._parquet.add(columns)

    def done(self) -> tuple[bytes, bytes | None]:
        """The CSV, UTF-8 with LF, and the Parquet; an empty field is no value or an empty text."""
        self._write()
        self._text.flush()
        csv_bytes = self._text.buffer.getvalue()
        return csv_bytes, self._parquet.done() if self._parquet else None


def files_of(table: Table, rows: Iterable[Row], *, parquet: bool) -> tuple[bytes, bytes | None]:
    """Rows as CSV and, if it is wanted, as Parquet; see :class:`Files`."""
    files = Files(table, parquet=parquet)
    files.add(rows)
    return files.done()


class _Parquet:
    """Parquet, zstd, from columns of rows; one version of pyarrow always gives the same bytes."""

    def __init__(self, table: Table) -> None:
        import pyarrow as pa  # noqa: PLC0415 - 0.4 s, and an extra
        import pyarrow.parquet as pq  # noqa: PLC0415

        pa.set_memory_pool(pa.system_memory_pool())  # the others keep 40 MB of a month for later
        self._schema = pa.schema([pa.field(c.name, _arrow_type(c)) for c in table.columns])
        self._sink = io.BytesIO()
        self._writer = pq.ParquetWriter(self._sink, self._schema, compression="zstd")
        self._group: list[Any] = []

    def add(self, columns: Iterable[Row]) -> None:
        import pyarrow as pa  # noqa: PLC0415 - as above

        arrays = list(map(_array, self._schema.types, columns))
        self._group.append(pa.record_batch(arrays, self._schema))
        if len(self._group) == ROW_GROUP // _BATCH:
            self._write()

    def _write(self) -> None:
        import pyarrow as pa  # noqa: PLC0415 - as above

        if self._group:
            self._writer.write_table(pa.Table.from_batches(self._group))
            self._group.clear()

    def done(self) -> bytes:
        self._write()
        self._writer.close()
        return self._sink.getvalue()


def _array(type_: Any, values: Row) -> Any:
    import pyarrow as pa  # noqa: PLC0415 - as above

    if pa.types.is_nested(type_):
        return pa.array(msgspec.to_builtins(values), type_)
    moment = pa.types.is_timestamp(type_)
    return pa.array(map(datetime.fromisoformat, values) if moment else values, type_)


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
