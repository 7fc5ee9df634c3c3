"""``flask poll``: ask the assistants and append what they say to history."""

import math
import signal
import sys
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path

import click
from flask import current_app
from msgspec import Struct
from msgspec.structs import replace

from store.category_history import undeclared_sample
from store.cli import app_settings, refuse, unknown_slug, with_data
from store.cli.checks import check_assistants
from store.cli.report import (
    describe_unread,
    error_in_words,
    estimate,
    pause_in_words,
    probe,
    show_status,
)
from store.disk import check_room
from store.files import Catalogue, Files
from store.history import History, HistoryError
from store.ledger import DayClosing
from store.polls.batch_files import HAS_OPEN_BATCH, NOT_LISTED
from store.polls.clocks import EARLIEST, Clock, utc_now
from store.polls.due import Pair, PollingReader, describe_levels
from store.polls.poller import Plan, take_turn
from store.polls.schedule import confirmed_time, other_owner
from store.polls.session import ANSWERED, SKIPPED, PollSession, Summary, in_usd
from store.rankings.certainty import Certainty
from store.rankings.sentences import plural
from store.records import MAX_SAMPLES, Assistant
from store.settings import NOT_THE_SAMPLE, SettingsError
from store.store import append
from store.text import rfc3339

NEEDS_A_PERSON = ("auth", "quota", SKIPPED)
"""Outcomes that waiting does not mend: a key, the provider's account or a history is wrong."""
ONCE_A_DAY = " Of one day one answer counts: what was asked today may be asked again tomorrow."


class PollRun(Struct, frozen=True):
    """The run of one command: whom to ask, whether only what is due, whether simulated."""

    session: PollSession
    assistants: Sequence[Assistant]
    plan: Plan
    is_due: bool
    is_simulated: bool

    def names(self) -> list[str]:
        """Return the assistants that get a turn.

        If they are all, also the owners of open batches that models.json no longer lists.
        """
        names = [assistant.name for assistant in self.assistants]
        if names == [assistant.name for assistant in self.session.catalogue.assistants]:
            names += self.session.batches.owners_gone(self.session.catalogue)
        return names


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
    help="Ask once a day where it is not clear who leads, until it is or each has N answers.",
)
@click.option(
    "--samples",
    type=click.IntRange(1, MAX_SAMPLES),
    metavar="N",
    help="Ask each so often; with --due until its series has N answers.  "
    "[default: once; with --due as site.json says]",
)
@click.option("--model", "models", multiple=True, metavar="NAME", help="Ask only this assistant.")
@click.option(
    "--max-usd",
    type=click.FloatRange(0, 1_000_000),
    metavar="USD",
    help="Send nothing that could bring the run's cost above this.",
)
@click.option(
    "--at", type=instant, metavar="TIME", help="Pretend it is this time; for sample assistants."
)
@click.option("--dry-run", is_flag=True, help="Say what it would cost; send nothing.")
@click.option("--try", "probing", is_flag=True, help="Ask each assistant one tiny question.")
@click.option("--status", "status", is_flag=True, help="Say what is due, paused and spent.")
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
    everything: bool,  # noqa: ARG001 - what is asked where nothing else is named
    dry_run: bool,
    probing: bool,
    status: bool,
    cancel: bool,
) -> None:
    """Ask the assistants and append what they say to history.

    Name categories by SLUG, or use --due, --all or --until-clear. Works beside a running server,
    which shows the new rankings within seconds. A paused assistant is asked one question if it or
    a category is named, and goes on if it answers; not if its provider said how long to wait.

    --due asks assistants with "batch": true in models.json through their providers' queues: at half
    the price, and answered within a day. The same command, or a server that polls, collects the
    answers.

    Exits with 0 when all is fine (also when a spending limit is reached), with 1 when something
    is wrong that needs a person, and with 2 when the command is called in a wrong way.
    """
    _check_combination(
        {name for name, value in click.get_current_context().params.items() if value}
    )
    if max_usd is not None and math.isnan(max_usd):  # which a range lets through
        raise click.BadParameter('"nan" is not an amount', param_hint="--max-usd")
    settings = app_settings()
    catalogue, history = _catalogue(settings.data_dir), History(settings.data_dir / "history")
    polling = PollingReader(history, Clock((lambda: at) if at else utc_now))
    record = partial(append, history, catalogue)
    if due and samples:
        catalogue = _with_samples(catalogue, samples)
    chosen = _assistants(catalogue, models)
    session = PollSession(settings, catalogue, polling, record, threading.Event(), max_usd)
    if at and any(assistant.api != "sample" for assistant in session.catalogue.assistants):
        raise click.UsageError("--at is only for data whose assistants are all of api sample.")
    if status:
        sys.exit(0 if show_status(session, chosen) else 1)
    if probing:
        state = session.polling.read(session.catalogue)
        answers = [probe(session, assistant, state) for assistant in chosen]
        click.echo("\n".join(dict.fromkeys(sentence for sentence, _ in answers)))
        sys.exit(0 if all(is_well for _, is_well in answers) else 1)
    plan = Plan(slugs=slugs, probes_pause=bool(slugs or models), cancel=cancel)
    run = PollRun(session, chosen, plan, is_due=due, is_simulated=at is not None)
    is_well = _carry_out(run, samples or 1, until_clear, dry_run=dry_run)
    fault = session.clock.fault()
    click.echo(fault or "", nl=bool(fault))
    sys.exit(0 if is_well and not fault else 1)


def _check_combination(options: set[str]) -> None:
    """Refuse a call whose options say nothing to do, or do not go together."""
    asking, others = {"slugs", "due", "everything", "until_clear"}, {"status", "cancel", "probing"}
    if not options & (asking | others):
        raise click.UsageError(
            "Say what to poll: one or more SLUGs, --due, --all or --until-clear."
        )
    alone = options & others
    if alone and (len(alone) > 1 or options & (asking | {"dry_run", "samples"})):
        raise click.UsageError(
            "--status, --cancel and --try poll no category; name one of them alone."
        )
    if "everything" in options and options & {"due", "slugs"}:
        raise click.UsageError("--all asks every category, due or not; leave out --due and SLUGs.")
    if "until_clear" in options and options & {"due", "samples"}:
        raise click.UsageError("--until-clear goes with neither --due nor --samples.")


def _carry_out(run: PollRun, samples: int, until_clear: int | None, *, dry_run: bool) -> bool:
    """Ask what is wanted, or say what that would cost; return whether nothing needs a person."""
    session, plan, is_due = run.session, run.plan, run.is_due
    _check_slugs(plan.slugs, session.catalogue)
    state = session.polling.read(session.catalogue)
    for name in session.batches.owners_gone(session.catalogue):
        click.echo(f'warning: "{name}" {HAS_OPEN_BATCH} and {NOT_LISTED}', err=True)
    for sentence in describe_unread(session, state, is_simulated=run.is_simulated):
        click.echo(sentence, err=True)
    fault = undeclared_sample(
        sum(s.invented for s in state.states.values()), session.catalogue.site
    )
    refuse("Nothing was asked, for site.json has a mistake", [fault] if fault else [])
    pairs = [
        p for a in run.assistants for p in session.pairs(a, plan.slugs) if p.slug in state.states
    ]
    passes = [state.longest_waiting_first(pairs)] * samples
    if plan.cancel:
        passes = []
    elif is_due:
        due = session.due(pairs, state)
        passes = [state.rest_of_series(due, session.catalogue.site, session.clock.now())]
    elif until_clear:
        today = rfc3339(session.clock.now())[:10]
        passes = [state.unclear(pairs, until_clear, _certainties(), today)]
    calls = [pair for once in passes for pair in once]
    if dry_run:
        click.echo("\n".join(estimate(calls, session, state, is_due=is_due)))
        return not state.unread
    is_open = any(session.batches.open_of(name, session.catalogue) for name in run.names())
    if not (calls or plan.cancel or (is_open and is_due)):
        failed = sum(bool((own := state.of(pair)) and own.failure) for pair in pairs)
        wait = f" {plural(failed, 'failed question')} will be asked again later; --all asks now."
        idle = f"Nothing is due.{wait if failed else ''}" if is_due else "Nothing is to be asked."
        click.echo(f"{idle}{ONCE_A_DAY if until_clear else ''}")
        return not state.unread
    called = {pair.assistant.name for pair in calls}
    asked = [a for a in run.assistants if a.name in called]
    session.share_among(asked, state, session.clock.now(), is_due=is_due)
    check_ready(session, is_simulated=run.is_simulated)
    # what is due is read anew in each turn, after the lock is had
    results = ask_in_passes(run, [None] if plan.cancel or is_due else passes, len(calls))
    is_well = summarise(results, "no batch is on its way" if plan.cancel else "nothing was asked")
    if until_clear:
        current_app.extensions["store"].reload()
        click.echo(describe_levels(pairs, _certainties()))
    return is_well and not state.unread


def _check_slugs(slugs: Sequence[str], catalogue: Catalogue) -> None:
    """End the command if a category cannot be used, or is not there."""
    for slug in slugs:
        if fault := catalogue.fault_of("categories", slug):
            raise click.ClickException(f"Nothing was asked: {fault}")
        if slug not in catalogue.categories:
            raise unknown_slug("category", slug, catalogue.categories)


def _certainties() -> Mapping[str, Certainty]:
    """Return how sure rankings are; one of an older wording says nothing of the present one."""
    boards = current_app.extensions["store"].snapshot.leaderboards
    return {slug: board.certainty for slug, board in boards.items() if not board.next_question}


def _with_samples(catalogue: Catalogue, samples: int) -> Catalogue:
    """Return the catalogue with so many answers in each series, whatever site.json says."""
    site = replace(catalogue.site, samples_per_round=samples, samples_at_first=samples)
    return replace(catalogue, site=site)


def _catalogue(directory: Path) -> Catalogue:
    """Return the data directory's files; those that say whom to ask and at what cost are good."""
    files = Files(directory)
    catalogue = files.scan()
    problems = [*catalogue.governing_errors]
    problems += [p for p in catalogue.problems if p.file == "models.json"]
    problems += check_assistants(catalogue, files)
    for problem in problems:
        if problem.severity == "warning":
            click.echo(f"warning: {problem}", err=True)
    for name, problem in catalogue.unusable.items():
        if name.startswith("categories/"):
            click.echo(f"not asked: {problem}", err=True)
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


def ask_in_passes(
    run: PollRun, passes: Sequence[Sequence[Pair] | None], length: int
) -> Mapping[str, Summary]:
    """Ask pass by pass, each assistant on a thread of its own; return what came of it by name.

    ``None`` as a pass stands for all that is due: turns are taken until nothing is.
    """
    results = {name: Summary() for name in run.names()}
    # at a time of --at one after the other, so that a run can be repeated exactly
    workers = 1 if run.is_simulated else len(results)
    bar = click.progressbar(length=length, label="Polling")
    try:
        with stopping(run.session.stop), bar, ThreadPoolExecutor(workers) as pool:
            for pairs in passes:
                jobs = [
                    pool.submit(_ask_one, run, name, pairs, result, bar.update)
                    for name, result in results.items()
                    if not run.session.stop.is_set()
                ]
                for job in jobs:
                    job.result()
    finally:
        if not run.is_simulated:
            closing = DayClosing(run.session.settings.data_dir)
            closing.close_past_days(confirmed_time(run.session.clock, run.session.catalogue))
            if closing.reason:
                click.echo(f"warning: {closing.reason}", err=True)
    if run.session.stop.is_set():
        click.echo("Stopped before all was asked; --due goes on with what is due.")
    return results


def _ask_one(
    run: PollRun,
    name: str,
    pairs: Sequence[Pair] | None,
    result: Summary,
    advance: Callable[[int], None],
) -> None:
    """Take turn after turn with one assistant, until all is asked or something forbids it."""
    tell = partial(click.echo, f"{name}: another process asks it; waiting for its turn.", err=True)
    notify = cache(tell)  # once, however many turns it takes
    waiting = None if pairs is None else deque(p for p in pairs if p.assistant.name == name)
    plan = replace(run.plan, waiting=waiting)
    while not (run.session.stop.is_set() or result.is_over):
        before = result.handled
        try:
            if not take_turn(run.session, name, plan, result, notify):
                return
        except (SettingsError, HistoryError, OSError) as error:
            result.fault = error_in_words(error, run.session.settings.data_dir)
            return
        advance(result.handled - before)
        plan.follow = plan.probes_pause = False  # one question through a pause, whatever came of it
        is_idle = result.handled == before
        if plan.cancel or is_idle or (waiting is not None and not waiting):
            return
    for _ in waiting or ():
        result.count(SKIPPED)


def check_ready(session: PollSession, *, is_simulated: bool) -> None:
    """Refuse what could not be recorded, used or paid for, before anything is sent."""
    settings = session.settings
    if not (is_simulated or settings.has_own_data):
        raise click.ClickException(f"Nothing was asked: {NOT_THE_SAMPLE}.")
    if name := other_owner(settings):
        raise click.ClickException(
            f"Nothing was asked, for the data belongs to {name}, who could not use what root "
            f"adds. Poll as that user: runuser -u {name} -- {sys.executable} -m flask poll …"
        )
    history = settings.data_dir / "history"
    folder = history if history.exists() else settings.data_dir
    try:
        check_room(folder)
    except OSError as error:
        raise click.ClickException(
            f"Nothing was asked: {folder} cannot be written, so that no poll could be recorded: "
            f"{error.strerror}."
        ) from None
    if fault := session.budget.fault() or session.clock.fault():
        raise click.ClickException(f"Nothing was asked: {fault}")


@contextmanager
def stopping(stop: threading.Event) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end what is inside in good order."""
    before = {
        number: signal.signal(number, lambda *_: stop.set())
        for number in (signal.SIGINT, signal.SIGTERM)
        if threading.current_thread() is threading.main_thread()
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def summarise(results: Mapping[str, Summary], idle: str) -> bool:
    """Print what came of each assistant, ``idle`` where nothing did, then the totals.

    Returns whether nothing needs a person.
    """
    total: Counter[str] = Counter()
    is_well = True
    for name, summary in results.items():
        parts = [str(summary)] if summary.handled else []
        parts += [summary.limit] if summary.limit else []
        click.echo(f"{name}: {', '.join(parts) or idle}")
        for what, why in sorted(summary.reasons.items()):
            click.echo(f"  {what}: {why}")
        if pause := summary.pause:
            click.echo(f"  paused {pause_in_words(name, pause)}")
        if summary.fault:
            click.echo(f"  not asked on: {summary.fault}")
        for sentence in dict.fromkeys(summary.wrong):
            click.echo(f"  {sentence}")
        total += summary.outcomes
        is_blocked = not summary.reasons.keys().isdisjoint(NEEDS_A_PERSON)
        is_well &= not (is_blocked or summary.pause or summary.fault or summary.wrong)
    interrupted = total["interrupted"]
    failed = sum(summary.polled for summary in results.values()) - total[ANSWERED] - interrupted
    sent = sum(summary.batched for summary in results.values())
    batched = f", {sent} more sent in batches" if sent else ""
    known = sum(summary.usd for summary in results.values())
    unknown = sum(summary.unknown_usd for summary in results.values())
    answers = plural(total[ANSWERED], "answer")
    stopped = f", {interrupted} interrupted" if interrupted else ""
    click.echo(f"Total: {answers}, {failed} failed{stopped}{batched}, {in_usd(known, unknown)}.")
    return is_well and bool(total[ANSWERED] or not (failed or interrupted))
