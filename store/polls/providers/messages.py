"""Anthropic's Messages API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from store.polls.prompt import ANSWER_SCHEMA
from store.polls.providers import MAX_SEARCHES, Prompt, Reply, Request, Response
from store.polls.providers.envelopes import (
    address,
    counted,
    cut_off,
    declined,
    identity,
    items,
    members,
    opened,
    text_or_empty,
    with_extra,
)

if TYPE_CHECKING:
    from store.records import Assistant, Failure

# https://docs.claude.com/en/api/versioning
VERSION = "2026-10-21"


# https://docs.claude.com/en/api/messages
# https://platform.claude.com/docs/en/build-with-claude/structured-outputs
def build_request(assistant: Assistant, prompt: Prompt, key: str | None) -> Request:
    """The request that puts a prompt to an assistant.

    This API has no JSON mode without a schema: ``json_object`` leaves it to the prompt.
    """
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
    headers = {"anthropic-version": VERSION, **({"x-api-key": key} if key else {})}
    url = address(assistant.base_url, "messages")
    return Request(url, headers, with_extra(body, assistant.extra))


# https://docs.claude.com/en/api/messages#response
def read_reply(response: Response) -> Reply:
    """The model's text, or the failure; thinking and tool blocks may stand before the text."""
    envelope = opened(response)
    request_id = response.headers.get("request-id")
    if isinstance(envelope, Reply):
        return msgspec.structs.replace(envelope, request_id=identity(request_id))
    usage = members(envelope.get("usage"))
    given = [usage.get(f"{kind}input_tokens") for kind in ("", "cache_creation_", "cache_read_")]
    return Reply(
        outcome=_outcome(envelope),
        served_model=identity(envelope.get("model")),
        request_id=identity(request_id, envelope.get("id")),
        tokens=counted(
            given,
            usage.get("output_tokens"),
            members(usage.get("server_tool_use")).get("web_search_requests"),
        ),
    )


def _outcome(envelope: dict[str, Any]) -> str | Failure:
    reason = envelope.get("stop_reason")
    if reason == "refusal":
        return declined(text_or_empty(members(envelope.get("stop_details")).get("category")))
    if reason in ("max_tokens", "model_context_window_exceeded", "pause_turn"):
        return cut_off()
    blocks = items(envelope.get("content"))
    return "".join(text_or_empty(b.get("text")) for b in blocks if b.get("type") == "text")
