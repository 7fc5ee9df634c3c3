"""Endpoints of the JSON API: routes that say of themselves what the OpenAPI document says of them.

The query of a function, and what it answers, are read off its annotations; its summary and its
description off its docstring.
"""

import csv
import inspect
import io
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Generic, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct

from store.web.responses import Body, Route, snapshot_basis
from store.web.shapes import JsonObject
from store.web.view import View

MEDIA_TYPES = {
    "json": "application/json",
    "jsonl": "application/x-ndjson",
    "csv": "text/csv; charset=utf-8; header=present",
}
"""What ``format`` may ask for (RFC 8259; one JSON value a line; RFC 4180, but with LF)."""
JSON = MEDIA_TYPES["json"]
_encode = msgspec.json.Encoder().encode


Value = TypeVar("Value")


class Result(Struct, Generic[Value], frozen=True):
    """An answer, and the address where it goes on.

    ``may_be_kept`` is false where the next answer may differ, as while the sentence model is busy;
    `flask export` leaves it out.
    """

    value: Value
    following: str | None = None
    may_be_kept: bool = True


class Endpoint(Route, frozen=True, kw_only=True):
    """A route of the JSON API: its group, what it answers, and the codes of its own problems."""

    tag: str
    summary: str
    description: str
    answer: Any
    problems: tuple[str, ...]
    media_type: str

    @property
    def path(self) -> str:
        """The path as OpenAPI writes it."""
        return self.rule.replace("<", "{").replace(">", "}")


def endpoint(  # noqa: PLR0913 - each is a fact of its own
    rule: str,
    tag: str,
    *,
    page: Callable[[View, Any], str] = lambda view, _: view.at.page(),
    write: Callable[[Any, Any], bytes] = lambda value, _: _encode(value),
    problems: tuple[str, ...] = (),
    answer: Any = None,
    media_type: str = JSON,
    basis: Callable[..., Hashable] = snapshot_basis,
) -> Callable[[Callable[[View, Any], Any]], Endpoint]:
    """Make an endpoint of a function.

    ``page`` is the address of the page that shows the same, ``write`` makes the bytes of an answer
    to a query. ``answer`` is the type of the body where it is not what the function returns.
    """

    def decorate(function: Callable[[View, Any], Any]) -> Endpoint:
        hints = get_type_hints(function)  # types are stated once, in annotations
        returned = hints["return"]
        # The OpenAPI document describes what a result wraps.
        shape = get_args(returned)[0] if get_origin(returned) is Result else returned
        summary, _, description = (inspect.getdoc(function) or "").partition("\n\n")

        def encode(view: View, query: Any, value: Any) -> Body:
            result = value if isinstance(value, Result) else Result(value)
            type_ = MEDIA_TYPES.get(getattr(query, "format", "json"), JSON)
            # All headers that an endpoint gives its answers, whatever their format.
            headers = {
                "Content-Type": type_ if media_type == JSON else media_type,
                "Link": view.link(page(view, query), result.following),
            }
            body = write(result.value, query)
            return Body(body, headers, may_be_kept=result.may_be_kept)

        return Endpoint(
            rule=rule,
            name=_camel(function.__name__),
            function=function,
            query=hints["query"],
            encode=encode,
            basis=basis,
            strict=True,
            tag=tag,
            summary=summary.rstrip("."),
            description=" ".join(description.split()),
            answer=answer or shape,
            problems=problems,
            media_type=media_type.partition(";")[0],
        )

    return decorate


def rows(
    kind: type[JsonObject], of: Callable[[Any], Sequence[Any]] = lambda value: value
) -> Callable[[Any, Any], bytes]:
    """Return what writes an answer as JSON, or the flat objects in it as a table."""
    columns = [field.encode_name for field in msgspec.structs.fields(kind)]

    def write(value: Any, query: Any) -> bytes:
        if query.format == "json":
            return _encode(value)
        return rows_as(query.format, columns, map(_encode, of(value)))

    return write


def rows_as(
    form: Literal["jsonl", "csv"],
    columns: Sequence[str],
    lines: Iterable[bytes],
    flat: Callable[[dict[str, Any]], dict[str, Any]] = dict,
) -> bytes:
    """Return JSON objects as they stand, one a line, or, made flat, as CSV."""
    if form == "jsonl":
        return b"".join(line + b"\n" for line in lines)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")  # one line end in all our files, not CRLF
    writer.writerow(columns)
    for line in lines:
        row = flat(msgspec.json.decode(line))
        writer.writerow([_cell(row.get(column)) for column in columns])
    return text.getvalue().encode()


def _cell(value: Any) -> Any:
    if isinstance(value, list):
        return "; ".join(value)
    # As in JSON: Python would write "True".
    return ("true" if value else "false") if isinstance(value, bool) else value


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)
