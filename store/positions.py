"""Where in a JSON text each value stands, and where the text is not strict JSON.

Only a file that failed to load is read this way, so that a curator gets line and column of every
mistake: whatever is plainly meant (a comma too many or too few, a comment, ``NaN``) is noted and
passed over. Strict means I-JSON (RFC 7493): no duplicate names, no NaN, no lone surrogates.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

from msgspec import Struct

MAX_DEPTH = 32

JsonPath = tuple[str | int, ...]

_SPACE = re.compile(r"[ \t\r\n]*")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|#[^\n]*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_LOOSE_STRING = re.compile(r'"((?:[^"\\\n]|\\[^\n])*)"')
_SLIP_IN_STRING = re.compile(r'\\(?!["\\/bfnrt]|u[0-9a-fA-F]{4}).?|[\x00-\x1f]|\\.')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_WORD = re.compile(r"[-+]?[A-Za-z_][A-Za-z_0-9]*")
_WORDS = {"true": True, "false": False, "null": None}
_MEANT = {"True": "true", "False": "false", "None": "null", "undefined": "null"}
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_LONGEST_NUMBER = 400


class Slip(Struct, frozen=True):
    """A mistake in a text: where it starts, in characters, and what it is."""

    offset: int
    message: str


class Parsed(Struct, frozen=True):
    """A JSON value, the offset of each of its parts (a member's is its key's), and the mistakes.

    ``doubtful`` are the paths of values that could only be guessed. After a mistake that leaves
    open what is meant there is no value (``complete`` is false) and that mistake is the last one.
    """

    value: Any
    offsets: dict[JsonPath, int]
    slips: tuple[Slip, ...]
    doubtful: frozenset[JsonPath]
    complete: bool


class _SyntaxSlip(Exception):
    def __init__(self, slip: Slip) -> None:
        super().__init__(slip.message)
        self.slip = slip


def parse(text: str) -> Parsed:
    """Read a JSON text and remember where everything stands; raises nothing."""
    reader = _Reader(text)
    value, complete = None, True
    try:
        value = reader.document()
    except _SyntaxSlip as error:
        reader.slips.append(error.slip)
        complete = False
    doubtful = frozenset(reader.doubtful)
    return Parsed(value, reader.offsets, tuple(reader.slips), doubtful, complete)


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
        self.doubtful: set[JsonPath] = set()

    def document(self) -> Any:
        if self.text.startswith("\ufeff"):
            self.slip("the file starts with a byte order mark; save it as UTF-8 without one")
            self.at = 1
        self.space()
        if self.at == len(self.text):
            raise self.error("the file is empty")
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
        match self.next():
            case "{":
                return self.members(path, depth)
            case "[":
                return self.items(path, depth)
            case '"':
                return self.text_value(path)
            case "":
                raise self.error("the file ends where a value is expected")
        return self.plain(path)

    def members(self, path: JsonPath, depth: int) -> dict[str, Any]:
        members: dict[str, Any] = {}
        self.at += 1
        if self.closes("}"):
            return members
        while True:
            self.space()
            start = self.at
            if self.next() != '"':
                raise self.error(self.no_string("a key in double quotes is expected here"))
            key = self.string()
            if not self.closes(":"):
                raise self.error('a ":" is missing between this key and its value')
            if key in members:
                line, _ = line_and_column(self.text, self.offsets[(*path, key)])
                self.slip(f"this key stands here again; it is already in line {line}", start)
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

    def text_value(self, path: JsonPath) -> str:
        before = len(self.slips)
        value = self.string()
        if len(self.slips) > before:
            self.doubtful.add(path)
        return value

    def string(self) -> str:
        match = _STRING.match(self.text, self.at)
        value: str = json.loads(match.group()) if match else self.loose_string()
        if match:
            if _SURROGATE.search(value):
                self.slip("the text holds half a surrogate pair, which is no character")
            self.at = match.end()
        return value

    def loose_string(self) -> str:
        """A string with wrong escapes or raw control characters in it, each of them noted."""
        match = _LOOSE_STRING.match(self.text, self.at)
        if match is None:
            raise self.error("this text is not closed by a double quote on its line")
        for slip in _SLIP_IN_STRING.finditer(self.text, match.start(1), match.end(1)):
            found = slip.group()
            if not found.startswith("\\"):
                self.slip(f"a raw control character: write \\u{ord(found):04x}", slip.start())
            elif found[1:] not in tuple('"\\/bfnrtu') or found == "\\u":
                self.slip(f'"{found}" is no escape; a backslash is written \\\\', slip.start())
        self.at = match.end()
        return match.group(1)

    def plain(self, path: JsonPath) -> Any:
        if number := _NUMBER.match(self.text, self.at):
            return self.number(number.group(), path)
        match = _WORD.match(self.text, self.at)
        if match is None:
            raise self.error(self.no_string("a JSON value is expected here"))
        word = match.group()
        if word not in _WORDS:
            if word in _MEANT:
                self.slip(f"write {_MEANT[word]}, not {word}")
            elif word.lstrip("+-") in ("NaN", "Infinity", "inf", "nan"):
                self.slip(f"{word} is no JSON number; write a number or null")
            else:
                raise self.error("this word is no JSON value; text stands in double quotes")
            self.doubtful.add(path)
        self.at = match.end()
        return _WORDS.get(word)

    def number(self, digits: str, path: JsonPath) -> Any:
        value = json.loads(digits) if len(digits) < _LONGEST_NUMBER else math.inf
        if value in (math.inf, -math.inf):
            self.slip("this number is too large")
            self.doubtful.add(path)
        self.at += len(digits)
        if _WORD.match(self.text, self.at) or self.next().isdigit():
            raise self.error("a number goes on here in a way JSON does not know")
        return value

    def space(self) -> None:
        """Pass white space; a comment is noted and passed too."""
        while True:
            match = _SPACE.match(self.text, self.at)
            self.at = match.end() if match else self.at
            comment = _COMMENT.match(self.text, self.at)
            if comment is None:
                return
            self.slip("JSON has no comments; take this one out")
            self.at = comment.end()

    def next(self) -> str:
        return self.text[self.at : self.at + 1]

    def closes(self, mark: str) -> bool:
        self.space()
        if self.next() != mark:
            return False
        self.at += 1
        return True

    def ends(self, bracket: str) -> bool:
        """Whether an object or array is over; else the comma before the next part is passed."""
        if self.closes(bracket):
            return True
        comma = self.at
        if self.closes(","):
            if not self.closes(bracket):
                return False
            self.slip(f'this "," is too many before "{bracket}"', comma)
            return True
        if self.next() != '"':
            raise self.error(f'a "," or "{bracket}" is expected here')
        self.slip('a "," is missing before this')
        return False

    def no_string(self, expected: str) -> str:
        """What is wrong where a string or another value should start."""
        if self.text.startswith(("<<<<<<<", "=======", ">>>>>>>"), self.at):
            return "a conflict of a merge is left in the file; keep one of its sides"
        if self.next() in ("'", "\u201c", "\u201d", "\u201e", "\u2018", "\u2019"):
            return f'text stands in straight double quotes ("), not in {self.next()}'
        if self.next() == ",":
            return f'{expected}; there is a "," too many'
        return expected

    def slip(self, message: str, offset: int | None = None) -> None:
        self.slips.append(Slip(self.at if offset is None else offset, message))

    def error(self, message: str) -> _SyntaxSlip:
        return _SyntaxSlip(Slip(self.at, message))
