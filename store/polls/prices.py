"""What questions cost: at most before they are asked, and by their tokens when answered. Pure."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from store.polls.providers import PROVIDERS
from store.polls.providers.envelopes import MAX_SEARCHES, Reply, Tokens
from store.records import MOST_USD, Assistant

TOLERATED = 2
"""Times what was reserved that an answer may cost before its assistant is paused."""
OUTPUT_LIMITS = frozenset({"max_tokens"} | {one.OUTPUT_LIMIT for one in PROVIDERS.values()})
"""The members by which bodies limit the output; ``extra`` may set that of another server."""
BYTES_PER_TOKEN = 2
SEARCH_TOKENS = 10_000
"""Input tokens reserved for what one web search brings in."""
PRICES = ("usd_per_million_input", "usd_per_million_output", "usd_per_thousand_searches")
UNCOUNTED = "the provider counted no input tokens; the most that it may have cost is charged"


def missing_prices(assistant: Assistant) -> list[str]:
    """Return the members of models.json without which the assistant's cost is unknown.

    Sample assistants cost nothing, and one that does not search needs no price of searches.
    """
    if assistant.api == "sample":
        return []
    needed = PRICES if assistant.web_search else PRICES[:2]
    return [member for member in needed if getattr(assistant, member) is None]


def at_most(assistant: Assistant, body: Mapping[str, Any]) -> Tokens:
    """Return the most that a request with this body is taken to use."""
    searches = MAX_SEARCHES if assistant.web_search else 0
    size = len(msgspec.json.encode(body))
    sent = math.ceil(size / BYTES_PER_TOKEN) + searches * SEARCH_TOKENS
    return Tokens(sent, max(_output_limits(body), default=assistant.max_output_tokens), searches)


def _output_limits(body: Mapping[str, Any]) -> Iterator[int]:
    """Yield every limit on the output that a request names."""
    for name, value in body.items():
        if isinstance(value, dict):
            yield from _output_limits(value)
        elif name in OUTPUT_LIMITS and isinstance(value, int):
            yield value


def usd(assistant: Assistant, tokens: Tokens) -> float | None:
    """Return what these tokens and searches cost in US dollars, to the micro-dollar, if known."""
    if assistant.usd_per_million_input is None or assistant.usd_per_million_output is None:
        return None
    amount = (
        tokens.input * assistant.usd_per_million_input / 1e6
        + tokens.output * assistant.usd_per_million_output / 1e6
        + (tokens.searches or 0) * (assistant.usd_per_thousand_searches or 0) / 1e3
    )
    return round(min(amount, MOST_USD), 6)


def most_usd(assistant: Assistant, body: Mapping[str, Any]) -> float | None:
    """Return what a request with this body may cost at most in US dollars, if prices are known."""
    return usd(assistant, at_most(assistant, body))


def micros(amount: float) -> int:
    """Return whole micro-dollars, rounded up unless whole but for a float's last digits."""
    return math.ceil(round(min(amount, MOST_USD) * 1e6, 3))


def at_reduced_price(assistant: Assistant) -> Assistant:
    """Return the assistant with what its tokens cost in a batch, or in the flex tier."""
    prices = {member: getattr(assistant, member) for member in PRICES[:2]}
    factor = assistant.batch_price_factor
    return replace(assistant, **{m: price and price * factor for m, price in prices.items()})


def price_of(assistant: Assistant, reply: Reply) -> float | None:
    """Return what a reply cost; a tier is believed to be the cheap one only if the reply says so.

    OpenAI answers ``flex`` with ``default`` where it was answered, and billed, as any other.
    """
    if reply.tokens is None:
        return None
    is_cheap = assistant.tier == "flex" and reply.tier == "flex"
    return usd(at_reduced_price(assistant) if is_cheap else assistant, reply.tokens)


def check_cost(assistant: Assistant, reserved: int, reply: Reply) -> Reply:
    """Return the reply, noted if it cost more than the micro-dollars that were ``reserved``.

    One that cost over ``TOLERATED`` times as much is ``lasting``: its assistant is paused, since
    every other may cost as much. Counts without input are left out, as if there were none.
    """
    if reply.tokens is None:
        return reply
    # every request has input, so that a count of 0 is not a count
    if reply.tokens.input == 0:
        return replace(reply, tokens=None, notes=(*reply.notes, UNCOUNTED))
    spent = micros(price_of(assistant, reply) or 0)
    if spent <= reserved:
        return reply
    note = f"it cost {spent / 1e6:g} USD; {reserved / 1e6:g} USD were reserved"
    is_dear = spent > TOLERATED * reserved
    if is_dear:
        note += "; are the prices and limits in models.json right?"
    return replace(reply, notes=(*reply.notes, note), lasting=reply.lasting or is_dear)
