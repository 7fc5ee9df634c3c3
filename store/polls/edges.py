"""What polling touches, put together for one data directory: by the command and by the schedule."""

from __future__ import annotations

import os
import pwd
from typing import TYPE_CHECKING

from store.counting import history_files
from store.polls.due import Past, polls_in
from store.polls.leases import Leases
from store.polls.runner import Edges
from store.polls.spending import DailyAccount

if TYPE_CHECKING:
    import threading
    from collections.abc import Sequence
    from pathlib import Path

    from store.files import Catalogue
    from store.history import History
    from store.polls.clocks import Clock
    from store.polls.due import Agenda
    from store.polls.runner import Record
    from store.polls.spending import Account
    from store.records import Poll
    from store.settings import Settings


def locks_in(settings: Settings) -> Path:
    """The folder of locks and of today's sum; nothing in it is worth keeping."""
    return settings.data_dir / ".locks"


def other_owner(settings: Settings) -> str | None:
    """The user whom the history belongs to, if he could not use what we, as root, add to it."""
    history = settings.data_dir / "history"
    owner = (history if history.is_dir() else settings.data_dir).stat().st_uid
    if os.geteuid() != 0 or owner == 0:
        return None
    try:
        return pwd.getpwuid(owner).pw_name
    except KeyError:  # a container that knows root alone
        return None


def pasts_of(catalogue: Catalogue) -> dict[str, Past]:
    """What beside history decides how each category's pairs stand."""
    former_names = catalogue.former_names
    return {
        slug: Past(
            files=history_files(slug, category, catalogue.categories),
            category=category,
            former_names=former_names,
            withheld=catalogue.withheld,
        )
        for slug, category in catalogue.categories.items()
    }


def daily_account(
    settings: Settings, catalogue: Catalogue, agenda: Agenda, clock: Clock
) -> list[DailyAccount]:
    """The account of site.json's ``daily_usd``, if it sets one; ``agenda`` is up to date."""
    cap = catalogue.site.daily_usd
    if cap is None:
        return []

    def today() -> str:
        return clock.now().date().isoformat()

    return [DailyAccount(cap, locks_in(settings), today, agenda.usd_on)]


def edges_of(
    settings: Settings,
    catalogue: Catalogue,
    history: History,
    record: Record,
    *,
    stop: threading.Event,
    clock: Clock,
    accounts: Sequence[Account] = (),
) -> Edges:
    """The edges of one data directory; ``record`` appends, ``history`` reads back."""
    pasts = pasts_of(catalogue)

    def polls_of(slug: str) -> list[Poll]:
        past = pasts[slug]
        return list(filter(past.answers_now, polls_in(history, past, clock.now())))

    return Edges(
        record=record,
        polls_of=polls_of,
        leases=Leases(locks_in(settings)),
        secret=settings.secret,
        stop=stop,
        clock=clock,
        accounts=accounts,
        proxy=settings.proxy,
    )
