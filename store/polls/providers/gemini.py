"""Google: Gemini's ``generateContent``, and its batch mode."""

from collections.abc import Iterator
from typing import Any

from store.polls.answers import ANSWER_SCHEMA, Prompt
from store.polls.providers import provider as wire
from store.records import Assistant, Failure

PREFIX = "batches/"
"""How the name of a batch begins; the rest is its id."""
ENDS = {"SUCCEEDED": "missing", "CANCELLED": "cancelled", "EXPIRED": "expired"}
"""Why an item has no answer, by how its batch ended; of a failed one none was asked."""


def goog_api_key(key: str | None) -> dict[str, str]:
    """Return the header by which Google knows a key."""
    return {"x-goog-api-key": key} if key else {}


class GeminiQueue(wire.Queue):
    """Gives the results with the batch."""

    MOST_ITEMS = 100
    """Few, so that the results stay small."""
    CANCEL = ":cancel"
    headers = staticmethod(goog_api_key)

    # https://ai.google.dev/gemini-api/docs/batch-api
    def build_batch(self, items: wire.Items, label: str, file: str | None) -> wire.Request:  # noqa: ARG002
        """Return the batch, under our label; it holds its items."""
        requests = [{"request": body, "metadata": {"key": id_}} for id_, body in items.items()]
        batch = {"displayName": label, "inputConfig": {"requests": {"requests": requests}}}
        path = f"models/{self._assistant.model}:batchGenerateContent"
        return self._post(path, {"batch": batch})

    def read_batch(self, described: dict[str, Any]) -> wire.Remote | None:
        """Return a batch; a state that nobody knows is taken to be open."""
        name = wire.text(described.get("name"))
        id_ = wire.path_id(name.removeprefix(PREFIX)) if name.startswith(PREFIX) else None
        if id_ is None:
            return None
        metadata = wire.members(described.get("metadata"))
        state = wire.text(metadata.get("state")).rpartition("_STATE_")[2]
        return wire.Remote(
            id=id_,
            state="failed" if state == "FAILED" else "ended" if state in ENDS else "open",
            files=(id_,) if state in ENDS else (),
            unasked=wire.UNASKED[ENDS.get(state, "missing")],
            why=wire.text(wire.members(described.get("error")).get("message")) or None,
        )

    def read_results(self, body: bytes) -> Iterator[wire.Result]:
        """Yield each item's result, by its key; in ``response`` or, the same, in ``metadata``."""
        batch = wire.read_object(body)
        places = (batch.get("response"), wire.members(batch.get("metadata")).get("output"))
        for place in places:
            inlined = wire.members(wire.members(place).get("inlinedResponses"))
            for item in wire.items(inlined.get("inlinedResponses")):
                identifier = wire.text(wire.members(item.get("metadata")).get("key"))
                if error := wire.members(item.get("error")):
                    yield identifier, wire.grpc_error(error)
                else:
                    yield identifier, wire.as_response(200, item.get("response"))


FILTERED = frozenset(
    {"SAFETY", "PROHIBITED_CONTENT", "BLOCKLIST", "SPII", "RECITATION", "LANGUAGE"}
)
"""Finish reasons that mean the answer was withheld for what it says."""


class Gemini(wire.Provider):
    """Google's format; the model stands in the address."""

    OUTPUT_LIMIT = "maxOutputTokens"
    # https://ai.google.dev/gemini-api/docs/flex-inference
    FLEX = {"googleapis.com": True, "localhost": True}  # noqa: RUF012 - as in the base class
    QUEUES = {"*": GeminiQueue}  # noqa: RUF012
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
        """Return the tier of the header or, in a batch without one, of the counts."""
        usage = wire.members(envelope.get("usageMetadata"))
        tier = response.headers.get("x-gemini-service-tier") or wire.text(usage.get("serviceTier"))
        return tier.lower() or None

    def tokens(self, envelope: dict[str, Any]) -> wire.Tokens | None:
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
