"""The providers, pure, by the name of their wire format in models.json; one module for each vendor.

A provider turns a :class:`Prompt` into a :class:`Request` and a :class:`Response` into a
:class:`Reply`.
"""

from collections.abc import Mapping

from store.polls.providers import provider as wire
from store.polls.providers.anthropic import Messages
from store.polls.providers.gemini import Gemini
from store.polls.providers.openai import Chat, Responses
from store.polls.providers.provider import Provider, Queue
from store.records import Assistant

PROVIDERS: Mapping[str, Provider] = {
    "responses": Responses(),
    "chat": Chat(),
    "messages": Messages(),
    "gemini": Gemini(),
}


def queue_of(assistant: Assistant) -> type[Queue] | None:
    """Return the queue that an assistant's host has for batches, if it is known to have one."""
    provider = PROVIDERS.get(assistant.api)
    return wire.of_host(provider.QUEUES, assistant) if provider else None
