"""A turn with an assistant, its lock held: batches followed, what is due read, then asked."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Event

from msgspec import Struct, field

from store.files import Catalogue
from store.polls.batch_files import BatchFiles
from store.polls.batches import WORTH_IT, Batching, cost_of
from store.polls.clocks import Clock
from store.polls.due import DuePolls, Key, Pair, Rounds
from store.polls.locks import locks_in, turn
from store.polls.poller import MOST, Desk, PollLog, Record, Summary, Turn
from store.polls.prices import missing_prices
from store.polls.spending import Budget
from store.records import Assistant
from store.settings import Settings
from store.times import rfc3339


class Plan(Struct, kw_only=True):
    """What to ask an assistant in one turn.

    ``waiting`` are the pairs to ask; without them it is what is due by ``rounds``, in batches where
    that is worth it. At most ``most`` are asked. A paused assistant is asked one of them if
    ``through``, but not where its provider set the time. ``follow`` looks after its batches first,
    ``cancel`` ends them.
    """

    waiting: deque[Pair] | None = None
    rounds: Rounds | None = None
    most: int = MOST
    through: bool = False
    follow: bool = True
    cancel: bool = False
    skip: set[Key] = field(default_factory=set)


def take_turn(
    desk: Desk, name: str, plan: Plan, summary: Summary, notify: Callable[[], None] = lambda: None
) -> bool:
    """Wait for an assistant's lock, then look after it; return ``False`` if stopped before that.

    What becomes of it goes into the ``summary``, which has what the run spent on it already;
    ``notify`` is called if somebody else has the lock.

    Raises:
        HistoryError, OSError: it cannot be known what was asked, or a lock or batch not be used.
        Unready, SettingsError: the assistant lacks what it needs.
    """
    with turn(desk.locks, name, desk.stop, notify) as is_held:
        if not is_held:
            return False
        batching = Batching(desk, name, summary)
        if plan.cancel:
            batching.cancel()
        if plan.follow:
            batching.follow()
        assistant = next((a for a in desk.catalogue.assistants if a.name == name), None)
        if assistant and not (plan.cancel or desk.stop.is_set()):
            _ask(desk, assistant, plan, batching)
        return True


def _ask(desk: Desk, assistant: Assistant, plan: Plan, batching: Batching) -> None:
    name, now, summary = assistant.name, desk.clock.now(), batching.summary
    stands, _ = desk.log.look(desk.catalogue)
    under_way = desk.files.under_way(desk.catalogue) | plan.skip
    queue = plan.waiting
    if queue is None:
        categories = desk.catalogue.categories.items()
        pairs = [Pair(slug, category, assistant) for slug, category in categories]
        free = [pair for pair in pairs if pair.key not in under_way]
        queue = deque(stands.due(free, plan.rounds or Rounds.of(desk.catalogue.site), now))
    summary.due = len(queue)
    summary.pause = stands.pause_of(name, now)
    if summary.pause and (summary.pause.stated or not plan.through):
        way = f'; `flask poll --due --model "{name}"` asks one question first'
        summary.paused = f"{summary.pause}{'' if summary.pause.stated else way}"
        return
    is_batch = plan.waiting is None and assistant.batch and len(queue) >= WORTH_IT
    if is_batch and not (summary.pause or desk.files.pause_of(assistant, now)):
        batching.begin(list(queue), _share(desk, assistant, stands, summary))
        return
    ask = Turn(
        desk,
        desk.sender(assistant),
        queue,
        stands,
        summary,
        rounds=plan.rounds,
        skip=under_way,
        most=1 if summary.pause else plan.most,
    )
    ask.take()
    plan.through = plan.through and not summary.pause  # one question, whatever came of it
    plan.skip |= ask.refused


def _share(desk: Desk, assistant: Assistant, stands: DuePolls, summary: Summary) -> float | None:
    """Return the US dollars that an assistant's batches may take now; ``None`` without a limit.

    Each assistant has the part of a limit that asks all of them equally many questions, and takes
    categories in the same order: else one-sided rankings would follow.
    """
    budget, name = desk.budget, assistant.name
    question = next((category.question for category in desk.catalogue.categories.values()), "")
    priced = [each for each in desk.catalogue.assistants if not missing_prices(each)]
    total = sum(cost_of(each, question) for each in priced)
    part = cost_of(assistant, question) / total if total else 1
    shares = []
    if budget.daily_usd is not None:
        today = rfc3339(desk.clock.now())[:10]
        spent = sum(s.usd for s in stands.of_model(name) if s.polled_at[:10] == today)
        reserved = sum(batch.reserved for batch in desk.files.open_of(name, desk.catalogue)) / 1e6
        shares.append(budget.daily_usd * part - spent - reserved)
    if budget.run_usd is not None:
        shares.append(budget.run_usd * part - summary.usd - summary.batched_usd)
    return min(shares, default=None)


def desk_of(  # noqa: PLR0913 - what differs between a server, a command and tests
    settings: Settings,
    catalogue: Catalogue,
    poll_log: PollLog,
    files: BatchFiles,
    *,
    record: Record,
    clock: Clock,
    stop: Event,
    run_usd: float | None = None,
) -> Desk:
    """Return the desk of a data directory, with the limits of money that its site.json sets."""
    locks = locks_in(settings)
    return Desk(
        record=record,
        log=poll_log,
        files=files,
        catalogue=catalogue,
        directory=settings.data_dir,
        locks=locks,
        secret=settings.secret,
        stop=stop,
        clock=clock,
        proxy=settings.proxy,
        budget=Budget(
            locks,
            lambda: rfc3339(clock.now())[:10],
            lambda day: poll_log.usd_on(day) + files.reserved_usd(day),
            catalogue.site.daily_usd,
            run_usd,
        ),
    )
