"""``flask names``: which spellings are one product, by a curator's word."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click
import msgspec

from store.cli import app_settings, unknown_slug, with_data
from store.cli.editing import members, refuse_if_changed, write
from store.cli.schemas import schema_of
from store.rankings import aggregates, curation, names
from store.rankings.aggregates import FirstUse
from store.rankings.curation import Use
from store.rankings.names import Names
from store.rankings.products import ProductProfile
from store.rankings.sentences import some
from store.records import Product
from store.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from store.rankings.curation import MergeSuggestion, NameResolution
    from store.snapshot import Snapshot

Record = dict[str, Any]
"""The members of a product file."""

_SHOWN = 5  # categories that a line spells out


@click.group("names")
def names_group() -> None:
    """Say which spellings are one product; history itself is never changed.

    PRODUCT is a product's slug. What a command writes is a file in products/: edit or delete it to
    take that back.
    """


@names_group.command()
@click.option("--limit", default=20, show_default=True, help="Show this many.")
@click.option("--category", metavar="SLUG", help="Only where this category names one of the two.")
@with_data
def queue(limit: int, category: str | None) -> None:
    """List products that may be known under another name, best reasons first."""
    snapshot = Store(app_settings().data_dir).snapshot
    catalogue = snapshot.catalogue
    suggestions = [
        suggestion
        for suggestion in curation.queue(
            snapshot.products, catalogue.products, catalogue.categories
        )
        if category in (None, *suggestion.product.categories, *suggestion.known.categories)
    ]
    for suggestion in suggestions[:limit]:
        click.echo("\n".join(_described(suggestion, catalogue.products)))
    click.echo(f"{min(limit, len(suggestions))} of {len(suggestions)} suggestions.", err=True)


_apart = click.option(
    "--apart",
    is_flag=True,
    help="Say in not_same_as that what else the rules for names would take in is another product.",
)


@names_group.command()
@click.argument("products", metavar="PRODUCT...", nargs=-1, required=True)
@click.argument("into")
@_apart
@with_data
def merge(products: tuple[str, ...], into: str, *, apart: bool) -> None:
    """Make each PRODUCT one with INTO: its names become aliases there, its address leads there.

    Nothing else is merged: where a name of theirs fits others but for a noun or a maker, they are
    listed and nothing is written, until they are named, too, or --apart says what they are.
    """
    editor = ProductEditor(app_settings().data_dir)
    editor.merge([editor.product(slug) for slug in products], editor.product(into), apart=apart)


@names_group.command()
@click.argument("product")
@click.argument("other")
@_apart
@with_data
def reject(product: str, other: str, *, apart: bool) -> None:
    """Say that PRODUCT and OTHER are two, so that the queue never asks again."""
    editor = ProductEditor(app_settings().data_dir)
    editor.reject(editor.product(product), editor.product(other), apart=apart)


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
    for meaning in curation.meanings(uses or unused, snapshot.names):
        click.echo("\n".join(_explained(meaning, snapshot)))


class ProductEditor:
    """The products as they stand, and the edits that a curator makes to their files."""

    def __init__(self, directory: Path) -> None:
        """Raises what :class:`Store` does where data directory or history cannot be read."""
        self._directory = directory
        self._snapshot = Store(directory).snapshot
        self._files = self._snapshot.catalogue.products
        self._read: dict[str, Record] = {}

    def product(self, text: str) -> ProductProfile:
        """Return the product of a slug, old or new.

        Raises:
            click.ClickException: no product has it, or nobody knows what its file says.
        """
        slug = self._snapshot.summary.product_redirects.get(text, text)
        if product := self._snapshot.product(slug):
            return product
        if file := self._files.get(text):
            use = FirstUse("", "", "", 0, file.name)
            return ProductProfile(text, text, file.name, file.domain, file.aliases, 0, (), use)
        if self._snapshot.catalogue.fault_of("products", text):
            members(self._directory, _path(text))
        raise unknown_slug("product", text, self._snapshot.product_slugs)

    def merge(
        self, products: Sequence[ProductProfile], into: ProductProfile, *, apart: bool
    ) -> None:
        """Write the names of products into the file of another, and remove their own files.

        With ``apart``, what the rules for names would add is listed in ``not_same_as``.

        Raises:
            click.ClickException: they are one already, are told apart, or a file is broken; or the
                rules would add something.
        """
        before = self._members(into)
        record = dict(before)
        for product in products:
            if product.id == into.id:
                raise click.ClickException(f"{product.slug} is {into.slug} already.")
            self._refuse_if_told_apart(product, into)
            own = self._members(product)
            _extend(record, "aliases", (own["name"], *own.get("aliases", ())))
            if product.id in self._files:
                _extend(record, "former_slugs", (product.slug, *own.get("former_slugs", ())))
        if record == before:
            raise click.ClickException(
                f'{_path(into.slug)} claims "{products[0].name}" already, and so does another '
                "file; see `flask check`."
            )
        removed = [product.slug for product in products if product.id in self._files]
        others = self._others([*products, into], into.slug, record, removed)
        if others and not apart:
            raise click.ClickException(_unnamed(into.slug, others))
        _extend(record, "not_same_as", others)
        for slug in removed:
            self._refuse_if_changed(slug)
        self._write(into.slug, record)
        for slug in removed:
            self._remove(slug)

    def reject(self, product: ProductProfile, other: ProductProfile, *, apart: bool) -> None:
        """Write that two products are not the same, into the file of one of them.

        Where neither has a file, the new one is the one that takes in fewer other names; with
        ``apart``, it says that those are not the same, either.

        Raises:
            click.ClickException: they are one product, or a file is broken; or the new file would
                take in others.
        """
        if product.id == other.id:
            raise click.ClickException(f"{product.slug} is {other.slug}; take its alias out first.")
        pairs = [(other, product), (product, other)]
        candidates: list[tuple[dict[str, set[str]], str, Record]] = []
        for keeper, stranger in [pair for pair in pairs if pair[0].id in self._files] or pairs:
            record = self._members(keeper)
            _extend(record, "not_same_as", [stranger.slug])
            candidates.append((self._others(pairs[0], keeper.slug, record), keeper.slug, record))
        others, slug, record = min(candidates, key=lambda candidate: len(candidate[0]))
        if others and not apart:
            raise click.ClickException(_unnamed(slug, others))
        _extend(record, "not_same_as", others)
        self._write(slug, record)

    def _members(self, product: ProductProfile) -> Record:
        """Return the members of a product's file, of a new one if it has none."""
        name = _path(product.slug)
        if product.id in self._files or os.path.lexists(self._directory / name):
            self._read[name] = members(self._directory, name)
            return dict(self._read[name])
        return {"$schema": schema_of(name), "version": 1, "name": product.name}

    def _refuse_if_told_apart(self, product: ProductProfile, into: ProductProfile) -> None:
        for one, other in ((product, into), (into, product)):
            file = self._files.get(one.id)
            if file and other.slug in file.not_same_as:
                raise click.ClickException(
                    f"{_path(one.slug)} says in not_same_as that it is not {other.slug}; "
                    "take that out first."
                )

    def _others(
        self,
        products: Iterable[ProductProfile],
        slug: str,
        record: Record,
        removed: Sequence[str] = (),
    ) -> dict[str, set[str]]:
        """Return by address what a file would take in of other products, and in which categories.

        ``record`` is what the file would say, ``removed`` names files that would go.
        """
        files = {name: file for name, file in self._files.items() if name not in removed}
        files[slug] = msgspec.convert(record, Product)
        after = Names(dict(sorted(files.items())))
        ids, others = {product.id for product in products}, dict[str, set[str]]()
        for category, aggregate in self._snapshot.aggregates.items():
            for spelling, id_ in aggregates.resolved_by(after, aggregate).items():
                if id_ == slug and aggregate.resolved[spelling] not in ids:
                    others.setdefault(names.slug(spelling[0]), set()).add(category)
        return others

    def _write(self, slug: str, record: Record) -> None:
        write(self._directory, _path(slug), record, self._read.get(_path(slug)))
        click.echo(f"Wrote {_path(slug)}.")

    def _refuse_if_changed(self, slug: str) -> None:
        refuse_if_changed(self._directory, _path(slug), self._read[_path(slug)])

    def _remove(self, slug: str) -> None:
        try:
            self._refuse_if_changed(slug)
            (self._directory / _path(slug)).unlink()
        except OSError as error:
            raise click.ClickException(
                f"{_path(slug)} cannot be removed, and is to go: {error.strerror}."
            ) from None
        click.echo(f"Removed {_path(slug)}.")


def _extend(record: Record, member: str, items: Iterable[str]) -> None:
    """Put those items at the end of a data file's list that it does not have yet."""
    is_name = member == "aliases"
    present = {names.key(record["name"])} if is_name else set()
    present.update(map(names.key if is_name else str, record.get(member, ())))
    for item in items:
        key = names.key(item) if is_name else item
        if key not in present:
            record[member] = [*record.get(member, ()), item]
            present.add(key)


def _unnamed(slug: str, others: Mapping[str, set[str]]) -> str:
    """Return why nothing is written: the products that nobody named, and what can be said."""
    lines = [
        f"  {address}, in {some(sorted(places), _SHOWN)}\n"
        for address, places in sorted(others.items())
    ]
    return (
        f"Nothing was written: {_path(slug)} would also take in, by the rules for nouns and "
        f"makers,\n{''.join(lines)}If one is the same product, merge it, too; of all others say "
        "--apart that they are not."
    )


def _explained(meaning: NameResolution, snapshot: Snapshot) -> Iterator[str]:
    """Yield a spelling's product, rule, categories and key, and how often the product is named."""
    file = snapshot.catalogue.products.get(meaning.product)
    profile = snapshot.products.get(meaning.product)
    name = file.name if file else profile.name if profile else meaning.spelling
    where = _path(meaning.product) if file else "a product of its own, in no file"
    yield f"{meaning.spelling}: {name} ({where})"
    yield f"rule: {meaning.rule}"
    yield f"in: {some(meaning.places, _SHOWN)}"
    yield f"key: {names.key(meaning.spelling)}"
    yield f"/product/{profile.slug}, {_uses(profile)}" if profile else "named in no successful poll"


def _described(suggestion: MergeSuggestion, files: Mapping[str, Product]) -> Iterator[str]:
    """Yield a suggestion in four lines, the last of them ready to be run."""
    product, known = suggestion.product, suggestion.known
    where = _path(known.id) if known.id in files else "in no file yet"
    pair = f"{product.slug} {known.slug}"
    yield f'{product.slug}: "{product.name}", {_uses(product)}'
    yield f'  may be {known.slug}: "{known.name}" ({where}), {_uses(known)}'
    yield f"  because: {'; '.join(suggestion.why)}"
    yield f"  flask names merge {pair}  |  flask names reject {pair}"


def _uses(product: ProductProfile) -> str:
    return f"named {product.mentions}x in {some(product.categories, _SHOWN)}"


def _path(slug: str) -> str:
    return f"products/{slug}.json"
