"""The JSON API as one table: each row becomes a Flask rule and a path of the OpenAPI document."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from store.records import SLUG_SCHEMA
from store.web import resources as wire

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_QUERY = 200
NOT_BLANK = r"[^\s\u001c-\u001f\u0085\ufeff]"
"""A character that is white space neither to Python nor to ECMAScript, whose ``\\s`` differ."""
MAX_LIMIT = 500
DEFAULT_LIMIT = 100


class Parameter(Struct, frozen=True):
    """A parameter of a route; ``schema`` is JSON schema, ``place`` is ``path`` or ``query``."""

    name: str
    place: str
    description: str
    schema: Mapping[str, Any]
    required: bool = False


class Route(Struct, frozen=True):
    """A resource: where it is, what it takes, what it answers and which errors it knows."""

    path: str
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


def _slug(place: str, description: str) -> Parameter:
    return Parameter("slug", place, description, SLUG_SCHEMA, required=True)


QUERY = Parameter(
    "q",
    "query",
    "A category topic or a brand name, 1 to 200 characters after trimming.",
    {"type": "string", "minLength": 1, "maxLength": MAX_QUERY, "pattern": NOT_BLANK},
    required=True,
)
MODEL = Parameter(
    "model",
    "query",
    "Only this model's polls; the names of retired models and former names are accepted too.",
    {"type": "string"},
)
LIMIT = Parameter(
    "limit",
    "query",
    "How many records at most: 1 to 500, or 100 if left out.",
    {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT},
)

ROUTES: tuple[Route, ...] = (
    Route(
        "/api/v1/search",
        "search",
        "Resolve a topic or a brand",
        "Fuzzy match on categories and brands, best first. The way to resolve category and "
        "product slugs. Both arrays are empty when nothing fits.",
        wire.SearchResults,
        (QUERY,),
        (400,),
    ),
    Route(
        "/api/v1/categories.json",
        "listCategories",
        "All ranked categories",
        "Every category with at least one counted answer, by title.",
        list[wire.CategoryItem],
    ),
    Route(
        "/api/v1/best/{slug}.json",
        "getBestInCategory",
        "The verdict of a category",
        "The merged ranking of a category, how far the models agree, and what each one said.",
        wire.CategoryVerdict,
        (_slug("path", "Category slug, as search returns it."),),
        (400, 404, 410),
        redirects=True,
    ),
    Route(
        "/api/v1/product/{slug}.json",
        "getProduct",
        "The record of a product",
        "A product and every leaderboard it appears on, with the models' reasons and with what "
        "they say it would take to rank higher.",
        wire.ProductRecord,
        (_slug("path", "Product slug, lower case and hyphenated, as search returns it."),),
        (400, 404),
        redirects=True,
    ),
    Route(
        "/api/v1/mentions.json",
        "getMentions",
        "The most mentioned products",
        "All-time mentions across every successful poll, with a 7-day trend that compares only "
        "what was polled in both weeks.",
        wire.MentionList,
    ),
    Route(
        "/api/v1/changes.json",
        "getChanges",
        "Flips of a model's #1",
        "The newest changes of one model's #1 in one category, newest first. A change is "
        "confirmed once the model's next answer agrees with it.",
        wire.ChangeList,
    ),
    Route(
        "/api/v1/history",
        "getHistory",
        "The poll history of a category",
        "Every poll, newest first, failed ones included. A record is the line of the history "
        "file as it stands. A category that is gone keeps its history.",
        list[wire.PollRecord],
        (_slug("query", "Category slug, as search returns it."), MODEL, LIMIT),
        (400, 404),
        redirects=True,
    ),
    Route(
        "/api/v1/labs.json",
        "getLabs",
        "The service's own experiments",
        "Each with its method, its finding and the address of the full write-up.",
        wire.Labs,
    ),
    Route(
        "/api/v1/openapi.json",
        "getOpenapi",
        "This description",
        "The OpenAPI 3.1 description of the endpoints.",
        dict[str, Any],
    ),
    Route(
        "/api/v1/README.md",
        "getReadme",
        "Instructions for agents",
        "What the data is, how to find, quote and attribute it.",
        str,
        media_type="text/markdown",
    ),
)
