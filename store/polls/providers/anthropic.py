"""Anthropic: the Messages API, and its batches."""

from typing import Any

from store.polls.answers import ANSWER_SCHEMA, Prompt
from store.polls.providers import wire
from store.records import Assistant, Failure


# https://docs.claude.com/en/api/versioning
def anthropic_headers(key: str | None) -> dict[str, str]:
    """Return what every request to Anthropic carries."""
    return {"anthropic-version": "2026-10-21", **({"x-api-key": key} if key else {})}


class AnthropicQueue(wire.Queue):
    """Takes the items with the batch, and gives the results as lines."""

    HOME = "messages/batches"
    headers = staticmethod(anthropic_headers)

    # https://docs.claude.com/en/api/creating-message-batches
    def build_batch(self, items: wire.Items, file: str | None) -> wire.Request:  # noqa: ARG002
        """Return the batch, which holds its items."""
        requests = [{"custom_id": id_, "params": body} for id_, body in items.items()]
        return self._post(self.HOME, {"requests": requests})

    def read_batch(self, described: dict[str, Any]) -> wire.RemoteBatch | None:
        """Return a batch; to its ``results_url``, which may lie elsewhere, our key is not sent."""
        id_ = wire.path_id(described.get("id"))
        if id_ is None or "processing_status" not in described:
            return None
        if described["processing_status"] != "ended":
            return wire.RemoteBatch(id=id_, state="open")
        return wire.RemoteBatch(id=id_, state="ended", files=(f"{self.HOME}/{id_}/results",))

    # https://docs.claude.com/en/api/retrieving-message-batch-results
    def read_result(self, line: dict[str, Any]) -> wire.Response:
        """Return what a line comes to; an error is the whole body that comes with its status."""
        result = wire.as_object(line.get("result"))
        kind = wire.as_text(result.get("type"))
        if kind == "succeeded":
            return wire.as_response(200, result.get("message"))
        if kind == "errored":
            error = wire.as_object(result.get("error"))
            inner = wire.as_object(error.get("error")) or error
            status = wire.ERRORS.get(wire.as_text(inner.get("type")), 500)
            return wire.as_response(status, {"error": inner})
        odd = wire.no_answer("http", "The provider's batch gave a result of no known kind.")
        kinds = {"canceled": wire.UNASKED["cancelled"], "expired": wire.UNASKED["expired"]}
        return kinds.get(kind, odd)


class Messages(wire.WireFormat):
    """Anthropic's format."""

    REQUEST_ID = "request-id"
    OUTPUT_LIMIT = "max_tokens"
    QUEUES = {"*": AnthropicQueue}  # noqa: RUF012 - as in the base class
    KEYS = {"ANTHROPIC_API_KEY": "anthropic.com"}  # noqa: RUF012 - as in the base class

    # https://docs.claude.com/en/api/messages
    # https://platform.claude.com/docs/en/build-with-claude/structured-outputs
    def build_request(self, assistant: Assistant, prompt: Prompt, key: str | None) -> wire.Request:
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
            search = {
                "type": "web_search_20260318",
                "name": "web_search",
                "max_uses": wire.MAX_SEARCHES,
            }
            body["tools"] = [search]
        return wire.request(assistant, "messages", anthropic_headers(key), body)

    def tokens(self, envelope: dict[str, Any]) -> wire.Tokens | None:
        """Return what was counted; the cache's tokens are counted apart."""
        usage = wire.as_object(envelope.get("usage"))
        kinds = ("", "cache_creation_", "cache_read_")
        sent = [usage.get(f"{kind}input_tokens") for kind in kinds]
        searches = wire.as_object(usage.get("server_tool_use")).get("web_search_requests", 0)
        return wire.counted(sent, usage.get("output_tokens"), searches)

    # https://docs.claude.com/en/api/messages#response
    def outcome(self, envelope: dict[str, Any]) -> str | Failure:
        """Return the text, or why there is none; thinking and tools may stand before it."""
        reason = envelope.get("stop_reason")
        if reason == "refusal":
            details = wire.as_object(envelope.get("stop_details"))
            return wire.declined(wire.as_text(details.get("category")))
        if reason in ("max_tokens", "model_context_window_exceeded", "pause_turn"):
            return wire.CUT_OFF
        blocks = wire.as_objects(envelope.get("content"))
        return "".join(wire.as_text(b.get("text")) for b in blocks if b.get("type") == "text")
