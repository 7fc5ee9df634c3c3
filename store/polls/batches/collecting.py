"""Results of a batch to polls in history, each once, however often this is begun anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

from store.polls.asking import Asked, asked_in_batch
from store.polls.batches.submitting import cost_at_most, is_well, said
from store.polls.providers import Response
from store.polls.providers.batches import UNASKED, matched
from store.polls.runner import RunSummary, record
from store.polls.spending import at_batch_price, micros

if TYPE_CHECKING:
    from store.polls.batches.files import Batch
    from store.polls.batches.work import BatchWork, ProviderLine
    from store.polls.providers.batches import Remote, Result
    from store.records import Failure

MOST_FILES = 100
"""Files or pages of results that are read of one batch; one that has more never ends."""


def results_of(remote: Remote, line: ProviderLine) -> list[Result] | str:
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


def collect(
    batch: Batch, remote: Remote, found: list[Result], work: BatchWork, key: str | None
) -> RunSummary:
    """Record what is not recorded yet, then write down that all is, then settle the cost.

    Raises:
        HistoryError: a record could not be written; the next attempt goes on from there.
        OSError: the batch could not be written down; the next attempt records nothing again.
    """
    ids = [batch.identity(n) for n in range(len(batch.items))]
    outcomes = matched(ids, found, remote.unasked)
    priced = at_batch_price(batch.assistant)
    summary = RunSummary()
    spent = 0
    noted: dict[str, set[str]] = {}
    for identity, item in zip(ids, batch.items, strict=True):
        came, note = outcomes[identity], f"batch {identity}"
        asked = asked_in_batch(priced, item, came, note, key)
        spent += _cost(asked, came, cost_at_most(batch.assistant, item.question))
        if item.slug not in noted:
            noted[item.slug] = work.noted(item.slug)
        if note not in noted[item.slug]:
            if summary.rest is not None:  # another of the batch has its assistant rest already
                asked = Asked(asked.poll)
            record(asked, work.polling)
            summary.count(asked)
    late = any(came in (UNASKED["expired"], UNASKED["cancelled"]) for came in outcomes.values())
    work.close(batch, "collected", spent=spent, done=len(ids), late=late or batch.late)
    return summary


def _cost(asked: Asked, came: Response | Failure, most: int) -> int:
    """What an item cost in micro-dollars: the most it may, where it may have cost something."""
    usage = asked.poll.usage
    if usage and usage.usd is not None:
        return micros(usage.usd)
    is_free = came.status >= 400 if isinstance(came, Response) else came in UNASKED.values()  # noqa: PLR2004
    return 0 if is_free and came != UNASKED["missing"] else most
