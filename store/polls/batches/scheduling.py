"""Batches on schedule: looked after now and then, and made of what is due in numbers."""

from __future__ import annotations

import logging
import time
from datetime import timedelta
from typing import TYPE_CHECKING

from store.polls.batches.files import under_way
from store.polls.batches.following import follow
from store.polls.batches.standing import standing
from store.polls.batches.submitting import submit
from store.polls.batches.work import ProviderLine

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from store.files import Catalogue
    from store.polls.batches.files import Batches
    from store.polls.batches.submitting import Submitted
    from store.polls.batches.work import BatchWork
    from store.polls.due import DuePolls, Pair, Rounds
    from store.polls.runner import RunSummary

log = logging.getLogger(__name__)

WORTH_IT = 50
"""Due pairs of an assistant that are worth a batch; fewer are asked directly."""
PATIENCE = timedelta(hours=1)
"""How long a due pair waits for enough others: a round asked over a day brings 59 an hour."""
TICKS_APART = 5
"""Ticks of the schedule between two looks at an assistant's batches: five minutes."""


class BatchSchedule:
    """What a schedule does about batches."""

    def __init__(
        self, files: Batches, tick: float, elapsed: Callable[[], float] = time.monotonic
    ) -> None:
        self.files = files
        self._wrong: dict[str, tuple[str, ...]] = {}
        self._lasting: dict[str, tuple[str, ...]] = {}
        self._apart = TICKS_APART * tick
        self._elapsed = elapsed
        self._next: dict[str, float] = {}
        self._said: dict[str, str] = {}

    def names(self) -> set[str]:
        """The assistants that have batches on their way, whether models.json has them or not."""
        try:
            return {batch.name for batch in self.files.all() if batch.is_open}
        except OSError:  # every assistant's own job meets it, says so and rests
            return set()

    def reasons(self) -> list[str]:
        """What was wrong at two looks in a row, for people: a line may fail once."""
        return [each for _, sentences in sorted(self._lasting.copy().items()) for each in sentences]

    def look_after(self, name: str, work: BatchWork) -> RunSummary | None:
        """Collect an assistant's batches that ended, if it is time for a look.

        Raises:
            HistoryError: an answer could not be recorded.
            OSError: a batch could not be read or written.
        """
        if self._elapsed() < self._next.get(name, 0):
            return None
        self._next[name] = self._elapsed() + self._apart
        with work.polling.leases.batches(name) as had:
            if not had:
                return None
            came = follow(name, work)
        wrong = tuple(dict.fromkeys([*came.wrong, *self.files.mended()]))
        before = self._wrong.get(name, ())
        for sentence in wrong:
            if sentence not in before:
                log.warning("%s", sentence)
        self._wrong[name] = wrong
        self._lasting[name] = tuple(sentence for sentence in wrong if sentence in before)
        return came.summary

    def left_to_ask(
        self, due: Sequence[Pair], stands: DuePolls, rounds: Rounds, work: BatchWork
    ) -> Sequence[Pair]:
        """What of an assistant's due pairs is to be asked directly; a batch takes what it can.

        Raises:
            HistoryError: it cannot be known what was asked.
            OSError: a batch could not be read or written; nothing was sent, or it is looked for.
        """
        if not due:
            return due
        assistant, now = due[0].assistant, work.polling.clock.now()
        stand = standing(assistant, self.files.all(), now)
        if stand.waits:
            return ()
        if not stand.most:
            return due
        if len(due) < WORTH_IT:
            return [p for p in due if rounds.due_at(stands.of(p)) <= now - PATIENCE]
        calls = stands.rest_of_rounds(due, rounds, now)
        with work.polling.leases.batches(assistant.name) as had:
            if had:
                line = ProviderLine(assistant, work.polling)
                came = submit(calls, stand.most, work, line, rounds)
                self._tell(assistant.name, came)
        return ()

    def _tell(self, name: str, came: Submitted) -> None:
        """Log what was sent; why nothing was, once, though it is tried every minute."""
        sent = f"{came.asked} sent in a batch" if came.asked else "no batch was sent"
        said = f"{sent}: {came.why}" if came.why else sent
        if came.asked or said != self._said.get(name):
            log.log(logging.INFO if came.asked else logging.WARNING, "%s: %s", name, said)
        self._said[name] = said


def not_under_way(pairs: Sequence[Pair], files: Batches, catalogue: Catalogue) -> list[Pair]:
    """The pairs that no batch asks.

    Raises:
        BatchFileError: nobody knows.
    """
    asked = under_way(files.all(), catalogue)
    return [pair for pair in pairs if pair.key not in asked]
