"""OpenAI's two formats, which its kin speak too, and their batches."""

from typing import Any

import msgspec

from store.polls.answers import ANSWER_SCHEMA, Prompt
from store.polls.providers import wire
from store.records import Assistant, Failure

ENDPOINTS = {"responses": "/v1/responses", "chat": "/v1/chat/completions"}
WEEK = 7 * 24 * 3600
"""Seconds for which OpenAI keeps files of ours."""
KEPT = {"anchor": "created_at", "seconds": WEEK}
ENDS = frozenset({"completed", "expired", "cancelled", "failed"})
FLEX_HOSTS = {"openai.com": True, "localhost": True}
"""https://platform.openai.com/docs/guides/flex-processing"""


class OpenAIQueue(wire.Queue):
    """Takes items as a file, and gives the results so."""

    # https://platform.openai.com/docs/guides/batch#1-prepare-your-batch-file
    def build_upload(self, items: wire.Items) -> wire.Request:
        """Return the upload of the items as JSON Lines."""
        url = ENDPOINTS[self._assistant.api]
        lines = (
            {"custom_id": id_, "method": "POST", "url": url, "body": body}
            for id_, body in items.items()
        )
        file = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
        fields = {"purpose": "batch", **{f"expires_after[{k}]": str(v) for k, v in KEPT.items()}}
        return self._post("files", fields, file)

    # https://platform.openai.com/docs/api-reference/batch/create
    def build_batch(self, items: wire.Items, file: str | None) -> wire.Request:  # noqa: ARG002
        """Return the batch of an uploaded file."""
        body = {
            "input_file_id": file,
            "endpoint": ENDPOINTS[self._assistant.api],
            "completion_window": "24h",
            "output_expires_after": KEPT,
        }
        return self._post(self.HOME, body)

    # https://platform.openai.com/docs/api-reference/batch/object
    def read_batch(self, described: dict[str, Any]) -> wire.RemoteBatch | None:
        """Return a batch; a file that is not there is null, or an empty string."""
        id_ = wire.path_id(described.get("id"))
        if id_ is None:
            return None
        status = wire.as_text(described.get("status"))
        files = map(wire.path_id, (described.get("output_file_id"), described.get("error_file_id")))
        errors = wire.as_objects(wire.as_object(described.get("errors")).get("data"))
        words = [wire.as_text(e.get(name)) for e in errors[:1] for name in ("code", "message")]
        present = tuple(dict.fromkeys(f"files/{file}/content" for file in files if file))
        has_failed = status == "failed" and not present
        return wire.RemoteBatch(
            id=id_,
            state="failed" if has_failed else "ended" if status in ENDS else "open",
            files=present,
            unasked=wire.UNASKED.get(status, wire.UNASKED["missing"]),
            why=": ".join(filter(None, words)) or None,
        )

    # https://platform.openai.com/docs/guides/batch#5-retrieve-the-results
    def read_result(self, line: dict[str, Any]) -> wire.Response:
        """Return what a line comes to; those of outputs and of errors have one shape."""
        answer, error = wire.as_object(line.get("response")), wire.as_object(line.get("error"))
        if answer:
            id_ = wire.as_text(answer.get("request_id"))
            headers = {"x-request-id": id_} if id_ else {}
            return wire.as_response(answer.get("status_code"), answer.get("body"), headers)
        code = wire.as_text(error.get("code"))
        if code in ("batch_expired", "batch_cancelled"):
            return wire.UNASKED[code.removeprefix("batch_")]
        why = wire.as_text(error.get("message")) or code or "no reason"
        return wire.no_answer("http", f"The provider's batch did not answer ({why}).")


QUEUES = {"openai.com": OpenAIQueue, "localhost": OpenAIQueue}
"""Others speak these formats without a queue that is known here."""


class Responses(wire.WireFormat):
    """OpenAI's present format."""

    FLEX = FLEX_HOSTS
    QUEUES = QUEUES
    KEYS = {"OPENAI_API_KEY": "openai.com"}  # noqa: RUF012 - as in the base class

    # https://platform.openai.com/docs/api-reference/responses/create
    def build_request(self, assistant: Assistant, prompt: Prompt, key: str | None) -> wire.Request:
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
            body |= {"tools": [{"type": "web_search"}], "max_tool_calls": wire.MAX_SEARCHES}
        if assistant.tier:
            body["service_tier"] = assistant.tier
        return wire.request(assistant, "responses", wire.bearer(key), body)

    def tokens(self, envelope: dict[str, Any]) -> wire.Tokens | None:
        """Return what was counted; searches are counted apart, or are the calls of the tool."""
        usage = wire.as_object(envelope.get("usage"))
        searches = wire.as_object(wire.as_object(envelope.get("tool_usage")).get("web_search"))
        output = wire.as_objects(envelope.get("output"))
        calls = sum(item.get("type") == "web_search_call" for item in output)
        searched = searches.get("num_requests", calls)
        return wire.counted(usage.get("input_tokens"), usage.get("output_tokens"), searched)

    # https://platform.openai.com/docs/api-reference/responses/object
    def outcome(self, envelope: dict[str, Any]) -> str | Failure:
        """Return the text, or why there is none; reasoning may stand before the message."""
        parts = [
            part
            for item in wire.as_objects(envelope.get("output"))
            if item.get("type") == "message"
            for part in wire.as_objects(item.get("content"))
        ]
        for part in parts:
            if part.get("type") == "refusal":
                return wire.declined(wire.as_text(part.get("refusal")))
        if envelope.get("status") == "incomplete":
            reason = wire.as_text(wire.as_object(envelope.get("incomplete_details")).get("reason"))
            if reason == "max_output_tokens":
                return wire.CUT_OFF
            if reason == "content_filter":
                return wire.filtered()
            why = reason or "no reason"
            return Failure("http", f"The provider left the answer incomplete ({why}).")
        return "".join(wire.as_text(p.get("text")) for p in parts if p.get("type") == "output_text")


class Chat(wire.WireFormat):
    """OpenAI's older format, and what its kin made of it."""

    OUTPUT_LIMIT = "max_completion_tokens"
    FLEX = FLEX_HOSTS
    QUEUES = QUEUES
    KEYS = {  # noqa: RUF012 - as in the base class
        "DEEPSEEK_API_KEY": "deepseek.com",
        "GITHUB_TOKEN": "github.ai",
        "GROQ_API_KEY": "groq.com",
        "HF_TOKEN": "huggingface.co",
        "MISTRAL_API_KEY": "mistral.ai",
        "OPENAI_API_KEY": "openai.com",
        "OPENROUTER_API_KEY": "openrouter.ai",
        "PERPLEXITY_API_KEY": "perplexity.ai",
        "TOGETHER_API_KEY": "together.xyz",
        "XAI_API_KEY": "x.ai",
    }

    # https://platform.openai.com/docs/api-reference/chat/create
    def build_request(self, assistant: Assistant, prompt: Prompt, key: str | None) -> wire.Request:
        """Return the request; ``structured`` says how the answer's form is asked for."""
        body: dict[str, Any] = {
            "model": assistant.model,
            "messages": [
                {"role": "system", "content": prompt.system},
                {"role": "user", "content": prompt.user},
            ],
            self.OUTPUT_LIMIT: assistant.max_output_tokens,
        }
        if assistant.structured == "json_schema":
            schema = {"name": "answer", "strict": True, "schema": ANSWER_SCHEMA}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif assistant.structured == "json_object":
            body["response_format"] = {"type": "json_object"}
        if assistant.web_search:
            body["web_search_options"] = {}
        if assistant.tier:
            body["service_tier"] = assistant.tier
        return wire.request(assistant, "chat/completions", wire.bearer(key), body)

    # https://docs.x.ai/docs/key-information/consumption-and-rate-limits
    def tokens(self, envelope: dict[str, Any]) -> wire.Tokens | None:
        """Return what was counted; xAI counts the tokens of reasoning in the total alone."""
        usage = wire.as_object(envelope.get("usage"))
        sent, output, total = (
            usage.get(f"{part}_tokens") for part in ("prompt", "completion", "total")
        )
        if isinstance(total, int) and isinstance(sent, int) and isinstance(output, int):
            output = max(total - sent, output)
        return wire.counted(sent, output, usage.get("num_search_queries"))

    # https://platform.openai.com/docs/api-reference/chat/object
    def outcome(self, envelope: dict[str, Any]) -> str | Failure:
        """Return the first choice's text, or why there is none."""
        choice = next(iter(wire.as_objects(envelope.get("choices"))), {})
        message = wire.as_object(choice.get("message"))
        if refusal := wire.as_text(message.get("refusal")):
            return wire.declined(refusal)
        if choice.get("finish_reason") == "content_filter":
            return wire.filtered()
        if choice.get("finish_reason") == "length":
            return wire.CUT_OFF
        return wire.as_text(message.get("content"))
