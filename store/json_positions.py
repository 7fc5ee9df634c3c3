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

JsonPath = tuple[str | int, ...]

_NUMBER = r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?"
_TOKEN = re.compile(rf'"(?:[^"\\]|\\.)*"|[][{{}},:]|{_NUMBER}|[^][{{}},:"\s]+')
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_ENDLESS = re.compile("-?[0-9]{640}")  # as many digits Python always reads

_TOO_LARGE = "this number is too large"
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
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        return Parsed(None, {}, (_grammar_issue(error),), complete=False)
    except RecursionError:
        return Parsed(None, {}, (SyntaxIssue(0, "the file is nested too deep"),), complete=False)
    except ValueError:  # a number of thousands of digits
        found = _ENDLESS.search(text)
        issue = SyntaxIssue(found.start() if found else 0, _TOO_LARGE)
        return Parsed(None, {}, (issue,), complete=False)
    scan = _Scan(text)
    return Parsed(value, scan.offsets, tuple(scan.issues), complete=True)


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Line and column, both from 1, of a character offset."""
    start = text.rfind("\n", 0, offset) + 1
    return text.count("\n", 0, offset) + 1, offset - start + 1


def refuse_duplicates(text: str) -> None:
    """See that no key of an object stands twice, which msgspec passes over.

    Raises:
        ValueError: one does.
    """
    json.loads(text, object_pairs_hook=_without_duplicates)


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a key stands twice")
    return members


class _Scan:
    """A walk over the tokens of a text that is JSON to Python's decoder, as far as that reads."""

    def __init__(self, text: str) -> None:
        self.offsets: dict[JsonPath, int] = {}
        self.issues: list[SyntaxIssue] = []
        self._text = text
        self._path: list[Any] = []  # of the next value; None where a key comes first
        for match in _TOKEN.finditer(text):
            self._take(match.group(), match.start())

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
        if part in "{[":
            self._path.append(None if part == "{" else 0)
        elif part in ("NaN", "Infinity", "-Infinity"):
            self._note(at, f"{part} is no JSON number; write a number or null", path)
        elif part.startswith('"'):
            if _SURROGATE.search(json.loads(part)):
                self._note(at, _HALF, path)
        elif part[-1].isdigit() and math.isinf(float(part)):
            self._note(at, _TOO_LARGE, path)

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
