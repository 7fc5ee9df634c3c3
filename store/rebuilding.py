"""How the next snapshot is made from what changed.

Rebuilding a part and rebuilding the whole give the same bytes: each step works on the parts that
differ and takes the others over as they are.
"""

from __future__ import annotations

import sys
from array import array
from collections import Counter
from operator import attrgetter
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec import Struct

from store import counting
from store.rankings import aggregates, leaderboards, products, site_summary
from store.rankings.poll_states import PollStates
from store.records import Category
from store.snapshot import Generations, LineIndex, Snapshot

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from store.files import Catalogue
    from store.history import Log, Stored
    from store.ledger import Ledger
    from store.rankings.aggregates import CategoryAggregate, ProductStats
    from store.rankings.leaderboards import Leaderboard
    from store.rankings.names import Names, ProductId
    from store.rankings.products import ProductProfile
    from store.records import Poll, Problem

Part = TypeVar("Part")


def with_summary(snapshot: Snapshot) -> Snapshot:
    """The same snapshot with everything that is over all categories brought up to date."""
    generations = snapshot.generations
    step = generations.newest + 1
    return msgspec.structs.replace(
        snapshot,
        summary=site_summary.summarise(
            site_summary.Curated(
                snapshot.catalogue.categories,
                snapshot.models,
                snapshot.makers,
                snapshot.catalogue.synonyms,
                snapshot.catalogue.words,
                snapshot.catalogue.topics,
            ),
            snapshot.aggregates,
            snapshot.leaderboards,
            snapshot.products,
            snapshot.summary,
        ),
        generations=msgspec.structs.replace(generations, newest=step, summary=step),
    )


def rebuild(
    before: Snapshot | None,
    catalogue: Catalogue,
    ledger: Ledger,
    deleted: AbstractSet[str],
    names: Names,
    fresh: Iterable[tuple[str, tuple[Log, ...]]],
) -> Snapshot:
    """The next snapshot; ``fresh`` brings the history of every category that was read again.

    It is taken one category after the other, so that all polls are never in memory at once.
    ``deleted`` are the slugs that history holds and that are no category any more. The overview
    is still that of before; see :func:`with_summary`.
    """
    whole = (
        before is None
        or before.ledger is not ledger  # what may be cited shows on every page
        or _configured_anew(before.catalogue, catalogue)
    )
    before = before or _blank(catalogue, ledger, names)
    nothing_known = {slug: Category(version=1, title=slug, question=slug) for slug in deleted}
    categories = {**nothing_known, **catalogue.categories}
    return _Rebuild(before, catalogue, ledger, categories, names, whole).run(fresh)


class _Rebuild(Struct):
    """One step from a snapshot to the next, stage by stage."""

    before: Snapshot
    catalogue: Catalogue
    ledger: Ledger
    categories: Mapping[str, Category]
    names: Names
    whole: bool
    aggregates: Mapping[str, CategoryAggregate] = {}
    products: Mapping[ProductId, ProductProfile] = {}
    leaderboards: Mapping[str, Leaderboard] = {}

    def run(self, fresh: Iterable[tuple[str, tuple[Log, ...]]]) -> Snapshot:
        line_indexes: dict[str, LineIndex] = {}
        damage: dict[str, tuple[Problem, ...]] = {}
        read: dict[str, CategoryAggregate] = {}
        polled: dict[str, PollStates] = {}
        unread: set[str] = set()
        gone = self.before.aggregates.keys() - self.categories.keys()
        for slug, logs in fresh:
            files = tuple([log.file for log in logs])
            stored, problems = counting.records(logs, self.catalogue.withheld)
            losses = counting.losses(logs)
            damage[slug] = tuple(dict.fromkeys([*losses, *problems]))
            if not losses:
                category = self.categories[slug]
                index, polls, counted = _in_order(files, stored, self.catalogue)
                entries = tuple(entry for log in logs for entry in log.open)
                line_indexes[slug] = msgspec.structs.replace(index, open=entries)
                read[slug] = aggregates.read(slug, category, counted, self.names)
                ever = read[slug].states if counted is polls else None
                polled[slug] = PollStates.of(polls, category, ever)
                continue
            unread.add(slug)
            if not self._stays(slug, files):
                gone.add(slug)
        self.aggregates = _with(self.before.aggregates, read, gone)
        changed = {*read, *gone}
        touched = self._touched(changed)
        self.products, bearers = self._name(changed, touched)
        moved = {id_ for id_ in touched if self._is_other(id_)}
        dirty = self._dirty(changed, moved)
        self.leaderboards = self._merge(dirty)
        every = {*self.before.products, *self.products}
        affected = every if self.whole else touched | self._ids(dirty)
        return Snapshot(
            catalogue=self.catalogue,
            ledger=self.ledger,
            names=self.names,
            line_indexes=_with(self.before.line_indexes, line_indexes, gone),
            aggregates=self.aggregates,
            polled=_with(self.before.polled, polled, gone | unread),
            damage=_with(self.before.damage, damage, self.before.damage.keys() - self.categories),
            products=self.products,
            product_slugs=bearers,
            leaderboards=self.leaderboards,
            summary=self.before.summary,
            generations=self._generations(dirty, affected),
        )

    def _generations(self, dirty: set[str], affected: set[ProductId]) -> Generations:
        """Those of before, but for the categories and products that this step changed."""
        before = self.before.generations
        step = before.newest + 1
        ranked, named = dirty & self.leaderboards.keys(), affected & self.products.keys()
        return Generations(
            newest=step,
            summary=before.summary,
            categories=_with(before.categories, dict.fromkeys(ranked, step), dirty - ranked),
            products=_with(before.products, dict.fromkeys(named, step), affected - named),
        )

    def _stays(self, slug: str, files: tuple[str, ...]) -> bool:
        """Whether a category can be shown as it last was: what it follows from is as it was."""
        aggregate = self.before.aggregates.get(slug)
        old, new = self.before.catalogue, self.catalogue
        return (
            aggregate is not None
            and (old.withheld, old.former_names) == (new.withheld, new.former_names)
            and aggregate.category == self.categories[slug]
            and self.before.line_indexes[slug].files == files
            and aggregates.still_holds(aggregate, self.names)
        )

    def _touched(self, changed: Iterable[str]) -> set[ProductId]:
        """Every product that a changed category names or named, or whose file changed."""
        touched = self._ids(changed)
        old, new = self.before.catalogue.products, self.catalogue.products
        if self.before.catalogue is not self.catalogue:
            touched |= {slug for slug in old.keys() | new.keys() if old.get(slug) != new.get(slug)}
        return touched

    def _name(
        self, changed: set[str], touched: set[ProductId]
    ) -> tuple[dict[ProductId, ProductProfile], Mapping[str, ProductId]]:
        """All products and who bears which address.

        The touched ones are described anew from every category that ranked them. An address
        depends on all products: whatever bears another than before becomes touched.
        """
        files, before = self.catalogue.products, self.before
        described = {
            id_: products.describe(id_, found, files.get(id_))
            for id_, found in self._product_stats(changed, touched).items()
            if found
        }
        named = _with(before.products, described, touched - described.keys())
        stays = before.catalogue.products == files and all(
            (new := described.get(id_)) and (new.name, new.first_use) == (old.name, old.first_use)
            for id_ in touched
            if (old := before.products.get(id_))
        )
        if stays and touched <= before.products.keys():
            for id_ in touched:
                address = before.products[id_].slug
                named[id_] = msgspec.structs.replace(named[id_], slug=address)
            return named, before.product_slugs
        bearers = products.addresses(named, files, before.product_slugs if stays else {})
        for slug, id_ in bearers.items():
            if named[id_].slug != slug:
                named[id_] = msgspec.structs.replace(named[id_], slug=slug)
                touched.add(id_)
        return named, bearers

    def _product_stats(
        self, changed: set[str], touched: set[ProductId]
    ) -> dict[ProductId, dict[str, ProductStats]]:
        """By product and category, where each touched product was seen: as before, or changed."""
        before = self.before.products
        places = changed.union(*(before[id_].categories for id_ in touched if id_ in before))
        found: dict[ProductId, dict[str, ProductStats]] = {id_: {} for id_ in touched}
        for slug in self.aggregates.keys() & places:
            seen = self.aggregates[slug].product_stats
            for id_ in seen.keys() & touched:
                found[id_][slug] = seen[id_]
        return found

    def _is_other(self, id_: ProductId) -> bool:
        """Whether a product is called otherwise than before, is new or gone."""
        old, new = self.before.products.get(id_), self.products.get(id_)
        if old is None or new is None:
            return old is not new
        named = (old.slug, old.name, old.domain, old.maker)
        return named != (new.slug, new.name, new.domain, new.maker)

    def _dirty(self, changed: set[str], moved: set[ProductId]) -> set[str]:
        """The categories whose board must be made again."""
        if self.whole:
            return {*self.aggregates, *self.before.leaderboards}
        if not moved:
            return changed
        named = {slug for slug, held in self.aggregates.items() if not moved.isdisjoint(held.ids)}
        return changed | named

    def _merge(self, dirty: Iterable[str]) -> dict[str, Leaderboard]:
        models = [assistant.name for assistant in self.catalogue.assistants]
        made: dict[str, Leaderboard] = {}
        for slug in dirty:
            aggregate = self.aggregates.get(slug)
            if aggregate and slug in self.catalogue.categories:
                slugs = {id_: self.products[id_].slug for id_ in aggregate.product_stats}
                board = leaderboards.board(aggregate, models, self.catalogue.site, slugs)
                if board:
                    made[slug] = board
        return _with(self.before.leaderboards, made, set(dirty) - made.keys())

    def _ids(self, slugs: Iterable[str]) -> set[ProductId]:
        """Every product that these categories name or named."""
        ids: set[ProductId] = set()
        for slug in slugs:
            for held in (self.before.aggregates.get(slug), self.aggregates.get(slug)):
                ids |= held.ids if held else set()
        return ids


def _configured_anew(old: Catalogue, new: Catalogue) -> bool:
    """Whether something changed on which every body depends.

    Topics stand on the page of every category, and are edited rarely.
    """
    shown_everywhere = attrgetter("site", "assistants", "topics")
    return bool(shown_everywhere(old) != shown_everywhere(new))


def _with(old: Mapping[str, Part], new: Mapping[str, Part], gone: Iterable[str]) -> dict[str, Part]:
    """A copy with some parts replaced and others taken out."""
    result = {**old, **new}
    for part in gone:
        result.pop(part, None)
    return result


def _in_order(
    files: tuple[str, ...], stored: Sequence[Stored], catalogue: Catalogue
) -> tuple[LineIndex, list[Poll], list[Poll]]:
    """Where a category's polls stand, all, and those that count, oldest first over its files."""
    withheld = catalogue.withheld
    ordered = counting.in_order(stored, withheld)
    polls = counting.as_known((each.poll for each in ordered), catalogue.former_names)
    shown = {
        position: withheld[each.poll.id]
        for position, each in enumerate(ordered)
        if each.poll.id in withheld
    }
    line_index = LineIndex(
        files=files,
        file=array("H", [files.index(each.file) for each in ordered]),
        start=array("Q", [each.start for each in ordered]),
        end=array("Q", [each.end for each in ordered]),
        line=array("I", [each.line for each in ordered]),
        models=tuple(sys.intern(poll.model) for poll in polls),
        ids=array("Q", [int(poll.id, 16) for poll in polls]),
        withheld=shown,
        outcomes=Counter((poll.model, poll.failure or "answered") for poll in polls),
    )
    counted = [poll for i, poll in enumerate(polls) if i not in shown] if shown else polls
    return line_index, polls, counted


def _blank(catalogue: Catalogue, ledger: Ledger, names: Names) -> Snapshot:
    return Snapshot(
        catalogue=catalogue,
        ledger=ledger,
        names=names,
        line_indexes={},
        aggregates={},
        polled={},
        damage={},
        products={},
        product_slugs={},
        leaderboards={},
        summary=site_summary.summarise(site_summary.Curated({}, (), {}, (), ()), {}, {}, {}, None),
        generations=Generations(0, 0, {}, {}),
    )
