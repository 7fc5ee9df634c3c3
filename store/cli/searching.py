"""``flask search``: what a search finds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from store.cli import app_settings, with_data
from store.search.meaning import Meaning
from store.store import Store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from store.search import Document
    from store.search.nearness import Likeness


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
    directory = app_settings().data_dir
    meaning = Meaning(directory)

    def compare(text: str, documents: Sequence[Document]) -> Likeness | None:
        meaning.prepare(documents)
        return meaning.compare(text, documents)

    hits = Store(directory).snapshot.summary.index.search(query, limit, compare=compare)
    for kind, ranked in (("categories", hits.categories), ("brands", hits.brands)):
        for hit in ranked:
            click.echo(f"{kind:11} {hit.slug}: {hit.score:.3f}, {hit.match}")
    for slug in hits.related:
        click.echo(f"related     {slug}")
    if not any(hits[:3]):
        click.echo("Nothing fits.")
