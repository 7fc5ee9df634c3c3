"""Data files as commands write them: JSON indented by two spaces, in one step, keys in order."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from store.data_file import load, understand
from store.disk import drafted, locked, make_folder

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def members(directory: Path, name: str) -> dict[str, Any]:
    """Return the members of a good data file.

    Raises:
        click.ClickException: it is not there or has problems; first it is mended by hand.
    """
    loaded = load(directory, name)
    if loaded is None:
        raise click.ClickException(f"{name} is not there.")
    if loaded.problems:
        raise click.ClickException(f"Mend this first: {loaded.problems[0]}.")
    record: dict[str, Any] = json.loads(loaded.text)
    return record


def write(
    directory: Path, name: str, record: Mapping[str, Any], before: Mapping[str, Any] | None
) -> None:
    """Write a data file with these members in place of those it had, or ``None`` for a new one.

    Raises:
        click.ClickException: they do not make a good data file, it cannot be written, or somebody
            has changed it meanwhile; what was there is as it was.
    """
    data = (json.dumps(record, indent=2, ensure_ascii=False) + "\n").encode()
    if problems := understand(name, data).problems:
        raise click.ClickException(f"{name} was left as it was: {problems[0].message}.")
    try:
        path = directory / name
        make_folder(path.parent)
        with locked(directory.resolve()), drafted(path, data) as draft:  # against another command
            refuse_if_changed(directory, name, before)
            draft.replace(path)
    except OSError as error:
        raise click.ClickException(f"{name} cannot be written: {error.strerror}.") from None


def refuse_if_changed(directory: Path, name: str, before: Mapping[str, Any] | None) -> None:
    """See that a data file has the members that a command has read, so that nobody's edit is lost.

    Raises:
        click.ClickException: somebody has changed it meanwhile.
        OSError: it cannot be read.
    """
    try:
        now = json.loads((directory / name).read_bytes())
    except FileNotFoundError:
        now = None
    except ValueError:
        now = {}
    if now != before:
        raise click.ClickException(
            f"{name} was left as it was: somebody has just changed it; try again."
        )
