"""``flask init``: a data directory to start from."""

from __future__ import annotations

import shutil
from pathlib import Path

import click
from flask import current_app
from flask.cli import with_appcontext

from store.cli import schemas
from store.files import FOLDERS, SINGLE
from store.settings import SHIPPED_DATA


@click.command()
@click.argument("directory", type=click.Path(path_type=Path))
@with_appcontext
def init(directory: Path) -> None:
    """Fill DIRECTORY with categories and a models.json to start from, and no history.

    What is there already is left alone; DATA_DIR=DIRECTORY then serves it.
    """
    names = (*FOLDERS, "history", *SINGLE)
    if held := [name for name in names if (directory / name).exists()]:
        raise click.ClickException(
            f"{directory} already holds data ({', '.join(held)}); name an empty directory."
        )
    before = set(directory.iterdir()) if directory.is_dir() else None
    try:
        _fill(directory)
    except OSError as error:
        _clear(directory, before)
        raise click.ClickException(f"{directory} cannot be written: {error.strerror}") from None
    click.echo(
        f"{directory} is ready. Edit its models.json, set the API keys that it names, then:\n"
        f"  DATA_DIR={directory} flask poll --due\n"
        f"  DATA_DIR={directory} flask run"
    )


def _fill(directory: Path) -> None:
    for folder in ("categories", "products", "labs", "history"):
        (directory / folder).mkdir(parents=True)
    for file in sorted((SHIPPED_DATA / "categories").iterdir()):
        shutil.copy2(file, directory / "categories")
    for name in ("synonyms.json", "words.json"):
        shutil.copy(SHIPPED_DATA / name, directory)
    for file in sorted(Path(current_app.root_path, "templates", "init").iterdir()):
        shutil.copy(file, directory)
    schemas.write(directory)


def _clear(directory: Path, before: set[Path] | None) -> None:
    """Take away what was half made, so that ``init`` can be tried again."""
    if before is None:
        shutil.rmtree(directory, ignore_errors=True)
        return
    for path in set(directory.iterdir()) - before:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()
