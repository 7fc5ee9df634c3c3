"""The providers' wire formats, pure, one module for each API.

A provider turns a :class:`Prompt` into a :class:`Request` and a :class:`Response` into a
:class:`Reply`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

from store.records import Failure, FailureKind

MAX_SEARCHES = 5
"""How many web searches one poll may make, where a provider lets us say so."""


class Prompt(Struct, frozen=True):
    """A question as it is put: what the assistant is told to be, and what it is asked."""

    system: str
    user: str


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
