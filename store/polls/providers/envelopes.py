"""What the providers' envelopes have in common: statuses, error bodies, loosely typed JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from store.polls.providers import Tokens
from store.records import Failure, FailureKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from store.polls.providers import Response

SPENT = frozenset({
    "insufficient_quota",
    "credit_balance_exhausted",
    "organization_spend_limit_exceeded",
    "project_spend_limit_exceeded",
    "organization_usage_limit_exceeded",
    "enforced_spend_limit_reached",
})  # fmt: skip
"""Error codes and types by which providers say that the money is spent, not the rate."""

MAX_MESSAGE = 300


def opened(response: Response) -> dict[str, Any] | Failure:
    """A successful response's JSON object, or why there is none."""
    try:
        body = msgspec.json.decode(response.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        body = None
    if isinstance(body, list) and len(body) == 1:
        body = body[0]
    envelope = members(body)
    error = envelope.get("error")
    if response.status >= 400 or error:  # noqa: PLR2004 - HTTP's own boundary
        return _refused(response.status, members(error) or {"message": error})
    if not 200 <= response.status < 300:  # noqa: PLR2004
        return Failure("http", f"The provider answered HTTP {response.status}, not an answer.")
    if not envelope:
        return Failure("http", "The provider's reply is not a JSON object.")
    return envelope


def members(value: Any) -> dict[str, Any]:
    """The value if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def text_or_empty(value: Any) -> str:
    """Text as it stands, or joined from the text parts of a list; else an empty string."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(text_or_empty(members(part).get("text")) for part in value)
    return ""


def counted(given: Any, produced: Any) -> Tokens | None:
    """Input and output tokens, if the provider gave both."""
    if isinstance(given, int) and isinstance(produced, int):
        return Tokens(given, produced)
    return None


def with_extra(body: dict[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """A request body with an operator's ``extra`` members; ``null`` takes a member out."""
    return {key: value for key, value in {**body, **extra}.items() if value is not None}


def _refused(status: int, error: Mapping[str, Any]) -> Failure:
    """The failure that an error status and an error body stand for."""
    message = " ".join(text_or_empty(error.get("message")).split())[:MAX_MESSAGE]
    said = f': "{message}"' if message else ""
    return Failure(_kind(status, error), f"The provider answered HTTP {status}{said}")


def _kind(status: int, error: Mapping[str, Any]) -> FailureKind:
    if status in (401, 403):
        return "auth"
    if status == 402 or not SPENT.isdisjoint(map(str, (error.get("code"), error.get("type")))):  # noqa: PLR2004
        return "quota"
    return "rate_limited" if status == 429 else "http"  # noqa: PLR2004
