"""The wire shapes of a search, one struct for each JSON object."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from store.search import Label
from store.web.resources import Api, CertaintyLevel, Date, JsonObject, LevelSentence, Page, Verdict

Score = Annotated[float, Meta(ge=0, le=1, description="How well the hit matches, from 0 to 1.")]


Match = Annotated[
    Label,
    Meta(
        description="How sure the hit is: exact or likely may be acted on, related is worth asking "
        "back. Of first hits on 243 queries that nobody had searched for before, 53 of 53 called "
        "exact and 44 of 46 called likely were right; see the methodology page."
    ),
]


class TopEntry(JsonObject, frozen=True, kw_only=True):
    """One of the first five places of a category."""

    rank: int
    product: str
    slug: str
    score: float


class CategoryHit(JsonObject, frozen=True, kw_only=True):
    """A category that fits a search."""

    slug: str
    title: str
    question: str
    verdict: Verdict | None
    updated: Date
    page: Page
    api: Api
    score: Score
    level: CertaintyLevel
    level_sentence: LevelSentence
    match: Match
    top: list[TopEntry]


class RankedIn(JsonObject, frozen=True, kw_only=True):
    """A leaderboard on which a brand appears."""

    slug: str
    title: str
    rank: int
    of: int
    api: Api


class BrandHit(JsonObject, frozen=True, kw_only=True, rename=None):
    """A product that fits a search."""

    slug: str
    name: str
    domain: str | None
    verdict: Verdict | None
    best_rank: int
    page: Page
    api: Api
    score: Score
    match: Match
    ranked_in: Annotated[
        list[RankedIn],
        Meta(description="Its leaderboards, best rank first; MCP lists the first five."),
    ]
    ranked_in_count: Annotated[int, Meta(ge=0, description="Number of leaderboards it is on.")]


class RelatedCategory(JsonObject, frozen=True, kw_only=True):
    """A category close in meaning to a search that nothing surely fits."""

    slug: str
    title: str
    question: str
    page: Page
    api: Api


class SearchResults(JsonObject, frozen=True, kw_only=True):
    """What fits a search, best match first; every list may be empty."""

    query: str
    categories: list[CategoryHit]
    brands: list[BrandHit]
    related: Annotated[
        list[RelatedCategory],
        Meta(
            max_length=5,
            description="Where nothing is exact or likely: the categories closest in meaning that "
            "are not among the hits. What a person may have meant; ask back before using one. A "
            "sentence model may have ordered them and the hits; while it is busy words alone do.",
        ),
    ]
