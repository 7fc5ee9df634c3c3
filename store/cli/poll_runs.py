"""Runs of ``flask poll``: what is checked before, the progress, and what came of it in words."""

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

from store.cli import plural
from store.disk import check_room
from store.history import HistoryError
from store.polls.assistant_checks import Unready
from store.polls.clocks import confirmed_time
from store.polls.day_closing import DayClosing
from store.polls.due import Pair, Rounds
from store.polls.poller import ANSWERED, LEFT, NOT_ASKED, Desk, Summary
from store.polls.report import lack
from store.polls.schedule import other_owner
from store.polls.turns import Plan, take_turn
from store.records import Assistant
from store.settings import NOT_THE_SAMPLE, Settings, SettingsError

NO_USE = ("auth", "quota", LEFT)
"""Outcomes for which to wait is of no use: a key, the provider's account or a history is wrong."""


class Run(Struct, frozen=True, kw_only=True):
    """What a call of the command asks of whom.

    ``passes`` are what to ask, one after the other; ``None`` is what is due by ``rounds``. With
    ``through`` a paused assistant is asked one question, and more once it has answered.
    ``pretends`` if the clock is one of --at.
    """

    desk: Desk
    assistants: Sequence[Assistant]
    length: int
    rounds: Rounds | None = None
    passes: Sequence[Sequence[Pair] | None] = (None,)
    through: bool = False
    pretends: bool = False
    cancel: bool = False


def carry_out(run: Run) -> Mapping[str, Summary]:
    """Ask, each assistant on a thread of its own, and return what came of it by name."""
    results = {assistant.name: Summary() for assistant in run.assistants}
    try:
        with stopping(run.desk.stop), click.progressbar(length=run.length, label="Polling") as bar:
            for pairs in run.passes:
                if not run.desk.stop.is_set():
                    _carry_out_pass(run, pairs, results, bar.update)
    finally:
        if not run.pretends:
            close_days(run.desk)
    return results


def _carry_out_pass(
    run: Run,
    pairs: Sequence[Pair] | None,
    results: Mapping[str, Summary],
    advance: Callable[[int], None],
) -> None:
    plans = {
        assistant.name: Plan(
            waiting=None
            if pairs is None
            else deque(pair for pair in pairs if pair.assistant.name == assistant.name),
            rounds=run.rounds,
            through=run.through,
            cancel=run.cancel,
        )
        for assistant in run.assistants
    }
    if run.pretends:  # one after the other, so that a run can be repeated exactly
        for name, plan in plans.items():
            _ask_one(run, name, plan, results[name], advance)
        return
    with ThreadPoolExecutor(max(len(plans), 1)) as pool:
        futures = [
            pool.submit(_ask_one, run, name, plan, results[name], advance)
            for name, plan in plans.items()
        ]
        for future in futures:
            future.result()


def _ask_one(
    run: Run, name: str, plan: Plan, result: Summary, advance: Callable[[int], None]
) -> None:
    """Take turn after turn with one assistant, until all is asked or something forbids it."""
    tell = partial(click.echo, f"{name}: another process asks it; waiting for its turn.", err=True)
    notify = cache(tell)  # once, however many turns it takes

    while not (run.desk.stop.is_set() or result.is_over):
        before = result.looked_at
        try:
            if not take_turn(run.desk, name, plan, result, notify):
                return
        except (Unready, SettingsError, HistoryError, OSError) as error:
            result.fault = f"{error}"
            return
        advance(result.looked_at - before)
        plan.follow = False
        is_idle = result.looked_at == before
        if run.cancel or is_idle or (plan.waiting is not None and not plan.waiting):
            return
    for _ in plan.waiting or ():
        result.count(LEFT)


def check_ready(desk: Desk, settings: Settings, *, pretends: bool) -> None:
    """Refuse what could not be recorded, used or paid for, before anything is sent."""
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


def ready(desk: Desk, assistants: Sequence[Assistant]) -> list[Assistant]:
    """Return the assistants that can be asked; say of the others what they lack."""
    limit = desk.budget.run_usd if desk.budget.daily_usd is None else desk.budget.daily_usd
    able: list[Assistant] = []
    for assistant in assistants:
        if reason := lack(assistant, desk.secret, limit):
            click.echo(reason, err=True)
        else:
            able.append(assistant)
    if not able:
        raise click.ClickException("Nothing was asked.")
    return able


def close_days(desk: Desk) -> None:
    """Close the days that ended before a provider's clock agreed with this machine's."""
    closing = DayClosing(desk.log.history.path("").parent.parent)
    closing.look(confirmed_time(desk.clock, desk.catalogue))
    if closing.reason:
        click.echo(f"warning: {closing.reason}", err=True)


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
        if summary.paused:
            click.echo(f"  paused: {summary.paused}")
        if summary.fault:
            click.echo(f"  not asked on: {summary.fault}")
        for sentence in dict.fromkeys(summary.wrong):
            click.echo(f"  {sentence}")
        total += summary.outcomes
        is_of_no_use = not summary.reasons.keys().isdisjoint(NO_USE)
        is_well &= not (is_of_no_use or summary.paused or summary.fault or summary.wrong)
    failed = sum(n for name, n in total.items() if name not in (ANSWERED, *NOT_ASKED))
    sent = sum(summary.batched for summary in results.values())
    batched = f", {sent} more sent in batches" if sent else ""
    usd = sum(summary.usd for summary in results.values())
    answers = plural(total[ANSWERED], "answer")
    click.echo(f"Total: {answers}, {failed} failed{batched}, {usd:.4f} USD.")
    return is_well and not (failed and not total[ANSWERED])
