"""xAI's Batch API: OpenAI's items in another envelope. From xai-sdk 1.21 and its documentation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote

import msgspec

from store.polls.providers import Request, batches
from store.polls.providers import envelopes as wire
from store.polls.providers.batches import UNASKED, Item, Remote, Result
from store.polls.providers.batches.openai import OpenAIQueue

CANCELLED = "Batch cancelled"
"""What the result of an item says that was cancelled."""
PAGE = "?"
"""Parts a batch's id from the token of a page of its results, where there is one."""


class XAIQueue(OpenAIQueue):
    """Takes items as OpenAI does, and gives the results in pages."""

    CANCEL = ":cancel"

    def build_upload(self, items: Sequence[Item]) -> Request:
        """The upload of the items as JSON Lines; this API knows no purpose of files."""
        return msgspec.structs.replace(super().build_upload(items), body={})

    # https://docs.x.ai/docs/guides/batch-api
    def build_batch(self, items: Sequence[Item], label: str, file: str | None) -> Request:  # noqa: ARG002
        """The batch of an uploaded file, under our label."""
        return self._post(self.HOME, {"name": label, "input_file_id": file})

    def build_download(self, file: str) -> Request:
        """A page of results."""
        batch, _, token = file.partition(PAGE)
        # a token may be anything that a provider said
        following = f"&pagination_token={quote(token, safe='')}" if token else ""
        return self._get(f"{self.HOME}/{batch}/results?limit=100{following}")

    def read_batch(self, described: dict[str, Any]) -> Remote | None:
        """A batch; xAI cancels one whose file it does not take, before it counts its items."""
        id_ = batches.identity(described.get("batch_id"))
        if id_ is None:
            return None
        state, why = (
            wire.members(described.get("state")),
            wire.text(described.get("cancel_by_xai_message")),
        )
        total, pending, cancelled = (
            batches.number(state.get(f"num_{name}"))
            for name in ("requests", "pending", "cancelled")
        )
        has_ended = bool(why) or (total > 0 and pending == 0)
        return Remote(
            id=id_,
            state="failed" if why and not total else "ended" if has_ended else "open",
            done=max(total - pending, 0),
            files=(id_,) if has_ended else (),
            unasked=UNASKED["cancelled" if why or cancelled else "missing"],
            is_settling=cancelled > 0,
            why=why or None,
        )

    def read_results(self, body: bytes) -> Iterator[Result]:
        """Each result of a page; an error is a sentence or has a code of gRPC."""
        for each in wire.items(batches.read_object(body).get("results")):
            identifier = wire.text(each.get("batch_request_id"))
            result = wire.members(each.get("batch_result")) or each
            answered = wire.members(wire.members(result.get("response")).get("chat_get_completion"))
            error = result.get("error")
            if answered:
                yield identifier, batches.response(200, answered)
            elif error == CANCELLED:
                yield identifier, UNASKED["cancelled"]
            else:
                named = wire.members(error) or {"message": wire.text(error)}
                yield identifier, batches.grpc_error(named)

    def next_file(self, file: str, body: bytes) -> str | None:
        """The next page of results, if there is one."""
        token = wire.text(batches.read_object(body).get("pagination_token"))
        return f"{file.partition(PAGE)[0]}{PAGE}{token}" if token else None
