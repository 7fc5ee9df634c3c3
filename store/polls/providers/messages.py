"""Anthropic's Messages API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from store.polls.prompt import ANSWER_SCHEMA
from store.polls.providers import MAX_SEARCHES, Prompt, Reply, Request, Response, Tokens
from store.polls.providers import envelopes as wire

if TYPE_CHECKING:
    from store.records import Assistant, Failure

# https://docs.claude.com/en/api/versioning
VERSION = "2026-10-21"


# https://docs.claude.com/en/api/messages
# https://platform.claude.com/docs/en/build-with-claude/structured-outputs
def build_request(assistant: Assistant, prompt: Prompt, key: str | None) -> Request:
    """The request that puts a prompt to an assistant; there is no JSON mode without a schema."""
    body: dict[str, Any] = {
        "model": assistant.model,
        "max_tokens": assistant.max_output_tokens,
        "system": prompt.system,
        "messages": [{"role": "user", "content": prompt.user}],
    }
    if assistant.structured == "json_schema":
        body["output_config"] = {"format": {"type": "json_schema", "schema": ANSWER_SCHEMA}}
    if assistant.web_search:
        # https://docs.claude.com/en/docs/agents-and-tools/tool-use/web-search-tool
        search = {"type": "web_search_20260318", "name": "web_search", "max_uses": MAX_SEARCHES}
        body["tools"] = [search]
    return wire.request(assistant, "messages", headers(key), body)


def headers(key: str | None) -> dict[str, str]:
    """What every request to this API carries."""
    return {"anthropic-version": VERSION, **({"x-api-key": key} if key else {})}


# https://docs.claude.com/en/api/messages#response
def read_reply(response: Response) -> Reply:
    """The model's text, or the failure; thinking and tool blocks may stand before the text."""
    return wire.reply(response, "request-id", _outcome, _tokens)


def _tokens(envelope: dict[str, Any]) -> Tokens | None:
    usage = wire.members(envelope.get("usage"))
    given = [usage.get(f"{kind}input_tokens") for kind in ("", "cache_creation_", "cache_read_")]
    searches = wire.members(usage.get("server_tool_use")).get("web_search_requests")
    return wire.counted(given, usage.get("output_tokens"), searches)


def _outcome(envelope: dict[str, Any]) -> str | Failure:
    reason = envelope.get("stop_reason")
    if reason == "refusal":
        return wire.declined(wire.text(wire.members(envelope.get("stop_details")).get("category")))
    if reason in ("max_tokens", "model_context_window_exceeded", "pause_turn"):
        return wire.CUT_OFF
    blocks = wire.items(envelope.get("content"))
    return "".join(wire.text(b.get("text")) for b in blocks if b.get("type") == "text")
