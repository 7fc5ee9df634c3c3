"""The wire formats by their names in models.json, pure; one module for each vendor.

A format turns a :class:`Prompt` into a :class:`Request` and a :class:`Response` into a
:class:`Reply`.
"""

from collections.abc import Mapping

from store.polls.providers import wire
from store.polls.providers.anthropic import Messages
from store.polls.providers.gemini import Gemini
from store.polls.providers.openai import Chat, Responses
from store.polls.providers.wire import Queue, WireFormat
from store.records import Assistant

WIRE_FORMATS: Mapping[str, WireFormat] = {
    "responses": Responses(),
    "chat": Chat(),
    "messages": Messages(),
    "gemini": Gemini(),
}


def queue_of(assistant: Assistant) -> type[Queue] | None:
    """Return the queue that an assistant's host has for batches, if it is known to have one."""
    wire_format = WIRE_FORMATS.get(assistant.api)
    return wire.of_host(wire_format.QUEUES, assistant) if wire_format else None
