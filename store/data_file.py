"""One hand-edited file: its bytes in, a record or every mistake in it out.

Messages are public and say where a value stands; none quotes it, in case a key was pasted there.
Only a file that failed to load is read a second time, so that a curator gets line and column.
JSON is strict here, as I-JSON is (RFC 7493): no duplicate names, no NaN, no lone surrogates.
Python's own decoder judges the grammar and stops at the first mistake; every other kind of mistake
is listed in full.
"""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from rapidfuzz import process

from store.disk import MISSING, Signature, opened, real_path, signature_of
from store.records import (
    FOLDERS,
    GOVERNING,
    SINGLE,
    DataFile,
    Models,
    Problem,
    Severity,
    Topics,
    instrument_id,
)
from store.text import ascii_url, is_slug

JsonPath = tuple[str | int, ...]
"""The keys and indexes that lead to a value of a JSON text."""

MAX_BYTES = 1 << 20

UNREAD: Signature = (-1, 0, 0, 0)
"""The signature of a file that could not be read, perhaps only just now: no file has it."""

_REFUSED = {
    errno.ELOOP: "the file is a symbolic link that leads out of the data directory, which is not "
    "followed; put the file itself here",
    errno.EINVAL: "this is not a regular file; put a file here, or take it away",
    errno.EFBIG: f"the file is larger than {MAX_BYTES:,} bytes; no data file needs to be",
}
"""Why a file is not read, by the number of the error."""

_KINDS = {
    "string": "text in double quotes",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list in [ ]",
    "object": "an object in { }",
    "null": "null",
}
_BOUNDS = {"minimum": "at least", "exclusiveMinimum": "more than", "maximum": "at most"}

_PATH = re.compile(r" - at `(?:key in )?\$(.*)`$")
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\[\.\.\.\]")

_LEXEME = re.compile(r'"(?:[^"\\]|\\.)*"|[][{},:]|[^][{},:"\s]+')
_SURROGATE = re.compile(r"[\ud800-\udfff]")

_NOT_A_NUMBER = "{0} is not a JSON number; write a number or null"
_HALF = "the text holds half a surrogate pair, which is not a character"
_NOT_CLOSED = "this text is not closed by a double quote on its line"
_GRAMMAR = (
    ("<<<<<<<|=======|>>>>>>>", "a conflict of a merge is left in the file; keep one of its sides"),
    (r"//|/\*|#", "JSON has no comments; take this one out"),
    ("['\u201c\u201d\u201e\u2018\u2019]", 'text stands in straight double quotes ("), not in {0}'),
    (r"(True|False|None|undefined)\b", "JSON writes true, false and null, not {0}"),
    ("\0", "the file holds NUL bytes, as after a power cut; put it back from a copy"),
    (r"[-+]?(?i:nan|inf|infinity)\b", _NOT_A_NUMBER),
)
"""Common mistakes: a pattern at the place where the decoder stopped, and what to say of it."""
_EXPECTED = {
    "Expecting ','": 'a "," or a closing bracket is expected here',
    "Expecting ':'": 'a ":" is missing between this key and its value',
    "Expecting property": "a key in double quotes is expected here",
    "Expecting value": "a value is expected here; text stands in double quotes",
    "Extra data": "there is more text after the end of the JSON value",
    "Invalid control": "a raw control character; write an escape such as \\t in its place",
    "Invalid": "this is not an escape; a backslash is written \\\\",
}
"""All other mistakes: how the decoder's message begins, and what to say instead; first match."""


# Made at import: two threads that prepare a type at once crash the process (msgspec 0.22).
_DECODERS = {kind: msgspec.json.Decoder(kind) for kind in {*SINGLE.values(), *FOLDERS.values()}}


class LoadedFile(Struct, frozen=True):
    """A file: its last good record with that text, if any, and the problems found since.

    ``problems`` and ``signature`` are of the last reading.
    """

    record: DataFile | None
    text: str
    problems: tuple[Problem, ...]
    signature: Signature


def load(directory: Path, name: str) -> LoadedFile | None:
    """Return one file, by its relative name, with every problem in it; ``None`` if it just went."""
    path, signature = directory / name, MISSING
    try:
        data, signature = _read(real_path(path, directory))
    except FileNotFoundError:
        if name not in GOVERNING:
            return None
        message = "the file is missing; put it back (`flask init DIR` shows one)"
        return _unusable(name, signature, message)
    except OSError as error:
        is_lasting = error.errno in (errno.EINVAL, errno.EFBIG)
        signature = signature_of(path.lstat()) if is_lasting else UNREAD
        why = _REFUSED.get(error.errno or 0, f"cannot be read: {error.strerror}")
        return _unusable(name, signature, why)
    if name not in SINGLE and not is_slug(slug_of(name)):
        message = f'the file name "{slug_of(name)}" is not a slug; use a-z, 0-9 and single hyphens'
        return _unusable(name, signature, f"{message}, at most 100")
    if folder_of(name) == "instruments" and instrument_id(data) != slug_of(name):
        message = "it is not the text that its name is the digest of; put it back from a copy"
        return _unusable(name, signature, message)
    return decode(name, data, signature)


def decode(name: str, data: bytes, signature: Signature = MISSING) -> LoadedFile:
    """Return what the bytes of a data file say, or every mistake in them."""
    kind = SINGLE.get(name) or FOLDERS[folder_of(name)]
    try:
        record = _DECODERS[kind].decode(data)
        text = data.decode()
        # Only for keys that stand twice, which msgspec passes over.
        json.loads(text, object_pairs_hook=_without_duplicates)
    except (ValueError, RecursionError) as error:
        return LoadedFile(None, "", tuple(_explain(name, data, kind, error)), signature)
    problems = tuple(problem_in(text, name, path, message) for path, message in _repeats(record))
    return LoadedFile(None if problems else record, text, problems, signature)


def slug_of(name: str) -> str:
    """Return the slug of what a file of this name describes."""
    return name.rpartition("/")[2].removesuffix(".json")


def folder_of(name: str) -> str:
    """Return the folder that a file of this name is in; an empty one for those in none."""
    return name.rpartition("/")[0]


def _unusable(name: str, signature: Signature, message: str) -> LoadedFile:
    return LoadedFile(None, "", (Problem(name, 1, 1, message),), signature)


def _read(path: Path) -> tuple[bytes, Signature]:
    """Return a regular file's bytes, and its signature after they were read."""
    with opened(path) as handle:
        size = os.fstat(handle).st_size
        if size > MAX_BYTES:
            raise OSError(errno.EFBIG, "it is too large", path)
        # Whoever writes meanwhile leaves another signature, and the file is read again.
        return os.read(handle, size), signature_of(os.fstat(handle))


def problem_in(
    text: str, name: str, path: JsonPath, message: str, severity: Severity = "error"
) -> Problem:
    """Return a problem at one value of a file's text."""
    offset = _offsets(text).get(path, 0)
    return Problem(name, *line_and_column(text, offset), message, severity)


@lru_cache(maxsize=1)
def _offsets(text: str) -> Mapping[JsonPath, int]:
    """Return where everything stands in a text; cached, for a file can have a thousand problems."""
    return parse(text).offsets


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
            *line_and_column(before, len(before)),
            f"byte 0x{data[bad.start]:02x} is not UTF-8 text; save the file as UTF-8",
        )
        return
    parsed = parse(text)
    mistakes = set(parsed.mistakes.items())
    if parsed.offsets:
        # Checked by the whole schema, which knows every mistake; msgspec stops at the first.
        mistakes.update(_schema_errors(parsed, kind))
    if not mistakes:
        match = _PATH.search(str(error))
        steps = _STEP.finditer(match.group(1)) if match else ()
        path = tuple(int(s.group(2)) if s.group(2) else s.group(1) for s in steps)
        fault = "is not what the schema allows"
        if path == ("version",):  # 1.0, which is 1 to the schema alone
            fault = "must be the whole number 1"
        mistakes.add((parsed.offsets.get(path, 0), f"{_where(path)} {fault}"))
    for offset, message in sorted(mistakes):
        yield Problem(name, *line_and_column(text, offset), message)


def _schema_errors(parsed: JsonText, kind: type[DataFile]) -> Iterator[tuple[int, str]]:
    """Yield offset and sentence of everything in a file that its schema does not allow."""
    from jsonschema import Draft202012Validator, FormatChecker  # noqa: PLC0415 - 60 ms, rarely needed

    formats = FormatChecker(["date"])
    formats.checks("iri", raises=ValueError)(lambda url: not isinstance(url, str) or ascii_url(url))
    validator = Draft202012Validator(msgspec.json.schema(kind), format_checker=formats)
    for error in validator.iter_errors(parsed.value):
        yield from _sentences(parsed, error)


def _sentences(parsed: JsonText, error: Any) -> Iterator[tuple[int, str]]:
    """Yield offset and sentence for each mistake that an error of the validator stands for."""
    path: JsonPath = tuple(error.absolute_path)
    if error.validator == "additionalProperties":
        allowed = list(error.schema["properties"])
        for key in error.instance:
            if key not in allowed:
                close = process.extractOne(key, allowed, score_cutoff=60)
                hint = f'did you mean "{close[0]}"?' if close else f"allowed are {_listed(allowed)}"
                yield parsed.offsets[(*path, key)], f"unknown key: {hint}"
    elif "propertyNames" in error.absolute_schema_path:
        message = f"this key must be {error.schema['description']}"
        yield parsed.offsets[(*path, error.instance)], message
    elif error.validator == "anyOf" and (
        closer := [option for option in error.context if option.validator != "type"]
    ):  # a value that may be null: what is wrong with it if its type was right
        for option in closer:
            yield from _sentences(parsed, option)
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


class JsonText(Struct, frozen=True):
    """A JSON value, the offset of each of its parts, and the mistakes of the text by offset.

    Offsets are in characters; a member's is that of its key. A text that is not JSON has no part,
    and one mistake.
    """

    value: Any
    offsets: dict[JsonPath, int]
    mistakes: dict[int, str]


def parse(text: str) -> JsonText:
    """Read a JSON text and remember where everything stands; raises nothing."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        return JsonText(None, {}, dict([_mistake(error)]))
    except RecursionError:
        return JsonText(None, {}, {0: "the file is nested too deep"})
    except ValueError:  # Python reads no more than 4,300 digits
        return JsonText(None, {}, {0: "the file holds a number of thousands of digits"})
    return JsonText(value, *_places(text))


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Return line and column, both from 1, of a character offset."""
    start = text.rfind("\n", 0, offset) + 1
    return text.count("\n", 0, offset) + 1, offset - start + 1


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the members of an object; raise ``ValueError`` if a key stands twice."""
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a key stands twice")
    return members


def _places(text: str) -> tuple[dict[JsonPath, int], dict[int, str]]:
    """Return where everything stands in a text that Python's decoder takes, and its mistakes."""
    offsets: dict[JsonPath, int] = {}
    mistakes: dict[int, str] = {}
    path: list[Any] = []  # of the next value; None where a key comes first
    for match in _LEXEME.finditer(text):
        lexeme, at = match.group(), match.start()
        if lexeme in "}]":
            path.pop()
        elif lexeme == ",":
            path[-1] = path[-1] + 1 if isinstance(path[-1], int) else None
        elif path and path[-1] is None:
            path[-1] = json.loads(lexeme)
            if (place := tuple(path)) in offsets:
                line, _ = line_and_column(text, offsets[place])
                mistakes[at] = f"this key stands here again; it is already in line {line}"
            offsets[place] = at
        elif lexeme != ":":
            offsets.setdefault(tuple(path), at)
            if lexeme in "{[":
                path.append(None if lexeme == "{" else 0)
            elif lexeme in ("NaN", "Infinity", "-Infinity"):
                mistakes[at] = _NOT_A_NUMBER.format(lexeme)
        if lexeme.startswith('"') and _SURROGATE.search(json.loads(lexeme)):
            mistakes[at] = _HALF
    return offsets, mistakes


def _mistake(error: json.JSONDecodeError) -> tuple[int, str]:
    """Return offset and sentence of what is wrong where the decoder stopped."""
    text, at, reason = error.doc, error.pos, error.msg.removesuffix(" at")
    here = text[at : at + 1]
    # At a comma too many Python 3.13 stops at the comma, earlier versions at the bracket behind it.
    comma = at if here == "," else len(text[:at].rstrip()) - 1
    bracket = text[at:].lstrip(" \t\r\n,")[:1]
    message = next(
        (sentence for start, sentence in _EXPECTED.items() if reason.startswith(start)),
        "this is not JSON",
    )
    if text.startswith("\ufeff"):
        message = "the file starts with a byte order mark; save it as UTF-8 without one"
    elif not text.strip():
        at, message = len(text), "the file is empty"
    elif at >= len(text.rstrip()) and not reason.startswith("Unterminated"):
        message = "the file ends too early: a bracket is not closed, or a value is missing"
    elif reason.startswith("Unterminated") or (reason.startswith("Invalid c") and here == "\n"):
        at, message = text.rfind('"', 0, at + 1), _NOT_CLOSED
    elif bracket in ("}", "]") and text[comma] == ",":
        at, message = comma, f'this "," is too many before "{bracket}"'
    elif reason.startswith("Expecting ','") and here == '"':
        message = 'a "," is missing before this'
    else:
        for pattern, sentence in _GRAMMAR:
            if match := re.compile(pattern).match(text, at):
                return at, sentence.format(match.group())
    return at, message
