"""Gemini's batch mode."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from store.polls.providers import Request, batches
from store.polls.providers import envelopes as wire
from store.polls.providers.batches import UNASKED, Item, Queue, Remote, Result

PREFIX = "batches/"
"""How the name of a batch begins; the rest is its id."""
ENDS = {"SUCCEEDED": "missing", "CANCELLED": "cancelled", "EXPIRED": "expired"}
"""Why an item has no answer, by how its batch ended; of a failed one none was asked."""


class GeminiQueue(Queue):
    """Gives the results with the batch."""

    MAX_REQUESTS = 100
    """Few, so that the results stay small."""
    CANCEL = ":cancel"
    headers = staticmethod(wire.goog_api_key)

    # https://ai.google.dev/gemini-api/docs/batch-api
    def build_batch(self, items: Sequence[Item], label: str, file: str | None) -> Request:  # noqa: ARG002
        """The batch, under our label; it holds its items."""
        requests = [{"request": item.body, "metadata": {"key": item.id}} for item in items]
        batch = {"displayName": label, "inputConfig": {"requests": {"requests": requests}}}
        path = f"models/{self._assistant.model}:batchGenerateContent"
        return self._post(path, {"batch": batch})

    def read_batch(self, described: dict[str, Any]) -> Remote | None:
        """A batch; a state that nobody knows is taken to be open."""
        name = wire.text(described.get("name"))
        id_ = batches.identity(name.removeprefix(PREFIX)) if name.startswith(PREFIX) else None
        if id_ is None:
            return None
        metadata = wire.members(described.get("metadata"))
        state = wire.text(metadata.get("state")).rpartition("_STATE_")[2]
        stats = wire.members(metadata.get("batchStats"))
        total = batches.number(stats.get("requestCount"))
        return Remote(
            id=id_,
            state="failed" if state == "FAILED" else "ended" if state in ENDS else "open",
            done=max(total - batches.number(stats.get("pendingRequestCount")), 0),
            files=(id_,) if state in ENDS else (),
            unasked=UNASKED[ENDS.get(state, "missing")],
            why=wire.text(wire.members(described.get("error")).get("message")) or None,
        )

    def read_results(self, body: bytes) -> Iterator[Result]:
        """Each item's result, by its key; in ``response`` or, the same, in ``metadata``."""
        batch = batches.read_object(body)
        places = (batch.get("response"), wire.members(batch.get("metadata")).get("output"))
        for place in places:
            listed = wire.members(wire.members(place).get("inlinedResponses"))
            for each in wire.items(listed.get("inlinedResponses")):
                identifier = wire.text(wire.members(each.get("metadata")).get("key"))
                if error := wire.members(each.get("error")):
                    yield identifier, batches.grpc_error(error)
                else:
                    yield identifier, batches.response(200, each.get("response"))
