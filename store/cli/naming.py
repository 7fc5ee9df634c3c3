"""``flask names``: which spellings are one product, by a curator's word."""

from __future__ import annotations

import os
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

import click
import msgspec
from rapidfuzz import process

from store.cli import app_settings, with_data
from store.cli.editing import Edit, carry_out, new, text_of, with_item
from store.data_file import understand
from store.memory import Store
from store.rankings import aggregates, curation, names, similarity
from store.rankings.aggregates import FirstUse
from store.rankings.curation import Move, NameResolution, Use
from store.rankings.names import Names
from store.rankings.products import ProductProfile
from store.records import Product, is_slug

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from store.rankings.similarity import MergeSuggestion

ORDER = tuple(field.encode_name for field in msgspec.structs.fields(Product))

NOWHERE = "no category"

_SHOWN = 5  # categories that a line spells out


@click.group("names")
def names_group() -> None:
    """Say which spellings are one product; history itself is never changed.

    PRODUCT is a product's slug, or a spelling in quotes. Every command prints the diff it wrote
    on standard output: kept in a file, `git apply -R` in the data directory takes it back.
    """


@names_group.command()
@click.option("--limit", default=20, show_default=True, help="Show this many.")
@click.option("--category", metavar="SLUG", help="Only where this category names one of the two.")
@with_data
def queue(limit: int, category: str | None) -> None:
    """List products that may be known under another name, best reasons first."""
    editor = ProductEditor(app_settings().data_dir)
    waiting = editor.suggestions()
    if category is not None:
        waiting = [s for s in waiting if category in (*s.product.categories, *s.known.categories)]
    for suggestion in waiting[:limit]:
        click.echo("\n".join(_told(suggestion, editor.files)))
    click.echo(f"{min(limit, len(waiting))} of {len(waiting)} suggestions.", err=True)


@names_group.command()
@click.argument("product")
@with_data
def accept(product: str) -> None:
    """Take the queue's suggestion for PRODUCT: it becomes an alias of the one it looks like."""
    editor = ProductEditor(app_settings().data_dir)
    found = editor.product(product)
    fitting = [s for s in editor.suggestions() if s.product.id == found.id]
    if not fitting:
        raise click.ClickException(f"The queue holds nothing for {found.slug}; use merge.")
    editor.merge(found, fitting[0].known)


@names_group.command()
@click.argument("product")
@click.argument("into")
@with_data
def merge(product: str, into: str) -> None:
    """Make PRODUCT one with INTO: its names become aliases there, its address leads there."""
    editor = ProductEditor(app_settings().data_dir)
    editor.merge(editor.product(product), editor.product(into))


@names_group.command()
@click.argument("product")
@click.argument("other")
@with_data
def reject(product: str, other: str) -> None:
    """Say that PRODUCT and OTHER are two, so that the queue never asks again."""
    editor = ProductEditor(app_settings().data_dir)
    editor.reject(editor.product(product), editor.product(other))


@names_group.command()
@click.argument("text")
@click.option("--category", metavar="SLUG", help="As a model spells it in this category.")
@click.option("--domain", help="With this domain, as a model may give it.")
@with_data
def explain(text: str, category: str | None, domain: str | None) -> None:
    """Say which product a spelling stands for, by which rule and in which categories.

    It is looked up as models give it, in every category that names it.
    """
    if not text.strip():
        raise click.UsageError("Give a spelling.")
    editor = ProductEditor(app_settings().data_dir)
    if category is not None and category not in editor.snapshot.aggregates:
        raise click.UsageError(f'No category has the slug "{category}".')
    for meaning in editor.meanings(text, category, domain):
        click.echo("\n".join(_explained(meaning, editor)))


class ProductEditor:
    """The products as they stand, and the edits that a curator makes to their files."""

    def __init__(self, directory: Path) -> None:
        """Raises what :class:`Store` does where data directory or history cannot be read."""
        self._directory = directory
        self.snapshot = Store(directory).snapshot
        self.files = self.snapshot.catalogue.products

    def meanings(self, text: str, category: str | None, domain: str | None) -> list[NameResolution]:
        """What a spelling stands for in one category, or in all that name it.

        With a domain, as if all models gave that one. A spelling that no poll has is resolved too.
        """
        read = self.snapshot.aggregates
        asked = [read[category]] if category else read.values()
        found = curation.spelt(text, curation.uses(asked))
        if domain:
            found = [use._replace(domain=domain) for use in found]
        if not found:
            nouns = read[category].category.nouns if category else ()
            found = [Use(category or NOWHERE, nouns, text, domain)]
        return curation.meanings(found, self.snapshot.names)

    def address(self, meaning: NameResolution) -> str:
        """Where the product of a spelling is, or would be if it were named."""
        if named := self.snapshot.products.get(meaning.product):
            return named.slug
        if meaning.product in self.files:
            return meaning.product
        former = (old for file in self.files.values() for old in file.former_slugs)
        taken = {*self.snapshot.product_slugs, *self.files, *former}
        return next(slug for slug in names.slugs(meaning.spelling) if slug not in taken)

    def suggestions(self) -> list[MergeSuggestion]:
        """What the queue holds."""
        return similarity.queue(
            self.snapshot.products, self.files, self.snapshot.catalogue.categories
        )

    def product(self, text: str) -> ProductProfile:
        """The product of a slug, old or new, or of a spelling.

        Raises:
            click.UsageError: no product has it, or several have.
        """
        snapshot = self.snapshot
        slug = snapshot.summary.product_redirects.get(text, text)
        if found := snapshot.product(slug) or self._by_spelling(text):
            return found
        if file := self.files.get(text):
            use = FirstUse("", "", "", 0, file.name)
            return ProductProfile(text, text, file.name, file.domain, file.aliases, 0, (), use)
        if is_slug(text):
            self._refuse_broken(text)
        close = process.extract(text, list(snapshot.product_slugs), limit=3, score_cutoff=60)
        hint = f" Closest: {', '.join(slug for slug, *_ in close)}." if close else ""
        raise click.UsageError(f'No product has the slug or the spelling "{text}".{hint}')

    def _by_spelling(self, text: str) -> ProductProfile | None:
        wanted = names.key(text)
        found = [
            product
            for product in self.snapshot.products.values()
            if any(names.key(title) == wanted for title in (product.name, *product.aliases))
        ]
        if len(found) > 1:
            slugs = ", ".join(sorted(product.slug for product in found))
            raise click.UsageError(f'"{text}" stands for several products: {slugs}; give a slug.')
        return found[0] if found else None

    def merge(self, product: ProductProfile, into: ProductProfile) -> None:
        """Write the names of one product into the file of the other, and remove its own file.

        Raises:
            click.ClickException: they are one already, are told apart, or a file is broken.
        """
        if product.id == into.id:
            raise click.ClickException(f"{product.slug} is {into.slug} already.")
        self._refuse_broken(product.slug, into.slug)
        self._refuse_if_told_apart(product, into)
        own = self.files.get(product.id)
        text = self._text(into)
        record = self._record(into)
        known = {names.key(title) for title in (record.name, *record.aliases)}
        for title in (own.name, *own.aliases) if own else (product.name,):
            if names.key(title) not in known:
                text = with_item(text, "aliases", title, ORDER)
                known.add(names.key(title))
        for slug in (product.slug, *own.former_slugs) if own else ():
            text = with_item(text, "former_slugs", slug, ORDER)
        edits = [self._edit(into.slug, text)]
        if edits[0].before == text:
            raise click.ClickException(
                f'{edits[0].name} claims "{product.name}" already, and so does another file; '
                "see `flask check`."
            )
        if own:
            edits.append(self._edit(product.slug, None))
        self._carry_out(edits)

    def reject(self, product: ProductProfile, other: ProductProfile) -> None:
        """Write that two products are not the same, into the file of one of them.

        Where neither has a file, the new file is the one that matches fewer other names.

        Raises:
            click.ClickException: they are one product, or a file is broken.
        """
        if product.id == other.id:
            raise click.ClickException(f"{product.slug} is {other.slug}; take its alias out first.")
        self._refuse_broken(product.slug, other.slug)
        pairs = [(other, product), (product, other)]
        kept = [pair for pair in pairs if pair[0].id in self.files] or pairs
        edits = [
            self._edit(keeper.slug, with_item(self._text(keeper), "not_same_as", apart.slug, ORDER))
            for keeper, apart in kept
        ]
        self._carry_out([min(edits, key=lambda edit: len(self._moves([edit])))])

    def _record(self, product: ProductProfile) -> Product:
        return self.files.get(product.id) or Product(version=1, name=product.name)

    def _refuse_if_told_apart(self, product: ProductProfile, into: ProductProfile) -> None:
        for one, other in ((product, into), (into, product)):
            if other.slug in self._record(one).not_same_as:
                raise click.ClickException(
                    f"products/{one.slug}.json says in not_same_as that it is not {other.slug}; "
                    "take that out first."
                )

    def _refuse_broken(self, *slugs: str) -> None:
        """Refuse to edit around a file without a known good version: its names are unknown."""
        for slug in slugs:
            if slug not in self.files and os.path.lexists(self._directory / _name(slug)):
                text_of(self._directory, _name(slug))

    def _text(self, product: ProductProfile) -> str:
        """The text of a product's file, a new one if it has none."""
        if product.id not in self.files:
            return new(_name(product.slug), name=product.name)
        return text_of(self._directory, _name(product.slug))

    def _edit(self, slug: str, after: str | None) -> Edit:
        before = text_of(self._directory, _name(slug)) if slug in self.files else None
        return Edit(_name(slug), before, after)

    def _carry_out(self, edits: list[Edit]) -> None:
        """Write, show what was written, and say which spellings stand for another product now."""
        moves = self._moves(edits)
        carry_out(self._directory, edits)
        for edit in edits:
            click.echo(edit.diff, nl=False)
        for move in moves:
            click.echo(f"{move.told()}.", err=True)

    def _moves(self, edits: list[Edit]) -> list[Move]:
        """The spellings that would stand for another product after these edits."""
        after, named = self._names_after(edits), self.snapshot.products
        read = self.snapshot.aggregates
        was = {slug: aggregate.resolved for slug, aggregate in read.items()}
        now = {slug: aggregates.resolved_by(after, aggregate) for slug, aggregate in read.items()}
        return curation.moves(
            curation.addressed(was, named, self.files),
            curation.addressed(now, named, after.products),
        )

    def _names_after(self, edits: list[Edit]) -> Names:
        products = dict(self.files)
        for edit in edits:
            slug = PurePath(edit.name).stem
            products.pop(slug, None)
            record = understand(edit.name, edit.after.encode()).record if edit.after else None
            if isinstance(record, Product):
                products[slug] = record
        return Names(dict(sorted(products.items())))


def _explained(meaning: NameResolution, editor: ProductEditor) -> Iterator[str]:
    """A spelling's product, rule, categories, key and address."""
    named, owner = editor.snapshot.products.get(meaning.product), editor.files.get(meaning.product)
    where = f"products/{meaning.product}.json" if owner else "a product of its own, in no file"
    name = owner.name if owner else named.name if named else meaning.spelling
    yield f"{meaning.spelling}: {name} ({where})"
    yield f"rule: {meaning.rule}"
    yield f"in: {curation.listed(meaning.places, _SHOWN)}"
    yield f"key: {names.key(meaning.spelling)}"
    yield f"address: /product/{editor.address(meaning)}"
    yield _named(named) if named else "named in no successful poll"


def _told(suggestion: MergeSuggestion, files: Mapping[str, Product]) -> Iterator[str]:
    """A suggestion in four lines, the last of them ready to be run."""
    product, known = suggestion.product, suggestion.known
    where = f"products/{known.id}.json" if known.id in files else "in no file yet"
    yield f'{product.slug}: "{product.name}", {_named(product)}'
    yield f'  may be {known.slug}: "{known.name}" ({where}), {_named(known)}'
    yield f"  because: {'; '.join(reason.text for reason in suggestion.why)}"
    yield f"  flask names accept {product.slug}  |  flask names reject {product.slug} {known.slug}"


def _named(product: ProductProfile) -> str:
    return f"named {product.mentions}x in {curation.listed(product.categories, _SHOWN)}"


def _name(slug: str) -> str:
    return f"products/{slug}.json"
