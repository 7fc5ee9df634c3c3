"""OpenAI: the Responses API, and batches for it and for Chat Completions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from store.polls.prompt import ANSWER_SCHEMA, Prompt
from store.polls.providers import envelopes as wire
from store.polls.providers.envelopes import MAX_SEARCHES, Request, Tokens
from store.polls.providers.provider import UNASKED, Items, Provider, Queue, Remote, Result
from store.records import Assistant, Failure

ENDPOINTS = {"responses": "/v1/responses", "chat": "/v1/chat/completions"}
LABEL = "consensus_batch"
WEEK = 7 * 24 * 3600
"""Seconds for which OpenAI keeps files of ours."""
KEPT = {"anchor": "created_at", "seconds": WEEK}
ENDS = frozenset({"completed", "expired", "cancelled", "failed"})


class OpenAIQueue(Queue):
    """Takes items as a file, and gives the results so."""

    # https://platform.openai.com/docs/guides/batch#1-prepare-your-batch-file
    def build_upload(self, items: Items) -> Request:
        """The upload of the items as JSON Lines."""
        url = ENDPOINTS[self._assistant.api]
        lines = (
            {"custom_id": id_, "method": "POST", "url": url, "body": body}
            for id_, body in items.items()
        )
        file = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
        fields = {"purpose": "batch", **{f"expires_after[{k}]": str(v) for k, v in KEPT.items()}}
        return self._post("files", fields, file)

    # https://platform.openai.com/docs/api-reference/batch/create
    def build_batch(self, items: Items, label: str, file: str | None) -> Request:  # noqa: ARG002
        """The batch of an uploaded file, under our label."""
        body = {
            "input_file_id": file,
            "endpoint": ENDPOINTS[self._assistant.api],
            "completion_window": "24h",
            "metadata": {LABEL: label},
            "output_expires_after": KEPT,
        }
        return self._post(self.HOME, body)

    def build_download(self, file: str) -> Request:
        """A file of results."""
        return self._get(f"files/{file}/content")

    # https://platform.openai.com/docs/api-reference/batch/object
    def read_batch(self, described: dict[str, Any]) -> Remote | None:
        """A batch; a file that is not there is null, or an empty string."""
        id_ = wire.path_id(described.get("id"))
        if id_ is None:
            return None
        status = wire.text(described.get("status"))
        files = map(wire.path_id, (described.get("output_file_id"), described.get("error_file_id")))
        there = tuple(dict.fromkeys(filter(None, files)))
        has_failed = status == "failed" and not there
        return Remote(
            id=id_,
            state="failed" if has_failed else "ended" if status in ENDS else "open",
            files=there,
            unasked=UNASKED.get(status, UNASKED["missing"]),
            why=_why(described),
        )

    # https://platform.openai.com/docs/guides/batch#5-retrieve-the-results
    def read_results(self, body: bytes) -> Iterator[Result]:
        """Each line's result; the outputs and the errors have one shape."""
        for line in filter(None, map(wire.read_object, body.splitlines())):
            answered, error = wire.members(line.get("response")), wire.members(line.get("error"))
            identifier, code = wire.text(line.get("custom_id")), wire.text(error.get("code"))
            if answered:
                named = wire.text(answered.get("request_id"))
                headers = {"x-request-id": named} if named else {}
                came = wire.as_response(answered.get("status_code"), answered.get("body"), headers)
                yield identifier, came
            elif code in ("batch_expired", "batch_cancelled"):
                yield identifier, UNASKED[code.removeprefix("batch_")]
            else:
                said = wire.text(error.get("message")) or code or "no reason"
                yield identifier, Failure("http", f"The provider's batch did not answer ({said}).")


def _why(described: dict[str, Any]) -> str | None:
    errors = wire.items(wire.members(described.get("errors")).get("data"))
    said = [wire.text(errors[0].get(name)) for name in ("code", "message")] if errors else []
    return ": ".join(filter(None, said)) or None


class Responses(Provider):
    """OpenAI's present format."""

    FLEX = True
    # xAI's batches are Chat Completions alone
    QUEUES = {"openai.com": OpenAIQueue, "localhost": OpenAIQueue}  # noqa: RUF012
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
        return wire.request(assistant, "responses", wire.bearer(key), body)

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
