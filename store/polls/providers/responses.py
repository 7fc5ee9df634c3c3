"""OpenAI's Responses API."""

from __future__ import annotations

from typing import Any

from store.polls.prompt import ANSWER_SCHEMA
from store.polls.providers import MAX_SEARCHES, Prompt, Request, Tokens
from store.polls.providers import envelopes as wire
from store.polls.providers.batches import Queue
from store.polls.providers.batches.openai import OpenAIQueue
from store.polls.providers.provider import Provider
from store.records import Assistant, Failure

QUEUES = {"openai.com": OpenAIQueue, "localhost": OpenAIQueue}
"""The hosts that answer batches in this format; xAI's batches are Chat Completions alone."""


class Responses(Provider):
    """OpenAI's present format."""

    PATH = "responses"
    FLEX = True
    KEYS = {"OPENAI_API_KEY": "openai.com"}  # noqa: RUF012 - as in the base class

    # https://platform.openai.com/docs/api-reference/responses/create
    def build_request(self, assistant: Assistant, prompt: Prompt, key: str | None) -> Request:
        """Return the request; nothing of it is kept by the provider."""
        body: dict[str, Any] = {
            "model": assistant.model,
            "instructions": prompt.system,
            "input": prompt.user,
            self.OUTPUT_LIMIT: assistant.max_output_tokens,
            "store": False,
        }
        if assistant.structured == "json_schema":
            schema = {"name": "answer", "strict": True, "schema": ANSWER_SCHEMA}
            body["text"] = {"format": {"type": "json_schema", **schema}}
        elif assistant.structured == "json_object":
            body["text"] = {"format": {"type": "json_object"}}
        if assistant.web_search:
            body |= {"tools": [{"type": "web_search"}], "max_tool_calls": MAX_SEARCHES}
        if assistant.tier:
            # https://platform.openai.com/docs/guides/flex-processing
            body["service_tier"] = assistant.tier
        return wire.request(assistant, self.PATH, wire.bearer(key), body)

    def queue(self, assistant: Assistant) -> type[Queue] | None:
        """Return the queue of the host, if it has one."""
        return wire.of_host(QUEUES, assistant)

    def tokens(self, envelope: dict[str, Any]) -> Tokens | None:
        """Return what was counted; searches are counted apart, or are the calls of the tool."""
        usage = wire.members(envelope.get("usage"))
        searches = wire.members(wire.members(envelope.get("tool_usage")).get("web_search"))
        output = wire.items(envelope.get("output"))
        calls = [item for item in output if item.get("type") == "web_search_call"]
        made = searches.get("num_requests", len(calls))
        return wire.counted(usage.get("input_tokens"), usage.get("output_tokens"), made)

    # https://platform.openai.com/docs/api-reference/responses/object
    def outcome(self, envelope: dict[str, Any]) -> str | Failure:
        """Return the text, or why there is none; reasoning may stand before the message."""
        parts = [
            part
            for item in wire.items(envelope.get("output"))
            if item.get("type") == "message"
            for part in wire.items(item.get("content"))
        ]
        for part in parts:
            if part.get("type") == "refusal":
                return wire.declined(wire.text(part.get("refusal")))
        if envelope.get("status") == "incomplete":
            reason = wire.text(wire.members(envelope.get("incomplete_details")).get("reason"))
            if reason == "max_output_tokens":
                return wire.CUT_OFF
            if reason == "content_filter":
                return wire.filtered()
            why = reason or "no reason"
            return Failure("http", f"The provider left the answer incomplete ({why}).")
        return "".join(wire.text(p.get("text")) for p in parts if p.get("type") == "output_text")
