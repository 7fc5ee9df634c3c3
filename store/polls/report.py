"""How polling stands, per assistant: by the files alone, or by one tiny question."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec.structs import replace

from store.polls.asking import cost_at_most
from store.polls.batch_files import Batch
from store.polls.batches import CANCEL_AFTER, cost_of, late
from store.polls.desk import Desk
from store.polls.due import DuePolls, Rounds
from store.polls.locks import is_held, path_of
from store.polls.prices import at_most, micros, missing_prices, price_of, usd
from store.polls.prompt import Prompt
from store.polls.providers import PROVIDERS
from store.polls.secrets import Unready
from store.polls.sending import Unsent
from store.polls.spending import Charge
from store.rankings.poll_states import outage
from store.records import Assistant, Failure
from store.settings import SettingsError
from store.text import rfc3339

PROMPT = Prompt("You are asked whether you can be reached.", "Answer with the word OK.")


def status_of(assistant: Assistant, desk: Desk, stands: DuePolls) -> list[str]:
    """Return how an assistant stands: a line for people, and one for each thing that is wrong.

    Raises:
        OSError: a lock or a batch cannot be read.
    """
    name, now, files = assistant.name, desk.clock.now(), desk.files
    catalogue, rounds = desk.catalogue, Rounds.of(desk.catalogue.site)
    pairs = desk.pairs(assistant)
    due = desk.due(pairs, stands, rounds)
    states = stands.of_model(name)
    answered = max((state.answered_at for state in states if state.answered_at), default=None)
    spent = stands.usd_on(name, rfc3339(now)[:10])
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
    try:
        desk.check_ready(assistant)
    except (Unready, SettingsError) as error:
        wrong.append(f"{error}.")
    wrong += [late(batch) for batch in batches if batch.age(now) > CANCEL_AFTER]
    return [f"{name}: {', '.join(parts)}", *wrong]


def _in_words(batches: Sequence[Batch], now: datetime) -> str:
    """Return how open batches stand, as a phrase."""
    hours = max(batch.age(now) for batch in batches).total_seconds() / 3600
    passed = f"{hours:.0f} h" if hours >= 1 else f"{60 * hours:.0f} min"
    return (
        f"{len(batches)} {'batch' if len(batches) == 1 else 'batches'}: "
        f"{sum(len(batch.items) for batch in batches)} asked {passed} ago, "
        f"at most {sum(batch.reserved for batch in batches) / 1e6:.2f} USD"
    )


def _limit(assistant: Assistant, desk: Desk) -> str | None:
    """Return the limit of money that keeps the assistant from another question, if one does."""
    category = next(iter(desk.catalogue.categories.values()), None)
    if category is None or assistant.api == "sample" or missing_prices(assistant):
        return None
    question = category.question
    direct = micros(cost_at_most(assistant, question) or 0)
    try:
        return desk.budget.reached(cost_of(assistant, question) if assistant.batch else direct)
    except OSError:  # said as a fault of the whole
        return None


def ask_whether_there(desk: Desk, assistant: Assistant) -> tuple[str, bool]:
    """Ask an assistant whether it is there; return a sentence, and whether it answered.

    Nothing is recorded but what it cost.
    """
    name = assistant.name
    if assistant.api == "sample":
        return f"{name}: a sample assistant, always there and free", True
    plain = replace(assistant, structured="prompt", web_search=False)
    try:
        sender = desk.sender(plain)
        request = PROVIDERS[plain.api].build_request(plain, PROMPT, sender.secret)
        charge = Charge(desk.budget, micros(usd(plain, at_most(plain, request.body)) or 0))
        if not charge.reserve():
            return f"{name}: not asked, for {desk.budget.reached(charge.amount)}", False
        reply = sender.send(request, charge)
    except (Unready, SettingsError, OSError) as error:
        return f"{error}.", False
    if isinstance(reply, Unsent):
        return f"{name}: not asked; {reply.reason or 'it was stopped'}", False
    if isinstance(reply.outcome, Failure):
        return f"{name}: {reply.outcome.error}", False
    cost = price_of(plain, reply)
    price = "at a price that models.json does not give" if cost is None else f"{cost:.6f} USD"
    tier = f" in tier {reply.tier}" if assistant.tier else ""
    model = reply.served_model or "a model without a name"
    sentence = f"{name}: {model} answers{tier} after {reply.latency_ms} ms, {price}"
    return f"{sentence}, its clock as this machine's", True
