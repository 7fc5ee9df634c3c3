"""What a provider is made of, pure: its wire format and, for batches, its queue.

A batch is made of the bodies that ``build_request`` of the format makes, and each of its results is
a :class:`Response` for ``read_reply`` of that format.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct

from store.polls.prompt import Prompt
from store.polls.providers import envelopes as wire
from store.polls.providers.envelopes import Reply, Request, Response, Tokens
from store.records import Assistant, Failure

Result = tuple[str, Response | Failure]
"""An item's id and what came of it."""

Items = Mapping[str, Mapping[str, Any]]
"""The questions of a batch: each one's body as it would be sent by itself, by an id of ours."""

UNASKED: Mapping[str, Failure] = {
    "expired": Failure("timeout", "The provider did not answer within the time of its batches."),
    "cancelled": Failure("interrupted", "The batch was cancelled before this was asked."),
    "missing": Failure("http", "The provider's batch ended without a result for this question."),
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
    unasked: Failure = UNASKED["missing"]
    is_settling: bool = False
    why: str | None = None


class Queue:
    """A provider's queue, as one assistant's batches use it; the defaults are what most share."""

    MAX_REQUESTS = 50_000
    """Items that one batch may have."""
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
        return msgspec.structs.replace(self._post(path, {}), method="GET")

    def _post(self, path: str, body: Mapping[str, Any], file: bytes | None = None) -> Request:
        """Return a POST below the base URL; ``extra`` belongs to questions alone."""
        url = f"{(self._assistant.base_url or '').rstrip('/')}/{path}"
        return Request(url, self._headers, body, file=file)


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
    ERRORS: Mapping[str, int] = wire.ERRORS
    """The HTTP status that each of its error codes stands for; 402 says that the money is spent."""
    QUEUES: Mapping[str, type[Queue]] = {}
    """The queues that take its batches, by the domain of the host that has one; ``*`` is any."""
    FLEX = False
    """Whether ``"tier": "flex"`` asks in an ordinary request at the price of a batch."""

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
        """Return what a response says."""
        request_id = response.headers.get(self.REQUEST_ID)
        envelope = wire.opened(response, request_id, self.ERRORS)
        if isinstance(envelope, Reply):
            return envelope
        return Reply(
            outcome=self.outcome(envelope),
            served_model=wire.identity(envelope.get("model"), envelope.get("modelVersion")),
            request_id=wire.identity(request_id, envelope.get("id"), envelope.get("responseId")),
            tokens=self.tokens(envelope),
            tier=self.tier(envelope, response),
        )


GRPC = {3: 400, 9: 400, 4: 504, 5: 404, 7: 403, 8: 429, 14: 503, 16: 401}
"""The HTTP status for a code of gRPC, as google.rpc.Code documents it; 500 for any other."""
CANCELLED = 1
"""The code of gRPC for what was cancelled."""


def grpc_error(error: Mapping[str, Any]) -> Response | Failure:
    """Return what an item's error with a code of gRPC comes to."""
    code = error.get("code")
    if code == CANCELLED:
        return UNASKED["cancelled"]
    status = GRPC.get(code, 500) if isinstance(code, int) else 500
    return wire.as_response(status, {"error": {**error, "code": status}})


def match(
    wanted: Iterable[str], results: Iterable[Result], unasked: Failure
) -> dict[str, Response | Failure]:
    """Return what each wanted item comes to, by id alone; never by position.

    Of two results of one item that differ, neither is right.
    """
    outcomes: dict[str, Response | Failure] = {}
    contested: set[str] = set()
    for identifier, outcome in results:
        if outcomes.setdefault(identifier, outcome) != outcome:
            contested.add(identifier)
    two = Failure("http", "The provider's batch gave two different results for this question.")
    return {item: two if item in contested else outcomes.get(item, unasked) for item in wanted}
