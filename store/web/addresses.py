"""Absolute addresses, built from the configured base URL and never from a request."""

from collections.abc import Mapping
from urllib.parse import quote_plus, urlencode

from msgspec import Struct


def category_path(slug: str, as_of: str | None = None) -> str:
    """The verdict of a category, below ``/api/v1/``."""
    return f"best/{slug}.json{_as_of(as_of)}"


def product_path(slug: str) -> str:
    """The record of a product, below ``/api/v1/``."""
    return f"product/{slug}.json"


def compare_path(one: str, other: str) -> str:
    """The page that compares two products or assistants, below the base URL."""
    return "compare?" + urlencode({"a": one, "b": other})


class Addresses(Struct, frozen=True):
    """Every address the service publishes; ``base`` has no slash at its end."""

    base: str

    def page(self, path: str = "") -> str:
        """A page by its path below the base URL."""
        return f"{self.base}/{path}"

    def api(self, path: str) -> str:
        """An API resource by its path below ``/api/v1/``."""
        return f"{self.base}/api/v1/{path}"

    def category(self, slug: str, as_of: str | None = None) -> str:
        """The verdict of a category, as of a day if given."""
        return self.api(category_path(slug, as_of))

    def category_page(self, slug: str, as_of: str | None = None) -> str:
        """The page of a category, as of a day if given."""
        return self.page(f"best/{slug}{_as_of(as_of)}")

    def differences_page(self, slug: str, **days: str) -> str:
        """The page with the differences ``from`` one day ``to`` another of a category."""
        return self.page(_asked(f"best/{slug}/changes", days))

    def product(self, slug: str) -> str:
        """The record of a product."""
        return self.api(product_path(slug))

    def product_page(self, slug: str) -> str:
        """The page of a product."""
        return self.page(f"product/{slug}")

    def evidence_page(self, slug: str) -> str:
        """The page with every poll that named a product."""
        return self.page(f"product/{slug}/polls")

    def topic(self, slug: str, **narrowed: str) -> str:
        """The list of a topic's categories; ``narrowed`` by format."""
        return self.api(_asked("categories.json", {"topic": slug, **narrowed}))

    def topic_page(self, slug: str) -> str:
        """The page of a topic."""
        return self.page(f"topics/{slug}")

    def model_page(self, slug: str) -> str:
        """The page of an assistant."""
        return self.page(f"models/{slug}")

    def ranking_picture(self, slug: str) -> str:
        """The picture of a ranking, to embed."""
        return self.page(f"embed/best/{slug}.svg")

    def card(self, slug: str) -> str:
        """The picture that goes with a link to a ranking."""
        return self.page(f"cards/best/{slug}.png")

    def badge(self, slug: str, product: str, kind: str = "svg") -> str:
        """A product's place in a ranking, as a badge or as what shields.io makes one of."""
        return self.page(f"badge/{slug}/{product}.{kind}")

    def compare_page(self, one: str, other: str) -> str:
        """The page that compares two products, or two assistants by the paths of their pages."""
        return self.page(compare_path(one, other))

    def search_page(self, query: str) -> str:
        """The page of a search."""
        return self.page("search?" + urlencode({"q": query}))

    def search(self, query: str) -> str:
        """The results of a search."""
        return self.api("search?" + urlencode({"q": query}))

    def feed(self, kind: str, slug: str) -> str:
        """The feed of a category (``best``), a ``product`` or ``topics``."""
        return self.page(f"feeds/{kind}/{slug}.atom")

    def experiment_page(self, slug: str) -> str:
        """The write-up of an experiment."""
        return self.page(f"labs/{slug}")

    def history(self, slug: str, **narrowed: str) -> str:
        """The poll history of a category; ``narrowed`` by model, limit, cursor or format."""
        return self.api(_asked("history", {"slug": slug, **narrowed}))

    def changes(self, **narrowed: str) -> str:
        """The changes of every category; ``narrowed`` by limit, cursor or format."""
        return self.api(_asked("changes.json", narrowed))


def _as_of(day: str | None) -> str:
    return f"?asOf={day}" if day else ""


def _asked(path: str, query: Mapping[str, str]) -> str:
    pairs = "&".join([f"{name}={quote_plus(value)}" for name, value in query.items()])
    return f"{path}?{pairs}" if query else path
