"""The providers, pure, by the name of their wire format in models.json; one module for each vendor.

A provider turns a :class:`Prompt` into a :class:`Request` and a :class:`Response` into a
:class:`Reply`.
"""

from __future__ import annotations

from collections.abc import Mapping

from store.polls.providers import envelopes as wire
from store.polls.providers.anthropic import Messages
from store.polls.providers.chat import Chat
from store.polls.providers.gemini import Gemini
from store.polls.providers.openai import Responses
from store.polls.providers.provider import Provider, Queue
from store.records import Assistant

PROVIDERS: Mapping[str, Provider] = {
    "responses": Responses(),
    "chat": Chat(),
    "messages": Messages(),
    "gemini": Gemini(),
}


def queue_of(assistant: Assistant) -> type[Queue]:
    """Return the queue of an assistant's provider.

    Raises:
        KeyError: it has none; see :func:`why_no_batches`.
    """
    if queue := wire.of_host(PROVIDERS[assistant.api].QUEUES, assistant):
        return queue
    raise KeyError(assistant.api)


def why_no_batches(assistant: Assistant) -> str | None:
    """Return why an assistant cannot be asked in batches, as far as models.json tells."""
    provider = PROVIDERS.get(assistant.api)
    if provider is None or wire.of_host(provider.QUEUES, assistant) is None:
        return "no queue for batches is known here of this api at the host of base_url"
    if assistant.web_search:
        return "batches are asked without web_search; set one of the two to false"
    if assistant.tier == "flex":
        return 'a batch has its own price; set "batch" to false or take "tier" out'
    return None


def why_no_flex(assistant: Assistant) -> str | None:
    """Return why an assistant cannot be asked in the flex tier, as far as models.json tells."""
    provider = PROVIDERS.get(assistant.api)
    if provider and provider.FLEX and wire.of_host(FLEX_HOSTS, assistant):
        return None
    return 'only OpenAI and Gemini are known here to have a flex tier; take "tier" out'


FLEX_HOSTS = dict.fromkeys(("openai.com", "googleapis.com", "localhost"), True)
"""Whose pages describe the tier: https://platform.openai.com/docs/guides/flex-processing and
https://ai.google.dev/gemini-api/docs/flex-inference."""
