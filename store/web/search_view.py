"""What a search found, as resources."""

from store.rankings import sentences
from store.rankings.leaderboards import Leaderboard
from store.rankings.products import ProductProfile
from store.search import Hit, Hits
from store.web import search_shapes as wire
from store.web.view import View

TOP = 5
"""Entries of a category that a hit shows."""


def search_results(
    query: str, hits: Hits, view: View, most_places: int | None = None
) -> wire.SearchResults:
    """What a query found; a brand with so many of its leaderboards, or all."""
    snapshot = view.snapshot
    return wire.SearchResults(
        query=query,
        categories=[
            _category_hit(board, hit, view)
            for hit in hits.categories
            if (board := snapshot.leaderboards.get(hit.slug))
        ],
        brands=[
            _brand_hit(product, hit, view, most_places)
            for hit in hits.brands
            if (product := snapshot.product(hit.slug))
        ],
        related=[
            wire.RelatedCategory(
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


def _category_hit(board: Leaderboard, hit: Hit, view: View) -> wire.CategoryHit:
    products = view.snapshot.products
    return wire.CategoryHit(
        slug=board.slug,
        title=board.category.title,
        question=board.question,
        verdict=view.verdict(board),
        updated=board.updated,
        page=view.at.category_page(board.slug),
        api=view.at.category(board.slug),
        score=hit.score,
        match=hit.match,
        siblings=_siblings(board, view),
        level=board.certainty.level,
        level_sentence=sentences.certainty(board, view.name),
        top=[
            wire.TopEntry(
                rank=entry.rank,
                product=products[entry.product].name,
                slug=products[entry.product].slug,
                score=entry.score,
                tied=entry.tied,
            )
            for entry in board.entries[:TOP]
        ],
    )


def _siblings(board: Leaderboard, view: View) -> wire.Siblings | None:
    """Return what else is in the first part of a topic that a category is in; ``None`` if alone."""
    for topic, part in view.snapshot.summary.topics_of.get(board.slug, ()):
        if others := len(part.leaderboards) - 1:
            page = f"{view.at.topic_page(topic.slug)}#{part.slug}"
            api = view.at.topic(topic.slug)
            return wire.Siblings(count=others, title=part.title, page=page, api=api)
    return None


def _brand_hit(
    product: ProductProfile, hit: Hit, view: View, most_places: int | None
) -> wire.BrandHit:
    places = view.standings(product)
    return wire.BrandHit(
        slug=product.slug,
        name=product.name,
        domain=product.domain,
        verdict=view.product_verdict(product, places),
        best_rank=places[0][1].rank if places else 0,
        page=view.at.product_page(product.slug),
        api=view.at.product(product.slug),
        score=hit.score,
        match=hit.match,
        ranked_in_count=len(places),
        ranked_in=[
            wire.RankedIn(
                slug=board.slug,
                title=board.category.title,
                rank=entry.rank,
                of=len(board.entries),
                api=view.at.category(board.slug),
            )
            for board, entry in places[:most_places]
        ],
    )
