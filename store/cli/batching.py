"""``flask poll --batch``, ``--collect`` and ``--cancel``: asking without waiting for answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from store.cli.poll_runs import close_days, look_at, prepared, stopping, summarise
from store.polls.asking import Unready
from store.polls.batches.following import cancel as cancel_one
from store.polls.batches.following import follow
from store.polls.batches.standing import standing
from store.polls.batches.submitting import submit
from store.polls.batches.work import BatchWork, ProviderLine
from store.settings import SettingsError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from store.cli.poll_runs import Order, PollContext
    from store.polls.due import DuePolls, Pair
    from store.polls.runner import Record, RunSummary
    from store.polls.spending import Account
    from store.records import Assistant


def batched(chosen: Sequence[Assistant], *, named: bool) -> list[Assistant]:
    """Those of the assistants that are asked in batches; one that was named must be."""
    found = [assistant for assistant in chosen if assistant.batch]
    if not found or (named and len(found) < len(chosen)):
        names = ", ".join(a.name for a in chosen if not a.batch)
        raise click.UsageError(f'{names}: models.json does not say "batch": true.')
    return found


def submit_all(context: PollContext, order: Order, stands: DuePolls, max_usd: float | None) -> bool:
    """Send batches of what can be asked, and say how many; whether nothing needs a person."""
    accounts, ready = prepared(context, order, stands, max_usd)
    work = _work(context, order.record, accounts)
    well = len(ready) == len(order.assistants)
    with stopping(work.polling.stop):
        for assistant in ready:
            calls = [pair for pair in order.calls if pair.assistant == assistant]
            well &= _submit(context, calls, work, order)
    return well and not context.clock.fault()


def _submit(context: PollContext, calls: Sequence[Pair], work: BatchWork, order: Order) -> bool:
    """Batch after batch of one assistant's calls, until all are sent or something is in the way."""
    assistant = calls[0].assistant
    line = ProviderLine(assistant, work.polling)
    sent, why = 0, None
    with work.polling.leases.batches(assistant.name) as had:
        while had and not work.polling.stop.is_set() and why is None:
            left = context.free(calls)
            stand = standing(assistant, work.files.all(), context.clock.now())
            if not left:
                break
            if stand.waits:
                why = f"{stand.why}; the others can be sent when it is collected"
                break
            came = submit(left, stand.most or 1, work, line, order.rounds)
            sent, why = sent + came.asked, came.why or stand.why
    if not had:
        why = "another process is at its batches"
    click.echo(f"{assistant.name}: {sent} sent in batches" + (f": {why}" if why else ""))
    return sent > 0 or why is None


def collect(context: PollContext, models: set[str], *, cancel: bool) -> bool:
    """Look after all batches once, or those of these assistants; whether nothing needs a person."""
    stands, _ = look_at(context, context.catalogue.categories)
    work = _work(context, context.record, context.accounts(stands))
    still_open = (batch for batch in work.files.all() if batch.is_open)
    wanted = [batch for batch in still_open if not models or batch.name in models]
    if not wanted:
        of = f" of {' or '.join(sorted(models))}" if models else ""
        click.echo(f"No batch{of} is on its way.")
        return True
    names = sorted({batch.name for batch in wanted})
    summaries: dict[str, RunSummary] = {}
    wrong: list[str] = []
    with stopping(work.polling.stop):
        for name in names:
            with work.polling.leases.batches(name) as had:
                if not had:
                    wrong.append(f"Another process is at the batches of {name}.")
                    continue
                if cancel:
                    wrong += _cancelled(name, work)
                came = follow(name, work)
                summaries[name] = came.summary
                wrong += came.wrong
    close_days(context)
    well = summarise({name: each for name, each in summaries.items() if each.polled}) or cancel
    for sentence in dict.fromkeys(wrong):
        click.echo(sentence, err=True)
    left = sum(batch.is_open for batch in work.files.all())
    click.echo(f"{left} {'batch is' if left == 1 else 'batches are'} still on the way.")
    return well and not wrong


def _cancelled(name: str, work: BatchWork) -> list[str]:
    """End what an assistant has on its way; what could not be ended, in sentences."""
    wrong: list[str] = []
    for batch in work.files.all():
        if batch.name == name and batch.state == "submitted":
            try:
                why = cancel_one(batch, work, ProviderLine(batch.assistant, work.polling))
            except (Unready, SettingsError) as error:
                why = str(error)
            if why:
                wrong.append(f"A batch of {name} was not cancelled: {why}")
    return wrong


def _work(context: PollContext, record: Record, accounts: Sequence[Account]) -> BatchWork:
    return BatchWork(
        files=context.batches,
        polling=context.dependencies(record, accounts),
        history=context.history,
    )
