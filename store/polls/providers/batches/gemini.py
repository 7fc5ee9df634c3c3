"""Gemini's batch mode."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from store.polls.providers import batches, gemini
from store.polls.providers import envelopes as wire
from store.polls.providers.batches import UNASKED, Item, Page, Queue, Remote

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from store.polls.providers import Request
    from store.polls.providers.batches import Result

PREFIX = "batches/"
"""How the name of a batch begins; the rest is its id."""
ENDS = {"SUCCEEDED": "missing", "CANCELLED": "cancelled", "EXPIRED": "expired"}
"""Why an item has no answer, by how its batch ended; of a failed one none was asked."""


class GeminiQueue(Queue):
    """Gives the results with the batch."""

    MAX_REQUESTS = 100
    """Few, so that the results stay small."""
    CANCEL = ":cancel"
    SIZE, AFTER = "pageSize", "pageToken"
    headers = staticmethod(gemini.headers)

    # https://ai.google.dev/gemini-api/docs/batch-api
    def build_batch(self, items: Sequence[Item], label: str, file: str | None) -> Request:  # noqa: ARG002
        """The batch, under our label; it holds its items."""
        requests = [{"request": item.body, "metadata": {"key": item.id}} for item in items]
        batch = {"displayName": label, "inputConfig": {"requests": {"requests": requests}}}
        path = f"models/{self._assistant.model}:batchGenerateContent"
        return self._post(path, {"batch": batch})

    def read_batch(self, found: dict[str, Any]) -> Remote | None:
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

    def read_list(self, body: bytes) -> Page | None:
        """A page of batches; without any, the object is empty."""
        found = batches.opened(body)
        if not (found or body.strip() == b"{}") or found.keys() - {"operations", "nextPageToken"}:
            return None
        there = self._batches(found.get("operations")) or ()
        return Page(there, wire.text(found.get("nextPageToken")) or None)

    def read_results(self, body: bytes) -> Iterator[Result]:
        """Each item's result, by its key; in ``response`` or, the same, in ``metadata``."""
        found = batches.opened(body)
        places = (found.get("response"), wire.members(found.get("metadata")).get("output"))
        for place in places:
            listed = wire.members(wire.members(place).get("inlinedResponses"))
            for each in wire.items(listed.get("inlinedResponses")):
                identifier = wire.text(wire.members(each.get("metadata")).get("key"))
                if error := wire.members(each.get("error")):
                    yield identifier, batches.grpc_error(error)
                else:
                    yield identifier, batches.response(200, each.get("response"))
