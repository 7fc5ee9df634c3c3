"""Rankings as of a past day: only the polls up to its end; all else, names too, is as of today.

Why: store/README.md, As of.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from store.counting import as_known
from store.line_codec import POLL_DECODER
from store.rankings import aggregates, leaderboards

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from store.rankings.leaderboards import Leaderboard
    from store.records import Poll
    from store.snapshot import LineIndex, Snapshot

    Lines = Callable[[LineIndex, Sequence[int]], list[bytes]]


class _PollTime(Struct, rename="camel"):
    """The time in a line of history; reading no more takes a fifth of the time of the whole."""

    polled_at: str


_POLL_TIMES = msgspec.json.Decoder(_PollTime)


def newest_day(snapshot: Snapshot, slug: str) -> str:
    """The UTC day of the newest poll of the site; empty, before any day, where there is none."""
    # The overview may be a moment behind, so the category's own newest counts too.
    aggregate = snapshot.aggregates.get(slug)
    own = aggregate.last_poll if aggregate else None
    return max(snapshot.summary.last_poll or "", own or "")[:10]


def is_old(board: Leaderboard, newest: str, limit: int) -> bool:
    """Whether a category's newest answer is over ``limit`` days older than the ``newest`` day."""
    behind = dt.date.fromisoformat(newest) - dt.date.fromisoformat(board.updated)
    return behind.days > limit


def first_day(snapshot: Snapshot, slug: str) -> str:
    """The UTC day from which on a ranked category has a ranking: its first counted answer's."""
    tallies = snapshot.aggregates[slug].tallies
    own = (tallies[model] for model in snapshot.models if model in tallies)
    return min(service.first for tally in own for service in tally.services)[:10]


def closed_day(snapshot: Snapshot, slug: str) -> str | None:
    """The last UTC day whose ranking no later poll can change, if the category has one.

    The day of the category's newest poll, or the day before the site's newest if that is earlier.
    """
    newest = dt.date.fromisoformat(newest_day(snapshot, slug))
    own = (snapshot.aggregates[slug].last_poll or "")[:10]
    closed = min(own, (newest - dt.timedelta(days=1)).isoformat())
    return closed if closed >= first_day(snapshot, slug) else None


def polls_until(snapshot: Snapshot, slug: str, day: str, lines: Lines) -> list[Poll]:
    """A category's polls that count and were made by the end of a UTC day, oldest first.

    Raises:
        HistoryError: ``lines`` cannot read a file just now.
    """
    line_index = snapshot.line_indexes[slug]
    counted = [i for i in range(len(line_index.models)) if i not in line_index.withheld]
    found = lines(line_index, counted)
    until = [line for line in found if _POLL_TIMES.decode(line).polled_at[:10] <= day]
    return as_known(map(POLL_DECODER.decode, until), snapshot.catalogue.former_names)


def leaderboard(snapshot: Snapshot, slug: str, day: str, lines: Lines) -> Leaderboard:
    """The ranking of a category as of a UTC day, not before :func:`first_day`.

    Raises:
        HistoryError: ``lines`` cannot read a file just now.
    """
    return ranked(snapshot, slug, polls_until(snapshot, slug, day, lines))


def ranked(snapshot: Snapshot, slug: str, polls: Sequence[Poll]) -> Leaderboard:
    """The ranking of a category by some of its polls, oldest first, a counted answer among them."""
    category = snapshot.aggregates[slug].category
    answers = aggregates.read_answers(slug, category, polls, snapshot.names)
    named = snapshot.products.keys() & answers.resolved.values()  # what was only missed has no page
    slugs = {id_: snapshot.products[id_].slug for id_ in named}
    board = leaderboards.board(answers, snapshot.models, snapshot.catalogue.site, slugs)
    assert board is not None  # noqa: S101 - a configured model answered
    return board
