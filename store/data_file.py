"""One hand-edited file: its bytes in, a record or every mistake in it out.

Messages are public and say where a value stands; none quotes it, in case a key was pasted there.
"""

from __future__ import annotations

import errno
import json
import os
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct
from rapidfuzz import process

from store import json_positions
from store.disk import MISSING, Signature, opened, real_path, signature_of
from store.records import FOLDERS, GOVERNING, SINGLE, DataFile, Models, Problem, instrument_id
from store.text import ascii_url, is_slug

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from store.json_positions import JsonPath
    from store.records import Severity

MAX_BYTES = 1 << 20

UNREAD: Signature = (-1, 0, 0, 0)
"""The signature of a file that could not be read, perhaps only just now: no file has it."""

_REFUSED = {
    errno.ELOOP: "is a symbolic link that leads out of the data directory, which is not followed; "
    "put the file itself here",
    errno.EINVAL: "is not a regular file; put a file here, or take it away",
    errno.EFBIG: f"is larger than {MAX_BYTES:,} bytes; no data file needs to be",
}
"""Why a file is not read, by the number of the error."""

_GONE = "the file is missing; put it back, or write "
_MISSING = {
    "withheld.json": _GONE + '{"version": 1, "withheld": {}} if nothing is withheld',
    "topics.json": _GONE + '{"version": 1, "topics": []} if there are none',
}
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
"""Files whose keys are not repeated either: what was pasted there may be one, too."""

_BOUNDS = {"minimum": "at least", "exclusiveMinimum": "more than", "maximum": "at most"}

_PATH = re.compile(r" - at `(?:key in )?\$(.*)`$")
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\[\.\.\.\]")


class Loaded(Struct, frozen=True):
    """A file as it was last looked at: the record and text in use, if any, and the problems in it.

    ``signature`` is that of what was looked at.
    """

    record: DataFile | None
    text: str
    problems: tuple[Problem, ...]
    signature: Signature


def load(directory: Path, name: str) -> Loaded | None:
    """Read one file by its relative name, with every problem in it; ``None`` if it just went."""
    path, signature = directory / name, MISSING
    try:
        data, signature = _read(real_path(path, directory))
    except FileNotFoundError:
        if name not in GOVERNING:
            return None
        why = _MISSING.get(name, "the file is missing; put it back (`flask init DIR` shows one)")
        return _unusable(name, signature, why)
    except OSError as error:
        settled = error.errno in (errno.EINVAL, errno.EFBIG)
        signature = signature_of(path.lstat()) if settled else UNREAD
        why = _REFUSED.get(error.errno or 0, f"cannot be read: {error.strerror}")
        return _unusable(name, signature, why)
    if name not in SINGLE and not is_slug(slug_of(name)):
        message = f'the file name "{slug_of(name)}" is no slug; use a-z, 0-9 and single hyphens'
        return _unusable(name, signature, f"{message}, at most 100")
    if folder_of(name) == "instruments" and instrument_id(data) != slug_of(name):
        message = "it is not the text that its name is the digest of; put it back from a copy"
        return _unusable(name, signature, message)
    return understand(name, data, signature)


def understand(name: str, data: bytes, signature: Signature = MISSING) -> Loaded:
    """What the bytes of a data file say, or every mistake in them."""
    kind = SINGLE.get(name) or FOLDERS[folder_of(name)]
    try:
        record = msgspec.json.decode(data, type=kind)
        text = data.decode()
        json_positions.refuse_duplicates(text)
    except (ValueError, RecursionError) as error:
        return Loaded(None, "", tuple(_explain(name, data, kind, error)), signature)
    if isinstance(record, Models):
        problems = [problem_in(text, name, path, why) for path, why in _shared_names(record)]
        return Loaded(None if problems else record, text, tuple(problems), signature)
    return Loaded(record, text, (), signature)


def slug_of(name: str) -> str:
    """The slug of what a file of this name describes."""
    return name.rpartition("/")[2].removesuffix(".json")


def folder_of(name: str) -> str:
    """The folder that a file of this name is in; empty for those in none."""
    return name.rpartition("/")[0]


def _unusable(name: str, signature: Signature, message: str) -> Loaded:
    return Loaded(None, "", (Problem(name, 1, 1, message),), signature)


def _read(path: Path) -> tuple[bytes, Signature]:
    """A regular file's bytes, and its signature after they were read."""
    with opened(path) as handle:
        size = os.fstat(handle).st_size
        if size > MAX_BYTES:
            raise OSError(errno.EFBIG, "it is too large", path)
        return os.read(handle, size), signature_of(os.fstat(handle))


def problem_in(
    text: str, name: str, path: JsonPath, message: str, severity: Severity = "error"
) -> Problem:
    """A problem at one value of a file's text."""
    offset = _offsets(text).get(path, 0)
    return Problem(name, *json_positions.line_and_column(text, offset), message, severity)


@lru_cache(maxsize=1)
def _offsets(text: str) -> Mapping[JsonPath, int]:
    """Where everything stands in a text; kept because one file can have a thousand problems."""
    return json_positions.parse(text).offsets


def _shared_names(models: Models) -> Iterator[tuple[JsonPath, str]]:
    """Where an assistant claims a name, present or former, of another, and what to say of it."""
    owners: dict[str, int] = {}
    for i, assistant in enumerate(models.models):
        if owners.setdefault(assistant.name, i) != i:
            yield ("models", i, "name"), "two assistants have this name; give this one its own"
    for i, assistant in enumerate(models.models):
        for place, former in enumerate(assistant.former_names):
            if owners.setdefault(former, i) != i:
                message = "another assistant bears or claims this former name; take it out of one"
                yield ("models", i, "former_names", place), message


def _explain(name: str, data: bytes, kind: type[DataFile], error: Exception) -> Iterator[Problem]:
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
    mistakes = {(issue.offset, issue.message) for issue in parsed.issues}
    quoted = name not in _PRIVATE
    if parsed.complete:
        mistakes.update(_schema_errors(parsed, kind, quoted=quoted))
    for offset, message in sorted(mistakes or {_as_the_reader_said(parsed, error, quoted=quoted)}):
        yield Problem(name, *json_positions.line_and_column(text, offset), message)


def _schema_errors(
    parsed: json_positions.Parsed, kind: type[DataFile], *, quoted: bool
) -> Iterator[tuple[int, str]]:
    """Offset and sentence of everything in a file that its schema does not allow."""
    from jsonschema import Draft202012Validator, FormatChecker, validators  # noqa: PLC0415 - 60 ms, rarely needed

    exact = Draft202012Validator.TYPE_CHECKER.redefine("integer", _is_whole)
    validator = validators.extend(Draft202012Validator, type_checker=exact)
    formats = FormatChecker(["date"])
    formats.checks("iri", raises=ValueError)(_is_url)
    for error in validator(msgspec.json.schema(kind), format_checker=formats).iter_errors(
        parsed.value
    ):
        yield from _told(parsed, error, quoted=quoted)


def _is_url(value: object) -> bool:
    """Return whether a value is an address, or not text: that is another mistake."""
    return not isinstance(value, str) or bool(ascii_url(value))


def _is_whole(_: Any, value: Any) -> bool:
    """Whether a number is written without a point, as the reader wants it."""
    return isinstance(value, int) and not isinstance(value, bool)


def _told(parsed: json_positions.Parsed, error: Any, *, quoted: bool) -> Iterator[tuple[int, str]]:
    path: JsonPath = tuple(error.absolute_path)
    if path in {issue.path for issue in parsed.issues}:
        return
    if error.validator == "additionalProperties":
        known = list(error.schema["properties"])
        for key in error.instance:
            if key not in known:
                close = process.extractOne(key, known, score_cutoff=60)
                hint = f'did you mean "{close[0]}"?' if close else f"allowed are {_listed(known)}"
                named = f'unknown key "{key}"' if quoted else "an unknown key"
                yield parsed.offsets[(*path, key)], f"{named}: {hint}"
    elif "propertyNames" in error.absolute_schema_path:
        message = f"this key must be {error.schema['description']}"
        yield parsed.offsets[(*path, error.instance)], message
    elif error.validator == "anyOf" and (
        closer := [each for each in error.context if each.validator != "type"]
    ):  # a value that may be null: what is wrong with it if its type was right
        for each in closer:
            yield from _told(parsed, each, quoted=quoted)
    else:
        yield parsed.offsets.get(path, 0), f"{_where(path)} {_fault(error)}"


def _fault(error: Any) -> str:
    """What is wrong with a value, as the rest of a sentence that begins with its place."""
    limit, value = error.validator_value, error.instance
    match error.validator:
        case "required":
            return f"lacks {_listed([key for key in limit if key not in value])}"
        case "enum" if error.path and error.path[-1] == "version":
            return f"is unknown; this program reads version {limit[0]}"
        case "maxLength":
            return f"has {len(value):,} characters; at most {limit:,} are allowed"
        case "minItems":
            entries = "1 entry" if limit == 1 else f"{limit} entries"
            return f"needs at least {entries}, not {len(value)}"
        case "type":
            wanted = _KINDS[limit]
        case "anyOf":
            wanted = " or ".join(_KINDS[option["type"]] for option in limit)
        case "enum":
            wanted = f"one of {_listed(limit)}"
        case "minimum" | "exclusiveMinimum" | "maximum":
            wanted = f"{_BOUNDS[error.validator]} {limit:,}"
        case "format" if limit == "date":
            wanted = "a date such as 2026-11-20"
        case _:
            wanted = error.schema.get("description", "what the schema allows")
    return f"must be {wanted}"


def _as_the_reader_said(
    parsed: json_positions.Parsed, error: Exception, *, quoted: bool
) -> tuple[int, str]:
    """Offset and sentence of an error that names its own place, as msgspec's do."""
    message = str(error)
    match = _PATH.search(message)
    steps = _STEP.finditer(match.group(1)) if match else ()
    path = tuple(int(s.group(2)) if s.group(2) else s.group(1) for s in steps)
    if quoted:
        told = f"{_where(path)}: {message[: match.start()]}" if match else message
    else:
        told = f"{_where(path)} is not what the schema allows"
    return parsed.offsets.get(path, 0), told


def _where(path: JsonPath) -> str:
    """A place in words that can be typed into a search: ``models[0].name``."""
    steps = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return steps.lstrip(".") or "the file"


def _listed(values: Iterable[Any]) -> str:
    return ", ".join(json.dumps(value, ensure_ascii=False) for value in values)
