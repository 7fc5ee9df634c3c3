"""What is wrong with the assistants of models.json beyond its schema, found before any is asked.

Messages name members of the file and quote none of its values: they are public.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from store.polls.asking import faults, looks_like_a_key
from store.polls.providers.batches.queues import why_not
from store.polls.spending import missing_prices
from store.rankings.sentences import listed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Literal

    from store.files import Catalogue, Files
    from store.json_positions import JsonPath
    from store.records import Assistant, Problem, Site

    Mistake = tuple[str | None, str, Literal["error", "warning"]]
    """A member of an assistant, or ``None`` for the whole; a sentence; how grave it is."""

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})

KEY_OWNERS = {
    "ANTHROPIC_API_KEY": "anthropic.com",
    "DEEPSEEK_API_KEY": "deepseek.com",
    "GEMINI_API_KEY": "googleapis.com",
    "GITHUB_TOKEN": "github.ai",
    "GOOGLE_API_KEY": "googleapis.com",
    "GROQ_API_KEY": "groq.com",
    "HF_TOKEN": "huggingface.co",
    "MISTRAL_API_KEY": "mistral.ai",
    "OPENAI_API_KEY": "openai.com",
    "OPENROUTER_API_KEY": "openrouter.ai",
    "PERPLEXITY_API_KEY": "perplexity.ai",
    "TOGETHER_API_KEY": "together.xyz",
    "XAI_API_KEY": "x.ai",
}
"""The domain that a well-known variable's key belongs to, by the vendors' own documentation."""

_KEY_NAME = re.compile(r"(?<!ACCESS_)(?<!SECRET_)(?<!PRIVATE_)KEY(?![A-Z])|API_TOKEN")


def mistakes(catalogue: Catalogue, files: Files) -> Iterator[Problem]:
    """Every such mistake with its place; none while models.json has a mistake of its schema."""
    if any(p.file == "models.json" and p.severity == "error" for p in catalogue.problems):
        return
    for number, assistant in enumerate(catalogue.assistants):
        for member, message, severity in _mistakes_of(assistant, catalogue.site):
            place: JsonPath = ("models", number, member) if member else ("models", number)
            yield files.problem_at("models.json", place, message, severity)


def _mistakes_of(assistant: Assistant, site: Site) -> Iterator[Mistake]:
    for member, fault in faults(assistant):
        yield member, fault, "error"
    if not looks_like_a_key(assistant.key_env) and (doubt := doubtful_key(assistant)):
        yield "key_env", doubt, "warning"
    address = urlsplit(assistant.base_url or "")
    is_plain = address.scheme == "http" and address.hostname not in LOOPBACK
    if is_plain and assistant.key_env is not None:
        yield "base_url", "the key would travel unencrypted; use https", "warning"
    if assistant.batch and (why := why_not(assistant)):
        yield "batch", why, "error"
    if site.daily_usd is not None and (missing := missing_prices(assistant)):
        message = f"this assistant has no {listed(missing)}, which daily_usd of site.json needs"
        yield None, message, "error"


def doubtful_key(assistant: Assistant) -> str | None:
    """Why what an assistant sends as its key may not be meant for the host it asks, if so."""
    host = urlsplit(assistant.base_url or "").hostname or ""
    if assistant.key_env is None or host in LOOPBACK:
        return None
    owner = KEY_OWNERS.get(assistant.key_env)
    if owner is None:
        named = _KEY_NAME.search(assistant.key_env.upper())
        return None if named else "this does not look like the name of an API key's variable" + SENT
    if host == owner or host.endswith(f".{owner}"):
        return None
    return "this variable holds the key of another provider" + SENT


SENT = "; its value is sent to the host of base_url"
