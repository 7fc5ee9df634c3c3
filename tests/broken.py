"""Every way we know in which a data file goes wrong, for every kind of data file."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from builders import answered, write_data, write_instrument, write_json

KINDS = (
    "site.json",
    "models.json",
    "synonyms.json",
    "words.json",
    "topics.json",
    "withheld.json",
    "categories/crm-software.json",
    "products/zoho-crm.json",
    "labs/by-hand.json",
)

LAB = {"title": "By hand", "method": "Read.", "finding": "Much.", "date": "2026-11-01", "body": "x"}


class Broken(NamedTuple):
    """A way to break a good file: what it then holds, the line of the problem, words of it."""

    name: str
    write: Callable[[Path], object]
    line: Callable[[str], int]
    says: str


def write_one_of_each(directory: Path) -> Path:
    """A data directory with one file of every kind, all good, each with a key per line."""
    polls = [
        answered(model, names, f"2026-11-0{day}T06:00:00Z", slug=slug)
        for day, slug in ((2, "crm-software"), (3, "vpn"))
        for model, names in {"A": ["Zoho CRM", "Pipe"], "B": ["Pipe", "Zoho"]}.items()
    ]
    write_data(
        directory,
        categories={
            "crm-software": {"title": "Best CRM software", "former_slugs": ["crm"]},
            "vpn": {"title": "Best VPN"},
        },
        products={"zoho-crm": {"name": "Zoho CRM", "aliases": ["Zoho"]}},
        polls=polls,
    )
    write_json(directory / "synonyms.json", {"version": 1, "synonyms": [["sofa", "couch"]]})
    write_json(directory / "words.json", {"version": 1, "source": "us", "words": ["the"]})
    part = {"slug": "all", "title": "All", "categories": ["crm-software", "vpn"]}
    topic = {"slug": "software", "title": "Software", "parts": [part]}
    write_json(directory / "topics.json", {"version": 1, "topics": [topic]})
    gone = {polls[0].id: {"reason": "A slur", "date": "2026-11-04"}}
    write_json(directory / "withheld.json", {"version": 1, "withheld": gone})
    write_json(directory / "labs" / "by-hand.json", {"version": 1, **LAB})
    write_instrument(directory)
    return directory


def _text(change: Callable[[str], str | bytes]) -> Callable[[Path], object]:
    def write(path: Path) -> None:
        text = change(path.read_text(encoding="utf-8"))
        path.write_bytes(text if isinstance(text, bytes) else text.encode())

    return write


def _version(value: str) -> Callable[[Path], object]:
    return _text(lambda text: text.replace('"version": 1', f'"version": {value}'))


def _third(line: str) -> Callable[[Path], object]:
    """A further line after the version's."""
    return _text(lambda text: text.replace('"version": 1,\n', f'"version": 1,\n  {line}\n', 1))


def _first_value(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[[Path], object]:
    """The first key after the version's gets a value of no right type, then ``change``."""

    def write(path: Path) -> None:
        record = json.loads(path.read_text(encoding="utf-8"))
        key = next(key for key in record if key != "version")
        write_json(path, change({**record, key: False}))

    return write


def _as_something_else(make: Callable[[Path], object]) -> Callable[[Path], object]:
    def write(path: Path) -> None:
        path.unlink()
        make(path)

    return write


def _symlink(path: Path) -> None:
    path.symlink_to(__file__)


def _at(number: int) -> Callable[[str], int]:
    return lambda _: number


def _without_first(record: dict[str, Any]) -> dict[str, Any]:
    first = next(key for key, value in record.items() if value is False)
    return {key: value for key, value in record.items() if key != first}


def _lines(text: str) -> int:
    return text.count("\n")


SLIPS = (
    Broken("empty", _text(lambda _: ""), _at(1), "the file is empty"),
    Broken("bom", _text(lambda text: b"\xef\xbb\xbf" + text.encode()), _at(1), "byte order mark"),
    Broken("utf-16", _text(lambda text: text.encode("utf-16")), _at(1), "is not UTF-8 text"),
    Broken(
        "latin-1",
        _text(lambda text: text.replace("version", "v\xe9rsion").encode("latin-1")),
        _at(2),
        "byte 0xe9 is not UTF-8 text",
    ),
    Broken(
        "comma too many", _text(lambda t: t[:-3] + ",\n}\n"), lambda t: _lines(t) - 1, "too many"
    ),
    Broken("comma missing", _text(lambda t: t.replace("1,\n", "1\n", 1)), _at(3), "is missing"),
    Broken("single quotes", _text(lambda t: t.replace('"', "'")), _at(2), "straight double quotes"),
    Broken("a comment", _third("// mine"), _at(3), "JSON has no comments"),
    Broken("a merge conflict", _third("<<<<<<< HEAD"), _at(3), "conflict of a merge"),
    Broken("unclosed text", _third('"topic: 1,'), _at(3), "not closed by a double quote"),
    Broken("a raw tab", _third('"a\tb": 1,'), _at(3), "a raw control character"),
    Broken("half a surrogate", _third('"\\ud83d": 1,'), _at(3), "half a surrogate pair"),
    Broken("duplicate key", _third('"version": 1,'), _at(3), "it is already in line 2"),
    Broken("NaN", _version("NaN"), _at(2), "NaN is not a JSON number"),
    Broken("True", _version("True"), _at(2), "JSON writes true"),
    Broken("endless nesting", _text(lambda _: "[" * 100_000), _at(1), "nested too deep"),
    Broken("huge", _text(lambda t: t + " " * (1 << 20)), _at(1), "the file is larger than 1,048"),
    Broken(
        "no version", _text(lambda t: t.replace('"version": 1,', "")), _at(1), 'lacks "version"'
    ),
    Broken("another version", _version("2"), _at(2), "this program reads version 1"),
    Broken("version 1.0", _version("1.0"), _at(2), "version must be the whole number 1"),
    Broken("misspelt key", _third('"verison": 1,'), _at(3), 'did you mean "version"?'),
    Broken("unknown key", _third('"zzz": 1,'), _at(3), "allowed are "),
    Broken("wrong type", _first_value(lambda record: record), _at(3), "must be"),
    Broken("a required key missing", _first_value(_without_first), _at(1), "the file lacks"),
    Broken("symbolic link", _as_something_else(_symlink), _at(1), "is a symbolic link"),
    Broken("a folder", _as_something_else(lambda path: path.mkdir()), _at(1), "not a regular file"),
    Broken("a pipe", _as_something_else(os.mkfifo), _at(1), "not a regular file"),
)


def mend(path: Path, text: str) -> None:
    """Put the good file back, whatever stands in its place."""
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    else:
        path.unlink(missing_ok=True)
    path.write_text(text, encoding="utf-8")
