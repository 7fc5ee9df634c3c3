"""What goes to providers and comes back: statuses, error bodies, loosely typed JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import UNSET, Struct, UnsetType

from store.records import Assistant, Failure, FailureKind
from store.text import clean

MAX_SEARCHES = 5
"""How many web searches one poll may make, where a provider lets us say so."""


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
    """What came back: ``headers`` have lower-case names, ``body`` is undecoded.

    Where nothing did, ``loss`` says why; ``is_free`` if that surely cost nothing.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    loss: Failure | None = None
    is_free: bool = False


class Tokens(Struct, frozen=True):
    """What a provider says it counted; ``searches`` are unset where it says nothing of them."""

    input: int
    output: int
    searches: int | UnsetType = UNSET

    def __add__(self, other: Tokens) -> Tokens:
        """What two requests came to."""
        known = [n for n in (self.searches, other.searches) if n is not UNSET]
        searches = sum(known) if known else UNSET
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

PASSING = frozenset({408, 409, 429, 500, 502, 503, 504, 529})
"""Statuses after which asking again soon may help."""

LASTING = frozenset({401, 402, 403, 404})
"""Statuses that every further poll of the assistant would meet too."""


ERRORS = {
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "server_error": 500,
    "api_error": 500,
    "overloaded_error": 529,
    "insufficient_quota": 402,
    "credit_balance_exhausted": 402,
    "organization_spend_limit_exceeded": 402,
    "project_spend_limit_exceeded": 402,
    "organization_usage_limit_exceeded": 402,
    "enforced_spend_limit_reached": 402,
}
"""The HTTP status that an error's code or type stands for, whatever the status it comes with where
it is 402: the money is spent, not the rate. Of the vendors whose formats are spoken here."""

MAX_ID = 200
MOST_TOKENS = 10**15
"""A count above this is taken for this: every reader of JSON can hold it."""


CUT_OFF = Failure("truncated", "The answer was cut off at the output limit.")
"""The failure that an answer stands for which ended at its output limit."""


def opened(
    response: Response, request_id: str | None = None, errors: Mapping[str, int] = ERRORS
) -> dict[str, Any] | Reply:
    """Return a successful response's JSON object, or the reply that says why there is none."""
    known = identity(request_id)
    envelope = read_object(response.body)
    error = envelope.get("error")
    if response.status >= 400 or error:  # noqa: PLR2004 - HTTP's own boundary
        return _refused(response.status, members(error) or {"message": error}, known, errors)
    if not 200 <= response.status < 300:  # noqa: PLR2004
        said = f"The provider answered HTTP {response.status}, not an answer."
    elif envelope:
        return envelope
    else:
        said = "The provider's reply is not a JSON object."
    return Reply(outcome=Failure("http", said), request_id=known)


def _refused(
    status: int, error: Mapping[str, Any], request_id: str | None, errors: Mapping[str, int]
) -> Reply:
    """Return what a status and an error body stand for, and whether it will pass."""
    message = " ".join(text(error.get("message")).split())
    codes = set(_codes(error))
    meant = _meant(status, error, codes, errors)
    kind = _kind(meant, codes, message.casefold(), errors)
    said = f': "{message}"' if message else ""
    return Reply(
        outcome=Failure(kind, f"The provider answered HTTP {status}{said}"),
        request_id=request_id,
        passing=meant in PASSING and kind != "quota",
        lasting=meant in LASTING or kind in ("auth", "quota"),
        wait=_retry_delay(error),
    )


def filtered(reason: str = "") -> Failure:
    """The failure that a provider's content filter stands for."""
    said = f" ({reason})" if reason else ""
    return Failure("refusal", f"The provider's content filter stopped the answer{said}.")


def declined(words: str) -> Failure:
    """The failure that a model's own refusal stands for."""
    said = f": {words}" if words else "."
    return Failure("refusal", f"The model refused{said}")


def members(value: Any) -> dict[str, Any]:
    """The value if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: Any) -> list[dict[str, Any]]:
    """The JSON objects in a value that should be a list of them."""
    return [members(item) for item in value] if isinstance(value, list) else []


def text(value: Any) -> str:
    """Text as it stands, or joined from the text parts of a list; else an empty string."""
    parts = [value] if isinstance(value, str) else [part.get("text") for part in items(value)]
    return "".join(part for part in parts if isinstance(part, str))


def identity(*candidates: Any) -> str | None:
    """The first candidate that is a name or an id, cleaned and cut to a sensible length."""
    for candidate in candidates:
        if name := clean(text(candidate)[:MAX_ID]):
            return name
    return None


def counted(given: Any, produced: Any, searches: Any) -> Tokens | None:
    """What was used, if the provider counted tokens; lists are added up without their gaps."""
    totals = [_total(given), _total(produced)]
    if None in totals:
        return None
    number = _total(searches)
    return Tokens(totals[0] or 0, totals[1] or 0, UNSET if number is None else number)


def request(
    assistant: Assistant, path: str, headers: dict[str, str], body: dict[str, Any]
) -> Request:
    """A request below the base URL, with ``extra`` in its body; ``null`` takes a member out."""
    url = f"{(assistant.base_url or '').rstrip('/')}/{path}"
    merged = {**body, **assistant.extra}
    return Request(url, headers, {key: each for key, each in merged.items() if each is not None})


def bearer(key: str | None) -> dict[str, str]:
    """The header by which OpenAI's API and its kin know a key."""
    return {"Authorization": f"Bearer {key}"} if key else {}


def goog_api_key(key: str | None) -> dict[str, str]:
    """Return the header by which Google knows a key."""
    return {"x-goog-api-key": key} if key else {}


def anthropic_headers(key: str | None) -> dict[str, str]:
    """Return what every request to Anthropic carries; https://docs.claude.com/en/api/versioning."""
    return {"anthropic-version": "2026-10-21", **({"x-api-key": key} if key else {})}


def of_host(values: Mapping[str, Value], assistant: Assistant) -> Value | None:
    """Return what belongs to the domain of an assistant's host, or to any host (``*``)."""
    host = urlsplit(assistant.base_url or "").hostname or ""
    host = "localhost" if host in LOOPBACK else host
    domains = (domain for domain in values if f".{host}".endswith(f".{domain}"))
    return values.get(next(domains, "*"))


def _total(value: Any) -> int | None:
    """A count, or the sum of those counts in a list that are there."""
    counts = value if isinstance(value, list) else [value]
    there = [n for n in counts if isinstance(n, int) and not isinstance(n, bool) and n >= 0]
    return min(sum(there), MOST_TOKENS) if there else None


def _codes(error: Mapping[str, Any]) -> Iterable[str]:
    """Every code by which an error body may tell what it means."""
    yield from map(text, (error.get("code"), error.get("type"), error.get("status")))
    yield text(members(error.get("details")).get("error_code"))
    for detail in items(error.get("details")):
        yield text(detail.get("reason"))
        for violation in items(detail.get("violations")):
            if "PerDay" in text(violation.get("quotaId")):
                yield "insufficient_quota"


def _meant(
    status: int, error: Mapping[str, Any], codes: set[str], errors: Mapping[str, int]
) -> int:
    """Return the status an error stands for: HTTP's own, unless an error came with a 200."""
    if status >= 400:  # noqa: PLR2004 - HTTP's own boundary
        return status
    code = error.get("code")
    if isinstance(code, int) and 400 <= code < 600:  # noqa: PLR2004 - likewise
        return code
    return next((errors[name] for name in sorted(codes & errors.keys())), status)


def _kind(status: int, codes: set[str], message: str, errors: Mapping[str, int]) -> FailureKind:
    """Return the kind of failure; some vendors tell a bad key or spent credit only with a 400."""
    bad = status == 400  # noqa: PLR2004
    if status in (401, 403) or "API_KEY_INVALID" in codes or (bad and "api key" in message):
        return "auth"
    is_spent = status == 402 or any(errors.get(code) == 402 for code in codes)  # noqa: PLR2004
    if is_spent or (bad and "credit balance" in message):
        return "quota"
    return "rate_limited" if status == 429 else "http"  # noqa: PLR2004


_DELAY = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)s")


# https://cloud.google.com/apis/design/errors#error_details (google.rpc.RetryInfo)
def _retry_delay(error: Mapping[str, Any]) -> float | None:
    for detail in items(error.get("details")):
        if found := _DELAY.fullmatch(text(detail.get("retryDelay"))):
            return float(found.group(1))
    return None


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
    """Return a count; Google's JSON holds one as text. What is not a count counts nothing."""
    if isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value[:18])
    return value if isinstance(value, int) and value > 0 else 0
