"""``flask init``: a data directory to start from."""

import shlex
import shutil
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path

import click
import msgspec
from flask import current_app
from flask.cli import with_appcontext
from msgspec.structs import replace

from store.cli import local, schemas, unknown_slug
from store.ledger import FOLDER as PROOF
from store.ledger import LEDGER
from store.records import FOLDERS, SINGLE, TOPICS, Topics
from store.settings import SHIPPED_DATA

NAMES = (*FOLDERS, "history", PROOF, *SINGLE, "schemas")
"""The parts of a data directory."""


@click.command()
@click.argument("directory", type=click.Path(path_type=Path), callback=local)
@click.option(
    "--category",
    "slugs",
    multiple=True,
    metavar="SLUG",
    help="Start with this category only; again for more. Otherwise with all that are shipped.",
)
@click.option("--empty", is_flag=True, help="Start without a category.")
@with_appcontext
def init(directory: Path, slugs: tuple[str, ...], *, empty: bool) -> None:
    """Fill DIRECTORY with categories and a models.json to start from, and no history.

    It is made if it is not there. One that holds anything but hidden files is refused, and nothing
    in it is changed; DATA_DIR=DIRECTORY then serves it.
    """
    categories = [] if empty else _categories(slugs)
    if empty and slugs:
        raise click.UsageError("Say --category or --empty, not both.")
    if other := _other_in(directory):
        raise click.ClickException(
            f"{directory} holds {other}: nothing was written; name a new or an empty directory."
        )
    try:
        directory.mkdir(parents=True, exist_ok=True)
        (directory / NAMES[0]).mkdir()  # of two at once the second ends here
    except OSError as error:
        raise click.ClickException(f"{directory} cannot be written: {error.strerror}") from None
    try:
        _fill(directory, categories)
    except OSError as error:
        _clear(directory)
        raise click.ClickException(f"{directory} cannot be written: {error.strerror}") from None
    data_dir = f"DATA_DIR={shlex.quote(str(directory.absolute()))}"
    count = "1 category" if len(categories) == 1 else f"{len(categories):,} categories"
    first = "" if categories else "Add a first category to its categories/. "
    click.echo(
        f"{directory} is ready, with {count}. {first}Edit its models.json, "
        "set the API keys that it names, then:\n"
        f"  {data_dir} flask poll --due\n"
        f"  {data_dir} flask run"
    )


def _other_in(directory: Path) -> str | None:
    """Return the first name in a directory, but for hidden ones and what a new disk has."""
    try:
        names = sorted(path.name for path in directory.iterdir())
    except OSError:  # it is not there, or what keeps us from it is said when it is written
        return None
    return next((n for n in names if not n.startswith(".") and n != "lost+found"), None)


def _categories(slugs: Sequence[str]) -> list[Path]:
    """Return the shipped files of these categories, or of all."""
    shipped = {path.stem: path for path in sorted((SHIPPED_DATA / "categories").glob("*.json"))}
    for slug in slugs:
        if slug not in shipped:
            raise unknown_slug("category", slug, shipped)
    return [shipped[slug] for slug in dict.fromkeys(slugs or shipped)]


def _fill(directory: Path, categories: Sequence[Path]) -> None:
    for folder in ("products", "labs", "history", PROOF):
        (directory / folder).mkdir()
    (directory / PROOF / LEDGER).touch()
    for file in categories:
        shutil.copy2(file, directory / "categories")
    for name in ("synonyms.json", "words.json"):
        shutil.copy(SHIPPED_DATA / name, directory)
    topics = msgspec.json.encode(_topics({file.stem for file in categories}))
    (directory / TOPICS).write_bytes(msgspec.json.format(topics) + b"\n")
    for file in sorted(Path(current_app.root_path, "templates", "init").iterdir()):
        shutil.copy(file, directory)
    schemas.write(directory)


def _topics(slugs: AbstractSet[str]) -> Topics:
    """Return the shipped topics with these categories alone, without what is empty then."""
    shipped = msgspec.json.decode((SHIPPED_DATA / TOPICS).read_bytes(), type=Topics)
    topics = []
    for topic in shipped.topics:
        parts = [
            replace(part, categories=tuple(slug for slug in part.categories if slug in slugs))
            for part in topic.parts
            if not slugs.isdisjoint(part.categories)
        ]
        if parts:
            topics.append(replace(topic, parts=tuple(parts)))
    return replace(shipped, topics=tuple(topics))


def _clear(directory: Path) -> None:
    """Take away what was half made, so that ``init`` can be tried again."""
    for path in (directory / name for name in NAMES):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
