"""Wire shapes of the poll history, one struct for each JSON object."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from store.records import ServedFailure
from store.web.shapes import TIME_PATTERN, JsonObject, Time


class PollPick(JsonObject, frozen=True, kw_only=True):
    """A place in a polled answer, as the model wrote it."""

    rank: int
    product: str
    domain: str | None
    reason: str | None
    fixes: list[str]


class PollMiss(JsonObject, frozen=True, kw_only=True):
    """A near miss in a polled answer."""

    product: str
    reason: str | None


class PollUsage(JsonObject, frozen=True, kw_only=True):
    """What a poll cost."""

    input_tokens: int
    output_tokens: int
    usd: float | None
    searches: Annotated[
        int | UnsetType,
        Meta(description="How often it searched the web; absent where the provider says nothing."),
    ] = UNSET


class PollRecord(JsonObject, frozen=True, kw_only=True):
    """One poll: a line of the history file, as it stands there."""

    v: Literal[1]
    id: Annotated[
        str,
        Meta(
            pattern="^[0-9a-f]{16}$",
            description=(
                "First 16 hex digits of the SHA-256 over the record's own bytes without its "
                "members id and crc."
            ),
        ),
    ]
    slug: str
    model: str
    polled_at: Time
    question: str
    pick: Annotated[str | None, Meta(description="The #1 as the model wrote it; null if failed.")]
    ranking: list[PollPick]
    reason: Annotated[str | None, Meta(description="Verbatim reason for the pick.")]
    missed: list[PollMiss]
    caveat: str | None
    error: Annotated[
        str | None, Meta(description="Why a poll failed, or why it is withheld; else null.")
    ]
    failure: Annotated[
        ServedFailure | None,
        Meta(description="null for an answer, which has a pick; else what kind, or withheld."),
    ]
    notes: Annotated[list[str], Meta(description="What was mended when the answer was read.")]
    served_model: str | None
    request_id: str | None
    web_search: bool
    instrument: Annotated[
        str | UnsetType,
        Meta(
            description="What it was asked with, see instruments.json: 12 hex digits; absent in "
            "older polls and those of sample models."
        ),
    ] = UNSET
    usage: PollUsage | None
    latency_ms: int | None
    cooldown_until: (
        Annotated[
            str,
            Meta(
                pattern=TIME_PATTERN,
                description="Present if the model is left alone until this time.",
                extra_json_schema={"format": "date-time"},
            ),
        ]
        | UnsetType
    ) = UNSET
    withheld: Annotated[
        bool | UnsetType, Meta(description="Present and true when the texts are not shown.")
    ] = UNSET
    crc: Annotated[str, Meta(description="CRC-32 of the line without this member, in hex.")]


class PollHistory(JsonObject, frozen=True, kw_only=True):
    """The newest polls of a category."""

    slug: str
    model: str | None
    total: int
    next_before: str | None
    polls: list[PollRecord]
