"""Asking in batches: intent on disk, create, follow, collect, cancel.

All of it is done by who holds the assistant's lock. A batch is created once, for no provider takes
an idempotency key: without a clear answer it counts as spent, the assistant's batches are paused,
and its pairs are asked directly.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import cache
from secrets import token_hex

from msgspec.structs import replace

from store.history import History, HistoryError
from store.polls.asking import SHOWN, outcome_of_result, request_for, reserve_in_batch
from store.polls.batch_files import Asking, Batch
from store.polls.due import Pair, PollingState
from store.polls.prices import micros
from store.polls.providers import PROVIDERS, queue_of
from store.polls.providers.envelopes import Response, read_object, text
from store.polls.providers.provider import UNASKED, Remote, Result, match
from store.polls.secrets import Unready
from store.polls.session import CANCELLED, ENDING, PollSession, Summary
from store.polls.spending import SHARE_IS_USED
from store.records import Assistant, Failure, Poll
from store.settings import SettingsError
from store.text import clean, rfc3339

MOST_ITEMS = 200
"""Questions of one batch: at most some 4 USD are reserved at a time, and one that is stuck holds
back a seventh of a round."""
WORTH_IT = 50
"""Due pairs of an assistant that are worth a batch; fewer are asked directly."""
CANCEL_AFTER = timedelta(hours=26)
"""When a batch is cancelled, so that what is left is asked directly: providers promise 24 hours,
and need a while to put the results together."""
GIVE_UP_AFTER = timedelta(hours=50)
"""When a batch that neither ends nor can be cancelled is given up: Gemini's end after 48 hours."""
RECHECK_AFTER = timedelta(minutes=15)
"""Time for which what was cancelled may still turn out to be answered (xAI's did within 20 s)."""
MOST_FILES = 100
"""Files or pages of results that are read of one batch; one with more never ends."""
SIZE = 64 << 20
"""Bytes of results at most: 200 answers with all their reasoning are some 10 MB."""
REFUSALS = frozenset(range(300, 500)) - {408, 409}
"""Statuses that say that no batch was made; after a time-out or a conflict it may have been."""
UNCLEAR = "The provider did not say whether it took the batch"


class Batching:
    """One assistant's batches, worked on by who holds its lock and counted in a ``summary``."""

    def __init__(self, session: PollSession, name: str, summary: Summary) -> None:
        self.summary = summary
        self._session = session
        self._files = session.files
        self._name = name

    def begin(
        self, pairs: Sequence[Pair], instrument: str | None, usd: float | None = None
    ) -> None:
        """Send the first of these pairs as one batch that may cost so many US dollars.

        ``instrument`` is the id of what it asks with.

        Raises:
            OSError: the batch cannot be written down, or the day's sum; nothing was sent.
            Unready: the assistant's key is missing.
        """
        session, assistant = self._session, pairs[0].assistant
        now = session.clock.now()
        if fault := session.clock.fault():
            self.summary.fault = fault
            return
        line = _Line(session, assistant)
        items, reserved = self._affordable(pairs[: min(MOST_ITEMS, line.queue.MAX_REQUESTS)], usd)
        day = session.budget.reserve(reserved, assistant.name) if items else None
        if day is None:
            cost = reserve_in_batch(assistant, pairs[0].category.question)
            self.summary.limit = session.budget.reached(cost) or SHARE_IS_USED
            return
        batch = Batch(
            key=token_hex(8),
            state="intended",
            assistant=assistant,
            intended_at=rfc3339(now),
            reserved=reserved,
            items=tuple(items),
            instrument=instrument,
        )
        # the intent is on disk before anything is sent: a kill then leaves a batch that is known
        try:
            self._files.write(batch)
        except OSError:
            session.budget.settle(day, reserved, 0, assistant.name)
            raise
        if reason := self._create(batch, line):
            self.summary.wrong.append(f"No batch of {self._name} was sent: {reason}")
            return
        self.summary.batched += len(items)

    def follow(self, *, cancel: bool = False) -> None:
        """Look after all batches of the assistant; ``cancel`` asks their provider to end them.

        Raises:
            OSError: a batch cannot be read or written.
        """
        for batch in self._files.open_of(self._name, self._session.catalogue):
            if fault := self._session.clock.fault():
                self.summary.wrong.append(fault)
            elif batch.state == "intended":  # who sent it was killed: nobody else has the lock
                self._fail(batch, f"{UNCLEAR}, and what sent it was ended", batch.reserved)
            else:
                try:
                    line = _Line(self._session, batch.assistant)
                except (Unready, SettingsError) as error:
                    sentence = f"A batch of {self._name} cannot be looked after: {error}."
                    self.summary.wrong.append(sentence)
                    continue
                self._follow_one(self._cancel(batch, line) if cancel else batch, line)

    def _affordable(self, pairs: Sequence[Pair], usd: float | None) -> tuple[list[Asking], int]:
        """Return what of these pairs can be paid and recorded, and what it may cost."""
        history, now = self._session.polling.history, rfc3339(self._session.clock.now())
        budget = self._session.budget
        of_day = math.inf if usd is None else micros(usd)
        limit = min(budget.available(), budget.share(self._name), of_day)
        items: list[Asking] = []
        total = 0
        for pair in pairs:
            cost = reserve_in_batch(pair.assistant, pair.category.question)
            if total + cost > limit:
                break
            with suppress(HistoryError):  # its answer could not be recorded
                history.check_appendable(pair.slug, now)
                items.append(Asking(pair.slug, pair.category.question))
                total += cost
        return items, total

    def _create(self, batch: Batch, line: _Line) -> str | None:
        """Upload and create it; return why it was not made, or nobody knows."""
        items = {
            batch.identity(n): request_for(batch.assistant, item.question).body
            for n, item in enumerate(batch.items)
        }
        file = None
        if upload := line.queue.build_upload(items):
            response = line.call(upload)
            file = text(read_object(response.body).get("id")) if response.is_success else None
            if not file:
                return self._fail(batch, line.describe(response), 0, of_run=True)
        response = line.call(line.queue.build_batch(items, batch.key, file))
        if remote := line.read_batch(response):
            self._files.write(replace(batch, state="sent", remote=remote.id))
            return None
        why = line.describe(response)
        if response.is_free or response.status in REFUSALS:
            return self._fail(batch, why, 0, of_run=True)
        self.summary.unknown_usd += batch.reserved / 1e6
        return self._fail(batch, f"{UNCLEAR}: {why}", batch.reserved, of_run=True)

    def _fail(self, batch: Batch, why: str, spent: int, *, of_run: bool = False) -> str:
        """Write down that a batch is over, then let the ledger have what it did not cost."""
        failed_at = rfc3339(self._session.clock.now())
        self._files.write(
            replace(batch, state="failed", failed_at=failed_at, why=why, reserved=spent)
        )
        self._settle(batch, spent, of_run=of_run)
        return why

    def _settle(self, batch: Batch, spent: int, *, of_run: bool = False) -> None:
        # an open batch weighs on every day, so that its reserve is always one of today
        today = rfc3339(self._session.clock.now())[:10]
        self._session.budget.settle(today, batch.reserved, spent, self._name, of_run=of_run)

    def _follow_one(self, batch: Batch, line: _Line) -> None:
        """Ask how a batch stands, and do what follows from that."""
        response = line.call(line.queue.build_look(str(batch.remote)))
        remote = line.read_batch(response)
        if remote is None or remote.id != batch.remote:
            why = line.describe(response)
            self.summary.wrong.append(f"A batch of {self._name} cannot be followed: {why}")
            if batch.age(self._session.clock.now()) > GIVE_UP_AFTER:
                self._fail(batch, why, batch.reserved)
        elif remote.state == "failed":
            why = f"The provider's batch failed before it ran ({remote.why or 'no reason given'})."
            self.summary.wrong.append(f"{self._name}: {self._fail(batch, why, 0)}")
        elif remote.state == "open" or not self._is_final(batch, remote):
            self._wait(batch, remote, line)
        else:
            self._collect(batch, remote, line)

    def _is_final(self, batch: Batch, remote: Remote) -> bool:
        """Return whether the ended batch lists its results, and they can no longer change."""
        now = self._session.clock.now()
        if remote.is_settling and batch.age(now) <= GIVE_UP_AFTER:
            if batch.cancelled_at is None:
                return False
            return now - datetime.fromisoformat(batch.cancelled_at) >= RECHECK_AFTER
        # a batch that ended without naming its results may name them a moment later
        lists_none = not remote.files and remote.unasked == UNASKED["missing"]
        return not lists_none or batch.age(now) > CANCEL_AFTER

    def _wait(self, batch: Batch, remote: Remote, line: _Line) -> None:
        """Cancel it when it is late, and give it up when that is of no use."""
        now = self._session.clock.now()
        if remote.is_settling and not batch.cancelled_at:
            batch = replace(batch, cancelled_at=rfc3339(now))
            self._files.write(batch)
        if batch.age(now) > GIVE_UP_AFTER:
            self._fail(batch, "It neither ended nor could be cancelled.", batch.reserved)
        elif batch.age(now) > CANCEL_AFTER:
            self.summary.wrong.append(late(batch))
            self._cancel(batch, line)
        elif batch.cancelled_at:
            self.summary.outcomes[ENDING] += len(batch.items)

    def _cancel(self, batch: Batch, line: _Line) -> Batch:
        """Ask the provider to end a batch and say why it would not; return how it stands now."""
        response = line.call(line.queue.build_cancel(str(batch.remote)))
        if not response.is_success:
            why = line.describe(response)
            self.summary.wrong.append(f"A batch of {self._name} was not cancelled: {why}")
        elif batch.cancelled_at is None:
            batch = replace(batch, cancelled_at=rfc3339(self._session.clock.now()))
            self._files.write(batch)
        return batch

    def _collect(self, batch: Batch, remote: Remote, line: _Line) -> None:
        """Record what is not recorded yet, forget the batch, then settle the cost.

        What history cannot take is left, with the batch, until it can or the batch is given up; the
        others are recorded. Cancelled questions leave no record.
        """
        results = line.results(remote)
        if isinstance(results, str):
            refusals, cost = [results], 0
        else:
            outcomes = match(map(batch.identity, range(len(batch.items))), results, remote.unasked)
            refusals, cost = self._record(batch, outcomes)
        for reason in dict.fromkeys(refusals):
            self.summary.wrong.append(
                f"Answers in a batch of {self._name} are not recorded: {reason}"
            )
        if refusals:
            if batch.age(self._session.clock.now()) > GIVE_UP_AFTER:
                self._fail(batch, "Not all of its answers were recorded.", batch.reserved)
            return
        if batch.cancelled_at:  # kept as failed, so that no other is begun at once
            self._fail(replace(batch, reserved=0), "One was cancelled, or came late.", 0)
            rest = self._files.pause_of(batch.assistant, self._session.clock.now())
            if rest and self.summary.outcomes[CANCELLED]:
                self.summary.reasons[CANCELLED] = f"it is asked without batches {rest}"
        else:
            self._files.forget(batch)
            self._files.forget_failures(batch.assistant.name, self._session.catalogue)
        self._settle(batch, cost)

    def _record(
        self, batch: Batch, results: Mapping[str, Response | Failure]
    ) -> tuple[list[str], int]:
        """Record what is not in history, the first that asks for a pause with it.

        Returns why history did not take the rest, and what all cost in micro-dollars.
        """
        history, refusals, cost = self._session.polling.history, [], 0
        notes = cache(lambda slug: _notes(history, slug))
        for number, item in enumerate(batch.items):
            note = f"batch {batch.identity(number)}"
            result = results[batch.identity(number)]
            if result == UNASKED["cancelled"]:
                self.summary.count(CANCELLED)
                continue
            outcome = outcome_of_result(batch.assistant, item.slug, item.question, result, note)
            cost += _cost(batch.assistant, outcome.poll, result)
            try:
                if note not in notes(item.slug):
                    pause = None if self.summary.pause else outcome.pause
                    outcome = replace(outcome, pause=pause)
                    self._session.append(outcome, self.summary, batch.instrument)
            except (HistoryError, OSError) as error:
                refusals.append(f"{error}.")
        return refusals, cost


def _notes(history: History, slug: str) -> set[str]:
    """Return the notes in a history file, by which an answer is known to be recorded.

    Raises:
        HistoryError: the file cannot be read.
    """
    log = history.read(slug)
    if log.unread:
        raise HistoryError(str(log.problems[0]))
    return {note for stored in log.polls for note in stored.poll.notes}


class _Line:
    """The line to one assistant's provider, over which its ``queue`` is asked.

    Raises:
        Unready, SettingsError: its key or its queue is missing.
    """

    def __init__(self, session: PollSession, assistant: Assistant) -> None:
        self._assistant = assistant
        sender = session.sender(assistant, size=SIZE)
        self.call = sender.call
        queue = queue_of(assistant)
        if queue is None:
            raise Unready(f"{assistant.name}: no queue for its batches is known")
        self.queue = queue(assistant, sender.secret)

    def read_batch(self, response: Response) -> Remote | None:
        """Return the batch that a response describes, if it describes one."""
        return self.queue.read_batch(read_object(response.body)) if response.is_success else None

    def results(self, remote: Remote) -> list[Result] | str:
        """Return all that a provider says of a batch's items, or why it cannot be had now."""
        results: list[Result] = []
        files = list(remote.files)
        for count, file in enumerate(files, start=1):
            response = self.call(self.queue.build_download(file))
            if not response.is_success:
                return self.describe(response)
            results += self.queue.read_results(response.body)
            following = self.queue.next_file(file, response.body)
            if following and (following in files or count >= MOST_FILES):
                return "The provider's results have no end."
            files += [following] if following else []
        return results

    def describe(self, response: Response) -> str:
        """Return what a request came to that was of no use, in a sentence."""
        if response.loss:
            return response.loss.error
        outcome = PROVIDERS[self._assistant.api].read_reply(response).outcome
        if isinstance(outcome, Failure):
            return clean(outcome.error)[:SHOWN]
        return f"The provider answered HTTP {response.status}, but nothing that could be used."


def _cost(assistant: Assistant, poll: Poll, result: Response | Failure) -> int:
    """Return what an item cost in micro-dollars: the most it may, where nobody counted."""
    if poll.usage and poll.usage.usd is not None:
        return micros(poll.usage.usd)
    is_free = result.is_error if isinstance(result, Response) else result == UNASKED["expired"]
    return 0 if is_free else reserve_in_batch(assistant, poll.question)


def share_of_day(session: PollSession, name: str, state: PollingState) -> float | None:
    """Return the US dollars that an assistant's batches may take today, if the day has a limit."""
    if session.budget.daily_usd is None:
        return None
    spent = state.usd_on(name, rfc3339(session.clock.now())[:10])
    open_batches = session.files.open_of(name, session.catalogue)
    reserved = sum(batch.reserved for batch in open_batches) / 1e6
    part = session.part(name, session.catalogue.assistants)
    return session.budget.daily_usd * part - spent - reserved


def late(batch: Batch) -> str:
    """Return the sentence on a batch that should have ended."""
    name = batch.assistant.name
    return f"A batch of {name} is with its provider since {batch.intended_at} ({batch.key})."
