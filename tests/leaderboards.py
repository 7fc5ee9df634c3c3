"""Small leaderboards written as people read them: each model with its list, best first."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import builders
from msgspec.structs import replace

from store.rankings import aggregates, agreement, leaderboards, merging, sentences
from store.rankings.leaderboards import Leaderboard
from store.rankings.merging import CountedAnswer, Entry, ResolvedAnswer
from store.rankings.names import Names
from store.rankings.runs import AnswerLog
from store.records import Pick, Poll, Site

SITE = Site(version=1, name="Test")
AT = "2026-11-02T06:00:00Z"


def answer(
    model: str, products: str | Sequence[str | None], at: str = AT, **poll: Any
) -> ResolvedAnswer:
    """A model's answer; ``"X Y Z"`` names three products, ``None`` leaves a gap in the ranks.

    ``reasons`` maps products to reasons (else "<model> on <product>"); other fields are the poll's.
    """
    reasons: Mapping[str, str | None] = poll.pop("reasons", {})
    named = products.split() if isinstance(products, str) else products
    picks = tuple(
        Pick(rank, product, None, reasons.get(product, f"{model} on {product}"), ())
        for rank, product in enumerate(named, start=1)
        if product
    )
    said = builders.answered(model, [pick.product for pick in picks], at, **poll)
    said = replace(said, ranking=picks, reason=picks[0].reason, id=f"{model} {at}")
    resolved = {(pick.product, pick.domain): pick.product for pick in picks}
    return ResolvedAnswer.of(said, builders.category(), resolved)


def counted(
    lists: Mapping[str, str | Sequence[str | None]], stale: str = ""
) -> tuple[CountedAnswer, ...]:
    """The counted answers of models by name; ``stale`` names those that lag behind."""
    return tuple(
        CountedAnswer(answer(model, named), model in stale.split())
        for model, named in lists.items()
    )


def board(answers: Sequence[CountedAnswer], configured: int | None = None) -> Leaderboard:
    """The leaderboard for pens of answers that each assistant gave once."""
    log = AnswerLog.of([answer.answer for answer in answers])
    entries = merged(answers)
    return Leaderboard(
        slug="pens",
        category=builders.category("Best pens"),
        question=answers[0].answer.question,
        next_question=None,
        counted=tuple(answers),
        missing=tuple(f"M{number}" for number in range(len(answers), configured or 0)),
        entries=entries,
        agreement=agreement.measure(answers, entries),
        newest=AT,
        polls=len(answers),
        answers=len(answers),
        log=log,
        slugs={product: product.lower() for product in log.products},
        site=SITE,
    )


def board_of(
    polls: Sequence[Poll],
    models: Sequence[str] = "ABCD",
    site: Site = SITE,
) -> Leaderboard | None:
    """The leaderboard that polls of CRM software give, each spelling a product of its own."""
    aggregate = aggregates.gather("crm", builders.category(), polls, Names({}))
    slugs = {id_: id_.removeprefix("=") for id_ in aggregate.ids}
    return leaderboards.board(aggregate, models, site, slugs)


def merged(answers: Sequence[CountedAnswer]) -> tuple[Entry, ...]:
    """The merged ranking; each product's slug is its name in lower case."""
    products = {product for each in answers for product in each.answer.picks}
    return merging.merge(answers, {product: product.lower() for product in products})


def sentences_of(found: Leaderboard, name: Callable[[str], str] = str) -> str:
    """Every sentence of a leaderboard, as a reader meets them."""
    source = f"https://rankings.example/best/{found.slug} (Test, CC BY 4.0)"
    return "\n".join(
        [
            sentences.category_verdict(found, name, SITE, source),
            f"quote: {sentences.quote(found, name, SITE)}",
            f"certainty: {sentences.certainty_sentence(found, name)}",
            f"consensus: {sentences.consensus(found, name)}",
            f"disagreement: {sentences.disagreement(found, name)}",
        ]
    )
