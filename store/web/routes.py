"""The JSON API as one table: each row becomes a Flask rule and a path of the OpenAPI document."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, get_args

from msgspec import Struct

from store.records import SLUG_SCHEMA
from store.search import Kind
from store.web import history_resources as history_wire
from store.web import resources as wire
from store.web import search_resources as search_wire
from store.web.tables import MEDIA_TYPES

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_QUERY = 200
NOT_BLANK = r"[^\s\u001c-\u001f\u0085\ufeff]"
"""A character that is white space neither to Python nor to ECMAScript, whose ``\\s`` differ."""
MAX_LIMIT = 500
DEFAULT_LIMIT = 100
MAX_CHANGES = 1000
MAX_HITS = 20
DEFAULT_HITS = 10

TAGS = {
    "Search": "From a topic, a need or a brand to slugs.",
    "Rankings": "What the assistants recommend now.",
    "Over time": "What they answered before, and what changed.",
    "About": "The service's experiments, and how to use it.",
}
"""Groups of operations, with what each answers."""


class Parameter(Struct, frozen=True):
    """A parameter of a tool, or of a route, in its ``path`` or ``query``; with its JSON schema."""

    name: str
    description: str
    schema: Mapping[str, Any]
    required: bool = False
    place: str = "query"


class Route(Struct, frozen=True):
    """A resource: where it is, what it takes, what it answers and which errors are its own."""

    path: str
    tag: str
    operation_id: str
    summary: str
    description: str
    resource: Any
    parameters: tuple[Parameter, ...] = ()
    errors: tuple[int, ...] = ()
    redirects: bool = False
    media_type: str = "application/json"

    @property
    def rule(self) -> str:
        """The path as Flask writes it."""
        return re.sub(r"{(\w+)}", r"<\1>", self.path)


def slug(description: str, place: str = "query") -> Parameter:
    """A parameter that takes a slug."""
    return Parameter("slug", description, SLUG_SCHEMA, required=True, place=place)


def number(name: str, description: str, low: int, high: int, default: int) -> Parameter:
    """A parameter that takes a whole number from ``low`` to ``high``."""
    schema = {"type": "integer", "minimum": low, "maximum": high, "default": default}
    return Parameter(name, description, schema)


def _limit(counted: str, most: int, default: int) -> Parameter:
    said = f"How many {counted} at most: 1 to {most}, or {default} if left out."
    return number("limit", said, 1, most, default)


QUERY = Parameter(
    "q",
    "A category topic or a brand name, 1 to 200 characters after trimming.",
    {"type": "string", "minLength": 1, "maxLength": MAX_QUERY, "pattern": NOT_BLANK},
    required=True,
)
MODEL = Parameter(
    "model",
    "Only this model's polls; the names of retired models and former names are accepted too.",
    {"type": "string"},
)
TOPIC = Parameter(
    "topic",
    "Only the categories of this topic, by its slug in topics.json.",
    SLUG_SCHEMA,
)
DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
AS_OF = Parameter(
    "asOf",
    "The ranking as of this day's end (UTC), under the names of today. Of a closed day (`final`) "
    "it ranks what was there when it was closed; any other still gains answers.",
    {"type": "string", "format": "date", "pattern": f"^{DATE}$"},
)
POLL_ID = r"[0-9a-f]{16}"
BEFORE = Parameter(
    "before",
    "Only what is older than the poll, or the change, with this id. The Link header names the next "
    'page (rel="next") as long as there is one.',
    {"type": "string", "pattern": f"^{POLL_ID}$"},
)
FORMAT = Parameter(
    "format",
    "json; jsonl, the same objects one a line; or csv, a table with a header (UTF-8, LF, nothing "
    "for null; a poll becomes its products, domains and one reason).",
    {"type": "string", "enum": list(MEDIA_TYPES), "default": "json"},
)
LIMIT = _limit("records", MAX_LIMIT, DEFAULT_LIMIT)
CHANGES_LIMIT = _limit("changes", MAX_CHANGES, MAX_CHANGES)
HITS = _limit("hits of each kind", MAX_HITS, DEFAULT_HITS)
KIND = Parameter(
    "kind",
    "Only categories or only brands; the other array stays, empty.",
    {"type": "string", "enum": list(get_args(Kind))},
)

ROUTES: tuple[Route, ...] = (
    Route(
        "/api/v1/search",
        "Search",
        "search",
        "Resolve a topic or a brand",
        "Fuzzy match on categories and brands, best first. The way to resolve category and "
        "product slugs. Act on hits whose match is exact or likely; with any other, ask back. "
        "Where nothing is exact or likely, related holds the categories closest in meaning. Both "
        "arrays of hits are empty when nothing fits.",
        search_wire.SearchResults,
        (QUERY, HITS, KIND),
    ),
    Route(
        "/api/v1/categories.json",
        "Rankings",
        "listCategories",
        "All ranked categories",
        "Every category with at least one counted answer, by title; with `topic`, one topic's.",
        list[wire.CategoryItem],
        (TOPIC, FORMAT),
    ),
    Route(
        "/api/v1/topics.json",
        "Rankings",
        "listTopics",
        "Topics to browse by",
        "Topics with their parts and the ranked categories in each; a category may be in several.",
        list[wire.TopicItem],
    ),
    Route(
        "/api/v1/best/{slug}.json",
        "Rankings",
        "getBestInCategory",
        "The verdict of a category",
        "The merged ranking of a category, how far the models agree, and what each one said.",
        wire.CategoryVerdict,
        (slug("Category slug, as search returns it.", "path"), AS_OF),
        (404, 410),
        redirects=True,
    ),
    Route(
        "/api/v1/product/{slug}.json",
        "Rankings",
        "getProduct",
        "The record of a product",
        "A product and every leaderboard it appears on, with the models' reasons and with what "
        "they say it would take to rank higher.",
        wire.ProductRecord,
        (slug("Product slug, lower case and hyphenated, as search returns it.", "path"),),
        (404,),
        redirects=True,
    ),
    Route(
        "/api/v1/mentions.json",
        "Over time",
        "getMentions",
        "The most mentioned products",
        "All-time mentions across every successful poll, with a 7-day trend that compares only "
        "what was polled in both weeks.",
        wire.MentionList,
        (FORMAT,),
    ),
    Route(
        "/api/v1/changes.json",
        "Over time",
        "getChanges",
        "Flips of a model's #1",
        "The newest changes of one model's #1 in one category, newest first. A change is "
        "confirmed once the model's next answer agrees with it.",
        wire.ChangeList,
        (BEFORE, CHANGES_LIMIT, FORMAT),
        (404,),
    ),
    Route(
        "/api/v1/history",
        "Over time",
        "getHistory",
        "The poll history of a category",
        "Every poll, newest first, failed ones included. A record is the line of the history "
        "file as it stands. A category that is gone keeps its history.",
        list[history_wire.PollRecord],
        (slug("Category slug, as search returns it."), MODEL, LIMIT, BEFORE, FORMAT),
        (404,),
        redirects=True,
    ),
    Route(
        "/api/v1/labs.json",
        "About",
        "getLabs",
        "The service's own experiments",
        "Each with its method, its finding and the address of the full write-up.",
        wire.Labs,
    ),
    Route(
        "/api/v1/openapi.json",
        "About",
        "getOpenapi",
        "This description",
        "The OpenAPI 3.1 description of the endpoints.",
        dict[str, Any],
    ),
    Route(
        "/api/v1/README.md",
        "About",
        "getReadme",
        "Instructions for agents",
        "What the data is, how to find, quote and attribute it.",
        str,
        media_type="text/markdown",
    ),
)
