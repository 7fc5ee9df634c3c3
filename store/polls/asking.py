"""Asking one assistant one question: from category to a poll that is ready for history."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Protocol

import msgspec
from msgspec import Struct

from store.polls import answers, secrets
from store.polls.prompt import prompt
from store.polls.providers import (
    Prompt,
    Reply,
    Request,
    Response,
    Tokens,
    chat,
    gemini,
    messages,
    responses,
    sample,
)
from store.polls.sending import Sent, Unsent
from store.polls.spending import Meter, at_most, usd
from store.records import Answer, Failure, Poll, Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from store.polls.sending import Sender
    from store.polls.spending import Budget
    from store.records import Assistant, Category


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
    """A poll that was made, and the seconds for which its assistant should be left alone."""

    poll: Poll
    rest: float | None = None


def key_of(assistant: Assistant, secret: Callable[[str], str | None]) -> str | None:
    """An assistant's API key, or ``None`` if it needs none.

    Raises:
        Unready: its model, address or key is missing, or the key cannot be sent in a header.
    """
    if missing := lacking(assistant):
        raise Unready(f"{assistant.name}: models.json lacks {missing}")
    if not assistant.key_env:
        return None
    if looks_like_a_key(assistant.key_env):
        raise Unready(f"{assistant.name}: key_env in models.json must name a variable, not a key")
    key = secret(assistant.key_env)
    if not key:
        raise Unready(f"{assistant.name}: the environment variable {assistant.key_env} is not set")
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise Unready(
            f"{assistant.name}: the value of {assistant.key_env} is no API key: "
            "it holds a space, a line break or a letter that is not ASCII"
        )
    return key


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


def request_for(assistant: Assistant, category: Category, key: str | None) -> Request:
    """The request that puts a category's question to an assistant of a real provider."""
    return PROVIDERS[assistant.api].build_request(assistant, prompt(category.question), key)


def cost_at_most(assistant: Assistant, category: Category) -> float | None:
    """What asking once may cost at most in US dollars, if the assistant's prices are known."""
    if assistant.api == "sample":
        return 0
    if lacking(assistant):
        return None
    return usd(assistant, at_most(assistant, request_for(assistant, category, None).body))


def ask(
    slug: str,
    category: Category,
    assistant: Assistant,
    at: datetime,
    *,
    sender: Sender,
    key: str | None,
    budget: Budget,
) -> Asked | Unsent:
    """Put a category's question to an assistant; every failure is a poll with a kind."""
    if assistant.api == "sample":
        said = sample.reply(slug, category, assistant.name, at)
        return Asked(_poll(slug, category, assistant, Sent(said.reply, said.latency_ms, 1)))
    sent = _send(category, assistant, sender, key, budget)
    notes: tuple[str, ...] = ()
    if isinstance(sent, Sent) and _is_truncated(sent.reply):
        wider = msgspec.structs.replace(
            assistant, max_output_tokens=2 * assistant.max_output_tokens
        )
        again = _send(category, wider, sender, key, budget)
        if isinstance(again, Sent):
            sent = _together(sent, again)
            notes = ("the first answer was cut off; asked again with twice the output limit",)
    if isinstance(sent, Unsent):
        return sent
    if sent.attempts > 1:
        notes = (*notes, f"sent {sent.attempts} times")
    return Asked(
        secrets.poll_without(key, _poll(slug, category, assistant, sent, notes)), sent.rest
    )


def _send(
    category: Category,
    assistant: Assistant,
    sender: Sender,
    key: str | None,
    budget: Budget,
) -> Sent | Unsent:
    request = request_for(assistant, category, key)
    meter = Meter(assistant, request.body, budget)
    return sender.send(request, PROVIDERS[assistant.api].read_reply, meter)


def _is_truncated(reply: Reply) -> bool:
    return isinstance(reply.outcome, Failure) and reply.outcome.kind == "truncated"


def _together(first: Sent, second: Sent) -> Sent:
    """Two requests of one poll: the second's outcome, the tokens and attempts of both."""
    counted = [reply.tokens for reply in (first.reply, second.reply) if reply.tokens]
    tokens = sum(counted[1:], counted[0]) if counted else None
    reply = msgspec.structs.replace(second.reply, tokens=tokens)
    return Sent(reply, second.latency_ms, first.attempts + second.attempts, second.rest)


def _poll(
    slug: str,
    category: Category,
    assistant: Assistant,
    sent: Sent,
    notes: tuple[str, ...] = (),
) -> Poll:
    reply = sent.reply
    said = reply.outcome if isinstance(reply.outcome, Failure) else answers.read(reply.outcome)
    answered = said if isinstance(said, Answer) else None
    failed = said if isinstance(said, Failure) else None
    return Poll(
        slug=slug,
        model=assistant.name,
        question=category.question,
        pick=answered.ranking[0].product if answered else None,
        ranking=answered.ranking if answered else (),
        reason=answered.ranking[0].reason if answered else None,
        missed=answered.missed if answered else (),
        caveat=answered.caveat if answered else None,
        error=answers.clean(failed.error) if failed else None,
        failure=failed.kind if failed else None,
        notes=(*notes, *said.notes),
        served_model=reply.served_model,
        request_id=reply.request_id,
        web_search=assistant.web_search,
        usage=_usage(assistant, reply.tokens),
        latency_ms=sent.latency_ms,
    )


def _usage(assistant: Assistant, tokens: Tokens | None) -> Usage | None:
    """Tokens and, where both prices are known, US dollars."""
    return Usage(tokens.input, tokens.output, usd(assistant, tokens)) if tokens else None
