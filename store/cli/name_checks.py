"""What ``flask check`` says of names that product files match or lose in history."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from store.cli import plural
from store.rankings import curation
from store.rankings import names as naming
from store.snapshot import Histories, derive

if TYPE_CHECKING:
    from collections.abc import Iterator

    from store.files import Catalogue, Files
    from store.history import History
    from store.rankings.curation import NameResolution
    from store.rankings.products import ProductProfile
    from store.records import Problem
    from store.snapshot import Snapshot


def remarks(catalogue: Catalogue, files: Files, history: History) -> Iterator[Problem]:
    """What each product file makes of the names in history, beyond its own name and aliases."""
    if not catalogue.products:
        return
    snapshot = derive(None, catalogue, Histories.of(history))
    yield from _taken_in(snapshot, files)
    yield from _detached(snapshot, files)


def _taken_in(snapshot: Snapshot, files: Files) -> Iterator[Problem]:
    found: defaultdict[tuple[str, str], list[NameResolution]] = defaultdict(list)
    for meaning in curation.taken_in(snapshot.aggregates.values(), snapshot.names):
        found[meaning.product, meaning.rule].append(meaning)
    for (slug, rule), meanings in found.items():
        taken = [
            f'"{meaning.spelling}" ({curation.listed(meaning.places)})'
            for meaning in sorted(meanings, key=lambda m: (-len(m.places), m.spelling))
        ]
        addresses = sorted({naming.slug(meaning.spelling) for meaning in meanings})
        message = (
            f'takes in {curation.listed(taken)} by the rule "{rule}": what is the same product '
            "belongs in aliases; what is not, by its address, in not_same_as "
            f"({curation.listed(addresses)})"
        )
        yield files.problem_at(f"products/{slug}.json", ("name",), message, "notice")


def _detached(snapshot: Snapshot, files: Files) -> Iterator[Problem]:
    for slug, product in curation.detached(snapshot.products, snapshot.names):
        message = (
            f'"{product.name}" ({_polls(product)}) is neither the name nor an alias, so it ranks '
            f"as another product, at {product.slug}: put it in aliases if it is this one, else "
            f"{product.slug} in not_same_as"
        )
        yield files.problem_at(f"products/{slug}.json", ("name",), message, "warning")


def _polls(product: ProductProfile) -> str:
    """How often and where a product is named."""
    return f"{plural(product.mentions, 'poll')} in {curation.listed(product.categories)}"
