"""Google's Gemini API, ``generateContent``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from store.polls.prompt import ANSWER_SCHEMA
from store.polls.providers import Prompt, Reply, Request, Response
from store.polls.providers import envelopes as wire

if TYPE_CHECKING:
    from store.records import Assistant, Failure

FILTERED = frozenset(
    {"SAFETY", "PROHIBITED_CONTENT", "BLOCKLIST", "SPII", "RECITATION", "LANGUAGE"}
)
"""Finish reasons that mean the answer was withheld for what it says."""


# https://ai.google.dev/api/generate-content#method:-models.generatecontent
def build_request(assistant: Assistant, prompt: Prompt, key: str | None) -> Request:
    """The request that puts a prompt to an assistant; the key goes in a header, never the URL."""
    config: dict[str, Any] = {"maxOutputTokens": assistant.max_output_tokens}
    if assistant.structured != "prompt":
        config["responseMimeType"] = "application/json"
    if assistant.structured == "json_schema":
        config["responseJsonSchema"] = ANSWER_SCHEMA
    body: dict[str, Any] = {
        "systemInstruction": {"parts": [{"text": prompt.system}]},
        "contents": [{"role": "user", "parts": [{"text": prompt.user}]}],
        "generationConfig": config,
    }
    if assistant.web_search:
        # https://ai.google.dev/gemini-api/docs/google-search
        body["tools"] = [{"googleSearch": {}}]
    path = f"models/{assistant.model}:generateContent"
    return wire.request(assistant, path, headers(key), body)


def headers(key: str | None) -> dict[str, str]:
    """What every request to this API carries."""
    return {"x-goog-api-key": key} if key else {}


# https://ai.google.dev/api/generate-content#generatecontentresponse
def read_reply(response: Response) -> Reply:
    """The model's text, or the failure; thought parts are left out."""
    envelope = wire.opened(response)
    if isinstance(envelope, Reply):
        return envelope
    usage = wire.members(envelope.get("usageMetadata"))
    candidate = next(iter(wire.items(envelope.get("candidates"))), {})
    queries = wire.members(candidate.get("groundingMetadata")).get("webSearchQueries")
    return Reply(
        outcome=_outcome(envelope, candidate),
        served_model=wire.identity(envelope.get("modelVersion")),
        request_id=wire.identity(envelope.get("responseId")),
        tokens=wire.counted(
            [usage.get("promptTokenCount"), usage.get("toolUsePromptTokenCount")],
            [usage.get("candidatesTokenCount"), usage.get("thoughtsTokenCount")],
            len(queries) if isinstance(queries, list) else 0,
        ),
    )


def _outcome(envelope: dict[str, Any], candidate: dict[str, Any]) -> str | Failure:
    blocked = wire.text(wire.members(envelope.get("promptFeedback")).get("blockReason"))
    reason = wire.text(candidate.get("finishReason"))
    if blocked or reason in FILTERED:
        return wire.filtered(blocked or reason)
    if reason == "MAX_TOKENS":
        return wire.CUT_OFF
    parts = wire.items(wire.members(candidate.get("content")).get("parts"))
    return "".join(wire.text(part.get("text")) for part in parts if not part.get("thought"))
