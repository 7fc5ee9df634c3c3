"""What the sample assistants think of products: slow functions of the time."""

import datetime as dt
import math
from functools import lru_cache

from sample.draws import normal, share
from sample.products import Invented, invent
from sample.subjects import subject_of
from store.records import Category

EPOCH = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


OWN_TASTE, CELL_TASTE = 0.34, 0.46
SLOW, FAST = 0.22, 0.06  # how far opinions wander: over two months, over a week
TREND = 1.5  # how far a trending product rises or falls


@lru_cache(maxsize=2048)
def _pool(slug: str, text: str, nouns: tuple[str, ...]) -> tuple[tuple[Invented, float], ...]:
    """The products that belong to a category, each with its strength there, strongest first."""
    subject = subject_of(text, nouns)
    if subject.core == subject.family:
        scopes = [(subject.family, 10, 0.6)]
    else:
        scopes = [(subject.family, 7, 0.6), (subject.core, 5, 0.4)]
    if subject.kind.group in {"software", "service", "food"}:
        scopes.append(("*", 6, 0.1))
    agreed = 0.35 + 1.5 * share("agreed", slug)  # some categories have a clear best, others none
    pool: dict[str, tuple[Invented, float]] = {}
    for scope, count, bonus in scopes:
        for slot in range(count):
            product = invent(subject.kind.name, scope, subject.label, slot)
            strength = 0.55 * product.appeal + 0.8 * normal(slug, product.name) + bonus
            if product.launch > 0:
                strength += 0.9
            pool.setdefault(product.name.casefold(), (product, agreed * strength))
    return tuple(sorted(pool.values(), key=lambda entry: -entry[1])[:9])


def _wander(days: float, period: float, *parts: object) -> float:
    """A smooth random function of time that comes to a new value every ``period`` days."""
    place = days / period + share("phase", *parts)
    knot = math.floor(place)
    left, right = normal(knot, *parts), normal(knot + 1, *parts)
    step = place - knot
    return left + (right - left) * step * step * (3 - 2 * step)


def trend(product: Invented, days: float) -> float:
    """How fashionable a product is: it rises for three weeks, stays up, falls for three weeks."""
    if not product.wave:
        return 0.0
    place = (days + 1000 * share("start", product.name)) % product.wave
    ramp = 21.0
    height = min(place / ramp, 1.0, max(0.0, (product.wave / 2 + ramp - place) / ramp))
    return TREND * (height - 0.5)


def ranked(slug: str, category: Category, assistant: str, days: float) -> list[Invented]:
    """The products as an assistant likes them."""
    opinions = []
    for product, strength in _pool(slug, title_text(category), category.nouns):
        if days < product.launch:
            continue
        name = product.name
        liking = (
            strength
            + OWN_TASTE * normal(assistant, name)
            + CELL_TASTE * normal(assistant, slug, name)
            + SLOW * _wander(days, 60, "slow", assistant, slug, name)
            + FAST * _wander(days, 6, "fast", assistant, slug, name)
            + trend(product, days)
        )
        opinions.append((liking, product))
    return [product for _, product in sorted(opinions, key=lambda entry: -entry[0])]


def title_text(category: Category) -> str:
    """A category's title without its leading "Best"."""
    return category.title.removeprefix("Best ").strip() or category.subject
