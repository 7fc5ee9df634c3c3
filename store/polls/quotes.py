"""What asking would cost, at most and as expected, and how long it would take. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from store.polls.asking import request_for
from store.polls.batches import WORTH_IT
from store.polls.desk import Desk
from store.polls.due import Pair
from store.polls.prices import at_most, at_reduced_price, usd
from store.polls.providers.envelopes import Tokens
from store.records import Assistant

EXPECTED_INPUT = 0.5
"""The part of the input's most that is expected: two bytes to a token are half of what English
text has."""
EXPECTED_OUTPUT = 0.375
"""The part of the output's most that is expected: 1,500 of 4,000 tokens."""


def quote(calls: Sequence[Pair], desk: Desk, *, is_due: bool) -> list[str]:
    """Return in lines what these calls would use, cost and take, per assistant and in all."""
    lanes: dict[str, list[Pair]] = {}
    for pair in calls:
        lanes.setdefault(pair.assistant.name, []).append(pair)
    lines: list[str] = []
    expected = most = 0.0
    unknown = False
    for name, lane in lanes.items():
        assistant = lane[0].assistant
        if assistant.api == "sample":
            lines.append(f"{name}: {len(lane)} calls of a sample assistant, free")
            continue
        batched = is_due and assistant.batch and len(lane) >= WORTH_IT
        batched = batched and not desk.files.pause_of(assistant, desk.clock.now())
        tokens = _tokens(assistant, lane)
        costs = _costs(assistant, lane, tokens, is_batched=batched)
        way = " in batches" if batched else " in the flex tier" if assistant.tier else ""
        price = "price unknown"
        if costs:
            price = f"{costs[0]:.2f} USD{way} expected, {costs[1]:.2f} USD at most"
        time = f"at least {math.ceil(len(lane) / assistant.rpm)} min at {assistant.rpm} a minute"
        lines.append(
            f"{name}: {len(lane)} calls, {price}; at most {tokens.input:,} input and "
            f"{tokens.output:,} output tokens; {'within a day' if batched else time}"
        )
        if costs is None:
            unknown = True
        else:
            expected, most = expected + costs[0], most + costs[1]
    more = " and what has no price" if unknown else ""
    lines.append(
        f"In all: {expected:.2f} USD expected, {most:.2f} USD at most{more}, if no question has to "
        "be asked twice (an answer cut off, a fault of the line). Nothing was sent."
    )
    if desk.budget.daily_usd and expected > desk.budget.daily_usd:
        days = math.ceil(expected / desk.budget.daily_usd)
        lines.append(f"At daily_usd {desk.budget.daily_usd:g} that takes {days} days or more.")
    return lines


def _tokens(assistant: Assistant, lane: Sequence[Pair]) -> Tokens:
    bodies = (request_for(assistant, pair.category.question).body for pair in lane)
    return sum((at_most(assistant, body) for body in bodies), Tokens(0, 0))


def _costs(
    assistant: Assistant, lane: Sequence[Pair], tokens: Tokens, *, is_batched: bool
) -> tuple[float, float] | None:
    """Return what these calls are expected to cost and cost at most, if the prices are known.

    The flex tier may answer in the ordinary one, at its price.
    """
    cheap = at_reduced_price(assistant) if is_batched or assistant.tier else assistant
    likely = Tokens(
        round(tokens.input * EXPECTED_INPUT),
        round(tokens.output * EXPECTED_OUTPUT),
        len(lane) if assistant.web_search else 0,
    )
    expected = usd(cheap, likely)
    most = usd(cheap if is_batched else assistant, tokens)
    return None if expected is None or most is None else (expected, most)
