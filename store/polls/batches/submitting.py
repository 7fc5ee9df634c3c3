"""Making a batch: its intent is on disk before anything is sent, and it is sent once."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, TypeGuard

import msgspec
from msgspec import Struct

from store.cleaning import clean
from store.history import HistoryError
from store.polls.asking import SHOWN, request_for
from store.polls.batches.files import Asking, Batch
from store.polls.providers import Reply, Response
from store.polls.providers import envelopes as wire
from store.polls.providers.batches import Item, opened
from store.polls.sending import Lost
from store.polls.spending import at_batch_price, at_most, micros, usd
from store.records import Failure
from store.times import rfc3339

if TYPE_CHECKING:
    from collections.abc import Sequence

    from store.polls.batches.work import BatchWork, ProviderLine
    from store.polls.due import Pair, Rounds
    from store.records import Assistant

MOST_ITEMS = 200
"""Questions of one batch: at most some 4 USD are reserved at a time, and one that is stuck holds
back a seventh of a round."""
AMBIGUOUS = frozenset({408, 409})
"""Statuses of 4xx after which a batch may have been made all the same."""


class Submitted(Struct, frozen=True):
    """What came of an attempt: how many questions were sent, or why none was, in a sentence."""

    asked: int = 0
    why: str | None = None


def submit(
    calls: Sequence[Pair], most: int, work: BatchWork, line: ProviderLine, rounds: Rounds | None
) -> Submitted:
    """Send the first of these calls, all of one assistant, as one batch of at most ``most``.

    A pair stands among them as often as it is to be asked. With ``rounds`` only pairs still due
    are. Where a cap leaves too little for all, fewer are sent.

    Raises:
        OSError: the batch cannot be written down; nothing was sent, or its answer is looked for.
        HistoryError: it cannot be known what was asked.
    """
    if fault := work.polling.clock.fault():
        return Submitted(why=fault)
    drawn, why = _reserved(_drawn(calls[:most], work), work)
    if why:
        return Submitted(why=why)
    try:
        work.files.write(drawn)
    except OSError:
        work.hold(was=drawn.reserved, now=0)
        raise
    batch = _claimed(drawn, calls, work, rounds)
    if not batch.items:
        work.files.forget(batch)
        return Submitted(why="None of them is due any more.")
    return _sent(batch, work, line)


def _drawn(calls: Sequence[Pair], work: BatchWork) -> Batch:
    times: Counter[str] = Counter()
    items: list[Asking] = []
    for pair in calls:
        items.append(Asking(pair.slug, pair.category.question, times[pair.slug]))
        times[pair.slug] += 1
    return Batch(
        key=work.new_key(),
        state="intended",
        assistant=calls[0].assistant,
        intended_at=rfc3339(work.polling.clock.now()),
        reserved=0,
        items=tuple(items),
    )


def cost_at_most(assistant: Assistant, question: str) -> int:
    """What one question may cost at most in a batch, in micro-dollars; none if nobody knows."""
    most = at_most(assistant, request_for(assistant, question).body)
    return micros(usd(at_batch_price(assistant), most) or 0)


def _reserved(batch: Batch, work: BatchWork) -> tuple[Batch, str | None]:
    """The batch, shrunk to what the caps leave, with all that it may cost taken from them."""
    accounts = work.polling.accounts
    left = min((account.left() for account in accounts), default=math.inf)
    items, total = [], 0
    for item in batch.items:
        cost = cost_at_most(batch.assistant, item.question)
        if total + cost > left:
            break
        items.append(item)
        total += cost
    names = " and ".join(account.name for account in accounts)
    refusal = f"{names} leaves too little for a batch"
    if not items:
        return batch, refusal
    for number, account in enumerate(accounts):
        if account.reserve(total) is None:
            for taken in accounts[:number]:
                taken.settle_batch(total, 0)
            return batch, refusal
    return msgspec.structs.replace(batch, items=tuple(items), reserved=total), None


def _claimed(batch: Batch, calls: Sequence[Pair], work: BatchWork, rounds: Rounds | None) -> Batch:
    """The batch without the pairs that another poller has, or has asked meanwhile.

    The intent is on disk by now: who takes a lease after us sees it there, and who took one before
    us we see by the lease, or by what was recorded.
    """
    pairs = {pair.slug: pair for pair in calls}
    kept = {
        slug
        for slug in dict.fromkeys(item.slug for item in batch.items)
        if _is_free(pairs[slug], work, rounds)
    }
    items = tuple(item for item in batch.items if item.slug in kept)
    if items == batch.items:
        return batch
    reserved = sum(cost_at_most(batch.assistant, item.question) for item in items)
    fewer = msgspec.structs.replace(batch, items=items, reserved=reserved)
    work.files.write(fewer)
    work.hold(was=batch.reserved, now=reserved)
    return fewer


def _is_free(pair: Pair, work: BatchWork, rounds: Rounds | None) -> bool:
    polling, name = work.polling, pair.assistant.name
    with polling.leases.lease(pair.slug, name) as leased:
        if not leased:
            return False
        try:
            states = polling.states_of(pair.slug)
            now = polling.clock.now()
            polling.check_appendable(pair.slug, rfc3339(now))
        except HistoryError:
            return False
        return rounds is None or rounds.due_at(states.present.get(name)) <= now


def _sent(batch: Batch, work: BatchWork, line: ProviderLine) -> Submitted:
    """Upload and make it; without a clear answer to that it stays intended, to be looked for."""
    items = [
        Item(batch.identity(n), request_for(batch.assistant, item.question).body)
        for n, item in enumerate(batch.items)
    ]
    file = None
    if upload := line.queue.build_upload(items):
        came = line.call(upload)
        file = wire.text(opened(came.body).get("id")) if is_well(came) else None
        if not file:
            return _refused(batch, came, work)
    came = line.call(line.queue.build_batch(items, batch.key, file))
    if is_well(came) and (remote := line.queue.read_batch(opened(came.body))):
        work.files.write(msgspec.structs.replace(batch, state="submitted", remote=remote.id))
        return Submitted(len(items))
    if is_certain(came):
        return _refused(batch, came, work)
    why = "The provider did not say whether it took the batch; it is looked for."
    return Submitted(len(items), why)


def is_well(came: Response | Lost) -> TypeGuard[Response]:
    """Whether a provider answered with a success."""
    return isinstance(came, Response) and 200 <= came.status < 300  # noqa: PLR2004 - HTTP's own


def is_certain(came: Response | Lost) -> bool:
    """Whether what was sent surely made no batch."""
    if isinstance(came, Lost):
        return came.free
    return 300 <= came.status < 500 and came.status not in AMBIGUOUS  # noqa: PLR2004 - HTTP's own


def _refused(batch: Batch, came: Response | Lost, work: BatchWork) -> Submitted:
    """A batch that was not made: refused, unless a key, money, rate or the line is at fault."""
    why = said(came)
    kind = getattr(_failure(came), "kind", None)
    work.close(batch, "void", why=why, refused=is_certain(came) and kind == "http")
    return Submitted(why=why)


def said(came: Response | Lost) -> str:
    """What a request came to that was of no use, in a sentence."""
    if isinstance(came, Lost):
        return came.sentence
    if failure := _failure(came):
        return clean(failure.error)[:SHOWN]
    return f"The provider answered HTTP {came.status}, but nothing that could be used."


def _failure(came: Response | Lost) -> Failure | None:
    reply = None if isinstance(came, Lost) else wire.opened(came)
    outcome = reply.outcome if isinstance(reply, Reply) else None
    return outcome if isinstance(outcome, Failure) else None
