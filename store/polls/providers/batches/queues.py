"""Which queue takes an assistant's batches."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from store.polls.providers.batches.anthropic import AnthropicQueue
from store.polls.providers.batches.gemini import GeminiQueue
from store.polls.providers.batches.openai import OpenAIQueue
from store.polls.providers.batches.xai import XAIQueue

if TYPE_CHECKING:
    from collections.abc import Mapping

    from store.polls.providers.batches import Queue
    from store.records import Assistant

QUEUES: Mapping[str, type[Queue]] = {
    "responses": OpenAIQueue,
    "chat": OpenAIQueue,
    "messages": AnthropicQueue,
    "gemini": GeminiQueue,
}
"""The queue of each format that has one; of its kin, xAI's is its own."""


def queue_of(assistant: Assistant) -> type[Queue]:
    """The kind of queue that an assistant's provider has.

    Raises:
        KeyError: it has none; see :func:`why_not`.
    """
    host = urlsplit(assistant.base_url or "").hostname or ""
    return XAIQueue if f".{host}".endswith(".x.ai") else QUEUES[assistant.api]


def why_not(assistant: Assistant) -> str | None:
    """Why an assistant cannot be asked in batches, as far as models.json tells."""
    if assistant.api not in QUEUES:
        return f'no queue takes batches of its api "{assistant.api}"'
    if queue_of(assistant) is XAIQueue and assistant.api != "chat":
        return 'xAI answers batches as Chat Completions alone; set its api to "chat"'
    if assistant.web_search:
        return "batches are asked without web_search; set one of the two to false"
    return None
