"""Anthropic's Message Batches API."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from store.polls.providers import Request, batches
from store.polls.providers import envelopes as wire
from store.polls.providers.batches import UNASKED, Item, Queue, Remote, Result
from store.records import Failure

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
DONE = ("succeeded", "errored", "canceled", "expired")


class AnthropicQueue(Queue):
    """Takes the items with the batch, and gives the results as lines."""

    MAX_REQUESTS = 100_000
    HOME = "messages/batches"
    headers = staticmethod(wire.anthropic_headers)

    # https://docs.claude.com/en/api/creating-message-batches
    def build_batch(self, items: Sequence[Item], label: str, file: str | None) -> Request:  # noqa: ARG002
        """The batch, which holds its items."""
        requests = [{"custom_id": item.id, "params": item.body} for item in items]
        return self._post(self.HOME, {"requests": requests})

    def build_download(self, file: str) -> Request:
        """The results of a batch; its ``results_url`` is not asked, for it would get our key."""
        return self._get(f"{self.HOME}/{file}/results")

    def read_batch(self, described: dict[str, Any]) -> Remote | None:
        """A batch."""
        id_ = batches.identity(described.get("id"))
        if id_ is None or "processing_status" not in described:
            return None
        counts = wire.members(described.get("request_counts"))
        done = sum(batches.number(counts.get(kind)) for kind in DONE)
        has_ended = described["processing_status"] == "ended"
        return Remote(
            id=id_,
            state="ended" if has_ended else "open",
            done=done,
            files=(id_,) if has_ended else (),
        )

    # https://docs.claude.com/en/api/retrieving-message-batch-results
    def read_results(self, body: bytes) -> Iterator[Result]:
        """Each line's result; an error is the whole body that its status would have come with."""
        odd = Failure("http", "The provider's batch gave a result of no known kind.")
        for line in filter(None, map(batches.read_object, body.splitlines())):
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
