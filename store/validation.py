"""Every mistake of a data file that failed to load, as a sentence with line and column."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import msgspec
from rapidfuzz import process

from store import json_positions
from store.records import Problem
from store.urls import is_url

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
_PRIVATE = ("site.json", "models.json")
"""Files into which a key may be pasted by mistake: messages, which are public, quote none of it."""

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
            *json_positions.line_and_column(before, len(before)),
            f"byte 0x{data[bad.start]:02x} is not UTF-8 text; save the file as UTF-8",
        )
        return
    parsed = json_positions.parse(text)
    found = {(issue.offset, issue.message) for issue in parsed.issues}
    quoted = name not in _PRIVATE
    if parsed.complete:
        found.update(_schema_errors(parsed, kind, quoted=quoted))
    for offset, message in sorted(found or {_as_the_reader_said(parsed, error, quoted=quoted)}):
        yield Problem(name, *json_positions.line_and_column(text, offset), message)


def _schema_errors(
    parsed: json_positions.Parsed, kind: type[DataFile], *, quoted: bool
) -> Iterator[tuple[int, str]]:
    """Offset and sentence of everything in a file that its schema does not allow."""
    from jsonschema import Draft202012Validator, FormatChecker, validators  # noqa: PLC0415 - 60 ms, rarely needed

    exact = Draft202012Validator.TYPE_CHECKER.redefine("integer", _is_whole)
    validator = validators.extend(Draft202012Validator, type_checker=exact)
    formats = FormatChecker(["date"])
    formats.checks("iri")(is_url)
    for error in validator(msgspec.json.schema(kind), format_checker=formats).iter_errors(
        parsed.value
    ):
        yield from _told(parsed, error, quoted=quoted)


def _is_whole(_: Any, value: Any) -> bool:
    """Whether a number is written without a point, as the reader wants it."""
    return isinstance(value, int) and not isinstance(value, bool)


def _told(parsed: json_positions.Parsed, error: Any, *, quoted: bool) -> Iterator[tuple[int, str]]:
    path: json_positions.JsonPath = tuple(error.absolute_path)
    if path in {issue.path for issue in parsed.issues}:
        return
    if error.validator == "additionalProperties":
        known = list(error.schema["properties"])
        for key in error.instance:
            if key not in known:
                yield parsed.offsets[(*path, key)], _unknown_key(key, known, quoted=quoted)
    elif "propertyNames" in error.absolute_schema_path:
        message = f"{_shown(error.instance)} must be {error.schema['description']}"
        yield parsed.offsets[(*path, error.instance)], message
    elif error.validator == "anyOf" and (
        closer := [each for each in error.context if each.validator != "type"]
    ):  # a value that may be null: what is wrong with it if its type was right
        for each in closer:
            yield from _told(parsed, each, quoted=quoted)
    else:
        message = f"{_where(path)} {_fault(error, quoted=quoted)}"
        yield parsed.offsets.get(path, 0), message


def _unknown_key(key: str, known: list[str], *, quoted: bool) -> str:
    close = process.extractOne(key, known, score_cutoff=60)
    hint = f'did you mean "{close[0]}"?' if close else f"allowed are {', '.join(sorted(known))}"
    return f'unknown key "{key}": {hint}' if quoted else f"an unknown key: {hint}"


def _fault(error: Any, *, quoted: bool) -> str:
    """What a value should have been, as the rest of a sentence that begins with its place."""
    limit, value = error.validator_value, error.instance
    shown, wanted = _shown(value), _wanted(error)
    match error.validator:
        case "required":
            missing = (f'"{key}"' for key in limit if key not in value)
            fault = f"lacks {', '.join(missing)}"
        case "enum" if error.path and error.path[-1] == "version":
            unknown = f"{shown} is unknown" if quoted else "is unknown"
            fault = f"{unknown}; this program reads version {limit[0]}"
        case "maxLength":
            fault = f"has {len(value):,} characters; at most {limit:,} are allowed"
        case "minItems":
            entries = "1 entry" if limit == 1 else f"{limit} entries"
            fault = f"needs at least {entries}, not {len(value)}"
        case _ if not quoted:
            fault = f"must be {wanted}"
        case "type" | "anyOf":
            fault = f"must be {wanted}, not {shown}"
        case _:
            fault = f"is {shown}; it must be {wanted}"
    return fault


def _wanted(error: Any) -> str:
    """What a value should have been, with nothing of what it is."""
    limit = error.validator_value
    match error.validator:
        case "type":
            wanted = _KINDS[limit]
        case "anyOf":
            wanted = " or ".join(_KINDS[option["type"]] for option in limit)
        case "enum":
            wanted = f"one of {', '.join(map(_shown, limit))}"
        case "minimum":
            wanted = f"at least {limit:,}"
        case "exclusiveMinimum":
            wanted = f"more than {limit:,}"
        case "maximum":
            wanted = f"at most {limit:,}"
        case "format" if limit == "date":
            wanted = "a date such as 2026-11-20"
        case _:
            wanted = error.schema.get("description", "what the schema allows")
    return wanted


def _as_the_reader_said(
    parsed: json_positions.Parsed, error: Exception, *, quoted: bool
) -> tuple[int, str]:
    """Offset and sentence of an error that names its own place, as msgspec's do."""
    message = str(error)
    match = _PATH.search(message)
    steps = _STEP.finditer(match.group(1)) if match else ()
    path = tuple(int(s.group(2)) if s.group(2) else s.group(1) for s in steps)
    offset = parsed.offsets.get(path, 0)
    if not quoted:
        return offset, f"{_where(path)} is not what the schema allows"
    return offset, f"{_where(path)}: {message[: match.start()]}" if match else message


def _where(path: json_positions.JsonPath) -> str:
    """A place in words that can be typed into a search: ``models[0].name``."""
    steps = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return steps.lstrip(".") or "the file"


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
