"""What one request sees: a snapshot at one base URL, its addresses, and sentences to quote."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from msgspec import Struct

from store.rankings import sentences
from store.rankings.leaderboards import Leaderboard
from store.rankings.merging import Entry
from store.rankings.names import ProductId
from store.rankings.products import ProductProfile
from store.records import Site
from store.search import Hits, Kind
from store.search.meaning import Meaning
from store.snapshot import Snapshot
from store.text import LICENCES, slips
from store.web.as_of import Lines
from store.web.errors import Suggestion


class View:
    """A snapshot as readers see it, below one base URL.

    ``lines`` reads lines of history, ``meaning`` orders what words leave open in a search.
    """

    def __init__(
        self, snapshot: Snapshot, base_url: str, lines: Lines, meaning: Meaning | None = None
    ) -> None:
        self.snapshot = snapshot
        self.lines = lines
        self.meaning = meaning
        self.at = Addresses(base_url)

    @property
    def site(self) -> Site:
        """The settings of site.json."""
        return self.snapshot.site

    @property
    def licence(self) -> str | None:
        """The address of the licence, if it is a well-known one."""
        return LICENCES.get(self.site.licence)

    @cached_property
    def service_links(self) -> str:
        """The part of the ``Link`` header that every answer has: licence and description."""
        document = self.at.api("openapi.json")
        description = f'<{document}>; rel="service-desc"; type="application/json"'
        return f'<{self.licence}>; rel="license", {description}' if self.licence else description

    def link(self, page: str, following: str | None = None) -> str:
        """Return the ``Link`` header of JSON: the page with the same, and the next part of it."""
        links = f'{self.service_links}, <{page}>; rel="alternate"; type="text/html"'
        return f'{links}, <{following}>; rel="next"' if following else links

    def page_link(self, resource: str | None = None) -> str:
        """Return the ``Link`` header of a page: the API catalog, and the same as JSON."""
        catalog = f'<{self.at.page(".well-known/api-catalog")}>; rel="api-catalog"'
        links = f"{self.service_links}, {catalog}"
        same = f', <{resource}>; rel="alternate"; type="application/json"'
        return links + same if resource else links

    def name(self, product: ProductId) -> str:
        """Return what a product is called today: rankings of any day hold ids alone."""
        return self.snapshot.products[product].name

    def verdict_sentence(self, board: Leaderboard) -> str:
        """Return the sentence to quote for a category."""
        # The page and not the JSON: people follow the link that is quoted.
        source = self._source(self.at.category_page(board.slug))
        return sentences.category_verdict(board, self.name, self.site, source)

    def product_verdict(
        self, product: ProductProfile, places: Sequence[tuple[Leaderboard, Entry]]
    ) -> str | None:
        """Return the sentence to quote for a product; ``None`` on no leaderboard."""
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

    def _source(self, page: str) -> str:
        invented = "invented sample data, " if self.site.sample else ""
        return f"{page} ({self.site.name}, {invented}{self.site.licence})"

    def standings(self, product: ProductProfile) -> list[tuple[Leaderboard, Entry]]:
        """Return a product's places on all leaderboards, by place, then by category slug.

        ``product.categories`` has the rankings that it has left, too.
        """
        leaderboards = self.snapshot.leaderboards
        places = [
            (leaderboards[slug], entry)
            for slug in product.categories
            if slug in leaderboards
            for entry in leaderboards[slug].entries
            if entry.product == product.id
        ]
        return sorted(places, key=lambda place: (place[1].place, place[0].slug))

    def search(self, query: str, limit: int) -> Hits:
        """Return what fits a query, best first."""
        # Without the optional sentence model words alone order the hits.
        compare = self.meaning.compare if self.meaning else None
        return self.snapshot.summary.index.search(query, limit, compare=compare)

    def suggestions(self, slug: str, kind: Kind) -> list[Suggestion]:
        """Return the ranked categories, or the products, closest to an unknown slug."""
        snapshot, hits = self.snapshot, self.snapshot.summary.index.closest(slug, kind)
        known = snapshot.product_slugs if kind == "brands" else snapshot.leaderboards
        slugs = dict.fromkeys([*slips(slug, known), *(hit.slug for hit in hits)])
        if kind == "brands":
            products = filter(None, map(snapshot.product, slugs))
            return [
                Suggestion(slug=p.slug, title=p.name, api=self.at.product(p.slug)) for p in products
            ]
        boards = filter(None, map(snapshot.leaderboards.get, slugs))
        return [
            Suggestion(slug=b.slug, title=b.category.title, api=self.at.category(b.slug))
            for b in boards
        ]


def quoted_first(place: tuple[Leaderboard, Entry]) -> tuple[int, bool, int, int, str]:
    """Order a product's places as its verdict quotes them.

    By place, alone before tied, the surest ranking, then most entries, then slug. Sureness goes
    before size: to be first of many says little if it may be chance.
    """
    board, entry = place
    level = [*sentences.LEVELS].index(board.certainty.level)  # the surest first
    return entry.place, entry.tied, level, -len(board.entries), board.slug


class Addresses(Struct, frozen=True):
    """Every address the service publishes; ``base`` has no slash at its end.

    Parameters that are ``None`` are left out.
    """

    base: str

    def page(self, path: str = "", **parameters: Any) -> str:
        """Return the address of a page by its path below the base URL, and its parameters."""
        return _with_query(f"{self.base}/{path}", parameters)

    def api(self, path: str, **parameters: Any) -> str:
        """Return the address of an API resource by its path below ``/api/v1/``, likewise."""
        return _with_query(f"{self.base}/api/v1/{path}", parameters)

    def category(self, slug: str, as_of: str | None = None) -> str:
        """Return the address of the verdict of a category, as of a day if given."""
        return self.api(f"best/{slug}.json", asOf=as_of)

    def category_page(self, slug: str, as_of: str | None = None) -> str:
        """Return the address of the page of a category, as of a day if given."""
        return self.page(f"best/{slug}", asOf=as_of)

    def product(self, slug: str) -> str:
        """Return the address of the record of a product."""
        return self.api(f"product/{slug}.json")

    def product_page(self, slug: str) -> str:
        """Return the address of the page of a product."""
        return self.page(f"product/{slug}")

    def evidence_page(self, slug: str) -> str:
        """Return the address of the page with the newest polls that named a product."""
        return self.page(f"product/{slug}/polls")

    def topic(self, slug: str) -> str:
        """Return the address of a topic's list of categories."""
        return self.api("categories.json", topic=slug)

    def topic_page(self, slug: str) -> str:
        """Return the address of the page of a topic."""
        return self.page(f"topics/{slug}")

    def ranking_picture(self, slug: str) -> str:
        """Return the address of the picture of a ranking, to embed."""
        return self.page(f"embed/best/{slug}.svg")

    def card(self, slug: str) -> str:
        """Return the address of the picture that goes with a link to a ranking."""
        return self.page(f"cards/best/{slug}.png")

    def badge(self, slug: str, product: str) -> str:
        """Return the address of a product's badge in a ranking."""
        return self.page(f"badge/{slug}/{product}.svg")

    def compare_page(self, one: str, other: str) -> str:
        """Return the address of the page that compares two products."""
        return self.page("compare", a=one, b=other)

    def feed(self, slug: str) -> str:
        """Return the address of the feed of a category."""
        return self.page(f"feeds/best/{slug}.atom")


def _with_query(address: str, parameters: Mapping[str, Any]) -> str:
    present = {name: value for name, value in parameters.items() if value is not None}
    return f"{address}?{urlencode(present)}" if present else address
