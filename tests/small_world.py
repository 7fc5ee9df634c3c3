"""A fixed little data directory in which everything of note happens at least once."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from builders import answered, failed, write_data, write_json

from store.records import Poll

CATEGORIES: dict[str, dict[str, Any]] = {
    "crm-software": {
        "title": "Best CRM software",
        "topic": "CRM software",
        "aliases": ["customer relationship management"],
        "nouns": ["CRM"],
        "former_slugs": ["crm", "crm-tools"],
    },
    "green-tea": {"title": "Best green tea", "question": "What is the best green tea?"},
    "tea-kettle": {"title": "Best tea kettle", "question": "What is the best tea kettle?"},
    "unpolled": {"title": "Best unpolled thing"},
}
TOPICS = [
    {
        "slug": "drinks",
        "title": "Drinks",
        "parts": [
            {"slug": "tea", "title": "Tea", "categories": ["green-tea", "unpolled"]},
            {"slug": "gear", "title": "Gear", "categories": ["tea-kettle"]},
        ],
    },
    {
        "slug": "software",
        "title": "Software",
        "parts": [{"slug": "sales", "title": "Sales", "categories": ["crm-tools"]}],
    },
]
PRODUCTS = {"alpha": {"name": "Alpha", "domain": "alpha.example", "aliases": ["Alfa", "Alpha One"]}}
PAGES = (
    "/", "/search", "/search?q=crm", "/best/crm-software", "/product/alpha",
    "/product/alpha/polls", "/changes", "/mentions", "/labs", "/labs/by-hand", "/methodology",
    "/docs", "/topics", "/topics/drinks", "/models", "/compare", "/compare?a=alpha&b=beta",
)  # fmt: skip
TEXTS = (
    "/llms.txt", "/robots.txt", "/sitemap.xml", "/.well-known/api-catalog", "/feeds/changes.atom",
    "/feeds/changes.json", "/feeds/best/crm-software.atom", "/search/suggest?q=al",
)  # fmt: skip
"""Every kind of page, and of other resources beside the API."""
WITHHELD = "2026-10-26T06:00:00Z"
"""When the poll was made whose texts are not shown."""


def polls() -> Iterator[Poll]:
    """A failure, changes, a stale answer, a retired model, an old spelling, a near miss."""
    domains = {"Beta": "beta.example"}
    yield answered("Retired", ["Delta", "Alpha"], "2026-09-01T06:00:00Z")
    yield answered("D", ["Omega", "Beta"], "2026-09-10T06:00:00Z")
    for model, names in {"A": ["Alfa", "Beta"], "B": ["Beta", "Alpha", "Gamma"]}.items():
        yield answered(model, names, "2026-10-12T06:00:00Z", domains=domains)
    yield answered("A", ["Beta", "Alpha CRM", "Gamma"], "2026-10-19T06:00:00Z", domains=domains)
    yield answered("A", ["Withheld Wonder"], WITHHELD)
    yield answered("C", ["Alpha", "Gamma"], "2026-11-02T06:00:00Z", missed=["Beta", "Nobody"])
    yield failed("B", "rate_limited", "2026-11-02T06:00:05Z")
    question = "What is the best green tea?"
    for model in "ABCD":
        names = ["Sencha", "Gyokuro", "Matcha"]
        yield answered(
            model, names, "2026-11-02T07:00:00Z", slug="green-tea", question=question, caveat="Hot."
        )
    yield failed("A", "timeout", "2026-11-03T07:00:00Z", slug="green-tea")
    question = "What is the best tea kettle?"
    for model, name in {"A": "Kettle", "B": "Pot"}.items():
        yield answered(
            model, [name], "2026-11-02T08:00:00Z", slug="tea-kettle", question=question, reason=None
        )


def write_small_world(directory: Path, **site: Any) -> Path:
    """Write the little data directory and return it."""
    made = list(polls())
    write_data(directory, categories=CATEGORIES, products=PRODUCTS, polls=made, **site)
    write_json(directory / "topics.json", {"version": 1, "topics": TOPICS})
    withheld = {
        poll.id: {"reason": "Defamatory.", "date": "2026-10-27"}
        for poll in made
        if poll.polled_at == WITHHELD
    }
    write_json(directory / "withheld.json", {"version": 1, "withheld": withheld})
    experiment = {
        "title": "By hand",
        "method": "We looked.",
        "finding": "It is so.",
        "date": "2026-10-01",
        "body": "At *length*.",
    }
    write_json(directory / "labs" / "by-hand.json", {"version": 1, **experiment})
    return directory
