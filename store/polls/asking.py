"""Asking one assistant one question: from category to a poll that is ready for history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from store.polls import answers
from store.polls.prompt import prompt
from store.polls.providers import Prompt, Reply, Request, Response, Tokens, chat, sample
from store.records import Answer, Failure, Poll, Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from store.polls.sending import Sender
    from store.records import Assistant, Category


class Provider(Protocol):
    """A provider's wire format."""

    def build_request(self, assistant: Assistant, prompt: Prompt, key: str | None) -> Request:
        """The request that puts a prompt to an assistant."""

    def read_reply(self, response: Response) -> Reply:
        """What a response says."""


PROVIDERS: Mapping[str, Provider] = {"chat": chat}

NEVER_RETRIED = ("auth", "quota", "refusal")


class Unready(Exception):
    """An assistant cannot be asked; the sentence says what to set."""


def check_ready(assistant: Assistant, secret: Callable[[str], str | None]) -> None:
    """Make sure that an assistant can be asked.

    Raises:
        Unready: its format is not spoken, or its model, address or key is missing.
    """
    if assistant.api == "sample":
        return
    if assistant.api not in PROVIDERS:
        raise Unready(f'{assistant.name}: the api "{assistant.api}" is not spoken yet')
    missing = [name for name in ("base_url", "model") if getattr(assistant, name) is None]
    if missing:
        raise Unready(f"{assistant.name}: models.json lacks {' and '.join(missing)}")
    if assistant.key_env and not secret(assistant.key_env):
        raise Unready(f"{assistant.name}: the environment variable {assistant.key_env} is not set")


def ask(
    slug: str,
    category: Category,
    assistant: Assistant,
    at: datetime,
    sender: Sender,
    key: str | None,
) -> Poll:
    """Put a category's question to an assistant; every failure is a poll with a kind."""
    if assistant.api == "sample":
        said = sample.reply(slug, category, assistant.name, at)
        return _poll(slug, category, assistant, said.reply, said.latency_ms)
    provider = PROVIDERS[assistant.api]
    request = provider.build_request(assistant, prompt(category.question), key)
    sent = sender.send(request, lambda response: _is_final(provider.read_reply(response)))
    if isinstance(sent.outcome, Failure):
        reply = Reply(outcome=sent.outcome)
    else:
        reply = provider.read_reply(sent.outcome)
    return _poll(slug, category, assistant, reply, sent.latency_ms)


def _is_final(reply: Reply) -> bool:
    return isinstance(reply.outcome, Failure) and reply.outcome.kind in NEVER_RETRIED


def _poll(
    slug: str, category: Category, assistant: Assistant, reply: Reply, latency_ms: int
) -> Poll:
    outcome = reply.outcome
    said = outcome if isinstance(outcome, Failure) else answers.read(outcome)
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
        error=failed.error if failed else None,
        failure=failed.kind if failed else None,
        notes=said.notes,
        served_model=reply.served_model,
        request_id=reply.request_id,
        web_search=assistant.web_search,
        usage=_usage(assistant, reply.tokens),
        latency_ms=latency_ms,
    )


def _usage(assistant: Assistant, tokens: Tokens | None) -> Usage | None:
    """Tokens and, where both prices are known, US dollars."""
    if tokens is None:
        return None
    usd = None
    if assistant.usd_per_million_input is not None and assistant.usd_per_million_output is not None:
        usd = round(
            tokens.input * assistant.usd_per_million_input / 1e6
            + tokens.output * assistant.usd_per_million_output / 1e6
            + tokens.searches * assistant.usd_per_thousand_searches / 1e3,
            6,
        )
    return Usage(tokens.input, tokens.output, usd)
