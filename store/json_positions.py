"""Where in a JSON text each value stands, and where the text is not strict JSON.

Only a file that failed to load is read this way, so that a curator gets line and column. Strict
means I-JSON (RFC 7493): no duplicate names, no NaN, no lone surrogates. Grammar is Python's own
decoder's to judge, which stops at the first mistake; of all else every mistake is found.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

from msgspec import Struct

MAX_DEPTH = 32
"""Levels of lists and objects in a data file: far more than any record needs, and no recursion."""

JsonPath = tuple[str | int, ...]

_NUMBER = r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?"
_TOKEN = re.compile(rf'"(?:[^"\\]|\\.)*"|[][{{}},:]|{_NUMBER}|[^][{{}},:"\s]+')
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_READ_DIGITS = 640
"""Digits of a whole number that Python reads under any setting; a double holds up to 309."""

_HALF = "the text holds half a surrogate pair, which is no character"
_NOT_CLOSED = "this text is not closed by a double quote on its line"
_GRAMMAR = tuple(
    (said, re.compile(there), told)
    for said, there, told in (
        (
            "",
            "<<<<<<<|=======|>>>>>>>",
            "a conflict of a merge is left in the file; keep one of its sides",
        ),
        ("", r"//|/\*|#", "JSON has no comments; take this one out"),
        (
            "",
            "['\u201c\u201d\u201e\u2018\u2019]",
            'text stands in straight double quotes ("), not in {0}',
        ),
        ("", r"True\b", "write true, not True"),
        ("", r"False\b", "write false, not False"),
        ("", r"(None|undefined)\b", "write null, not {0}"),
        ("", r"[-+]?(?i:nan|inf|infinity)\b", "{0} is no JSON number; write a number or null"),
        ("Expecting ','", r"(?<=[0-9])[\w.]", "a number goes on here in a way JSON does not know"),
        ("Expecting ','", '"', 'a "," is missing before this'),
        ("Expecting ','", "", 'a "," or a closing bracket is expected here'),
        ("Expecting ':'", "", 'a ":" is missing between this key and its value'),
        ("Expecting property", ",", 'a key is expected here; there is a "," too many'),
        ("Expecting property", "", "a key in double quotes is expected here"),
        ("Expecting value", r"\Z", "the file ends where a value is expected"),
        ("Expecting value", ",", 'a JSON value is expected here; there is a "," too many'),
        ("Expecting value", r"\w", "this word is no JSON value; text stands in double quotes"),
        ("Expecting value", "", "a JSON value is expected here"),
        ("Extra data", "", "there is more text after the end of the JSON value"),
        ("Unterminated", "", _NOT_CLOSED),
        ("Invalid control", r"\n", _NOT_CLOSED),
        ("Invalid control", "(?s:.)", "a raw control character: write \\u{code:04x}"),
        ("Invalid \\u", "", 'four hex digits stand after "\\u"; a backslash is written \\\\'),
        ("Invalid", r"\\?.", '"{0}" is no escape; a backslash is written \\\\'),
    )
)
"""How the decoder's message begins, a pattern at its place, our message; the first match wins."""


class SyntaxIssue(Struct, frozen=True):
    """A mistake in a text: where it starts, in characters, what it is, and of which value."""

    offset: int
    message: str
    path: JsonPath | None = None


class Parsed(Struct, frozen=True):
    """A JSON value, the offset of each of its parts (a member's is its key's), and the mistakes.

    Without a value to be checked further (``complete`` is false) there is at least one mistake.
    """

    value: Any
    offsets: dict[JsonPath, int]
    issues: tuple[SyntaxIssue, ...]
    complete: bool


def parse(text: str) -> Parsed:
    """Read a JSON text and remember where everything stands; raises nothing."""
    value: Any = None
    complete = True
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        return Parsed(None, {}, (_grammar_issue(error),), complete=False)
    except (ValueError, RecursionError):  # a number of thousands of digits, endless nesting
        complete = False
    scan = _Scan(text)
    return Parsed(value, scan.offsets, tuple(scan.issues), complete and not scan.is_cut)


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Line and column, both from 1, of a character offset."""
    start = text.rfind("\n", 0, offset) + 1
    return text.count("\n", 0, offset) + 1, offset - start + 1


def refuse_what_msgspec_takes(text: str) -> None:
    """See that a text holds nothing that msgspec passes over.

    Raises:
        ValueError: a key stands twice, or values are nested too deep.
    """
    value = json.loads(text, object_pairs_hook=_without_duplicates)
    if text.count("{") + text.count("[") > MAX_DEPTH and _is_too_deep(value, 0):
        raise ValueError("nested too deep")


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a key stands twice")
    return members


def _is_too_deep(value: Any, depth: int) -> bool:
    if depth > MAX_DEPTH:
        return True
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(_is_too_deep(part, depth + 1) for part in parts)


class _Scan:
    """A walk over the tokens of a text that is JSON to Python's decoder, as far as that reads."""

    def __init__(self, text: str) -> None:
        self.offsets: dict[JsonPath, int] = {}
        self.issues: list[SyntaxIssue] = []
        self.is_cut = False
        self._text = text
        self._path: list[Any] = []  # of the next value; None where a key comes first
        for match in _TOKEN.finditer(text):
            self._take(match.group(), match.start())
            if self.is_cut:
                break

    def _take(self, part: str, at: int) -> None:
        path = self._path
        if part in "}]":
            path.pop()
        elif part == ",":
            path[-1] = path[-1] + 1 if isinstance(path[-1], int) else None
        elif path and path[-1] is None:
            self._key(part, at)
        elif part != ":":
            self._value(part, at)

    def _key(self, part: str, at: int) -> None:
        self._path[-1] = json.loads(part)
        path = tuple(self._path)
        if path in self.offsets:
            line, _ = line_and_column(self._text, self.offsets[path])
            self._note(at, f"this key stands here again; it is already in line {line}")
        self.offsets[path] = at
        if _SURROGATE.search(self._path[-1]):
            self._note(at, _HALF)

    def _value(self, part: str, at: int) -> None:
        path = tuple(self._path)
        self.offsets.setdefault(path, at)
        if len(path) > MAX_DEPTH:
            self._note(at, f"nested deeper than {MAX_DEPTH} levels")
            self.is_cut = True
        elif part in "{[":
            self._path.append(None if part == "{" else 0)
        elif part in ("NaN", "Infinity", "-Infinity"):
            self._note(at, f"{part} is no JSON number; write a number or null", path)
        elif part.startswith('"'):
            if _SURROGATE.search(json.loads(part)):
                self._note(at, _HALF, path)
        elif part[-1].isdigit() and math.isinf(float(part)):
            self._note(at, "this number is too large", path)
            self.is_cut = len(part) > _READ_DIGITS

    def _note(self, at: int, message: str, path: JsonPath | None = None) -> None:
        self.issues.append(SyntaxIssue(at, message, path))


def _grammar_issue(error: json.JSONDecodeError) -> SyntaxIssue:
    """What is wrong where the decoder stopped, in words that say what to do."""
    text, at = error.doc, error.pos
    before = text[:at].rstrip()
    if text.startswith("\ufeff"):
        return SyntaxIssue(
            0, "the file starts with a byte order mark; save it as UTF-8 without one"
        )
    if not text.strip():
        return SyntaxIssue(len(text), "the file is empty")
    bracket = text[at:].lstrip(" \t\r\n,")[:1]
    comma = at if text[at : at + 1] == "," else len(before) - 1
    if bracket in ("}", "]") and text[comma] == ",":
        return SyntaxIssue(comma, f'this "," is too many before "{bracket}"')
    for said, there, told in _GRAMMAR:
        if error.msg.startswith(said) and (found := there.match(text, at)):
            start = text.rfind('"', 0, at + 1) if told == _NOT_CLOSED else at
            code = ord(text[at]) if at < len(text) else 0
            return SyntaxIssue(start, told.format(found.group(), code=code))
    return SyntaxIssue(at, error.msg)
