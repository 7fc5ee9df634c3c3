"""What moves: changes of the models' #1 picks and of rankings' leaders, and mentions."""

from collections import Counter
from collections.abc import Collection, Iterable
from datetime import date, timedelta
from operator import attrgetter
from typing import Annotated

from msgspec import field

from store.rankings import changes, rounds
from store.rankings.leaderboards import Leaderboard, leader_changes
from store.rankings.mention_trends import (
    FALSE_DISCOVERIES,
    MIN_CELLS,
    MIN_DISCORDANT,
    Direction,
)
from store.rankings.products import ProductProfile
from store.rankings.sentences import listed
from store.web import as_of, lookup
from store.web.endpoints import endpoint, rows
from store.web.queries import ChangesQuery, MentionsQuery
from store.web.shapes import Api, CertaintyLevel, Date, JsonObject, Page, Time, doc
from store.web.view import View

MOST_CHANGES = 1000
"""Changes of each kind that one answer lists."""
MOST_MENTIONED = 100
"""Products that the list of mentions holds."""


class ChangeItem(JsonObject, frozen=True, kw_only=True):
    """A change of one model's #1 in one category."""

    id: Annotated[str, doc("Stable: the id of the poll that brought the change.")]
    slug: Annotated[str, doc("Category slug.")]
    title: str
    model: Annotated[str, doc("The model that names another #1.")]
    from_: Annotated[str, doc("Previous #1 product.")] = field(name="from")
    to: Annotated[str, doc("New #1 product.")]
    reason: Annotated[str | None, doc("The model's own reason for the new #1.")]
    from_date: Date
    to_date: Date
    confirmed: Annotated[
        bool,
        doc(
            "Two answers in a row, of different days, agree on this #1, and the last confirmed #1 "
            "(to begin with, the first) is another. Else it may be chance."
        ),
    ]
    served_model_from: Annotated[
        str | None, doc("Its served version before, if that changed between the two answers.")
    ]
    served_model_to: Annotated[str | None, doc("Its served version since then.")]
    page: Page
    api: Api


class LeaderChangeItem(JsonObject, frozen=True, kw_only=True):
    """Another product came to lead a merged ranking, alone and by more than chance."""

    slug: Annotated[str, doc("Category slug.")]
    title: str
    from_: Annotated[str, doc("The product that led alone before.")] = field(name="from")
    to: Annotated[str, doc("The product that leads alone now.")]
    from_date: Annotated[Date, doc("The last day on which the one before did.")]
    to_date: Annotated[Date, doc("The first day on which the new one did.")]
    answers: Annotated[int, doc("Answers that show it.", ge=1)]
    model: Annotated[
        str | None,
        doc(
            "The model that brought over half of it and whose served version changed "
            "meanwhile, if one did; that is no proof of a cause."
        ),
    ]
    served_model_from: Annotated[str | None, doc("Its served version before.")]
    served_model_to: Annotated[str | None, doc("Its served version since then.")]
    page: Page
    api: Api


class FirstPlaceChange(JsonObject, frozen=True, kw_only=True):
    """Another product is first in a merged ranking than before; `level` says how sure that is."""

    slug: Annotated[str, doc("Category slug.")]
    title: str
    from_: Annotated[str, doc("The #1 before, or all that were tied.")] = field(name="from")
    to: Annotated[str, doc("The #1 now, or all that are tied.")]
    from_date: Annotated[Date, doc("The last day with answers before `since`.")]
    to_date: Annotated[Date, doc("The newest day with answers.")]
    level: CertaintyLevel
    reason: Annotated[str | None, doc("A model's own reason for the #1 now.")]
    page: Page
    api: Api


class ChangeList(JsonObject, frozen=True, kw_only=True):
    """The newest changes of the models' #1 picks, and of the merged rankings' leaders."""

    last_checked: Time | None
    tracked: Annotated[int, doc("Categories with a successful poll.", ge=0)]
    count: Annotated[int, doc(f"Changes listed here, {MOST_CHANGES:,} at most.", ge=0)]
    total: Annotated[int, doc("Changes ever seen.", ge=0)]
    changes: Annotated[list[ChangeItem], doc("Newest first.")]
    leaders: Annotated[
        list[LeaderChangeItem],
        doc(
            f"Changes of a merged ranking's leader, newest first, {MOST_CHANGES:,} at most. "
            "`since`, `topic` and `slug` narrow them; the rest is about `changes` alone. They are "
            "found late, or never: an empty list does not say that nothing changed."
        ),
    ]
    first_places: Annotated[
        list[FirstPlaceChange],
        doc(
            "Merged rankings whose #1 is another one than before `since` (by default the last "
            "`poll_every_days`), by title; of the same assistants, asked the same question in the "
            "same way. Where `level` is not clear it may be chance."
        ),
    ]


class Mention(JsonObject, frozen=True, kw_only=True):
    """The number of polls that name a product, and its trend.

    The trend counts cells (one category, one model, one question) polled successfully in both of
    the last two weeks: those that list the product now, before, and in either.
    """

    rank: int
    slug: str
    name: str
    domain: str | None
    mentions: Annotated[int, doc("Successful polls, all time, that rank it.", ge=1)]
    mentions7d: Annotated[int, doc("Cells that list it now.", ge=0)]
    polls7d: Annotated[int, doc("Cells that list it now or before.", ge=0)]
    mentions_prev7d: Annotated[int, doc("Cells that listed it before.", ge=0)] = field(
        name="mentionsPrev7d"
    )
    polls_prev7d: Annotated[int, doc("The same cells as polls7d.", ge=0)] = field(
        name="pollsPrev7d"
    )
    delta: Annotated[float | None, doc("Difference in percentage points.")]
    direction: Annotated[
        Direction,
        doc(
            f"new: first named in the last week. insufficient: under {MIN_CELLS} cells, or under "
            f"{MIN_DISCORDANT} that list it in one week alone. up, down: these moved by more than "
            "chance, by the exact binomial test with false discoveries held at "
            f"{float(100 * FALSE_DISCOVERIES):g} % over all products that are neither new nor "
            "insufficient. flat: else."
        ),
    ]
    categories: Annotated[int, doc("Leaderboards it appears on.", ge=0)]
    page: Page
    api: Api


class MentionList(JsonObject, frozen=True, kw_only=True):
    """The most mentioned products across every successful poll."""

    as_of: Time | None
    polls: Annotated[int, doc("Successful polls, all time.", ge=0)]
    products: Annotated[list[Mention], doc(f"Most mentioned first, {MOST_MENTIONED} at most.")]


@endpoint(
    "/api/v1/mentions.json",
    "Over time",
    page=lambda view, _: view.at.page("mentions"),
    write=rows(Mention, attrgetter("products")),
)
def get_mentions(view: View, query: MentionsQuery) -> MentionList:  # noqa: ARG001
    """The most mentioned products.

    All-time mentions across every successful poll, with a 7-day trend that compares only
    what was polled in both weeks.
    """
    summary = view.snapshot.summary
    # Counted once for all: a product may be on many.
    leaderboards = Counter(e.product for board in summary.ranked for e in board.entries)
    return MentionList(
        as_of=summary.last_poll,
        polls=summary.successes,
        products=[
            _mention(view, rank, product, leaderboards[product.id])
            for rank, product in enumerate(summary.mentioned[:MOST_MENTIONED], start=1)
        ],
    )


def _mention(view: View, rank: int, product: ProductProfile, leaderboards: int) -> Mention:
    trend = view.snapshot.summary.trends[product.id]
    return Mention(
        rank=rank,
        slug=product.slug,
        name=product.name,
        domain=product.domain,
        mentions=product.mentions,
        mentions7d=trend.mentions,
        polls7d=trend.cells,
        mentions_prev7d=trend.mentions_before,
        polls_prev7d=trend.cells,  # what was not polled in both weeks is not compared
        delta=trend.delta,
        direction=trend.direction,
        categories=leaderboards,
        page=view.at.product_page(product.slug),
        api=view.at.product(product.slug),
    )


@endpoint(
    "/api/v1/changes.json",
    "Over time",
    page=lambda view, _: view.at.page("changes"),
    write=rows(ChangeItem, attrgetter("changes")),
    problems=("unknown-topic", "unknown-category", "no-answer-yet", "gone"),
)
def get_changes(view: View, query: ChangesQuery) -> ChangeList:
    """Changes of a model's #1, and changes of a ranking's leader.

    The newest changes of one model's #1 in one category, newest first. A change is
    confirmed once two answers in a row agree on it and the last confirmed #1 is another.
    Beside them are those of the merged rankings: under `leaders` another product came to
    lead by more than chance, under `firstPlaces` another is first, which may be chance.
    """
    return change_list(view, query, MOST_CHANGES)


def change_list(view: View, query: ChangesQuery, most: int) -> ChangeList:
    """Return the newest changes that a query asks for.

    They are at most ``most`` of assistants and of leaders, and all of first places.
    """
    summary, slugs, since = view.snapshot.summary, _slugs(view, query), query.since or ""
    matches = [
        change
        for change in summary.changes
        if query.confirmed in (None, change.confirmed)
        and (slugs is None or change.slug in slugs)
        and change.current_at[:10] >= since
    ]
    boards = [board for board in summary.ranked if slugs is None or board.slug in slugs]
    newest = matches[:most]
    return ChangeList(
        last_checked=summary.last_poll,
        tracked=summary.tracked,
        count=len(newest),
        total=len(matches),
        changes=[_change(view, change) for change in newest],
        leaders=[
            _leader_change(view, board, change)
            for board, change in leader_changes(boards)[:most]  # newest first
            if change.date >= since
        ],
        first_places=first_place_changes(view, boards, since or last_interval_start(view)),
    )


def first_place_changes(
    view: View, boards: Iterable[Leaderboard], since: str
) -> list[FirstPlaceChange]:
    """Return which rankings have another #1 than before a UTC day, by title."""
    changed = (
        (board, change)
        for board in boards
        if (change := rounds.first_place_change(board.rounds, since))
    )
    return [
        FirstPlaceChange(
            slug=board.slug,
            title=board.category.title,
            from_=listed([view.name(product) for product in before.winners]),
            to=listed([view.name(product) for product in now.winners]),
            from_date=before.date,
            to_date=now.date,
            level=board.certainty.level,
            reason=board.entries[0].reason,
            page=view.at.category_page(board.slug),
            api=view.at.category(board.slug),
        )
        for board, (before, now) in sorted(changed, key=lambda one: one[0].by_title)
    ]


def are_ranked_before(boards: Iterable[Leaderboard], day: str) -> bool:
    """Return whether any of these categories had a ranking before a UTC day."""
    return any(board.rounds and board.rounds[0].date < day for board in boards)


def last_interval_start(view: View) -> str:
    """Return the first of the ``poll_every_days`` that end with the newest poll's UTC day.

    Before the first poll it is before any.
    """
    newest = as_of.newest_day(view.snapshot)
    if not newest:
        return f"{date.min}"
    return f"{date.fromisoformat(newest) - timedelta(days=view.site.poll_every_days - 1)}"


def _slugs(view: View, query: ChangesQuery) -> Collection[str] | None:
    """Return the categories that a query asks about; ``None`` if about all."""
    topic = lookup.topic_parameter(view, query.topic)
    slugs = {board.slug for board in topic.leaderboards} if topic else None
    if query.slug is not None:
        lookup.board(view, query.slug)
        # Both narrow: a category outside of the topic has none.
        slugs = {query.slug} if slugs is None else slugs & {query.slug}
    return slugs


def _change(view: View, change: changes.Change) -> ChangeItem:
    return ChangeItem(
        id=change.poll,  # a poll brings one change at most
        slug=change.slug,
        title=view.snapshot.aggregates[change.slug].category.title,
        model=change.model,
        from_=view.name(change.previous),
        to=view.name(change.current),
        reason=change.reason,
        from_date=change.previous_at[:10],
        to_date=change.current_at[:10],
        confirmed=change.confirmed,
        served_model_from=change.version.before if change.version else None,
        served_model_to=change.version.after if change.version else None,
        page=view.at.category_page(change.slug),
        api=view.at.category(change.slug),
    )


def _leader_change(view: View, board: Leaderboard, change: rounds.LeaderChange) -> LeaderChangeItem:
    cause = change.cause
    return LeaderChangeItem(
        slug=board.slug,
        title=board.category.title,
        from_=view.name(change.before),
        to=view.name(change.after),
        from_date=change.since,
        to_date=change.date,
        answers=change.answers,
        model=cause.model if cause else None,
        served_model_from=cause.before if cause else None,
        served_model_to=cause.after if cause else None,
        page=view.at.category_page(board.slug),
        api=view.at.category(board.slug),
    )
