"""What polling touches, put together for one data directory: by the command and by the schedule."""

from __future__ import annotations

import os
import pwd
from typing import TYPE_CHECKING

from store.polls.leases import Leases
from store.polls.runner import Edges
from store.polls.spending import DailyAccount

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from store.files import Catalogue
    from store.polls.clocks import Clock
    from store.polls.runner import Record
    from store.polls.spending import Account
    from store.rankings.poll_states import PollStates
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


def daily_account(
    settings: Settings, catalogue: Catalogue, usd_on: Callable[[str], float], clock: Clock
) -> list[DailyAccount]:
    """The account of site.json's ``daily_usd``, if it sets one; ``usd_on`` is what history says."""
    cap = catalogue.site.daily_usd
    if cap is None:
        return []

    def today() -> str:
        return clock.now().date().isoformat()

    return [DailyAccount(cap, locks_in(settings), today, usd_on)]


def edges_of(
    settings: Settings,
    record: Record,
    states_of: Callable[[str], PollStates],
    *,
    stop: threading.Event,
    clock: Clock,
    accounts: Sequence[Account] = (),
) -> Edges:
    """The edges of one data directory."""
    return Edges(
        record=record,
        states_of=states_of,
        leases=Leases(locks_in(settings)),
        secret=settings.secret,
        stop=stop,
        clock=clock,
        accounts=accounts,
        proxy=settings.proxy,
    )
