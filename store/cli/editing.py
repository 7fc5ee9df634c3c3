"""Editing a data file with the least change, in one step, and with a diff.

Key order, indentation, line ends and ``$schema`` stay; what was written is checked to say exactly
what was meant before it takes the old file's place.
"""

from __future__ import annotations

import difflib
import json
import os
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from store import json_positions
from store.cli.schemas import schema_of
from store.data_file import load, understand
from store.disk import drafted

if TYPE_CHECKING:
    from pathlib import Path

    from store.json_positions import JsonPath

_decode = json.JSONDecoder().raw_decode


class EditError(click.ClickException):
    """A file was left as it was; the sentence says why."""


class Edit(Struct, frozen=True):
    """The text of one file before and after; ``None`` where there is no file."""

    name: str
    before: str | None
    after: str | None

    @property
    def diff(self) -> str:
        """What changes, as ``patch`` and ``git apply`` take it."""
        old, new = (_lines(text) for text in (self.before, self.after))
        source = "/dev/null" if self.before is None else f"a/{self.name}"
        target = "/dev/null" if self.after is None else f"b/{self.name}"
        return "".join(difflib.unified_diff(old, new, source, target))


def text_of(directory: Path, name: str) -> str:
    """The text of a good data file.

    Raises:
        EditError: it is not there or has problems; a file in need of repair is not edited.
    """
    loaded = load(directory, name)
    if loaded is None:
        raise EditError(f"{name} is not there.")
    if loaded.problems:
        raise EditError(f"mend this first: {loaded.problems[0]}")
    return loaded.text


def new(name: str, /, **fields: Any) -> str:
    """The text of a new data file."""
    record = {"$schema": schema_of(name), "version": 1, **fields}
    return json.dumps(record, indent=2, ensure_ascii=False) + "\n"


def with_item(text: str, key: str, value: str, order: tuple[str, ...]) -> str:
    """A text whose list ``key`` also holds ``value``, at its end.

    A list that is not there is put after the last of the keys that come before it in ``order``.
    """
    parsed = json_positions.parse(text)
    held = parsed.value.get(key)
    if held is None:
        return with_member(text, (), key, [value], order)
    if not held:
        start = _value_start(text, parsed.offsets[(key,)])
        return text[:start] + f"[{_text(value)}]" + text[_decode(text, start)[1] :]
    last = parsed.offsets[(key, len(held) - 1)]
    return _insert(text, last, _decode(text, last)[1], _text(value))


def with_member(text: str, path: JsonPath, key: str, value: Any, order: tuple[str, ...]) -> str:
    """A text whose object at ``path`` also has ``key``, after those before it in ``order``."""
    parsed = json_positions.parse(text)
    held = parsed.value
    for step in path:
        held = held[step]
    member = f"{_text(key)}: {_text(value)}"
    if not held:
        start = _value_start(text, parsed.offsets[path]) if path else parsed.offsets[path]
        end = _decode(text, start)[1]
        return text[:start] + "{\n    " + member + "\n  }" + text[end:]
    earlier = order[: order.index(key)] if key in order else ()
    before = [each for each in held if each in ("$schema", "version", *earlier)] or list(held)
    after = before[-1] if key in order else list(held)[-1]
    start = parsed.offsets[(*path, after)]
    return _insert(text, start, _decode(text, _value_start(text, start))[1], member)


def carry_out(directory: Path, edits: list[Edit]) -> None:
    """Make every edit or none, each in one step and only on the text that it was made for.

    Raises:
        EditError: a new text is no good data file, or a file has changed meanwhile or cannot be
            written; what was written before it has been taken back.
    """
    for edit in edits:
        problems = understand(edit.name, edit.after.encode()).problems if edit.after else ()
        if problems:
            raise EditError(f"{edit.name} was left as it was: {problems[0].message}.")
        _refuse_if_changed(directory / edit.name, edit)
    with ExitStack() as made:
        for edit in edits:
            _make(directory, edit)
            made.callback(_make, directory, Edit(edit.name, edit.after, edit.before))
        made.pop_all()


def _make(directory: Path, edit: Edit) -> None:
    path = directory / edit.name
    try:
        if edit.after is None:
            _refuse_if_changed(path, edit)
            path.unlink()
            return
        if not path.parent.exists():
            path.parent.mkdir()
            path.parent.chmod(0o755)  # as readable as the file, whatever the umask
        with drafted(path, edit.after.encode()) as draft:
            _refuse_if_changed(path, edit)
            if edit.before is None:
                os.link(draft, path)
            else:
                draft.replace(path)
    except FileExistsError:
        raise EditError(f"{edit.name} was left as it was: it has just appeared.") from None
    except OSError as error:
        raise EditError(f"{edit.name} cannot be written: {error.strerror}.") from None


def _refuse_if_changed(path: Path, edit: Edit) -> None:
    try:
        now = path.read_bytes().decode()
    except FileNotFoundError:
        now = None
    except ValueError:
        now = ""
    if now != edit.before:
        raise EditError(f"{edit.name} was left as it was: somebody has just changed it.")


def _insert(text: str, start: int, end: int, part: str) -> str:
    """A text with ``part`` after the item from ``start`` to ``end``, with the same white space."""
    lead = text[len(text[:start].rstrip()) : start] or " "
    return f"{text[:end]},{lead}{part}{text[end:]}"


def _value_start(text: str, key: int) -> int:
    """The offset of a member's value, from the offset of its key."""
    colon = text.index(":", _decode(text, key)[1])
    return colon + 1 + len(text[colon + 1 :]) - len(text[colon + 1 :].lstrip())


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _lines(text: str | None) -> list[str]:
    *lines, rest = (text or "").split("\n")
    ended = [f"{line}\n" for line in lines]
    return [*ended, f"{rest}\n\\ No newline at end of file\n"] if rest else ended
