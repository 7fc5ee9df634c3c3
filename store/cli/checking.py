"""``flask check``: everything wrong in a data directory, by file, line and column."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import click
from flask import current_app
from flask.cli import with_appcontext

from store.files import DataDirectoryError, Files
from store.history import History
from store.memory import name_clashes
from store.rankings.names import Names

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from store.records import Problem
    from store.settings import Settings


@click.command()
@with_appcontext
def check() -> None:
    """Say what is wrong in the data directory, as file:line:column: message.

    Exits with 1 when there is an error; warnings alone do no harm.
    """
    settings: Settings = current_app.extensions["settings"]
    problems = sorted(_problems(settings.data_dir))
    for problem in problems:
        mark = "" if problem.severity == "error" else "warning: "
        click.echo(f"{problem.file}:{problem.line}:{problem.column}: {mark}{problem.message}")
    counts = Counter(problem.severity for problem in problems)
    click.echo(f"{counts['error']} errors, {counts['warning']} warnings.", err=True)
    if counts["error"]:
        raise click.exceptions.Exit(1)


def _problems(directory: Path) -> Iterator[Problem]:
    """Everything wrong in a data directory's files and history."""
    files = Files(directory)
    try:
        catalogue = files.scan()
    except DataDirectoryError as error:
        raise click.ClickException(str(error)) from None
    yield from catalogue.problems
    yield from name_clashes(Names(catalogue.products), files)
    history = History(directory / "history")
    for slug in sorted(history.signatures()):
        yield from history.read(slug).problems
