"""Polling on schedule: one process of all, one APScheduler job for each assistant, and closed days.

The process that holds the scheduler's lock runs the jobs; the others try the lock every second,
which falls free when its holder dies. Each job now and then polls a few of the pairs that are due,
so that a round is spread over a day. What is due follows from history: a restart forgets nothing.
"""

from __future__ import annotations

import logging
import math
import os
import pwd
import signal
import threading
import time
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.background import BackgroundScheduler

from store.history import HistoryError
from store.polls.asking import Unready
from store.polls.batches.files import Batches, under_way
from store.polls.batches.scheduling import BatchSchedule, not_under_way
from store.polls.batches.submitting import MOST_ITEMS
from store.polls.batches.work import BatchWork
from store.polls.clocks import Clock, confirmed_time
from store.polls.day_closing import DayClosing
from store.polls.due import DuePolls, Pair, Rounds, look
from store.polls.leases import Leases, leased, locks_in
from store.polls.runner import Dependencies, run
from store.polls.spending import daily_account
from store.rankings.poll_states import Pause, ScheduleState, usd_on
from store.settings import SettingsError
from store.times import rfc3339

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import FrameType

    from store.files import Catalogue
    from store.memory import Store
    from store.polls.runner import RunSummary
    from store.records import Assistant, Problem
    from store.settings import Settings

log = logging.getLogger(__name__)

LOCK = "schedule.lock"
DAY = 86_400
HOUR = 3600.0
"""Seconds without polls when a cap is reached, a key is missing or a poll cannot be recorded: what
cannot be recorded must not be paid for."""
UNEXPECTED = "a fault of the program; the log has its trace"
LATE_TICKS = 10
"""Ticks without a look at what is due, and at least a minute, after which health says so."""
STOP_TIMEOUT = 8.0
"""Seconds that a stopping process gives its last polls to be recorded."""


def begin(extensions: dict[str, Any], *signals: signal.Signals) -> Schedule:
    """Stand by to poll as an app is set, until one of these signals; health says how it stands."""
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
        self._paused: dict[str, Pause] = {}
        self._recorded: dict[str, Pause] = {}
        self._due: dict[str, int] = {}
        self._unlocked: str | None = None
        self._fault: str | None = None
        self._idle_since: dict[str, float] = {}
        self._refused: dict[str, tuple[str, ...]] = {}
        self._locks = locks_in(settings)
        self._late = max(LATE_TICKS * settings.poll_tick, 60)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._stand_by, name="schedule", daemon=True)
        self._elected = False
        self._unsettled: Problem | None = None
        self._batches = BatchSchedule(Batches(settings.data_dir), settings.poll_tick)
        self._closing = DayClosing(settings.data_dir)

    def start(self) -> None:
        """Begin to stand for election, and to poll once elected."""
        self._thread.start()

    def status(self) -> ScheduleState:
        """How the schedule stands, for :mod:`store.web.health`."""
        pauses = self._pauses()
        reasons = [f"{name} is paused {pause}" for name, pause in sorted(pauses.items())]
        reasons += self._batches.reasons()
        reasons += dict.fromkeys(chain.from_iterable(self._refused.copy().values()))
        reasons += [self._closing.reason] if self._closing.reason else []
        if self._unlocked:
            reasons.append(
                f"Nothing is polled on schedule, for the folder .locks {self._unlocked}."
            )
        reasons += [self._fault] if self._fault else []
        for name, idle_since in sorted(self._idle_since.copy().items()):
            if time.monotonic() > idle_since + self._late:
                reasons.append(f"What is due of {name} is not looked at; see the log.")
        alive = self._thread.is_alive()
        if not alive:
            reasons.append("The schedule does not run; restart the server.")
        due = self._due.copy() if self._elected else {}
        since = rfc3339(self._begun)
        return ScheduleState(alive, self._elected, since, tuple(reasons), pauses, due)

    def stop(self) -> None:
        """End every wait and poll, and give what is under way some seconds to be recorded."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(STOP_TIMEOUT)

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

    def _stand_by(self) -> None:
        """Try to be the one process that polls, until stopped; whatever fails is tried again."""
        while not self._stop.is_set():
            try:
                with leased(self._locks / LOCK) as elected:
                    self._unlocked = None
                    if elected:
                        with self._surviving():
                            self._serve()
                    else:
                        self._fault = None
            except Exception as error:  # noqa: BLE001 - any would be the end of all polling
                reason = getattr(error, "strerror", None) or type(error).__name__
                why = f"cannot be locked: {reason}"
                if why != self._unlocked:
                    log.error("%s %s", self._locks, why)  # noqa: TRY400 - a sentence, not a trace
                self._unlocked = why
            self._wait_a_second()

    @contextmanager
    def _surviving(self) -> Iterator[None]:
        """Let no fault of the block end the thread, which nobody would start again."""
        try:
            yield
        except Exception as error:
            fault = f"Polling on schedule has a fault ({type(error).__name__}); the log says more."
            if fault != self._fault:
                log.exception("polling on schedule has a fault, and goes on when it can")
            self._fault = fault

    def _serve(self) -> None:
        """Keep a job for each assistant of models.json until stopped."""
        log.info("this process polls on schedule")
        if owner := other_owner(self._settings):
            log.warning("%s, whose data it is, cannot use what root adds", owner)
        logging.getLogger("apscheduler").setLevel(logging.ERROR)  # each round has a line of ours
        scheduler = BackgroundScheduler(
            timezone=UTC,
            executors={"default": ThreadPoolExecutor(64)},
            job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None},
        )
        scheduler.start()
        self._elected = True
        try:
            looked = -math.inf
            while not self._stop.is_set():
                if time.monotonic() >= looked + self._settings.poll_tick:
                    looked = time.monotonic()
                    with self._surviving():
                        self._look(scheduler)
                self._wait_a_second()
        finally:
            self._elected = False
            scheduler.shutdown(wait=True)
            self._idle_since.clear()

    def _look(self, scheduler: BackgroundScheduler) -> None:
        """Follow models.json and close days; when both went well, no fault is left."""
        self._keep_jobs(scheduler)
        self._closing.look(confirmed_time(self._clock, self._store.snapshot.catalogue))
        self._fault = None

    def _wait_a_second(self) -> None:
        """Wait a moment; when the main thread has ended, by whatever way, stop as well."""
        self._stop.wait(min(1.0, self._settings.poll_tick))
        if not threading.main_thread().is_alive():
            self._stop.set()

    def _keep_jobs(self, scheduler: BackgroundScheduler) -> None:
        """Give every assistant a job, and none to what is no assistant any more."""
        self._store.keep_current()
        unsettled = self._store.snapshot.unsettled
        if unsettled and unsettled != self._unsettled:
            log.warning("nothing is polled until this is mended: %s", unsettled)
        self._unsettled = unsettled
        wanted = {assistant.name for assistant in self._store.snapshot.catalogue.assistants}
        wanted |= self._batches.names()
        running = {job.id for job in scheduler.get_jobs()}
        for name in running - wanted:
            scheduler.remove_job(name)
        for by_name in (self._paused, self._recorded, self._refused, self._due, self._idle_since):
            for name in by_name.keys() - wanted:
                del by_name[name]
        now = datetime.now(UTC)
        for job in scheduler.get_jobs():
            if job.next_run_time > now + timedelta(seconds=2 * self._settings.poll_tick):
                job.modify(next_run_time=now)  # the clock was set back
        for name in sorted(wanted - running):
            self._idle_since[name] = time.monotonic()
            scheduler.add_job(
                self._job,
                "interval",
                seconds=self._settings.poll_tick,
                id=name,
                args=[name],
                next_run_time=now,
            )

    def _job(self, name: str) -> None:
        """Look after one assistant; while that lasts, its job is not idle."""
        self._idle_since[name] = math.inf
        try:
            self._poll(name)
        finally:
            self._idle_since[name] = time.monotonic()

    def _poll(self, name: str) -> None:
        """Look after an assistant's batches and, unless it rests, poll due pairs."""
        catalogue = self._store.snapshot.catalogue
        assistant = next((a for a in catalogue.assistants if a.name == name), None)
        if self._stop.is_set() or self._store.snapshot.unsettled:
            return
        try:
            if collected := self._batches.look_after(name, self._work(catalogue)):
                self._follow(name, collected)
            if assistant is None:
                return
            summary = self._run(catalogue, assistant)
        except (Unready, SettingsError) as error:
            self._rest(name, HOUR, str(error), "it lacks what it needs; see the log")
        except (HistoryError, OSError) as error:
            self._rest(name, HOUR, str(error), "history or .locks cannot be written; see the log")
        except Exception:  # what it was paid for may not have been recorded
            log.exception("polling %s failed unexpectedly", name)
            self._rest(name, HOUR, UNEXPECTED, UNEXPECTED)
        else:
            self._follow(name, summary)

    def _follow(self, name: str, summary: RunSummary | None) -> None:
        """Say what a round came to, if anything was asked or held back, and rest if it must be."""
        if summary is None or not (summary.polled or summary.reasons or summary.paused):
            return
        if summary.polled or summary.reasons:
            reasons = "".join(f"; {what}: {why}" for what, why in sorted(summary.reasons.items()))
            level = logging.WARNING if reasons else logging.INFO
            log.log(level, "%s: %d asked, %s%s", name, summary.polled, summary, reasons)
        if summary.paused and summary.rest is None:
            self._rest(name, HOUR, summary.paused, summary.paused)

    def _work(self, catalogue: Catalogue) -> BatchWork:
        store, files = self._store, self._batches.files
        accounts = daily_account(
            self._settings,
            catalogue,
            lambda day: usd_on(day, store.snapshot.polled.values()),
            self._clock,
        )
        deps = Dependencies(
            record=store.record,
            check_appendable=store.history.check_appendable,
            states_of=lambda slug: store.poll_states(slug, catalogue, self._clock.now()),
            leases=Leases(self._locks),
            secret=self._settings.secret,
            proxy=self._settings.proxy,
            stop=self._stop,
            clock=self._clock,
            accounts=accounts,
            under_way=lambda: under_way(files.all(), catalogue),
        )
        return BatchWork(files=files, polling=deps, history=store.history)

    def _run(self, catalogue: Catalogue, assistant: Assistant) -> RunSummary | None:
        work = self._work(catalogue)
        deps = work.polling
        pairs = [Pair(slug, category, assistant) for slug, category in catalogue.categories.items()]
        stands, _ = look(catalogue.categories, deps.states_of)
        rounds = Rounds.of(catalogue.site)
        free = not_under_way(pairs, self._batches.files, catalogue)
        due: Sequence[Pair] = stands.due(free, rounds, self._clock.now())
        self._due[assistant.name] = len(due)
        share = math.ceil(len(pairs) * rounds.most * self._settings.poll_tick / DAY)
        most = max(share, MOST_ITEMS) if assistant.batch else share
        due = self._recordable(assistant.name, due, most, deps)
        self._heed(assistant.name, stands)
        if assistant.name in self._pauses():
            return None
        if assistant.batch:
            due = self._batches.left_to_ask(due, stands, rounds, work)
        summary = run(due[:share], deps, rounds).get(assistant.name)
        if summary and summary.rest is not None:
            self._heed(assistant.name, look(catalogue.categories, deps.states_of)[0])
        return summary

    def _recordable(
        self, name: str, due: Sequence[Pair], most: int, deps: Dependencies
    ) -> Sequence[Pair]:
        """Return an assistant's first pairs, at most so many, whose answers history could take.

        Those before them would be paid for and lost; why is logged once and stands in health.
        """
        recordable: list[Pair] = []
        refusals: dict[str, None] = {}
        for pair in due:
            if len(recordable) == most:
                break
            try:
                deps.check_appendable(pair.slug, rfc3339(self._clock.now()))
            except HistoryError as error:
                refusals[f"Some of what is due is not asked: {error}."] = None
            else:
                recordable.append(pair)
        for sentence in refusals.keys() - {*chain.from_iterable(self._refused.copy().values())}:
            log.error("%s", sentence)
        self._refused[name] = tuple(refusals)
        return recordable

    def _heed(self, name: str, stands: DuePolls) -> None:
        """Take in the pause that an assistant's polls call for, or that there is none any more."""
        pause = stands.pause_of(name, self._clock.now())
        if pause is None:
            self._recorded.pop(name, None)
        elif pause != self._recorded.get(name):
            self._recorded[name] = pause
            log.warning("%s is paused %s", name, pause)

    def _rest(self, name: str, seconds: float, reason: str, public: str) -> None:
        """Leave an assistant alone for a while; say why in the log, and ``public`` to anybody."""
        until = self._clock.now() + timedelta(seconds=seconds)
        self._paused[name] = Pause(until, public)
        log.warning("%s is paused %s", name, Pause(until, reason))

    def _pauses(self) -> dict[str, Pause]:
        """The pauses that are not over, by assistant."""
        now = self._clock.now()
        pauses = self._paused.copy() | self._recorded
        return {name: pause for name, pause in pauses.items() if pause.until > now}


def other_owner(settings: Settings) -> str | None:
    """The user whom the history belongs to, if he could not use what we, as root, add to it."""
    history = settings.data_dir / "history"
    owner = (history if history.is_dir() else settings.data_dir).stat().st_uid
    if os.geteuid() != 0 or owner == 0:
        return None
    try:
        return pwd.getpwuid(owner).pw_name
    except KeyError:  # a container that knows root alone
        return None
