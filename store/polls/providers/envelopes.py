"""What goes to providers and comes back: requests, responses, loosely typed JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import UNSET, Struct, UnsetType

from store.records import Assistant, Failure, FailureKind
from store.text import clean

MAX_SEARCHES = 5
"""Web searches that one poll may make at most, where a provider lets us say so."""
ERROR, NO_STATUS = 400, 600
"""The least HTTP status of an error, and the first number that is not one."""


class Request(Struct, frozen=True):
    """An HTTP request, not sent yet. ``headers`` hold the key: never log or store one.

    A POST has its ``body`` as JSON, or with a ``file`` as the fields of a form; a GET has none.
    """

    url: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    method: Literal["POST", "GET"] = "POST"
    file: bytes | None = None


class Response(Struct, frozen=True):
    """An answer over HTTP: ``headers`` have lower-case names, ``body`` is undecoded.

    Where none came, ``loss`` says why; ``is_free`` if that surely cost nothing.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    loss: Failure | None = None
    is_free: bool = False

    @property
    def is_success(self) -> bool:
        """True if the provider answered with a success."""
        return 200 <= self.status < 300  # noqa: PLR2004 - HTTP's own boundaries

    @property
    def is_error(self) -> bool:
        """True if the provider answered with an error, which costs nothing."""
        return self.status >= ERROR


def lost(kind: FailureKind, sentence: str, *, is_free: bool = False) -> Response:
    """Return what a question came to that brought no response."""
    return Response(0, {}, b"", Failure(kind, sentence), is_free)


class Tokens(Struct, frozen=True):
    """The counts that a provider states; ``searches`` are unset where it says nothing of them."""

    input: int
    output: int
    searches: int | UnsetType = UNSET

    def __add__(self, other: Tokens) -> Tokens:
        """Return what two requests came to."""
        counts = [n for n in (self.searches, other.searches) if n is not UNSET]
        searches = sum(counts) if counts else UNSET
        return Tokens(self.input + other.input, self.output + other.output, searches)


class Reply(Struct, frozen=True, kw_only=True):
    """A provider's envelope, opened: the model's text or the failure, and what is known beside.

    ``passing`` failures may pass when asked again soon, after ``wait`` seconds if the body says
    so; ``lasting`` ones (a bad key, spent money, a model that is gone) meet every other poll too,
    as may an answer that cost far more than was reserved for it. ``tier`` is the one that answered.
    ``notes`` are for the record.

    Sending adds what it came to: the ``latency_ms`` of the last of ``attempts``, the seconds of a
    ``pause`` for the assistant, and the provider's time as ``at`` where ours does not fit.
    """

    outcome: str | Failure
    served_model: str | None = None
    request_id: str | None = None
    tokens: Tokens | None = None
    passing: bool = False
    lasting: bool = False
    wait: float | None = None
    tier: str | None = None
    notes: tuple[str, ...] = ()
    latency_ms: int | None = None
    attempts: int = 1
    pause: float | None = None
    at: datetime | None = None

    @property
    def failure(self) -> FailureKind | None:
        """The kind of the failure, if it is one."""
        return None if isinstance(self.outcome, str) else self.outcome.kind


Value = TypeVar("Value")

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
"""Hosts of tests, proxies and local servers, which may speak for anybody."""

MAX_ID = 200
MOST_TOKENS = 10**15
"""A count above this is taken for this: every reader of JSON can hold it."""


CUT_OFF = Failure("truncated", "The answer was cut off at the output limit.")
"""The failure that an answer stands for which ended at its output limit."""


def filtered(reason: str = "") -> Failure:
    """Return the failure that a provider's content filter stands for."""
    why = f" ({reason})" if reason else ""
    return Failure("refusal", f"The provider's content filter stopped the answer{why}.")


def declined(words: str) -> Failure:
    """Return the failure that a model's own refusal stands for."""
    return Failure("refusal", f"The model refused: {words}" if words else "The model refused.")


def members(value: Any) -> dict[str, Any]:
    """Return the value if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: Any) -> list[dict[str, Any]]:
    """Return the JSON objects in a value that should be a list of them."""
    return [members(item) for item in value] if isinstance(value, list) else []


def text(value: Any) -> str:
    """Return text as it stands, or joined from the text parts of a list; else an empty string."""
    parts = [value] if isinstance(value, str) else [part.get("text") for part in items(value)]
    return "".join(part for part in parts if isinstance(part, str))


def identity(*candidates: Any) -> str | None:
    """Return the first candidate that is a name or an id, cleaned and cut to a sensible length."""
    names = (clean(text(candidate)[:MAX_ID]) for candidate in candidates)
    return next(filter(None, names), None)


def counted(given: Any, produced: Any, searches: Any) -> Tokens | None:
    """Return what was used, if tokens were counted; lists are added up without their gaps."""
    totals = [_total(given), _total(produced)]
    if None in totals:
        return None
    number = _total(searches)
    return Tokens(totals[0] or 0, totals[1] or 0, UNSET if number is None else number)


def request(
    assistant: Assistant, path: str, headers: dict[str, str], body: dict[str, Any]
) -> Request:
    """Return a POST below the base URL, ``extra`` in its body; ``null`` takes a member out."""
    url = f"{(assistant.base_url or '').rstrip('/')}/{path}"
    merged = {**body, **assistant.extra}
    return Request(url, headers, {name: v for name, v in merged.items() if v is not None})


def bearer(key: str | None) -> dict[str, str]:
    """Return the header by which OpenAI's API and its kin know a key."""
    return {"Authorization": f"Bearer {key}"} if key else {}


def of_host(values: Mapping[str, Value], assistant: Assistant) -> Value | None:
    """Return what belongs to the domain of an assistant's host, or to any host (``*``)."""
    host = urlsplit(assistant.base_url or "").hostname or ""
    host = "localhost" if host in LOOPBACK else host
    domains = (domain for domain in values if f".{host}".endswith(f".{domain}"))
    return values.get(next(domains, "*"))


def _total(value: Any) -> int | None:
    """Return a count, or the sum of those counts in a list that are there."""
    counts = value if isinstance(value, list) else [value]
    there = [n for n in counts if isinstance(n, int) and not isinstance(n, bool) and n >= 0]
    return min(sum(there), MOST_TOKENS) if there else None


def read_object(body: bytes) -> dict[str, Any]:
    """Return the JSON object that a body is, alone or in a list as Google's errors are; or {}."""
    try:
        value = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        return {}
    return members(value[0] if isinstance(value, list) and len(value) == 1 else value)


_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,199}")


def path_id(value: Any) -> str | None:
    """Return a provider's id if it can stand in a path: it is sent back with our key."""
    name = text(value)
    return name if _ID.fullmatch(name) else None


def as_response(status: Any, body: Any, headers: Mapping[str, str] | None = None) -> Response:
    """Return a result as the response it would have been, had its item been sent by itself."""
    code = status if isinstance(status, int) else 0
    return Response(code, headers or {}, json.dumps(body).encode())


def number(value: Any) -> int:
    """Return a count, also one that is text as in JSON of protobuf; else 0."""
    if isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value[:18])
    return value if isinstance(value, int) and value > 0 else 0
