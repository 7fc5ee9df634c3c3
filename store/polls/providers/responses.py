"""OpenAI's Responses API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from store.polls.prompt import ANSWER_SCHEMA
from store.polls.providers import MAX_SEARCHES, Prompt, Reply, Request, Response, Tokens
from store.polls.providers import envelopes as wire
from store.records import Failure

if TYPE_CHECKING:
    from store.records import Assistant


# https://platform.openai.com/docs/api-reference/responses/create
def build_request(assistant: Assistant, prompt: Prompt, key: str | None) -> Request:
    """The request that puts a prompt to an assistant; nothing of it is kept by the provider."""
    body: dict[str, Any] = {
        "model": assistant.model,
        "instructions": prompt.system,
        "input": prompt.user,
        "max_output_tokens": assistant.max_output_tokens,
        "store": False,
    }
    if assistant.structured == "json_schema":
        body["text"] = {
            "format": {
                "type": "json_schema",
                "name": "answer",
                "strict": True,
                "schema": ANSWER_SCHEMA,
            }
        }
    elif assistant.structured == "json_object":
        body["text"] = {"format": {"type": "json_object"}}
    if assistant.web_search:
        body |= {"tools": [{"type": "web_search"}], "max_tool_calls": MAX_SEARCHES}
    return wire.request(assistant, "responses", wire.bearer(key), body)


# https://platform.openai.com/docs/api-reference/responses/object
def read_reply(response: Response) -> Reply:
    """The model's text, or the failure; reasoning and tool calls may stand before the message."""
    return wire.reply(response, "x-request-id", _outcome, _tokens)


def _tokens(envelope: dict[str, Any]) -> Tokens | None:
    usage = wire.members(envelope.get("usage"))
    searches = wire.members(wire.members(envelope.get("tool_usage")).get("web_search"))
    calls = [o for o in wire.items(envelope.get("output")) if o.get("type") == "web_search_call"]
    made = searches.get("num_requests", len(calls))
    return wire.counted(usage.get("input_tokens"), usage.get("output_tokens"), made)


def _outcome(envelope: dict[str, Any]) -> str | Failure:
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
        return Failure(
            "http", f"The provider left the answer incomplete ({reason or 'no reason'})."
        )
    return "".join(wire.text(p.get("text")) for p in parts if p.get("type") == "output_text")
