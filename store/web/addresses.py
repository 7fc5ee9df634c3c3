"""Absolute addresses, built from the configured base URL and never from a request."""

from __future__ import annotations

from urllib.parse import urlencode

from msgspec import Struct

LICENCES = {
    "CC BY 4.0": "https://creativecommons.org/licenses/by/4.0/",
    "CC BY-SA 4.0": "https://creativecommons.org/licenses/by-sa/4.0/",
    "CC0 1.0": "https://creativecommons.org/publicdomain/zero/1.0/",
}
"""Where the text of a licence stands, by its name; any other licence is served by name alone.

The SPDX identifiers of these are their names with hyphens.
"""


def category_path(slug: str) -> str:
    """The verdict of a category, below ``/api/v1/``."""
    return f"best/{slug}.json"


def product_path(slug: str) -> str:
    """The record of a product, below ``/api/v1/``."""
    return f"product/{slug}.json"


class Addresses(Struct, frozen=True):
    """Every address the service publishes; ``base`` has no slash at its end."""

    base: str

    def page(self, path: str = "") -> str:
        """A page by its path below the base URL."""
        return f"{self.base}/{path}"

    def api(self, path: str) -> str:
        """An API resource by its path below ``/api/v1/``."""
        return f"{self.base}/api/v1/{path}"

    def category(self, slug: str) -> str:
        """The verdict of a category."""
        return self.api(category_path(slug))

    def category_page(self, slug: str) -> str:
        """The page of a category."""
        return self.page(f"best/{slug}")

    def product(self, slug: str) -> str:
        """The record of a product."""
        return self.api(product_path(slug))

    def product_page(self, slug: str) -> str:
        """The page of a product."""
        return self.page(f"product/{slug}")

    def evidence_page(self, slug: str) -> str:
        """The page with every poll that named a product."""
        return self.page(f"product/{slug}/polls")

    def search_page(self, query: str) -> str:
        """The page of a search."""
        return self.page("search?" + urlencode({"q": query}))

    def category_feed(self, slug: str) -> str:
        """The feed of a category's changes."""
        return self.page(f"feeds/best/{slug}.atom")

    def experiment_page(self, slug: str) -> str:
        """The write-up of an experiment."""
        return self.page(f"labs/{slug}")

    def history(self, slug: str, **narrowed: str) -> str:
        """The poll history of a category; ``narrowed`` by model or limit."""
        return self.api("history?" + urlencode({"slug": slug, **narrowed}))
