"""Rankings as of a past day: only what was there then; all else is as of today.

A ranking holds ids of products; their names, those of today, are put in by ``View.name``. Why:
store/README.md, As of.
"""

from collections.abc import Callable, Sequence

from store.category_history import PollIndex, under_present_names
from store.ledger import LedgerEntry, day_after
from store.line_codec import POLL_DECODER
from store.rankings import aggregates, leaderboards
from store.rankings.leaderboards import Leaderboard
from store.records import Poll
from store.snapshot import Snapshot

Lines = Callable[[PollIndex, Sequence[int]], list[bytes]]


def newest_day(snapshot: Snapshot) -> str:
    """Return the UTC day of the newest poll; empty, before any day, where there is none."""
    return (snapshot.summary.last_poll or "")[:10]


def first_day(snapshot: Snapshot, slug: str) -> str:
    """Return the UTC day of a ranked category's first ranking: that of its first counted answer."""
    states, ledger = snapshot.aggregates[slug].states, snapshot.ledger
    own = (states[model].first_answer for model in snapshot.models if model in states)
    day = min(filter(None, own))[:10]
    if not is_final(snapshot, day):
        return day
    # A line that was put under a closed day by hand was not there when it closed.
    files = snapshot.poll_indexes[slug].files
    days = [ledger.ends[file][0][0] for file in files if file in ledger.ends]
    return max(day, min(days, default=day_after(ledger.last_closed_day)))


def is_final(snapshot: Snapshot, day: str) -> bool:
    """Return whether a UTC day is closed, so that no poll can be added to its rankings."""
    return day <= snapshot.ledger.last_closed_day


def cited_day(snapshot: Snapshot, slug: str) -> str:
    """Return the UTC day whose ranking by ``asOf`` is the present one of a ranked category.

    That is the last closed day on which its history grew, if nothing came since, else the day of
    its newest poll, which may gain answers until it is closed.
    """
    ledger, index = snapshot.ledger, snapshot.poll_indexes[slug]
    newest = [ledger.last(file) for file in index.files]
    open_lines = (n > newest[file].lines for file, n in zip(index.file, index.line, strict=True))
    if ledger.pending or any(open_lines):
        return (snapshot.aggregates[slug].last_poll or "")[:10]
    return max(entry.day for entry in newest)


def loss_after(snapshot: Snapshot, slug: str, day: str) -> LedgerEntry | None:
    """Return the acceptance of a loss that keeps a day of a category from being shown, if any."""
    accepted = snapshot.ledger.accepted
    entries = (accepted[f] for f in snapshot.poll_indexes[slug].files if f in accepted)
    return next((entry for entry in entries if day < entry.day), None)


def positions_until(snapshot: Snapshot, slug: str, day: str) -> Sequence[int]:
    """Return the positions of a category's polls that were there at the end of a UTC day.

    Of an open day they are those that its closing would cover now.
    """
    index, ledger = snapshot.poll_indexes[slug], snapshot.ledger
    ends = {file: ledger.lines_on(file, day) for file in index.files}
    for entry in index.open_entries:
        if entry.day <= day:
            ends[entry.file] = max(ends[entry.file], entry.lines)
    files = [ends[file] for file in index.files]
    return [i for i, line in enumerate(index.line) if line <= files[index.file[i]]]


def _polls_until(snapshot: Snapshot, slug: str, day: str, lines: Lines) -> list[Poll]:
    """Return a category's polls that count and were there at the end of a day, oldest first.

    Of a closed day they are what the ledger has, whatever times later lines bear; of an open one,
    those made by its end.

    Raises:
        HistoryError: ``lines`` cannot read a file just now.
    """
    index, is_closed = snapshot.poll_indexes[slug], is_final(snapshot, day)
    positions = [i for i in positions_until(snapshot, slug, day) if i not in index.withheld]
    polls = map(POLL_DECODER.decode, lines(index, positions))
    present = (poll for poll in polls if is_closed or poll.polled_at[:10] <= day)
    return under_present_names(present, snapshot.catalogue.former_names)


def leaderboard(snapshot: Snapshot, slug: str, day: str, lines: Lines) -> Leaderboard | None:
    """Return the ranking of a category as of a UTC day; ``None`` if no answer counted then.

    It reads the history file. Today's verdict must not: it takes earlier days from
    ``Leaderboard.log``.

    Raises:
        HistoryError: ``lines`` cannot read a file just now.
    """
    polls, category = _polls_until(snapshot, slug, day, lines), snapshot.aggregates[slug].category
    past = aggregates.gather(slug, category, polls, snapshot.names)
    named = snapshot.products.keys() & past.resolved.values()  # what was only missed has no page
    slugs = {id_: snapshot.products[id_].slug for id_ in named}
    return leaderboards.board(past, snapshot.models, snapshot.catalogue.site, slugs)
