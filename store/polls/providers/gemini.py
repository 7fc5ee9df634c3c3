"""Google's Gemini API, ``generateContent``."""

from __future__ import annotations

from typing import Any

from store.polls.prompt import ANSWER_SCHEMA
from store.polls.providers import Prompt, Request, Response, Tokens
from store.polls.providers import envelopes as wire
from store.polls.providers.batches import Queue
from store.polls.providers.batches.gemini import GeminiQueue
from store.polls.providers.provider import Provider
from store.records import Assistant, Failure

FILTERED = frozenset(
    {"SAFETY", "PROHIBITED_CONTENT", "BLOCKLIST", "SPII", "RECITATION", "LANGUAGE"}
)
"""Finish reasons that mean the answer was withheld for what it says."""


class Gemini(Provider):
    """Google's format; the model stands in the address."""

    PATH = "generateContent"
    OUTPUT_LIMIT = "maxOutputTokens"
    FLEX = True
    KEYS = {"GEMINI_API_KEY": "googleapis.com", "GOOGLE_API_KEY": "googleapis.com"}  # noqa: RUF012

    # https://ai.google.dev/api/generate-content#method:-models.generatecontent
    def build_request(self, assistant: Assistant, prompt: Prompt, key: str | None) -> Request:
        """Return the request; the key goes in a header, never the URL."""
        config: dict[str, Any] = {self.OUTPUT_LIMIT: assistant.max_output_tokens}
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
        if assistant.tier:
            # https://ai.google.dev/gemini-api/docs/flex-inference
            body["serviceTier"] = assistant.tier
        path = f"models/{assistant.model}:{self.PATH}"
        return wire.request(assistant, path, wire.goog_api_key(key), body)

    def queue(self, assistant: Assistant) -> type[Queue] | None:  # noqa: ARG002 - as the base
        """Return the one queue there is."""
        return GeminiQueue

    def tier(self, envelope: dict[str, Any], response: Response) -> str | None:
        """Return the tier of the header or, in a batch without one, of the counts."""
        usage = wire.members(envelope.get("usageMetadata"))
        tier = response.headers.get("x-gemini-service-tier") or wire.text(usage.get("serviceTier"))
        return tier.lower() or None

    def tokens(self, envelope: dict[str, Any]) -> Tokens | None:
        """Return what was counted, thoughts and what searches brought in included."""
        usage = wire.members(envelope.get("usageMetadata"))
        candidate = _candidate(envelope)
        queries = wire.members(candidate.get("groundingMetadata")).get("webSearchQueries")
        return wire.counted(
            [usage.get("promptTokenCount"), usage.get("toolUsePromptTokenCount")],
            [usage.get("candidatesTokenCount"), usage.get("thoughtsTokenCount")],
            len(queries) if isinstance(queries, list) else 0,
        )

    # https://ai.google.dev/api/generate-content#generatecontentresponse
    def outcome(self, envelope: dict[str, Any]) -> str | Failure:
        """Return the first candidate's text without its thoughts, or why there is none."""
        candidate = _candidate(envelope)
        blocked = wire.text(wire.members(envelope.get("promptFeedback")).get("blockReason"))
        reason = wire.text(candidate.get("finishReason"))
        if blocked or reason in FILTERED:
            return wire.filtered(blocked or reason)
        if reason == "MAX_TOKENS":
            return wire.CUT_OFF
        parts = wire.items(wire.members(candidate.get("content")).get("parts"))
        return "".join(wire.text(part.get("text")) for part in parts if not part.get("thought"))


def _candidate(envelope: dict[str, Any]) -> dict[str, Any]:
    return next(iter(wire.items(envelope.get("candidates"))), {})
