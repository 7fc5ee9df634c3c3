"""What a sample assistant sends: an answer, a text that is none, or a failure."""

import datetime as dt
import math
from random import Random
from typing import Any

import msgspec

from sample.draws import digest, seed
from sample.opinions import EPOCH, ranked, title_text
from sample.subjects import subject_of
from sample.writing import Author
from store.polls.providers.wire import Reply, Tokens
from store.records import SAMPLE, Category, Failure, FailureKind

FAILING = 0.03  # share of polls that bring no answer


def _sent(answer: dict[str, Any], draw: Random, noun: str) -> str:
    """The text as a model sends it: mostly bare JSON, now and then in a fence or in prose."""
    text = msgspec.json.encode(answer).decode()
    form = draw.random()
    if form < 0.04:
        return f"```json\n{text}\n```"
    if form < 0.06:
        return f"Here is my ranking of the {noun} options you asked about.\n\n{text}"
    return text


_FAILURES: tuple[tuple[FailureKind, int, str, int], ...] = (
    ("timeout", 22, "No answer came within 60 seconds.", 60_000),
    ("rate_limited", 18, "The service asked for fewer requests (HTTP 429).", 140),
    ("http", 16, "The service answered with an internal error (HTTP 503).", 900),
    ("network", 14, "The connection was closed before an answer came.", 2_300),
    ("truncated", 8, "The answer ended at the output limit.", 14_000),
    ("refusal", 6, "The model declined to rank products.", 1_900),
)


_UNREADABLE = 22  # the weight of texts that the parser refuses, beside the weights above


def _unreadable(text: str, answer: dict[str, Any], draw: Random) -> str:
    """A text that is no answer: cut off, a list, nothing, or another object."""
    form = draw.randrange(4)
    if form == 0:
        return text[: len(text) * 2 // 3]
    if form == 1:
        rows = enumerate(answer["picks"], 1)
        return "\n".join(f"{rank}. {pick['name']}: {pick['reason']}" for rank, pick in rows)
    return "" if form == 2 else '{"ranking": []}'


def _served_model(assistant: str, at: dt.datetime) -> str:
    return f"sample-{assistant[-1].lower()}-{at.year}-{(at.month - 1) // 3 * 3 + 1:02d}"


def reply(slug: str, category: Category, assistant: str, at: dt.datetime, repeat: int = 0) -> Reply:
    """Make up a reply, with the milliseconds it took; nobody is asked for a ``repeat`` on a day."""
    days = (at - EPOCH) / dt.timedelta(days=1)
    subject = subject_of(title_text(category), category.nouns)
    draw = Random(seed("words", slug, assistant, at.date()))
    author = Author(assistant, subject, draw)
    answer = author.answer(ranked(slug, category, assistant, days))
    text = _sent(answer, draw, subject.noun)

    asked = (slug, assistant, int(at.timestamp()))
    chance = Random(seed("chance", *asked))
    latency = int(author.voice.latency_ms * math.exp(chance.gauss(0, 0.25)))
    request_id = f"{SAMPLE}{digest('request', *asked).hex()[:20]}"
    if chance.random() < FAILING:
        weights = [*(weight for _, weight, _, _ in _FAILURES), _UNREADABLE]
        number = chance.choices(range(len(weights)), weights)[0]
        if number < len(_FAILURES):
            kind, _, error, took = _FAILURES[number]
            known = request_id if kind not in {"timeout", "network"} else None
            latency = took + int(took * 0.2 * chance.random())
            failure = Failure(kind=kind, error=error)
            return Reply(outcome=failure, request_id=known, latency_ms=latency)
        text = _unreadable(text, answer, chance)
    tokens = Tokens(input=430 + len(category.question) // 4, output=len(text.encode()) // 4 + 1)
    return Reply(
        outcome=text,
        served_model=_served_model(assistant, at),
        request_id=request_id,
        tokens=tokens,
        latency_ms=latency,
    )
