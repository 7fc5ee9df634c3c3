"""Chat Completions: OpenAI, and the many servers that are compatible with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from store.polls.prompt import ANSWER_SCHEMA
from store.polls.providers import Prompt, Reply, Request, Response
from store.polls.providers.envelopes import counted, members, opened, text_or_empty, with_extra
from store.records import Failure

if TYPE_CHECKING:
    from store.records import Assistant


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
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    base_url = (assistant.base_url or "").rstrip("/")
    return Request(f"{base_url}/chat/completions", headers, with_extra(body, assistant.extra))


# https://platform.openai.com/docs/api-reference/chat/object
def read_reply(response: Response) -> Reply:
    """The model's text, or the failure; stop reason and refusal come before the text."""
    envelope = opened(response)
    if isinstance(envelope, Failure):
        return Reply(outcome=envelope, request_id=response.headers.get("x-request-id"))
    usage = members(envelope.get("usage"))
    return Reply(
        outcome=_outcome(envelope),
        served_model=text_or_empty(envelope.get("model")) or None,
        request_id=response.headers.get("x-request-id")
        or text_or_empty(envelope.get("id"))
        or None,
        tokens=counted(usage.get("prompt_tokens"), usage.get("completion_tokens")),
    )


def _outcome(envelope: dict[str, Any]) -> str | Failure:
    choices = envelope.get("choices")
    choice = members(choices[0]) if isinstance(choices, list) and choices else {}
    message = members(choice.get("message"))
    if refusal := text_or_empty(message.get("refusal")):
        return Failure("refusal", f"The model refused: {refusal[:300]}")
    if choice.get("finish_reason") == "content_filter":
        return Failure("refusal", "The provider's content filter stopped the answer.")
    if choice.get("finish_reason") == "length":
        return Failure("truncated", "The answer was cut off at the output limit.")
    return text_or_empty(message.get("content"))
