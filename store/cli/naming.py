"""``flask names``: which spellings are one product, for curators to say in product files."""

import json
from collections.abc import Iterator, Mapping

import click

from store.cli import app_settings, unknown_slug, with_data
from store.cli.schemas import schema_of
from store.rankings import curation, names
from store.rankings.curation import MergeSuggestion, NameResolution, Use
from store.rankings.products import ProductProfile
from store.rankings.sentences import some
from store.records import Product
from store.snapshot import Snapshot
from store.store import Store

_CATEGORIES_SHOWN = 5  # categories that a line spells out


@click.group("names")
def names_group() -> None:
    """Show which spellings are one product, and which may be; files in products/ say so."""


@names_group.command()
@click.option("--limit", default=20, show_default=True, help="Show this many.")
@click.option("--category", metavar="SLUG", help="Only where this category names one of the two.")
@with_data
def queue(limit: int, category: str | None) -> None:
    """List products that may be known under another name, best reasons first."""
    snapshot = Store(app_settings().data_dir).snapshot
    catalogue = snapshot.catalogue
    if category and category not in catalogue.categories:
        raise unknown_slug("category", category, catalogue.categories)
    suggestions = [
        suggestion
        for suggestion in curation.queue(
            snapshot.products, catalogue.products, catalogue.categories
        )
        if category in (None, *suggestion.product.categories, *suggestion.known.categories)
    ]
    for suggestion in suggestions[:limit]:
        click.echo("\n".join(_described(suggestion, catalogue.products)))
    shown = f"{min(limit, len(suggestions)):,} of {len(suggestions):,} suggestions"
    click.echo(f"{shown}; `flask check` lists what else a new file takes in.", err=True)


@names_group.command()
@click.argument("spelling")
@with_data
def explain(spelling: str) -> None:
    """Say which product a spelling stands for, by which rule, in every category that names it."""
    if not spelling.strip():
        raise click.UsageError("Give a spelling.")
    snapshot = Store(app_settings().data_dir).snapshot
    uses = curation.spelt(spelling, curation.uses(snapshot.aggregates.values()))
    unused = [Use("no category", (), spelling, None)]
    for resolution in curation.resolve_uses(uses or unused, snapshot.names):
        click.echo("\n".join(_explained(resolution, snapshot)))


def _explained(resolution: NameResolution, snapshot: Snapshot) -> Iterator[str]:
    """Yield a spelling's product, rule, categories and key, and how often the product is named."""
    file = snapshot.catalogue.products.get(resolution.product)
    profile = snapshot.products.get(resolution.product)
    name = file.name if file else profile.name if profile else resolution.spelling
    where = _path(resolution.product) if file else "a product of its own, in no file"
    yield f"{resolution.spelling}: {name} ({where})"
    yield f"rule: {resolution.rule}"
    yield f"in: {some(resolution.places, _CATEGORIES_SHOWN)}"
    yield f"key: {names.key(resolution.spelling)}"
    yield f"/product/{profile.slug}, {_uses(profile)}" if profile else "named in no successful poll"


def _described(suggestion: MergeSuggestion, files: Mapping[str, Product]) -> Iterator[str]:
    """Yield a suggestion in five lines, the last two ready to be pasted into a product file."""
    product, other = suggestion.product, suggestion.known
    # The id of a product without a file is no slug: it is made of the name's key.
    name = _path(other.id if other.id in files else other.slug)
    where = name if other.id in files else "in no file yet"
    yield f'{product.slug}: "{product.name}", {_uses(product)}'
    yield f'  may be {other.slug}: "{other.name}" ({where}), {_uses(other)}'
    yield f"  because: {'; '.join(suggestion.why)}"
    for answer, member, value in (
        ("if so", "aliases", product.name),
        ("if not", "not_same_as", product.slug),
    ):
        if other.id in files:
            yield f'  {answer}, in {name}: "{member}": {_json([value])}'
        else:
            head = {"$schema": schema_of(name), "version": 1, "name": other.name}
            yield f"  {answer}, as {name}: {_json({**head, member: [value]})}"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _uses(product: ProductProfile) -> str:
    return f"named {product.mentions}x in {some(product.categories, _CATEGORIES_SHOWN)}"


def _path(slug: str) -> str:
    return f"products/{slug}.json"
