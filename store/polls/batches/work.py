"""What work on batches touches: their files, history, the money, and the line to a provider."""

from __future__ import annotations

from functools import partial
from secrets import token_hex
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from store.history import HistoryError
from store.polls.providers.batches.queues import queue_of
from store.polls.runner import Dependencies, sender_for
from store.times import rfc3339

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from store.history import History
    from store.polls.batches.files import Batch, Batches
    from store.records import Assistant

SIZE = 64 << 20
"""Bytes of results at most: 200 answers with all their reasoning are some 10 MB."""


class BatchWork(Struct, frozen=True, kw_only=True):
    """The files of batches, and what polling touches beside; ``new_key`` gives a new batch's."""

    files: Batches
    polling: Dependencies
    history: History
    new_key: Callable[[], str] = partial(token_hex, 8)

    def noted(self, slug: str) -> set[str]:
        """The notes of all polls in a history file, by which an answer is known to be recorded.

        Raises:
            HistoryError: the file cannot be read.
        """
        log = self.history.read(slug)
        if log.unread:
            raise HistoryError(str(log.problems[0]))
        return {note for stored in log.polls for note in stored.poll.notes}

    def hold(self, *, was: int, now: int) -> None:
        """Let every cap count another sum for a batch than it did, in micro-dollars."""
        for account in self.polling.accounts:
            account.settle_batch(was, now)

    def close(self, batch: Batch, state: str, *, spent: int = 0, **fields: Any) -> None:
        """Write down that a batch is over, then let the caps have what it did not cost.

        Raises:
            OSError: it could not be written.
        """
        over = {"state": state, "over_at": rfc3339(self.polling.clock.now()), **fields}
        self.files.write(msgspec.structs.replace(batch, **over))
        if state != "lost":
            self.hold(was=batch.reserved, now=spent)


class ProviderLine:
    """The line to one assistant's provider: its queue, its key, and ``call`` for one request."""

    def __init__(self, assistant: Assistant, polling: Dependencies) -> None:
        """Raises :class:`Unready` where its key is missing."""
        patient = msgspec.structs.replace(polling.limits, size=max(SIZE, polling.limits.size))
        wide = msgspec.structs.replace(polling, limits=patient)
        sender = sender_for(assistant, wide)
        self.call = sender.call
        self.key = sender.secret
        self.queue = queue_of(assistant)(assistant, self.key)
