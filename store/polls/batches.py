"""Questions in batches: intent on disk, create, follow, collect, cancel.

All of it is done by who holds the assistant's lock. A batch is created once, for no provider takes
an idempotency key: without a clear answer it counts as spent, the assistant's batches are paused,
and its pairs are asked directly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import cache
from secrets import token_hex

from msgspec.structs import replace

from store.history import History, HistoryError
from store.polls.asking import estimate_reserve, poll_of, quote, read_result, request_for
from store.polls.batch_files import Batch, BatchQuestion
from store.polls.due import Pair
from store.polls.providers import WIRE_FORMATS, queue_of
from store.polls.providers.wire import (
    UNASKED,
    RemoteBatch,
    Response,
    Result,
    as_text,
    match,
    read_object,
)
from store.polls.session import CANCELLED, ENDING, SKIPPED, PollSession, Summary
from store.polls.spending import Charge, at_reduced_price, micros
from store.records import Assistant, Failure, Poll
from store.settings import SettingsError
from store.text import rfc3339

WORTH_ANOTHER = 50
"""Due pairs of an assistant that are worth another batch while one is on its way."""
MOST_ITEMS = 200
"""Questions of one batch: at most some 4 USD are reserved at a time, and one that is stuck holds
back a seventh of all categories. Providers take 50,000 and more."""
CANCEL_AFTER = timedelta(hours=26)
"""When a batch is cancelled, so that what is left is asked directly: providers promise 24 hours,
and need a while to put the results together."""
GIVE_UP_AFTER = timedelta(hours=50)
"""When a batch that neither ends nor can be cancelled is given up, a day after it should have."""
GIVE_UP_UNCONFIRMED_AFTER = timedelta(days=14)
"""The age at which a batch is given up though its provider never said that it is gone."""
SIZE = 64 << 20
"""Bytes of results at most: 200 answers with all their reasoning are some 10 MB."""
REFUSALS = frozenset(range(300, 500)) - {408, 409}
"""Statuses that say that no batch was made; after a time-out or a conflict it may have been."""
GONE = frozenset({404, 410})
"""Statuses by which a provider says that it has no such batch."""
UNCLEAR = "The provider did not say whether it took the batch"


def follow_batches(
    session: PollSession, name: str, summary: Summary, *, cancel: bool = False
) -> None:
    """Look after all batches of an assistant; ``cancel`` asks their provider to end them.

    Raises:
        OSError: a batch cannot be read or written.
    """
    for batch in session.batches.open_of(name, session.catalogue):
        if fault := session.clock.fault():
            summary.wrong.append(fault)
        elif batch.state == "intended":  # who sent it was killed: nobody else has the lock
            _fail(session, batch, f"{UNCLEAR}, and what sent it was ended", batch.reserved)
        else:
            try:
                batches = AssistantBatches(session, batch.assistant, summary)
            except SettingsError as error:
                why = f"A batch of {name} cannot be looked after: {error}."
                summary.wrong.append(why)
                if batch.age(session.clock.now()) > GIVE_UP_UNCONFIRMED_AFTER:
                    _fail(session, batch, why, batch.reserved)
            else:
                batches.follow(batches.cancel(batch) if cancel else batch)


def _fail(session: PollSession, batch: Batch, why: str, spent: int) -> None:
    """Write down that a batch is over, then release what it did not cost of its reserve."""
    session.batches.write(batch.as_failed(rfc3339(session.clock.now()), why, spent))
    owner = batch.owner(session.catalogue)
    session.budget.settle_batch(batch.reserved, spent, owner)


class AssistantBatches:
    """The batches of an assistant at its provider, worked on by who holds the assistant's lock.

    What comes of them goes into the ``summary``.

    Raises:
        SettingsError: the assistant's key or queue is missing.
    """

    def __init__(self, session: PollSession, assistant: Assistant, summary: Summary) -> None:
        sender = session.sender(assistant, size=SIZE)
        queue = queue_of(assistant)
        if queue is None:
            raise SettingsError(f"{assistant.name}: no queue for its batches is known")
        self._call = sender.call
        self._key = sender.secret
        self._queue = queue(assistant, self._key)
        self._session = session
        self._summary = summary
        self._assistant = assistant
        self._priced = replace(at_reduced_price(assistant), tier=None)
        self._name = session.catalogue.former_names.get(assistant.name, assistant.name)

    def send(self, pairs: Sequence[Pair], instrument: str | None) -> None:
        """Send the first of its pairs as one batch, as many as its part of limits pays for.

        ``instrument`` is the id of what it asks with.

        Raises:
            OSError: the batch cannot be written down, or the day's sum; nothing was sent.
        """
        session, summary = self._session, self._summary
        if fault := session.clock.fault():
            summary.fault = fault
            return
        items, reserved = self._affordable(pairs)
        charge = Charge(session.budget, reserved, self._name)
        if not (items and charge.reserve()):
            cost = estimate_reserve(self._priced, pairs[0].category.question)
            summary.limit = session.budget.reached(cost, self._name)
            return
        batch = Batch(
            key=token_hex(8),
            state="intended",
            assistant=self._assistant,
            intended_at=rfc3339(session.clock.now()),
            reserved=reserved,
            items=tuple(items),
            instrument=instrument,
        )
        # the intent is on disk before anything is sent: a kill then leaves a batch that is known
        try:
            session.batches.write(batch)
        except OSError:
            charge.settle(0)
            raise
        if failure := self._create(batch):
            why, spent = failure
            if session.stop.is_set() and not spent:  # nothing was made, and nothing is wrong
                session.batches.forget(batch)
                charge.settle(0)
                return
            session.batches.write(batch.as_failed(rfc3339(session.clock.now()), why, spent))
            charge.settle(spent)
            summary.unknown_usd += spent / 1e6
            summary.wrong.append(f"No batch of {self._name} was sent: {why}")
        else:
            summary.batched += len(items)

    def _affordable(self, pairs: Sequence[Pair]) -> tuple[list[BatchQuestion], int]:
        """Return what of these pairs can be paid and recorded, and what it may cost."""
        history, now = self._session.polling.history, rfc3339(self._session.clock.now())
        limit = self._session.budget.available(self._name)
        items: list[BatchQuestion] = []
        total = 0
        for pair in pairs[:MOST_ITEMS]:
            cost = estimate_reserve(self._priced, pair.category.question)
            if total + cost > limit:
                break
            try:
                history.check_appendable(pair.slug, now)
            except HistoryError as error:  # its answer could not be recorded
                self._summary.skipped.add(pair.key)
                self._summary.count(SKIPPED, f"{error}")
            else:
                items.append(BatchQuestion(pair.slug, pair.category.question))
                total += cost
        return items, total

    def _create(self, batch: Batch) -> tuple[str, int] | None:
        """Upload and create it; return why it was not made, or nobody knows, and what was spent."""
        items = {
            batch.item_id(n): request_for(self._assistant, item.question).body
            for n, item in enumerate(batch.items)
        }
        file = None
        if upload := self._queue.build_upload(items):
            response = self._call(upload)
            file = as_text(read_object(response.body).get("id")) if response.is_success else None
            if not file:
                return self._describe(response), 0
        response = self._call(self._queue.build_batch(items, file))
        if remote := self._read_batch(response):
            self._session.batches.write(replace(batch, state="sent", remote_id=remote.id))
            return None
        why = self._describe(response)
        if response.is_free or response.status in REFUSALS:
            return why, 0
        return f"{UNCLEAR}: {why}", batch.reserved

    def cancel(self, batch: Batch) -> Batch:
        """Ask the provider to end a batch and say why it would not; return how it stands now."""
        response = self._call(self._queue.build_cancel(str(batch.remote_id)))
        if not response.is_success:
            remote = self._read_batch(self._look(batch))
            if remote is None or remote.state == "open":  # one that has ended is collected
                why = self._describe(response)
                self._summary.wrong.append(f"A batch of {self._name} was not cancelled: {why}")
            return batch
        batch = replace(batch, cancelled_at=rfc3339(self._session.clock.now()))
        self._session.batches.write(batch)
        return batch

    def follow(self, batch: Batch) -> None:
        """Ask how a batch stands, and do what follows from that."""
        age = batch.age(self._session.clock.now())
        response = self._look(batch)
        remote = self._read_batch(response)
        if remote is None or remote.id != batch.remote_id:
            why = self._describe(response)
            self._summary.wrong.append(f"A batch of {self._name} cannot be followed: {why}")
            # a machine that was off for days may meet a broken line first
            if age > (GIVE_UP_AFTER if response.status in GONE else GIVE_UP_UNCONFIRMED_AFTER):
                _fail(self._session, batch, why, batch.reserved)
            return
        if remote.state == "failed":
            words = quote(remote.why or "no reason given", self._key)
            why = f"The provider's batch failed before it ran ({words})."
            self._summary.wrong.append(f"{self._name}: {why}")
            _fail(self._session, batch, why, 0)
            return
        # a batch that ended without naming its results may name them a moment later
        names_none = not remote.files and remote.unasked == UNASKED["missing"]
        if remote.state == "ended" and (not names_none or age > CANCEL_AFTER):
            self._collect(batch, remote)
        elif age > GIVE_UP_AFTER:
            why = "It neither ended nor could be cancelled."
            _fail(self._session, batch, why, batch.reserved)
        elif age > CANCEL_AFTER:
            self._summary.wrong.append(describe_delay(batch))
            if not batch.cancelled_at:
                self.cancel(batch)
        elif batch.cancelled_at:
            self._summary.outcomes[ENDING] += len(batch.items)

    def _collect(self, batch: Batch, remote: RemoteBatch) -> None:
        """Record what is not recorded yet, forget the batch, then settle the cost.

        What history cannot take is left, with the batch, until it can or the batch is given up; the
        others are recorded. Cancelled questions leave no record.
        """
        session = self._session
        session.budget.begin_day(self._name)
        results = self._results(remote)
        outcomes: Mapping[str, Response] = {}
        if isinstance(results, str):
            refusals, cost = [results], 0
        else:
            outcomes = match(map(batch.item_id, range(len(batch.items))), results, remote.unasked)
            refusals, cost = self._record(batch, outcomes)
        for reason in dict.fromkeys(refusals):
            why = f"Answers in a batch of {self._name} are not recorded: {reason}"
            self._summary.wrong.append(why)
        if refusals:
            limit = GIVE_UP_UNCONFIRMED_AFTER if isinstance(results, str) else GIVE_UP_AFTER
            if batch.age(session.clock.now()) > limit:
                _fail(session, batch, "Not all of its answers were recorded.", batch.reserved)
            return
        # kept as failed, so that no other is begun at once, also after a cancelling in the console
        if batch.cancelled_at or UNASKED["cancelled"] in outcomes.values():
            why = "The batch was cancelled, or came too late."
            _fail(session, replace(batch, reserved=0), why, 0)
            rest = session.batches.pause_of(batch.assistant, session.clock.now())
            if rest and self._summary.outcomes[CANCELLED]:
                self._summary.reasons[CANCELLED] = f"it is asked without batches {rest}"
        else:
            session.batches.forget(batch)
            session.batches.forget_failures(batch, session.catalogue)
        session.budget.settle_batch(batch.reserved, cost, self._name)

    def _record(self, batch: Batch, results: Mapping[str, Response]) -> tuple[list[str], int]:
        """Record what is not in history, the first that asks for a pause with it.

        Returns why history did not take the rest, and what all cost in micro-dollars.
        """
        history, refusals, cost = self._session.polling.history, [], 0
        notes = cache(lambda slug: _notes(history, slug))
        for number, item in enumerate(batch.items):
            note = f"batch {batch.item_id(number)}"
            result = results[batch.item_id(number)]
            if result == UNASKED["cancelled"]:
                self._summary.count(CANCELLED)
                continue
            reply = read_result(self._priced, item, result, note, self._key)
            poll = poll_of(self._priced, item.slug, item.question, reply, self._key)
            cost += self._cost(poll, result)
            try:
                if note not in notes(item.slug):
                    reply = replace(reply, pause=None if self._summary.pause else reply.pause)
                    self._session.append(poll, reply, self._summary, batch.instrument)
            except (HistoryError, OSError) as error:
                refusals.append(f"{error}.")
        return refusals, cost

    def _cost(self, poll: Poll, result: Response) -> int:
        """Return what an item cost in micro-dollars: the most it may, where nobody counted."""
        if poll.usage and poll.usage.usd is not None:
            return micros(poll.usage.usd)
        is_free = result.is_free or result.is_error
        return 0 if is_free else estimate_reserve(self._priced, poll.question)

    def _look(self, batch: Batch) -> Response:
        """Ask how a batch stands."""
        return self._call(self._queue.build_status_request(str(batch.remote_id)))

    def _read_batch(self, response: Response) -> RemoteBatch | None:
        """Return the batch that a response describes, if it describes one."""
        return self._queue.read_batch(read_object(response.body)) if response.is_success else None

    def _results(self, remote: RemoteBatch) -> list[Result] | str:
        """Return all that a provider says of a batch's items, or why it cannot be had now."""
        results: list[Result] = []
        for path in remote.files:
            response = self._call(self._queue.build_get(path))
            if not response.is_success:
                return self._describe(response)
            results += self._queue.read_results(response.body)
        return results

    def _describe(self, response: Response) -> str:
        """Return what a request came to that was of no use, in a sentence."""
        outcome = WIRE_FORMATS[self._assistant.api].read_reply(response).outcome
        if isinstance(outcome, Failure):
            return quote(outcome.error, self._key)
        return f"The provider answered HTTP {response.status}, but nothing that could be used."


def _notes(history: History, slug: str) -> set[str]:
    """Return the notes in a history file, by which an answer is known to be recorded.

    Raises:
        HistoryError: the file cannot be read.
    """
    log = history.read(slug)
    if log.is_lost:
        raise HistoryError(str(log.problems[0]))
    return {note for stored in log.polls for note in stored.poll.notes}


def describe_delay(batch: Batch) -> str:
    """Return the sentence on a batch that should have ended."""
    name = batch.assistant.name
    return f"A batch of {name} is with its provider since {batch.intended_at} ({batch.key})."
