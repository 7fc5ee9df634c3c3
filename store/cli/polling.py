"""``flask poll``: ask the assistants and append what they say to history."""

from __future__ import annotations

import math
import sys
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click
import msgspec
from flask import current_app

from store.cli import app_settings, batching, refuse, unknown_category, with_data
from store.cli.poll_runs import Order, PollContext, ask, lack, look_at, past_pauses
from store.counting import invented
from store.files import Catalogue, Files
from store.history import History
from store.polls import clarifying
from store.polls.asking import cost_at_most, request_for
from store.polls.assistant_checks import mistakes
from store.polls.batches.files import Batch, Batches
from store.polls.batches.standing import late_ones, open_batches, why_none
from store.polls.clocks import EARLIEST, Clock, utc_now
from store.polls.due import DuePolls, Pair, Rounds
from store.polls.leases import Leases, held, locks_in
from store.polls.providers import Tokens
from store.polls.schedule import LOCK
from store.polls.spending import at_most, usd
from store.polls.status import PollingReport, Status, status
from store.records import MAX_SAMPLES, Assistant, Category

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from store.memory import Store
    from store.settings import Settings


def instant(value: str) -> datetime:
    """A time in UTC, RFC 3339; one without a zone is refused, since nothing is guessed."""
    try:
        time = datetime.fromisoformat(value)
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise click.BadParameter(f'"{value}" is no time such as 2026-11-02T06:00:00Z')
    if not EARLIEST <= time <= utc_now():
        raise click.BadParameter(f'"{value}" is before {EARLIEST:%Y} or still to come')
    return time.astimezone(UTC)


class Dollars(click.FloatRange):
    """An amount of money: ``nan`` and ``inf`` are none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read an amount."""
        amount = super().convert(value, param, ctx)
        if not math.isfinite(amount):
            self.fail(f'"{value}" is no amount', param, ctx)
        return amount


@click.command()
@click.argument("slugs", nargs=-1, metavar="[SLUG]...")
@click.option("--all", "everything", is_flag=True, help="Poll every category.")
@click.option("--due", is_flag=True, help="Poll only what is due, those waiting longest first.")
@click.option("--model", "models", multiple=True, metavar="NAME", help="Ask only this assistant.")
@click.option(
    "--samples",
    type=click.IntRange(1, MAX_SAMPLES),
    metavar="N",
    help="Ask each so often; with --due until its round has N answers.  "
    "[default: once; with --due as site.json says]",
)
@click.option(
    "--until-clear",
    type=click.IntRange(2, MAX_SAMPLES),
    metavar="MAX",
    help="Ask where it is not clear who leads, until it is or each has MAX answers that count.",
)
@click.option(
    "--at",
    type=instant,
    metavar="TIME",
    help="Pretend it is this time; only for sample assistants.",
)
@click.option(
    "--max-usd",
    type=Dollars(min=0),
    metavar="USD",
    help="Send nothing that could bring the run's cost above this.",
)
@click.option(
    "--batch",
    is_flag=True,
    help="Ask through the providers' queues for batches, and do not wait for answers.",
)
@click.option("--collect", is_flag=True, help="Record what batches have answered by now.")
@click.option("--cancel", is_flag=True, help="End the batches on their way, then --collect.")
@click.option("--dry-run", is_flag=True, help="Say what it would cost; send nothing.")
@click.option("--status", "show", is_flag=True, help="Say what is due, running, paused and spent.")
@click.option("--json", "as_json", is_flag=True, help="With --status: say it as JSON.")
@with_data
def poll(  # noqa: PLR0913 - a command's options
    slugs: tuple[str, ...],
    models: tuple[str, ...],
    samples: int | None,
    until_clear: int | None,
    at: datetime | None,
    max_usd: float | None,
    *,
    everything: bool,  # noqa: ARG001 - what no SLUG means; `_check_call` looks at it
    due: bool,
    batch: bool,
    collect: bool,
    cancel: bool,
    dry_run: bool,
    show: bool,
    as_json: bool,
) -> None:
    """Ask the assistants and append what they say to history.

    Name categories by SLUG, or use --all, --due or --until-clear. Works beside a running server,
    which shows the new rankings within seconds.

    --until-clear looks at every category unless some are named. It asks pass by pass, those first
    who have the fewest answers, and open categories before contradicted and unmeasured ones.

    --batch asks only assistants with "batch": true in models.json, at about half the price. Answers
    take up to a day; a server that polls on schedule collects them, as does --collect.

    Exits with 0 when all is fine, with 1 when something is wrong that needs a person, and with 2
    when the command is called in a wrong way. Wrong is: a key or a price is missing, refused or
    out of money; an assistant is paused; no poll brought an answer; the clock is wrong; a history
    cannot be read or written; and, with --status, an assistant failed ten times in a row, or has
    not answered for twice as long as polls should be apart.
    """
    _check_call(click.get_current_context().params)
    context = context_at(at)
    if collect or cancel:
        well = batching.collect(context, set(models), cancel=cancel)
        sys.exit(0 if well else 1)
    chosen = assistants_named(context.catalogue, models)
    if at and any(each.api != "sample" for each in context.catalogue.assistants):
        raise click.UsageError("--at is only for data whose assistants are all of api sample.")
    if show:
        found = _overview(context, chosen)
        click.echo(msgspec.json.format(msgspec.json.encode(found)) if as_json else str(found))
        sys.exit(0 if found.is_well else 1)
    if batch:
        chosen = batching.batched(chosen, named=bool(models))
    categories = categories_named(context.catalogue, slugs)
    pairs = [Pair(slug, each, a) for slug, each in categories.items() for a in chosen]
    stands = _look(context)
    known = stands.known(pairs)
    order = _order(context, known, stands, samples, until_clear, due=due)
    named = bool(slugs or models)
    order, awake = past_pauses(context, order, stands, through=named and not batch)
    well = awake and len(known) == len(pairs)
    if not order.calls:
        click.echo(order.nothing)
    elif dry_run:
        _quote(order.calls)
    elif batch:
        well &= batching.submit_all(context, order, stands, max_usd)
    else:
        well &= ask(context, order, stands, max_usd)
    sys.exit(0 if well else 1)


def _look(context: PollContext) -> DuePolls:
    """How polling stands in all categories, once it is said of which it is not known."""
    stands, unread = look_at(context, context.catalogue.categories)
    for sentence in unread:
        click.echo(sentence, err=True)
    count = sum(each.invented for each in stands.states.values())
    fault = invented(count, context.catalogue.site)
    refuse("Nothing was asked, for site.json has a mistake", [fault] if fault else [])
    return stands


def _check_call(given: Mapping[str, Any]) -> None:
    """Refuse options that do not go together, and a call that says nothing of what to do."""
    if given["as_json"] and not given["show"]:
        raise click.UsageError("--json goes with --status.")
    if given["until_clear"] and (given["due"] or given["samples"]):
        raise click.UsageError("--until-clear goes with neither --due nor --samples.")
    if given["until_clear"] and given["batch"]:
        raise click.UsageError("--until-clear waits for answers; it does not go with --batch.")
    looks = given["collect"] or given["cancel"]
    if given["at"] and (given["batch"] or looks):
        raise click.UsageError("--at is for sample assistants, which take no batches.")
    if looks and any(given[name] for name in ASKING):
        raise click.UsageError(
            "--collect and --cancel look after what was asked, and go with --model alone."
        )
    if not any(given[name] for name in PURPOSES):
        what = "one or more SLUGs, --all, --due or --until-clear"
        raise click.UsageError(f"Say what to poll: {what}.")


PURPOSES = ("slugs", "everything", "due", "until_clear", "show", "collect", "cancel")
"""Parameters of which a call has one at least."""
ASKING = ("slugs", "everything", "due", "until_clear", "samples", "batch", "dry_run", "show")
"""Parameters that say what to ask, or to ask nothing."""


def context_at(at: datetime | None) -> PollContext:
    """What a call of the command works with."""
    settings = app_settings()
    catalogue = _catalogue(settings)
    history = History(settings.data_dir / "history")
    clock = Clock((lambda: at) if at else utc_now)
    batches = Batches(settings.data_dir)
    return PollContext(settings, catalogue, history, clock, at is not None, batches)


def _order(
    context: PollContext,
    known: Sequence[Pair],
    stands: DuePolls,
    samples: int | None,
    until_clear: int | None,
    *,
    due: bool,
) -> Order:
    """Which of the known pairs to ask, how often and in which order."""
    if until_clear:
        return _what_is_unclear(context, known, until_clear)
    if due:
        rounds, now = Rounds.of(context.catalogue.site, samples), context.clock.now()
        due_now = stands.due(context.free(known), rounds, now)
        calls = stands.rest_of_rounds(due_now, rounds, now)
        return Order(calls=calls, record=context.record, rounds=rounds, nothing="Nothing is due.")
    waiting = known if context.pretends else stands.longest_waiting_first(known)
    return Order(calls=[*waiting] * (samples or 1), record=context.record)


def _what_is_unclear(context: PollContext, known: Sequence[Pair], most: int) -> Order:
    """Every answer that clear rankings may take, asked for pass by pass."""
    store: Store = current_app.extensions["store"]

    def standing_of(slug: str) -> clarifying.Standing:
        return clarifying.Standing.of(store.snapshot.leaderboards.get(slug))

    def look() -> DuePolls:
        store.reload()
        return look_at(context, dict.fromkeys(pair.slug for pair in known))[0]

    def passes(pairs: Sequence[Pair]) -> Iterable[Sequence[Pair]]:
        unique = {(pair.slug, pair.assistant.name): pair for pair in pairs}
        return clarifying.passes(list(unique.values()), most, standing_of, look)

    def levels() -> str:
        store.reload()
        return clarifying.levels(known, standing_of)

    calls = clarifying.at_most(known, most, standing_of)
    return Order(
        calls=calls,
        passes=passes,
        record=store.record,
        nothing=f"Nothing was asked: all is clear, or has {most} answers of each assistant.",
        closing=levels,
    )


def _catalogue(settings: Settings) -> Catalogue:
    """The data directory's files; those that say whom to ask and at what cost are good."""
    files = Files(settings.data_dir)
    catalogue = files.scan()
    problems = [*catalogue.governing_errors]
    problems += [p for p in catalogue.problems if p.file == "models.json"]
    problems += mistakes(catalogue, files)
    for problem in problems:
        if problem.severity == "warning":
            click.echo(f"warning: {problem}", err=True)
    if found := sorted({problem for problem in problems if problem.severity == "error"}):
        files_named = sorted({problem.file for problem in found})
        names = " and ".join(files_named)
        have = "has" if len(files_named) == 1 else "have"
        refuse(f"Nothing was asked, for {names} {have} mistakes", found)
    return catalogue


def assistants_named(catalogue: Catalogue, names: Sequence[str]) -> list[Assistant]:
    """Those of these names, or all; an unknown one ends the command, as does that there is none."""
    known = {assistant.name: assistant for assistant in catalogue.assistants}
    for name in names:
        if name not in known:
            raise click.UsageError(
                f'No assistant is called "{name}"; models.json has {", ".join(known)}.'
            )
    chosen = [known[name] for name in dict.fromkeys(names or known)]
    if not chosen:
        raise click.ClickException("models.json names no assistant; see `flask check`.")
    return chosen


def categories_named(catalogue: Catalogue, slugs: Sequence[str]) -> Mapping[str, Category]:
    """Those of these slugs, or all; an unknown one ends the command."""
    for slug in slugs:
        if slug not in catalogue.categories:
            raise unknown_category(slug, catalogue.categories)
    return {slug: catalogue.categories[slug] for slug in slugs or catalogue.categories}


def _quote(pairs: Sequence[Pair]) -> None:
    """What asking these pairs may use and cost at most, and take at least, per assistant."""
    total, cheaper, known = 0.0, 0.0, True
    lanes: dict[str, list[Pair]] = {}
    for pair in pairs:
        lanes.setdefault(pair.assistant.name, []).append(pair)
    for name, lane in lanes.items():
        assistant = lane[0].assistant
        if assistant.api == "sample":
            click.echo(f"{name}: {len(lane)} calls of a sample assistant, free")
            continue
        requests = [request_for(assistant, pair.category.question) for pair in lane]
        most = sum((at_most(assistant, r.body) for r in requests), Tokens(0, 0))
        price = usd(assistant, most)
        known, total = known and price is not None, total + (price or 0)
        cost = "price unknown" if price is None else f"{price:.2f} USD"
        in_batch = (price or 0) * (assistant.batch_price_factor if assistant.batch else 1)
        cheaper += in_batch
        cost += f" ({in_batch:.2f} USD in batches)" if price and assistant.batch else ""
        minutes = math.ceil(len(lane) / assistant.rpm)
        click.echo(
            f"{name}: {len(lane)} calls, at most {most.input:,} input and {most.output:,} output "
            f"tokens, {cost}; at least {minutes} min at {assistant.rpm} a minute"
        )
    saving = f" ({cheaper:.2f} USD with batches)" if cheaper < total else ""
    click.echo(
        f"At most {total:.2f} USD{saving}{'' if known else ' and what has no price'}, if no "
        "question has to be asked twice (an answer cut off, a fault of the line); nothing sent."
    )


def _overview(context: PollContext, chosen: Sequence[Assistant]) -> PollingReport:
    """How polling stands, from the files alone."""
    catalogue, now = context.catalogue, context.clock.now()
    stands, unread = look_at(context, catalogue.categories)
    locks = locks_in(context.settings)
    spent = _spent_today(context, stands)
    batches, damaged = _batches(context)
    capped = (account.fault() for account in context.accounts(stands))
    faults = [*unread, *damaged, context.clock.fault(), *capped]
    running: dict[str, int] = {}
    scheduled = False
    try:
        scheduled = held(locks / LOCK) > 0
        running = {assistant.name: Leases(locks).held(assistant.name) for assistant in chosen}
    except OSError as error:
        faults.append(f"Nothing can be asked, for .locks cannot be used: {error.strerror}.")

    def status_of(assistant: Assistant) -> Status:
        pairs = [Pair(slug, each, assistant) for slug, each in catalogue.categories.items()]
        own = batches.get(assistant.name, [])
        return status(
            assistant,
            pairs,
            stands,
            rounds=Rounds.of(catalogue.site),
            now=now,
            running=running.get(assistant.name, 0),
            unready=lack(context.settings, assistant),
            capped=_capped(context, assistant, spent),
            batches=open_batches(own, now),
            free=context.free(pairs) if own else pairs,
            no_batches=why_none(assistant, own, now),
            wrong=late_ones(own, now),
        )

    return PollingReport(
        assistants=tuple(map(status_of, chosen)),
        wrong=tuple(dict.fromkeys(filter(None, faults))),
        usd_today=spent,
        cap_usd=catalogue.site.daily_usd,
        scheduled=scheduled,
    )


def _batches(context: PollContext) -> tuple[dict[str, list[Batch]], list[str]]:
    """Every batch by its assistant's present name, and what is wrong with their files."""
    found: dict[str, list[Batch]] = {}
    try:
        for batch in context.batches.all():
            name = context.catalogue.former_names.get(batch.name, batch.name)
            found.setdefault(name, []).append(batch)
        return found, context.batches.mended()
    except OSError as error:
        return {}, [str(error)]


def _capped(context: PollContext, assistant: Assistant, spent: float) -> str | None:
    """Why the day's cap leaves an assistant no other poll, if so."""
    cap = context.catalogue.site.daily_usd
    category = next(iter(context.catalogue.categories.values()), None)
    cost = cost_at_most(assistant, category) if category else None
    if cap is None or cost is None or spent + cost <= cap:
        return None
    return f"until tomorrow (UTC): daily_usd {cap:g} of site.json leaves too little"


def _spent_today(context: PollContext, stands: DuePolls) -> float:
    """What the cap counts, where there is one whose file can be read, else what history knows."""
    with suppress(OSError):
        for account in context.accounts(stands):
            return account.taken()
    return stands.usd_on(context.clock.now().date().isoformat())
