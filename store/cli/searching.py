"""``flask search``: what a search finds; ``flask meaning``: the vectors that it may go by."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from store.cli import app_settings, with_data
from store.files import Catalogue, Files
from store.rankings.sentences import plural
from store.records import Problem
from store.search import Document, Index
from store.search.meaning import VECTORS, Meaning, MeaningError, key_of, texts_of
from store.search.nearness import Likeness
from store.site_summary import document
from store.store import Store
from store.web.queries import MAX_QUERY


@click.command()
@click.argument("query")
@click.option(
    "--limit",
    type=click.IntRange(1, 20),
    default=5,
    show_default=True,
    help="Show this many hits of each kind.",
)
@with_data
def search(query: str, limit: int) -> None:
    """Say what a search for QUERY finds, as the API answers it: score, how sure it is, slug."""
    if not 1 <= len(query.strip()) <= MAX_QUERY:
        raise click.UsageError(f"Give a query of 1 to {MAX_QUERY} characters.")
    directory = app_settings().data_dir
    meaning = Meaning(directory)

    # A command waits for the model, where a server answers by words meanwhile.
    def compare(text: str, documents: Sequence[Document]) -> Likeness | None:
        meaning.prepare(documents)
        return meaning.compare(text, documents)

    index = Store(directory).snapshot.summary.index
    hits = index.search(query, limit, compare=compare if meaning.is_wanted else None)
    for kind, ranked in (("categories", hits.categories), ("brands", hits.brands)):
        for hit in ranked:
            click.echo(f"{kind:11} {hit.slug}: {hit.score:.3f}, {hit.match}")
    for slug in hits.related:
        click.echo(f"related     {slug}")
    if not any(hits[:3]):
        click.echo("Nothing fits.")


@click.command("meaning")
@with_data
def encode() -> None:
    """Prepare search by meaning: encode what categories say, for what words leave open.

    Needs pip install '.[meaning]'. Only texts that are new or changed are encoded; a running server
    takes the result up by itself. Run it after edits; `flask check` counts what is missing.
    """
    directory = app_settings().data_dir
    texts = _texts(Files(directory).scan())
    try:
        with click.progressbar(length=len(texts), label="Encoding", file=sys.stderr) as bar:
            count = Meaning(directory).encode(texts, bar.update)
    except MeaningError as error:
        raise click.ClickException(f"{error}.") from None
    except OSError as error:
        raise click.ClickException(f"{error.filename or VECTORS}: {error.strerror}.") from None
    click.echo(f"{plural(count, 'text')} encoded; {VECTORS} holds {len(texts):,}.")


def remarks(directory: Path, catalogue: Catalogue) -> Iterator[Problem]:
    """Yield what keeps search from going by meaning, where a model or vectors are there."""
    meaning = Meaning(directory)
    if not meaning.is_wanted:
        return
    try:
        numbers, _ = meaning.read()
    except MeaningError as error:
        yield Problem(VECTORS, 1, 1, f"search goes by words alone: {error}", "warning")
        return
    texts = _texts(catalogue)
    if missing := sum(key_of(text) not in numbers for text in texts):
        some = f"{missing:,} of {plural(len(texts), 'text')}"
        message = f"{some} that search could go by have no vector; run `flask meaning`"
        yield Problem(VECTORS, 1, 1, message, "notice")


def _texts(catalogue: Catalogue) -> set[str]:
    """Return all that is said of the categories, ranked or not."""
    documents = [document(slug, category) for slug, category in catalogue.categories.items()]
    index = Index(documents, [], catalogue.synonyms, [])
    return {text for item in index.compared for text in texts_of(item)}
