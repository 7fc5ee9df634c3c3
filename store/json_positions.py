"""Where in a JSON text each value stands, and where the text is not strict JSON.

Only a file that failed to load is read this way, so that a curator gets line and column. Strict
means I-JSON (RFC 7493): no duplicate names, no NaN, no lone surrogates. Grammar is Python's own
decoder's to judge, which stops at the first mistake; of all else every mistake is named.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

from msgspec import Struct

JsonPath = tuple[str | int, ...]

_NUMBER = r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?"
_LEXEME = re.compile(rf'"(?:[^"\\]|\\.)*"|[][{{}},:]|{_NUMBER}|[^][{{}},:"\s]+')
_SURROGATE = re.compile(r"[\ud800-\udfff]")

_TOO_LARGE = "this number is too large"
_NOT_A_NUMBER = "{0} is not a JSON number; write a number or null"
_HALF = "the text holds half a surrogate pair, which is not a character"
_NOT_CLOSED = "this text is not closed by a double quote on its line"
_GRAMMAR = (
    ("<<<<<<<|=======|>>>>>>>", "a conflict of a merge is left in the file; keep one of its sides"),
    (r"//|/\*|#", "JSON has no comments; take this one out"),
    ("['\u201c\u201d\u201e\u2018\u2019]", 'text stands in straight double quotes ("), not in {0}'),
    (r"(True|False|None|undefined)\b", "JSON writes true, false and null, not {0}"),
    (r"[-+]?(?i:nan|inf|infinity)\b", _NOT_A_NUMBER),
)
"""Common mistakes: a pattern at the place where the decoder stopped, and what to say of it."""


class Parsed(Struct, frozen=True):
    """A JSON value, the offset of each of its parts, and the mistakes of the text by offset.

    Offsets are in characters; a member's is that of its key. A text that is not JSON has no part,
    and one mistake.
    """

    value: Any
    offsets: dict[JsonPath, int]
    mistakes: dict[int, str]


def parse(text: str) -> Parsed:
    """Read a JSON text and remember where everything stands; raises nothing."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        return Parsed(None, {}, dict([_mistake(error)]))
    except RecursionError:
        return Parsed(None, {}, {0: "the file is nested too deep"})
    except ValueError:  # Python reads no more than 4,300 digits
        return Parsed(None, {}, {0: "the file holds a number of thousands of digits"})
    scan = _Scan(text)
    return Parsed(value, scan.offsets, scan.mistakes)


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Return line and column, both from 1, of a character offset."""
    start = text.rfind("\n", 0, offset) + 1
    return text.count("\n", 0, offset) + 1, offset - start + 1


def refuse_duplicates(text: str) -> None:
    """Check that no key of an object stands twice, which msgspec passes over.

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
    """A walk over the lexemes of a text that Python's decoder takes."""

    def __init__(self, text: str) -> None:
        self.offsets: dict[JsonPath, int] = {}
        self.mistakes: dict[int, str] = {}
        self._text = text
        self._path: list[Any] = []  # of the next value; None where a key comes first
        for match in _LEXEME.finditer(text):
            self._take(match.group(), match.start())

    def _take(self, lexeme: str, at: int) -> None:
        path = self._path
        if lexeme in "}]":
            path.pop()
        elif lexeme == ",":
            path[-1] = path[-1] + 1 if isinstance(path[-1], int) else None
        elif path and path[-1] is None:
            self._take_key(lexeme, at)
        elif lexeme != ":":
            self._take_value(lexeme, at)

    def _take_key(self, lexeme: str, at: int) -> None:
        self._path[-1] = json.loads(lexeme)
        path = tuple(self._path)
        if path in self.offsets:
            line, _ = line_and_column(self._text, self.offsets[path])
            self.mistakes[at] = f"this key stands here again; it is already in line {line}"
        self.offsets[path] = at
        if _SURROGATE.search(self._path[-1]):
            self.mistakes[at] = _HALF

    def _take_value(self, lexeme: str, at: int) -> None:
        self.offsets.setdefault(tuple(self._path), at)
        if lexeme in "{[":
            self._path.append(None if lexeme == "{" else 0)
        elif lexeme in ("NaN", "Infinity", "-Infinity"):
            self.mistakes[at] = _NOT_A_NUMBER.format(lexeme)
        elif lexeme.startswith('"'):
            if _SURROGATE.search(json.loads(lexeme)):
                self.mistakes[at] = _HALF
        elif lexeme[-1].isdigit() and math.isinf(float(lexeme)):
            self.mistakes[at] = _TOO_LARGE


def _mistake(error: json.JSONDecodeError) -> tuple[int, str]:
    """Return offset and sentence of what is wrong where the decoder stopped."""
    text, at, reason = error.doc, error.pos, error.msg
    here = text[at : at + 1]
    # At a comma too many Python 3.13 stops, earlier ones at the bracket behind it.
    comma = at if here == "," else len(text[:at].rstrip()) - 1
    bracket = text[at:].lstrip(" \t\r\n,")[:1]
    message = f"this is not JSON: {reason[0].lower()}{reason[1:]}"
    if text.startswith("\ufeff"):
        message = "the file starts with a byte order mark; save it as UTF-8 without one"
    elif not text.strip():
        at, message = len(text), "the file is empty"
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
