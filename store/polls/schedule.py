"""Polling on schedule: one process of all, one APScheduler job for each assistant, closed days.

The process that holds the scheduler's lock keeps a job for each assistant; the others try the lock
every second, which falls free when its holder dies. Each job takes a turn at every tick, so that a
pass over all categories takes a day. What is due and paused follows from history: a restart forgets
nothing.
"""

from __future__ import annotations

import logging
import math
import os
import pwd
import signal
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from functools import partial
from types import FrameType
from typing import Any

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.background import BackgroundScheduler
from msgspec import Struct, field

from store.disk import locked, make_folder
from store.files import Catalogue
from store.history import HistoryError
from store.ledger import DayClosing
from store.polls.batch_files import HAS_OPEN_BATCH, NOT_LISTED, BatchFiles
from store.polls.clocks import Clock
from store.polls.due import PollingReader, most_answers
from store.polls.locks import FOLDER
from store.polls.poller import QUESTIONS_PER_TURN, Plan, take_turn
from store.polls.session import SKIPPED, PollSession, Summary
from store.rankings.poll_states import ScheduleStatus
from store.records import Problem
from store.settings import Settings, SettingsError
from store.store import Store
from store.text import rfc3339

log = logging.getLogger(__name__)

LOCK = "schedule.lock"
DAY = 86_400
STOP_TIMEOUT = 8.0
"""Seconds that a stopping process gives its last polls to be recorded."""
HOUR = 3600.0
"""Seconds without polls after a fault of the program: it may be met again, and paid for."""
LATE_TICKS = 10
"""Ticks that are missed, and at least a minute, after which health says that nobody polls."""


def begin(extensions: dict[str, Any], *signals: signal.Signals) -> Schedule:
    """Start the schedule of an app, to be stopped by these signals; health sees its state."""
    schedule = Schedule(extensions["store"], extensions["settings"])
    extensions["scheduler"] = schedule.status
    schedule.stop_on(*signals)
    schedule.start()
    return schedule


class Schedule:
    """Runs the polls of one data directory whenever this process is the one to do it."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._clock = Clock()
        self._begun = self._clock.now()
        self._polling = PollingReader(store.history, self._clock)
        self._files = BatchFiles(settings.data_dir)
        self._closing = DayClosing(settings.data_dir)
        self._late = max(LATE_TICKS * settings.poll_tick, 60)
        self._stop = threading.Event()
        self._lock = settings.data_dir / FOLDER / LOCK
        self._elected = ExitStack()
        self._is_elected = False
        self._ticked_at = time.monotonic()
        self._jobs_ran_at = -math.inf
        self._busy: set[str] = set()
        self._fault: str | None = None
        self._blocker: Problem | None = None
        self._statuses: dict[str, AssistantStatus] = {}
        logging.getLogger("apscheduler").setLevel(logging.ERROR)  # each turn has a line of ours
        # a pool for 64 assistants at once; a look that is late is made all the same
        self._scheduler = BackgroundScheduler(
            timezone=UTC,
            executors={"default": ThreadPoolExecutor(64)},
            job_defaults={"misfire_grace_time": None},
        )

    def start(self) -> None:
        """Begin to stand for election, and to poll once elected."""
        self._scheduler.start()
        threading.Thread(target=self._keep_looking, name="schedule", daemon=True).start()

    def _keep_looking(self) -> None:
        """Run ``_tick`` every tick, by a monotonic clock."""
        while not self._stop.is_set():
            self._scheduler.add_job(self._tick, id=LOCK, replace_existing=True)
            self._stop.wait(min(1.0, self._settings.poll_tick))

    def status(self) -> ScheduleStatus:
        """Return how the schedule stands, for :mod:`store.web.health`."""
        now, statuses = self._clock.now(), sorted(self._statuses.copy().items())
        paused = [(name, status.summary.pause) for name, status in statuses]
        pauses = {name: pause.public for name, pause in paused if pause and pause.until > now}
        reasons = [f"{name} is paused {pause}." for name, pause in pauses.items()]
        reasons += [reason for _, status in statuses for reason in status.faults.values()]
        reasons += filter(None, (self._closing.reason, self._fault))
        is_alive = time.monotonic() < self._ticked_at + self._late and not self._stop.is_set()
        if not is_alive:
            reasons.append("The schedule does not run; restart the server.")
        return ScheduleStatus(
            alive=is_alive,
            polling=self._is_elected,
            since=rfc3339(self._begun),
            reasons=tuple(dict.fromkeys(reasons)),
            pauses=pauses,
            due={name: status.summary.due for name, status in statuses},
        )

    def stop(self) -> None:
        """End every wait and poll; what is under way is recorded before this returns."""
        self._stop.set()
        if self._scheduler.running:
            self._scheduler.pause()
            self._scheduler.get_jobs()  # waits until it is in no job's start
            # waiting in there would keep the scheduler's locks from the jobs that are to end
            self._scheduler.shutdown(wait=False)
        end = time.monotonic() + STOP_TIMEOUT
        while self._busy and time.monotonic() < end:
            time.sleep(0.02)
        self._is_elected = False
        self._elected.close()

    def stop_on(self, *signals: signal.Signals) -> None:
        """Stop when one of these signals comes, then do what the process would have done."""
        for number in signals:
            signal.signal(number, partial(self._end, signal.getsignal(number)))

    def _end(self, before: Any, number: int, frame: FrameType | None) -> None:
        self._stop.set()
        if callable(before):
            before(number, frame)
            return
        self.stop()
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)

    def _tick(self) -> None:
        """Try to be the one process that polls; as such, let jobs run and close days."""
        self._ticked_at = time.monotonic()
        self._busy.add(LOCK)
        try:
            if self._stop.is_set():
                return
            if not self._is_elected:
                make_folder(self._lock.parent)
                with suppress(BlockingIOError):
                    self._elected.enter_context(locked(self._lock, wait=False))
                    self._is_elected = True
                self._fault = None
                if not self._is_elected:
                    return
                log.info("this process polls on schedule")
                if owner := other_owner(self._settings):
                    log.warning("%s, whose data it is, cannot use what root adds", owner)
            if self._ticked_at >= self._jobs_ran_at + self._settings.poll_tick:
                self._jobs_ran_at = self._ticked_at
                self._run_jobs()
                self._closing.close_past_days(
                    confirmed_time(self._clock, self._store.snapshot.catalogue)
                )
                self._fault = None
        except Exception as error:  # any would end all polling, unseen
            reason = getattr(error, "strerror", None) or type(error).__name__
            fault = f"Polling on schedule has a fault ({reason}); the log says more."
            if fault != self._fault:
                log.exception("polling on schedule has a fault, and goes on when it can")
            self._fault = fault
        finally:
            self._busy.discard(LOCK)

    def _run_jobs(self) -> None:
        """Run a job for every assistant, also for one that is gone while a batch of it is open."""
        self._store.keep_current()
        if (blocker := self._store.snapshot.blocks_polling) and blocker != self._blocker:
            log.warning("nothing is polled until this is mended: %s", blocker)
        self._blocker = blocker
        catalogue = self._store.snapshot.catalogue
        names = {assistant.name for assistant in catalogue.assistants}
        names |= {batch.owner(catalogue) for batch in self._files.all() if batch.is_open}
        for name in self._statuses.keys() - names:
            del self._statuses[name]
            if name not in catalogue.former_names:
                log.warning("%s %s", name, NOT_LISTED)
        for name in sorted(names):
            # one that still runs is not run twice
            self._scheduler.add_job(self._job, id=name, args=[name], replace_existing=True)

    def _job(self, name: str) -> None:
        """Look after one assistant; what needs a person is logged once."""
        status = self._statuses.setdefault(name, AssistantStatus(name))
        is_resting = status.resumes_at > time.monotonic()
        if self._stop.is_set() or is_resting or self._store.snapshot.blocks_polling:
            return
        self._busy.add(name)
        before = status.faults
        try:
            self._take_turn(status)
        except SettingsError as error:
            status.faults = {f"{error}": f"{name} lacks what it needs to be asked; see the log."}
        except (HistoryError, OSError) as error:
            public = f"{name} is not asked: history or .locks cannot be used; see the log."
            status.faults = {f"it is not asked: {error}": public}
        except Exception:  # what it was paid for may not have been recorded
            log.exception("polling %s failed unexpectedly", name)
            status.resumes_at = time.monotonic() + HOUR
            public = f"{name} is not asked for an hour after a fault of the program; see the log."
            status.faults = {"it is not asked for an hour": public}
        finally:
            self._busy.discard(name)
        for sentence in status.faults.keys() - before.keys() - {*status.summary.wrong}:
            log.warning("%s: %s", name, sentence.removeprefix(f"{name}: "))

    def _take_turn(self, status: AssistantStatus) -> None:
        """Take a turn with one assistant and log what came of it.

        It asks so little that one pass over all categories is spread over a day.
        """
        catalogue = self._store.snapshot.catalogue
        answers = len(catalogue.categories) * most_answers(catalogue.site)
        most = min(QUESTIONS_PER_TURN, math.ceil(answers * self._settings.poll_tick / DAY))
        session = PollSession(
            self._settings, catalogue, self._polling, self._store.record, self._stop
        )
        if catalogue.site.daily_usd is not None:
            session.share_day(self._polling.read(catalogue))
        summary = Summary()
        if not take_turn(session, status.name, Plan(most=most, gathers=True), summary):
            return
        if summary.polled or summary.batched:
            reasons = "".join(f"; {what}: {why}" for what, why in sorted(summary.reasons.items()))
            level = logging.WARNING if reasons else logging.INFO
            log.log(level, "%s: %s%s", status.name, summary, reasons)
        status.take_in(summary)
        if all(assistant.name != status.name for assistant in catalogue.assistants):
            public = f"{status.name} {HAS_OPEN_BATCH} and is no longer in models.json."
            status.faults = {**status.faults, f"it {HAS_OPEN_BATCH} and {NOT_LISTED}": public}


class AssistantStatus(Struct):
    """The state of an assistant when its job last looked after it, with the summary of that turn.

    ``faults`` need a person: by the sentence of the log, one that anybody may read. What is wrong
    with batches is one of them from the second turn on: a connection may fail once.
    """

    name: str
    resumes_at: float = -math.inf
    summary: Summary = field(default_factory=Summary)
    faults: Mapping[str, str] = {}

    def take_in(self, summary: Summary) -> None:
        """Take in the summary of a turn."""
        if summary.pause and summary.pause != self.summary.pause:
            log.warning("%s is paused %s", self.name, summary.pause)
        if summary.limit and summary.limit != self.summary.limit:
            log.info("%s is not asked on: %s", self.name, summary.limit)
        for sentence in summary.wrong:  # what happens once, such as money that is gone, too
            if sentence not in self.summary.wrong:
                log.warning("%s: %s", self.name, sentence)
        lasting = summary.wrong if self.summary.wrong else []  # its words may differ
        self.summary = summary
        faults = {summary.fault: summary.fault} if summary.fault else {}
        if reason := summary.reasons.get(SKIPPED):
            faults[reason] = f"Some of what is due is not asked: {reason}."
        public_fault = f"A batch of {self.name} has a fault; see the log."
        self.faults = faults | dict.fromkeys(lasting, public_fault)


def confirmed_time(clock: Clock, catalogue: Catalogue) -> datetime | None:
    """Return the newest time that is sure to be past; ``None`` while no provider confirmed one.

    Sample assistants have no clock to compare with; where all are, this machine's is believed.
    """
    is_sample = all(assistant.api == "sample" for assistant in catalogue.assistants)
    return clock.now() if is_sample else clock.confirmed


def other_owner(settings: Settings) -> str | None:
    """Return the user whom the history belongs to, if they could not use what root adds to it."""
    history = settings.data_dir / "history"
    owner = (history if history.is_dir() else settings.data_dir).stat().st_uid
    if os.geteuid() != 0 or owner == 0:
        return None
    try:
        return pwd.getpwuid(owner).pw_name
    except KeyError:  # a container that knows root alone
        return None
