"""The immutable state of everything, and how the next one is made from what changed.

A :class:`Snapshot` never changes; whoever holds one sees one consistent state. Rebuilding a part
and rebuilding the whole give the same bytes: each step works on the parts that differ and takes
the others over as they are.
"""

from __future__ import annotations

import sys
from array import array
from collections import Counter
from contextlib import suppress
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec import Struct

from store import counting
from store.files import CRITICAL
from store.line_codec import redacted
from store.rankings import aggregates, leaderboards, products, site_summary
from store.rankings.names import key
from store.rankings.poll_states import PollStates
from store.records import Category

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from store.files import Catalogue
    from store.history import Log, Stored
    from store.rankings.aggregates import CategoryAggregate, ProductStats
    from store.rankings.leaderboards import Leaderboard
    from store.rankings.names import Names, ProductId
    from store.rankings.products import ProductProfile
    from store.rankings.site_summary import SiteSummary
    from store.records import Poll, Problem

Part = TypeVar("Part")

TOPICS = "topics.json"

LATEST = 253_402_300_799
"""The end of the year 9999 in Unix seconds; a file's time may be later, a date cannot."""


def last_modified(files: Iterable[int], poll: str | None) -> int:
    """When something changed that is made from files and polls, in Unix seconds.

    ``files`` are modification times in ns, ``poll`` is the time of the newest poll.
    """
    polled = int(datetime.fromisoformat(poll).timestamp()) if poll else 0
    return min(max(max(files, default=0) // 1_000_000_000, polled), LATEST)


class Generations(Struct, frozen=True):
    """Which step last changed each part of a snapshot; steps are numbered from 1.

    ``newest`` is the step that made the snapshot. ``summary`` is that of what is over everything;
    ``categories`` are by slug of those that are ranked, ``products`` by id. What is made from a
    part may be kept until the part's number moves.
    """

    newest: int
    summary: int
    categories: Mapping[str, int]
    products: Mapping[ProductId, int]


class LineIndex(Struct, frozen=True):
    """Where a category's polls stand in its history files, oldest first.

    ``models`` are the present names of those who were asked, ``ids`` the polls' ids as numbers.
    ``file`` indexes ``files``; ``start`` and ``end`` are byte offsets. ``withheld`` holds, by
    position, lines to show in place of withheld ones; ``outcomes`` counts by model and outcome.
    """

    files: tuple[str, ...]
    file: array[int]
    start: array[int]
    end: array[int]
    models: tuple[str, ...]
    ids: array[int]
    withheld: Mapping[int, bytes]
    outcomes: Mapping[tuple[str, str], int]

    def newest(self, model: str | None, limit: int, before: int | None = None) -> list[int]:
        """Positions of the newest polls, newest first: of one model, ``before`` one, if given."""
        positions = range((len(self.models) if before is None else before) - 1, -1, -1)
        if model is None:
            return list(positions[:limit])
        return [i for i in positions if self.models[i] == model][:limit]

    def position(self, poll: str) -> int | None:
        """Where the poll with an id of 16 hexadecimal digits stands, if it does."""
        with suppress(ValueError):
            return self.ids.index(int(poll, 16))
        return None


class Snapshot(Struct, frozen=True, weakref=True, dict=True):
    """One consistent state of files and history.

    Mappings are by category slug, ``products`` by product id. ``line_indexes`` and ``aggregates``
    also hold what is no category any more, see :meth:`gone`, and no category whose history cannot
    be read. ``polled`` says how polling stands, of categories whose history could be read the last
    time. ``summary`` may be a moment behind the rest.
    """

    catalogue: Catalogue
    names: Names
    line_indexes: Mapping[str, LineIndex]
    aggregates: Mapping[str, CategoryAggregate]
    polled: Mapping[str, PollStates]
    damage: Mapping[str, tuple[Problem, ...]]
    products: Mapping[ProductId, ProductProfile]
    product_slugs: Mapping[str, ProductId]
    leaderboards: Mapping[str, Leaderboard]
    summary: SiteSummary
    generations: Generations

    @cached_property
    def models(self) -> tuple[str, ...]:
        """The names of the configured models, in order."""
        return tuple([assistant.name for assistant in self.catalogue.assistants])

    @cached_property
    def makers(self) -> dict[str, str]:
        """By model, the key of the name of the company behind it, where models.json tells."""
        return {a.name: key(a.maker) for a in self.catalogue.assistants if a.maker}

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Everything wrong in files and history that a curator should mend."""
        damage = {problem for found in self.damage.values() for problem in found}
        return tuple(sorted([*self.catalogue.problems, *damage]))

    @cached_property
    def lost(self) -> tuple[Problem, ...]:
        """Why history is neither known nor shown as it last was; all damage where none is known."""
        if any(line_index.models for line_index in self.line_indexes.values()):
            return tuple(
                sorted(
                    {self.damage[slug][0] for slug in self.damage.keys() - self.line_indexes.keys()}
                )
            )
        damage = {problem for found in self.damage.values() for problem in found}
        return tuple(sorted(problem for problem in damage if problem.severity == "error"))

    @property
    def unpublishable(self) -> list[Problem]:
        """What in the data keeps it from being published."""
        unshown = {self.fault_of(slug) for slug in self.damage}
        return [*self.catalogue.critical_errors, *sorted(filter(None, unshown))]

    @cached_property
    def modified(self) -> int:
        """When what is over everything last changed, in Unix seconds."""
        return last_modified(self.catalogue.modified.values(), self.summary.last_poll)

    def gone(self, slug: str) -> CategoryAggregate | None:
        """What history holds of a category that somebody deleted."""
        if slug in self.catalogue.categories or self.catalogue.fault_of_category(slug):
            return None
        line_index = self.line_indexes.get(slug)
        return self.aggregates.get(slug) if line_index and line_index.models else None

    def fault_of(self, slug: str) -> Problem | None:
        """What keeps a category, or a slug that history holds, from being shown; else ``None``."""
        aggregate = self.aggregates.get(slug)
        errors = [p for p in self.damage.get(slug, ()) if p.severity == "error"]
        if errors and not (slug in self.line_indexes and aggregate and aggregate.successes):
            return errors[0]
        if slug in self.line_indexes or slug in self.catalogue.disputed:
            return self.catalogue.fault_of_category(slug)
        return None

    def product(self, slug: str) -> ProductProfile | None:
        """A product by its address."""
        return self.products.get(self.product_slugs.get(slug, ""))

    def category_modified(self, board: Leaderboard) -> int:
        """When what is shown of a category last changed, in Unix seconds."""
        modified = self._modified([board.slug], board.newest)
        return max(modified, last_modified(self._times([TOPICS]), None))

    def product_modified(self, product: ProductProfile) -> int:
        """When what is shown of a product last changed, in Unix seconds."""
        newest = max(self.aggregates[slug].last_success or "" for slug in product.categories)
        return self._modified(product.categories, newest)

    def history_modified(self, slug: str, newest: str | None) -> int:
        """When polls of a category, the ``newest`` of them given, last changed, in Unix seconds."""
        return last_modified(self._times([f"categories/{slug}.json", "withheld.json"]), newest)

    def _modified(self, slugs: Collection[str], newest: str) -> int:
        """That of what is made from categories; any product named there shows, if only by rank."""
        named = {id_ for slug in slugs for id_ in self.aggregates[slug].ids}
        categories = [f"categories/{slug}.json" for slug in slugs]
        files = [*categories, *(f"products/{id_}.json" for id_ in named), *CRITICAL]
        return last_modified(self._times(files), newest)

    def _times(self, files: Iterable[str]) -> list[int]:
        times = self.catalogue.modified
        return [times[file] for file in files if file in times]


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
    deleted: AbstractSet[str],
    names: Names,
    fresh: Iterable[tuple[str, tuple[Log, ...]]],
) -> Snapshot:
    """The next snapshot; ``fresh`` brings the history of every category that was read again.

    It is taken one category after the other, so that all polls are never in memory at once.
    ``deleted`` are the slugs that history holds and that are no category any more. The overview
    is still that of before; see :func:`with_summary`.
    """
    whole = before is None or _configured_anew(before.catalogue, catalogue)
    before = before or _blank(catalogue, names)
    nothing_known = {slug: Category(version=1, title=slug, question=slug) for slug in deleted}
    categories = {**nothing_known, **catalogue.categories}
    return _Rebuild(before, catalogue, categories, names, whole).run(fresh)


class _Rebuild(Struct):
    """One step from a snapshot to the next, stage by stage."""

    before: Snapshot
    catalogue: Catalogue
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
            stored, problems = counting.records(logs)
            losses = counting.losses(logs)
            damage[slug] = tuple(dict.fromkeys([*losses, *problems]))
            if not losses:
                category = self.categories[slug]
                line_indexes[slug], polls, counted = _in_order(files, stored, self.catalogue)
                polled[slug] = PollStates.of(polls, category)
                read[slug] = aggregates.read(slug, category, counted, self.names)
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
        aggregate, old, new = (
            self.before.aggregates.get(slug),
            self.before.catalogue,
            self.catalogue,
        )
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
            touched |= {
                slug
                for slug in old.keys() | new.keys()
                if old.get(slug) != new.get(slug) or self._is_resaved(slug)
            }
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
        """Whether a product is called otherwise than before, is new or gone, or was saved anew."""
        old, new = self.before.products.get(id_), self.products.get(id_)
        if old is None or new is None:
            return old is not new
        named = (old.slug, old.name, old.domain, old.maker)
        is_same = named == (new.slug, new.name, new.domain, new.maker)
        return not is_same or self._is_resaved(id_)

    def _is_resaved(self, id_: ProductId) -> bool:
        """Whether a product's file has another time than before, which shows in Last-Modified."""
        name = f"products/{id_}.json"
        return self.before.catalogue.modified.get(name) != self.catalogue.modified.get(name)

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
    """Whether something changed on which every body depends, be it only a file's time.

    Topics stand on the page of every category, and are edited rarely.
    """
    names = (*CRITICAL, TOPICS)
    resaved = any(old.modified.get(name) != new.modified.get(name) for name in names)
    return resaved or (old.site, old.assistants, old.topics) != (
        new.site,
        new.assistants,
        new.topics,
    )


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
        position: redacted(each.poll, withheld[each.poll.id])
        for position, each in enumerate(ordered)
        if each.poll.id in withheld
    }
    line_index = LineIndex(
        files=files,
        file=array("H", [files.index(each.file) for each in ordered]),
        start=array("Q", [each.start for each in ordered]),
        end=array("Q", [each.end for each in ordered]),
        models=tuple(sys.intern(poll.model) for poll in polls),
        ids=array("Q", [int(poll.id, 16) for poll in polls]),
        withheld=shown,
        outcomes=Counter((poll.model, poll.failure or "answered") for poll in polls),
    )
    counted = [poll for i, poll in enumerate(polls) if i not in shown] if shown else polls
    return line_index, polls, counted


def _blank(catalogue: Catalogue, names: Names) -> Snapshot:
    return Snapshot(
        catalogue=catalogue,
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
