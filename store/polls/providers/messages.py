"""Anthropic's Messages API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from store.polls.prompt import ANSWER_SCHEMA
from store.polls.providers import MAX_SEARCHES, Prompt, Request, Tokens
from store.polls.providers import envelopes as wire
from store.polls.providers.batches.anthropic import AnthropicQueue
from store.polls.providers.provider import Provider

if TYPE_CHECKING:
    from store.polls.providers.batches import Queue
    from store.records import Assistant, Failure


class Messages(Provider):
    """Anthropic's format."""

    PATH = "messages"
    REQUEST_ID = "request-id"
    OUTPUT_LIMIT = "max_tokens"
    KEYS = {"ANTHROPIC_API_KEY": "anthropic.com"}  # noqa: RUF012 - as in the base class

    # https://docs.claude.com/en/api/messages
    # https://platform.claude.com/docs/en/build-with-claude/structured-outputs
    def build_request(self, assistant: Assistant, prompt: Prompt, key: str | None) -> Request:
        """Return the request; there is no JSON mode without a schema."""
        body: dict[str, Any] = {
            "model": assistant.model,
            self.OUTPUT_LIMIT: assistant.max_output_tokens,
            "system": prompt.system,
            "messages": [{"role": "user", "content": prompt.user}],
        }
        if assistant.structured == "json_schema":
            body["output_config"] = {"format": {"type": "json_schema", "schema": ANSWER_SCHEMA}}
        if assistant.web_search:
            # https://docs.claude.com/en/docs/agents-and-tools/tool-use/web-search-tool
            search = {"type": "web_search_20260318", "name": "web_search", "max_uses": MAX_SEARCHES}
            body["tools"] = [search]
        return wire.request(assistant, self.PATH, wire.anthropic_headers(key), body)

    def queue(self, assistant: Assistant) -> type[Queue] | None:  # noqa: ARG002 - as the base
        """Return the one queue there is."""
        return AnthropicQueue

    def tokens(self, envelope: dict[str, Any]) -> Tokens | None:
        """Return what was counted; the cache's tokens are counted apart."""
        usage = wire.members(envelope.get("usage"))
        kinds = ("", "cache_creation_", "cache_read_")
        given = [usage.get(f"{kind}input_tokens") for kind in kinds]
        searches = wire.members(usage.get("server_tool_use")).get("web_search_requests", 0)
        return wire.counted(given, usage.get("output_tokens"), searches)

    # https://docs.claude.com/en/api/messages#response
    def outcome(self, envelope: dict[str, Any]) -> str | Failure:
        """Return the text, or why there is none; thinking and tools may stand before it."""
        reason = envelope.get("stop_reason")
        if reason == "refusal":
            details = wire.members(envelope.get("stop_details"))
            return wire.declined(wire.text(details.get("category")))
        if reason in ("max_tokens", "model_context_window_exceeded", "pause_turn"):
            return wire.CUT_OFF
        blocks = wire.items(envelope.get("content"))
        return "".join(wire.text(b.get("text")) for b in blocks if b.get("type") == "text")
