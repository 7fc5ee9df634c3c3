"""The immutable state of everything; whoever holds one sees one consistent state."""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from store.counting import invented
from store.rankings.names import key

if TYPE_CHECKING:
    from array import array
    from collections.abc import Mapping

    from store.chains import Entry, Present
    from store.files import Catalogue
    from store.ledger import Ledger
    from store.rankings.aggregates import CategoryAggregate
    from store.rankings.leaderboards import Leaderboard
    from store.rankings.names import Names, ProductId
    from store.rankings.poll_states import PollStates
    from store.rankings.products import ProductProfile
    from store.rankings.site_summary import SiteSummary
    from store.records import Problem, Site, Withholding

TOPICS = "topics.json"


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
    ``file`` indexes ``files``; ``start`` and ``end`` are byte offsets, ``line`` counts from 1.
    ``withheld`` says, by position, why lines are withheld; ``outcomes`` counts by model and
    outcome.
    ``open`` are the entries by which lines of open days would be closed.
    """

    files: tuple[str, ...]
    file: array[int]
    start: array[int]
    end: array[int]
    line: array[int]
    models: tuple[str, ...]
    ids: array[int]
    withheld: Mapping[int, Withholding]
    outcomes: Mapping[tuple[str, str], int]
    open: tuple[Entry, ...] = ()

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
    ledger: Ledger
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

    @cached_property
    def site(self) -> Site:
        """What site.json says; it is a sample, too, while history holds invented answers."""
        site = self.catalogue.site
        return replace(site, sample=True) if self._invented else site

    @cached_property
    def _invented(self) -> Problem | None:
        states = self.polled.values()
        return invented(sum(each.invented for each in states), self.catalogue.site)

    @property
    def unsettled(self) -> Problem | None:
        """Why nothing may be asked: nobody knows whom, at what cost, or for which kind of site."""
        return self.catalogue.unsettled or self._invented

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Everything wrong in files and history that a curator should mend."""
        damage = {problem for found in self.damage.values() for problem in found}
        contradiction = [self._invented] if self._invented else []
        return tuple(sorted([*self.catalogue.problems, *contradiction, *damage]))

    @cached_property
    def lost(self) -> tuple[Problem, ...]:
        """Why history is neither known nor shown as it last was; all damage where none is known."""
        if any(line_index.models for line_index in self.line_indexes.values()):
            unread = self.damage.keys() - self.line_indexes.keys()
            return tuple(sorted({self.damage[slug][0] for slug in unread}))
        damage = {problem for found in self.damage.values() for problem in found}
        return tuple(sorted(problem for problem in damage if problem.severity == "error"))

    @property
    def unpublishable(self) -> list[Problem]:
        """What in the data keeps it from being published."""
        unshown = {self.fault_of(slug) for slug in self.damage}
        governing = filter(None, (*self.catalogue.governing_errors, self._invented))
        return [*governing, *sorted(filter(None, unshown))]

    @cached_property
    def present(self) -> Present:
        """All lines of history, closed or not, and the root over them."""
        return self.ledger.present(
            entry for index in self.line_indexes.values() for entry in index.open
        )

    def gone(self, slug: str) -> CategoryAggregate | None:
        """What history holds of a category that somebody deleted."""
        if slug in self.catalogue.categories or self.catalogue.fault_of("categories", slug):
            return None
        line_index = self.line_indexes.get(slug)
        return self.aggregates.get(slug) if line_index and line_index.models else None

    def fault_of(self, slug: str) -> Problem | None:
        """What keeps a category, or a slug that history holds, from being shown; else ``None``."""
        aggregate = self.aggregates.get(slug)
        errors = [p for p in self.damage.get(slug, ()) if p.severity == "error"]
        if errors and not (slug in self.line_indexes and aggregate and aggregate.successes):
            return errors[0]
        fault = self.catalogue.fault_of("categories", slug)
        of_folder = fault is not None and fault.file == "categories"
        return fault if slug in self.line_indexes or not of_folder else None

    def product(self, slug: str) -> ProductProfile | None:
        """A product by its address, unless nobody knows what its file says."""
        if self.catalogue.fault_of("products", slug):
            return None
        return self.products.get(self.product_slugs.get(slug, ""))
