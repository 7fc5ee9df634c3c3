"""What every provider says and is made of, pure: requests, replies, errors, keys; its queue.

A batch is made of the bodies that ``build_request`` of the format makes, and each of its results is
a :class:`Response` for ``read_reply`` of that format.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from store.polls.answers import Prompt
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

    Where none came, ``no_reply`` says why; ``is_free`` if that surely cost nothing.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    no_reply: Failure | None = None
    is_free: bool = False

    @property
    def is_success(self) -> bool:
        """True if the provider answered with a success."""
        return 200 <= self.status < 300  # noqa: PLR2004 - HTTP's own boundaries

    @property
    def is_error(self) -> bool:
        """True if the provider answered with an error, which costs nothing."""
        return self.status >= ERROR


def no_answer(kind: FailureKind, sentence: str, *, is_free: bool = False) -> Response:
    """Return the response that stands for a question without one."""
    return Response(0, {}, b"", Failure(kind, sentence), is_free)


class Tokens(Struct, frozen=True):
    """The counts that a provider states; ``searches`` are unset where it says nothing of them."""

    input: int
    output: int
    searches: int | UnsetType = UNSET

    def __add__(self, other: Tokens) -> Tokens:
        """Return the sum of two counts."""
        counts = [n for n in (self.searches, other.searches) if n is not UNSET]
        searches = sum(counts) if counts else UNSET
        return Tokens(self.input + other.input, self.output + other.output, searches)


class Reply(Struct, frozen=True, kw_only=True):
    """A provider's envelope, opened: the model's text or the failure, and what is known beside.

    Transient failures may pass when asked again soon, after ``wait`` seconds if the body says so;
    permanent ones (a bad key, spent money, a model that is gone) would meet every other poll too.
    An answer that cost far more than its reserve is permanent as well. ``tier`` is the one that
    answered. ``notes`` are for the record.

    Sending adds the ``latency_ms`` of the last of ``attempts``, the seconds of a
    ``pause`` for the assistant, and the provider's time as ``at`` where ours does not fit.
    """

    outcome: str | Failure
    served_model: str | None = None
    request_id: str | None = None
    tokens: Tokens | None = None
    is_transient: bool = False
    is_permanent: bool = False
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


def as_object(value: Any) -> dict[str, Any]:
    """Return the value if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_objects(value: Any) -> list[dict[str, Any]]:
    """Return the JSON objects in a value that should be a list of them."""
    return [as_object(item) for item in value] if isinstance(value, list) else []


def as_text(value: Any) -> str:
    """Return text as it stands, or joined from the text parts of a list; else an empty string."""
    parts = [value] if isinstance(value, str) else [part.get("text") for part in as_objects(value)]
    return "".join(part for part in parts if isinstance(part, str))


def first_name(*candidates: Any) -> str | None:
    """Return the first candidate that is a name or an id, cleaned and cut to a sensible length."""
    names = (clean(as_text(candidate)[:MAX_ID]) for candidate in candidates)
    return next(filter(None, names), None)


def counted(sent: Any, produced: Any, searches: Any) -> Tokens | None:
    """Return what was used, if tokens were counted.

    Each is a count or a list of counts, of which missing ones are skipped.
    """
    totals = [_total(sent), _total(produced)]
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
    return as_object(value[0] if isinstance(value, list) and len(value) == 1 else value)


_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,199}")


def path_id(value: Any) -> str | None:
    """Return a provider's id if it can stand in a path: it is sent back with our key."""
    name = as_text(value)
    return name if _ID.fullmatch(name) else None


def as_response(status: Any, body: Any, headers: Mapping[str, str] | None = None) -> Response:
    """Return a result as the response it would have been, had its item been sent by itself."""
    code = status if isinstance(status, int) else 0
    try:
        data = json.dumps(body).encode()
    except RecursionError:  # a line that can just be read may be nested too deep to be written
        data = b""
    return Response(code, headers or {}, data)


TRANSIENT = frozenset({408, 409, 429, 500, 502, 503, 504, 529})
"""Statuses after which asking again soon may help."""
PERMANENT = frozenset({401, 402, 403, 404})
"""Statuses that every further poll of the assistant would meet too."""
OUT_OF_CREDIT = 402
"""The status that stands for spent money, whatever the status that a vendor tells it with."""
ERRORS = {
    "rate_limit_exceeded": 429,
    "server_error": 500,
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": OUT_OF_CREDIT,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
    "insufficient_quota": OUT_OF_CREDIT,
    "credit_balance_exhausted": OUT_OF_CREDIT,
    "organization_spend_limit_exceeded": OUT_OF_CREDIT,
    "project_spend_limit_exceeded": OUT_OF_CREDIT,
    "organization_usage_limit_exceeded": OUT_OF_CREDIT,
    "enforced_spend_limit_reached": OUT_OF_CREDIT,
}
"""The HTTP status that an error's code or type stands for, of the vendors that are spoken here.

Anthropic's: https://docs.claude.com/en/api/errors."""


class WireFormat:
    """A wire format: pure, without a socket, a clock or the environment.

    A subclass gives ``build_request``, ``outcome`` and ``tokens``; the rest is what most share.
    """

    REQUEST_ID = "x-request-id"
    """The header with the id of a request."""
    OUTPUT_LIMIT = "max_output_tokens"
    """The member of a body that limits the output."""
    KEYS: Mapping[str, str] = {}
    """The usual variables of its keys, with the domain that each key belongs to."""
    QUEUES: Mapping[str, type[Queue]] = {}
    """The queues that take its batches, by the domain of the host that has one; ``*`` is any."""
    FLEX: Mapping[str, bool] = {}
    """Whether a host answers in ``"tier": "flex"``, at the price of a batch, by its domain."""

    def build_request(self, assistant: Assistant, prompt: Prompt, key: str | None) -> Request:
        """Return the request that puts a prompt to an assistant; no sampling parameters."""
        raise NotImplementedError

    def outcome(self, envelope: dict[str, Any]) -> str | Failure:
        """Return the model's text, or why there is none: stop reason and refusal come first."""
        raise NotImplementedError

    def tokens(self, envelope: dict[str, Any]) -> Tokens | None:
        """Return what was counted, if it was."""
        raise NotImplementedError

    def tier(self, envelope: dict[str, Any], response: Response) -> str | None:  # noqa: ARG002
        """Return the tier that a question was answered in, where the provider says it."""
        return first_name(envelope.get("service_tier"))

    def read_reply(self, response: Response) -> Reply:
        """Return what a response says, or why none came."""
        if no_reply := response.no_reply:
            return Reply(outcome=no_reply, is_transient=no_reply.kind in ("network", "timeout"))
        request_id = response.headers.get(self.REQUEST_ID)
        envelope = read_object(response.body)
        error = envelope.get("error")
        if error or response.is_error:
            refusal = as_object(error) or {"message": error}
            return self._refused(response.status, refusal, first_name(request_id))
        if not (envelope and response.is_success):
            sentence = "The provider's reply is not a JSON object."
            if not response.is_success:
                sentence = f"The provider answered HTTP {response.status}, not an answer."
            return Reply(outcome=Failure("http", sentence), request_id=first_name(request_id))
        return Reply(
            outcome=self.outcome(envelope),
            served_model=first_name(envelope.get("model"), envelope.get("modelVersion")),
            request_id=first_name(request_id, envelope.get("id"), envelope.get("responseId")),
            tokens=self.tokens(envelope),
            tier=self.tier(envelope, response),
        )

    def _refused(self, status: int, error: Mapping[str, Any], request_id: str | None) -> Reply:
        """Return what a status and an error body stand for, and whether it will pass."""
        message = " ".join(as_text(error.get("message")).split())
        codes = set(_codes(error))
        meant, code = status, error.get("code")
        if status < ERROR:  # an error that came with a 200 names a status of its own
            meant = max((ERRORS[name] for name in codes & ERRORS.keys()), default=status)
            if isinstance(code, int) and ERROR <= code < NO_STATUS:
                meant = code
        kind: FailureKind = "rate_limited" if meant == 429 else "http"  # noqa: PLR2004 - HTTP's own
        # some vendors tell a bad key or spent credit with a 400
        words = message.casefold() if meant == 400 else ""  # noqa: PLR2004 - likewise
        is_spent = meant == OUT_OF_CREDIT or any(
            ERRORS.get(code) == OUT_OF_CREDIT for code in codes
        )
        if meant in (401, 403) or "API_KEY_INVALID" in codes or "api key" in words:
            kind = "auth"
        elif is_spent or "credit balance" in words:
            kind = "quota"
        delays = (as_text(item.get("retryDelay")) for item in as_objects(error.get("details")))
        waits = [float(delay[1]) for delay in map(_DELAY.fullmatch, delays) if delay]
        quoted = f': "{message}"' if message else ""
        return Reply(
            outcome=Failure(kind, f"The provider answered HTTP {status}{quoted}"),
            request_id=request_id,
            is_transient=meant in TRANSIENT and kind != "quota",
            is_permanent=meant in PERMANENT or kind in ("auth", "quota"),
            wait=waits[0] if waits else None,
        )


_DELAY = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)s")
"""A google.rpc.RetryInfo: https://cloud.google.com/apis/design/errors#error_details"""


def _codes(error: Mapping[str, Any]) -> Iterable[str]:
    """Yield every code by which an error body may tell what it means."""
    yield from map(as_text, (error.get("code"), error.get("type"), error.get("status")))
    yield as_text(as_object(error.get("details")).get("error_code"))
    for detail in as_objects(error.get("details")):
        yield as_text(detail.get("reason"))
        for violation in as_objects(detail.get("violations")):
            if "PerDay" in as_text(violation.get("quotaId")):
                yield "insufficient_quota"


# ------------------------------------------------------------------ batches

Result = tuple[str, Response]
"""An item's id and what came of it."""

Items = Mapping[str, Mapping[str, Any]]
"""The questions of a batch: each one's body as it would be sent by itself, by an id of ours."""

UNASKED: Mapping[str, Response] = {
    "expired": no_answer(
        "timeout", "The provider did not answer within the time of its batches.", is_free=True
    ),
    "cancelled": no_answer("interrupted", "The batch was cancelled before this was asked."),
    "missing": no_answer("http", "The provider's batch ended without a result for this question."),
}
"""The response that stands for an item without an answer, by the reason."""


class RemoteBatch(Struct, frozen=True, kw_only=True):
    """A batch as its provider describes it.

    ``files`` are the paths that its results are read from. An item without a result comes to
    ``unasked``. ``why`` says why it failed.
    """

    id: str
    state: Literal["open", "ended", "failed"]
    files: tuple[str, ...] = ()
    unasked: Response = UNASKED["missing"]
    why: str | None = None


class Queue:
    """A provider's queue, as one assistant's batches use it; the defaults are what most share."""

    HOME = "batches"
    """The path of batches."""
    headers = staticmethod(bearer)

    def __init__(self, assistant: Assistant, key: str | None) -> None:
        self._assistant = assistant
        self._headers = self.headers(key)

    def build_upload(self, items: Items) -> Request | None:
        """Return the upload of the items, where the batch is not given them itself."""

    def build_batch(self, items: Items, file: str | None) -> Request:
        """Return the request that makes a batch, of items or of a file uploaded before."""
        raise NotImplementedError

    def build_status_request(self, batch: str) -> Request:
        """Return the request that asks how a batch stands."""
        return self.build_get(f"{self.HOME}/{batch}")

    def build_cancel(self, batch: str) -> Request:
        """Return the request that cancels a batch."""
        return self._post(f"{self.HOME}/{batch}/cancel", {})

    def read_batch(self, described: dict[str, Any]) -> RemoteBatch | None:
        """Return a batch from what the provider says of it; ``None`` if it says nothing of one."""
        raise NotImplementedError

    def read_results(self, body: bytes) -> Iterator[Result]:
        """Yield what one of its files says of its items, a line for each, in any order."""
        for line in filter(None, map(read_object, body.splitlines())):
            yield as_text(line.get("custom_id")), self.read_result(line)

    def read_result(self, line: dict[str, Any]) -> Response:
        """Return what a line of results comes to, whatever it holds."""
        raise NotImplementedError

    def build_get(self, path: str) -> Request:
        """Return a GET below the base URL, such as of one of :attr:`RemoteBatch.files`."""
        return replace(self._post(path, {}), method="GET")

    def _post(self, path: str, body: Mapping[str, Any], file: bytes | None = None) -> Request:
        """Return a POST below the base URL; ``extra`` belongs to questions alone."""
        url = f"{(self._assistant.base_url or '').rstrip('/')}/{path}"
        return Request(url, self._headers, body, file=file)


def match(
    wanted: Iterable[str], results: Iterable[Result], unasked: Response
) -> dict[str, Response]:
    """Return what each wanted item comes to, by id alone; never by position.

    Of two results of one item that differ, neither is right.
    """
    outcomes: dict[str, Response] = {}
    contested: set[str] = set()
    for identifier, outcome in results:
        if outcomes.setdefault(identifier, outcome) != outcome:
            contested.add(identifier)
    two = no_answer("http", "The provider's batch gave two different results for this question.")
    return {item: two if item in contested else outcomes.get(item, unasked) for item in wanted}
