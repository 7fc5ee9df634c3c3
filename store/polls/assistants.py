"""What is wrong with the assistants of models.json beyond its schema, found before any is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from store.polls.asking import lacking, looks_like_a_key
from store.polls.spending import is_priced

if TYPE_CHECKING:
    from collections.abc import Iterator

    from store.files import Catalogue, Files
    from store.records import Assistant, Problem

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def mistakes(catalogue: Catalogue, files: Files) -> Iterator[Problem]:
    """Every such mistake with its place; none while models.json has a mistake of its schema."""
    if any(problem.file == "models.json" for problem in catalogue.problems):
        return
    for number, assistant in enumerate(catalogue.assistants):
        place = ("models", number)
        if missing := lacking(assistant):
            message = f"{assistant.name} lacks {missing}, which {assistant.api} needs"
            yield files.problem_at("models.json", place, message)
        if looks_like_a_key(assistant.key_env):
            yield files.problem_at("models.json", (*place, "key_env"), PASTED)
        if _is_unencrypted(assistant):
            message = f"the key of {assistant.name} would travel unencrypted; use https"
            problem = files.problem_at("models.json", (*place, "base_url"), message)
            yield msgspec.structs.replace(problem, severity="warning")
        if catalogue.site.daily_usd is not None and not is_priced(assistant):
            message = (
                f"{assistant.name} has no usd_per_million_input and usd_per_million_output, which "
                "daily_usd of site.json needs"
            )
            yield files.problem_at("models.json", place, message)


PASTED = (
    "this looks like an API key; give the name of an environment variable that holds the key, and "
    "take this one out of use"
)


def _is_unencrypted(assistant: Assistant) -> bool:
    """Whether a key would be sent over plain HTTP to another machine."""
    address = urlsplit(assistant.base_url or "")
    elsewhere = address.scheme == "http" and address.hostname not in LOOPBACK
    return elsewhere and assistant.key_env is not None
