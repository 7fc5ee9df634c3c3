"""The immutable state of everything, and how the next one follows from files and history.

A snapshot is made of parts, and each part is a pure function of its basis. :func:`derive` takes
over every part whose basis is equal; a snapshot derived step by step has the same bytes as one
made anew.
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from operator import attrgetter

from msgspec import Struct
from msgspec.structs import replace

from store.category_history import (
    CategoryHistory,
    HistoryBasis,
    PollIndex,
    deleted_slugs,
    history_files,
    read_category,
    undeclared_sample,
)
from store.disk import Signature
from store.files import Catalogue
from store.history import History, Log
from store.ledger import Ledger, ProvisionalHead
from store.rankings import leaderboards, products
from store.rankings.aggregates import CategoryAggregate, ProductStats
from store.rankings.leaderboards import Leaderboard
from store.rankings.names import Names, ProductId
from store.rankings.poll_states import PairState
from store.rankings.products import ProductProfile
from store.records import Category, Problem, Site
from store.site_summary import SiteSummary, summarise

_FIELDS_OF_SINGLE_PARTS = (
    "categories",  # in `HistoryBasis`
    "withheld",
    "products",  # in products' profiles and `Names`
    "synonyms",  # in the site summary, made anew at each step
    "words",
    "words_from",
    "instruments",
    "labs",
    "problems",
    "unusable",
)
"""Fields of a catalogue that only single parts, or the site summary, are made from.

A change of any other field makes all leaderboards anew.
"""
_MEMBERS_NOT_ON_LEADERBOARDS = ("aliases", "mentions", "categories", "first_use")
"""Members of a product's profile that no leaderboard shows; a change of any other makes those anew
that name the product."""


class Snapshot(Struct, frozen=True, weakref=True, dict=True):
    """One consistent state of files and history.

    Mappings are keyed by category slug, but ``products`` and ``product_stats`` by product id; the
    latter are a product's figures in each category. ``histories`` also hold deleted
    categories, see :meth:`deleted_category`. ``poll_indexes`` and ``aggregates`` hold no category
    whose history was never read, ``poll_states`` none whose history could not be read last time.
    ``step`` counts derivations from 1. ``board_steps`` have, by category, the step in which its
    leaderboard or its polls last changed: what was made of them since may be kept.
    """

    catalogue: Catalogue
    ledger: Ledger
    names: Names
    summary: SiteSummary
    histories: Mapping[str, CategoryHistory] = {}
    product_stats: Mapping[ProductId, Mapping[str, ProductStats]] = {}
    products: Mapping[ProductId, ProductProfile] = {}
    product_slugs: Mapping[str, ProductId] = {}
    leaderboards: Mapping[str, Leaderboard] = {}
    step: int = 0
    board_steps: Mapping[str, int] = {}

    @cached_property
    def poll_indexes(self) -> dict[str, PollIndex]:
        """The places of the polls of each category."""
        return {slug: r.poll_index for slug, r in self.histories.items() if r.poll_index}

    @cached_property
    def aggregates(self) -> dict[str, CategoryAggregate]:
        """The figures of each category's polls."""
        return {slug: r.aggregate for slug, r in self.histories.items() if r.aggregate}

    @cached_property
    def poll_states(self) -> dict[str, Mapping[str, PairState]]:
        """By category where each assistant stands, by all its polls."""
        return {slug: r.poll_states for slug, r in self.histories.items() if r.poll_states}

    @cached_property
    def damage(self) -> dict[str, tuple[Problem, ...]]:
        """All damage in the history files of each category."""
        return {slug: reading.damage for slug, reading in self.histories.items()}

    @cached_property
    def models(self) -> tuple[str, ...]:
        """The names of the configured models, in order."""
        return tuple([assistant.name for assistant in self.catalogue.assistants])

    @cached_property
    def site(self) -> Site:
        """The site as in site.json; a sample, too, while history holds invented answers."""
        site = self.catalogue.site
        return replace(site, sample=True) if self._invented else site

    @cached_property
    def _invented(self) -> Problem | None:
        polls = sum(poll_index.invented for poll_index in self.poll_indexes.values())
        return undeclared_sample(polls, self.catalogue.site)

    @property
    def blocks_polling(self) -> Problem | None:
        """The error that leaves open whom to ask, at what cost, or for which kind of site."""
        return self.catalogue.blocks_polling or self._invented

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Everything wrong in files and history that a curator should mend."""
        contradiction = [self._invented] if self._invented else []
        return tuple(sorted([*self.catalogue.problems, *contradiction, *self._all_damage]))

    @cached_property
    def _all_damage(self) -> set[Problem]:
        return {problem for problems in self.damage.values() for problem in problems}

    @cached_property
    def lost(self) -> tuple[Problem, ...]:
        """The first problem of each category whose history was never read.

        While no history is known at all, it is every error in history.
        """
        if any(poll_index.models for poll_index in self.poll_indexes.values()):
            unread = self.damage.keys() - self.poll_indexes.keys()
            return tuple(sorted({self.damage[slug][0] for slug in unread}))
        return tuple(sorted(p for p in self._all_damage if p.severity == "error"))

    def is_unreadable(self, slug: str) -> bool:
        """Return whether lines that a category's figures follow from cannot be read any more."""
        return self.histories[slug].signatures is None

    @cached_property
    def unknown_withheld(self) -> tuple[str, ...]:
        """The ids in withheld.json that no poll has; none while a poll of them may be lost."""
        hidden = {f"{x.ids[i]:016x}" for x in self.poll_indexes.values() for i in x.withheld}
        return () if self.lost else tuple(sorted(self.catalogue.withheld.keys() - hidden))

    @property
    def unpublishable(self) -> list[Problem]:
        """The errors that keep the data from being published."""
        unshown = {self.fault_of(slug) for slug in self.damage}
        governing = filter(None, (*self.catalogue.governing_errors, self._invented))
        return [*governing, *sorted(filter(None, unshown))]

    @cached_property
    def provisional_head(self) -> ProvisionalHead:
        """All lines of history, closed or not, and the root over them."""
        return self.ledger.provisional_head(
            entry for index in self.poll_indexes.values() for entry in index.open_entries
        )

    def deleted_category(self, slug: str) -> CategoryAggregate | None:
        """Return what history holds of a category that somebody deleted."""
        if slug in self.catalogue.categories or self.catalogue.fault_of("categories", slug):
            return None
        poll_index = self.poll_indexes.get(slug)
        return self.aggregates.get(slug) if poll_index and poll_index.models else None

    def fault_of(self, slug: str) -> Problem | None:
        """Return what keeps a category, or a slug that history holds, from being shown."""
        aggregate = self.aggregates.get(slug)
        errors = [p for p in self.damage.get(slug, ()) if p.severity == "error"]
        if errors and not (slug in self.poll_indexes and aggregate and aggregate.successes):
            return errors[0]
        fault = self.catalogue.fault_of("categories", slug)
        of_folder = fault is not None and fault.file == "categories"
        return fault if slug in self.poll_indexes or not of_folder else None

    def product(self, slug: str) -> ProductProfile | None:
        """Return a product by its address, unless nobody knows what its file says."""
        if self.catalogue.fault_of("products", slug):
            return None
        return self.products.get(self.product_slugs.get(slug, ""))


def derive(before: Snapshot | None, catalogue: Catalogue, history: History) -> Snapshot:
    """Return the snapshot of these files, or ``before`` where nothing differs.

    What is the same as in ``before`` is taken over from it, only to save work. A history file is
    read only where a part needs it, so that all polls are never in memory at once.

    Raises:
        HistoryError: the folder of history cannot be looked into.
    """
    # The ledger is read with the signatures; whoever appends meanwhile may replace it.
    signatures, ledger = history.signatures(), history.ledger
    old = before or _without_history(catalogue, ledger)
    same_products = old.catalogue.products == catalogue.products
    names = old.names if same_products else Names(catalogue.products)
    histories = _histories(old, catalogue, names, signatures, history.read)
    # Cheap although histories are large: those taken over are the same objects.
    is_same = old.catalogue is catalogue and old.ledger is ledger and old.histories == histories
    if before and is_same:
        return before
    product_stats = _stats_by_product(histories)
    profiles, slugs = _products(old, catalogue, product_stats)
    snapshot = replace(
        old,
        catalogue=catalogue,
        ledger=ledger,
        names=names,
        histories=histories,
        product_stats=product_stats,
        products=profiles,
        product_slugs=slugs,
        step=old.step + 1,
    )
    boards, board_steps = _leaderboards(old, snapshot)
    return replace(
        snapshot,
        leaderboards=boards,
        summary=summarise(
            catalogue, snapshot.aggregates, boards, profiles, ledger.last_closed_day, old.summary
        ),
        board_steps=board_steps,
    )


def _without_history(catalogue: Catalogue, ledger: Ledger) -> Snapshot:
    summary = summarise(catalogue, {}, {}, {}, "", None)
    return Snapshot(catalogue, ledger, Names(catalogue.products), summary)


def _histories(
    old: Snapshot,
    catalogue: Catalogue,
    names: Names,
    signatures: Mapping[str, Signature | None],
    read: Callable[[str], Log],
) -> dict[str, CategoryHistory]:
    """Return the reading of each category, and of each slug that history holds besides.

    A reading is taken over while the signatures of its files, its :class:`HistoryBasis` and what
    its names stand for are the same. A file that the ledger knows and that is gone has the
    signature ``None``.
    """
    deleted = deleted_slugs(catalogue, signatures)
    unknown = {slug: Category(version=1, title=slug, question=slug) for slug in deleted}
    former_names, withheld = catalogue.former_names, catalogue.withheld
    histories: dict[str, CategoryHistory] = {}
    for slug, category in sorted({**unknown, **catalogue.categories}.items()):
        files = tuple(history_files(slug, catalogue.categories))
        basis = HistoryBasis(files, category, former_names, withheld)
        before = old.histories.get(slug)
        is_same = (
            before is not None
            and before.signatures == tuple(map(signatures.get, files))
            and (before.basis == basis if names is old.names else before.is_valid_for(basis, names))
        )
        histories[slug] = (
            before if before and is_same else read_category(slug, basis, names, read, before)
        )
    return histories


def _stats_by_product(
    histories: Mapping[str, CategoryHistory],
) -> dict[ProductId, dict[str, ProductStats]]:
    """Return by product and category what polls say of each product."""
    product_stats: dict[ProductId, dict[str, ProductStats]] = {}
    for slug, reading in histories.items():
        if reading.aggregate:
            for id_, stats in reading.aggregate.product_stats.items():
                product_stats.setdefault(id_, {})[slug] = stats
    return product_stats


def _products(
    old: Snapshot,
    catalogue: Catalogue,
    product_stats: Mapping[ProductId, Mapping[str, ProductStats]],
) -> tuple[dict[ProductId, ProductProfile], Mapping[str, ProductId]]:
    """Return all products, and which of them bears each address.

    A product's basis are its figures and its file; an address's are the names and first uses of
    all products.
    """
    files, old_files = catalogue.products, old.catalogue.products
    profiles = {
        id_: old.products[id_]
        if seen == old.product_stats.get(id_) and files.get(id_) == old_files.get(id_)
        else products.describe(id_, seen, files.get(id_))
        for id_, seen in product_stats.items()
    }
    named = {id_: (profile.name, profile.first_use) for id_, profile in profiles.items()}
    old_named = {id_: (profile.name, profile.first_use) for id_, profile in old.products.items()}
    same_names = files == old_files and named == old_named
    bearers = old.product_slugs if same_names else products.addresses(profiles, files)
    for slug, id_ in bearers.items():
        if profiles[id_].slug != slug:
            profiles[id_] = replace(profiles[id_], slug=slug)
    return profiles, bearers


def _leaderboards(old: Snapshot, new: Snapshot) -> tuple[dict[str, Leaderboard], dict[str, int]]:
    """Return the leaderboard of each category that has one, and the step in which it last changed.

    Its basis are the category's polls, what its products are called, and what every page shows.
    """
    boards: dict[str, Leaderboard] = {}
    steps: dict[str, int] = {}
    renamed, shows_same = _renamed(old, new), _shows_same(old, new)
    for slug in new.aggregates.keys() & new.catalogue.categories.keys():
        aggregate = new.aggregates[slug]
        is_same = aggregate is old.aggregates.get(slug) and slug in old.catalogue.categories
        if is_same and shows_same and renamed.isdisjoint(aggregate.ids):
            board, step = old.leaderboards.get(slug), old.board_steps.get(slug, new.step)
        else:
            slugs = {id_: new.products[id_].slug for id_ in aggregate.product_stats}
            board = leaderboards.board(aggregate, new.models, new.catalogue.site, slugs)
            step = new.step
        if board:
            boards[slug], steps[slug] = board, step
    return boards, steps


def _renamed(old: Snapshot, new: Snapshot) -> set[ProductId]:
    """Return the products that are new, gone, or differ in more than what polls say of them."""
    names = [
        name
        for name in ProductProfile.__struct_fields__
        if name not in _MEMBERS_NOT_ON_LEADERBOARDS
    ]
    facts = attrgetter(*names)
    return {
        id_
        for id_ in old.products.keys() | new.products.keys()
        if (was := old.products.get(id_)) is not (now := new.products.get(id_))
        and (was is None or now is None or facts(was) != facts(now))
    }


def _shows_same(old: Snapshot, new: Snapshot) -> bool:
    """Return whether ledger and catalogue, as far as every page may show them, are the same."""
    fields = [name for name in Catalogue.__struct_fields__ if name not in _FIELDS_OF_SINGLE_PARTS]
    return old.ledger is new.ledger and all(
        getattr(old.catalogue, name) == getattr(new.catalogue, name) for name in fields
    )
