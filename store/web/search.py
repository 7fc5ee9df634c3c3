"""Search: the shapes of hits, and the functions that fill them."""

from typing import Annotated

from store.rankings import sentences
from store.rankings.leaderboards import Leaderboard
from store.rankings.products import ProductProfile
from store.search import MOST_RELATED, Hit, Hits, Label
from store.web.endpoints import Result, endpoint
from store.web.queries import SearchQuery
from store.web.shapes import (
    POINTS_SUMMED,
    Api,
    CertaintyLevel,
    Date,
    JsonObject,
    LevelSentence,
    Page,
    VerdictSentence,
    doc,
)
from store.web.view import View

TOP = 5
"""Entries of a category that a hit shows."""

Score = Annotated[float, doc("How well the hit matches, from 0 to 1.", ge=0, le=1)]
Match = Annotated[
    Label,
    doc("How sure the hit is: exact or likely may be acted on, related is worth asking back."),
]


class TopEntry(JsonObject, frozen=True, kw_only=True):
    """One of the first five places of a category."""

    rank: int
    place: Annotated[int, doc("Its rank, or the best of those it is tied with.", ge=1)]
    product: str
    slug: str
    score: Annotated[int, doc(POINTS_SUMMED)]
    tied: Annotated[bool, doc("Equal to a neighbour; only the slug orders them.")]


class Siblings(JsonObject, frozen=True, kw_only=True):
    """The other categories of the part of a topic that a category is in, such as laptops."""

    count: int
    title: str
    topic: Annotated[str, doc("Slug of the topic.")]
    part: Annotated[str, doc("Slug of the part, unique within the topic.")]
    page: Page
    api: Api


class CategoryHit(JsonObject, frozen=True, kw_only=True):
    """A category that fits a search."""

    slug: str
    title: str
    question: str
    verdict: VerdictSentence | None
    updated: Date
    page: Page
    api: Api
    score: Score
    level: CertaintyLevel
    level_sentence: LevelSentence
    match: Match
    siblings: Annotated[
        Siblings | None, doc("How many more of its kind there are, and where they are listed.")
    ]
    top: list[TopEntry]


class RankedIn(JsonObject, frozen=True, kw_only=True):
    """A leaderboard on which a brand appears."""

    slug: str
    title: str
    rank: int
    place: Annotated[int, doc("Its rank, or the best of those it is tied with.", ge=1)]
    tied: bool
    of: int
    api: Api


class BrandHit(JsonObject, frozen=True, kw_only=True, rename=None):
    """A product that fits a search."""

    slug: str
    name: str
    domain: str | None
    verdict: VerdictSentence | None
    best_rank: int
    page: Page
    api: Api
    score: Score
    match: Match
    ranked_in: Annotated[
        list[RankedIn], doc("Its leaderboards, best place first; MCP lists the first alone.")
    ]
    ranked_in_count: Annotated[int, doc("Number of leaderboards it is on.", ge=0)]


class RelatedCategory(JsonObject, frozen=True, kw_only=True):
    """A category close in meaning to a search that nothing surely fits."""

    slug: str
    title: str
    question: str
    page: Page
    api: Api


class SearchResults(JsonObject, frozen=True, kw_only=True):
    """The hits of a search, best match first; every list may be empty."""

    query: str
    categories: list[CategoryHit]
    brands: list[BrandHit]
    related: Annotated[
        list[RelatedCategory],
        doc(
            "Where nothing is exact or likely: the categories closest in meaning that "
            "are not among the hits. What a person may have meant; ask back before using one. A "
            "sentence model may have ordered them and the hits; while it is busy words alone do.",
            max_length=MOST_RELATED,
        ),
    ]


def search_basis(view: View, **_: str) -> tuple[int, str]:
    """Return the basis of a search: a sentence model may come or go."""
    return view.snapshot.step, view.meaning.edition if view.meaning else ""


@endpoint(
    "/api/v1/search",
    "Search",
    page=lambda view, query: view.at.page("search", q=query.q),
    basis=search_basis,
)
def search(view: View, query: SearchQuery) -> Result[SearchResults]:
    """Resolve a topic or a brand.

    Fuzzy match on categories and brands, best first. The way to resolve category and
    product slugs. Act on hits whose match is exact or likely; with any other, ask back.
    Where nothing is exact or likely, related holds the categories closest in meaning. Both
    arrays of hits are empty when nothing fits.
    """
    hits = view.search(query.q, query.limit)
    return Result(search_results(query.q, hits, view), may_be_kept=hits.is_final)


def search_results(
    query: str, hits: Hits, view: View, most_places: int | None = None
) -> SearchResults:
    """Return the hits of a query, each product with ``most_places`` of its rankings, or all."""
    snapshot = view.snapshot
    return SearchResults(
        query=query,
        categories=[
            _category_hit(board, hit, view)
            for hit in hits.categories
            # The index may be a moment older than the rankings.
            if (board := snapshot.leaderboards.get(hit.slug))
        ],
        brands=[
            _brand_hit(product, hit, view, most_places)
            for hit in hits.brands
            if (product := snapshot.product(hit.slug))
        ],
        related=[
            RelatedCategory(
                slug=board.slug,
                title=board.category.title,
                question=board.question,
                page=view.at.category_page(board.slug),
                api=view.at.category(board.slug),
            )
            for slug in hits.related
            if (board := snapshot.leaderboards.get(slug))
        ],
    )


def _category_hit(board: Leaderboard, hit: Hit, view: View) -> CategoryHit:
    products = view.snapshot.products
    return CategoryHit(
        slug=board.slug,
        title=board.category.title,
        question=board.question,
        verdict=view.verdict_sentence(board),
        updated=board.updated,
        page=view.at.category_page(board.slug),
        api=view.at.category(board.slug),
        score=hit.score,
        match=hit.match,
        siblings=_siblings(board, view),
        level=board.certainty.level,
        level_sentence=sentences.certainty_sentence(board, view.name),
        top=[
            TopEntry(
                rank=entry.rank,
                place=entry.place,
                product=products[entry.product].name,
                slug=products[entry.product].slug,
                score=entry.score,
                tied=entry.tied,
            )
            for entry in board.entries[:TOP]
        ],
    )


def _siblings(board: Leaderboard, view: View) -> Siblings | None:
    """Return what else is in the first part of a topic that a category is in; ``None`` if alone."""
    # The first of its parts stands for all: one address is enough to go on.
    for topic, part in view.snapshot.summary.topics_of.get(board.slug, ()):
        if others := len(part.leaderboards) - 1:  # a part may hold one category
            page = f"{view.at.topic_page(topic.slug)}#{part.slug}"
            api = view.at.topic(topic.slug)
            return Siblings(
                count=others,
                title=part.title,
                topic=topic.slug,
                part=part.slug,
                page=page,
                api=api,
            )
    return None


def _brand_hit(product: ProductProfile, hit: Hit, view: View, most_places: int | None) -> BrandHit:
    places = view.standings(product)
    return BrandHit(
        slug=product.slug,
        name=product.name,
        domain=product.domain,
        verdict=view.product_verdict(product, places),
        best_rank=min((entry.rank for _, entry in places), default=0),
        page=view.at.product_page(product.slug),
        api=view.at.product(product.slug),
        score=hit.score,
        match=hit.match,
        ranked_in_count=len(places),
        ranked_in=[
            RankedIn(
                slug=board.slug,
                title=board.category.title,
                rank=entry.rank,
                place=entry.place,
                tied=entry.tied,
                of=len(board.entries),
                api=view.at.category(board.slug),
            )
            for board, entry in places[:most_places]
        ],
    )
