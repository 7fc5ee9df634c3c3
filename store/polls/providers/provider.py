"""What every provider's wire format is made of: one class says all that is the provider's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from store.polls.providers import Prompt, Reply, Request, Response, Tokens
from store.polls.providers import envelopes as wire
from store.polls.providers.batches import Queue
from store.records import Assistant, Failure


class Provider:
    """A wire format: pure, without a socket, a clock or the environment.

    A subclass gives ``build_request``, ``outcome`` and ``tokens``; the rest is what most share.
    """

    PATH = ""
    """The path of a question below ``base_url``."""
    REQUEST_ID = "x-request-id"
    """The header with the id of a request."""
    OUTPUT_LIMIT = "max_output_tokens"
    """The member of a body that limits the output."""
    KEYS: Mapping[str, str] = {}
    """The usual variables of its keys, with the domain that each key belongs to."""
    ERRORS = wire.COMMON
    """What its error codes mean."""
    FLEX = False
    """Whether ``"tier": "flex"`` asks in an ordinary request at the price of a batch."""

    def build_request(self, assistant: Assistant, prompt: Prompt, key: str | None) -> Request:
        """Return the request that puts a prompt to an assistant; no sampling parameters."""
        raise NotImplementedError

    def outcome(self, envelope: dict[str, Any]) -> str | Failure:
        """Return the model's text, or why there is none: stop reason and refusal come first."""
        raise NotImplementedError

    def tokens(self, envelope: dict[str, Any]) -> Tokens | None:
        """Return what was counted, if it was."""
        raise NotImplementedError

    def queue(self, assistant: Assistant) -> type[Queue] | None:  # noqa: ARG002 - one knows hosts
        """Return the queue that takes an assistant's batches, if there is one."""
        return None

    def tier(self, envelope: dict[str, Any], response: Response) -> str | None:  # noqa: ARG002
        """Return the tier that a question was answered in, where the provider says it."""
        return wire.text(envelope.get("service_tier")) or None

    def read_reply(self, response: Response) -> Reply:
        """Return what a response says."""
        request_id = response.headers.get(self.REQUEST_ID)
        envelope = wire.opened(response, request_id, self.ERRORS)
        if isinstance(envelope, Reply):
            return envelope
        return Reply(
            outcome=self.outcome(envelope),
            served_model=wire.identity(envelope.get("model"), envelope.get("modelVersion")),
            request_id=wire.identity(request_id, envelope.get("id"), envelope.get("responseId")),
            tokens=self.tokens(envelope),
            tier=self.tier(envelope, response),
        )
