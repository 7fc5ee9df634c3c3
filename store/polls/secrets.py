"""Taking an API key out of whatever a provider sends back, before anything reads or keeps it."""

from __future__ import annotations

from typing import Any

import msgspec

from store.records import Poll

REDACTED = "[redacted]"
SHORTEST = 8
"""Shorter values are no secrets but placeholders, such as a local server's "ollama"."""


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
