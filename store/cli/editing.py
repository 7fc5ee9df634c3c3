"""Data files as commands write them: JSON indented by two spaces, in one step, keys in order."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from store.data_file import load, understand
from store.disk import atomic_write, make_folder

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


def write(directory: Path, name: str, record: Mapping[str, Any]) -> None:
    """Write a data file with these members.

    Raises:
        click.ClickException: they do not make a good data file, or it cannot be written; what was
            there is as it was.
    """
    data = (json.dumps(record, indent=2, ensure_ascii=False) + "\n").encode()
    if problems := understand(name, data).problems:
        raise click.ClickException(f"{name} was left as it was: {problems[0].message}.")
    try:
        make_folder((directory / name).parent)
        atomic_write(directory / name, data)
    except OSError as error:
        raise click.ClickException(f"{name} cannot be written: {error.strerror}.") from None
