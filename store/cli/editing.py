"""Editing data files as a command: as canonical JSON, in one step, and with a diff.

A file that a command has written is indented by two spaces, its keys in the order that they had.
"""

from __future__ import annotations

import difflib
import json
import os
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from store.cli.schemas import schema_of
from store.data_file import load, understand
from store.disk import drafted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


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
    """Return the text of a good data file.

    Raises:
        EditError: it is not there or has problems; a file in need of repair is not edited.
    """
    loaded = load(directory, name)
    if loaded is None:
        raise EditError(f"{name} is not there.")
    if loaded.problems:
        raise EditError(f"mend this first: {loaded.problems[0]}")
    return loaded.text


def new_record(name: str, /, **fields: Any) -> dict[str, Any]:
    """Return the members of a new data file."""
    return {"$schema": schema_of(name), "version": 1, **fields}


def canonical(record: Mapping[str, Any]) -> str:
    """Return the text of a data file with these members."""
    return json.dumps(record, indent=2, ensure_ascii=False) + "\n"


def carry_out(directory: Path, edits: Sequence[Edit]) -> None:
    """Make every edit or none, each in one step and only on the text that it was made for.

    Raises:
        EditError: a new text is not a good data file, or a file has changed meanwhile or cannot be
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


def _lines(text: str | None) -> list[str]:
    """The lines of a file as a patch has them, with the mark where the last has no newline."""
    *lines, rest = (text or "").split("\n")
    ended = [f"{line}\n" for line in lines]
    return [*ended, f"{rest}\n\\ No newline at end of file\n"] if rest else ended
