"""How polling stands, per assistant, from the files alone: what is due, paused, spent and wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from store.polls.assistant_checks import Unready, key_of
from store.polls.batch_files import Batch
from store.polls.batches import CANCEL_AFTER, cost_of, late
from store.polls.due import DuePolls, Pair, Rounds
from store.polls.locks import is_held, path_of
from store.polls.poller import Desk
from store.polls.prices import missing_prices
from store.rankings.poll_states import outage
from store.rankings.sentences import listed
from store.records import Assistant
from store.settings import SettingsError
from store.times import rfc3339


def status_of(assistant: Assistant, desk: Desk, stands: DuePolls) -> list[str]:
    """Return how an assistant stands: a line for people, and one for each thing that is wrong.

    Raises:
        OSError: a lock or a batch cannot be read.
    """
    name, now, files = assistant.name, desk.clock.now(), desk.files
    catalogue, rounds = desk.catalogue, Rounds.of(desk.catalogue.site)
    pairs = [Pair(slug, category, assistant) for slug, category in catalogue.categories.items()]
    under_way = files.under_way(catalogue)
    due = stands.due([pair for pair in pairs if pair.key not in under_way], rounds, now)
    states = stands.of_model(name)
    answered = max((state.answered_at for state in states if state.answered_at), default=None)
    today = rfc3339(now)[:10]
    spent = sum(state.usd for state in states if state.polled_at[:10] == today)
    pause, batch_pause = stands.pause_of(name, now), files.pause_of(assistant, now)
    batches = files.open_of(name, catalogue)
    parts = [f"{len(due)} of {len(pairs)} due"]
    parts += ["being asked now"] if is_held(path_of(desk.locks, name)) else []
    parts += [_in_words(batches, now)] if batches else []
    parts += [f"its batches are paused {batch_pause}"] if assistant.batch and batch_pause else []
    parts += [f"spent today {spent:.2f} USD"] if spent else []
    parts.append(f"last success {answered or 'never'}")
    parts += filter(None, [_limit(assistant, desk)])
    failed = [time for state in states for time in state.failed_at]
    silent = assistant.api != "sample" and outage(answered, failed, rounds.every_days, now, now)
    wrong = [f"{name} {silent}."] if silent else []
    wrong += [f"{name} is paused {pause}"] if pause else []
    wrong += filter(None, [lack(assistant, desk.secret, desk.budget.daily_usd)])
    wrong += [late(batch) for batch in batches if batch.age(now) > CANCEL_AFTER]
    return [f"{name}: {', '.join(parts)}", *wrong]


def lack(
    assistant: Assistant, secret: Callable[[str], str | None], usd: float | None
) -> str | None:
    """Return what an assistant lacks to be asked, and to be paid under a limit of US dollars."""
    try:
        key_of(assistant, secret)
    except (Unready, SettingsError) as error:
        return f"{error}."
    if usd is not None and (missing := missing_prices(assistant)):
        return f"{assistant.name}: a limit of money needs {listed(missing)} in models.json."
    return None


def _in_words(batches: Sequence[Batch], now: datetime) -> str:
    """Return how open batches stand, as a phrase."""
    hours = max(batch.age(now) for batch in batches).total_seconds() / 3600
    passed = f"{hours:.0f} h" if hours >= 1 else f"{60 * hours:.0f} min"
    return (
        f"{len(batches)} {'batch' if len(batches) == 1 else 'batches'}: "
        f"{sum(len(batch.items) for batch in batches)} asked {passed} ago, "
        f"{sum(batch.done for batch in batches)} done, "
        f"at most {sum(batch.reserved for batch in batches) / 1e6:.2f} USD"
    )


def _limit(assistant: Assistant, desk: Desk) -> str | None:
    """Return the limit of money that keeps the assistant from another question, if one does."""
    category = next(iter(desk.catalogue.categories.values()), None)
    if category is None or assistant.api == "sample" or missing_prices(assistant):
        return None
    try:
        return desk.budget.reached(cost_of(assistant, category.question))
    except OSError:  # said as a fault of the whole
        return None
