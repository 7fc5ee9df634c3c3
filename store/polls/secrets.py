"""API keys: where they come from, and how they are taken out of whatever a provider sends back."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from store.records import Assistant, Poll

REDACTED = "[redacted]"
SHORTEST = 8
"""Shorter values are no secrets but placeholders, such as a local server's "ollama"."""
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
_VARIABLE = re.compile("[A-Z][A-Z0-9_]{0,60}")


class Unready(Exception):
    """An assistant cannot be asked; the sentence says what to set."""


def key_of(assistant: Assistant, secret: Callable[[str], str | None]) -> str | None:
    """Return an assistant's API key, or ``None`` if it needs none.

    Raises:
        Unready: it has a fault, or its key is missing or cannot be sent in a header.
        SettingsError: the file that should hold the key cannot be read.
    """
    name = assistant.name
    for member, fault in faults(assistant):
        where = f" at {member}" if member else ""
        raise Unready(f"{name}, models.json{where}: {fault}")
    if not assistant.key_env:
        return None
    key = secret(assistant.key_env)
    # a key that was pasted in place of a variable's name is never shown
    is_name = _VARIABLE.fullmatch(assistant.key_env) and KEY_NAME.search(assistant.key_env)
    variable = assistant.key_env if is_name else "that its key_env names"
    if not key:
        raise Unready(f"{name}: the environment variable {variable} is not set")
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise Unready(
            f"{name}: the environment variable {variable} does not hold an API key: "
            "it has a space, a line break or a letter that is not ASCII"
        )
    return key


def faults(assistant: Assistant) -> Iterator[tuple[str | None, str]]:
    """Yield what in models.json keeps an assistant from being asked.

    Each is a member, or ``None`` for the whole assistant, and a sentence that quotes no value.
    """
    absent = [n for n in ("base_url", "model") if getattr(assistant, n) is None]
    if absent and assistant.api != "sample":
        yield None, f"this assistant lacks {' and '.join(absent)}, which its api needs"
    if looks_like_a_key(assistant.key_env):
        yield "key_env", PASTED
    for member, text in (("model", assistant.model), ("extra", f"{assistant.extra}")):
        if text and _KEY.search(text):
            yield member, PUBLISHED


def looks_like_a_key(name: str | None) -> bool:
    """Return whether what should be a variable's name is rather a key that was pasted there."""
    longest = 24
    return bool(
        name and len(name) > longest and re.search("[a-z]", name) and re.search(r"\d", name)
    )


def without(key: str | None, text: str) -> str:
    """The text with the key replaced by a mark."""
    return text.replace(key, REDACTED) if key and _is_secret(key) else text


def body_without(key: str | None, body: bytes) -> bytes:
    """The body without the key, escaped or not; nothing of JSON too deep to be searched."""
    if not (key and _is_secret(key)):
        return body
    if b"\\" in body:
        try:
            return msgspec.json.encode(_walked(key, msgspec.json.decode(body)))
        except RecursionError:
            return b""
        except (ValueError, OverflowError):  # no JSON, or a number that nobody can write
            pass
    return body.replace(key.encode(), REDACTED.encode())


def poll_without(key: str | None, poll: Poll) -> Poll:
    """The poll with the key taken out of every text, in whatever guise it got there."""
    if not (key and _is_secret(key)):
        return poll
    return msgspec.convert(_walked(key, msgspec.to_builtins(poll)), Poll)


def _walked(key: str, value: Any) -> Any:
    if isinstance(value, str):
        return without(key, value)
    if isinstance(value, list | tuple):
        return [_walked(key, item) for item in value]
    if isinstance(value, dict):
        return {name: _walked(key, item) for name, item in value.items()}
    return value


def _is_secret(key: str) -> bool:
    return len(key) >= SHORTEST
