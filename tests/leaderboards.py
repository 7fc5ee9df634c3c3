"""Small leaderboards written as people read them: each model with its list, best first."""

import datetime as dt
from collections.abc import Sequence
from typing import Any

import builders

from store.rankings import aggregates, leaderboards, sentences
from store.rankings.leaderboards import Leaderboard
from store.rankings.merging import ResolvedAnswer
from store.rankings.names import Names
from store.records import Category, Poll, Site

SITE = Site(version=1, name="Test")
AT = "2026-11-02T06:00:00Z"


def answer(model: str, products: str | Sequence[str], at: str = AT, **poll: Any) -> ResolvedAnswer:
    """A model's answer; ``"X Y Z"`` names three products. Other fields are the poll's."""
    names = products.split() if isinstance(products, str) else products
    record = builders.answered(model, names, at, **poll)
    return ResolvedAnswer.of(record, builders.category(), {(name, None): name for name in names})


def answers(text: str, start: int = 1, /, **fields: str) -> list[Poll]:
    """What each assistant answered, a day apart, oldest first; "." is no answer that day."""
    polls = []
    for model, part in zip("ABCD", text.split("·"), strict=False):
        for day, names in enumerate(part.split(), start):
            if names != ".":
                at = f"{dt.date(2026, 8, 31) + dt.timedelta(day)}T06:00:00Z"
                polls.append(builders.answered(model, list(names), at, **fields))
    return sorted(polls, key=lambda poll: poll.polled_at)


def board_of(
    polls: Sequence[Poll],
    models: Sequence[str] = "ABCD",
    site: Site = SITE,
    category: Category | None = None,
    slug: str = "crm",
) -> Leaderboard | None:
    """The leaderboard that polls give, of CRM software, each spelling a product of its own."""
    aggregate = aggregates.gather(slug, category or builders.category(), polls, Names({}))
    slugs = {id_: id_.removeprefix("=") for id_ in aggregate.ids}
    return leaderboards.board(aggregate, models, site, slugs)


def name_of(product: str) -> str:
    """What a product of such a board is called: names are capitals."""
    return product.removeprefix("=").upper()


def sentences_of(board: Leaderboard) -> str:
    """Every sentence of a leaderboard, as a reader meets them."""
    source = f"https://rankings.example/best/{board.slug} (Test, CC BY 4.0)"
    return "\n".join(
        [
            sentences.category_verdict(board, name_of, SITE, source),
            f"quote: {sentences.quote(board, name_of, SITE)}",
            f"certainty: {sentences.certainty_sentence(board, name_of)}",
            f"consensus: {sentences.consensus(board, name_of)}",
            f"disagreement: {sentences.disagreement(board, name_of)}",
        ]
    )
