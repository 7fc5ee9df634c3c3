"""The addresses that are published as files: all that have one answer, by the app's rules."""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from flask import Flask

from store.snapshot import Snapshot

LEFT_OUT = ("/best/<slug>/changes", "/api/v1/")
"""Rules without a file: asked seldom and mostly with arguments; a folder bears the name."""
OF_CATEGORIES, OF_PRODUCTS = ("best",), ("product",)
"""What stands before the slug of a category, or of a product, in the rules of the application."""


def static_paths(app: Flask, snapshot: Snapshot) -> Iterator[str]:
    """Yield every path that may have an answer without arguments."""
    computed = {experiment.slug for experiment in snapshot.summary.experiments}
    static = Path(app.root_path, "store/web/static")
    values = {
        **dict.fromkeys(OF_CATEGORIES, sorted(snapshot.leaderboards)),
        **dict.fromkeys(OF_PRODUCTS, sorted(filter(snapshot.product, snapshot.product_slugs))),
        "topics": [topic.slug for topic in snapshot.summary.topics],
        "labs": sorted(computed | snapshot.catalogue.labs.keys()),
        "static": sorted(path.name for path in static.glob("*")),
    }
    yield from _paths(app, values)
    for slug in snapshot.leaderboards:
        for product in snapshot.aggregates[slug].product_stats:
            address = snapshot.products[product].slug
            if snapshot.product(address):
                yield f"/badge/{slug}/{address}.svg"


def moved_paths(app: Flask, snapshot: Snapshot) -> Iterator[str]:
    """Yield every path of an old slug."""
    summary = snapshot.summary
    values = {
        **dict.fromkeys(OF_CATEGORIES, summary.category_redirects),
        **dict.fromkeys(OF_PRODUCTS, summary.product_redirects),
    }
    general = set(_paths(app, {}))
    yield from (path for path in _paths(app, values) if path not in general)


def category_paths(app: Flask, slugs: Collection[str]) -> set[str]:
    """Return every path of categories."""
    return set(_paths(app, dict.fromkeys(OF_CATEGORIES, slugs)))


def _paths(app: Flask, values: Mapping[str, Collection[str]]) -> Iterator[str]:
    """Yield paths of rules with one variable at most: the values of the word before ``<slug>``."""
    for rule in app.url_map.iter_rules():
        is_asked = "GET" in (rule.methods or ()) and rule.rule not in LEFT_OUT
        if not is_asked or rule.rule.count("<") > 1:
            continue
        before, variable, after = rule.rule.partition("<")
        word = before.rstrip("/").rpartition("/")[2]
        for value in values.get(word, ()) if variable else ("",):
            yield f"{before}{value}{after.partition('>')[2]}"


def file_of(path: str, media_type: str) -> str:
    """Return the file of an answer in a tree: pages as ``.html``, all else under its own path.

    >>> file_of("/best/humidifier", "text/html"), file_of("/", "text/html")
    ('best/humidifier.html', 'index.html')
    """
    name = path.strip("/") or "index"
    return f"{name}.html" if media_type == "text/html" else name


def object_of(path: str) -> str:
    """Return the object of an answer in a bucket: its path, for a bucket opens no folders.

    >>> object_of("/best/humidifier"), object_of("/")
    ('best/humidifier', 'index.html')
    """
    return path.strip("/") or "index.html"
