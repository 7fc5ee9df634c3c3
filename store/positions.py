"""Where in a JSON text each value stands, and where the text is not strict JSON.

Only a file that failed to load is read this way, so that a curator gets line and column of every
mistake. Strict means I-JSON (RFC 7493): no duplicate names, no NaN, no lone surrogates.
"""

from __future__ import annotations

import json
import re
from typing import Any

from msgspec import Struct

MAX_DEPTH = 32

JsonPath = tuple[str | int, ...]

_SPACE = re.compile(r"[ \t\r\n]*")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_WORD = re.compile(r"[A-Za-z_]+")
_WORDS = {"true": True, "false": False, "null": None}
_SURROGATE = re.compile(r"[\ud800-\udfff]")


class Slip(Struct, frozen=True):
    """A mistake in a text: where it starts, in characters, and what it is."""

    offset: int
    message: str


class Parsed(Struct, frozen=True):
    """A JSON value, the offset of each of its parts (a member's is its key's), and the mistakes.

    After a mistake of syntax there is no value and that mistake is the last one.
    """

    value: Any
    offsets: dict[JsonPath, int]
    slips: tuple[Slip, ...]
    complete: bool


class _SyntaxSlip(Exception):
    def __init__(self, slip: Slip) -> None:
        super().__init__(slip.message)
        self.slip = slip


def parse(text: str) -> Parsed:
    """Read a JSON text and remember where everything stands; raises nothing."""
    reader = _Reader(text)
    try:
        value = reader.document()
    except _SyntaxSlip as error:
        return Parsed(None, reader.offsets, (*reader.slips, error.slip), complete=False)
    return Parsed(value, reader.offsets, tuple(reader.slips), complete=True)


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Line and column, both from 1, of a character offset."""
    start = text.rfind("\n", 0, offset) + 1
    return text.count("\n", 0, offset) + 1, offset - start + 1


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.offsets: dict[JsonPath, int] = {}
        self.slips: list[Slip] = []

    def document(self) -> Any:
        value = self.value((), 0)
        self.space()
        if self.at < len(self.text):
            raise self.error("there is more text after the end of the JSON value")
        return value

    def value(self, path: JsonPath, depth: int) -> Any:
        self.space()
        self.offsets.setdefault(path, self.at)
        if depth > MAX_DEPTH:
            raise self.error(f"nested deeper than {MAX_DEPTH} levels")
        match self.text[self.at : self.at + 1]:
            case "{":
                return self.members(path, depth)
            case "[":
                return self.items(path, depth)
            case '"':
                return self.string()
            case "":
                raise self.error("the text ends where a value is expected")
        return self.plain()

    def members(self, path: JsonPath, depth: int) -> dict[str, Any]:
        members: dict[str, Any] = {}
        self.at += 1
        if self.closes("}"):
            return members
        while True:
            self.space()
            start = self.at
            if self.text[start : start + 1] != '"':
                raise self.error('a key in double quotes is expected (or a "," is too many)')
            key = self.string()
            self.space()
            if self.text[self.at : self.at + 1] != ":":
                raise self.error('":" is expected after a key')
            self.at += 1
            if key in members:
                self.slips.append(Slip(start, f'"{key}" stands here for the second time'))
            self.offsets[(*path, key)] = start
            members[key] = self.value((*path, key), depth + 1)
            if self.ends("}"):
                return members

    def items(self, path: JsonPath, depth: int) -> list[Any]:
        items: list[Any] = []
        self.at += 1
        if self.closes("]"):
            return items
        while True:
            items.append(self.value((*path, len(items)), depth + 1))
            if self.ends("]"):
                return items

    def string(self) -> str:
        match = _STRING.match(self.text, self.at)
        if match is None:
            raise self.error('a string is not closed by a double quote, or has a wrong "\\" escape')
        value: str = json.loads(match.group())
        if _SURROGATE.search(value):
            self.slips.append(Slip(self.at, "half a surrogate pair is no character"))
        self.at = match.end()
        return value

    def plain(self) -> Any:
        if match := _NUMBER.match(self.text, self.at):
            self.at = match.end()
            return json.loads(match.group()) if len(match.group()) < 400 else 0  # noqa: PLR2004
        match = _WORD.match(self.text, self.at)
        if match is None or match.group() not in _WORDS:
            raise self.error("a JSON value is expected here")
        self.at = match.end()
        return _WORDS[match.group()]

    def space(self) -> None:
        match = _SPACE.match(self.text, self.at)
        self.at = match.end() if match else self.at

    def closes(self, bracket: str) -> bool:
        self.space()
        if self.text[self.at : self.at + 1] != bracket:
            return False
        self.at += 1
        return True

    def ends(self, bracket: str) -> bool:
        """Whether an object or array is over; else the comma before the next part is passed."""
        if self.closes(bracket):
            return True
        if not self.closes(","):
            raise self.error(f'"," or "{bracket}" is expected')
        return False

    def error(self, message: str) -> _SyntaxSlip:
        return _SyntaxSlip(Slip(self.at, message))
