"""Batches on their way: found again after a crash, waited for, cancelled when late, collected."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from store.history import HistoryError
from store.polls.asking import Asked, Unready, asked_in_batch
from store.polls.batches.files import seconds_since
from store.polls.batches.submitting import cost_at_most, is_well, said
from store.polls.batches.work import ProviderLine
from store.polls.providers import Response
from store.polls.providers.batches import UNASKED, matched, opened
from store.polls.runner import RunSummary, record
from store.polls.spending import at_batch_price, micros
from store.settings import SettingsError
from store.times import rfc3339

if TYPE_CHECKING:
    from store.polls.batches.files import Batch
    from store.polls.batches.work import BatchWork
    from store.polls.providers.batches import Remote, Result
    from store.records import Failure

HOUR = 3600.0
CANCEL_AFTER = 26 * HOUR
"""Seconds after which a batch is cancelled, so that what is left is asked directly: providers
promise 24 hours, and need a while to put the results together."""
GIVE_UP_AFTER = 50 * HOUR
"""Seconds after which a batch that neither ends nor can be cancelled is given up: Gemini's end
after 48 hours."""
RECHECK_AFTER = 900.0
"""Seconds between two searches in vain that say that a batch was never made, and for which what was
cancelled may still turn out to be answered (xAI's did within 20 seconds)."""
ADOPT_WITHIN = 26 * HOUR
"""Seconds for which a batch taken to be never made is still looked for, and adopted if found."""
CLOCK_SLACK = 600.0
"""Seconds by which a provider's clock may be behind ours."""
FORGET_AFTER = 31 * 24 * HOUR
"""Seconds for which a batch that is over is remembered: providers keep results for 30 days."""
MOST_PAGES = 50
"""Pages of a hundred batches that are searched."""
MOST_FILES = 100
"""Files or pages of results that are read of one batch; one that has more never ends."""


class Followed(Struct):
    """What came of a look at an assistant's batches: new records, and what is wrong."""

    summary: RunSummary
    wrong: list[str]


def follow(name: str, work: BatchWork) -> Followed:
    """Look after all batches of an assistant, by the name it was asked under.

    Raises:
        HistoryError: an answer could not be recorded though all spoke for it; it is fetched again.
        OSError: a batch cannot be read or written.
    """
    came = Followed(RunSummary(), [])
    for batch in work.files.all():
        if batch.name == name:
            _follow_one(batch, work, came)
    return came


def _follow_one(batch: Batch, work: BatchWork, came: Followed) -> None:
    now = work.polling.clock.now()
    if not (batch.is_open or _may_appear(batch, now)):
        if batch.over_at and seconds_since(batch.over_at, now) > FORGET_AFTER:
            work.files.forget(batch)
        return
    if fault := work.polling.clock.fault():
        came.wrong.append(fault)
        return
    try:
        line = ProviderLine(batch.assistant, work.polling)
    except (Unready, SettingsError) as error:
        came.wrong.append(f"A batch of {batch.name} cannot be looked after: {error}.")
        return
    found = batch if batch.remote else _searched(batch, work, line)
    if found:
        _looked_after(found, work, line, came)


def _may_appear(batch: Batch, now: datetime) -> bool:
    """Whether a batch that was not found may still come to light, in a list that lags behind."""
    unseen = batch.state == "void" and batch.remote is None and batch.missed_at is not None
    return unseen and batch.age(now) < ADOPT_WITHIN


def _searched(batch: Batch, work: BatchWork, line: ProviderLine) -> Batch | None:
    """The batch with the id that its provider gave it, if it can be found and so was made."""
    found = _find(batch, work, line)
    if isinstance(found, str):
        adopted = msgspec.structs.replace(batch, state="submitted", remote=found, over_at=None)
        work.files.write(adopted)
        if batch.state == "void":
            work.hold(was=0, now=batch.reserved)
        return adopted
    now = work.polling.clock.now()
    if found is None:
        if batch.is_open and batch.age(now) > GIVE_UP_AFTER:
            work.close(batch, "lost", why="Its provider did not say whether there is such a batch.")
        return None
    known, batch = batch.not_ours, msgspec.structs.replace(batch, not_ours=found)
    if batch.state == "void":
        if found != known:
            work.files.write(batch)
    elif batch.missed_at is None:
        work.files.write(msgspec.structs.replace(batch, missed_at=rfc3339(now)))
    elif seconds_since(batch.missed_at, now) >= RECHECK_AFTER:
        work.close(batch, "void", why="The provider never got it, so nothing was asked.")
    return None


def _find(batch: Batch, work: BatchWork, line: ProviderLine) -> str | tuple[str, ...] | None:
    """The id of a batch; if there is none, those that are not it; ``None`` if nobody can say."""
    listed = _listed(batch, line)
    if listed is None:
        return None
    if line.queue.LABELLED:
        return next((each.id for each in listed if each.label == batch.key), ())
    known = {*batch.not_ours, *(other.remote for other in work.files.all())}
    others = batch.not_ours
    for suspect in listed:
        if suspect.asked != len(batch.items) or suspect.id in known:
            continue
        if suspect.state == "open":
            return None
        found = _results(suspect, line)
        if isinstance(found, str):
            return None
        if any(identifier.startswith(f"{batch.key}-") for identifier, _ in found):
            return suspect.id
        others = (*others, suspect.id)
    return others


def _listed(batch: Batch, line: ProviderLine) -> list[Remote] | None:
    """The provider's batches since this one was to be made, if they can be listed to the end."""
    earliest = datetime.fromisoformat(batch.intended_at).timestamp() - CLOCK_SLACK
    found: list[Remote] = []
    after: str | None = None
    for _ in range(MOST_PAGES):
        came = line.call(line.queue.build_list(after))
        page = line.queue.read_list(came.body) if is_well(came) else None
        if page is None:
            return None
        recent = [b for b in page.batches if b.created is None or b.created >= earliest]
        found += recent
        if page.following is None or len(recent) < len(page.batches):
            return found
        after = page.following
    return None


def _looked_after(batch: Batch, work: BatchWork, line: ProviderLine, came: Followed) -> None:
    """Ask how a batch stands, and do what follows from that."""
    assert batch.remote is not None  # noqa: S101 - it was found
    answered = line.call(line.queue.build_look(batch.remote))
    remote = line.queue.read_batch(opened(answered.body)) if is_well(answered) else None
    if fault := work.polling.clock.fault():
        came.wrong.append(fault)
    elif remote is None or remote.id != batch.remote:
        came.wrong.append(f"A batch of {batch.name} cannot be looked at: {said(answered)}")
        # one that was just made may not be known everywhere yet
        if isinstance(answered, Response) and answered.status == 404:  # noqa: PLR2004 - HTTP's own
            _give_up(batch, "The provider does not know it (is the key of another project?).", work)
    elif remote.state == "failed":
        why = f"The provider's batch failed before it ran ({remote.why or 'it gave no reason'})."
        came.wrong.append(f"{batch.name}: {why}")
        work.close(batch, "void", why=why, refused=True)
    elif remote.state == "open" or not _is_whole(batch, remote, work):
        _wait(batch, remote, work, line, came)
    else:
        _collect(batch, remote, work, line, came)


def _is_whole(batch: Batch, remote: Remote, work: BatchWork) -> bool:
    """Whether a batch that ended says where its results are, and says the same tomorrow."""
    now = work.polling.clock.now()
    if remote.is_settling and batch.age(now) <= GIVE_UP_AFTER:
        return (
            batch.cancelled_at is not None
            and seconds_since(batch.cancelled_at, now) >= RECHECK_AFTER
        )
    has_none = not remote.files and remote.unasked.kind == "http"
    return not has_none or batch.age(now) > CANCEL_AFTER


def _wait(
    batch: Batch, remote: Remote, work: BatchWork, line: ProviderLine, came: Followed
) -> None:
    """Note how far it is; cancel it when it is late, and give it up when even that is of no use."""
    now = work.polling.clock.now()
    cancelled_at = batch.cancelled_at or (rfc3339(now) if remote.is_settling else None)
    seen = msgspec.structs.replace(batch, done=remote.done, cancelled_at=cancelled_at)
    if seen != batch:
        work.files.write(seen)
    batch = seen
    if batch.age(now) > CANCEL_AFTER:
        came.wrong.append(stuck(batch))
        if not _give_up(batch, "It neither ended nor could be cancelled.", work):
            cancel(batch, work, line)


def _give_up(batch: Batch, why: str, work: BatchWork) -> bool:
    """Whether a batch is past all hope; then it is lost, and counts as paid."""
    if batch.age(work.polling.clock.now()) <= GIVE_UP_AFTER:
        return False
    work.close(batch, "lost", why=why, late=True)
    return True


def stuck(batch: Batch) -> str:
    """The sentence on a batch that is late."""
    return f"A batch of {batch.name} is with its provider since {batch.intended_at} ({batch.key})."


def cancel(batch: Batch, work: BatchWork, line: ProviderLine) -> str | None:
    """Ask the provider to end a batch; returns why it would not, in a sentence."""
    assert batch.remote is not None  # noqa: S101 - only what a provider has can be cancelled
    came = line.call(line.queue.build_cancel(batch.remote))
    if not is_well(came):
        return said(came)
    if batch.cancelled_at is None:
        now = rfc3339(work.polling.clock.now())
        work.files.write(msgspec.structs.replace(batch, cancelled_at=now, late=True))
    return None


def _results(remote: Remote, line: ProviderLine) -> list[Result] | str:
    """All that a provider says of a batch's items, or a sentence on why it cannot be had now."""
    found: list[Result] = []
    files = list(remote.files)
    for count, file in enumerate(files, start=1):
        came = line.call(line.queue.build_download(file))
        if not is_well(came):
            return said(came)
        found += line.queue.read_results(came.body)
        following = line.queue.next_file(file, came.body)
        if following and (following in files or count >= MOST_FILES):
            return "The provider's results have no end."
        files += [following] if following else []
    return found


def _collect(
    batch: Batch, remote: Remote, work: BatchWork, line: ProviderLine, came: Followed
) -> None:
    """Record what is not recorded yet, then write down that all is, then settle the cost.

    Where history cannot take an answer, it and the batch are left until it can, or until the batch
    is given up; the others are recorded. Nothing is downloaded for what cannot be recorded.

    Raises:
        HistoryError: a record could not be written; the next attempt goes on from there.
        OSError: the batch could not be written down; the next attempt records nothing again.
    """
    recordable, refusals = _unrecorded(batch, work)
    came.wrong += [
        f"{count} of {len(batch.items)} answers in a batch of {batch.name} are not recorded: {why}"
        for why, count in refusals.items()
    ]
    if refusals and not recordable:
        _give_up(batch, f"Not all of its answers were recorded: {min(refusals)}", work)
        return
    found = _results(remote, line)
    if isinstance(found, str):
        came.wrong.append(f"The results of a batch of {batch.name} cannot be had: {found}")
        _give_up(batch, found, work)
        return
    ids = [batch.identity(n) for n in range(len(batch.items))]
    outcomes = matched(ids, found, remote.unasked)
    priced = at_batch_price(batch.assistant)
    summary = RunSummary()
    spent = 0
    for identity, item in zip(ids, batch.items, strict=True):
        outcome, note = outcomes[identity], f"batch {identity}"
        asked = asked_in_batch(priced, item, outcome, note, line.key)
        spent += _cost(asked, outcome, cost_at_most(batch.assistant, item.question))
        if identity in recordable:
            if summary.rest is not None:  # another of the batch has its assistant rest already
                asked = Asked(asked.poll)
            record(asked, work.polling)
            summary.count(asked)
    came.summary.add(summary)
    if not refusals:
        late = any(each in (UNASKED["expired"], UNASKED["cancelled"]) for each in outcomes.values())
        work.close(batch, "collected", spent=spent, done=len(ids), late=late or batch.late)


def _unrecorded(batch: Batch, work: BatchWork) -> tuple[set[str], Counter[str]]:
    """The items that are not in history and can be, and why others cannot, each so often."""
    noted, now = cache(work.noted), rfc3339(work.polling.clock.now())
    recordable: set[str] = set()
    refusals: Counter[str] = Counter()
    for number, item in enumerate(batch.items):
        try:
            if f"batch {batch.identity(number)}" not in noted(item.slug):
                work.polling.check_appendable(item.slug, now)
                recordable.add(batch.identity(number))
        except HistoryError as error:
            refusals[f"{error}."] += 1
    return recordable, refusals


def _cost(asked: Asked, came: Response | Failure, most: int) -> int:
    """What an item cost in micro-dollars: the most it may, where it may have cost something."""
    usage = asked.poll.usage
    if usage and usage.usd is not None:
        return micros(usage.usd)
    is_free = came.status >= 400 if isinstance(came, Response) else came in UNASKED.values()  # noqa: PLR2004
    return 0 if is_free and came != UNASKED["missing"] else most
