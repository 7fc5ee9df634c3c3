"""``flask poll``: ask the assistants and append what they say to history."""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import click
import msgspec
from msgspec import Struct

from store.cli import app_settings, unknown_category, with_data
from store.counting import states_of
from store.files import REQUIRED, Catalogue, DataDirectoryError, Files
from store.history import History, HistoryError
from store.last_good import FOLDER
from store.memory import append
from store.polls.asking import Unready, cost_at_most, key_of, request_for
from store.polls.assistant_checks import mistakes
from store.polls.clocks import EARLIEST, Clock, utc_now
from store.polls.due import DuePolls, Pair, look
from store.polls.leases import Leases, held, locks_in
from store.polls.providers import Tokens
from store.polls.runner import ANSWERED, LEFT, Dependencies, RunSummary, run
from store.polls.schedule import LOCK, other_owner
from store.polls.spending import RunAccount, at_most, daily_account, is_priced, usd
from store.polls.status import PollingReport, status
from store.settings import NOT_THE_SAMPLE, Settings, SettingsError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from store.polls.spending import Account, DailyAccount
    from store.rankings.poll_states import PollStates
    from store.records import Assistant


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
@click.option("--dry-run", is_flag=True, help="Say what it would cost; send nothing.")
@click.option("--status", "show", is_flag=True, help="Say what is due, running, paused and spent.")
@click.option("--json", "as_json", is_flag=True, help="With --status: say it as JSON.")
@with_data
def poll(  # noqa: PLR0913 - a command's options
    slugs: tuple[str, ...],
    models: tuple[str, ...],
    at: datetime | None,
    max_usd: float | None,
    *,
    everything: bool,
    due: bool,
    dry_run: bool,
    show: bool,
    as_json: bool,
) -> None:
    """Ask the assistants and append what they say to history.

    Name categories by SLUG, or use --all or --due. Works beside a running server, which shows the
    new rankings within seconds.

    Exits with 0 when all is fine, with 1 when something is wrong that needs a person, and with 2
    when the command is called in a wrong way. Wrong is: a key or a price is missing, refused or
    out of money; no poll brought an answer; the clock is wrong; a history cannot be read; and,
    with --status, an assistant that is paused, failed ten times in a row, or has not answered for
    twice as long as polls should be apart.
    """
    if as_json and not show:
        raise click.UsageError("--json goes with --status.")
    settings = app_settings()
    catalogue = _catalogue(settings)
    chosen = _assistants(catalogue, models, at)
    history = History(settings.data_dir / "history")
    clock = Clock((lambda: at) if at else utc_now)
    context = PollContext(settings, catalogue, history, clock)
    if show:
        _show_status(_overview(context, chosen), as_json=as_json)
        return
    if not (slugs or everything or due):
        raise click.UsageError("Say what to poll: one or more SLUGs, --all or --due.")
    pairs = _pairs(catalogue, _categories(catalogue, slugs), chosen)
    stands, unread = _look(context, _read_before(catalogue, pairs))
    for sentence in unread:
        click.echo(sentence, err=True)
    known = stands.known(pairs)
    if due:
        wanted = stands.due(pairs, catalogue.site.poll_every_days, clock.now())
    else:
        wanted = known if at else stands.longest_waiting_first(known)
    well = len(known) == len(pairs)
    if not wanted:
        click.echo("Nothing is due." if due else "Nothing was asked.")
    elif dry_run:
        _quote(wanted)
    else:
        if not (at or settings.has_own_data):
            raise click.ClickException(f"Nothing was asked: {NOT_THE_SAMPLE}.")
        well &= _ask(context, wanted, stands, max_usd, only_due=due, in_order=at is not None)
    if not well:
        raise click.exceptions.Exit(1)


class PollContext(Struct, frozen=True):
    """What one call of the command works with."""

    settings: Settings
    catalogue: Catalogue
    history: History
    clock: Clock

    def states_of(self, slug: str) -> PollStates:
        """How polling of a category stands by its files as they are now."""
        return states_of(self.history, slug, self.catalogue, self.clock.now())

    def accounts(self, stands: DuePolls) -> list[DailyAccount]:
        """The account of the day's cap, if there is one."""
        return daily_account(self.settings, self.catalogue, stands.usd_on, self.clock)


def _catalogue(settings: Settings) -> Catalogue:
    """The data directory's files; those that say whom to ask and at what cost are good."""
    files = Files(settings.data_dir)
    try:
        catalogue = files.scan()
    except DataDirectoryError as error:
        raise click.ClickException(str(error)) from None
    problems = [p for p in catalogue.governing_errors if p.file in REQUIRED]
    problems += catalogue.ungoverned
    problems += [p for p in catalogue.problems if p.file == "models.json"]
    problems += mistakes(catalogue, files)
    for problem in problems:
        if problem.severity == "warning":
            click.echo(f"warning: {problem}", err=True)
    if found := sorted({problem for problem in problems if problem.severity == "error"}):
        files_named = sorted({problem.file for problem in found})
        names = " and ".join(files_named)
        have = "has" if len(files_named) == 1 else "have"
        listed = "\n".join(f"  {problem}" for problem in found)
        raise click.ClickException(f"Nothing was asked, for {names} {have} mistakes:\n{listed}")
    return catalogue


def _assistants(catalogue: Catalogue, names: Sequence[str], at: datetime | None) -> list[Assistant]:
    """The assistants to ask."""
    known = {assistant.name: assistant for assistant in catalogue.assistants}
    for name in names:
        if name not in known:
            raise click.UsageError(
                f'No assistant is called "{name}"; models.json has {", ".join(known)}.'
            )
    chosen = [known[name] for name in dict.fromkeys(names or known)]
    if not chosen:
        raise click.ClickException("models.json names no assistant; see `flask check`.")
    if at and any(assistant.api != "sample" for assistant in catalogue.assistants):
        raise click.UsageError("--at is only for data whose assistants are all of api sample.")
    return chosen


def _categories(catalogue: Catalogue, slugs: Sequence[str]) -> list[str]:
    for slug in slugs:
        if slug not in catalogue.categories:
            raise unknown_category(slug, catalogue.categories)
    return list(dict.fromkeys(slugs)) or list(catalogue.categories)


def _pairs(
    catalogue: Catalogue, slugs: Sequence[str], assistants: Sequence[Assistant]
) -> list[Pair]:
    """Every category with every assistant."""
    return [Pair(slug, catalogue.categories[slug], a) for slug in slugs for a in assistants]


def _read_before(catalogue: Catalogue, pairs: Sequence[Pair]) -> Iterable[str]:
    """The categories to read first: all for a sum over the day, else those of the pairs."""
    if catalogue.site.daily_usd is not None:
        return catalogue.categories
    return dict.fromkeys(pair.slug for pair in pairs)


def _look(context: PollContext, slugs: Iterable[str]) -> tuple[DuePolls, list[str]]:
    """What was asked so far; in sentences what of it cannot be read and so is not polled."""
    context.history.signatures()
    stands, unread = look(slugs, context.states_of)
    sentences = dict.fromkeys(map(str, unread))
    spoilt = (
        [str(context.history.damaged_checkpoints)] if context.history.damaged_checkpoints else []
    )
    return stands, [*spoilt, *(f"{each}; its category is left alone" for each in sentences)]


def _check_writable(settings: Settings) -> None:
    """Refuse what could not be recorded or used, before anything is sent."""
    if name := other_owner(settings):
        raise click.ClickException(
            f"Nothing was asked, for the data belongs to {name}, who could not use what root "
            f"adds. Poll as that user: runuser -u {name} -- {sys.executable} -m flask poll …"
        )
    for folder in (settings.data_dir, settings.data_dir / "history"):
        if folder.exists() and not os.access(folder, os.W_OK):
            raise click.ClickException(f"{folder} cannot be written; no poll could be recorded.")


def _ready(
    settings: Settings, chosen: Sequence[Assistant], accounts: Sequence[Account]
) -> list[Assistant]:
    """The assistants that can be asked and paid for; of the others it is said what they lack."""
    lacking = {assistant.name: _lack(settings, assistant, accounts) for assistant in chosen}
    for why in filter(None, lacking.values()):
        click.echo(why, err=True)
    ready = [assistant for assistant in chosen if not lacking[assistant.name]]
    if not ready:
        raise click.ClickException("Nothing was asked.")
    return ready


def _lack(settings: Settings, assistant: Assistant, accounts: Sequence[Account] = ()) -> str | None:
    """Why an assistant cannot be asked or paid for, in a sentence."""
    try:
        key_of(assistant, settings.secret)
    except (Unready, SettingsError) as error:
        return f"{error}."
    if accounts and not is_priced(assistant):
        return (
            f"{accounts[0].name} cannot be kept: models.json gives no price for "
            f"{assistant.name} (usd_per_million_input and usd_per_million_output)."
        )
    return None


def _ask(
    context: PollContext,
    pairs: Sequence[Pair],
    stands: DuePolls,
    max_usd: float | None,
    *,
    only_due: bool,
    in_order: bool,
) -> bool:
    """Ask what can be asked, and say what came of it; whether nothing needs a person."""
    accounts: list[Account] = [*context.accounts(stands)]
    accounts += [RunAccount(max_usd)] if max_usd is not None else []
    _check_writable(context.settings)
    for account in context.accounts(stands):
        if fault := account.fault():
            raise click.ClickException(f"Nothing was asked: {fault}")
    chosen = list({pair.assistant.name: pair.assistant for pair in pairs}.values())
    ready = _ready(context.settings, chosen, accounts)
    deps = Dependencies(
        record=partial(append, context.history, context.catalogue),
        states_of=context.states_of,
        leases=Leases(locks_in(context.settings)),
        secret=context.settings.secret,
        proxy=context.settings.proxy,
        stop=threading.Event(),
        clock=context.clock,
        accounts=accounts,
    )
    every_days = context.catalogue.site.poll_every_days if only_due else None
    asked = [pair for pair in pairs if pair.assistant in ready]
    try:
        well = _summarise(_run(asked, deps, every_days, in_order=in_order))
    finally:
        _keep_checkpoints(context.history, {pair.slug for pair in asked})
    return well and len(ready) == len(chosen) and not context.clock.fault()


def _keep_checkpoints(history: History, slugs: Collection[str]) -> None:
    """Write down where these files end now, so that a later loss is seen; a warning if not."""
    for slug in slugs:
        history.read(slug)
    try:
        history.keep_checkpoints()
    except OSError as error:
        why = f"{FOLDER} cannot be written: {error.strerror}"
        click.echo(f"warning: {why}; a later loss of what was polled is unseen", err=True)


def _run(
    pairs: Sequence[Pair], deps: Dependencies, every_days: int | None, *, in_order: bool
) -> dict[str, RunSummary]:
    """Run the polls behind a progress bar; Ctrl-C and SIGTERM end them in good order."""
    before = {
        number: signal.signal(number, lambda *_: deps.stop.set())
        for number in (signal.SIGINT, signal.SIGTERM)
        if threading.current_thread() is threading.main_thread()
    }
    try:
        with click.progressbar(length=len(pairs), label="Polling") as bar:
            done = partial(bar.update, 1)
            return run(pairs, deps, every_days, in_order=in_order, done=done)
    except (HistoryError, OSError) as error:
        raise click.ClickException(f"The polls could not be recorded: {error}") from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _summarise(summaries: dict[str, RunSummary]) -> bool:
    """One line for each assistant and one for each reason; whether nothing needs a person."""
    for name, summary in summaries.items():
        click.echo(f"{name}: {summary}")
        for what, why in sorted(summary.reasons.items()):
            click.echo(f"  {what}: {why}")
        if summary.paused:
            click.echo(f"{name} was paused: {summary.paused}")
    answered = any(summary.outcomes[ANSWERED] for summary in summaries.values())
    polled = any(summary.polled for summary in summaries.values())
    return (answered or not polled) and not any(map(_needs_a_person, summaries.values()))


def _needs_a_person(summary: RunSummary) -> bool:
    """Whether waiting is of no use: a key, the provider's account or a history is wrong."""
    return not summary.reasons.keys().isdisjoint({"auth", "quota", LEFT})


def _quote(pairs: Sequence[Pair]) -> None:
    """What asking these pairs may use and cost at most, and take at least, per assistant."""
    total, known = 0.0, True
    lanes: dict[str, list[Pair]] = {}
    for pair in pairs:
        lanes.setdefault(pair.assistant.name, []).append(pair)
    for name, lane in lanes.items():
        assistant = lane[0].assistant
        if assistant.api == "sample":
            click.echo(f"{name}: {len(lane)} calls of a sample assistant, free")
            continue
        requests = [request_for(assistant, pair.category, None) for pair in lane]
        most = sum((at_most(assistant, r.body) for r in requests), Tokens(0, 0))
        price = usd(assistant, most)
        known, total = known and price is not None, total + (price or 0)
        cost = "price unknown" if price is None else f"{price:.2f} USD"
        minutes = math.ceil(len(lane) / assistant.rpm)
        click.echo(
            f"{name}: {len(lane)} calls, at most {most.input:,} input and {most.output:,} output "
            f"tokens, {cost}; at least {minutes} min at {assistant.rpm} a minute"
        )
    click.echo(
        f"At most {total:.2f} USD{'' if known else ' and what has no price'}, if no question has "
        "to be asked twice (an answer cut off, a fault of the line); nothing sent."
    )


def _overview(context: PollContext, chosen: Sequence[Assistant]) -> PollingReport:
    """How polling stands, from the files alone."""
    settings, catalogue, now = context.settings, context.catalogue, context.clock.now()
    stands, unread = _look(context, catalogue.categories)
    locks = locks_in(settings)
    leases = Leases(locks)
    spent = _spent_today(context, stands)
    faults = [*unread, context.clock.fault(), *(a.fault() for a in context.accounts(stands))]
    running: dict[str, int] = {}
    scheduled = False
    try:
        scheduled = held(locks / LOCK) > 0
        running = {assistant.name: leases.held(assistant.name) for assistant in chosen}
    except OSError as error:
        faults.append(f"Nothing can be asked, for .locks cannot be used: {error.strerror}.")
    found = [
        status(
            assistant,
            _pairs(catalogue, list(catalogue.categories), [assistant]),
            stands,
            every_days=catalogue.site.poll_every_days,
            now=now,
            running=running.get(assistant.name, 0),
            unready=_lack(settings, assistant),
            capped=_capped(context, assistant, spent),
        )
        for assistant in chosen
    ]
    return PollingReport(
        assistants=tuple(found),
        wrong=tuple(dict.fromkeys(filter(None, faults))),
        usd_today=spent,
        cap_usd=catalogue.site.daily_usd,
        scheduled=scheduled,
    )


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


def _show_status(found: PollingReport, *, as_json: bool) -> None:
    """Lines for people, or JSON; exits with 1 when something needs a person."""
    click.echo(msgspec.json.format(msgspec.json.encode(found)) if as_json else str(found))
    if not found.is_well:
        raise click.exceptions.Exit(1)
