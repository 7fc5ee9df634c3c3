"""The session in which assistants are asked, and the summary of what came of their questions."""

import errno
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta

import msgspec
from msgspec import Struct, field

from store.files import Catalogue
from store.history import HistoryError
from store.ledger import day_after
from store.polls.asking import estimate_reserve
from store.polls.batch_files import BatchFiles
from store.polls.due import Key, Pair, PollingReader, PollingState
from store.polls.locks import FOLDER
from store.polls.providers.wire import Reply
from store.polls.secrets import key_of
from store.polls.sending import FLEX_LIMITS, Limits, RateLimiter, Sender
from store.polls.spending import Budget, at_reduced_price, micros, missing_prices
from store.rankings.poll_states import Pause, cooldown
from store.rankings.sentences import listed
from store.records import Assistant, Poll
from store.settings import Settings, SettingsError
from store.text import rfc3339

SHORT_OF_FILES = (errno.EMFILE, errno.ENFILE)
MOST_FAILURES = 10
"""Failed polls of an assistant without an answer between, after which it is paused, and then asked
without batches: a provider that bills for garbage would else be paid for every category."""
RECORD_SECONDS = 10
"""Seconds for which recording what was paid for is tried again while the process has too many open
files: its other questions soon close theirs."""

ANSWERED = "answered"
IN_BATCH = "in a batch on its way"
SKIPPED = "not asked"
CANCELLED = "cancelled and due again"
ENDING = "told to end; `flask poll --due` collects what was answered"
WITHOUT_POLL = (IN_BATCH, SKIPPED, CANCELLED, ENDING)


class Summary(Struct):
    """The outcomes of an assistant's questions in the turns so far.

    ``outcomes`` counts them, ``reasons`` has the first sentence for each outcome. ``pause``
    says why it is left alone, ``limit`` which spending limit is reached, ``fault`` what keeps it
    from being asked; ``usd`` is what its answers cost, ``unknown_usd`` what is taken for requests
    whose cost nobody knows. ``due`` counts pairs that were due, ``batched`` those of them that
    were sent in batches. ``skipped`` are pairs whose history cannot be read or written, ``wrong``
    has sentences on what may need a person.
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    reasons: dict[str, str] = field(default_factory=dict)
    pause: Pause | None = None
    limit: str | None = None
    fault: str | None = None
    usd: float = 0
    unknown_usd: float = 0
    due: int = 0
    batched: int = 0
    skipped: set[Key] = field(default_factory=set)
    wrong: list[str] = field(default_factory=list)

    def count(self, outcome: str, reason: str | None = None) -> None:
        """Count one question."""
        self.outcomes[outcome] += 1
        if reason:
            self.reasons.setdefault(outcome, reason)

    @property
    def is_over(self) -> bool:
        """True if nothing more should be asked of the assistant now."""
        return bool(self.pause or self.limit or self.fault)

    @property
    def handled(self) -> int:
        """The number of questions that were asked, sent in a batch, or left for a reason."""
        return sum(self.outcomes.values()) + self.batched

    @property
    def polled(self) -> int:
        """The number of polls that were made and recorded."""
        return sum(n for name, n in self.outcomes.items() if name not in WITHOUT_POLL)

    def __str__(self) -> str:
        """Return the counts and the cost, for people."""
        failures = sorted(self.outcomes.keys() - {ANSWERED, *WITHOUT_POLL})
        order = [ANSWERED, *failures, *WITHOUT_POLL]
        counts = [f"{self.outcomes[name]} {name}" for name in order if self.outcomes[name]]
        counts += [f"{self.batched} sent in batches"] if self.batched else []
        counts += [in_usd(self.usd, self.unknown_usd)] if self.usd or self.unknown_usd else []
        return ", ".join(counts)


def in_usd(known: float, unknown: float) -> str:
    """Return a sum of money with what may come to it, for people."""
    more = f" and at most {unknown:.4f} USD of unknown cost" if unknown else ""
    return f"{known:.4f} USD{more}"


class PollSession:
    """All that polling touches: history, batches, locks, keys, the network, the clock, money.

    ``record`` appends polls to history; what it would refuse, ``polling.history.check_appendable``
    refuses before anything is asked. A run may spend ``run_usd``; site.json limits the day.
    """

    def __init__(
        self,
        settings: Settings,
        catalogue: Catalogue,
        polling: PollingReader,
        record: Callable[[Sequence[Poll], str], Sequence[Poll]],
        stop: threading.Event,
        run_usd: float | None = None,
    ) -> None:
        self.settings = settings
        self.catalogue = catalogue
        self.polling = polling
        self.clock = polling.clock
        self.stop = stop
        self.limits = Limits()
        self.locks = settings.data_dir / FOLDER
        self.batches = BatchFiles(settings.data_dir)
        self.budget = Budget(
            self.locks,
            lambda: rfc3339(self.clock.now())[:10],
            self._recorded,
            catalogue.site.daily_usd,
            run_usd,
        )
        self._record = record

    def check_prices(self, assistant: Assistant) -> None:
        """Raise ``SettingsError`` if an assistant cannot be paid under a spending limit."""
        is_limited = (self.budget.daily_usd, self.budget.run_usd) != (None, None)
        if is_limited and (missing := missing_prices(assistant)):
            needed = f"a spending limit needs {listed(missing)} in models.json"
            raise SettingsError(f"{assistant.name}: {needed}")

    def asks_in_batches(self, assistant: Assistant, state: PollingState) -> bool:
        """Return whether what is due of an assistant goes into batches now."""
        if not assistant.batch or state.failures_of(assistant.name) >= MOST_FAILURES:
            return False
        return not self.batches.pause_of(assistant, self.clock.now())

    def reserve_for(
        self, assistant: Assistant, question: str, state: PollingState, *, is_due: bool = True
    ) -> int:
        """Return the micro-dollars that are reserved for a question in the way it is asked now."""
        is_batched = is_due and self.asks_in_batches(assistant, state)
        return estimate_reserve(at_reduced_price(assistant) if is_batched else assistant, question)

    def share_among(
        self,
        assistants: Iterable[Assistant],
        state: PollingState,
        time: datetime,
        *,
        is_due: bool = True,
    ) -> None:
        """Divide spending limits so that all who can be asked by then get as many questions.

        They take categories in the same order, too: else one-sided rankings would follow.
        """
        question = next((category.question for category in self.catalogue.categories.values()), "")
        costs = {
            assistant.name: self.reserve_for(assistant, question, state, is_due=is_due)
            for assistant in assistants
            if self.can_be_asked(assistant, state, time) and not missing_prices(assistant)
        }
        total = sum(costs.values()) or 1
        self.budget.parts = {name: cost / total for name, cost in costs.items() if cost}

    def share_day(self, state: PollingState) -> None:
        """Divide ``daily_usd`` among those that have something due and can be asked today."""
        due = [a for a in self.catalogue.assistants if self.due(self.pairs(a), state)]
        self.share_among(due, state, self.clock.now().replace(hour=23, minute=59, second=59))

    def _recorded(self, day: str) -> Counter[str]:
        """Return the micro-dollars that history and batches have of a UTC day, by assistant."""
        recorded = self.batches.reserved(day, self.catalogue)
        for name, usd in self.polling.usd_on(day).items():
            recorded[name] += micros(usd)
        return recorded

    def sender(self, assistant: Assistant, *, size: int = 0) -> Sender:
        """Return what sends an assistant's requests; ``size`` is that of long replies in bytes.

        Raises:
            SettingsError: its entry in models.json has a fault, or its key is missing or of no use.
        """
        rpm, monotonic = assistant.rpm, time.monotonic
        limits = FLEX_LIMITS if assistant.tier == "flex" else self.limits
        return Sender(
            assistant,
            self.stop,
            secret=key_of(assistant, self.settings.secret),
            proxy=self.settings.proxy,
            limits=msgspec.structs.replace(limits, size=max(limits.size, size)),
            clock=self.clock,
            # one for the whole process: a turn ends sooner than a minute, or than a wait
            pace=self.polling.paces.setdefault((assistant.name, rpm), RateLimiter(rpm, monotonic)),
        )

    def can_be_asked(self, assistant: Assistant, state: PollingState, time: datetime) -> bool:
        """Return whether an assistant has all that it needs, and is not paused at a time."""
        try:
            self.sender(assistant)
        except SettingsError:
            return False
        return state.pause_of(assistant.name, time) is None

    def pairs(self, assistant: Assistant, slugs: Sequence[str] = ()) -> list[Pair]:
        """Return the questions to an assistant in these categories, or in all."""
        categories = self.catalogue.categories
        return [
            Pair(slug, categories[slug], assistant) for slug in dict.fromkeys(slugs or categories)
        ]

    def due(self, pairs: Sequence[Pair], state: PollingState) -> list[Pair]:
        """Return which of these pairs are due and not with a provider, longest waiting first."""
        under_way = self.batches.under_way(self.catalogue)
        free = [pair for pair in pairs if pair.key not in under_way]
        return state.due(free, self.catalogue.site, self.clock.now())

    def append(self, poll: Poll, reply: Reply, summary: Summary, instrument: str | None) -> None:
        """Append the poll of a reply to history with its instrument and pause; then count it.

        Where the clocks differ its time is the earlier of the two, but of no closed day.

        Raises:
            HistoryError, OSError: it is not recorded.
        """
        now = self.clock.now()
        poll = msgspec.structs.replace(poll, instrument=instrument or msgspec.UNSET)
        if reply.at:  # a record from ahead would keep its category from being asked
            now = min(now, reply.at)
            closed = self.polling.history.ledger.last_closed_day
            if rfc3339(now)[:10] <= closed:  # that day is surely over, whatever their clock says
                now = datetime.fromisoformat(f"{day_after(closed)}T00:00:00Z")
        if reply.pause is not None:
            until = rfc3339(now + timedelta(seconds=reply.pause))
            poll = msgspec.structs.replace(poll, cooldown_until=until)
        end = time.monotonic() + RECORD_SECONDS
        while True:
            try:
                [poll] = self._record([poll], rfc3339(now))
            except HistoryError as error:
                number = getattr(error.__cause__, "errno", None)
                if number not in SHORT_OF_FILES or time.monotonic() > end:
                    raise
                time.sleep(0.1)  # also when all is to stop, which would make it a busy loop
            else:
                break
        summary.count(poll.failure or ANSWERED, poll.error)
        summary.usd += (poll.usage.usd or 0) if poll.usage else 0
        summary.pause = summary.pause or cooldown(poll)
