"""What one request sees: a snapshot at one base URL, and every wire shape that is made from it."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

from msgspec import to_builtins

from store.counting import LineIndex
from store.rankings import sentences
from store.rankings.changes import Change
from store.rankings.leaderboards import Leaderboard
from store.rankings.merging import CountedAnswer, Entry
from store.rankings.names import ProductId
from store.rankings.products import ProductProfile
from store.rankings.rounds import LeaderChange, Round
from store.records import Site
from store.search import Hits, Kind
from store.search.meaning import Meaning
from store.snapshot import Snapshot
from store.text import LICENCES
from store.web import change_shapes
from store.web import shapes as wire
from store.web.addresses import Addresses
from store.web.certainty_view import PLACES, CertaintyView
from store.web.errors import Suggestion

MOST_MENTIONED = 100


class View:
    """A snapshot as readers see it, below one base URL.

    ``lines`` reads lines of history, ``meaning`` orders what words leave open in a search.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        base_url: str,
        lines: Callable[[LineIndex, Sequence[int]], list[bytes]],
        meaning: Meaning | None = None,
    ) -> None:
        self.snapshot = snapshot
        self.lines = lines
        self.meaning = meaning
        self.at = Addresses(base_url)

    @property
    def site(self) -> Site:
        """What site.json says."""
        return self.snapshot.site

    @property
    def licence(self) -> str | None:
        """The address of the licence, if it is a well-known one."""
        return LICENCES.get(self.site.licence)

    @cached_property
    def service_links(self) -> str:
        """The part of the ``Link`` header that every answer has: licence and description."""
        description = self.at.api("openapi.json")
        described = f'<{description}>; rel="service-desc"; type="application/json"'
        return f'<{self.licence}>; rel="license", {described}' if self.licence else described

    def link(self, page: str, following: str | None = None) -> str:
        """Return the ``Link`` header of JSON: the page with the same, and the next part of it."""
        known = f'{self.service_links}, <{page}>; rel="alternate"; type="text/html"'
        return f'{known}, <{following}>; rel="next"' if following else known

    def page_link(self, resource: str | None = None) -> str:
        """Return the ``Link`` header of a page: the API catalog, and the same as JSON."""
        catalog = f'<{self.at.page(".well-known/api-catalog")}>; rel="api-catalog"'
        known = f"{self.service_links}, {catalog}"
        same = f', <{resource}>; rel="alternate"; type="application/json"'
        return known + same if resource else known

    def category_verdict(
        self, board: Leaderboard, as_of: str | None = None
    ) -> wire.CategoryVerdict:
        """One category's merged ranking, as of a day if given, and what each model said."""
        names = self._names(board)
        sure = CertaintyView(board, self.snapshot.products)
        return wire.CategoryVerdict(
            slug=board.slug,
            title=board.category.title,
            question=board.question,
            next_question=board.next_question,
            verdict=self.verdict(board),
            quote=sentences.quote(board, self.name, self.site),
            url=self.at.category_page(board.slug),
            updated=board.updated,
            as_of=as_of,
            final=as_of <= self.snapshot.ledger.closed if as_of else None,
            asked=sentences.asked(board),
            models=[answer.model for answer in board.counted],
            missing=list(board.missing),
            consensus=sentences.consensus(board.agreement, names),
            disagreement=sentences.disagreement(board.counted, board.entries, names),
            agreement=self._agreement(board),
            certainty=sure.summary(),
            rules=wire.Rules(agree=sum(board.rules.values()), of=len(board.rules)),
            response=wire.Response(answered=board.answered, of=board.asked),
            combined=[self._ranked(board, entry, sure) for entry in board.entries],
            per_model={a.model: self._picks(a) for a in board.counted},
            missed_by_model={
                a.model: self._missed(a) for a in board.counted if a.answered.poll.missed
            },
            answers={
                a.model: wire.AnswerStamp(
                    polled_at=a.answered.poll.polled_at, poll=a.answered.poll.id, stale=a.stale
                )
                for a in board.counted
            },
        )

    def verdict(self, board: Leaderboard) -> str:
        """The sentence to quote for a category."""
        source = self._source(self.at.category_page(board.slug))
        return sentences.category_verdict(board, self.name, self.site, source)

    def wording(self, board: Leaderboard) -> str:
        """How a category's #1 came about, as its verdict says it."""
        return sentences.agreement_wording(board, self.name, self.site.stale_after_days)

    def name(self, product: ProductId) -> str:
        """Return what a product is called."""
        return self.snapshot.products[product].name

    def product_record(self, product: ProductProfile) -> wire.ProductRecord:
        """A product and every leaderboard it appears on."""
        places = self.standings(product)
        return wire.ProductRecord(
            slug=product.slug,
            name=product.name,
            domain=product.domain,
            verdict=self.product_verdict(product, places),
            best_rank=places[0][1].rank if places else 0,
            categories=len(places),
            entries=[self._product_entry(board, entry) for board, entry in places],
            page=self.at.product_page(product.slug),
            check=self.at.evidence_page(product.slug),
        )

    def standings(self, product: ProductProfile) -> list[tuple[Leaderboard, Entry]]:
        """A product's places on all leaderboards, best rank first, then by category slug."""
        leaderboards = self.snapshot.leaderboards
        places = [
            (leaderboards[slug], entry)
            for slug in product.categories
            if slug in leaderboards
            for entry in leaderboards[slug].entries
            if entry.product == product.id
        ]
        return sorted(places, key=lambda place: (place[1].rank, place[0].slug))

    def category_items(
        self, leaderboards: Iterable[Leaderboard] | None = None
    ) -> list[wire.CategoryItem]:
        """Every ranked category, by title, or those of these leaderboards."""
        return [
            wire.CategoryItem(
                slug=board.slug,
                title=board.category.title,
                updated=board.updated,
                api=self.at.category(board.slug),
            )
            for board in (self.snapshot.summary.ranked if leaderboards is None else leaderboards)
        ]

    def topic_items(self) -> list[wire.TopicItem]:
        """Every topic, in the order of its file."""
        return [
            wire.TopicItem(
                slug=topic.slug,
                title=topic.title,
                categories=len(topic.leaderboards),
                parts=[
                    wire.TopicPart(
                        slug=part.slug,
                        title=part.title,
                        categories=[board.slug for board in part.leaderboards],
                    )
                    for part in topic.parts
                ],
                page=self.at.topic_page(topic.slug),
                api=self.at.topic(topic.slug),
            )
            for topic in self.snapshot.summary.topics
        ]

    def change_list(
        self, shown: Sequence[Change], total: int, leaders: Iterable[tuple[Leaderboard, Round]]
    ) -> change_shapes.ChangeList:
        """Return changes of the models' #1 picks, of so many, and of leaders, newest first."""
        summary = self.snapshot.summary
        return change_shapes.ChangeList(
            last_checked=summary.last_poll,
            tracked=summary.tracked,
            count=len(shown),
            total=total,
            changes=[self._change(change) for change in shown],
            leaders=[
                self._leader_change(board, day.date, day.leader)
                for board, day in leaders
                if day.leader
            ],
        )

    def mention_list(self) -> wire.MentionList:
        """The most mentioned products, with their trends."""
        summary = self.snapshot.summary
        leaderboards = Counter(e.product for board in summary.ranked for e in board.entries)
        return wire.MentionList(
            as_of=summary.last_poll,
            polls=summary.successes,
            products=[
                self._mention(rank, product, leaderboards[product.id])
                for rank, product in enumerate(summary.mentioned[:MOST_MENTIONED], start=1)
            ],
        )

    def instrument_list(self) -> wire.InstrumentList:
        """How the assistants were asked, those ways first by which most rankings came about."""
        snapshot = self.snapshot
        counted = Counter(
            answer.answered.poll.instrument
            for board in snapshot.summary.ranked
            for answer in board.counted
        )
        models: dict[str | None, set[str]] = {}
        for aggregate in snapshot.aggregates.values():
            for asking in aggregate.log.askings:
                models.setdefault(asking.instrument, set()).add(asking.model)
        instruments = [
            wire.InstrumentUse(
                id=id_,
                models=sorted(models.get(id_, ())),
                counted=counted[id_],
                says=to_builtins(says),
            )
            for id_, says in snapshot.catalogue.instruments.items()
        ]
        instruments.sort(key=lambda each: (-each.counted, each.models, each.id))
        return wire.InstrumentList(count=len(instruments), instruments=instruments)

    def search(self, query: str, limit: int, kind: Kind | None = None) -> Hits:
        """What fits a query, best first."""
        compare = self.meaning.compare if self.meaning else None
        return self.snapshot.summary.index.search(query, limit, kind, compare)

    def suggested_categories(self, text: str) -> list[Suggestion]:
        """The ranked categories closest to an unknown slug."""
        hits = self.snapshot.summary.index.closest(text, "categories")
        found = (self.snapshot.leaderboards.get(hit.slug) for hit in hits)
        return [
            Suggestion(slug=b.slug, title=b.category.title, api=self.at.category(b.slug))
            for b in found
            if b
        ]

    def suggested_products(self, text: str) -> list[Suggestion]:
        """The products closest to an unknown slug."""
        hits = self.snapshot.summary.index.closest(text, "brands")
        found = (self.snapshot.product(hit.slug) for hit in hits)
        return [
            Suggestion(slug=p.slug, title=p.name, api=self.at.product(p.slug)) for p in found if p
        ]

    def _names(self, board: Leaderboard) -> dict[ProductId, str]:
        products = self.snapshot.products
        return {entry.product: products[entry.product].name for entry in board.entries}

    def _source(self, page: str) -> str:
        return sentences.source(page, self.site.name, self.site.licence)

    def _agreement(self, board: Leaderboard) -> wire.Agreement | None:
        found = board.agreement
        if found is None:
            return None
        product = self.snapshot.products[found.product]
        alike = board.repeatability if board.certainty.contenders else None
        relative = alike.relative_overlap if alike else None
        top = wire.TopPick(
            product=product.name,
            slug=product.slug,
            votes=found.votes,
            of=found.of,
            label=found.label,
        )
        return wire.Agreement(
            top1=top,
            overlap=found.overlap,
            self_overlap=round(alike.own_overlap, PLACES) if alike else None,
            relative_overlap=None if relative is None else round(relative, PLACES),
        )

    def _ranked(self, board: Leaderboard, entry: Entry, sure: CertaintyView) -> wire.RankedEntry:
        product = self.snapshot.products[entry.product]
        return wire.RankedEntry(
            rank=entry.rank,
            product=product.name,
            slug=product.slug,
            domain=product.domain,
            score=entry.score,
            appearances=entry.appearances,
            model_ranks=dict(entry.model_ranks),
            tied=entry.tied,
            reason=sentences.cut(entry.reason, sentences.MAX_EXCERPT_CHARS)
            if entry.reason
            else None,
            mean_score=sure.mean_score(entry.product),
            range=board.ranges.get(entry.product),
            presence=sure.presence(entry.product),
            firsts=sure.firsts(entry.product),
            own_maker=any(self.is_own(model, product) for model in entry.model_ranks),
        )

    def is_own(self, model: str, product: ProductProfile) -> bool:
        """Whether the company behind an assistant makes a product."""
        return product.maker is not None and self.snapshot.makers.get(model) == product.maker

    def _picks(self, answer: CountedAnswer) -> list[wire.ModelPick]:
        products = self.snapshot.products
        return [
            wire.ModelPick(
                rank=pick.rank,
                product=products[product].name,
                named=pick.product,
                slug=products[product].slug,
                domain=products[product].domain,
                reason=pick.reason,
                own_maker=self.is_own(answer.model, products[product]),
            )
            for product, pick in answer.picks.items()
        ]

    def _missed(self, answer: CountedAnswer) -> list[wire.MissedProduct]:
        answered = answer.answered
        found = (self.snapshot.products.get(id_) for id_ in answered.missed)
        return [
            wire.MissedProduct(
                product=product.name if product else miss.product,
                slug=product.slug if product else None,
                reason=miss.reason,
            )
            for miss, product in zip(answered.poll.missed, found, strict=True)
        ]

    def product_verdict(
        self, product: ProductProfile, places: Sequence[tuple[Leaderboard, Entry]]
    ) -> str | None:
        """The sentence to quote for a product; ``None`` on no leaderboard."""
        if not places:
            return None
        board, entry = min(places, key=quoted_first)
        return sentences.product_verdict(
            board,
            entry,
            self.name,
            site=self.site.name,
            leaderboards=len(places),
            source=self._source(self.at.product_page(product.slug)),
        )

    def _product_entry(self, board: Leaderboard, entry: Entry) -> wire.ProductEntry:
        return wire.ProductEntry(
            slug=board.slug,
            title=board.category.title,
            rank=entry.rank,
            of=len(board.entries),
            model_ranks=dict(entry.model_ranks),
            range=board.ranges.get(entry.product),
            level=board.certainty.level,
            level_sentence=sentences.certainty(board, self.name),
            reason=entry.reason,
            fixes=[
                wire.Fix(model=answer.model, fix=fix)
                for answer in board.counted
                if (pick := answer.picks.get(entry.product))
                for fix in pick.fixes
            ],
            api=self.at.category(board.slug),
        )

    def _change(self, change: Change) -> change_shapes.Change:
        return change_shapes.Change(
            id=change.poll,
            slug=change.slug,
            title=self.snapshot.aggregates[change.slug].category.title,
            model=change.model,
            from_=self.name(change.previous),
            to=self.name(change.current),
            reason=change.reason,
            from_date=change.previous_at[:10],
            to_date=change.current_at[:10],
            confirmed=change.confirmed,
            served_model_from=change.version.before if change.version else None,
            served_model_to=change.version.after if change.version else None,
            page=self.at.category_page(change.slug),
            api=self.at.category(change.slug),
        )

    def _leader_change(
        self, board: Leaderboard, date: str, change: LeaderChange
    ) -> change_shapes.LeaderChange:
        cause = change.cause
        return change_shapes.LeaderChange(
            slug=board.slug,
            title=board.category.title,
            from_=self.name(change.before),
            to=self.name(change.after),
            from_date=change.since,
            to_date=date,
            answers=change.answers,
            model=cause.model if cause else None,
            served_model_from=cause.before if cause else None,
            served_model_to=cause.after if cause else None,
            page=self.at.category_page(board.slug),
            api=self.at.category(board.slug),
        )

    def _mention(self, rank: int, product: ProductProfile, leaderboards: int) -> wire.Mention:
        trend = self.snapshot.summary.trends[product.id]
        return wire.Mention(
            rank=rank,
            slug=product.slug,
            name=product.name,
            domain=product.domain,
            mentions=product.mentions,
            mentions7d=trend.mentions,
            polls7d=trend.cells,
            mentions_prev7d=trend.mentions_before,
            polls_prev7d=trend.cells,
            delta=trend.delta,
            direction=trend.direction,
            categories=leaderboards,
            page=self.at.product_page(product.slug),
            api=self.at.product(product.slug),
        )


def quoted_first(place: tuple[Leaderboard, Entry]) -> tuple[int, int, str]:
    """The order of a product's places by which its verdict quotes: rank, most entries, slug."""
    board, entry = place
    return (entry.rank, -len(board.entries), board.slug)
