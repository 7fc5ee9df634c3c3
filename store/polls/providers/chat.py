"""Chat Completions: OpenAI, xAI and the many servers that are compatible; xAI's batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import msgspec

from store.polls.prompt import ANSWER_SCHEMA, Prompt
from store.polls.providers import envelopes as wire
from store.polls.providers.envelopes import Request, Tokens
from store.polls.providers.openai import OpenAIQueue
from store.polls.providers.provider import UNASKED, Items, Provider, Remote, Result, grpc_error
from store.records import Assistant, Failure

CANCELLED = "Batch cancelled"
"""What the result of an item says that was cancelled."""
PAGE = "?"
"""Parts a batch's id from the token of a page of its results, where there is one."""


class XAIQueue(OpenAIQueue):
    """Takes items as OpenAI does, and gives the results in pages."""

    CANCEL = ":cancel"

    def build_upload(self, items: Items) -> Request:
        """The upload of the items as JSON Lines; this API knows no purpose of files."""
        return msgspec.structs.replace(super().build_upload(items), body={})

    # https://docs.x.ai/docs/guides/batch-api
    def build_batch(self, items: Items, label: str, file: str | None) -> Request:  # noqa: ARG002
        """The batch of an uploaded file, under our label."""
        return self._post(self.HOME, {"name": label, "input_file_id": file})

    def build_download(self, file: str) -> Request:
        """A page of results."""
        batch, _, token = file.partition(PAGE)
        # a token may be anything that a provider said
        following = f"&pagination_token={quote(token, safe='')}" if token else ""
        return self._get(f"{self.HOME}/{batch}/results?limit=100{following}")

    def read_batch(self, described: dict[str, Any]) -> Remote | None:
        """A batch; xAI cancels one whose file it does not take, before it counts its items."""
        id_ = wire.path_id(described.get("batch_id"))
        if id_ is None:
            return None
        state, why = (
            wire.members(described.get("state")),
            wire.text(described.get("cancel_by_xai_message")),
        )
        total, pending, cancelled = (
            wire.number(state.get(f"num_{name}")) for name in ("requests", "pending", "cancelled")
        )
        has_ended = bool(why) or (total > 0 and pending == 0)
        return Remote(
            id=id_,
            state="failed" if why and not total else "ended" if has_ended else "open",
            files=(id_,) if has_ended else (),
            unasked=UNASKED["cancelled" if why or cancelled else "missing"],
            is_settling=cancelled > 0,
            why=why or None,
        )

    def read_results(self, body: bytes) -> Iterator[Result]:
        """Each result of a page; an error is a sentence or has a code of gRPC."""
        for each in wire.items(wire.read_object(body).get("results")):
            identifier = wire.text(each.get("batch_request_id"))
            result = wire.members(each.get("batch_result")) or each
            answered = wire.members(wire.members(result.get("response")).get("chat_get_completion"))
            error = result.get("error")
            if answered:
                yield identifier, wire.as_response(200, answered)
            elif error == CANCELLED:
                yield identifier, UNASKED["cancelled"]
            else:
                named = wire.members(error) or {"message": wire.text(error)}
                yield identifier, grpc_error(named)

    def next_file(self, file: str, body: bytes) -> str | None:
        """The next page of results, if there is one."""
        token = wire.text(wire.read_object(body).get("pagination_token"))
        return f"{file.partition(PAGE)[0]}{PAGE}{token}" if token else None


class Chat(Provider):
    """OpenAI's older format, and what its kin made of it."""

    OUTPUT_LIMIT = "max_completion_tokens"
    FLEX = True
    # others speak this format without a queue
    QUEUES = {  # noqa: RUF012 - as in the base class
        "openai.com": OpenAIQueue,
        "x.ai": XAIQueue,
        "localhost": OpenAIQueue,
    }
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
    def build_request(self, assistant: Assistant, prompt: Prompt, key: str | None) -> Request:
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
    def tokens(self, envelope: dict[str, Any]) -> Tokens | None:
        """Return what was counted; xAI counts the tokens of reasoning in the total alone."""
        usage = wire.members(envelope.get("usage"))
        given, made, total = (usage.get(f"{of}_tokens") for of in ("prompt", "completion", "total"))
        if isinstance(total, int) and isinstance(given, int) and isinstance(made, int):
            made = max(total - given, made)
        return wire.counted(given, made, usage.get("num_search_queries"))

    # https://platform.openai.com/docs/api-reference/chat/object
    def outcome(self, envelope: dict[str, Any]) -> str | Failure:
        """Return the first choice's text, or why there is none."""
        choice = next(iter(wire.items(envelope.get("choices"))), {})
        message = wire.members(choice.get("message"))
        if refusal := wire.text(message.get("refusal")):
            return wire.declined(refusal)
        if choice.get("finish_reason") == "content_filter":
            return wire.filtered()
        if choice.get("finish_reason") == "length":
            return wire.CUT_OFF
        return wire.text(message.get("content"))
