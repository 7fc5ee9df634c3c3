"""``flask init``: a data directory to start from."""

from __future__ import annotations

import shutil
from pathlib import Path

import click
from flask import current_app
from flask.cli import with_appcontext

from store.cli import schemas
from store.settings import SHIPPED_DATA


@click.command()
@click.argument("directory", type=click.Path(path_type=Path))
@with_appcontext
def init(directory: Path) -> None:
    """Fill DIRECTORY with categories and a models.json to start from, and no history.

    What is there already is left alone; DATA_DIR=DIRECTORY then serves it.
    """
    if any((directory / name).exists() for name in ("site.json", "models.json", "categories")):
        raise click.ClickException(f"{directory} already holds data; name an empty directory.")
    try:
        shutil.copytree(SHIPPED_DATA / "categories", directory / "categories")
        for folder in ("products", "labs", "history"):
            (directory / folder).mkdir()
        for name in ("synonyms.json", "words.json"):
            shutil.copy(SHIPPED_DATA / name, directory)
        templates = Path(current_app.root_path, "templates", "init")
        for file in sorted(templates.iterdir()):
            shutil.copy(file, directory)
        schemas.write(directory)
    except OSError as error:
        raise click.ClickException(f"{directory} cannot be written: {error.strerror}") from None
    click.echo(
        f"{directory} is ready. Edit its models.json, set the API keys that it names, then:\n"
        f"  DATA_DIR={directory} flask poll --due\n"
        f"  DATA_DIR={directory} flask run"
    )
