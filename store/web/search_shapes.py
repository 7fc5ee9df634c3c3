"""Wire shapes of a search, one struct for each JSON object."""

from typing import Annotated

from msgspec import Meta

from store.search import Label as MatchLabel
from store.web.shapes import Api, CertaintyLevel, Date, JsonObject, LevelSentence, Page, Verdict

Score = Annotated[float, Meta(ge=0, le=1, description="How well the hit matches, from 0 to 1.")]


Match = Annotated[
    MatchLabel,
    Meta(
        description="How sure the hit is: exact or likely may be acted on, related is worth asking "
        "back. How often each is right is on the methodology page."
    ),
]


class TopEntry(JsonObject, frozen=True, kw_only=True):
    """One of the first five places of a category."""

    rank: int
    product: str
    slug: str
    score: Annotated[int, Meta(description="Points: the sum over models of 6 - rank.")]
    tied: Annotated[bool, Meta(description="Equal to a neighbour; only the slug orders them.")]


class Siblings(JsonObject, frozen=True, kw_only=True):
    """The other categories of the part of a topic that a category is in, such as laptops."""

    count: int
    title: str
    page: Page
    api: Api


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
    siblings: Annotated[
        Siblings | None,
        Meta(description="How many more of its kind there are, and where they are listed."),
    ]
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
