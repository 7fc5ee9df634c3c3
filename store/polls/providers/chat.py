"""Chat Completions: OpenAI, and the many servers that are compatible with it."""

from __future__ import annotations

from typing import Any

from store.polls.prompt import ANSWER_SCHEMA
from store.polls.providers import Prompt, Request, Tokens
from store.polls.providers import envelopes as wire
from store.polls.providers.batches import Queue
from store.polls.providers.batches.openai import OpenAIQueue
from store.polls.providers.batches.xai import XAIQueue
from store.polls.providers.provider import Provider
from store.records import Assistant, Failure

QUEUES = {"openai.com": OpenAIQueue, "x.ai": XAIQueue, "localhost": OpenAIQueue}
"""The queues of the hosts that are known to have one; others speak this format without one."""


class Chat(Provider):
    """OpenAI's older format, and what its kin made of it."""

    PATH = "chat/completions"
    OUTPUT_LIMIT = "max_completion_tokens"
    FLEX = True
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
        return wire.request(assistant, self.PATH, wire.bearer(key), body)

    def queue(self, assistant: Assistant) -> type[Queue] | None:
        """Return the queue of the host, if it has one."""
        return wire.of_host(QUEUES, assistant)

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
