"""Runs of ``flask poll``: what is checked before, the progress, and what came of it in words."""

from __future__ import annotations

import signal
import sys
import threading
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from store.counting import AheadError, doubt_clock, states_of
from store.disk import check_room
from store.history import History, HistoryError
from store.memory import append
from store.polls.asking import Unready, key_of
from store.polls.batches.files import Batches, under_way
from store.polls.batches.scheduling import not_under_way
from store.polls.clocks import confirmed_time
from store.polls.day_closing import DayClosing
from store.polls.due import DuePolls, Pair, Rounds, look
from store.polls.leases import Leases, locks_in
from store.polls.runner import ANSWERED, LEFT, Dependencies, Record, RunSummary, run
from store.polls.schedule import other_owner
from store.polls.spending import Account, DailyAccount, RunAccount, daily_account, missing_prices
from store.rankings.sentences import listed
from store.settings import NOT_THE_SAMPLE, Settings, SettingsError
from store.times import rfc3339

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from store.files import Catalogue
    from store.polls.clocks import Clock
    from store.rankings.poll_states import PollStates
    from store.records import Assistant, Poll


OF_NO_USE = ("auth", "quota", LEFT)
"""Reasons for which to wait is of no use: a key, the provider's account or a history is wrong."""


class Order(Struct, frozen=True, kw_only=True):
    """What to ask: every call that there may be, a pair as often as it may be asked.

    ``record`` appends the polls to history. With ``rounds`` a pair is asked only while it is due by
    them. ``passes`` makes lots of the calls, each asked after the one before. ``nothing`` is what
    to say where there are no calls, ``closing`` what to say at the end, if anything.
    """

    calls: Sequence[Pair]
    record: Record
    rounds: Rounds | None = None
    passes: Callable[[Sequence[Pair]], Iterable[Sequence[Pair]]] = lambda calls: [calls]
    nothing: str = "Nothing was asked."
    closing: Callable[[], str] = lambda: ""

    @property
    def assistants(self) -> list[Assistant]:
        """The assistants to ask."""
        return list({pair.assistant.name: pair.assistant for pair in self.calls}.values())


class PollContext(Struct, frozen=True):
    """What one call of the command works with; its clock may pretend that it is some time."""

    settings: Settings
    catalogue: Catalogue
    history: History
    clock: Clock
    pretends: bool
    batches: Batches

    def states_of(self, slug: str) -> PollStates:
        """How polling of a category stands by its files as they are now."""
        return states_of(self.history, slug, self.catalogue, self.clock.now())

    def record(self, polls: Sequence[Poll], now: str) -> Sequence[Poll]:
        """Append polls of one category to its history."""
        return append(self.history, self.catalogue, polls, now)

    def accounts(self, stands: DuePolls) -> list[DailyAccount]:
        """The account of the day's cap, if there is one."""
        return daily_account(self.settings, self.catalogue, stands.usd_on, self.clock)

    def dependencies(self, record: Record, accounts: Sequence[Account]) -> Dependencies:
        """What a run touches that records so and is paid from these accounts."""
        return Dependencies(
            record=record,
            check_appendable=self.history.check_appendable,
            states_of=self.states_of,
            leases=Leases(locks_in(self.settings)),
            secret=self.settings.secret,
            proxy=self.settings.proxy,
            stop=threading.Event(),
            clock=self.clock,
            accounts=accounts,
            under_way=lambda: under_way(self.batches.all(), self.catalogue),
        )

    def free(self, pairs: Sequence[Pair]) -> list[Pair]:
        """The pairs that no batch asks."""
        return not_under_way(pairs, self.batches, self.catalogue)


def look_at(context: PollContext, slugs: Iterable[str]) -> tuple[DuePolls, list[str]]:
    """What was asked so far; in sentences what of it cannot be read and so is not polled."""
    context.history.signatures()
    stands, unread = look(slugs, context.states_of)
    ahead = {e.slug: e.time for e in unread if isinstance(e, AheadError)}
    polled = len(ahead) + sum(bool(states.latest_time) for states in stands.states.values())
    now = context.clock.now()
    doubt = doubt_clock(ahead, polled, now)
    if doubt and context.pretends:
        doubt = f"{len(ahead):,} categories have later answers than {rfc3339(now)}; they are left"
    others = dict.fromkeys(str(e) for e in unread if not (doubt and isinstance(e, AheadError)))
    sentences = [f"{doubt}."] if doubt else []
    sentences += [f"{each}; its category is left alone" for each in others]
    if context.history.fault:
        sentences.insert(0, str(context.history.fault))
    return stands, sentences


def past_pauses(
    context: PollContext, order: Order, stands: DuePolls, *, through: bool
) -> tuple[Order, bool]:
    """Return the order without the calls of assistants that are paused, and whether none is left.

    With ``through`` those whose pause the provider did not set itself are asked one question, and
    all others once it is answered, which ends the pause for everybody.
    """
    now = context.clock.now()
    pauses = {a.name: stands.pause_of(a.name, now) for a in order.assistants}
    left = {name: p for name, p in pauses.items() if p and not (through and not p.stated)}
    for name, pause in left.items():
        way = f'; `flask poll --due --model "{name}"` asks one question first'
        click.echo(f"{name} is paused {pause}{'' if pause.stated else way}", err=True)
    calls = [pair for pair in order.calls if pair.assistant.name not in left]
    first: dict[str, Pair] = {}
    for pair in calls:
        if pauses[pair.assistant.name]:
            first.setdefault(pair.assistant.name, pair)
    return Order(
        calls=calls,
        record=order.record,
        rounds=order.rounds,
        passes=_tried(context, order, list(first.values())) if first else order.passes,
        nothing="Nothing was asked." if left else order.nothing,
        closing=order.closing,
    ), not left


def _tried(
    context: PollContext, order: Order, first: Sequence[Pair]
) -> Callable[[Sequence[Pair]], Iterator[Sequence[Pair]]]:
    """Return the order's passes behind one that asks ``first``, without who is paused after it."""

    def passes(pairs: Sequence[Pair]) -> Iterator[Sequence[Pair]]:
        tried = [pair for pair in first if pair in pairs]
        yield tried
        others = list(pairs)
        for pair in tried:
            others.remove(pair)
        stands, _ = look(context.catalogue.categories, context.states_of)
        now = context.clock.now()
        yield from order.passes([p for p in others if not stands.pause_of(p.assistant.name, now)])

    return passes


def _check_writable(settings: Settings) -> None:
    """Refuse what could not be recorded or used, before anything is sent."""
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


def _ready(
    settings: Settings, chosen: Sequence[Assistant], accounts: Sequence[Account]
) -> list[Assistant]:
    """The assistants that can be asked and paid for; of the others it is said what they lack."""
    lacking = {assistant.name: lack(settings, assistant, accounts) for assistant in chosen}
    for why in filter(None, lacking.values()):
        click.echo(why, err=True)
    ready = [assistant for assistant in chosen if not lacking[assistant.name]]
    if not ready:
        raise click.ClickException("Nothing was asked.")
    return ready


def lack(settings: Settings, assistant: Assistant, accounts: Sequence[Account] = ()) -> str | None:
    """Why an assistant cannot be asked or paid for, in a sentence."""
    try:
        key_of(assistant, settings.secret)
    except (Unready, SettingsError) as error:
        return f"{error}."
    if accounts and (missing := missing_prices(assistant)):
        return (
            f"{accounts[0].name} cannot be kept: models.json gives no price for "
            f"{assistant.name} ({listed(missing)})."
        )
    return None


def prepared(
    context: PollContext, order: Order, stands: DuePolls, max_usd: float | None
) -> tuple[list[Account], list[Assistant]]:
    """The accounts to pay from and the assistants that can be asked, once all is as it must be."""
    if not (context.pretends or context.settings.has_own_data):
        raise click.ClickException(f"Nothing was asked: {NOT_THE_SAMPLE}.")
    _check_writable(context.settings)
    daily = context.accounts(stands)
    for fault in filter(None, (account.fault() for account in daily)):
        raise click.ClickException(f"Nothing was asked: {fault}")
    accounts: list[Account] = [*daily]
    accounts += [RunAccount(max_usd)] if max_usd is not None else []
    return accounts, _ready(context.settings, order.assistants, accounts)


def ask(context: PollContext, order: Order, stands: DuePolls, max_usd: float | None) -> bool:
    """Ask what can be asked, and say what came of it; whether nothing needs a person."""
    accounts, ready = prepared(context, order, stands, max_usd)
    deps = context.dependencies(order.record, accounts)
    asked = [pair for pair in order.calls if pair.assistant in ready]
    summaries: dict[str, RunSummary] = {}
    try:
        for each in order.passes(asked):
            with stopping(deps.stop), click.progressbar(length=len(each), label="Polling") as bar:
                done = partial(bar.update, 1)
                came = run(each, deps, order.rounds, in_order=context.pretends, done=done)
            for name, summary in came.items():
                summaries.setdefault(name, RunSummary()).add(summary)
            if deps.stop.is_set():
                break
    finally:
        close_days(context)
    well = summarise(summaries)
    if said := order.closing():
        click.echo(said)
    unkept = any(isinstance(a, DailyAccount) and a.fault() for a in accounts)
    all_ready = len(ready) == len(order.assistants)
    return well and all_ready and not unkept and not context.clock.fault()


def close_days(context: PollContext) -> None:
    """Close the days that ended before a provider's clock agreed with this machine's."""
    if context.pretends:  # its clock is one that --at gave
        return
    closing = DayClosing(context.settings.data_dir)
    closing.look(confirmed_time(context.clock, context.catalogue))
    if closing.reason:
        click.echo(f"warning: {closing.reason}", err=True)


@contextmanager
def stopping(stop: threading.Event) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end what is inside in good order, and say what cannot be recorded."""
    before = {
        number: signal.signal(number, lambda *_: stop.set())
        for number in (signal.SIGINT, signal.SIGTERM)
        if threading.current_thread() is threading.main_thread()
    }
    try:
        yield
    except (HistoryError, OSError) as error:
        raise click.ClickException(f"The polls could not be recorded: {error}") from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def summarise(summaries: dict[str, RunSummary]) -> bool:
    """One line for each assistant and one for each reason; whether nothing needs a person."""
    for name, summary in summaries.items():
        click.echo(f"{name}: {summary}")
        for what, why in sorted(summary.reasons.items()):
            click.echo(f"  {what}: {why}")
        if summary.paused:
            click.echo(f"{name} was paused: {summary.paused}")
    answered = any(summary.outcomes[ANSWERED] for summary in summaries.values())
    polled = any(summary.polled for summary in summaries.values())
    reasons = {reason for summary in summaries.values() for reason in summary.reasons}
    resting = any(summary.rest is not None for summary in summaries.values())
    return (answered or not polled) and not resting and reasons.isdisjoint(OF_NO_USE)
