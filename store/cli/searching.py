"""``flask search``: what a search finds, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from store.cli import app_settings, with_data
from store.memory import Store
from store.search import MOST_RELATED, Document, Index
from store.search.meaning import Meaning

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
@click.option("--explain", is_flag=True, help="Say which words matched what, with which weight.")
@with_data
def search(query: str, limit: int, *, explain: bool) -> None:
    """Say what a search for QUERY finds, as the API answers it: score, how sure it is, slug.

    With --explain also how the best titles score by their words alone (each word with what it was
    taken for, how alike they are, and its weight in the query), and what each word adds to the
    categories nearest in meaning, whose situations are looked at too; and where a sentence model
    had a say, how alike it finds the categories shown.
    """
    directory = app_settings().data_dir
    index, meaning = Store(directory).snapshot.summary.index, Meaning(directory)
    likeness: dict[str, float] = {}

    def compare(text: str, documents: Sequence[Document]) -> Likeness | None:
        meaning.prepare(documents)
        found = meaning.compare(text, documents)
        likeness.update(found or {})
        return found

    found = index.search(query, limit, compare=compare)
    for kind, hits in (("categories", found.categories), ("brands", found.brands)):
        for hit in hits:
            click.echo(f"{kind:11} {hit.slug}: {hit.score:.3f}, {hit.match}")
    for slug in found.related:
        click.echo(f"related     {slug}")
    if not any(found[:3]):
        click.echo("Nothing fits.")
    for line in _why(query, index) if explain else ():
        click.echo(line)
    shown = (*(hit.slug for hit in found.categories), *found.related)
    alike = [f"{slug} {likeness[slug]:.2f}" for slug in shown if slug in likeness]
    if explain and alike:
        click.echo(f"\nalike by the sentence model: {', '.join(alike)}")


def _why(query: str, index: Index) -> Iterator[str]:
    """The words that count for the best titles and for the nearest categories."""
    for each in index.explain(query):
        yield f'\n{each.kind}: {each.slug}, "{each.title}" scores {each.score:.3f} by its words'
        for reason in each.reasons:
            yield (
                f'  "{reason.asked}" for "{reason.told}": '
                f"likeness {reason.likeness:.2f}, weight {reason.weight:.2f}"
            )
    for slug, words in index.explain_nearness(query, MOST_RELATED).items():
        added = ", ".join(f"{word} {weight:.2f}" for word, weight in words.items())
        yield f"\nnearest in meaning: {slug}, {sum(words.values()):.2f} = {added}"
