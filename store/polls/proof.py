"""The proof, kept by the server that polls: what history holds is listed once each UTC day.

It is done at the day's first poll, which closes the day before, and by ``flask dataset``. A kill
leaves at most a torn line, which the next run writes again (:mod:`store.publishing.leaves`).
"""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

from store.publishing.leaves import FOLDER, LeafList, ProofError
from store.times import rfc3339

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

log = logging.getLogger(__name__)


class DailyProof:
    """Extends the leaf list of a data directory on each new day; ``reason`` says why it cannot."""

    def __init__(self, directory: Path) -> None:
        self.reason: str | None = None
        self._directory = directory
        self._leaves = LeafList(directory)
        self._listed = ""

    def look(self, last_poll: str | None, now: datetime) -> None:
        """List what is new on a new day of polls, none beyond ``now``; retried in ten minutes."""
        moment = rfc3339(now)
        day = min(last_poll or "", moment)[:10]
        due = f"{day} {moment[11:15]}" if self.reason else day
        if self._listed.startswith(due):
            return
        before, self.reason = self.reason, None
        try:
            heads = self._leaves.extend(now)
        except (ProofError, OSError) as error:
            why = str(error)
            if isinstance(error, OSError):
                where = os.path.relpath(error.filename or self._directory / FOLDER, self._directory)
                why = f"{where}: {error.strerror}"
            self.reason = f"The proof is not extended: {why}."
            if self.reason != before:
                log.error("%s", self.reason)  # noqa: TRY400 - a sentence, not a trace
        except Exception:  # polling goes on whatever is wrong with the proof
            self.reason = "The proof is not extended; the log has the fault."
            log.exception("the proof is not extended")
        else:
            newest = f"; head of {heads[-1].date}: {heads[-1].root}" if heads else ""
            log.info("the proof has all lines%s", newest)
        self._listed = f"{day} {moment[11:15]}"
