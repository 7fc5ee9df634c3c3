"""What is wrong with the assistants of models.json beyond its schema, found before any is asked.

Messages name members of the file and quote none of its values: they are public.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal
from urllib.parse import urlsplit

from store.data_file import JsonPath
from store.files import Catalogue, Files
from store.polls.prices import missing_prices
from store.polls.providers import PROVIDERS, why_no_batches, why_no_flex
from store.polls.providers.envelopes import LOOPBACK
from store.polls.secrets import KEY_NAME, faults, looks_like_a_key
from store.rankings.sentences import listed
from store.records import Assistant, Problem, Site

Mistake = tuple[str | None, str, Literal["error", "warning"]]
"""A member of an assistant, or ``None`` for the whole; a sentence; how grave it is."""

KEY_OWNERS = {name: host for each in PROVIDERS.values() for name, host in each.KEYS.items()}
"""The domain that a well-known variable's key belongs to, by the vendors' own documentation."""
SENT = "; its value is sent to the host of base_url"

_PATH = re.compile("/(responses|chat/completions|messages(/batches)?|models(/.*)?|batches)/?$")
"""What a format adds to ``base_url``, and somebody may have copied into it."""


def mistakes(catalogue: Catalogue, files: Files) -> Iterator[Problem]:
    """Yield every such mistake with its place; none while models.json is bad by its schema."""
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
    if path := _PATH.search(address.path):
        right = f"{address.scheme}://{address.netloc.rpartition('@')[2]}{address.path}"
        right = right.removesuffix(path[0])
        yield "base_url", f'its api adds "{path[0]}" by itself; write "{right}"', "error"
    if assistant.batch and (why := why_no_batches(assistant)):
        yield "batch", why, "error"
    if assistant.tier and (why := why_no_flex(assistant)):
        yield "tier", why, "error"
    if site.daily_usd is not None and (missing := missing_prices(assistant)):
        message = f"this assistant has no {listed(missing)}, which daily_usd of site.json needs"
        yield None, message, "error"


def doubtful_key(assistant: Assistant) -> str | None:
    """Return why what is sent as the key may not be meant for the host that is asked, if so."""
    host = urlsplit(assistant.base_url or "").hostname or ""
    if assistant.key_env is None or host in LOOPBACK:
        return None
    owner = KEY_OWNERS.get(assistant.key_env)
    if owner is None:
        named = KEY_NAME.search(assistant.key_env.upper())
        return None if named else "this does not look like the name of an API key's variable" + SENT
    if host == owner or host.endswith(f".{owner}"):
        return None
    return "this variable holds the key of another provider" + SENT
