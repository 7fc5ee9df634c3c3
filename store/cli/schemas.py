"""``flask schema``: what each kind of data file may say, as JSON schemas, for editors."""

from __future__ import annotations

import inspect
import json
from typing import TYPE_CHECKING, Any

import click
import msgspec

from store.cli import app_settings, with_data
from store.data_file import FOLDERS, SINGLE
from store.disk import atomic_write
from store.settings import SHIPPED_DATA

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

DRAFT = "https://json-schema.org/draft/2020-12/schema"

SCHEMA_NAMES = {"categories": "category", "products": "product", "labs": "lab"}
"""What one file of a folder is called."""


def schema_of(name: str) -> str:
    """What ``$schema`` says in a data file, by the file's relative name."""
    folder, _, _ = name.rpartition("/")
    return f"../schemas/{SCHEMA_NAMES[folder]}.json" if folder else f"./schemas/{name}"


def documents() -> dict[str, str]:
    """The text of every schema file, by file name."""
    kinds = dict(SINGLE)
    kinds |= {f"{SCHEMA_NAMES[folder]}.json": kind for folder, kind in FOLDERS.items()}
    return {
        name: _text({"$schema": DRAFT, **_plain(msgspec.json.schema(kind))}, escaped=True)
        for name, kind in kinds.items()
    }


@click.command()
@with_data
def schema() -> None:
    """Write the JSON schema of each kind of data file, for completion and red lines in editors.

    They go to schemas/ in the data directory; .vscode/settings.json makes VS Code use them. Both
    follow from the program; run it again after an update.
    """
    try:
        for path in write(app_settings().data_dir):
            click.echo(f"wrote {path}")
    except OSError as error:
        raise click.ClickException(
            f"{error.filename} cannot be written: {error.strerror}"
        ) from None


def write(directory: Path) -> list[Path]:
    """Write all schemas of a data directory and VS Code's settings; return what was written.

    The settings of the shipped data are at the top of the checkout, which an editor opens.
    """
    texts = {directory / "schemas" / name: text for name, text in documents().items()}
    top = directory.parent if directory.resolve() == SHIPPED_DATA.resolve() else directory
    path = top / ".vscode" / "settings.json"
    prefix = f"{directory.name}/" if top != directory else ""
    texts[path] = _text(_with_schemas(path, prefix))
    for each, text in texts.items():
        each.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(each, text.encode())
    return list(texts)


def editor_settings(prefix: str) -> list[dict[str, Any]]:
    """Which schema is for which files, as VS Code wants it; paths start at its folder."""
    matches = {f"{prefix}{name}": name for name in SINGLE}
    matches |= {f"{prefix}{folder}/*.json": f"{SCHEMA_NAMES[folder]}.json" for folder in FOLDERS}
    return [
        {"fileMatch": [f"/{match}"], "url": f"./{prefix}schemas/{name}"}
        for match, name in matches.items()
    ]


def _with_schemas(path: Path, prefix: str) -> Mapping[str, Any]:
    """An editor's settings with our schemas, whatever else they hold."""
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        held = {}
    except ValueError as error:
        raise click.ClickException(f"{path} is no plain JSON and was left alone: {error}") from None
    return {**held, "json.schemas": editor_settings(prefix)}


def _plain(value: Any) -> Any:
    """A schema whose descriptions read well in an editor."""
    if isinstance(value, dict):
        return {
            key: inspect.cleandoc(part).replace("``", "`")
            if key == "description" and isinstance(part, str)
            else _plain(part)
            for key, part in value.items()
        }
    return [_plain(part) for part in value] if isinstance(value, list) else value


def _text(value: object, *, escaped: bool = False) -> str:
    """Indented JSON; ``escaped`` where it contains invisible characters."""
    return json.dumps(value, indent=2, ensure_ascii=escaped) + "\n"
