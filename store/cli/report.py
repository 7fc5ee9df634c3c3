"""All that is said before anything is asked: how polling stands, what asking would cost.

Also the one tiny question that shows whether an assistant can be reached.
"""

import math
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import click
from msgspec.structs import replace

from store.category_history import doubt_clock
from store.cli.checking import unrecordable
from store.polls import spending
from store.polls.answers import Prompt
from store.polls.asking import quote, request_for
from store.polls.batch_files import HAS_OPEN_BATCH, NOT_LISTED, Batch
from store.polls.batches import CANCEL_AFTER, describe_delay
from store.polls.due import FuturePollError, Pair, PollingState
from store.polls.locks import FOLDER, DamagedFileError, is_held, path_of
from store.polls.providers import WIRE_FORMATS
from store.polls.providers.wire import Tokens
from store.polls.schedule import LOCK
from store.polls.session import PollSession
from store.polls.spending import Charge
from store.rankings.poll_states import Pause, outage
from store.rankings.sentences import plural
from store.records import Assistant, Failure
from store.settings import SettingsError
from store.text import rfc3339

PROMPT = Prompt("You are asked whether you can be reached.", "Answer with the word OK.")
EXPECTED_INPUT = 0.5
"""The expected share of the most input, which takes two bytes for a token; English has four."""
EXPECTED_OUTPUT = 0.375
"""The expected share of the most output: 1,500 of 4,000 tokens."""


def describe_unread(session: PollSession, state: PollingState, *, is_simulated: bool) -> list[str]:
    """Return in sentences what of history cannot be read and so is not polled."""
    ahead = {error.slug: error.time for error in state.unread if isinstance(error, FuturePollError)}
    polled = len(ahead) + sum(bool(states.latest_time) for states in state.states.values())
    now = session.clock.now()
    doubt = doubt_clock(ahead, polled, now)
    if doubt and is_simulated:
        doubt = f"{len(ahead):,} categories have later answers than {rfc3339(now)}; they are left"
    sentences = [str(session.polling.history.fault)] if session.polling.history.fault else []
    sentences += [f"{doubt}."] if doubt else []
    others = [e for e in state.unread if not (doubt and isinstance(e, FuturePollError))]
    return sentences + [f"{e}; its category is left alone" for e in dict.fromkeys(map(str, others))]


def show_status(session: PollSession, chosen: Sequence[Assistant]) -> bool:
    """Say how polling stands; return whether nothing needs a person."""
    state = session.polling.read(session.catalogue)
    faults = describe_unread(session, state, is_simulated=False)
    faults += [fault for fault in (session.clock.fault(), session.budget.fault()) if fault]
    site, data_dir = session.catalogue.site, session.settings.data_dir
    problems = unrecordable(data_dir, session.polling.history, site, session.clock.now())
    faults += [str(problem) for problem in problems if problem.severity == "error"]
    is_scheduled = False
    statuses = []
    try:
        session.share_day(state)
        statuses = [status_of(assistant, session, state) for assistant in chosen]
        faults += [
            f'"{name}" {HAS_OPEN_BATCH} and {NOT_LISTED}.'
            for name in session.batches.owners_gone(session.catalogue)
        ]
        is_scheduled = is_held(session.locks / LOCK)
    except OSError as error:
        faults.append(f"{error_in_words(error, data_dir)}.")
    for line in (*(line for lines in statuses for line in lines), *dict.fromkeys(faults)):
        click.echo(line)
    today = rfc3339(session.clock.now())[:10]
    known = sum(session.polling.usd_on(today).values())
    spent = known if session.budget.fault() else session.budget.usd_today()
    of = "" if session.budget.daily_usd is None else f" of {session.budget.daily_usd:g}"
    unknown = spent - known
    more = f", {unknown:.2f} of it for batches on their way, calls of unknown cost and --try"
    click.echo(f"Spent today: {spent:.2f}{of} USD{more if round(unknown, 2) else ''}.")
    nobody = "No server polls on schedule; one with POLL_ENABLED=1 would."
    click.echo("A server polls on schedule." if is_scheduled else nobody)
    # Each line after an assistant's first is something that needs a person.
    return not faults and all(len(lines) == 1 for lines in statuses)


def error_in_words(error: Exception, directory: Path) -> str:
    """Return why something was not asked; of a system error, which folder cannot be used."""
    if not isinstance(error, OSError) or isinstance(error, DamagedFileError) or not error.strerror:
        return f"{error}"
    place = Path(error.filename or directory / FOLDER)
    if place.is_relative_to(directory) and place != directory:
        place = Path(place.relative_to(directory).parts[0])
    return f"Nothing can be asked, for {place} cannot be used: {error.strerror}"


def status_of(assistant: Assistant, session: PollSession, state: PollingState) -> list[str]:
    """Return how an assistant stands: a line for people, and one for each thing that is wrong.

    Raises:
        OSError: a lock or a batch cannot be read.
    """
    name, now, files = assistant.name, session.clock.now(), session.batches
    catalogue, every_days = session.catalogue, session.catalogue.site.poll_every_days
    pairs = session.pairs(assistant)
    due = session.due(pairs, state)
    states = state.of_assistant(name)
    answered = max((one.answered_at for one in states if one.answered_at), default=None)
    spent = session.polling.usd_on(rfc3339(now)[:10]).get(name)
    pause, batch_pause = state.pause_of(name, now), files.pause_of(assistant, now)
    batches = files.open_of(name, catalogue)
    parts = [f"{len(due)} of {len(pairs)} due"]
    parts += ["being asked now"] if is_held(path_of(session.locks, name)) else []
    parts += [_in_words(batches, now)] if batches else []
    if assistant.batch and batch_pause:
        parts.append(f"its batches are paused {batch_pause}".removesuffix("."))
    parts += [f"spent today {spent:.2f} USD"] if spent else []
    parts.append(f"last success {answered or 'never'}")
    category = next(iter(catalogue.categories.values()), None)
    if category and assistant.api != "sample" and not spending.missing_prices(assistant):
        with suppress(OSError):  # said as a fault of the whole
            reserve = session.reserve_for(assistant, category.question, state)
            limit = session.budget.reached(reserve, name)
            parts += [limit] if limit else []
    failed = [time for one in states for time in one.failed_at]
    silent = assistant.api != "sample" and outage(answered, failed, every_days, now, now)
    wrong = [f"{name} {silent}."] if silent else []
    wrong += [f"{name} is paused {pause_in_words(name, pause)}"] if pause else []
    try:
        session.check_prices(assistant)
        session.sender(assistant)
    except SettingsError as error:
        wrong.append(f"{error}.")
    wrong += [describe_delay(batch) for batch in batches if batch.age(now) > CANCEL_AFTER]
    return [f"{name}: {', '.join(parts)}", *wrong]


def pause_in_words(name: str, pause: Pause) -> str:
    """Return until when and why an assistant is paused, and the way to ask it before."""
    way = f'`flask poll --due --model "{name}"` asks one question first'
    way = "its provider named the time, so nothing asks it before" if pause.stated else way
    return f"{f'{pause}'.removesuffix('.')}; {way}."


def _in_words(batches: Sequence[Batch], now: datetime) -> str:
    """Return how open batches stand, as a phrase."""
    hours = max(batch.age(now) for batch in batches).total_seconds() / 3600
    passed = f"{hours:.0f} h" if hours >= 1 else f"{60 * hours:.0f} min"
    return (
        f"{len(batches)} {'batch' if len(batches) == 1 else 'batches'}: "
        f"{sum(len(batch.items) for batch in batches)} asked {passed} ago, "
        f"at most {sum(batch.reserved for batch in batches) / 1e6:.2f} USD"
    )


def estimate(
    calls: Sequence[Pair], session: PollSession, state: PollingState, *, is_due: bool
) -> list[str]:
    """Return in lines what these calls would use, cost and take, per assistant and in all."""
    lanes: dict[str, list[Pair]] = {}
    for pair in calls:
        lanes.setdefault(pair.assistant.name, []).append(pair)
    lines: list[str] = []
    totals = [0.0, 0.0]
    more = ""
    for name, lane in lanes.items():
        assistant = lane[0].assistant
        if assistant.api == "sample":
            lines.append(f"{name}: {plural(len(lane), 'call')} of a sample assistant, free")
            continue
        is_batched = is_due and session.asks_in_batches(assistant, state)
        bodies = (request_for(assistant, pair.category.question).body for pair in lane)
        tokens = sum((spending.at_most(assistant, body) for body in bodies), Tokens(0, 0))
        costs = _costs(assistant, len(lane), tokens, is_batched=is_batched)
        way = " in batches" if is_batched else " in the flex tier" if assistant.tier else ""
        price = "price unknown"
        if costs:
            price = f"{costs[0]:.2f} USD{way} expected, {costs[1]:.2f} USD at most"
            totals = [total + cost for total, cost in zip(totals, costs, strict=True)]
        else:
            more = " and what has no price"
        minutes = len(lane) // assistant.rpm
        time = f"; at least {minutes} min at {assistant.rpm} a minute" if minutes else ""
        lines.append(
            f"{name}: {plural(len(lane), 'call')}, {price}; at most {tokens.input:,} input and "
            f"{tokens.output:,} output tokens{'; within a day' if is_batched else time}"
        )
    expected, most = totals
    lines.append(
        f"In all: {expected:.2f} USD expected, {most:.2f} USD at most{more}, if no question has to "
        "be asked twice (an answer cut off, a fault of the line). Nothing was sent."
    )
    limit = session.budget.run_usd
    if limit is not None and expected > limit:
        lines.append(f"--max-usd {limit:g} ends it before all is asked.")
    daily = session.budget.daily_usd
    asked = [lane[0].assistant for lane in lanes.values()]
    question = calls[0].category.question if calls else ""
    each = sum(session.reserve_for(one, question, state, is_due=is_due) for one in asked) / 1e6
    if daily and each > daily:
        lines.append(f"At daily_usd {daily:g} none is asked: once each may cost {each:.4f} USD.")
    elif daily and expected > daily:
        days = math.ceil(expected / daily)
        lines.append(f"At daily_usd {daily:g} that takes {days} days or more.")
    return lines


def _costs(
    assistant: Assistant, calls: int, tokens: Tokens, *, is_batched: bool
) -> tuple[float, float] | None:
    """Return what calls are expected to cost and cost at most, if the prices are known.

    The flex tier may answer in the ordinary one, at its price.
    """
    cheap = spending.at_reduced_price(assistant) if is_batched or assistant.tier else assistant
    likely = Tokens(
        round(tokens.input * EXPECTED_INPUT),
        round(tokens.output * EXPECTED_OUTPUT),
        calls if assistant.web_search else 0,
    )
    expected = spending.usd(cheap, likely)
    most = spending.usd(cheap if is_batched else assistant, tokens)
    return None if expected is None or most is None else (expected, most)


def probe(session: PollSession, assistant: Assistant, state: PollingState) -> tuple[str, bool]:
    """Ask an assistant whether it is there; return a sentence, and whether it answered.

    Nothing is recorded but what it cost. A pause that its provider named is kept.
    """
    name = assistant.name
    pause = state.pause_of(name, session.clock.now())
    if assistant.api == "sample" or (pause and pause.stated):
        why = (
            f"not asked, for it is paused {pause}" if pause else "a sample assistant, always there"
        )
        return f"{name}: {why}", pause is None
    plain = replace(assistant, structured="prompt", web_search=False)
    try:
        sender = session.sender(plain)
        request = WIRE_FORMATS[plain.api].build_request(plain, PROMPT, sender.secret)
        most = spending.usd(plain, spending.at_most(plain, request.body)) or 0
        charge = Charge(session.budget, spending.micros(most), name)
        if not charge.reserve():
            return f"{name}: not asked, for {session.budget.reached(charge.amount, name)}", False
        session.clock.confirmed = None
        reply = sender.send(request, charge)
    except (SettingsError, OSError) as error:
        return f"{error_in_words(error, session.settings.data_dir)}.", False
    if reply is None:
        return f"{name}: not asked; {session.clock.fault() or 'it was stopped'}", False
    if isinstance(reply.outcome, Failure):
        return f"{name}: {quote(reply.outcome.error, sender.secret)}", False
    cost = spending.price_of(plain, reply)
    unpriced = "at a price that models.json does not give" if reply.tokens else "tokens not counted"
    price = unpriced if cost is None else f"{cost:.6f} USD"
    tier = f" in tier {quote(reply.tier or 'unknown', sender.secret)}" if assistant.tier else ""
    model = quote(reply.served_model or "a model without a name", sender.secret)
    sentence = f"{name}: {model} answers{tier} after {reply.latency_ms} ms, {price}"
    agrees = "its clock as this machine's" if session.clock.confirmed else "without saying the time"
    return f"{sentence}, {agrees}", True
