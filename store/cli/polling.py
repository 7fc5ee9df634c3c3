"""``flask poll``: ask the assistants and append what they say to history."""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import click
from flask import current_app
from flask.cli import with_appcontext
from rapidfuzz import process

from store.files import Catalogue, DataDirectoryError, Files
from store.history import History, HistoryError
from store.memory import append
from store.polls.asking import Unready, key_of, request_for
from store.polls.assistants import mistakes
from store.polls.claims import Claims, is_held
from store.polls.due import Agenda, Pair, Past
from store.polls.edges import daily_account, edges_of, locks_in, other_owner, pasts_of
from store.polls.providers import Tokens
from store.polls.runner import ANSWERED, LEFT, SKIPPED, Runner, Tally
from store.polls.schedule import LOCK
from store.polls.spending import RunAccount, at_most, is_priced, usd
from store.polls.status import status
from store.settings import Settings, SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from store.polls.spending import Account
    from store.records import Assistant


class Instant(click.ParamType[datetime]):
    """A time in UTC, RFC 3339."""

    name = "time"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        """Read a time; refuse one without a zone, since nothing is guessed."""
        try:
            time = datetime.fromisoformat(value)
        except ValueError:
            time = None
        if time is None or time.tzinfo is None:
            self.fail(f'"{value}" is no time such as 2026-11-02T06:00:00Z', param, ctx)
        return time.astimezone(UTC)


@click.command()
@click.argument("slugs", nargs=-1, metavar="[SLUG]...")
@click.option("--all", "everything", is_flag=True, help="Poll every category.")
@click.option("--due", is_flag=True, help="Poll only what is due, those waiting longest first.")
@click.option("--model", "models", multiple=True, metavar="NAME", help="Ask only this assistant.")
@click.option(
    "--at",
    type=Instant(),
    metavar="TIME",
    help="Pretend it is this time; only for sample assistants.",
)
@click.option(
    "--max-usd",
    type=click.FloatRange(min=0),
    metavar="USD",
    help="Send nothing that could bring the run's cost above this.",
)
@click.option("--dry-run", is_flag=True, help="Say what it would cost; send nothing.")
@click.option("--status", "show", is_flag=True, help="Say what is due, running, paused and spent.")
@with_appcontext
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
) -> None:
    """Ask the assistants and append what they say to history.

    Name categories by SLUG, or use --all or --due. Works beside a running server, which shows the
    new rankings within seconds. Exits with 1 when every poll failed, or when a category was left
    alone because its history cannot be read.
    """
    settings: Settings = current_app.extensions["settings"]
    catalogue = _catalogue(settings)
    chosen = _assistants(catalogue, models, at)
    history = History(settings.data_dir / "history")
    agenda = Agenda(history)
    if show:
        _show_status(settings, catalogue, chosen, agenda)
        return
    if not (slugs or everything or due):
        raise click.UsageError("Say what to poll: one or more SLUGs, --all or --due.")
    pairs = _pairs(catalogue, _categories(catalogue, slugs), chosen)
    _look(agenda, _read_before(catalogue, pairs), at or datetime.now(UTC))
    known = agenda.known(pairs)
    if due:
        wanted = agenda.due(pairs, catalogue.site.poll_every_days, at or datetime.now(UTC))
    else:
        wanted = known if at else agenda.longest_waiting_first(known)
    if not wanted:
        click.echo("Nothing is due." if due else "Nothing was asked.")
    elif dry_run:
        _quote(wanted)
    else:
        accounts = daily_account(settings, catalogue, agenda)
        accounts += [RunAccount(max_usd)] if max_usd is not None else []
        _check_ready(settings, chosen, accounts)
        stop = threading.Event()
        edges = edges_of(
            settings,
            catalogue,
            history,
            partial(append, history, catalogue),
            stop=stop,
            now=lambda: at or datetime.now(UTC),
            accounts=accounts,
        )
        runner = Runner(edges, catalogue.site.poll_every_days, in_order=at is not None)
        _summarise(_run(runner, wanted, stop, only_due=due))
    if len(known) < len(pairs):
        raise click.exceptions.Exit(1)


def _catalogue(settings: Settings) -> Catalogue:
    """The data directory's files, of which models.json must be without a mistake."""
    files = Files(settings.data_dir)
    try:
        catalogue = files.scan()
    except DataDirectoryError as error:
        raise click.ClickException(str(error)) from None
    found = [p for p in catalogue.problems if p.file == "models.json" and p.severity == "error"]
    found = found or [p for p in mistakes(catalogue, files) if p.severity == "error"]
    if found:
        listed = "\n".join(f"  {problem}" for problem in found)
        raise click.ClickException(f"Nothing was asked, for models.json has mistakes:\n{listed}")
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
            close = process.extract(slug, list(catalogue.categories), limit=3, score_cutoff=60)
            hint = f" Closest: {', '.join(name for name, *_ in close)}." if close else ""
            raise click.UsageError(f'No category has the slug "{slug}".{hint}')
    return list(dict.fromkeys(slugs)) or list(catalogue.categories)


def _pairs(
    catalogue: Catalogue, slugs: Sequence[str], assistants: Sequence[Assistant]
) -> list[Pair]:
    """Every category with every assistant."""
    return [Pair(slug, catalogue.categories[slug], a) for slug in slugs for a in assistants]


def _read_before(catalogue: Catalogue, pairs: Sequence[Pair]) -> dict[str, Past]:
    """The pasts to read first: all for a sum over the day, else those of the pairs."""
    pasts = pasts_of(catalogue)
    if catalogue.site.daily_usd is not None:
        return pasts
    return {pair.slug: pasts[pair.slug] for pair in pairs}


def _look(agenda: Agenda, pasts: Mapping[str, Past], now: datetime) -> None:
    """Read what was asked so far, and say what of it cannot be read and so is not polled."""
    try:
        unread = agenda.look(pasts, now)
    except HistoryError as error:
        raise click.ClickException(f"{error}.") from None
    for each in unread:
        click.echo(f"{each}; its category is left alone", err=True)


def _check_ready(
    settings: Settings, chosen: Sequence[Assistant], accounts: Sequence[Account]
) -> None:
    """Refuse what could not be asked, recorded, used or paid for, before anything is sent."""
    if name := other_owner(settings):
        raise click.ClickException(
            f"Nothing was asked, for the data belongs to {name}, who could not use what root "
            f"adds. Poll as that user: runuser -u {name} -- {sys.executable} -m flask poll …"
        )
    for assistant in chosen:
        try:
            key_of(assistant, settings.secret)
        except (Unready, SettingsError) as error:
            raise click.ClickException(f"{error}.") from None
        if accounts and not is_priced(assistant):
            raise click.ClickException(
                f"{accounts[0].name} cannot be kept: models.json gives no price for "
                f"{assistant.name} (usd_per_million_input and usd_per_million_output)."
            )
    for folder in (settings.data_dir, settings.data_dir / "history"):
        if folder.exists() and not os.access(folder, os.W_OK):
            raise click.ClickException(f"{folder} cannot be written; no poll could be recorded.")


def _run(
    runner: Runner, pairs: Sequence[Pair], stop: threading.Event, *, only_due: bool
) -> dict[str, Tally]:
    """Run the polls behind a progress bar; Ctrl-C and SIGTERM end them in good order."""
    before = {
        number: signal.signal(number, lambda *_: stop.set())
        for number in (signal.SIGINT, signal.SIGTERM)
        if threading.current_thread() is threading.main_thread()
    }
    try:
        with click.progressbar(length=len(pairs), label="Polling") as bar:
            return runner.run(pairs, only_due=only_due, done=lambda: bar.update(1))
    except (HistoryError, OSError) as error:
        raise click.ClickException(f"The polls could not be recorded: {error}") from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _summarise(tallies: dict[str, Tally]) -> None:
    """One line for each assistant; exits with 1 when every poll failed."""
    for name, tally in tallies.items():
        failures = [o for o in tally.outcomes if o not in (ANSWERED, SKIPPED, LEFT)]
        order = [ANSWERED, *sorted(failures), SKIPPED, LEFT]
        counted = [f"{tally.outcomes[o]} {o}" for o in order if tally.outcomes[o]]
        counted += [f"{tally.usd:.4f} USD"] if tally.usd else []
        click.echo(f"{name}: {', '.join(counted)}")
        if tally.paused:
            click.echo(f"{name} was paused: {tally.paused}")
    polled = sum(tally.polled for tally in tallies.values())
    if polled and not any(tally.outcomes[ANSWERED] for tally in tallies.values()):
        raise click.exceptions.Exit(1)


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
    click.echo(f"At most {total:.2f} USD{'' if known else ' and what has no price'}; nothing sent.")


def _show_status(
    settings: Settings, catalogue: Catalogue, chosen: Sequence[Assistant], agenda: Agenda
) -> None:
    """One line for each assistant, and whether some process polls on schedule."""
    _look(agenda, pasts_of(catalogue), datetime.now(UTC))
    claims = Claims(locks_in(settings))
    for assistant in chosen:
        pairs = [Pair(slug, category, assistant) for slug, category in catalogue.categories.items()]
        line = status(
            assistant.name,
            pairs,
            agenda,
            every_days=catalogue.site.poll_every_days,
            now=datetime.now(UTC),
            running=claims.held(assistant.name),
        )
        click.echo(line)
        try:
            key_of(assistant, settings.secret)
        except (Unready, SettingsError) as error:
            click.echo(f"{error}.")
    spent = agenda.usd_on(datetime.now(UTC).date().isoformat())
    cap = catalogue.site.daily_usd
    of = f" of {cap:.2f}" if cap is not None else ""
    click.echo(f"Spent today: {spent:.2f}{of} USD.")
    lock = locks_in(settings) / LOCK
    if lock.exists() and is_held(lock):
        click.echo("A server polls on schedule.")
    else:
        click.echo("No server polls on schedule; one with POLL_ENABLED=1 would.")
