"""A turn with an assistant, its lock held: batches followed, what is due read, then asked."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from msgspec import Struct, field

from store.polls.batches import WORTH_IT, Batching, cost_of, share_of
from store.polls.due import Key, Pair, Rounds
from store.polls.locks import locks_in, turn
from store.polls.poller import MOST, Desk, Summary, Turn
from store.polls.prices import missing_prices
from store.polls.spending import Budget
from store.times import rfc3339

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from threading import Event

    from store.files import Catalogue
    from store.polls.batch_files import BatchFiles
    from store.polls.clocks import Clock
    from store.polls.due import DuePolls
    from store.polls.poller import PollLog, Record
    from store.records import Assistant
    from store.settings import Settings


class Plan(Struct, kw_only=True):
    """What to ask an assistant in one turn.

    ``waiting`` are the pairs to ask; without them it is what is due by ``rounds``. At most ``most``
    are asked. A paused assistant is asked one of them if ``through``, but not where its provider
    set the time. ``follow`` looks after its batches first, ``cancel`` ends them, ``batch`` sends
    new ones.
    """

    waiting: deque[Pair] | None = None
    rounds: Rounds | None = None
    most: int = MOST
    through: bool = False
    follow: bool = True
    cancel: bool = False
    batch: bool = True
    skip: set[Key] = field(default_factory=set)


def take_turn(
    desk: Desk,
    files: BatchFiles,
    name: str,
    plan: Plan,
    *,
    used_usd: float = 0,
    done: Callable[[], None] = lambda: None,
    waiting: Callable[[], None] = lambda: None,
) -> Summary | None:
    """Wait for an assistant's lock, then look after it; ``None`` when stopped before that.

    ``used_usd`` is what the run spent on it already.

    Raises:
        HistoryError, OSError: it cannot be known what was asked, or a lock or batch not be used.
        Unready, SettingsError: the assistant lacks what it needs.
    """
    with turn(desk.locks, name, desk.stop, waiting) as is_held:
        if not is_held:
            return None
        batching = Batching(desk, files, name)
        if plan.cancel:
            batching.cancel()
        if plan.follow:
            batching.follow()
        summary = batching.summary
        assistant = next((a for a in desk.catalogue.assistants if a.name == name), None)
        if assistant and not (plan.cancel or desk.stop.is_set()):
            _ask(desk, files, assistant, plan, summary, used_usd, done)
        return summary


def _ask(
    desk: Desk,
    files: BatchFiles,
    assistant: Assistant,
    plan: Plan,
    summary: Summary,
    used_usd: float,
    done: Callable[[], None],
) -> None:
    name, now = assistant.name, desk.clock.now()
    stands, _ = desk.log.look(desk.catalogue)
    under_way = files.under_way(desk.catalogue) | plan.skip
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
    is_batch = plan.batch and assistant.batch and len(queue) >= WORTH_IT and not summary.pause
    if is_batch and _begin(desk, files, assistant, list(queue), stands, summary, used_usd):
        return
    ask = Turn(
        desk,
        desk.sender(assistant),
        queue,
        stands,
        rounds=plan.rounds,
        skip=under_way,
        most=1 if summary.pause else plan.most,
        done=done,
    )
    summary.add(ask.take())
    plan.through = plan.through and not summary.pause  # one question, whatever came of it
    plan.skip |= ask.refused


def _begin(
    desk: Desk,
    files: BatchFiles,
    assistant: Assistant,
    due: Sequence[Pair],
    stands: DuePolls,
    summary: Summary,
    used_usd: float,
) -> bool:
    """Send what is due as a batch; return whether nothing is to be asked directly now."""
    if files.pause_of(assistant, desk.clock.now()):
        return False
    share = batch_share(desk, files, assistant, stands, used_usd)
    batch = Batching(desk, files, assistant.name)
    summary.batched, summary.batched_usd, reason = batch.begin(due, share)
    if reason and not summary.batched and not files.pause_of(assistant, desk.clock.now()):
        summary.limit = reason
    elif reason:
        summary.wrong.append(f"No batch of {assistant.name} was sent: {reason}")
    return True


def batch_share(
    desk: Desk, files: BatchFiles, assistant: Assistant, stands: DuePolls, used_usd: float
) -> float | None:
    """Return the US dollars that an assistant's batches may take now; ``None`` without a limit.

    Each assistant has the part of a limit that asks all of them equally many questions, and takes
    categories in the same order: else one-sided rankings would follow.
    """
    budget, name = desk.budget, assistant.name
    categories = desk.catalogue.categories
    question = next((category.question for category in categories.values()), "")
    costs = {
        each.name: float(cost_of(each, question))
        for each in desk.catalogue.assistants
        if not missing_prices(each)
    }
    shares = []
    if budget.daily_usd is not None:
        today = rfc3339(desk.clock.now())[:10]
        spent = sum(s.usd for s in stands.of_model(name) if s.polled_at[:10] == today)
        reserved = sum(batch.reserved for batch in files.open_of(name, desk.catalogue)) / 1e6
        shares.append(share_of(budget.daily_usd, costs, name) - spent - reserved)
    if budget.run_usd is not None:
        shares.append(share_of(budget.run_usd, costs, name) - used_usd)
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
        catalogue=catalogue,
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
