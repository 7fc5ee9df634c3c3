"""``flask names``: which spellings are one product, by a curator's word."""

from __future__ import annotations

import json
import os
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import click
from rapidfuzz import process

from store.cli import app_settings, with_data
from store.cli.editing import Edit, canonical, carry_out, new_record, text_of
from store.data_file import understand
from store.memory import Store
from store.rankings import aggregates, curation, names, similarity
from store.rankings.aggregates import FirstUse
from store.rankings.curation import Move, NameResolution, Use
from store.rankings.names import Names
from store.rankings.products import ProductProfile
from store.records import Product, is_slug

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from store.rankings.similarity import MergeSuggestion

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


_also = click.option(
    "--also", multiple=True, metavar="PRODUCT", help="Merge this one, too; again for more."
)
_apart = click.option(
    "--apart",
    is_flag=True,
    help="Say in not_same_as that what else the rules for names would take in is another product.",
)


@names_group.command()
@click.argument("product")
@_also
@_apart
@with_data
def accept(product: str, also: tuple[str, ...], *, apart: bool) -> None:
    """Take the queue's suggestion for PRODUCT: it becomes an alias of the one it looks like."""
    editor = ProductEditor(app_settings().data_dir)
    found = editor.product(product)
    fitting = [s for s in editor.suggestions() if s.product.id == found.id]
    if not fitting:
        raise click.ClickException(f"The queue holds nothing for {found.slug}; use merge.")
    editor.merge([found, *map(editor.product, also)], fitting[0].known, apart=apart)


@names_group.command()
@click.argument("product")
@click.argument("into")
@_also
@_apart
@with_data
def merge(product: str, into: str, also: tuple[str, ...], *, apart: bool) -> None:
    """Make PRODUCT one with INTO: its names become aliases there, its address leads there.

    Nothing else is merged: where a name of theirs fits others but for a noun or a maker, they are
    listed and nothing is written, until --also or --apart says what they are.
    """
    editor = ProductEditor(app_settings().data_dir)
    products = [editor.product(name) for name in (product, *also)]
    editor.merge(products, editor.product(into), apart=apart)


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

    def merge(
        self, products: Sequence[ProductProfile], into: ProductProfile, *, apart: bool
    ) -> None:
        """Write the names of products into the file of another, and remove their own files.

        With ``apart``, what the rules for names would add is listed in ``not_same_as``.

        Raises:
            click.ClickException: they are one already, are told apart, or a file is broken; or the
                rules would add something.
        """
        record = self._members(into)
        removed: list[Edit] = []
        for product in products:
            if product.id == into.id:
                raise click.ClickException(f"{product.slug} is {into.slug} already.")
            self._refuse_broken(product.slug, into.slug)
            self._refuse_if_told_apart(product, into)
            own = self.files.get(product.id)
            titles = (own.name, *own.aliases) if own else (product.name,)
            others = [title for title in titles if names.key(title) != names.key(record["name"])]
            _extend(record, "aliases", others, names.key)
            if own:
                _extend(record, "former_slugs", (product.slug, *own.former_slugs))
                removed.append(self._edit(product.slug, None))
        if record == self._members(into):
            raise click.ClickException(
                f'{_name(into.slug)} claims "{products[0].name}" already, and so does another '
                "file; see `flask check`."
            )
        self._carry_out([*products, into], into.slug, record, removed, apart=apart)

    def reject(self, product: ProductProfile, other: ProductProfile, *, apart: bool) -> None:
        """Write that two products are not the same, into the file of one of them.

        Where neither has a file, the new file is the one that matches fewer other names; with
        ``apart``, it says that those are not the same, either.

        Raises:
            click.ClickException: they are one product, or a file is broken; or the new file would
                match others.
        """
        if product.id == other.id:
            raise click.ClickException(f"{product.slug} is {other.slug}; take its alias out first.")
        self._refuse_broken(product.slug, other.slug)
        pairs = [(other, product), (product, other)]
        records: list[tuple[int, str, dict[str, Any]]] = []
        for keeper, stranger in [pair for pair in pairs if pair[0].id in self.files] or pairs:
            record = self._members(keeper)
            _extend(record, "not_same_as", [stranger.slug])
            moves = self._moves([self._edit(keeper.slug, canonical(record))])
            records.append((len(moves), keeper.slug, record))
        _, slug, record = min(records, key=lambda candidate: candidate[0])
        self._carry_out([product, other], slug, record, (), apart=apart)

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

    def _members(self, product: ProductProfile) -> dict[str, Any]:
        """Return the members of a product's file, of a new one if it has none."""
        name = _name(product.slug)
        if product.id not in self.files:
            return new_record(name, name=product.name)
        members: dict[str, Any] = json.loads(text_of(self._directory, name))
        return members

    def _edit(self, slug: str, after: str | None) -> Edit:
        before = text_of(self._directory, _name(slug)) if slug in self.files else None
        return Edit(_name(slug), before, after)

    def _carry_out(
        self,
        products: Sequence[ProductProfile],
        slug: str,
        record: dict[str, Any],
        removed: Sequence[Edit],
        *,
        apart: bool,
    ) -> None:
        """Write a product's file, show what was written, and say what stands for another product.

        What is none of these ``products`` and would be taken in is told apart or refused.
        """
        edits = [self._edit(slug, canonical(record)), *removed]
        keys = {names.key(title) for p in products for title in (p.name, *p.aliases)}
        others = [
            move
            for move in self._moves(edits)
            if move.after == slug and names.key(move.spelling) not in keys
        ]
        if others and not apart:
            raise click.ClickException(_unnamed(slug, others))
        if others:
            _extend(record, "not_same_as", [names.slug(move.spelling) for move in others])
            edits = [self._edit(slug, canonical(record)), *removed]
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


def _extend(
    record: dict[str, Any], member: str, items: Iterable[str], key: Callable[[str], str] = str
) -> None:
    """Put those items at the end of a data file's list whose key none in it has."""
    entries = {key(item): item for item in record.get(member, ())}
    for item in items:
        entries.setdefault(key(item), item)
    if entries:
        record[member] = [*entries.values()]


def _unnamed(slug: str, others: Sequence[Move]) -> str:
    """Return why nothing is written: the products that nobody named, and what can be said."""
    lines = [
        f'  {move.before or names.slug(move.spelling)}: "{move.spelling}" in '
        f"{curation.listed(move.places)}\n"
        for move in others
    ]
    return (
        f"Nothing was written: {_name(slug)} would also take in, by the rules for nouns and "
        f"makers,\n{''.join(lines)}If one is the same product, merge it --also; of all others say "
        "--apart that they are not."
    )


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
