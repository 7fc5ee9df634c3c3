"""Every mistake of a data file that failed to load, as a sentence with line and column."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import msgspec
from rapidfuzz import process

from store import positions
from store.records import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from store.records import DataFile

_KINDS = {
    "string": "text in double quotes",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list in [ ]",
    "object": "an object in { }",
    "null": "null",
}
_SECRET = ("key_env", "extra")  # where a key may be pasted by mistake; messages are public
_SHOWN = 60
_PATH = re.compile(r" - at `(?:key in )?\$(.*)`$")
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\[\.\.\.\]")


def explain(name: str, data: bytes, kind: type[DataFile], error: Exception) -> Iterator[Problem]:
    """Every mistake of a file that failed to load, by place; at least one.

    ``error`` is what the reader said; it counts only where nothing better is found.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as bad:
        before = data[: bad.start].decode()
        yield Problem(
            name,
            *positions.line_and_column(before, len(before)),
            f"byte 0x{data[bad.start]:02x} is not UTF-8 text; save the file as UTF-8",
        )
        return
    parsed = positions.parse(text)
    found = {(slip.offset, slip.message) for slip in parsed.slips}
    if parsed.complete:
        found.update(_schema_errors(parsed, kind))
    for offset, message in sorted(found or {_as_the_reader_said(parsed, error)}):
        yield Problem(name, *positions.line_and_column(text, offset), message)


def _schema_errors(parsed: positions.Parsed, kind: type[DataFile]) -> Iterator[tuple[int, str]]:
    """Offset and sentence of everything in a file that its schema does not allow."""
    from jsonschema import Draft202012Validator, FormatChecker, validators  # noqa: PLC0415 - 60 ms, rarely needed

    exact = Draft202012Validator.TYPE_CHECKER.redefine("integer", _is_whole)
    validator = validators.extend(Draft202012Validator, type_checker=exact)
    formats = FormatChecker(["date"])
    for error in validator(msgspec.json.schema(kind), format_checker=formats).iter_errors(
        parsed.value
    ):
        yield from _told(parsed, error)


def _is_whole(_: Any, value: Any) -> bool:
    """Whether a number is written without a point, as the reader wants it."""
    return isinstance(value, int) and not isinstance(value, bool)


def _told(parsed: positions.Parsed, error: Any) -> Iterator[tuple[int, str]]:
    path: positions.JsonPath = tuple(error.absolute_path)
    if path in parsed.doubtful:
        return
    if error.validator == "additionalProperties":
        known = list(error.schema["properties"])
        for key in error.instance:
            if key not in known:
                yield parsed.offsets[(*path, key)], _unknown_key(key, known)
    elif "propertyNames" in error.absolute_schema_path:
        message = f"{_shown(error.instance)} must be {error.schema['description']}"
        yield parsed.offsets[(*path, error.instance)], message
    elif error.validator == "anyOf" and (closer := _of_the_type(error)):
        for each in closer:
            yield from _told(parsed, each)
    else:
        message = _sentence(_where(path), error)
        if not set(_SECRET).isdisjoint(path):
            message = f"{_where(path)} must be {_wanted(error)}"
        yield parsed.offsets.get(path, 0), message


def _of_the_type(error: Any) -> list[Any]:
    """Of a value that may be null: what is wrong with it if its type was right."""
    return [each for each in error.context if each.validator != "type"]


def _unknown_key(key: str, known: list[str]) -> str:
    close = process.extractOne(key, known, score_cutoff=60)
    hint = f'did you mean "{close[0]}"?' if close else f"allowed are {', '.join(sorted(known))}"
    return f'unknown key "{key}": {hint}'


def _sentence(where: str, error: Any) -> str:
    """What a value should have been, in words."""
    limit, shown = error.validator_value, _shown(error.instance)
    match error.validator:
        case "required":
            missing = (f'"{key}"' for key in limit if key not in error.instance)
            fault = f"lacks {', '.join(missing)}"
        case "type":
            fault = f"must be {_KINDS[limit]}, not {shown}"
        case "anyOf":
            kinds = " or ".join(_KINDS[option["type"]] for option in limit)
            fault = f"must be {kinds}, not {shown}"
        case "enum" if where == "version":
            fault = f"{shown} is unknown; this program reads version {limit[0]}"
        case "enum":
            fault = f"is {shown}; it must be one of {', '.join(map(_shown, limit))}"
        case "pattern":
            fault = f"is {shown}; it must be {error.schema['description']}"
        case "format":
            fault = f"is {shown}, which is no date such as 2026-11-20"
        case _:
            fault = _bounds(error)
    return f"{where} {fault}"


def _wanted(error: Any) -> str:
    """What a value should have been, with nothing of what it is."""
    described: str | None = error.schema.get("description")
    return described or "an object in { }"


def _bounds(error: Any) -> str:
    limit, value = error.validator_value, error.instance
    match error.validator:
        case "minimum":
            return f"is {_shown(value)}; it must be at least {limit}"
        case "maximum":
            return f"is {_shown(value)}; it must be at most {limit:,}"
        case "maxLength":
            return f"has {len(value):,} characters; at most {limit:,} are allowed"
        case "minItems":
            return f"needs at least {limit} entries, not {len(value)}"
    return f"is not allowed: {error.message}"


def _as_the_reader_said(parsed: positions.Parsed, error: Exception) -> tuple[int, str]:
    """Offset and sentence of an error that names its own place, as msgspec's do."""
    message = str(error)
    match = _PATH.search(message)
    if match is None:
        return 0, message
    steps = _STEP.finditer(match.group(1))
    path = tuple(int(s.group(2)) if s.group(2) else s.group(1) for s in steps)
    return parsed.offsets.get(path, 0), f"{_where(path)}: {message[: match.start()]}"


def _where(path: positions.JsonPath) -> str:
    """A place in words that can be typed into a search: ``models[0].name``."""
    steps = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return steps.lstrip(".") or "the file"


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
