"""What work on batches touches: their files, history, the money, and the line to a provider."""

from __future__ import annotations

import hashlib
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from store.history import HistoryError
from store.polls.leases import leased
from store.polls.providers.batches.queues import queue_of
from store.polls.runner import Dependencies, sender_for
from store.times import rfc3339

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import Any

    from store.history import History
    from store.polls.batches.files import Batch, Batches
    from store.polls.providers import Request, Response
    from store.polls.sending import Lost, Sender
    from store.records import Assistant

SIZE = 64 << 20
"""Bytes of results at most: 200 answers with all their reasoning are some 10 MB."""


def random_key() -> str:
    """A key that no other batch has."""
    return os.urandom(8).hex()


class BatchWork(Struct, frozen=True, kw_only=True):
    """The files of batches, and what polling touches beside; ``noted`` are a file's notes."""

    files: Batches
    polling: Dependencies
    noted: Callable[[str], set[str]]
    locks: Path
    new_key: Callable[[], str] = random_key

    @contextmanager
    def alone(self, name: str) -> Iterator[bool]:
        """Be the only one who works on an assistant's batches; yields whether that could be had.

        Raises:
            OSError: the lock cannot be taken.
        """
        self.locks.mkdir(exist_ok=True)
        file = f"{hashlib.sha256(name.encode()).hexdigest()[:8]}.batch.lock"
        with leased(self.locks / file) as had:
            yield had

    def hold(self, batch: Batch) -> None:
        """Let the caps count again what a batch may cost that was taken to be over."""
        for account in self.polling.accounts:
            account.replace(0, batch.reserved)

    def close(self, batch: Batch, state: str, *, spent: int = 0, **fields: Any) -> None:
        """Write down that a batch is over, then let the caps have what it did not cost.

        Raises:
            OSError: it could not be written.
        """
        over = {"state": state, "over_at": rfc3339(self.polling.clock.now()), **fields}
        self.files.write(msgspec.structs.replace(batch, **over))
        if state != "lost":
            for account in self.polling.accounts:
                account.replace(batch.reserved, spent)


class ProviderLine:
    """The line to one assistant's provider."""

    def __init__(self, assistant: Assistant, polling: Dependencies) -> None:
        """Raises :class:`Unready` where its key is missing."""
        patient = msgspec.structs.replace(polling.limits, size=max(SIZE, polling.limits.size))
        wide = msgspec.structs.replace(polling, limits=patient)
        self._sender: Sender = sender_for(assistant, wide)
        self.key = self._sender.secret
        self.queue = queue_of(assistant)(assistant, self.key)

    def call(self, request: Request) -> Response | Lost:
        """One attempt at a request."""
        return self._sender.call(request)


def notes_of(history: History) -> Callable[[str], set[str]]:
    """The notes of all polls in a history file, by which an answer is known to be recorded."""

    def noted(slug: str) -> set[str]:
        log = history.read(slug)
        if log.unread:
            raise HistoryError(str(log.problems[0]))
        return {note for stored in log.polls for note in stored.poll.notes}

    return noted
