"""Runs of ``flask poll``: checks before, the progress, and the outcome in words."""

from __future__ import annotations

import signal
import sys
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, partial

import click
from msgspec import Struct
from msgspec.structs import replace

from store.cli import plural
from store.disk import check_room
from store.history import HistoryError
from store.polls.desk import ANSWERED, LEFT, NOT_ASKED, Desk, Summary
from store.polls.due import Pair
from store.polls.poller import Plan, take_turn
from store.polls.schedule import DayClosing, confirmed_time, other_owner
from store.polls.secrets import Unready
from store.records import Assistant
from store.settings import NOT_THE_SAMPLE, SettingsError

NO_USE = ("auth", "quota", LEFT)
"""Outcomes for which to wait is of no use: a key, the provider's account or a history is wrong."""


class Run(Struct, frozen=True):
    """The assistants to ask and how; the clock is one of --at if it ``pretends``."""

    desk: Desk
    assistants: Sequence[Assistant]
    plan: Plan
    pretends: bool


def carry_out(
    run: Run, passes: Sequence[Sequence[Pair] | None], length: int
) -> Mapping[str, Summary]:
    """Ask pass by pass, each assistant on a thread of its own; return what came of it by name.

    A pass of ``None`` is all that is due, as long as something is.
    """
    results = {assistant.name: Summary() for assistant in run.assistants}
    # at a time of --at one after the other, so that a run can be repeated exactly
    workers = 1 if run.pretends else len(results)
    bar = click.progressbar(length=length, label="Polling")
    try:
        with stopping(run.desk.stop), bar, ThreadPoolExecutor(workers) as pool:
            for pairs in passes:
                jobs = [
                    pool.submit(_ask_one, run, name, pairs, result, bar.update)
                    for name, result in results.items()
                    if not run.desk.stop.is_set()
                ]
                for job in jobs:
                    job.result()
    finally:
        if not run.pretends:
            closing = DayClosing(run.desk.settings.data_dir)
            closing.look(confirmed_time(run.desk.clock, run.desk.catalogue))
            if closing.reason:
                click.echo(f"warning: {closing.reason}", err=True)
    return results


def _ask_one(
    run: Run,
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
    while not (run.desk.stop.is_set() or result.is_over):
        before = result.looked_at
        try:
            if not take_turn(run.desk, name, plan, result, notify):
                return
        except (Unready, SettingsError, HistoryError, OSError) as error:
            result.fault = f"{error}"
            return
        advance(result.looked_at - before)
        plan.follow = plan.through = False  # one question through a pause, whatever came of it
        is_idle = result.looked_at == before
        if plan.cancel or is_idle or (waiting is not None and not waiting):
            return
    for _ in waiting or ():
        result.count(LEFT)


def check_ready(desk: Desk, *, pretends: bool) -> None:
    """Refuse what could not be recorded, used or paid for, before anything is sent."""
    settings = desk.settings
    if not (pretends or settings.has_own_data):
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
    if fault := desk.budget.fault() or desk.clock.fault():
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


def summarise(results: Mapping[str, Summary]) -> bool:
    """Say what came of each assistant and of all; return whether nothing needs a person."""
    total: Counter[str] = Counter()
    is_well = True
    for name, summary in results.items():
        parts = [str(summary)] if summary.looked_at else []
        parts += [summary.limit] if summary.limit else []
        click.echo(f"{name}: {', '.join(parts) or 'nothing was asked'}")
        for what, why in sorted(summary.reasons.items()):
            click.echo(f"  {what}: {why}")
        if pause := summary.pause:
            way = f'; `flask poll --due --model "{name}"` asks one question first'
            click.echo(f"  paused: {pause}{'' if pause.stated else way}")
        if summary.fault:
            click.echo(f"  not asked on: {summary.fault}")
        for sentence in dict.fromkeys(summary.wrong):
            click.echo(f"  {sentence}")
        total += summary.outcomes
        is_of_no_use = not summary.reasons.keys().isdisjoint(NO_USE)
        is_well &= not (is_of_no_use or summary.pause or summary.fault or summary.wrong)
    failed = sum(n for name, n in total.items() if name not in (ANSWERED, *NOT_ASKED))
    sent = sum(summary.batched for summary in results.values())
    batched = f", {sent} more sent in batches" if sent else ""
    usd = sum(summary.usd for summary in results.values())
    answers = plural(total[ANSWERED], "answer")
    click.echo(f"Total: {answers}, {failed} failed{batched}, {usd:.4f} USD.")
    return is_well and not (failed and not total[ANSWERED])
