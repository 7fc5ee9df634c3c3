"""Google: Gemini's ``generateContent``."""

from typing import Any

from store.polls.answers import ANSWER_SCHEMA, Prompt
from store.polls.providers import wire
from store.records import Assistant, Failure


def goog_api_key(key: str | None) -> dict[str, str]:
    """Return the header by which Google knows a key."""
    return {"x-goog-api-key": key} if key else {}


FILTERED = frozenset(
    {"SAFETY", "PROHIBITED_CONTENT", "BLOCKLIST", "SPII", "RECITATION", "LANGUAGE"}
)
"""Finish reasons that mean the answer was withheld for what it says."""


class Gemini(wire.WireFormat):
    """Google's format; the model stands in the address."""

    OUTPUT_LIMIT = "maxOutputTokens"
    # https://ai.google.dev/gemini-api/docs/flex-inference
    FLEX = {"googleapis.com": True, "localhost": True}  # noqa: RUF012 - as in the base class
    KEYS = {"GEMINI_API_KEY": "googleapis.com", "GOOGLE_API_KEY": "googleapis.com"}  # noqa: RUF012

    # https://ai.google.dev/api/generate-content#method:-models.generatecontent
    def build_request(self, assistant: Assistant, prompt: Prompt, key: str | None) -> wire.Request:
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
            body["serviceTier"] = assistant.tier
        path = f"models/{assistant.model}:generateContent"
        return wire.request(assistant, path, goog_api_key(key), body)

    def tier(self, envelope: dict[str, Any], response: wire.Response) -> str | None:
        """Return the tier of the header or, without one, of the counts."""
        usage = wire.as_object(envelope.get("usageMetadata"))
        header = response.headers.get("x-gemini-service-tier")
        tier = wire.first_name(header, usage.get("serviceTier"))
        return tier.lower() if tier else None

    def tokens(self, envelope: dict[str, Any]) -> wire.Tokens | None:
        """Return what was counted, thoughts and what searches brought in included."""
        usage = wire.as_object(envelope.get("usageMetadata"))
        candidate = _candidate(envelope)
        queries = wire.as_object(candidate.get("groundingMetadata")).get("webSearchQueries")
        return wire.counted(
            [usage.get("promptTokenCount"), usage.get("toolUsePromptTokenCount")],
            [usage.get("candidatesTokenCount"), usage.get("thoughtsTokenCount")],
            len(queries) if isinstance(queries, list) else 0,
        )

    # https://ai.google.dev/api/generate-content#generatecontentresponse
    def outcome(self, envelope: dict[str, Any]) -> str | Failure:
        """Return the first candidate's text without its thoughts, or why there is none."""
        candidate = _candidate(envelope)
        blocked = wire.as_text(wire.as_object(envelope.get("promptFeedback")).get("blockReason"))
        reason = wire.as_text(candidate.get("finishReason"))
        if blocked or reason in FILTERED:
            return wire.filtered(blocked or reason)
        if reason == "MAX_TOKENS":
            return wire.CUT_OFF
        parts = wire.as_objects(wire.as_object(candidate.get("content")).get("parts"))
        return "".join(wire.as_text(part.get("text")) for part in parts if not part.get("thought"))


def _candidate(envelope: dict[str, Any]) -> dict[str, Any]:
    return next(iter(wire.as_objects(envelope.get("candidates"))), {})
