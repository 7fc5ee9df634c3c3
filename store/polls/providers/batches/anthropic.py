"""Anthropic's Message Batches API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from store.polls.providers import batches, messages
from store.polls.providers import envelopes as wire
from store.polls.providers.batches import UNASKED, Item, Page, Remote
from store.records import Failure

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from store.polls.providers import Request
    from store.polls.providers.batches import Result
    from store.records import Assistant

MOST = 100_000
LABELLED = False
HOME = "messages/batches"
STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""The status of each kind of error, 500 for any other; https://docs.claude.com/en/api/errors."""


def build_upload(_assistant: Assistant, _items: Sequence[Item], _key: str | None) -> None:
    """Nothing: the batch itself holds its items."""


# https://docs.claude.com/en/api/creating-message-batches
def build_batch(
    assistant: Assistant, items: Sequence[Item], _label: str, _file: str | None, key: str | None
) -> Request:
    """The batch; nothing but its items' ids says whose it is."""
    body = {"requests": [{"custom_id": item.id, "params": item.body} for item in items]}
    return batches.post(assistant, HOME, messages.headers(key), body)


def build_look(assistant: Assistant, batch: str, key: str | None) -> Request:
    """The look at a batch."""
    return batches.get(assistant, f"{HOME}/{batch}", messages.headers(key))


def build_cancel(assistant: Assistant, batch: str, key: str | None) -> Request:
    """The end of a batch."""
    return batches.post(assistant, f"{HOME}/{batch}/cancel", messages.headers(key))


def build_list(assistant: Assistant, after: str | None, key: str | None) -> Request:
    """A page of a hundred batches."""
    more = f"&{batches.query('after_id', after)}" if after else ""
    return batches.get(assistant, f"{HOME}?limit=100{more}", messages.headers(key))


def build_download(assistant: Assistant, file: str, key: str | None) -> Request:
    """The results of a batch; its ``results_url`` is not asked, for it would get our key."""
    return batches.get(assistant, f"{HOME}/{file}/results", messages.headers(key))


DONE = ("succeeded", "errored", "canceled", "expired")


def read_batch(found: dict[str, Any]) -> Remote | None:
    """A batch."""
    known = batches.identity(found.get("id"))
    if known is None or "processing_status" not in found:
        return None
    counts = wire.members(found.get("request_counts"))
    done = sum(batches.number(counts.get(kind)) for kind in DONE)
    has_ended = found["processing_status"] == "ended"
    return Remote(
        id=known,
        state="ended" if has_ended else "open",
        created=batches.moment(found.get("created_at")),
        asked=batches.number(counts.get("processing")) + done,
        done=done,
        files=(known,) if has_ended else (),
    )


def read_list(body: bytes) -> Page | None:
    """A page of batches."""
    return batches.page_by_id(batches.opened(body), read_batch)


# https://docs.claude.com/en/api/retrieving-message-batch-results
def read_results(body: bytes) -> Iterator[Result]:
    """Each line's result; an error is the whole body that its status would have come with."""
    odd = Failure("http", "The provider's batch gave a result of no known kind.")
    for line in batches.lines(body):
        identifier, result = wire.text(line.get("custom_id")), wire.members(line.get("result"))
        kind = wire.text(result.get("type"))
        if kind == "succeeded":
            yield identifier, batches.response(200, result.get("message"))
        elif kind == "errored":
            error = wire.members(result.get("error"))
            inner = wire.members(error.get("error")) or error
            status = STATUSES.get(wire.text(inner.get("type")), 500)
            yield identifier, batches.response(status, {"error": inner})
        else:
            kinds = {"canceled": UNASKED["cancelled"], "expired": UNASKED["expired"]}
            yield identifier, kinds.get(kind, odd)


def next_file(_file: str, _body: bytes) -> None:
    """Nothing: the results are one file."""
