"""Aggregates of one category's polls: who answered what, with every name resolved.

Nothing here depends on another category, so a new poll changes one aggregate only.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from sys import intern

from msgspec import Struct

from store.rankings import names as naming
from store.rankings.changes import Change, Streak, changes, reigns_of, streaks
from store.rankings.merging import ResolvedAnswer, Wordings
from store.rankings.names import Names, ProductId, Spelling
from store.rankings.poll_states import PairState, poll_states
from store.rankings.runs import AnswerLog
from store.records import Category, Poll


class FirstUse(Struct, frozen=True, order=True, gc=False):
    """The first use of a spelling. A product without a file is called by its earliest spelling."""

    polled_at: str
    slug: str
    model: str
    rank: int
    spelling: str


AddressClaim = tuple[bool, FirstUse, ProductId]
"""A claim to an address, the least of which wins: whether by a lookalike, first use, product."""


class ProductStats(Struct, frozen=True, gc=False):
    """The figures of a product in a category's successful polls.

    ``mentions`` counts those that rank it, ``domains`` those that give each domain.
    """

    mentions: int
    domains: Mapping[str, int]
    spellings: Mapping[str, FirstUse]


class CategoryAggregate(Struct, frozen=True, dict=True):
    """All that a category's polls say; ``states`` are by model name.

    ``last_poll`` is the time of the last poll. None that counts bears an earlier time than one
    before it.
    """

    slug: str
    category: Category
    resolved: Mapping[Spelling, ProductId]
    wordings: Wordings[ResolvedAnswer]
    log: AnswerLog
    states: Mapping[str, PairState]
    product_stats: Mapping[ProductId, ProductStats]
    changes: tuple[Change, ...]
    streaks: tuple[Streak, ...]
    successes: int
    last_poll: str | None

    @cached_property
    def ids(self) -> frozenset[ProductId]:
        """All products that are named anywhere in it, near misses too."""
        return frozenset(self.resolved.values())

    @cached_property
    def addresses(self) -> dict[str, AddressClaim]:
        """Every slug that a spelling ever had, with its use and the product it stands for.

        Where two products share one, the first to use it has it; but a name that only looks like
        a slug with a digest gives way to the product whose digest it is.
        """
        owners: dict[str, AddressClaim] = {}
        for product, stats in self.product_stats.items():
            for spelling, use in stats.spellings.items():
                for slug, is_lookalike in _addresses(spelling):
                    owner = (is_lookalike, use, product)
                    owners[slug] = min(owners.get(slug, owner), owner)  # a lookalike sorts last
        return owners


def gather(slug: str, category: Category, polls: Sequence[Poll], names: Names) -> CategoryAggregate:
    """Gather what a category's polls say, oldest first; withheld ones must not be among them.

    Polls of retired assistants are included: who counts is decided later, by models.json.
    """
    successes = [poll for poll in polls if poll.succeeded]
    spellings = (spelling for poll in successes for spelling in _spellings(poll))
    resolved = _resolved(names, category, dict.fromkeys(spellings))
    answers = [ResolvedAnswer.of(poll, category, resolved) for poll in successes]
    sequences = reigns_of(answers)
    wordings: Wordings[ResolvedAnswer] = Wordings(category.question)
    for answer in answers:
        wordings.add(answer)
    return CategoryAggregate(
        slug=slug,
        category=category,
        resolved=resolved,
        wordings=wordings,
        # Stays in memory, unlike the polls: for the figures of `Leaderboard`.
        log=AnswerLog.of(answers),
        states=poll_states(polls),
        product_stats=_product_stats(slug, answers),
        changes=changes(slug, sequences),
        streaks=streaks(sequences),
        successes=len(answers),
        last_poll=polls[-1].polled_at if polls else None,
    )


def still_holds(aggregate: CategoryAggregate, names: Names) -> bool:
    """Return whether other product files resolve every name of a category to the same product."""
    return _resolved(names, aggregate.category, aggregate.resolved) == aggregate.resolved


def _resolved(
    names: Names, category: Category, spellings: Iterable[Spelling]
) -> dict[Spelling, ProductId]:
    """Return the product that each spelling stands for in a category.

    It follows from spelling, category and files alone: past days are resolved in the same way.
    """
    # One text for all categories; of history alone, which strangers cannot make grow.
    return {use: intern(names.resolve(*use, category.nouns).product) for use in spellings}


def _spellings(poll: Poll) -> Iterator[Spelling]:
    """Yield every name in an answer, with the domain given for it."""
    yield from ((pick.product, pick.domain) for pick in poll.ranking)
    yield from ((miss.product, None) for miss in poll.missed)


def _addresses(spelling: str) -> Iterator[tuple[str, bool]]:
    """Yield every slug that a spelling ever had, and whether it only looks like one with a digest.

    It had the slug with the whole digest only if the short one was its first choice, for only then
    could another product have that one.
    """
    own, hashed, whole = islice(naming.slugs(spelling), 3)
    yield own, False
    if own != hashed:
        yield hashed, False
        return
    yield whole, False
    if plain := naming.plain_slug(spelling):
        yield plain, True


def _product_stats(slug: str, answers: Sequence[ResolvedAnswer]) -> dict[ProductId, ProductStats]:
    mentions: defaultdict[ProductId, int] = defaultdict(int)
    domains: defaultdict[ProductId, dict[str, int]] = defaultdict(dict)
    spellings: defaultdict[ProductId, dict[str, FirstUse]] = defaultdict(dict)
    for answered in answers:
        poll = answered.poll
        for product in {*answered.products}:
            mentions[product] += 1
        picked = list(zip(answered.products, poll.ranking, strict=True))
        for product, domain in {(product, pick.domain) for product, pick in picked if pick.domain}:
            domains[product][domain] = domains[product].get(domain, 0) + 1
        for product, pick in picked:
            uses = spellings[product]
            first = uses.get(pick.product)
            if first is None or poll.polled_at <= first.polled_at:  # seldom, as time goes on
                use = FirstUse(poll.polled_at, slug, poll.model, pick.rank, pick.product)
                uses[pick.product] = min(use, first or use)
    return {
        product: ProductStats(mentions[product], domains.get(product, {}), uses)
        for product, uses in spellings.items()
    }
