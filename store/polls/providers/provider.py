"""What a provider is made of, pure: the question as it is put, its wire format, its queue.

A batch is made of the bodies that ``build_request`` of the format makes, and each of its results is
a :class:`Response` for ``read_reply`` of that format.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from store.polls.providers import envelopes as wire
from store.polls.providers.envelopes import Reply, Request, Response, Tokens
from store.rankings.merging import PLACES
from store.records import Assistant, Failure, FailureKind

SYSTEM = (
    "You answer questions about which product or service is best. Answer from your own knowledge "
    "and judgement, in English. Answer with one JSON object and nothing else."
)


class Prompt(Struct, frozen=True):
    """A question as it is put: what the assistant is told to be, and what it is asked."""

    system: str
    user: str


def prompt(question: str) -> Prompt:
    """Return the prompt for a category's question, in the same words for every assistant."""
    return Prompt(
        SYSTEM,
        f"{question}\n\n"
        f"Name at most {PLACES} picks, best first. For each give its name as its maker writes it, "
        "its web domain (null when unsure), the reason for its place in one or two sentences, and "
        "what it would take to rank higher. Then name near misses with the reason each was left "
        "out, and one caveat about your first pick (null if there is none).\n\n"
        "Answer with this JSON object only:\n"
        '{"picks": [{"name": "…", "domain": "example.com", "reason": "…", "fixes": ["…"]}], '
        '"near_misses": [{"name": "…", "reason": "…"}], "caveat": "…"}',
    )


_TEXT = {"type": "string"}
_TEXT_OR_NULL = {"type": ["string", "null"]}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(properties),
        "properties": properties,
    }


_PICK = _object(
    {
        "name": _TEXT,
        "domain": _TEXT_OR_NULL,
        "reason": _TEXT,
        "fixes": {"type": "array", "items": _TEXT},
    }
)
_PICKS = {"type": "array", "description": f"At most {PLACES}, best first.", "items": _PICK}
_MISSES = {"type": "array", "items": _object({"name": _TEXT, "reason": _TEXT})}

ANSWER_SCHEMA = _object({"picks": _PICKS, "near_misses": _MISSES, "caveat": _TEXT_OR_NULL})
"""The answer's JSON schema, in the subset that every vendor takes: no counts, no lengths."""

PASSING = frozenset({408, 409, 429, 500, 502, 503, 504, 529})
"""Statuses after which asking again soon may help."""
LASTING = frozenset({401, 402, 403, 404})
"""Statuses that every further poll of the assistant would meet too."""
SPENT = 402
"""The status that stands for spent money, whatever the status that a vendor tells it with."""
ERRORS = {
    "rate_limit_exceeded": 429,
    "server_error": 500,
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": SPENT,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
    "insufficient_quota": SPENT,
    "credit_balance_exhausted": SPENT,
    "organization_spend_limit_exceeded": SPENT,
    "project_spend_limit_exceeded": SPENT,
    "organization_usage_limit_exceeded": SPENT,
    "enforced_spend_limit_reached": SPENT,
}
"""The HTTP status that an error's code or type stands for, of the vendors that are spoken here.

Anthropic's: https://docs.claude.com/en/api/errors."""


class Provider:
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
    """The domains of hosts that answer in ``"tier": "flex"``, at the price of a batch."""

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
        return wire.text(envelope.get("service_tier")) or None

    def read_reply(self, response: Response) -> Reply:
        """Return what a response says, or why none came."""
        if loss := response.loss:
            return Reply(outcome=loss, passing=loss.kind in ("network", "timeout"))
        request_id = response.headers.get(self.REQUEST_ID)
        envelope = wire.read_object(response.body)
        error = envelope.get("error")
        if error or response.is_error:
            refusal = wire.members(error) or {"message": error}
            return self._refused(response.status, refusal, wire.identity(request_id))
        if not (envelope and response.is_success):
            sentence = "The provider's reply is not a JSON object."
            if not response.is_success:
                sentence = f"The provider answered HTTP {response.status}, not an answer."
            return Reply(outcome=Failure("http", sentence), request_id=wire.identity(request_id))
        return Reply(
            outcome=self.outcome(envelope),
            served_model=wire.identity(envelope.get("model"), envelope.get("modelVersion")),
            request_id=wire.identity(request_id, envelope.get("id"), envelope.get("responseId")),
            tokens=self.tokens(envelope),
            tier=self.tier(envelope, response),
        )

    def _refused(self, status: int, error: Mapping[str, Any], request_id: str | None) -> Reply:
        """Return what a status and an error body stand for, and whether it will pass."""
        message = " ".join(wire.text(error.get("message")).split())
        codes = set(_codes(error))
        meant, code = status, error.get("code")
        if status < wire.ERROR:  # an error that came with a 200 names a status of its own
            meant = max((ERRORS[name] for name in codes & ERRORS.keys()), default=status)
            if isinstance(code, int) and wire.ERROR <= code < wire.NO_STATUS:
                meant = code
        kind: FailureKind = "rate_limited" if meant == 429 else "http"  # noqa: PLR2004 - HTTP's own
        # some vendors tell a bad key or spent credit with a 400
        words = message.casefold() if meant == 400 else ""  # noqa: PLR2004 - likewise
        is_spent = meant == SPENT or any(ERRORS.get(code) == SPENT for code in codes)
        if meant in (401, 403) or "API_KEY_INVALID" in codes or "api key" in words:
            kind = "auth"
        elif is_spent or "credit balance" in words:
            kind = "quota"
        delays = (wire.text(item.get("retryDelay")) for item in wire.items(error.get("details")))
        waits = [float(delay[1]) for delay in map(_DELAY.fullmatch, delays) if delay]
        quoted = f': "{message}"' if message else ""
        return Reply(
            outcome=Failure(kind, f"The provider answered HTTP {status}{quoted}"),
            request_id=request_id,
            passing=meant in PASSING and kind != "quota",
            lasting=meant in LASTING or kind in ("auth", "quota"),
            wait=waits[0] if waits else None,
        )


_DELAY = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)s")
"""A google.rpc.RetryInfo: https://cloud.google.com/apis/design/errors#error_details"""


def _codes(error: Mapping[str, Any]) -> Iterable[str]:
    """Yield every code by which an error body may tell what it means."""
    yield from map(wire.text, (error.get("code"), error.get("type"), error.get("status")))
    yield wire.text(wire.members(error.get("details")).get("error_code"))
    for detail in wire.items(error.get("details")):
        yield wire.text(detail.get("reason"))
        for violation in wire.items(detail.get("violations")):
            if "PerDay" in wire.text(violation.get("quotaId")):
                yield "insufficient_quota"


# ------------------------------------------------------------------ batches

Result = tuple[str, Response]
"""An item's id and what came of it."""

Items = Mapping[str, Mapping[str, Any]]
"""The questions of a batch: each one's body as it would be sent by itself, by an id of ours."""

UNASKED: Mapping[str, Response] = {
    "expired": wire.lost(
        "timeout", "The provider did not answer within the time of its batches.", is_free=True
    ),
    "cancelled": wire.lost("interrupted", "The batch was cancelled before this was asked."),
    "missing": wire.lost("http", "The provider's batch ended without a result for this question."),
}
"""What an item without an answer comes to, by why it has none."""


class Remote(Struct, frozen=True, kw_only=True):
    """A batch as its provider describes it.

    ``files`` name what its results are read from. An item without a result comes to ``unasked``.
    ``is_settling`` is set where cancelled items may still turn out to be answered for a while.
    ``why`` says why it failed.
    """

    id: str
    state: Literal["open", "ended", "failed"]
    files: tuple[str, ...] = ()
    unasked: Response = UNASKED["missing"]
    is_settling: bool = False
    why: str | None = None


class Queue:
    """A provider's queue, as one assistant's batches use it; the defaults are what most share."""

    MOST_ITEMS = 200
    """Questions of one batch: at most some 4 USD are reserved at a time, and one that is stuck
    holds back a seventh of a round. Providers take 50,000 and more, but for Gemini."""
    HOME, CANCEL = "batches", "/cancel"
    """The path of batches, and what follows a batch's to cancel it."""
    headers = staticmethod(wire.bearer)

    def __init__(self, assistant: Assistant, key: str | None) -> None:
        self._assistant = assistant
        self._headers = self.headers(key)

    def build_upload(self, items: Items) -> Request | None:
        """Return the upload of the items, where the batch is not given them itself."""

    def build_batch(self, items: Items, label: str, file: str | None) -> Request:
        """Return the request that makes a batch, of items or of a file uploaded before."""
        raise NotImplementedError

    def build_look(self, batch: str) -> Request:
        """Return the request that asks how a batch stands."""
        return self._get(f"{self.HOME}/{batch}")

    def build_cancel(self, batch: str) -> Request:
        """Return the request that cancels a batch."""
        return self._post(f"{self.HOME}/{batch}{self.CANCEL}", {})

    def build_download(self, file: str) -> Request:
        """Return the request for one of :attr:`Remote.files`: here the batch, which holds them."""
        return self.build_look(file)

    def read_batch(self, described: dict[str, Any]) -> Remote | None:
        """Return a batch from what the provider says of it; ``None`` if it says nothing of one."""
        raise NotImplementedError

    def read_results(self, body: bytes) -> Iterator[Result]:
        """Yield what one of its files says of its items, in any order."""
        raise NotImplementedError

    def next_file(self, file: str, body: bytes) -> str | None:
        """Return what to read after a file, where results come in pages."""

    def _get(self, path: str) -> Request:
        return replace(self._post(path, {}), method="GET")

    def _post(self, path: str, body: Mapping[str, Any], file: bytes | None = None) -> Request:
        """Return a POST below the base URL; ``extra`` belongs to questions alone."""
        url = f"{(self._assistant.base_url or '').rstrip('/')}/{path}"
        return Request(url, self._headers, body, file=file)


GRPC = {3: 400, 9: 400, 4: 504, 5: 404, 7: 403, 8: 429, 14: 503, 16: 401}
"""The HTTP status for a code of gRPC, as google.rpc.Code documents it; 500 for any other."""
CANCELLED = 1
"""The code of gRPC for what was cancelled."""


def grpc_error(error: Mapping[str, Any]) -> Response:
    """Return what an item's error with a code of gRPC comes to."""
    code = error.get("code")
    if code == CANCELLED:
        return UNASKED["cancelled"]
    status = GRPC.get(code, 500) if isinstance(code, int) else 500
    return wire.as_response(status, {"error": {**error, "code": status}})


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
    two = wire.lost("http", "The provider's batch gave two different results for this question.")
    return {item: two if item in contested else outcomes.get(item, unasked) for item in wanted}
