"""Chat Completions: OpenAI, and the many servers that are compatible with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from store.polls.prompt import ANSWER_SCHEMA
from store.polls.providers import Prompt, Reply, Request, Response, Tokens
from store.polls.providers import envelopes as wire

if TYPE_CHECKING:
    from store.records import Assistant, Failure


# https://platform.openai.com/docs/api-reference/chat/create
def build_request(assistant: Assistant, prompt: Prompt, key: str | None) -> Request:
    """The request that puts a prompt to an assistant; no sampling parameters are sent."""
    body: dict[str, Any] = {
        "model": assistant.model,
        "messages": [
            {"role": "system", "content": prompt.system},
            {"role": "user", "content": prompt.user},
        ],
        "max_completion_tokens": assistant.max_output_tokens,
    }
    if assistant.structured == "json_schema":
        schema = {"name": "answer", "strict": True, "schema": ANSWER_SCHEMA}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    elif assistant.structured == "json_object":
        body["response_format"] = {"type": "json_object"}
    if assistant.web_search:
        body["web_search_options"] = {}
    return wire.request(assistant, "chat/completions", wire.bearer(key), body)


# https://platform.openai.com/docs/api-reference/chat/object
def read_reply(response: Response) -> Reply:
    """The model's text, or the failure; stop reason and refusal come before the text."""
    return wire.reply(response, "x-request-id", _outcome, _tokens)


# https://docs.x.ai/docs/key-information/consumption-and-rate-limits
def _tokens(envelope: dict[str, Any]) -> Tokens | None:
    usage = wire.members(envelope.get("usage"))
    given, made, total = (usage.get(f"{of}_tokens") for of in ("prompt", "completion", "total"))
    if isinstance(total, int) and isinstance(given, int) and isinstance(made, int):
        made = max(total - given, made)  # xAI counts the tokens of reasoning in the total alone
    return wire.counted(given, made, usage.get("num_search_queries"))


def _outcome(envelope: dict[str, Any]) -> str | Failure:
    choice = next(iter(wire.items(envelope.get("choices"))), {})
    message = wire.members(choice.get("message"))
    if refusal := wire.text(message.get("refusal")):
        return wire.declined(refusal)
    if choice.get("finish_reason") == "content_filter":
        return wire.filtered()
    if choice.get("finish_reason") == "length":
        return wire.CUT_OFF
    return wire.text(message.get("content"))
