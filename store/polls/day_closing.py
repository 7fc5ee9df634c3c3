"""Closing days: done by who polls, once a provider's clock has agreed with this machine's."""

from __future__ import annotations

import logging
import os
from datetime import datetime, timedelta
from pathlib import Path

from store.ledger import FOLDER, LedgerError, Proof

log = logging.getLogger(__name__)


class DayClosing:
    """Closes the days of a data directory; ``reason`` says why it cannot."""

    def __init__(self, directory: Path) -> None:
        self.reason: str | None = None
        self._directory = directory
        self._proof = Proof(directory)
        self._closed = ""

    def look(self, confirmed: datetime | None) -> None:
        """Close every day before the one in which the clock was last ``confirmed``, if any was.

        A fault is logged once, is the ``reason``, and is tried again at the next look.
        """
        if confirmed is None:
            return
        through = f"{confirmed - timedelta(days=1):%Y-%m-%d}"
        if through <= self._closed:
            return
        before, self.reason = self.reason, None
        try:
            heads = self._proof.close(through, wait=False)
        except BlockingIOError:  # a backup may take minutes; the next look comes
            self.reason = before
            return
        except (LedgerError, OSError) as error:
            why = str(error)
            if isinstance(error, OSError):
                where = os.path.relpath(error.filename or self._directory / FOLDER, self._directory)
                why = f"{where}: {error.strerror}"
            self.reason = f"No day is closed: {why}."
            if self.reason != before:
                log.error("%s", self.reason)  # noqa: TRY400 - a sentence, not a trace
            return
        self._closed = through
        for head in heads:
            log.info("closed %s: %d lines, root %s", head.day, head.lines, head.root)
