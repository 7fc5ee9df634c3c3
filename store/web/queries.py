"""Queries: one struct declares what an address or a tool takes; check and schemas follow from it.

Reading is exact and never guesses; all that is wrong is told at once. ``extra`` of a parameter's
annotation has what its schema cannot say: its own sentences where it is ``missing`` or ``wrong``,
whether it is ``trimmed``, and whether it is a ``day``.
"""

import datetime as dt
import re
from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Annotated, Any, Literal, TypeVar

from msgspec import Meta, Struct, inspect
from rapidfuzz.process import extractOne
from werkzeug.datastructures import MultiDict

from store.rankings.certainty import Level
from store.text import MAX_SLUG, SLUG_PATTERN
from store.web.errors import Moved, ParameterError, Refused
from store.web.shapes import doc

MAX_QUERY = 200
"""Most characters of a query or a name.

Search cuts any text at ``words.LONGEST_TEXT`` characters and ``query.MOST_WORDS`` words.
"""
DEFAULT_HITS = 10
"""Hits of each kind where no limit is given."""
MOST_UNKNOWN = 10
"""Unknown parameters that one refusal names."""
NOT_BLANK = r"[^\s\u001c-\u001f\u0085\ufeff]"
"""A character that is white space neither to Python nor to ECMAScript, whose ``\\s`` differ."""
_CORE = re.compile(f"{NOT_BLANK}(?s:.*{NOT_BLANK})?")
_WHOLE = re.compile(r"0|[1-9][0-9]{0,6}")  # no sign, no leading zero, no endless digits

Slug = Annotated[
    str,
    Meta(
        pattern=SLUG_PATTERN,
        min_length=1,
        max_length=MAX_SLUG,
        extra={
            "wrong": "must be lower-case letters and digits, joined by single hyphens, at most "
            "100 characters; resolve one through /api/v1/search?q=.",
            "missing": "is missing; resolve one through /api/v1/search?q=.",
        },
    ),
]
Text = Annotated[
    str, Meta(min_length=1, max_length=MAX_QUERY, pattern=NOT_BLANK, extra={"trimmed": True})
]
FreeText = Annotated[str, Meta(max_length=MAX_QUERY, extra={"trimmed": True})]
Day = Annotated[
    str,
    Meta(
        pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
        extra_json_schema={"format": "date"},
        extra={"wrong": "must be a date in UTC, written YYYY-MM-DD.", "day": True},
    ),
]
PollId = Annotated[
    str,
    Meta(
        pattern="^[0-9a-f]{16}$",
        extra={"wrong": "must be the id of a poll: 16 hexadecimal digits in lower case."},
    ),
]
# The formats of the lists of categories, changes and mentions, and of the history.
Format = Annotated[
    Literal["json", "jsonl", "csv"],
    doc(
        "json; jsonl, the same objects one a line; or csv, a table with a header "
        "(UTF-8, LF, nothing for null; a poll becomes its products, domains and one reason)."
    ),
]
InTopic = Annotated[
    str | None, doc("Only the categories of this topic, by its slug in topics.json.")
]
LooseSlug = Annotated[
    FreeText,
    doc(
        "Category slug, as search_best returns it.",
        min_length=1,
        extra={"missing": "is missing; call search_best with a topic to find it."},
    ),
]
Offset = Annotated[int, doc("How many to skip.", ge=0, le=1_000_000)]
Q = TypeVar("Q", bound="Query")


class Query(Struct, frozen=True, kw_only=True, rename="camel"):
    """The base of all queries; by itself, no parameters."""


class CategoryQuery(Query, frozen=True, kw_only=True):
    """A category."""

    slug: Annotated[Slug, doc("Category slug, as search returns it.")]


class ProductQuery(Query, frozen=True, kw_only=True):
    """A product."""

    slug: Annotated[Slug, doc("Product slug, lower case and hyphenated, as search returns it.")]


class SlugQuery(Query, frozen=True, kw_only=True):
    """Anything else that has a slug."""

    slug: Slug


class RankingQuery(CategoryQuery, frozen=True, kw_only=True):
    """A category, as of a day if given."""

    as_of: Annotated[
        Day | None,
        doc(
            "The ranking as of this day's end (UTC), under the names of today. Of a "
            "closed day (`final`) it ranks what was there when it was closed; any other still "
            "gains answers."
        ),
    ] = None


class MentionsQuery(Query, frozen=True, kw_only=True):
    """The list of the most mentioned products."""

    format: Format = "json"


class CategoryFilter(Query, frozen=True, kw_only=True):
    """Ranked categories, all or some."""

    topic: InTopic = None
    level: Annotated[Level | None, doc("Only those whose #1 is as sure as this.")] = None
    tied: Annotated[bool | None, doc("Only those with a tie at #1, or without.")] = None


class CategoryListQuery(CategoryFilter, frozen=True, kw_only=True):
    """Ranked categories as a list."""

    format: Format = "json"


class HistoryQuery(CategoryQuery, frozen=True, kw_only=True):
    """Polls of a category."""

    model: Annotated[
        str | None,
        doc(
            "Only this model's polls; the names of retired models and former names "
            "are accepted too."
        ),
    ] = None
    limit: Annotated[int, doc("Records at most.", ge=1, le=500)] = 100
    before: Annotated[
        PollId | None,
        doc(
            "Only what is older than the poll with this id. The Link header names the "
            'next page (rel="next") as long as there is one.'
        ),
    ] = None
    format: Format = "json"


class ChangesQuery(Query, frozen=True, kw_only=True):
    """Changes of the models' #1 picks, narrowed."""

    since: Annotated[Day | None, doc("Only changes of this day (UTC) and later ones.")] = None
    topic: InTopic = None
    slug: Annotated[Slug | None, doc("Only in this category.")] = None
    confirmed: Annotated[bool | None, doc("Only changes that are, or are not, confirmed.")] = None
    format: Format = "json"


class SearchQuery(Query, frozen=True, kw_only=True):
    """A search."""

    q: Annotated[
        Text,
        doc(
            f"A category topic or a brand name, 1 to {MAX_QUERY} characters after trimming.",
            extra={"missing": "is missing or blank; give a topic or a brand name."},
        ),
    ]
    limit: Annotated[int, doc("Hits of each kind at most.", ge=1, le=50)] = DEFAULT_HITS


class SearchCall(SearchQuery, frozen=True, kw_only=True):
    """A search by an MCP client."""

    limit: Annotated[int, doc("Hits of each kind at most.", ge=1, le=20)] = 5


class CategoryCall(RankingQuery, frozen=True, kw_only=True):
    """A category, by an MCP client; what is not a slug is answered with the closest slugs."""

    slug: LooseSlug
    detail: Annotated[
        Literal["summary", "full"],
        doc("full adds perModel and missedByModel, about twice as long."),
    ] = "summary"


class ProductCall(Query, frozen=True, kw_only=True):
    """A product, by an MCP client."""

    slug: Annotated[
        FreeText,
        doc(
            "Product slug, as search_best returns it.",
            extra={"missing": "is missing; call search_best with a name to find it."},
        ),
    ]
    limit: Annotated[int, doc("Rankings at most.", ge=1, le=50)] = 10
    offset: Offset = 0


class HistoryCall(Query, frozen=True, kw_only=True):
    """Polls of a category, by an MCP client."""

    slug: LooseSlug
    model: Annotated[str | None, doc("Only this assistant's polls.")] = None
    # Far fewer than by JSON: a model reads the whole answer, and a record is about 2 KB.
    limit: Annotated[int, doc("Polls at most.", ge=1, le=50)] = 5
    before: Annotated[PollId | None, doc("Only older polls: pass nextBefore to go on.")] = None


class ListCall(CategoryFilter, frozen=True, kw_only=True):
    """One page of the list of categories, by an MCP client."""

    part: Annotated[str | None, doc("Only this part of the topic, by its slug.")] = None
    q: Annotated[FreeText | None, doc("Words that the title or slug must contain.")] = None
    limit: Annotated[int, doc("Categories at most.", ge=1, le=200)] = 50
    offset: Offset = 0


class _Field(Struct, frozen=True):
    """A field of a query: its Python name, its type without ``None``, and its extras."""

    name: str
    required: bool
    default: Any
    type: inspect.Type
    extra: Mapping[str, Any]


@cache
def _fields(kind: type[Query]) -> Mapping[str, _Field]:
    """Return the fields of a query, by their names on the wire."""
    fields = {}
    for field in inspect.type_info(kind).fields:  # type: ignore[attr-defined]
        type_, extra = field.type, dict[str, Any]()
        while isinstance(type_, inspect.Metadata | inspect.UnionType):
            if isinstance(type_, inspect.Metadata):
                extra = {**(type_.extra or {}), **extra}
            type_ = type_.type if isinstance(type_, inspect.Metadata) else type_.types[0]
        fields[field.encode_name] = _Field(field.name, field.required, field.default, type_, extra)
    return fields


def from_address(
    kind: type[Q],
    args: MultiDict[str, str],
    variables: Mapping[str, str],
    *,
    refuses_unknown: bool,
) -> Q:
    """Return the query of an address: its variables and parameters.

    With ``refuses_unknown`` a parameter that the query does not have is refused; without, it is
    ignored, since others add their own to links.

    Raises:
        Refused: something is missing, malformed, unknown or given twice.
        Moved: it would be right in lower case.
    """
    fields = _fields(kind)
    parameters = [name for name in fields if name not in variables]
    # A parameter cannot stand in for a part of the path.
    texts = {name: args[name] for name in fields if name in args} | dict(variables)
    twice = {name for name in parameters if len(args.getlist(name)) > 1}
    values, errors = _read(kind, texts, from_text=True, twice=twice)
    if unknown := [name for name in args if name not in parameters] if refuses_unknown else []:
        raise Refused.parameters([*_unknown(unknown, parameters), *errors], "unknown-parameter")
    if errors:
        lower = _in_lower_case(texts, errors)
        # Paths are led to lower case before they come here.
        may_move = lower != texts and not variables
        if may_move and not _read(kind, lower, from_text=True, twice=twice)[1]:
            raise Moved(**lower)
        raise Refused.parameters(errors)
    return kind(**values)


def from_call(kind: type[Q], arguments: Mapping[str, Any]) -> Q:
    """Return the query of a tool's arguments; ``null`` is as if left out.

    Raises:
        Refused: something is missing, malformed or unknown.
    """
    fields = _fields(kind)
    values, errors = _read(kind, arguments, from_text=False)
    unknown = _unknown([name for name in arguments if name not in fields], [*fields])
    if unknown or errors:
        raise Refused.parameters([*unknown, *errors])
    return kind(**values)


def parameters_of(query: Query, **others: str | None) -> dict[str, str]:
    """Return the parameters of a query that differ from their defaults, as an address has them.

    ``others`` take the place of the query's own; ``None`` leaves one out.
    """
    texts = {}
    for name, field in _fields(type(query)).items():
        value = getattr(query, field.name)
        text = str(value).lower() if isinstance(value, bool) else str(value)
        own = None if value == field.default else text  # one address for one answer
        if (given := others.get(name, own)) is not None:
            texts[name] = given
    return texts


def trimmed(text: str) -> str:
    """Return a text without white space at its ends, a byte order mark included."""
    core = _CORE.search(text)
    return core[0] if core else ""


def _read(
    kind: type[Query], given: Mapping[str, Any], *, from_text: bool, twice: Container[str] = ()
) -> tuple[dict[str, Any], list[ParameterError]]:
    """Return the values of a query by their Python names, and what is wrong with others.

    ``from_text`` takes numbers and truth values from texts, as an address has them.
    """
    values: dict[str, Any] = {}
    errors = []
    for name, field in _fields(kind).items():
        value = given.get(name)
        if isinstance(value, str) and (field.extra.get("trimmed") or not from_text):
            value = trimmed(value) or None
        if name in twice:
            wrong: str | None = "is given more than once."
        elif value is None:
            wrong = field.extra.get("missing", "is missing.") if field.required else None
        else:
            value, wrong = _checked(field, value, from_text=from_text)
        if wrong:
            errors.append(ParameterError(parameter=name, detail=wrong))
        elif value is not None:
            values[field.name] = value
    return values, errors


def _checked(field: _Field, value: Any, *, from_text: bool) -> tuple[Any, str | None]:
    """Return a value as its field has it, and what is wrong with it, if anything."""
    # Not by msgspec.convert: it prepares a type when it is first used, and two threads that do so
    # at once crash the process (0.22).
    type_, is_right = field.type, False
    match type_:
        case inspect.BoolType():
            value = {"true": True, "false": False}.get(value) if from_text else value
            is_right, wrong = isinstance(value, bool), "must be true or false."
        case inspect.IntType(ge=least, le=most):
            if _WHOLE.fullmatch(value) if from_text else isinstance(value, float):
                value = int(value) if float(value).is_integer() else value  # 5.0 is whole in JSON
            # By isinstance a bool would be one, too.
            is_right = type(value) is int and (least or 0) <= value <= (most or value)
            wrong = f"must be a whole number from {least} to {most}."
        case inspect.LiteralType(values=choices):
            is_right, wrong = value in choices, f"must be one of: {', '.join(map(str, choices))}."
        case inspect.StrType() if isinstance(value, str):
            # Python's ``$`` would let a line end pass.
            fits = re.search((type_.pattern or "").replace("$", r"\Z"), value) is not None
            length = (type_.min_length or 0) <= len(value) <= (type_.max_length or len(value))
            is_right = fits and length and (not field.extra.get("day") or is_day(value))
            wrong = f"has {len(value)} characters; {type_.max_length} are allowed."
        case _:
            wrong = "must be a text."
    return value, None if is_right else field.extra.get("wrong", wrong)


def is_day(text: str) -> bool:
    """Return whether a date ``YYYY-MM-DD`` is one of the calendar."""
    with suppress(ValueError):
        return bool(dt.date.fromisoformat(text))
    return False


def _in_lower_case(texts: Mapping[str, str], errors: list[ParameterError]) -> dict[str, str]:
    """Return the parameters with those that are wrong and a slug or a format in lower case."""
    names = {error.parameter for error in errors} & {"slug", "topic", "format"}
    return {name: text.lower() if name in names else text for name, text in texts.items()}


def _unknown(names: Sequence[str], parameters: Sequence[str]) -> list[ParameterError]:
    """Return the errors of parameters that are not there, each with the one that may be meant."""
    choices = [parameter.lower() for parameter in parameters]
    errors = []
    for name in names[:MOST_UNKNOWN]:
        if close := extractOne(name.lower().replace("_", ""), choices, score_cutoff=60):
            hint = f"did you mean {parameters[close[2]]}?"
        else:
            listed = f"the parameters are {', '.join(parameters)}"
            hint = f"{listed if parameters else 'there are none'}."
        detail = f"is not a parameter here; {hint}"
        # Strangers choose the name: not all of it is shown.
        errors.append(ParameterError(parameter=name[:50], detail=detail))
    return errors
