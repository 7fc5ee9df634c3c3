"""Asking one assistant one question: from category to a poll that is ready for history."""

from __future__ import annotations

import logging
import math
import re
import traceback
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct
from msgspec.structs import replace

from store.cleaning import clean
from store.line_codec import decode_line, encode_line
from store.polls import answer_parsing, sample, secrets
from store.polls.prompt import prompt
from store.polls.providers import Reply, chat, gemini, messages, responses
from store.polls.sending import Limits, Sent, Skipped
from store.polls.spending import Meter, at_most, checked, usd
from store.records import Answer, Failure, Poll, Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from datetime import datetime

    from store.polls.batches.files import Asking
    from store.polls.due import Pair
    from store.polls.providers import Prompt, Request, Response
    from store.polls.sending import Sender
    from store.polls.spending import Budget
    from store.records import Assistant, Category


log = logging.getLogger(__name__)


class Provider(Protocol):
    """A provider's wire format."""

    def build_request(self, assistant: Assistant, prompt: Prompt, key: str | None) -> Request:
        """The request that puts a prompt to an assistant."""

    def read_reply(self, response: Response) -> Reply:
        """What a response says."""


PROVIDERS: Mapping[str, Provider] = {
    "responses": responses,
    "chat": chat,
    "messages": messages,
    "gemini": gemini,
}


class Unready(Exception):
    """An assistant cannot be asked; the sentence says what to set."""


class Asked(Struct, frozen=True):
    """A poll, its assistant's rest in seconds, and the provider's time if ours does not fit."""

    poll: Poll
    rest: float | None = None
    at: datetime | None = None


def key_of(assistant: Assistant, secret: Callable[[str], str | None]) -> str | None:
    """An assistant's API key, or ``None`` if it needs none.

    Raises:
        Unready: it has a fault, or its key is missing or cannot be sent in a header.
    """
    name = assistant.name
    for member, fault in faults(assistant):
        where = f" at {member}" if member else ""
        raise Unready(f"{name}, models.json{where}: {fault}")
    if not assistant.key_env:
        return None
    key = secret(assistant.key_env)
    if not key:
        raise Unready(f"{name}: the environment variable that its key_env names is not set")
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise Unready(
            f"{name}: the variable that its key_env names holds no API key: "
            "it has a space, a line break or a letter that is not ASCII"
        )
    return key


PASTED = (
    "this looks like an API key; give the name of an environment variable that holds the key, and "
    "take this one out of use"
)


def faults(assistant: Assistant) -> Iterator[tuple[str | None, str]]:
    """What in models.json keeps an assistant from being asked.

    Each is a member, or ``None`` for the whole assistant, and a sentence that quotes no value.
    """
    if missing := lacking(assistant):
        yield None, f"this assistant lacks {missing}, which its api needs"
    if looks_like_a_key(assistant.key_env):
        yield "key_env", PASTED


def lacking(assistant: Assistant) -> str:
    """The members of models.json that an assistant of a real provider lacks, in words."""
    if assistant.api == "sample":
        return ""
    return " and ".join(n for n in ("base_url", "model") if getattr(assistant, n) is None)


def looks_like_a_key(name: str | None) -> bool:
    """Whether what should be a variable's name is rather a key that was pasted there."""
    longest = 24
    return bool(
        name and len(name) > longest and re.search("[a-z]", name) and re.search(r"\d", name)
    )


def request_for(assistant: Assistant, question: str, key: str | None = None) -> Request:
    """The request that puts a question to an assistant of a real provider."""
    return PROVIDERS[assistant.api].build_request(assistant, prompt(question), key)


def cost_at_most(assistant: Assistant, category: Category) -> float | None:
    """What asking once may cost at most in US dollars, if the assistant's prices are known."""
    if assistant.api == "sample":
        return 0
    if lacking(assistant):
        return None
    return usd(assistant, at_most(assistant, request_for(assistant, category.question).body))


def ask(
    pair: Pair, at: datetime, sender: Sender, budget: Budget, repeat: int = 0
) -> Asked | Skipped:
    """Ask an assistant a category's question; every failure becomes a poll with its kind.

    So does an unexpected exception, whose traceback is logged. ``repeat``, the number of earlier
    polls that day, varies what a sample assistant answers.
    """
    try:
        return _asked(pair, at, sender, budget, repeat)
    except Exception:  # noqa: BLE001 - else one odd reply would end the polls of all others
        reply = _fault(f"asking {pair.assistant.name} about {pair.slug}", sender.secret)
        return Asked(_poll(pair.assistant, pair.slug, pair.category.question, reply))


UNEXPECTED = Failure("http", "The provider's reply could not be worked on; the log says why.")
EXAMPLE_TIME = "2026-01-01T00:00:00Z"
"""A time to see by whether a poll can be recorded and read back; its own follows when it is."""


def _asked(
    pair: Pair, at: datetime, sender: Sender, budget: Budget, repeat: int
) -> Asked | Skipped:
    assistant, question = pair.assistant, pair.category.question
    if assistant.api == "sample":
        reply, latency = sample.reply(pair.slug, pair.category, assistant.name, at, repeat)
        return Asked(replace(_poll(assistant, pair.slug, question, reply), latency_ms=latency))
    sent = _send(assistant, question, sender, budget)
    notes: tuple[str, ...] = ()
    if isinstance(sent, Sent) and sent.reply.failure == "truncated":
        sent, notes = _asked_again(assistant, question, sender, budget, sent)
    if isinstance(sent, Skipped):
        return sent
    if sent.attempts > 1:
        notes = (*notes, f"sent {sent.attempts} times")
    poll = _poll(assistant, pair.slug, question, sent.reply, notes, sender.secret)
    poll = _recordable(sender.secret, replace(poll, latency_ms=sent.latency_ms))
    return Asked(poll, sent.rest, sent.at)


def asked_in_batch(
    assistant: Assistant, asking: Asking, came: Response | Failure, note: str, key: str | None
) -> Asked:
    """What an item of a batch comes to; ``assistant`` has the prices of batches.

    It has no latency, which would be the queue's, and a cut-off answer is not asked for again.
    """
    slug, question = asking.slug, asking.question
    try:
        if isinstance(came, Failure):
            reply = Reply(outcome=came)
        else:
            reply = PROVIDERS[assistant.api].read_reply(came)
        most = at_most(assistant, request_for(assistant, question).body)
        reply = checked(assistant, most, reply)
        poll = _recordable(key, _poll(assistant, slug, question, reply, (note,), key))
        return Asked(poll, Limits().rest if reply.lasting else None)
    except Exception:  # noqa: BLE001 - else one odd result would keep all others from history
        reply = _fault(f"{assistant.name} about {slug} in a batch", key)
        return Asked(_poll(assistant, slug, question, reply, (note,), key))


def _fault(what: str, key: str | None) -> Reply:
    """What a reply comes to that nobody thought of; its trace is logged."""
    trace = secrets.without(key, traceback.format_exc())
    log.error("%s failed unexpectedly: %s", what, trace)
    return Reply(outcome=UNEXPECTED)


def _asked_again(
    assistant: Assistant, question: str, sender: Sender, budget: Budget, first: Sent
) -> tuple[Sent, tuple[str, ...]]:
    """What a cut-off answer comes to with twice the room, where ``extra`` does not set the room."""
    wider = replace(assistant, max_output_tokens=2 * assistant.max_output_tokens)
    if request_for(assistant, question).body == request_for(wider, question).body:
        return first, ()
    again = _send(wider, question, sender, budget, first.deadline)
    if isinstance(again, Skipped):
        return first, ()
    note = "the first answer was cut off; asked again with twice the output limit"
    return _together(first, again), (note,)


def _send(
    assistant: Assistant, question: str, sender: Sender, budget: Budget, deadline: float = math.inf
) -> Sent | Skipped:
    request = request_for(assistant, question, sender.secret)
    meter = Meter(assistant, request.body, budget)
    return sender.send(request, PROVIDERS[assistant.api].read_reply, meter, deadline)


def _together(first: Sent, second: Sent) -> Sent:
    """Two requests of one poll: the second's outcome, the tokens and attempts of both."""
    counted = [reply.tokens for reply in (first.reply, second.reply) if reply.tokens]
    tokens = sum(counted[1:], counted[0]) if counted else None
    notes = tuple(dict.fromkeys((*first.reply.notes, *second.reply.notes)))
    reply = replace(second.reply, tokens=tokens, notes=notes)
    attempts = first.attempts + second.attempts
    return replace(second, reply=reply, attempts=attempts)


def _recordable(key: str | None, poll: Poll) -> Poll:
    """The poll without the key; raises if history could not hold it."""
    poll = secrets.poll_without(key, poll)
    decode_line(encode_line(poll, EXAMPLE_TIME)[1][:-1])
    return poll


def _poll(
    assistant: Assistant,
    slug: str,
    question: str,
    reply: Reply,
    notes: tuple[str, ...] = (),
    key: str | None = None,
) -> Poll:
    outcome = reply.outcome
    said = outcome if isinstance(outcome, Failure) else answer_parsing.read(outcome)
    answered = said if isinstance(said, Answer) else None
    failed = said if isinstance(said, Failure) else None
    error = _shown(failed.error, key) if failed else None
    if failed and failed.said:
        error = f'{error} It begins: "{_shown(failed.said, key)}"'
    tokens = reply.tokens
    return Poll(
        slug=slug,
        model=assistant.name,
        question=question,
        pick=answered.ranking[0].product if answered else None,
        ranking=answered.ranking if answered else (),
        reason=answered.ranking[0].reason if answered else None,
        missed=answered.missed if answered else (),
        caveat=answered.caveat if answered else None,
        error=error,
        failure=failed.kind if failed else None,
        notes=tuple(map(clean, (*notes, *reply.notes, *said.notes))),
        served_model=reply.served_model,
        request_id=reply.request_id,
        web_search=assistant.web_search,
        usage=Usage(tokens.input, tokens.output, usd(assistant, tokens)) if tokens else None,
    )


SHOWN = 300
"""So many characters are kept of a sentence with a provider's words, and of a model's."""


def _shown(text: str, key: str | None) -> str:
    """Text from outside, cleaned and cut, the key taken out between, so that none of it is left."""
    whole = secrets.without(key, clean(text))
    return whole if len(whole) <= SHOWN else f"{whole[:SHOWN]}…"
