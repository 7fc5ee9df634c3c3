"""What addresses and tools take: one struct each, which is check, OpenAPI parameters and schema.

Reading is exact, complete and never guesses: all that is wrong is told at once. A parameter's
sentence, where its schema does not say it, stands in its ``extra``.
"""

import datetime as dt
import re
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin
from urllib.parse import quote

import msgspec
from msgspec import NODEFAULT, Meta, Struct
from rapidfuzz.process import extractOne
from werkzeug.datastructures import MultiDict

from store.search import Kind
from store.text import MAX_SLUG, SLUG_PATTERN
from store.web.errors import Moved, ParameterError, Refused

Format = Literal["json", "jsonl", "csv"]

MAX_QUERY = 200
HITS = 10
NOT_BLANK = r"[^\s\u001c-\u001f\u0085\ufeff]"
"""A character that is white space neither to Python nor to ECMAScript, whose ``\\s`` differ."""
_CORE = re.compile(f"{NOT_BLANK}(?s:.*{NOT_BLANK})?")
_WHOLE = re.compile(r"0|[1-9][0-9]{0,6}")
DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_DATE = re.compile(DATE)
POLL_ID = r"[0-9a-f]{16}"

NO_SLUG = (
    "must be lower-case letters and digits, joined by single hyphens, at most 100 characters; "
    "resolve one through /api/v1/search?q=."
)
NO_DAY = "must be a date in UTC, written YYYY-MM-DD."
NO_POLL = "must be the id of a poll: 16 hexadecimal digits in lower case."

Slug = Annotated[
    str,
    Meta(
        pattern=SLUG_PATTERN,
        min_length=1,
        max_length=MAX_SLUG,
        extra={"wrong": NO_SLUG, "missing": "is missing; resolve one through /api/v1/search?q=."},
    ),
]
Text = Annotated[
    str, Meta(min_length=1, max_length=MAX_QUERY, pattern=NOT_BLANK, extra={"trimmed": True})
]
Words = Annotated[str, Meta(max_length=MAX_QUERY, extra={"trimmed": True})]
Day = Annotated[
    str,
    Meta(
        pattern=f"^{DATE}$",
        extra_json_schema={"format": "date"},
        extra={"wrong": NO_DAY, "day": True},
    ),
]
PollId = Annotated[str, Meta(pattern=f"^{POLL_ID}$", extra={"wrong": NO_POLL})]
Before = Annotated[
    PollId | None,
    Meta(
        description="Only what is older than the poll, or the change, with this id. The Link "
        'header names the next page (rel="next") as long as there is one.'
    ),
]
InFormat = Annotated[
    Format,
    Meta(
        description="json; jsonl, the same objects one a line; or csv, a table with a header "
        "(UTF-8, LF, nothing for null; a poll becomes its products, domains and one reason)."
    ),
]
AsOfDay = Annotated[
    Day | None,
    Meta(
        description="The ranking as of this day's end (UTC), under the names of today. Of a closed "
        "day (`final`) it ranks what was there when it was closed; any other still gains answers."
    ),
]
NamedCategory = Annotated[
    Words, Meta(description="Category slug, as search_best returns it.", min_length=1)
]
Q = TypeVar("Q", bound="Query")


CategorySlug = Annotated[Slug, Meta(description="Category slug, as search returns it.")]


class Query(Struct, frozen=True, kw_only=True, rename="camel"):
    """The parameters of an address that takes none."""


class OfCategory(Query, frozen=True, kw_only=True):
    """A category."""

    slug: CategorySlug


class OfProduct(Query, frozen=True, kw_only=True):
    """A product."""

    slug: Annotated[
        Slug,
        Meta(description="Product slug, lower case and hyphenated, as search returns it."),
    ]


class OfSlug(Query, frozen=True, kw_only=True):
    """Anything else that has a slug."""

    slug: Slug


class AsOf(OfCategory, frozen=True, kw_only=True):
    """A category, as of a day if given."""

    as_of: AsOfDay = None


class Tabular(Query, frozen=True, kw_only=True):
    """A list of flat objects."""

    format: InFormat = "json"


class Categories(Query, frozen=True, kw_only=True):
    """Ranked categories, all or a topic's."""

    topic: Annotated[
        str | None,
        Meta(description="Only the categories of this topic, by its slug in topics.json."),
    ] = None
    format: InFormat = "json"


class History(OfCategory, frozen=True, kw_only=True):
    """Polls of a category."""

    model: Annotated[
        str | None,
        Meta(
            description="Only this model's polls; the names of retired models and former names "
            "are accepted too."
        ),
    ] = None
    limit: Annotated[
        int,
        Meta(ge=1, le=500, description="How many records at most: 1 to 500, or 100 if left out."),
    ] = 100
    before: Before = None
    format: InFormat = "json"


class Changes(Query, frozen=True, kw_only=True):
    """Changes of the models' #1 picks, narrowed."""

    since: Annotated[
        Day | None, Meta(description="Only changes of this day (UTC) and later ones.")
    ] = None
    topic: Annotated[
        str | None, Meta(description="Only in categories of this topic, by its slug.")
    ] = None
    slug: Annotated[Slug | None, Meta(description="Only in this category.")] = None
    confirmed: Annotated[
        bool | None, Meta(description="Only changes that are, or are not, confirmed.")
    ] = None
    limit: Annotated[
        int,
        Meta(ge=1, le=1000, description="How many changes at most: 1 to 1000, or all of those."),
    ] = 1000
    before: Before = None
    format: InFormat = "json"


class Search(Query, frozen=True, kw_only=True):
    """A search."""

    q: Annotated[
        Text,
        Meta(
            description="A category topic or a brand name, 1 to 200 characters after trimming.",
            extra={"missing": "is missing or blank; give a topic or a brand name."},
        ),
    ]
    limit: Annotated[
        int,
        Meta(
            ge=1,
            le=50,
            description="How many hits of each kind at most: 1 to 50, or 10 if left out.",
        ),
    ] = HITS
    kind: Annotated[
        Kind | None,
        Meta(
            description="Only categories or only brands; the other array stays, empty.",
            extra={"wrong": f"must be {' or '.join(get_args(Kind))}; leave it out for both."},
        ),
    ] = None


class FeedPart(Query, frozen=True, kw_only=True):
    """A part of a feed: what is older than a change, if given."""

    before: PollId | None = None


class FeedOf(FeedPart, frozen=True, kw_only=True):
    """A part of the feed of a category, a product or a topic."""

    slug: Slug


class SearchCall(Query, frozen=True, kw_only=True):
    """A search by a model; the query has two names."""

    q: Annotated[Text | None, Meta(description="A topic or brand, 1 to 200 characters.")] = None
    query: Annotated[Text | None, Meta(description="Another name of q.")] = None
    limit: Annotated[int, Meta(ge=1, le=20, description="Hits of each kind at most.")] = 5
    kind: Annotated[Kind | None, Meta(description="Only categories or only brands.")] = None


class CategoryCall(Query, frozen=True, kw_only=True):
    """A category, for a model; what is not a slug is told the closest."""

    slug: NamedCategory
    as_of: AsOfDay = None

    detail: Annotated[
        Literal["summary", "full"],
        Meta(description="full adds perModel and missedByModel, about twice as long."),
    ] = "summary"


class ProductCall(Query, frozen=True, kw_only=True):
    """A product, for a model."""

    slug: Annotated[Words, Meta(description="Product slug, as search_best returns it.")]

    limit: Annotated[int, Meta(ge=1, le=50, description="Rankings at most.")] = 10
    offset: Annotated[int, Meta(ge=0, le=1_000_000, description="How many to skip.")] = 0


class HistoryCall(Query, frozen=True, kw_only=True):
    """Polls of a category, for a model."""

    slug: NamedCategory
    model: Annotated[str | None, Meta(description="Only this assistant's polls.")] = None
    limit: Annotated[int, Meta(ge=1, le=50, description="Polls at most.")] = 5
    before: Annotated[
        PollId | None, Meta(description="Only older polls: pass nextBefore to go on.")
    ] = None


class ListCall(Query, frozen=True, kw_only=True):
    """A part of the list of categories, for a model."""

    q: Annotated[Words | None, Meta(description="Words that the title or slug must contain.")] = (
        None
    )
    topic: Annotated[
        str | None, Meta(description="Only this topic's; an unknown one brings the list of them.")
    ] = None
    limit: Annotated[int, Meta(ge=1, le=200, description="Categories at most.")] = 50
    offset: Annotated[int, Meta(ge=0, le=1_000_000, description="How many to skip.")] = 0


class _Field(Struct, frozen=True):
    """What a query says of one field: its Python name, its types, literals, bounds and extras.

    ``default`` is ``NODEFAULT`` where it must be given.
    """

    name: str
    default: Any
    bases: frozenset[type]
    choices: tuple[str, ...]
    bounds: Mapping[str, Any]
    extra: Mapping[str, Any]


def from_address(
    kind: type[Q],
    args: MultiDict[str, str],
    variables: Mapping[str, str],
    address: str,
    *,
    strict: bool,
) -> Q:
    """Return the query of an address: its variables and parameters.

    ``strict`` refuses parameters that it does not have; else others may add to a link what they
    like.

    Raises:
        Refused: something is missing, malformed, unknown or given twice.
        Moved: it would be right in lower case.
    """
    fields = _fields(kind)
    twice = [name for name in fields if len(args.getlist(name)) > 1]
    unknown = [name for name in args if name not in fields or name in variables] if strict else []
    given = {name: args[name] for name in fields if name in args} | dict(variables)
    values, errors = _read(kind, {n: v for n, v in given.items() if n not in twice}, lax=True)
    errors = [e for e in errors if e.parameter not in twice]
    errors += [ParameterError(parameter=name, detail="is given more than once.") for name in twice]
    order = [*fields]
    errors.sort(key=lambda error: order.index(error.parameter))
    if unknown:
        known = [name for name in fields if name not in variables]
        told = [ParameterError(parameter=n[:50], detail=_unknown(n, known)) for n in unknown]
        raise Refused.parameters([*told, *errors], "unknown-parameter")
    if errors:
        _refuse(kind, given, errors, address, variables)
    return kind(**values)


def from_call(kind: type[Q], given: Mapping[str, Any]) -> Q:
    """Return the query of a tool's arguments; ``null`` is as if left out.

    Raises:
        Refused: something is missing, malformed or unknown.
    """
    fields = _fields(kind)
    unknown = [name for name in given if name not in fields]
    values, errors = _read(kind, {n: v for n, v in given.items() if v is not None}, lax=False)
    told = [ParameterError(parameter=n[:50], detail=_unknown(n, [*fields])) for n in unknown]
    if told or errors:
        raise Refused.parameters([*told, *errors])
    return kind(**values)


def spelled(query: Query, **others: str | None) -> dict[str, str]:
    """Return the parameters of a query that are not as if left out, as an address has them.

    ``others`` take the place of the query's own; ``None`` leaves one out.
    """
    spelled_out = dict(others)
    fields = _fields(type(query))
    for name, field in fields.items():
        value = getattr(query, field.name)
        if value != field.default:
            text = str(value).lower() if isinstance(value, bool) else str(value)
            spelled_out.setdefault(name, text)
    given = ((name, spelled_out.get(name)) for name in fields)
    return {name: text for name, text in given if text is not None}


def trimmed(text: str) -> str:
    """Return a text without white space at its ends, a byte order mark included."""
    core = _CORE.search(text)
    return core[0] if core else ""


def is_date(text: str) -> bool:
    """Return whether a text is a date of the calendar, written ``YYYY-MM-DD``.

    >>> is_date("2026-02-28"), is_date("2026-02-30"), is_date("20260228")
    (True, False, False)
    """
    with suppress(ValueError):
        return _DATE.fullmatch(text) is not None and bool(dt.date.fromisoformat(text))
    return False


def _read(
    kind: type[Query], given: Mapping[str, Any], *, lax: bool
) -> tuple[dict[str, Any], list[ParameterError]]:
    """Read every field; return the values by their Python names, and what is wrong."""
    values: dict[str, Any] = {}
    errors = []
    for name, field in _fields(kind).items():
        value = given.get(name)
        if isinstance(value, str) and (field.extra.get("trimmed") or not lax):
            value = trimmed(value) or None
        if value is None:
            if field.default is NODEFAULT:
                detail = field.extra.get("missing", "is missing.")
                errors.append(ParameterError(parameter=name, detail=detail))
            continue
        try:
            values[field.name] = _value(field, value, lax=lax)
        except ValueError:
            errors.append(ParameterError(parameter=name, detail=_wrong(field, value)))
    return values, errors


def _value(field: _Field, value: Any, *, lax: bool) -> Any:
    """Return a value as its field has it; raise ``ValueError`` where it is not one.

    Not by ``msgspec.convert``: it prepares a type when it is first used, and two threads that do so
    at once crash the process (0.22).
    """
    bases, bounds = field.bases, field.bounds
    if lax and bool in bases and value in ("true", "false"):
        return value == "true"
    if lax and int in bases and _WHOLE.fullmatch(value):
        value = int(value)
    if field.choices:
        is_right = isinstance(value, str) and value in field.choices
    elif int in bases:
        is_right = type(value) is int and bounds["ge"] <= value <= bounds["le"]
    elif str in bases:
        is_right = isinstance(value, str) and _is_text(value, field)
    else:
        is_right = type(value) in bases
    if not is_right:
        raise ValueError(value)
    return value


def _is_text(text: str, field: _Field) -> bool:
    bounds = field.bounds
    pattern = bounds.get("pattern")
    fits = pattern is None or re.search(pattern.replace("$", r"\Z"), text) is not None
    length = bounds.get("min_length", 0) <= len(text) <= bounds.get("max_length", len(text))
    return fits and length and (not field.extra.get("day") or is_date(text))


def _wrong(field: _Field, value: Any) -> str:
    """Return what is wrong with a value, as a sentence that begins with its name."""
    bounds = field.bounds
    if "wrong" in field.extra:
        return str(field.extra["wrong"])
    if field.choices:
        return f"must be one of: {', '.join(field.choices)}."
    if bool in field.bases:
        return "must be true or false."
    if int in field.bases:
        return f"must be a whole number from {bounds['ge']} to {bounds['le']}."
    if not isinstance(value, str):
        return "must be a text."
    return f"has {len(value)} characters; {bounds['max_length']} are allowed."


def _refuse(
    kind: type[Query],
    given: Mapping[str, str],
    errors: list[ParameterError],
    address: str,
    variables: Mapping[str, str],
) -> None:
    """Raise what is wrong, or the address where it is right: slugs and formats in lower case."""
    names = {e.parameter for e in errors}
    lower = {
        n: v.lower() if n in names and n in ("slug", "topic", "format", "kind") else v
        for n, v in given.items()
    }
    if lower != given and not variables and not _read(kind, lower, lax=True)[1]:
        query = "&".join(f"{name}={quote(value, safe='')}" for name, value in lower.items())
        raise Moved(f"{address}?{query}")
    raise Refused.parameters(errors)


def _unknown(name: str, known: list[str]) -> str:
    close = extractOne(name.lower().replace("_", ""), [k.lower() for k in known], score_cutoff=60)
    meant = known[close[2]] if close else None
    if meant:
        return f"is not a parameter here; did you mean {meant}?"
    listed = f"the parameters are {', '.join(known)}" if known else "there are none"
    return f"is not a parameter here; {listed}."


def _parts(type_: Any) -> list[Any]:
    """Return a type's parts, annotations with their own, unions taken apart."""
    if hasattr(type_, "__metadata__"):
        return [type_, *type_.__metadata__, *_parts(type_.__origin__)]
    if get_origin(type_) in (Union, UnionType):
        return [type_, *(part for option in get_args(type_) for part in _parts(option))]
    return [type_]


@cache
def _fields(kind: type[Query]) -> Mapping[str, _Field]:
    """Return what a query has, by the names on the wire."""
    return {
        each.encode_name: _field(each.name, each.default, _parts(each.type))
        for each in msgspec.structs.fields(kind)
    }


def _field(name: str, default: Any, parts: list[Any]) -> _Field:
    """Return a field of a type's parts; what the outermost annotation says counts."""
    notes = [part for part in reversed(parts) if isinstance(part, Meta)]
    limits = ("ge", "le", "min_length", "max_length", "pattern")
    return _Field(
        name,
        default,
        frozenset(part for part in parts if isinstance(part, type)),
        next((get_args(part) for part in parts if get_origin(part) is Literal), ()),
        {n: value for note in notes for n in limits if (value := getattr(note, n)) is not None},
        {n: value for note in notes for n, value in (note.extra or {}).items()},
    )
