"""The providers, pure, by the name of their wire format in models.json; one module for each vendor.

A provider turns a :class:`Prompt` into a :class:`Request` and a :class:`Response` into a
:class:`Reply`.
"""

from collections.abc import Mapping
from urllib.parse import urlsplit

from store.polls.providers.anthropic import AnthropicQueue, Messages
from store.polls.providers.gemini import Gemini
from store.polls.providers.openai import ENDPOINTS, Chat, OpenAIQueue, Responses
from store.polls.providers.provider import LOOPBACK, Provider, Queue
from store.records import Assistant

PROVIDERS: Mapping[str, Provider] = {
    "responses": Responses(),
    "chat": Chat(),
    "messages": Messages(),
    "gemini": Gemini(),
}


def queue_of(assistant: Assistant) -> type[Queue] | None:
    """Return the queue that an assistant's host has for batches, if it is known to have one."""
    if assistant.api == "messages":
        return AnthropicQueue
    # others speak OpenAI's formats without a queue that is known here
    host = urlsplit(assistant.base_url or "").hostname or ""
    is_openai = host in LOOPBACK or f".{host}".endswith(".openai.com")
    return OpenAIQueue if is_openai and assistant.api in ENDPOINTS else None
