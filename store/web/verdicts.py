"""The verdict of a category and the record of a product, made from rankings."""

from store.history import HistoryError
from store.rankings import certainty, sentences
from store.rankings.leaderboards import Leaderboard
from store.rankings.merging import CountedAnswer, Entry
from store.rankings.names import ProductId
from store.rankings.products import ProductProfile
from store.web import as_of, lookup
from store.web import shapes as wire
from store.web.endpoints import endpoint
from store.web.queries import ProductQuery, RankingQuery
from store.web.responses import category_basis
from store.web.view import View


@endpoint(
    "/api/v1/best/<slug>.json",
    "Rankings",
    page=lambda view, query: view.at.category_page(query.slug, query.as_of),
    problems=("unknown-category", "no-answer-yet", "no-such-day", "gone"),
    basis=category_basis,
)
def get_best_in_category(view: View, query: RankingQuery) -> wire.CategoryVerdict:
    """The verdict of a category.

    The merged ranking of a category, how far the models agree, and what each one said.
    """
    board = lookup.board(view, query.slug)
    return verdict_shape(view, board_of_day(view, board, query.as_of), query.as_of)


@endpoint(
    "/api/v1/product/<slug>.json",
    "Rankings",
    page=lambda view, query: view.at.product_page(query.slug),
    problems=("unknown-product",),
)
def get_product(view: View, query: ProductQuery) -> wire.ProductRecord:
    """The record of a product.

    A product and every leaderboard it appears on, with the models' reasons and with what
    they say it would take to rank higher.
    """
    return product_record(view, lookup.product(view, query.slug))


def board_of_day(view: View, board: Leaderboard, day: str | None) -> Leaderboard:
    """Return a ranking as of a day, or as it stands.

    Raises:
        Refused: it cannot be shown as of that day.
        HistoryError: its history cannot be read just now.
    """
    if day is None:
        return board
    lookup.check_day(view, board, day)
    then = as_of.leaderboard(view.snapshot, board.slug, day, view.lines)
    if then is None:
        raise HistoryError(f"its answers up to {day} were added after that day was closed")
    return then


def verdict_shape(view: View, board: Leaderboard, day: str | None = None) -> wire.CategoryVerdict:
    """Return one category's merged ranking, as of a day if given, and what each model said."""
    return wire.CategoryVerdict(
        slug=board.slug,
        title=board.category.title,
        question=board.question,
        next_question=board.next_question,
        verdict=view.verdict_sentence(board),
        quote=sentences.quote(board, view.name, view.site),
        url=view.at.category_page(board.slug),
        updated=board.updated,
        as_of=day,
        final=as_of.is_final(view.snapshot, day) if day else None,
        asked=sentences.asked(board),
        models=board.models,
        missing=board.missing,
        consensus=sentences.consensus(board, view.name),
        disagreement=sentences.disagreement(board, view.name),
        agreement=_agreement(view, board),
        certainty=_certainty(view, board),
        rules=wire.Rules(agree=sum(board.rules.values()), of=len(board.rules)),
        response=wire.ResponseRate(answered=board.answers, of=board.polls),
        combined=_combined(view, board),
        per_model={answer.model: _picks(view, answer) for answer in board.counted},
        missed_by_model={
            answer.model: _missed(view, answer)
            for answer in board.counted
            if answer.answer.poll.missed  # documented: only models that named one are keys
        },
        answers={
            answer.model: wire.AnswerStamp(
                polled_at=answer.answer.poll.polled_at,
                poll=answer.answer.poll.id,
                stale=answer.stale,
            )
            for answer in board.counted
        },
    )


def product_record(view: View, product: ProductProfile) -> wire.ProductRecord:
    """Return a product and every leaderboard it appears on."""
    standings = view.standings(product)
    return wire.ProductRecord(
        slug=product.slug,
        name=product.name,
        domain=product.domain,
        verdict=view.product_verdict(product, standings),
        best_rank=min((entry.rank for _, entry in standings), default=0),
        categories=len(standings),
        entries=[_product_entry(view, board, entry) for board, entry in standings],
        page=view.at.product_page(product.slug),
        check=view.at.evidence_page(product.slug),
    )


def _agreement(view: View, board: Leaderboard) -> wire.VerdictAgreement | None:
    agreement = board.agreement
    if agreement is None:
        return None
    product = view.snapshot.products[agreement.product]
    # Without contenders there is no measurement to set the noise beside.
    noise = board.repeatability if board.certainty.contenders else None
    relative = noise.relative_overlap if noise else None
    return wire.VerdictAgreement(
        top1=wire.TopPick(
            product=product.name,
            slug=product.slug,
            votes=agreement.votes,
            of=agreement.of,
            label=agreement.label,
        ),
        overlap=agreement.overlap,
        self_overlap=round(noise.own_overlap, certainty.DECIMALS) if noise else None,
        relative_overlap=None if relative is None else round(relative, certainty.DECIMALS),
    )


def _certainty(view: View, board: Leaderboard) -> wire.VerdictCertainty:
    certain = board.certainty

    def reference(id_: ProductId) -> wire.ProductReference:
        product = view.snapshot.products[id_]
        return wire.ProductReference(product=product.name, slug=product.slug)

    return wire.VerdictCertainty(
        level=certain.level,
        sentence=sentences.certainty_sentence(board, view.name),
        answers=certain.answers,
        runs=dict(certain.runs),
        from_=certain.since,
        to=certain.until,
        leader=reference(certain.leader) if certain.leader else None,
        contenders=[reference(id_) for id_ in certain.contenders],
    )


def _combined(view: View, board: Leaderboard) -> list[wire.RankedEntry]:
    """Return the merged ranking with the figures of each place over the assistants' runs."""
    runs = list(board.runs().values())
    windows = [[answer.places for answer in run.window] for run in runs]
    comparison = certainty.Comparison(runs, board.slugs)  # once for all places
    is_measured = comparison.is_measured
    entries = []
    for entry in board.entries:
        id_, product = entry.product, view.snapshot.products[entry.product]
        reason = entry.reason and sentences.cut(entry.reason, sentences.MAX_EXCERPT_CHARS)
        ranked = wire.RankedEntry(
            rank=entry.rank,
            place=entry.place,
            product=product.name,
            slug=product.slug,
            domain=product.domain,
            score=entry.score,
            appearances=entry.appearances,
            model_ranks=dict(entry.model_ranks),
            tied=entry.tied,
            reason=reason or None,
            mean_score=round(comparison.mean_points(id_), certainty.DECIMALS)
            if is_measured
            else None,
            range=board.ranges.get(id_),
            presence=certainty.presence(windows, id_),
            firsts=certainty.firsts(windows, id_) if is_measured else None,
            own_maker=any(_is_own(view, model, product) for model in entry.model_ranks),
        )
        entries.append(ranked)
    return entries


def _is_own(view: View, model: str, product: ProductProfile) -> bool:
    """Return whether the company behind an assistant makes a product."""
    makers = view.snapshot.summary.assistant_maker_keys
    return product.maker is not None and makers.get(model) == product.maker


def _picks(view: View, answer: CountedAnswer) -> list[wire.ModelPick]:
    products = view.snapshot.products
    return [
        wire.ModelPick(
            rank=pick.rank,
            product=products[id_].name,
            named=pick.product,
            slug=products[id_].slug,
            domain=products[id_].domain,
            reason=pick.reason,
            own_maker=_is_own(view, answer.model, products[id_]),
        )
        for id_, pick in answer.answer.picks.items()
    ]


def _missed(view: View, answer: CountedAnswer) -> list[wire.MissedProduct]:
    # What was only missed, and never ranked, has no page.
    products = map(view.snapshot.products.get, answer.answer.missed)
    return [
        wire.MissedProduct(
            product=product.name if product else miss.product,
            slug=product.slug if product else None,
            reason=miss.reason,
        )
        for miss, product in zip(answer.answer.poll.missed, products, strict=True)
    ]


def _product_entry(view: View, board: Leaderboard, entry: Entry) -> wire.ProductEntry:
    return wire.ProductEntry(
        slug=board.slug,
        title=board.category.title,
        rank=entry.rank,
        place=entry.place,
        of=len(board.entries),
        tied=entry.tied,
        model_ranks=dict(entry.model_ranks),
        range=board.ranges.get(entry.product),
        level=board.certainty.level,
        level_sentence=sentences.certainty_sentence(board, view.name),
        reason=entry.reason,
        fixes=[
            wire.Fix(model=answer.model, fix=fix)
            for answer in board.counted
            if (pick := answer.answer.picks.get(entry.product))
            for fix in pick.fixes
        ],
        api=view.at.category(board.slug),
    )
