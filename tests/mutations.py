"""Hostile versions of data files: what editors, disks, merges and strangers make of good ones."""

import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from builders import line_of

KEY = "sk-CANARY-4f1d9a7c0b2e"
"""Looks like a key; wherever it is pasted, it is never shown."""

HOSTILE: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2, 1e308, -1e308, 10**30, "", " ", "x", "x" * 300,
    "\u202eabc", "\x00", "\u200b", "\U000e0041", "\ufeff", "例え", "https://例え.example",
    "https://user:pw@host/v1", "http://[", "//x", "../../etc/passwd", "<script>alert(1)</script>",
    "{{7*7}}", "%s%n", [], [[]], {}, {"a": {"b": []}}, "0001-01-01", "9999-12-31",
    "2099-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z",
)  # fmt: skip
BYTES = (
    b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\r", b"\n", b"{", b"}", b"[" * 50, b'"', b",", b"\\",
    b"\\ud800", b"<<<<<<< HEAD\n", b'{"a":' * 50_000, b"9" * 5_000, b"NaN", b"1e999", b"/* */",
    b"\xe2\x80\xae",
)  # fmt: skip


def mutated(data: bytes, random: Random) -> bytes:
    """Another version of a file's bytes."""
    change = random.choice(_CHANGES)
    return change(data, random)


def _cut(data: bytes, random: Random) -> bytes:
    return data[: random.randrange(len(data) + 1)]


def _with_bytes(data: bytes, random: Random) -> bytes:
    place = random.randrange(len(data) + 1)
    return data[:place] + random.choice(BYTES) + data[place:]


def _flipped(data: bytes, random: Random) -> bytes:
    flipped = bytearray(data)
    for _ in range(random.choice((1, 1, 1, 3, 20))):
        if flipped:
            flipped[random.randrange(len(flipped))] ^= 1 << random.randrange(8)
    return bytes(flipped)


def _replaced(data: bytes, random: Random) -> bytes:
    return random.choice(
        (b"", b"\n", b"{}", b"[]", b"null", b'{"version":1}', b"\x00" * 100, data[::-1])
    )


def _re_encoded(data: bytes, random: Random) -> bytes:
    text = data.decode()
    return random.choice(
        (
            lambda: text.encode("utf-16"),
            lambda: data.replace(b"\n", b"\r\n"),
            lambda: data.replace(b"\n", b"\r"),
            lambda: b"\xef\xbb\xbf" + data,
        )
    )()


def _with_lines_moved(data: bytes, random: Random) -> bytes:
    lines = data.splitlines(keepends=True)
    if not lines:
        return data
    line = random.choice(lines)
    moves: tuple[Callable[[], object], ...] = (
        lambda: random.shuffle(lines),
        lambda: lines.append(line),
        lambda: lines.remove(line),
        lambda: lines.insert(0, line),
        lines.reverse,
    )
    random.choice(moves)()
    return b"".join(lines)


def _with_value(data: bytes, random: Random) -> bytes:
    """One value of the JSON replaced by a hostile one, or a member taken away or added."""
    if data.count(b"\n{") > 1 or data.startswith(b'{"v":'):
        return _with_line_resealed(data, random)
    try:
        value = json.loads(data)
    except ValueError:
        return data
    places = list(_places(value))
    if not places:
        return data
    holder, key = random.choice(places)
    action = random.randrange(4)
    if action == 0 and isinstance(holder, dict):
        del holder[key]
    elif action == 1 and isinstance(holder, dict):
        holder[
            random.choice(("", "x", "version", KEY if "models" in value else "née", "$schema"))
        ] = 1
    elif action == 2 and "models" in value and key != "name":
        holder[key] = KEY
    else:
        holder[key] = random.choice(HOSTILE)
    return json.dumps(value, indent=2, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container of a JSON value with each of its keys or positions."""
    keys = (
        value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    )
    for key in list(keys):
        yield value, key
        yield from _places(value[key])


def _with_line_resealed(data: bytes, random: Random) -> bytes:
    """A line of history with a hostile value, its id and checksum made to fit."""
    lines = data.split(b"\n")
    number = random.randrange(len(lines))
    if b"WITHHELD" in lines[number]:
        return data
    try:
        record = json.loads(lines[number])
    except ValueError:
        return data
    holder, key = random.choice(list(_places(record)))
    holder[key] = random.choice(HOSTILE)
    lines[number] = line_of(record)[:-1]
    return b"\n".join(lines)


_CHANGES: tuple[Callable[[bytes, Random], bytes], ...] = (
    _cut,
    _with_bytes,
    _flipped,
    _flipped,
    _replaced,
    _re_encoded,
    _with_lines_moved,
    *[_with_value] * 5,
)
