"""``flask names``: which spellings are one product, by a curator's word."""

from __future__ import annotations

from collections import Counter
from pathlib import PurePath
from typing import TYPE_CHECKING

import click
import msgspec
from flask import current_app
from flask.cli import with_appcontext
from rapidfuzz import process

from store.cli.editing import Edit, EditError, carry_out, new, text_of, with_item
from store.files import DataDirectoryError, understand
from store.history import HistoryError
from store.memory import Store
from store.rankings import likeness, names
from store.rankings.names import Names
from store.rankings.products import Named
from store.records import Product

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from store.rankings.boards import Board
    from store.rankings.likeness import Suggestion
    from store.rankings.names import ProductId
    from store.settings import Settings
    from store.snapshot import Snapshot

ORDER = tuple(field.encode_name for field in msgspec.structs.fields(Product))

_SHOWN = 5


@click.group("names")
def names_group() -> None:
    """Say which spellings are one product; history itself is never changed.

    PRODUCT is a product's slug, or a spelling in quotes. Every command prints the diff it wrote
    on standard output: kept in a file, `git apply -R` in the data directory takes it back.
    """


@names_group.command()
@click.option("--limit", default=20, show_default=True, help="Show this many.")
@click.option("--category", metavar="SLUG", help="Only where this category names one of the two.")
@with_appcontext
def queue(limit: int, category: str | None) -> None:
    """List products that may be known under another name, best reasons first."""
    desk = Desk.open()
    waiting = [
        suggestion
        for suggestion in desk.suggestions()
        if category is None
        or category in (*suggestion.product.categories, *suggestion.known.categories)
    ]
    for suggestion in waiting[:limit]:
        click.echo("\n".join(_told(suggestion, desk.files)))
    click.echo(f"{min(limit, len(waiting))} of {len(waiting)} suggestions.", err=True)


@names_group.command()
@click.argument("product")
@with_appcontext
def accept(product: str) -> None:
    """Take the queue's suggestion for PRODUCT: it becomes an alias of the one it looks like."""
    desk = Desk.open()
    found = desk.product(product)
    fitting = [s for s in desk.suggestions() if s.product.id == found.id]
    if not fitting:
        raise click.ClickException(f"The queue holds nothing for {found.slug}; use merge.")
    desk.merge(found, fitting[0].known)


@names_group.command()
@click.argument("product")
@click.argument("into")
@with_appcontext
def merge(product: str, into: str) -> None:
    """Make PRODUCT one with INTO: its names become aliases there, its address leads there."""
    desk = Desk.open()
    desk.merge(desk.product(product), desk.product(into))


@names_group.command()
@click.argument("product")
@click.argument("other")
@with_appcontext
def reject(product: str, other: str) -> None:
    """Say that PRODUCT and OTHER are two, so that the queue never asks again."""
    desk = Desk.open()
    desk.reject(desk.product(product), desk.product(other))


@names_group.command()
@click.argument("text")
@click.option("--category", metavar="SLUG", help="As a model spells it in this category.")
@click.option("--domain", help="With this domain, as a model may give it.")
@with_appcontext
def explain(text: str, category: str | None, domain: str | None) -> None:
    """Say which product a spelling stands for, and by which rule."""
    desk = Desk.open()
    categories = desk.snapshot.catalogue.categories
    if category is not None and category not in categories:
        raise click.UsageError(f'No category has the slug "{category}".')
    nouns = categories[category].nouns if category else ()
    found = desk.snapshot.names.resolve(text, domain, nouns)
    owner = desk.files.get(found.product)
    where = f"products/{found.product}.json" if owner else "a product of its own, in no file"
    click.echo(f"{text}: {owner.name if owner else text} ({where})")
    click.echo(f"rule: {found.rule}")
    click.echo(f"key: {names.key(text)}")
    named = desk.snapshot.products.get(found.product)
    address = named.slug if named else found.product if owner else names.slug(text)
    click.echo(f"address: /product/{address}")
    click.echo(_named(named) if named else "named in no successful poll")


class Desk:
    """The products as they stand, and the edits that a curator makes to their files."""

    def __init__(self, directory: Path, snapshot: Snapshot) -> None:
        self._directory = directory
        self.snapshot = snapshot
        self.files = snapshot.catalogue.products

    @classmethod
    def open(cls) -> Desk:
        """The desk over the app's data directory."""
        settings: Settings = current_app.extensions["settings"]
        try:
            return cls(
                settings.data_dir, Store(settings.data_dir, lambda _: _Unpublished()).snapshot
            )
        except (DataDirectoryError, HistoryError) as error:
            raise click.ClickException(str(error)) from None

    def suggestions(self) -> list[Suggestion]:
        """What the queue holds."""
        return likeness.queue(
            self.snapshot.products, self.files, self.snapshot.catalogue.categories
        )

    def product(self, text: str) -> Named:
        """The product of a slug, old or new, or of a spelling."""
        snapshot = self.snapshot
        slug = snapshot.overview.product_redirects.get(text, text)
        if found := snapshot.product(slug) or self._by_spelling(text):
            return found
        if file := self.files.get(text):
            return Named(text, text, file.name, file.domain, file.aliases, 0, (), "")
        close = process.extract(text, list(snapshot.product_slugs), limit=3, score_cutoff=60)
        hint = f" Closest: {', '.join(slug for slug, *_ in close)}." if close else ""
        raise click.UsageError(f'No product has the slug or the spelling "{text}".{hint}')

    def _by_spelling(self, text: str) -> Named | None:
        wanted = names.key(text)
        for product in self.snapshot.products.values():
            if any(names.key(title) == wanted for title in (product.name, *product.aliases)):
                return product
        return None

    def merge(self, product: Named, into: Named) -> None:
        """Write the names of one product into the file of the other, and take its own away."""
        if product.id == into.id:
            raise click.ClickException(f"{product.slug} is {into.slug} already.")
        self._refuse_if_told_apart(product, into)
        own = self.files.get(product.id)
        text = self._text(into)
        known = {names.key(title) for title in self._titles(into)}
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

    def reject(self, product: Named, other: Named) -> None:
        """Write that two products are not the same, into the file of the one that has a file."""
        if product.id == other.id:
            raise click.ClickException(f"{product.slug} is {other.slug}; take its alias out first.")
        keeper, apart = (product, other) if product.id in self.files else (other, product)
        text = with_item(self._text(keeper), "not_same_as", apart.slug, ORDER)
        edits = [self._edit(keeper.slug, text)]
        if apart.id not in self.files and self._would_swallow(keeper, apart):
            edits.append(self._edit(apart.slug, new(_name(apart.slug), name=apart.name)))
        self._carry_out(edits)

    def _would_swallow(self, keeper: Named, apart: Named) -> bool:
        """Whether a file for one product would take the other in, by a maker or a noun."""
        after = Names({**self.files, keeper.slug: self._record(keeper)})
        return any(
            after.resolve(apart.name, None, self.snapshot.readings[slug].category.nouns).product
            == keeper.slug
            for slug in apart.categories
        )

    def _record(self, product: Named) -> Product:
        return self.files.get(product.id) or Product(version=1, name=product.name)

    def _titles(self, product: Named) -> tuple[str, ...]:
        record = self._record(product)
        return (record.name, *record.aliases)

    def _refuse_if_told_apart(self, product: Named, into: Named) -> None:
        for one, other in ((product, into), (into, product)):
            if other.slug in self._record(one).not_same_as:
                raise click.ClickException(
                    f"products/{one.slug}.json says in not_same_as that it is not {other.slug}; "
                    "take that out first."
                )

    def _text(self, product: Named) -> str:
        """The text of a product's file, a new one if it has none."""
        if product.id not in self.files:
            return new(_name(product.slug), name=product.name)
        try:
            return text_of(self._directory, _name(product.slug))
        except EditError as error:
            raise click.ClickException(str(error)) from None

    def _edit(self, slug: str, after: str | None) -> Edit:
        name = _name(slug)
        try:
            before = text_of(self._directory, name) if slug in self.files else None
        except EditError as error:
            raise click.ClickException(str(error)) from None
        return Edit(name, before, after)

    def _carry_out(self, edits: list[Edit]) -> None:
        """Write, show what was written, and say which spellings stand for another product now."""
        after = self._names_after(edits)
        try:
            carry_out(self._directory, edits)
        except EditError as error:
            raise click.ClickException(str(error)) from None
        for edit in edits:
            click.echo(edit.diff, nl=False)
        for (spelling, slug), count in sorted(self._moved(after).items()):
            where = "1 category" if count == 1 else f"{count} categories"
            click.echo(f'"{spelling}" is {slug} now, in {where}.', err=True)

    def _names_after(self, edits: list[Edit]) -> Names:
        products = dict(self.files)
        for edit in edits:
            slug = PurePath(edit.name).stem
            products.pop(slug, None)
            record = understand(edit.name, edit.after.encode()).record if edit.after else None
            if isinstance(record, Product):
                products[slug] = record
        return Names(dict(sorted(products.items())))

    def _moved(self, after: Names) -> Counter[tuple[str, str]]:
        """The spellings that stand for another product file than before, with their categories."""
        return Counter(
            (spelling, now)
            for reading in self.snapshot.readings.values()
            for (spelling, domain), before in reading.resolved.items()
            if (now := after.resolve(spelling, domain, reading.category.nouns).product) != before
            and now in after.products
        )


def _told(suggestion: Suggestion, files: Mapping[str, Product]) -> Iterator[str]:
    """A suggestion in four lines, the last of them ready to be run."""
    product, known = suggestion.product, suggestion.known
    where = f"products/{known.id}.json" if known.id in files else "in no file yet"
    yield f'{product.slug}: "{product.name}", {_named(product)}'
    yield f'  may be {known.slug}: "{known.name}" ({where}), {_named(known)}'
    yield f"  because: {'; '.join(reason.text for reason in suggestion.why)}"
    yield f"  flask names accept {product.slug}  |  flask names reject {product.slug} {known.slug}"


def _named(product: Named) -> str:
    shown = ", ".join(product.categories[:_SHOWN])
    more = len(product.categories) - _SHOWN
    return f"named {product.mentions}x in {shown}" + (f" and {more} more" if more > 0 else "")


def _name(slug: str) -> str:
    return f"products/{slug}.json"


class _Unpublished:
    """Makes no bodies: names are looked at, nothing is served."""

    def category(self, board: Board, products: Mapping[ProductId, Named]) -> bytes:  # noqa: ARG002
        """Nothing."""
        return b""

    def product(self, product: Named, boards: Mapping[str, Board]) -> bytes:  # noqa: ARG002
        """Nothing."""
        return b""

    def documents(self, snapshot: Snapshot) -> Mapping[str, bytes]:  # noqa: ARG002
        """Nothing."""
        return {}
