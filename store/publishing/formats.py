"""Rows as files: Parquet, the one place that knows pyarrow (the extra ``data``), and CSV."""

import csv
import gzip
import zlib
from collections.abc import Iterable
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from store.publishing.tables import Column, Row, Table

ROW_GROUP = 4_000
"""Rows read together: enough that statistics are few, not so many that they fill the memory."""


def has_parquet() -> bool:
    """Return whether the extra ``data`` is installed."""
    return find_spec("pyarrow") is not None


def tools() -> dict[str, str]:
    """Return the versions of the libraries that the bytes of gzip and Parquet files depend on."""
    arrow = {"pyarrow": version("pyarrow")} if has_parquet() else {}
    return {**arrow, "zlib": zlib.ZLIB_RUNTIME_VERSION}


def write_csv(table: Table, path: Path, rows: Iterable[Row]) -> None:
    """Write a table as CSV, UTF-8 with LF; an empty field is no value or an empty text."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(table.columns)
        for row in rows:
            writer.writerow([f"{x}".lower() if isinstance(x, bool) else x for x in row])


class Parquet:
    """A table as Parquet, zstd; one version of pyarrow always gives the same bytes."""

    def __init__(self, table: Table, path: Path) -> None:
        import pyarrow as pa  # noqa: PLC0415 - 0.4 s, and an extra
        import pyarrow.parquet as pq  # noqa: PLC0415

        pa.set_memory_pool(pa.system_memory_pool())  # the others keep 40 MB of a month for later
        self._arrow = pa
        self._schema = pa.schema(
            [(name, _arrow_type(pa, name, column)) for name, column in table.columns.items()]
        )
        self._writer = pq.ParquetWriter(path, self._schema, compression="zstd")
        self._rows: list[Row] = []

    def add(self, row: Row) -> None:
        """Add a row."""
        self._rows.append(row)
        if len(self._rows) == ROW_GROUP:
            self._write()

    def close(self) -> None:
        """Write what is left, and the end of the file."""
        if self._rows:
            self._write()
        self._writer.close()

    def _write(self) -> None:
        """Turn the rows that wait into columns, and write them."""
        pa, arrays = self._arrow, []
        columns = zip(*self._rows, strict=True)
        for type_, values in zip(self._schema.types, columns, strict=True):
            if pa.types.is_temporal(type_):  # they come as text
                arrays.append(pa.array(values, pa.string()).cast(type_))
            else:
                arrays.append(pa.array(msgspec.to_builtins(values), type_))
        self._rows.clear()  # no table is ever whole in memory
        self._writer.write_table(pa.Table.from_arrays(arrays, schema=self._schema))


def packed(data: bytes) -> bytes:
    """Return the same bytes compressed, without the time at which that was done."""
    return gzip.compress(data, 6, mtime=0)


def unpacked(data: bytes, most: int) -> bytes:
    """Return what was compressed, ``most`` bytes at most.

    Raises:
        ValueError: it is not a gzip file, or unpacks to more.
    """
    reader = zlib.decompressobj(wbits=31)
    try:
        text = reader.decompress(data, max(most, 1))
    except zlib.error as error:
        raise ValueError(f"it is not a gzip file: {error}") from None
    if not reader.eof or reader.unused_data:
        raise ValueError(f"it is cut short, or holds more than {most:,} bytes")
    return text


def _arrow_type(pa: Any, name: str, column: Column) -> Any:
    text, small = pa.string(), pa.int8()
    texts = pa.list_(text)
    named = [("product", text), ("domain", text), ("reason", text)]
    return {
        "string": text,
        "integer": small if name in ("rank", "points") else pa.int64(),
        "number": pa.float64(),
        "boolean": pa.bool_(),
        "date": pa.date32(),
        "datetime": pa.timestamp("ms", tz="UTC"),
        "texts": texts,
        "picks": pa.list_(pa.struct([("rank", small), *named, ("fixes", texts)])),
        "misses": pa.list_(pa.struct([("product", text), ("reason", text)])),
    }[column.type]
