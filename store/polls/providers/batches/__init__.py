"""The providers' queues for batches, pure: one module for each kind of queue.

A batch is made of the bodies that :func:`build_request` of the assistant's format makes, and each
of its results is a :class:`Response` for :func:`read_reply` of that format.
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Protocol
from urllib.parse import quote

import msgspec
from msgspec import Struct

from store.polls.providers import Request, Response
from store.polls.providers import envelopes as wire
from store.records import Failure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from store.records import Assistant

    Result = tuple[str, Response | Failure]
    """An item's id and what came of it."""

UNASKED: Mapping[str, Failure] = {
    "expired": Failure("timeout", "The provider did not answer within the time of its batches."),
    "cancelled": Failure("interrupted", "The batch was cancelled before this was asked."),
    "missing": Failure("http", "The provider's batch ended without a result for this question."),
}
"""What an item without an answer comes to, by why it has none."""


class Item(Struct, frozen=True):
    """One question of a batch: an id of ours, and the body as it would be sent by itself."""

    id: str
    body: Mapping[str, Any]


class Remote(Struct, frozen=True, kw_only=True):
    """A batch as its provider describes it.

    ``label`` is ours, where the provider keeps one; ``created`` is in Unix seconds. ``asked`` and
    ``done`` count items. ``files`` name what its results are read from. An item without a result
    comes to ``unasked``. ``is_settling`` is set where cancelled items may still turn out to be
    answered for a while. ``why`` says why it failed.
    """

    id: str
    state: Literal["open", "ended", "failed"]
    asked: int
    done: int
    label: str | None = None
    created: float | None = None
    files: tuple[str, ...] = ()
    unasked: Failure = UNASKED["missing"]
    is_settling: bool = False
    why: str | None = None


class Page(Struct, frozen=True):
    """Some of a provider's batches, and what to ask for the next page with, if there is one."""

    batches: tuple[Remote, ...]
    following: str | None = None


class Queue(Protocol):
    """A kind of queue."""

    MOST: int
    """Items that one batch may have."""
    LABELLED: bool
    """Whether the provider keeps our label, so that a batch can be found by it."""

    def build_upload(
        self, assistant: Assistant, items: Sequence[Item], key: str | None
    ) -> Request | None:
        """The request that uploads the items, where the batch is not given them itself."""

    def build_batch(
        self,
        assistant: Assistant,
        items: Sequence[Item],
        label: str,
        file: str | None,
        key: str | None,
    ) -> Request:
        """The request that makes a batch, of items or of a file uploaded before."""

    def build_look(self, assistant: Assistant, batch: str, key: str | None) -> Request:
        """The request that asks how a batch stands."""

    def build_cancel(self, assistant: Assistant, batch: str, key: str | None) -> Request:
        """The request that cancels a batch."""

    def build_list(self, assistant: Assistant, after: str | None, key: str | None) -> Request:
        """The request for a page of the provider's batches, newest first."""

    def build_download(self, assistant: Assistant, file: str, key: str | None) -> Request:
        """The request for one of :attr:`Remote.files`."""

    def read_batch(self, found: dict[str, Any]) -> Remote | None:
        """A batch from what the provider says of it; ``None`` if it says nothing of the kind."""

    def read_list(self, body: bytes) -> Page | None:
        """A page of batches; ``None`` if it is none."""

    def read_results(self, body: bytes) -> Iterable[Result]:
        """What one of its files says of its items, in any order."""

    def next_file(self, file: str, body: bytes) -> str | None:
        """What to read after a file, where results come in pages."""


def get(assistant: Assistant, path: str, headers: dict[str, str]) -> Request:
    """A GET below the base URL."""
    return msgspec.structs.replace(post(assistant, path, headers), method="GET")


def post(
    assistant: Assistant, path: str, headers: dict[str, str], body: Mapping[str, Any] | None = None
) -> Request:
    """A POST below the base URL; ``extra`` belongs to questions alone."""
    return Request(f"{(assistant.base_url or '').rstrip('/')}/{path}", headers, body or {})


def opened(body: bytes) -> dict[str, Any]:
    """The JSON object that a body is, else an empty one."""
    try:
        return wire.members(msgspec.json.decode(body))
    except (ValueError, RecursionError):
        return {}


def lines(body: bytes) -> Iterator[dict[str, Any]]:
    """The JSON objects of JSON Lines; what is none is left out."""
    return filter(None, map(opened, body.splitlines()))


def page_by_id(
    found: dict[str, Any], read: Callable[[dict[str, Any]], Remote | None]
) -> Page | None:
    """A page of a list whose last id leads to the next one."""
    if not isinstance(found.get("data"), list):
        return None
    there = tuple(filter(None, map(read, wire.items(found["data"]))))
    return Page(there, there[-1].id if found.get("has_more") is True and there else None)


_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,199}")


def identity(value: Any) -> str | None:
    """A provider's id that can stand in a path, if it is one: it is sent back with our key."""
    text = wire.text(value)
    return text if _ID.fullmatch(text) else None


def query(name: str, value: str) -> str:
    """A parameter of a query; ``value`` may be anything that a provider said."""
    return f"{name}={quote(value, safe='')}"


def response(status: Any, body: Any, headers: Mapping[str, str] | None = None) -> Response:
    """A result as the response it would have been, had its item been sent by itself."""
    known = status if isinstance(status, int) else 0
    return Response(known, headers or {}, json.dumps(body).encode())


def number(value: Any) -> int:
    """A count; Google's JSON holds one as text. What is none counts nothing."""
    if isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value[:18])
    return value if isinstance(value, int) and value > 0 else 0


def moment(value: Any) -> float | None:
    """A time in Unix seconds, from such or from RFC 3339."""
    if isinstance(value, int | float):
        return float(value)
    try:
        return datetime.fromisoformat(wire.text(value)).timestamp()
    except (ValueError, OverflowError):
        return None


GRPC = {3: 400, 9: 400, 4: 504, 5: 404, 7: 403, 8: 429, 14: 503, 16: 401}
"""The HTTP status for a code of gRPC, as google.rpc.Code documents it; 500 for any other."""
CANCELLED = 1
"""The code of gRPC for what was cancelled."""


def grpc_error(error: Mapping[str, Any]) -> Response | Failure:
    """What an item's error with a code of gRPC comes to."""
    code = error.get("code")
    if code == CANCELLED:
        return UNASKED["cancelled"]
    status = GRPC.get(code, 500) if isinstance(code, int) else 500
    return response(status, {"error": {**error, "code": status}})


def matched(
    wanted: Iterable[str], found: Iterable[Result], unasked: Failure
) -> dict[str, Response | Failure]:
    """What each item comes to that is wanted, by id alone: the order of results means nothing.

    A result given twice counts once; of two that differ nobody knows which is right.
    """
    known: dict[str, Response | Failure] = {}
    torn: set[str] = set()
    for identifier, came in found:
        if known.setdefault(identifier, came) != came:
            torn.add(identifier)
    two = Failure("http", "The provider's batch gave two different results for this question.")
    return {each: two if each in torn else known.get(each, unasked) for each in wanted}
