"""API keys: where they come from, and how they are taken out of whatever a provider sends back.

Also what in models.json keeps an assistant from being asked. These sentences name members of the
file and quote none of its values: they are public.
"""

import re
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any
from urllib.parse import urlsplit

import msgspec

from store.polls.providers import WIRE_FORMATS
from store.records import Assistant
from store.settings import SettingsError

REDACTED = "[redacted]"
SHORTEST = 8
"""Shorter values are not secrets but placeholders, such as a local server's "ollama"."""
FAILURE_PART, ANSWER_PART = 6, 12
"""Characters in a row by which a part of a key is known, in what a provider says of a failure
(vendors show four, to tell keys apart) and in an answer, whose words may be those of a key."""
LONGEST_NAME = 24
"""Characters beyond which a name with small letters and digits is taken for a key."""
PASTED = (
    "this looks like an API key; give the name of an environment variable that holds the key, and "
    "take this one out of use"
)
PUBLISHED = (
    "a part of this looks like an API key, and all that is asked with is published: take it out "
    "here, and take the key out of use"
)
_KEY = re.compile(r"(?=[a-zA-Z]*\d)(?=[a-z\d]*[A-Z])(?=[A-Z\d]*[a-z])[A-Za-z\d]{20,}")
"""Twenty characters of a key in a row; a model is called by so many only in lower case."""
KEY_NAME = re.compile(r"(?<!ACCESS_)(?<!SECRET_)(?<!PRIVATE_)KEY(?![A-Z])|API_TOKEN")
KEY_OWNERS = {name: host for one in WIRE_FORMATS.values() for name, host in one.KEYS.items()}
"""The domain that a well-known variable's key belongs to, by the vendors' own documentation."""
API_PATH = re.compile(
    "/(responses|chat/completions|messages(/batches)?|models(/[^/]+)?|batches)/?$"
)
"""What a format adds to ``base_url``, and somebody may have copied into it."""
_VARIABLE = re.compile("[A-Z][A-Z0-9_]{0,60}")


def key_of(assistant: Assistant, secret: Callable[[str], str | None]) -> str | None:
    """Return an assistant's API key, or ``None`` if it needs none.

    Raises:
        SettingsError: it has a fault, or its key is missing or cannot be read or sent.
    """
    name = assistant.name
    for member, fault in faults(assistant):
        where = f" at {member}" if member else ""
        raise SettingsError(f"{name}, models.json{where}: {fault}")
    if not assistant.key_env:
        return None
    key = secret(assistant.key_env)
    # a key that was pasted in place of a variable's name is never shown
    is_name = _VARIABLE.fullmatch(assistant.key_env) and KEY_NAME.search(assistant.key_env)
    is_shown = is_name or assistant.key_env in KEY_OWNERS
    variable = assistant.key_env if is_shown else "that its key_env names"
    if not key:
        raise SettingsError(f"{name}: the environment variable {variable} is not set")
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise SettingsError(
            f"{name}: the environment variable {variable} does not hold an API key: "
            "it has a space, a line break or a letter that is not ASCII"
        )
    return key


def faults(assistant: Assistant) -> Iterator[tuple[str | None, str]]:
    """Yield what in models.json keeps an assistant from being asked.

    Each is a member, or ``None`` for the whole assistant, and a sentence.
    """
    absent = [n for n in ("base_url", "model") if getattr(assistant, n) is None]
    if absent and assistant.api != "sample":
        yield None, f"this assistant lacks {' and '.join(absent)}, which its api needs"
    address = urlsplit(assistant.base_url or "")
    if path := API_PATH.search(address.path):
        right = f"{address.scheme}://{address.netloc.rpartition('@')[2]}{address.path}"
        yield (
            "base_url",
            f'its api adds "{path[0]}" by itself; write "{right.removesuffix(path[0])}"',
        )
    if looks_like_a_key(assistant.key_env):
        yield "key_env", PASTED
    for member, text in (("model", assistant.model), ("extra", f"{assistant.extra}")):
        if text and _KEY.search(text):
            yield member, PUBLISHED


def looks_like_a_key(name: str | None) -> bool:
    """Return whether what should be a variable's name is rather a key that was pasted there."""
    is_long = name is not None and len(name) > LONGEST_NAME
    return bool(name and is_long and re.search("[a-z]", name) and re.search(r"\d", name))


def redact(key: str | None, value: Any, *, part: int = ANSWER_PART) -> Any:
    """Return a text, or all texts in lists and objects, with the key replaced by a mark.

    So is whatever has ``part`` characters in a row in common with it.
    """
    if not key or len(key) < SHORTEST:
        return value
    if isinstance(value, str):
        return _without_parts(key, value, min(part, len(key)))
    if isinstance(value, list | tuple):
        return [redact(key, item, part=part) for item in value]
    if isinstance(value, dict):
        return {name: redact(key, item, part=part) for name, item in value.items()}
    return value


def redact_body(key: str | None, body: bytes, *, part: int = ANSWER_PART) -> bytes:
    """Return a body without the key, escaped or not; nothing of JSON too deep to be searched."""
    if not key or len(key) < SHORTEST:
        return body
    if b"\\" in body:
        try:
            return msgspec.json.encode(redact(key, msgspec.json.decode(body), part=part))
        except RecursionError:
            return b""
        except (ValueError, OverflowError):  # not JSON, or a number that nobody can write
            pass
    text: str = redact(key, body.decode(errors="surrogateescape"), part=part)
    return text.encode(errors="surrogateescape")


def _without_parts(key: str, text: str, size: int) -> str:
    parts = {key[at : at + size] for at in range(len(key) - size + 1)}
    if not any(part in text for part in parts):
        return text
    starts = (at for at in range(len(text)) if text[at : at + size] in parts)
    hidden = {at + offset for at in starts for offset in range(size)}
    runs = groupby(range(len(text)), hidden.__contains__)
    return "".join(
        REDACTED if is_part else "".join(text[at] for at in run) for is_part, run in runs
    )
