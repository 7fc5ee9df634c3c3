"""The sample assistants: invented answers about invented products, plainly labelled as such.

Out of the box nobody is asked. ``reply`` makes up what an assistant would send, as a pure function
of the category, the assistant's name and the time, so that the same command always fills a history
with the same bytes. Every product is invented and every domain ends in ``.example``.

How an answer comes about:

1. The title's head noun phrase names a *family* ("free project management software for small
   teams" → "project management"), the words of the family a *kind* ("work").
2. Family, last word of the family and kind each own some products; together they are the
   category's pool. Each product has a strength in the category.
3. An assistant adds its own taste and a little drift: slow functions of the days since ``EPOCH``.
4. The best five are put into words in the assistant's voice. What is praised in a product is a
   property of the product, so that two assistants praise the same things.
"""

# ruff: noqa: PLR2004 - the shares and lengths below are clearest as themselves

from __future__ import annotations

import datetime as dt
import math
import re
import unicodedata
from functools import lru_cache
from random import Random
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from store.polls.providers import Reply, Tokens
from store.polls.providers.sample_words import (
    WORDS,
    Invented,
    Kind,
    Subject,
    Trait,
    digest,
    invent,
    normal,
    seed,
    share,
    subject_of,
)
from store.records import Category, Failure, FailureKind

if TYPE_CHECKING:
    from collections.abc import Mapping

EPOCH = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)

FAILING = 0.03  # share of polls that bring no answer
OWN_TASTE, CELL_TASTE = 0.34, 0.46
SLOW, FAST = 0.22, 0.06  # how far opinions wander: over two months, over a week
TREND = 1.5  # how far a trending product rises or falls


class SampleReply(Struct, frozen=True):
    """An invented reply, and the milliseconds it pretends to have taken."""

    reply: Reply
    latency_ms: int


# ------------------------------------------------------------------ opinions


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
    """The category's products in the order in which an assistant likes them at a time."""
    opinions = []
    for product, strength in _pool(slug, _text(category), category.nouns):
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


def _text(category: Category) -> str:
    return category.title.removeprefix("Best ").strip() or category.subject


# ------------------------------------------------------------------ voices

VOICES = ("terse", "warm", "technical", "comparing")

_FIRST = {
    "terse": ("The {head} to beat{tail}. {S}; {t}.", "First choice{tail}: {s}; {t}."),
    "warm": (
        "At the top of my {noun} list{tail}: {s}, and {t}.",
        "My warmest recommendation{tail}, because {s} and {t}.",
    ),
    "technical": (
        "Best overall result{tail}: {s} ({n}), and {t} ({m}).",
        "Leads on {n} and {m}: {s}; {t}. No other {head} here combines the two.",
    ),
    "comparing": (
        "Ahead of {other} on {n}: {s}. In addition, {t}, which decides first place{tail}.",
        "What puts this ahead of {other} is {n}: {s}, and {t}.",
    ),
}
_OTHERS = {
    "terse": (
        "{S}; {t}.",
        "{S}. {T}.",
        "{N}: {s}. Also, {t}.",
        "Pick this for {n}: {s}. {T}.",
        "Solid{tail}: {s}; {t}.",
        "Worth a look: {s}; {t}.",
        "A safe {noun} choice: {s}; {t}.",
    ),
    "warm": (
        "Easy to like: {s}, and {t}.",
        "You will be glad that {s}, and that {t}.",
        "If you care about {n}, look here first: {s}. Best of all, {t}.",
        "A happy choice{tail}, since {s} and {t}.",
        "A pleasure in everyday use: {s}, and {t}.",
        "There is a lot to enjoy here: {s}, and {t}.",
        "A lovely {noun} option{tail}: {s}, and {t}.",
    ),
    "technical": (
        "{N}: {s}. {M}: {t}.",
        "Two criteria decide here, {n} and {m}: {s}; {t}.",
        "Judged by {n}, near the top of this list: {s}. On {m}: {t}.",
        "Consistent on {n} and {m}: {s}; {t}.",
        "The main argument is {n}: {s}. Secondly, {t}.",
        "Above average on {n}: {s}. Equally sound on {m}: {t}.",
        "Among {noun} candidates, strong on {n}: {s}. {T}.",
    ),
    "comparing": (
        "Behind {other} overall, yet {s} and {t}.",
        "Compared with {other}, stronger on {n}: {s}; {t}.",
        "The alternative to {other} for {n}: {s}, and {t}.",
        "Closer to {other} than the rank suggests: {s}; {t}.",
        "Where {other} plays safe, this one stands out for {n}: {s}, and {t}.",
        "Less of an all-rounder than {other}, but {s} and {t}.",
        "The other {noun} option beside {other}: {s}, and {t}.",
    ),
}
_FIXES = {
    "terse": ("{F}.", "Needs {f}.", "Add {f}.", "Missing: {f}."),
    "warm": (
        "I would love to see {f}.",
        "With {f}, this would climb on my list.",
        "What I still wish for: {f}.",
    ),
    "technical": (
        "Would score higher with {f}.",
        "Missing so far: {f}.",
        "{F} would close the gap on {n}.",
    ),
    "comparing": (
        "{F} would help against {rival}.",
        "To pull away from {rival}: {f}.",
        "Still missing next to {rival}: {f}.",
    ),
}
_MISSES = {
    "terse": ("{W}.", "Close, but {w}."),
    "warm": ("Likeable, but {w}.", "Nearly on my list; sadly, {w}."),
    "technical": ("Left out because {w}.", "Falls short on {n}: {w}."),
    "comparing": ("Just behind {rival}: {w}.", "A match for {rival} in most things, but {w}."),
}
_CAVEATS = {
    "terse": ("{W}.", "One catch: {w}."),
    "warm": ("One thing to know before you choose {name}: {w}.", "Be prepared for one thing: {w}."),
    "technical": ("Known limitation of {name}: {w}.", "Check {n} before choosing: {w}."),
    "comparing": (
        "{name} gives up some ground on {n}: {w}.",
        "{rival} does better on {n}; here, {w}.",
    ),
}


def _voice(assistant: str) -> str:
    """Model A to D have a voice each; any other name has one of the four, always the same."""
    last = assistant.rpartition(" ")[2]
    number = ord(last) - ord("A") if re.fullmatch("[A-Z]", last) else seed("voice", assistant)
    return VOICES[number % len(VOICES)]


def _said(template: str, first: Trait, second: Trait | None = None, **names: str) -> str:
    """A template filled: s, w, f, n of the first trait, t, m of the second; capitals begin one."""
    told = {"s": first.strength, "w": first.weakness, "f": first.fix, "n": first.noun}
    if second is not None:
        told |= {"t": second.strength, "m": second.noun}
    told |= {letter.upper(): text[0].upper() + text[1:] for letter, text in told.items()}
    return template.format_map(told | names)


@lru_cache(maxsize=32768)
def _order(name: str, kind_name: str) -> tuple[int, ...]:
    """The traits of a kind, as numbers, from a product's greatest strength to its weakest side."""
    drawn = digest("traits", name)
    count = len(WORDS.kinds[kind_name].traits)
    return tuple(sorted(range(count), key=lambda i: drawn[2 * i : 2 * i + 2]))


def _strengths(names: list[str], kind: Kind) -> list[tuple[int, int]]:
    """Two traits to praise in each product, none of them twice in one answer."""
    taken: set[int] = set()
    leads = []
    for name in names:
        order = _order(name, kind.name)
        lead = next(i for i in (*[i for i in order if i < kind.own], *order) if i not in taken)
        taken.add(lead)
        leads.append(lead)
    seconds = []
    for name in names:
        second = next(i for i in _order(name, kind.name) if i not in taken)
        taken.add(second)
        seconds.append(second)
    return list(zip(leads, seconds, strict=True))


# ------------------------------------------------------------------ an answer


class _Author(Struct):
    """What it takes to write one answer: who writes, about what, and with which dice."""

    assistant: str
    subject: Subject
    draw: Random
    voice: str
    faults: set[int]

    def fault(self, name: str, praised: tuple[int, ...] = ()) -> Trait:
        """The weakest side of a product that was not praised and not named before."""
        order = _order(name, self.subject.kind.name)
        own = self.subject.kind.own
        rest = [i for i in reversed(order) if i not in praised]
        rest.sort(key=lambda i: i >= own)  # what is true of this kind of thing tells more
        worst = next((i for i in rest if i not in self.faults), rest[0])
        self.faults.add(worst)
        return self.subject.kind.traits[worst]

    def templates(self, table: Mapping[str, tuple[str, ...]], count: int) -> list[str]:
        """So many templates of the voice, as different as can be."""
        own = list(table[self.voice])
        self.draw.shuffle(own)
        return [own[i % len(own)] for i in range(count)]

    def written(self, name: str) -> str:
        """A product's name in the assistant's own spelling: nearly always the product's."""
        habit = share("spelling", self.assistant, name)
        if habit < 0.06:
            plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
            return re.sub(r"\b([A-Z])(\d)", r"\1-\2", plain.replace(" & ", " and "))
        label = self.subject.label
        if habit > 0.985 and label and name.count(" ") == 0:
            return f"{name} {label}"
        return name


def _reason(author: _Author, template: str, traits: tuple[Trait, Trait], other: str) -> str:
    subject = author.subject
    return _said(
        template, *traits, head=subject.head, noun=subject.noun, tail=subject.tail, other=other
    )


def _fixes(author: _Author, name: str, praised: tuple[int, int], rival: str) -> list[str]:
    count = author.draw.choices((0, 1, 2), (10, 80, 10))[0]
    templates = author.templates(_FIXES, count)
    return [_said(one, author.fault(name, praised), rival=rival) for one in templates]


def _picks(author: _Author, products: list[Invented]) -> list[dict[str, Any]]:
    names = [product.name for product in products]
    kind, draw = author.subject.kind, author.draw
    templates = [draw.choice(_FIRST[author.voice]), *author.templates(_OTHERS, len(names) - 1)]
    picks = []
    for i, (product, praised) in enumerate(zip(products, _strengths(names, kind), strict=True)):
        rival = names[i - 1] if i else names[1]
        traits = (kind.traits[praised[0]], kind.traits[praised[1]])
        domain: str | None = product.domain
        habit = share("domain", author.assistant, product.name)
        if habit < 0.07:
            domain = None if habit < 0.04 else f"https://www.{domain}/"
        picks.append(
            {
                "name": author.written(product.name),
                "domain": domain,
                "reason": _reason(author, templates[i], traits, rival),
                "fixes": _fixes(author, product.name, praised, rival),
            }
        )
    return picks


def _near_misses(author: _Author, products: list[Invented], rival: str) -> list[dict[str, str]]:
    templates = author.templates(_MISSES, len(products))
    return [
        {
            "name": author.written(product.name),
            "reason": _said(template, author.fault(product.name), rival=rival),
        }
        for product, template in zip(products, templates, strict=True)
    ]


def _caveat(author: _Author, ranked: list[Invented], praised: tuple[int, ...]) -> str | None:
    if author.draw.random() < 0.1:
        return None
    name, rival = ranked[0].name, ranked[1].name
    author.faults.clear()
    template = author.draw.choice(_CAVEATS[author.voice])
    return _said(template, author.fault(name, praised), name=name, rival=rival)


def _answer(author: _Author, ranked: list[Invented]) -> dict[str, Any]:
    count = author.draw.choices((5, 4, 3, 6), (84, 9, 4, 3))[0]
    misses = author.draw.choice((1, 1, 2))
    picks = _picks(author, ranked[:count])
    praised = _strengths([ranked[0].name], author.subject.kind)[0]
    return {
        "picks": picks,
        "near_misses": _near_misses(author, ranked[count : count + misses], ranked[count - 1].name),
        "caveat": _caveat(author, ranked, praised),
    }


def _sent(answer: dict[str, Any], draw: Random, noun: str) -> str:
    """The text as a model sends it: mostly bare JSON, now and then in a fence or in prose."""
    text = msgspec.json.encode(answer).decode()
    form = draw.random()
    if form < 0.04:
        return f"```json\n{text}\n```"
    if form < 0.06:
        return f"Here is my ranking of the {noun} options you asked about.\n\n{text}"
    return text


# ------------------------------------------------------------------ failures

_FAILURES: tuple[tuple[FailureKind, int, str, int], ...] = (
    ("timeout", 22, "No answer came within 60 seconds.", 60_000),
    ("rate_limited", 18, "The service asked for fewer requests (HTTP 429).", 140),
    ("http", 16, "The service answered with an internal error (HTTP 503).", 900),
    ("network", 14, "The connection was closed before an answer came.", 2_300),
    ("truncated", 8, "The answer ended at the output limit.", 14_000),
    ("refusal", 6, "The model declined to rank products.", 1_900),
)
_UNREADABLE = 22  # the weight of texts that the parser refuses, beside the weights above
_LATENCIES = {"terse": 1_900, "warm": 4_200, "technical": 6_800, "comparing": 3_100}


def _unreadable(text: str, answer: dict[str, Any], draw: Random) -> str:
    """A text that is no answer: cut off, a list, nothing, or another object."""
    form = draw.randrange(4)
    if form == 0:
        return text[: len(text) * 2 // 3]
    if form == 1:
        rows = enumerate(answer["picks"], 1)
        return "\n".join(f"{rank}. {pick['name']}: {pick['reason']}" for rank, pick in rows)
    return "" if form == 2 else '{"ranking": []}'


def _served_model(assistant: str, at: dt.datetime) -> str:
    name = re.sub(r"[^a-z0-9]+", "-", assistant.lower().removeprefix("model ")).strip("-")
    return f"sample-{name or 'x'}-{at.year}-{(at.month - 1) // 3 * 3 + 1:02d}"


def reply(slug: str, category: Category, assistant: str, at: dt.datetime) -> SampleReply:
    """What ``assistant`` makes up about the category at a time, which must carry its zone."""
    at = at.astimezone(dt.UTC)
    days = (at - EPOCH) / dt.timedelta(days=1)
    subject, voice = subject_of(_text(category), category.nouns), _voice(assistant)
    draw = Random(seed("words", slug, assistant, at.date()))
    author = _Author(assistant, subject, draw, voice, set())
    answer = _answer(author, ranked(slug, category, assistant, days))
    text = _sent(answer, draw, subject.noun)

    chance = Random(seed("chance", slug, assistant, int(at.timestamp())))
    latency = int(_LATENCIES[voice] * math.exp(chance.gauss(0, 0.25)))
    request_id = f"sample-{digest('request', slug, assistant, int(at.timestamp())).hex()[:20]}"
    if chance.random() < FAILING:
        weights = [*(weight for _, weight, _, _ in _FAILURES), _UNREADABLE]
        number = chance.choices(range(len(weights)), weights)[0]
        if number < len(_FAILURES):
            kind, _, error, took = _FAILURES[number]
            known = request_id if kind not in {"timeout", "network"} else None
            failed = Reply(outcome=Failure(kind=kind, error=error), request_id=known)
            return SampleReply(failed, took + int(took * 0.2 * chance.random()))
        text = _unreadable(text, answer, chance)
    tokens = Tokens(input=430 + len(category.question) // 4, output=len(text.encode()) // 4 + 1)
    return SampleReply(
        Reply(
            outcome=text,
            served_model=_served_model(assistant, at),
            request_id=request_id,
            tokens=tokens,
        ),
        latency,
    )
