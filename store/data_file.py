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
from store.records import (
    FOLDERS,
    GOVERNING,
    SINGLE,
    DataFile,
    Models,
    Problem,
    Topics,
    instrument_id,
)
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
    """The last look at a file: the record and text in use, if any, and the problems in it.

    ``signature`` is that of the file when it was looked at.
    """

    record: DataFile | None
    text: str
    problems: tuple[Problem, ...]
    signature: Signature


def load(directory: Path, name: str) -> Loaded | None:
    """Return one file, by its relative name, with every problem in it; ``None`` if it just went."""
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
        message = f'the file name "{slug_of(name)}" is not a slug; use a-z, 0-9 and single hyphens'
        return _unusable(name, signature, f"{message}, at most 100")
    if folder_of(name) == "instruments" and instrument_id(data) != slug_of(name):
        message = "it is not the text that its name is the digest of; put it back from a copy"
        return _unusable(name, signature, message)
    return understand(name, data, signature)


def understand(name: str, data: bytes, signature: Signature = MISSING) -> Loaded:
    """Return what the bytes of a data file say, or every mistake in them."""
    kind = SINGLE.get(name) or FOLDERS[folder_of(name)]
    try:
        record = msgspec.json.decode(data, type=kind)
        text = data.decode()
        json_positions.refuse_duplicates(text)
    except (ValueError, RecursionError) as error:
        return Loaded(None, "", tuple(_explain(name, data, kind, error)), signature)
    problems = tuple(problem_in(text, name, path, message) for path, message in _repeats(record))
    return Loaded(None if problems else record, text, problems, signature)


def slug_of(name: str) -> str:
    """Return the slug of what a file of this name describes."""
    return name.rpartition("/")[2].removesuffix(".json")


def folder_of(name: str) -> str:
    """Return the folder that a file of this name is in; an empty one for those in none."""
    return name.rpartition("/")[0]


def _unusable(name: str, signature: Signature, message: str) -> Loaded:
    return Loaded(None, "", (Problem(name, 1, 1, message),), signature)


def _read(path: Path) -> tuple[bytes, Signature]:
    """Return a regular file's bytes, and its signature after they were read."""
    with opened(path) as handle:
        size = os.fstat(handle).st_size
        if size > MAX_BYTES:
            raise OSError(errno.EFBIG, "it is too large", path)
        return os.read(handle, size), signature_of(os.fstat(handle))


def problem_in(
    text: str, name: str, path: JsonPath, message: str, severity: Severity = "error"
) -> Problem:
    """Return a problem at one value of a file's text."""
    offset = _offsets(text).get(path, 0)
    return Problem(name, *json_positions.line_and_column(text, offset), message, severity)


@lru_cache(maxsize=1)
def _offsets(text: str) -> Mapping[JsonPath, int]:
    """Return where everything stands in a text; cached, for a file can have a thousand problems."""
    return json_positions.parse(text).offsets


def _repeats(record: DataFile) -> Iterator[tuple[JsonPath, str]]:
    """Yield place and sentence for each name of an assistant, or slug of a topic, that is taken."""
    if isinstance(record, Models):
        yield from _repeated_names(record)
    elif isinstance(record, Topics):
        yield from _repeated_slugs(("topics",), [topic.slug for topic in record.topics])
        for i, topic in enumerate(record.topics):
            yield from _repeated_slugs(("topics", i, "parts"), [part.slug for part in topic.parts])


def _repeated_names(models: Models) -> Iterator[tuple[JsonPath, str]]:
    owners: dict[str, int] = {}
    for i, assistant in enumerate(models.models):
        if owners.setdefault(assistant.name, i) != i:
            yield ("models", i, "name"), "two assistants have this name; give this one its own"
    for i, assistant in enumerate(models.models):
        for place, former in enumerate(assistant.former_names):
            if owners.setdefault(former, i) != i:
                message = "another assistant bears or claims this former name; take it out of one"
                yield ("models", i, "former_names", place), message


def _repeated_slugs(path: JsonPath, slugs: list[str]) -> Iterator[tuple[JsonPath, str]]:
    for i, slug in enumerate(slugs):
        if slug in slugs[:i]:
            yield (*path, i, "slug"), f'the slug "{slug}" is there twice; give each its own'


def _explain(name: str, data: bytes, kind: type[DataFile], error: Exception) -> Iterator[Problem]:
    """Yield every mistake of a file that failed to load, by place; at least one.

    ``error`` is the reader's; it counts only where nothing better can be said.
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
    mistakes = set(parsed.mistakes.items())
    if parsed.offsets:
        mistakes.update(_schema_errors(parsed, kind, quoted=name not in _PRIVATE))
    if not mistakes:
        match = _PATH.search(str(error))
        steps = _STEP.finditer(match.group(1)) if match else ()
        path = tuple(int(s.group(2)) if s.group(2) else s.group(1) for s in steps)
        message = f"{_where(path)} is not what the schema allows"
        mistakes.add((parsed.offsets.get(path, 0), message))
    for offset, message in sorted(mistakes):
        yield Problem(name, *json_positions.line_and_column(text, offset), message)


def _schema_errors(
    parsed: json_positions.Parsed, kind: type[DataFile], *, quoted: bool
) -> Iterator[tuple[int, str]]:
    """Yield offset and sentence of everything in a file that its schema does not allow.

    Keys that it does not know are ``quoted``, or not.
    """
    from jsonschema import Draft202012Validator, FormatChecker, validators  # noqa: PLC0415 - 60 ms, rarely needed

    exact = Draft202012Validator.TYPE_CHECKER.redefine("integer", _is_whole)
    validator = validators.extend(Draft202012Validator, type_checker=exact)
    formats = FormatChecker(["date"])
    formats.checks("iri", raises=ValueError)(_is_url)
    for error in validator(msgspec.json.schema(kind), format_checker=formats).iter_errors(
        parsed.value
    ):
        yield from _sentences(parsed, error, quoted=quoted)


def _is_url(value: object) -> bool:
    """Return whether a value is an address, or not text: that is another mistake."""
    return not isinstance(value, str) or bool(ascii_url(value))


def _is_whole(_: Any, value: Any) -> bool:
    """Return whether a number is written without a point, as the reader wants it."""
    return isinstance(value, int) and not isinstance(value, bool)


def _sentences(
    parsed: json_positions.Parsed, error: Any, *, quoted: bool
) -> Iterator[tuple[int, str]]:
    """Yield offset and sentence for each mistake that an error of the validator stands for."""
    path: JsonPath = tuple(error.absolute_path)
    if error.validator == "additionalProperties":
        allowed = list(error.schema["properties"])
        for key in error.instance:
            if key not in allowed:
                close = process.extractOne(key, allowed, score_cutoff=60)
                hint = f'did you mean "{close[0]}"?' if close else f"allowed are {_listed(allowed)}"
                subject = f'unknown key "{key}"' if quoted else "an unknown key"
                yield parsed.offsets[(*path, key)], f"{subject}: {hint}"
    elif "propertyNames" in error.absolute_schema_path:
        message = f"this key must be {error.schema['description']}"
        yield parsed.offsets[(*path, error.instance)], message
    elif error.validator == "anyOf" and (
        closer := [option for option in error.context if option.validator != "type"]
    ):  # a value that may be null: what is wrong with it if its type was right
        for option in closer:
            yield from _sentences(parsed, option, quoted=quoted)
    else:
        yield parsed.offsets.get(path, 0), f"{_where(path)} {_fault(error)}"


def _fault(error: Any) -> str:
    """Return what is wrong with a value: the rest of a sentence that begins with its place."""
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
            required = _KINDS[limit]
        case "anyOf":
            required = " or ".join(_KINDS[option["type"]] for option in limit)
        case "enum":
            required = f"one of {_listed(limit)}"
        case "minimum" | "exclusiveMinimum" | "maximum":
            required = f"{_BOUNDS[error.validator]} {limit:,}"
        case "format" if limit == "date":
            required = "a date such as 2026-11-20"
        case _:
            required = error.schema.get("description", "what the schema allows")
    return f"must be {required}"


def _where(path: JsonPath) -> str:
    """Return a place in words that can be typed into a search: ``models[0].name``."""
    steps = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return steps.lstrip(".") or "the file"


def _listed(values: Iterable[Any]) -> str:
    return ", ".join(json.dumps(value, ensure_ascii=False) for value in values)
