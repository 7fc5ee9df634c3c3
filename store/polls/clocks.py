"""Whether this machine's clock can be believed: by a wrong one nothing is sent or closed."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from store.counting import CLOCK_TOLERANCE
from store.files import Catalogue
from store.ledger import FOLDER, LedgerError, Proof
from store.text import rfc3339

log = logging.getLogger(__name__)

ASKED_ANEW = 3600.0
"""Seconds after which a misfit is put to the test: it may have been that provider's clock."""

EARLIEST = datetime(2020, 1, 1, tzinfo=UTC)
LATEST = datetime(9000, 1, 1, tzinfo=UTC)
"""What says that it is before or after these is no clock that is set (store/README.md, Time)."""


def utc_now() -> datetime:
    """This machine's clock."""
    return datetime.now(UTC)


class Clock:
    """A clock in UTC, and what the ``Date`` of providers' replies says of it; shared by threads.

    ``confirmed`` is the newest time at which a provider's agreed with it.
    """

    def __init__(
        self,
        now: Callable[[], datetime] = utc_now,
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        self.now = now
        self._elapsed = elapsed
        self.confirmed: datetime | None = None
        self._misfit: tuple[datetime, float] | None = None
        self._lock = threading.Lock()

    def fault(self) -> str | None:
        """Why nothing may be sent by this clock, in a sentence; ``None`` while it fits.

        After a ``Date`` that did not fit it must agree with that and the time since, for an hour.
        """
        now = self.now()
        if now < EARLIEST:
            return f"This machine's clock says {rfc3339(now)}; nothing is sent until it is set."
        with self._lock:
            if self._misfit is None:
                return None
            date, at = self._misfit
            passed = self._elapsed() - at
            theirs = date + timedelta(seconds=passed)
            if abs(now - theirs) <= CLOCK_TOLERANCE or passed > ASKED_ANEW:
                self._misfit = None
                return None
        return f"{_differ(now, theirs)} Nothing is sent until they agree."

    def compare(self, date: datetime, began: datetime) -> str | None:
        """Remember a reply's ``Date``; a sentence if it does not fit the time of the attempt."""
        if not EARLIEST <= date < LATEST:  # the provider has no clock, which says nothing of ours
            return None
        now = self.now()
        fits = began - CLOCK_TOLERANCE <= date <= now + CLOCK_TOLERANCE
        with self._lock:
            self._misfit = None if fits else (date, self._elapsed())
            if fits:
                earlier = min(date, now)
                self.confirmed = max(earlier, self.confirmed or earlier)
        return None if fits else f"{_differ(now, date)} The answer was not counted."


def confirmed_time(clock: Clock, catalogue: Catalogue) -> datetime | None:
    """Return the newest time that is sure to be past; ``None`` while no provider confirmed one.

    Sample assistants have no clock to compare with; where all are, this machine's is believed.
    """
    is_sample = all(assistant.api == "sample" for assistant in catalogue.assistants)
    return clock.now() if is_sample else clock.confirmed


def _differ(ours: datetime, theirs: datetime) -> str:
    return f"This machine's clock says {rfc3339(ours)}, the provider's {rfc3339(theirs)}."


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
