"""``flask poll``: ask the assistants and append what they say to history."""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import click
from flask import current_app

from store.cli import app_settings, refuse, unknown_slug, with_data
from store.cli.poll_runs import Run, carry_out, check_ready, summarise
from store.counting import doubt_clock, invented
from store.disk import is_full
from store.files import Catalogue, Files
from store.history import History
from store.polls.clocks import EARLIEST, Clock, utc_now
from store.polls.desk import Desk
from store.polls.due import AheadError, DuePolls, PollLog, Rounds, levels
from store.polls.locks import is_held
from store.polls.report import ask_whether_there, quote, status_of
from store.polls.schedule import LOCK
from store.polls.secrets import mistakes
from store.rankings.certainty import Certainty
from store.records import MAX_SAMPLES, Assistant
from store.store import append
from store.text import rfc3339

MAX_USD = 1_000_000
"""US dollars that --max-usd may be at most."""


def instant(value: str) -> datetime:
    """Return a time in UTC, RFC 3339; one without a zone is refused, since nothing is guessed."""
    try:
        time = datetime.fromisoformat(value)
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise click.BadParameter(f'"{value}" is not a time such as 2026-11-02T06:00:00Z')
    if not EARLIEST <= time <= utc_now():
        raise click.BadParameter(f'"{value}" is before {EARLIEST:%Y} or still to come')
    return time.astimezone(UTC)


@click.command()
@click.argument("slugs", nargs=-1, metavar="[SLUG]...")
@click.option("--due", is_flag=True, help="Poll what is due, those waiting longest first.")
@click.option("--all", "everything", is_flag=True, help="Poll every category now.")
@click.option(
    "--until-clear",
    type=click.IntRange(2, MAX_SAMPLES),
    metavar="N",
    help="Ask where it is not clear who leads, until it is or each has N answers that count.",
)
@click.option(
    "--samples",
    type=click.IntRange(1, MAX_SAMPLES),
    metavar="N",
    help="Ask each so often; with --due until its round has N answers.  "
    "[default: once; with --due as site.json says]",
)
@click.option("--model", "models", multiple=True, metavar="NAME", help="Ask only this assistant.")
@click.option(
    "--max-usd",
    type=click.FloatRange(0, MAX_USD),
    metavar="USD",
    help="Send nothing that could bring the run's cost above this.",
)
@click.option(
    "--at", type=instant, metavar="TIME", help="Pretend it is this time; for sample assistants."
)
@click.option("--dry-run", is_flag=True, help="Say what it would cost; send nothing.")
@click.option("--try", "attempt", is_flag=True, help="Ask each assistant one tiny question.")
@click.option("--status", "show", is_flag=True, help="Say what is due, paused and spent.")
@click.option(
    "--cancel", is_flag=True, help="End the batches on their way; keep what they answered."
)
@with_data
def poll(  # noqa: PLR0913 - a command's options
    slugs: tuple[str, ...],
    models: tuple[str, ...],
    samples: int | None,
    until_clear: int | None,
    at: datetime | None,
    max_usd: float | None,
    *,
    due: bool,
    everything: bool,
    dry_run: bool,
    attempt: bool,
    show: bool,
    cancel: bool,
) -> None:
    """Ask the assistants and append what they say to history.

    Name categories by SLUG, or use --due, --all or --until-clear. Works beside a running server,
    which shows the new rankings within seconds. A paused assistant is asked one question if it or
    a category is named, and goes on if it answers.

    --due asks assistants with "batch": true in models.json through their providers' queues, where
    50 questions are due: at half the price, and answered within a day. The same command, or a
    server that polls, collects the answers.

    Exits with 0 when all is fine (also when a limit of money is reached), with 1 when something
    is wrong that needs a person, and with 2 when the command is called in a wrong way.
    """
    if not any((slugs, due, everything, until_clear, show, cancel, attempt)):
        raise click.UsageError(
            "Say what to poll: one or more SLUGs, --due, --all or --until-clear."
        )
    if until_clear and (due or samples):
        raise click.UsageError("--until-clear goes with neither --due nor --samples.")
    if max_usd is not None and math.isnan(max_usd):  # which a range lets through
        raise click.BadParameter('"nan" is not an amount', param_hint="--max-usd")
    desk = _desk(at, max_usd)
    chosen = _assistants(desk.catalogue, models)
    if at and any(assistant.api != "sample" for assistant in desk.catalogue.assistants):
        raise click.UsageError("--at is only for data whose assistants are all of api sample.")
    if show:
        sys.exit(0 if _show(desk, chosen) else 1)
    if attempt:
        answers = [ask_whether_there(desk, assistant) for assistant in chosen]
        click.echo("\n".join(sentence for sentence, _ in answers))
        sys.exit(0 if all(is_well for _, is_well in answers) else 1)
    run = Run(
        desk=desk,
        assistants=chosen,
        slugs=slugs,
        samples=samples or 1,
        until_clear=until_clear,
        rounds=Rounds.of(desk.catalogue.site, samples) if due else None,
        through=bool(slugs or models),
        cancel=cancel,
        pretends=at is not None,
    )
    sys.exit(0 if _carry_out(run, dry_run=dry_run) else 1)


def _carry_out(run: Run, *, dry_run: bool) -> bool:
    """Ask what is wanted, or say what that would cost; return whether nothing needs a person."""
    desk, rounds = run.desk, run.rounds
    for slug in run.slugs:
        if slug not in desk.catalogue.categories:
            raise unknown_slug("category", slug, desk.catalogue.categories)
    stands = desk.log.look(desk.catalogue)
    for sentence in _unread(desk, stands, pretends=run.pretends):
        click.echo(sentence, err=True)
    fault = invented(sum(s.invented for s in stands.states.values()), desk.catalogue.site)
    refuse("Nothing was asked, for site.json has a mistake", [fault] if fault else [])
    pairs = [p for a in run.assistants for p in desk.pairs(a, run.slugs) if p.slug in stands.states]
    passes = [stands.longest_waiting_first(pairs)] * run.samples
    if run.cancel:
        passes = []
    elif rounds:
        due = desk.due(pairs, stands, rounds)
        passes = [stands.rest_of_rounds(due, rounds, desk.clock.now())]
    elif run.until_clear:
        today = rfc3339(desk.clock.now())[:10]
        passes = [stands.unclear(pairs, run.until_clear, _certainties(), today)]
    calls = [pair for once in passes for pair in once]
    if dry_run:
        click.echo("\n".join(quote(calls, desk, is_due=rounds is not None)))
        return not stands.unread
    is_open = any(desk.files.open_of(a.name, desk.catalogue) for a in run.assistants)
    if not (calls or run.cancel or (is_open and rounds)):
        click.echo("Nothing is due." if rounds else "Nothing is to be asked.")
        return not stands.unread
    check_ready(desk, pretends=run.pretends)
    # what is due is read anew in each turn, after the lock is had
    is_well = summarise(carry_out(run, [None] if run.cancel or rounds else passes, len(calls)))
    if run.until_clear:
        current_app.extensions["store"].reload()
        click.echo(levels(pairs, _certainties()))
    return is_well and not stands.unread


def _certainties() -> Mapping[str, Certainty]:
    """Return how sure rankings are; one of an older wording says nothing of the present one."""
    boards = current_app.extensions["store"].snapshot.leaderboards
    return {slug: board.certainty for slug, board in boards.items() if not board.next_question}


def _unread(desk: Desk, stands: DuePolls, *, pretends: bool) -> list[str]:
    """Return in sentences what of history cannot be read and so is not polled."""
    ahead = {error.slug: error.time for error in stands.unread if isinstance(error, AheadError)}
    polled = len(ahead) + sum(bool(states.latest_time) for states in stands.states.values())
    now = desk.clock.now()
    doubt = doubt_clock(ahead, polled, now)
    if doubt and pretends:
        doubt = f"{len(ahead):,} categories have later answers than {rfc3339(now)}; they are left"
    sentences = [str(desk.log.history.fault)] if desk.log.history.fault else []
    sentences += [f"{doubt}."] if doubt else []
    others = [e for e in stands.unread if not (doubt and isinstance(e, AheadError))]
    return sentences + [f"{e}; its category is left alone" for e in dict.fromkeys(map(str, others))]


def _desk(at: datetime | None, max_usd: float | None) -> Desk:
    """Return what a call of the command works with; its clock may pretend that it is some time."""
    settings = app_settings()
    catalogue = _catalogue(settings.data_dir)
    history = History(settings.data_dir / "history")
    log = PollLog(history, Clock((lambda: at) if at else utc_now))
    record = partial(append, history, catalogue)
    return Desk(settings, catalogue, log, record, threading.Event(), max_usd)


def _catalogue(directory: Path) -> Catalogue:
    """Return the data directory's files; those that say whom to ask and at what cost are good."""
    files = Files(directory)
    catalogue = files.scan()
    problems = [*catalogue.governing_errors]
    problems += [p for p in catalogue.problems if p.file == "models.json"]
    problems += mistakes(catalogue, files)
    for problem in problems:
        if problem.severity == "warning":
            click.echo(f"warning: {problem}", err=True)
    errors = sorted({problem for problem in problems if problem.severity == "error"})
    names = sorted({problem.file for problem in errors})
    have = "has" if len(names) == 1 else "have"
    refuse(f"Nothing was asked, for {' and '.join(names)} {have} mistakes", errors)
    return catalogue


def _assistants(catalogue: Catalogue, names: Sequence[str]) -> list[Assistant]:
    """Return those of these names, or all; an unknown one ends the command."""
    assistants = {assistant.name: assistant for assistant in catalogue.assistants}
    for name in names:
        if name not in assistants:
            raise click.UsageError(
                f'No assistant is called "{name}"; models.json has {", ".join(assistants)}.'
            )
    chosen = [assistants[name] for name in dict.fromkeys(names or assistants)]
    if not chosen:
        raise click.ClickException("models.json names no assistant; see `flask check`.")
    return chosen


def _show(desk: Desk, chosen: Sequence[Assistant]) -> bool:
    """Say how polling stands; return whether nothing needs a person."""
    stands = desk.log.look(desk.catalogue)
    faults = _unread(desk, stands, pretends=False)
    faults += [fault for fault in (desk.clock.fault(), desk.budget.fault()) if fault]
    if is_full(desk.settings.data_dir):
        faults.append("The disk is full, so that nothing is polled: make room.")
    is_scheduled = False
    statuses = []
    try:
        statuses = [status_of(assistant, desk, stands) for assistant in chosen]
        is_scheduled = is_held(desk.locks / LOCK)
    except OSError as error:
        faults.append(f"Nothing can be asked, for .locks cannot be used: {error.strerror}.")
    for line in (*(line for lines in statuses for line in lines), *dict.fromkeys(faults)):
        click.echo(line)
    today = rfc3339(desk.clock.now())[:10]
    spent = desk.log.usd_on(today) if desk.budget.fault() else desk.budget.usd_today()
    of = "" if desk.budget.daily_usd is None else f" of {desk.budget.daily_usd:g}"
    click.echo(f"Spent today: {spent:.2f}{of} USD.")
    server = "A server polls on schedule."
    click.echo(server if is_scheduled else f"No{server[1:-1]}; one with POLL_ENABLED=1 would.")
    return not faults and all(len(lines) == 1 for lines in statuses)
