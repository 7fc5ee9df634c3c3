"""``flask schema``: what each kind of data file may say, as JSON schemas, for editors."""

import inspect
import json
from pathlib import Path
from typing import Any

import click
import msgspec

from store.cli import app_settings, with_data
from store.disk import atomic_write
from store.records import FOLDERS, SINGLE

DRAFT = "https://json-schema.org/draft/2020-12/schema"

SCHEMA_NAMES = {
    "categories": "category",
    "products": "product",
    "labs": "lab",
    "instruments": "instrument",
}
"""Names of the schemas, by the folder of the files."""


def schema_of(name: str) -> str:
    """Return the value of ``$schema`` in a data file, by the file's relative name."""
    folder, _, _ = name.rpartition("/")
    return f"../schemas/{SCHEMA_NAMES[folder]}.json" if folder else f"./schemas/{name}"


def documents() -> dict[str, str]:
    """Return the text of every schema file, by file name."""
    kinds = dict(SINGLE)
    kinds |= {f"{SCHEMA_NAMES[folder]}.json": kind for folder, kind in FOLDERS.items()}
    return {
        # in ASCII, because patterns contain invisible characters
        name: json.dumps({"$schema": DRAFT, **_plain(msgspec.json.schema(kind))}, indent=2) + "\n"
        for name, kind in kinds.items()
    }


@click.command()
@with_data
def schema() -> None:
    """Write the JSON schema of each kind of data file, for completion and red lines in editors.

    They go to schemas/ in the data directory and follow from the program; run it again after an
    update. Every data file names its own in $schema.
    """
    try:
        for path in write(app_settings().data_dir):
            click.echo(f"wrote {path}")
    except OSError as error:
        raise click.ClickException(
            f"{error.filename} cannot be written: {error.strerror}"
        ) from None


def write(directory: Path) -> list[Path]:
    """Write all schemas of a data directory, over those that are there; return their files."""
    folder = directory / "schemas"
    folder.mkdir(parents=True, exist_ok=True)
    texts = documents()
    for name, text in texts.items():
        atomic_write(folder / name, text.encode())
    return [folder / name for name in texts]


def _plain(value: Any) -> Any:
    """Return a schema whose descriptions read well in an editor."""
    if isinstance(value, dict):
        return {
            key: inspect.cleandoc(part).replace("``", "`")
            if key == "description" and isinstance(part, str)
            else _plain(part)
            for key, part in value.items()
        }
    return [_plain(part) for part in value] if isinstance(value, list) else value
