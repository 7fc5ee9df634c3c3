"""Gemini's batch mode."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from store.polls.providers import batches, gemini
from store.polls.providers import envelopes as wire
from store.polls.providers.batches import UNASKED, Item, Page, Remote

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from store.polls.providers import Request
    from store.polls.providers.batches import Result
    from store.records import Assistant

MOST = 100
"""Few, so that the results, which come with the batch, stay small."""
LABELLED = True
PREFIX = "batches/"
ENDS = {"SUCCEEDED": "missing", "CANCELLED": "cancelled", "EXPIRED": "expired"}
"""Why an item has no answer, by how its batch ended; of a failed one none was asked."""


def build_upload(_assistant: Assistant, _items: Sequence[Item], _key: str | None) -> None:
    """Nothing: the batch itself holds its items."""


# https://ai.google.dev/gemini-api/docs/batch-api
def build_batch(
    assistant: Assistant, items: Sequence[Item], label: str, _file: str | None, key: str | None
) -> Request:
    """The batch, under our label."""
    requests = [{"request": item.body, "metadata": {"key": item.id}} for item in items]
    body = {"batch": {"displayName": label, "inputConfig": {"requests": {"requests": requests}}}}
    path = f"models/{assistant.model}:batchGenerateContent"
    return batches.post(assistant, path, gemini.headers(key), body)


def build_look(assistant: Assistant, batch: str, key: str | None) -> Request:
    """The look at a batch."""
    return batches.get(assistant, PREFIX + batch, gemini.headers(key))


def build_cancel(assistant: Assistant, batch: str, key: str | None) -> Request:
    """The end of a batch."""
    return batches.post(assistant, f"{PREFIX}{batch}:cancel", gemini.headers(key))


def build_list(assistant: Assistant, after: str | None, key: str | None) -> Request:
    """A page of a hundred batches."""
    more = f"&{batches.query('pageToken', after)}" if after else ""
    return batches.get(assistant, f"batches?pageSize=100{more}", gemini.headers(key))


def build_download(assistant: Assistant, file: str, key: str | None) -> Request:
    """The batch once more: its results come with it."""
    return build_look(assistant, file, key)


def read_batch(found: dict[str, Any]) -> Remote | None:
    """A batch; a state that nobody knows is taken to be open."""
    name = wire.text(found.get("name"))
    known = batches.identity(name.removeprefix(PREFIX)) if name.startswith(PREFIX) else None
    if known is None:
        return None
    described = wire.members(found.get("metadata"))
    state = wire.text(described.get("state")).rpartition("_STATE_")[2]
    stats = wire.members(described.get("batchStats"))
    total = batches.number(stats.get("requestCount"))
    return Remote(
        id=known,
        state="failed" if state == "FAILED" else "ended" if state in ENDS else "open",
        label=wire.text(described.get("displayName")) or None,
        created=batches.moment(described.get("createTime")),
        asked=total,
        done=max(total - batches.number(stats.get("pendingRequestCount")), 0),
        files=(known,) if state in ENDS else (),
        unasked=UNASKED[ENDS.get(state, "missing")],
        why=wire.text(wire.members(found.get("error")).get("message")) or None,
    )


def read_list(body: bytes) -> Page | None:
    """A page of batches; without any, the object is empty."""
    found = batches.opened(body)
    if not (found or body.strip() == b"{}") or found.keys() - {"operations", "nextPageToken"}:
        return None
    there = tuple(filter(None, map(read_batch, wire.items(found.get("operations")))))
    return Page(there, wire.text(found.get("nextPageToken")) or None)


def read_results(body: bytes) -> Iterator[Result]:
    """Each item's result, by its key; they stand in ``response`` or, the same, in ``metadata``."""
    found = batches.opened(body)
    places = (found.get("response"), wire.members(found.get("metadata")).get("output"))
    for place in places:
        listed = wire.members(wire.members(place).get("inlinedResponses")).get("inlinedResponses")
        for each in wire.items(listed):
            identifier = wire.text(wire.members(each.get("metadata")).get("key"))
            if error := wire.members(each.get("error")):
                yield identifier, batches.grpc_error(error)
            else:
                yield identifier, batches.response(200, each.get("response"))


def next_file(_file: str, _body: bytes) -> None:
    """Nothing: the results come whole."""
