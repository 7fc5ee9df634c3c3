"""What the sample assistants know: their words, a category's subject, and invented products.

The words stand in ``sample_words.json`` and are read once, when this module is imported. The draws
(``share``, ``normal``) are pure functions of their arguments.
"""

# ruff: noqa: PLR2004 - the shares and lengths below are clearest as themselves

from __future__ import annotations

import math
import re
import unicodedata
from functools import lru_cache
from hashlib import blake2b
from importlib import resources
from random import Random
from typing import Any

import msgspec
from msgspec import Struct


class Trait(Struct, frozen=True):
    """One thing that can be said of a product; all but ``noun`` are clauses or noun phrases."""

    noun: str
    strength: str
    weakness: str
    fix: str


class Kind(Struct, frozen=True):
    """A kind of category: which names its products bear and what is said of them.

    The first ``own`` of the ``traits`` belong to this kind, the others to its whole class.
    """

    name: str
    group: str
    brands: tuple[str, ...]
    tags: tuple[str, ...]
    own: int
    traits: tuple[Trait, ...]


class Subject(Struct, frozen=True):
    """What a category is about: the first three for sentences, the rest for its products.

    ``head`` stands after "the", ``noun`` before another noun ("running shoes", "running shoe").
    """

    head: str
    noun: str
    tail: str
    family: str
    core: str
    label: str
    kind: Kind


class Invented(Struct, frozen=True):
    """An invented product. ``launch`` and ``wave`` are days; ``wave`` is 0 without a trend."""

    name: str
    domain: str
    appeal: float
    launch: float
    wave: float


class Words(Struct, frozen=True):
    """All of ``sample_words.json``; ``keywords`` say which kind a phrase means."""

    kinds: dict[str, Kind]
    keywords: dict[str, str]
    lists: dict[str, frozenset[str]]
    titles: dict[str, list[str]]


def _trait(line: str) -> Trait:
    return Trait(*line.split("|"))


def _group(name: str, of: str) -> str:
    """How products of a kind are named: games and books by titles, the others by their class."""
    if name in {"videogame", "boardgame", "book"}:
        return "title"
    return {"wear": "goods", "play": "goods", "dev": "software"}.get(of, of)


def read_words() -> Words:
    """The word lists, read once, when the module is imported."""
    raw: dict[str, Any] = msgspec.json.decode(
        resources.files("store.polls.providers").joinpath("sample_words.json").read_bytes()
    )
    kinds, keywords = {}, {}
    for name, told in raw["kinds"].items():
        own = [_trait(line) for line in told["traits"]]
        common = [_trait(line) for line in raw["classes"][told["class"]]]
        traits = tuple(own + common)
        brands = sorted(raw["brands"][told["brands"]], key=lambda brand: seed(name, brand))
        kinds[name] = Kind(
            name=name,
            group=_group(name, told["class"]),
            brands=tuple(brands[:26]),
            tags=tuple(raw["tags"][told["brands"]]),
            own=len(own) or len(traits),
            traits=traits,
        )
        keywords.update(dict.fromkeys(filter(None, told["words"].split(", ")), name))
    lists = {
        name: frozenset(told.split(", ")) for name, told in raw.items() if isinstance(told, str)
    }
    return Words(kinds, keywords, lists, raw["titles"])


def digest(*parts: object) -> bytes:
    """64 bytes that depend on the parts alone, the same on every machine."""
    return blake2b("\x1f".join(map(str, parts)).encode()).digest()


def seed(*parts: object) -> int:
    """A number below 2**64 that depends on the parts alone."""
    return int.from_bytes(digest(*parts)[:8])


def share(*parts: object) -> float:
    """A number from 0 up to 1 that depends on the parts alone."""
    return seed(*parts) / 2**64


def normal(*parts: object) -> float:
    """A number with mean 0 and deviation 1, never beyond 3.5: the sum of four even ones."""
    drawn = digest(*parts)
    total = sum(int.from_bytes(drawn[i : i + 2]) for i in (0, 2, 4, 6))
    return float((total / 65535 - 2) * math.sqrt(3))


WORDS = read_words()

# ------------------------------------------------------------------ what a category is about

_TAIL = re.compile(r"(?<!quote)(?<!speech)(?<!text) (?:for|under|with|without|that|to) ")
_IRREGULAR = {
    "mice": "mouse",
    "knives": "knife",
    "shelves": "shelf",
    "cookies": "cookie",
    "movies": "movie",
    "analytics": "analytics",
    "lens": "lens",
    "news": "news",
    "series": "series",
    "gps": "gps",
    "canvas": "canvas",
    "jeans": "jeans",
    "leggings": "leggings",
    "binoculars": "binoculars",
    "clippers": "clippers",
    "goggles": "goggles",
    "glasses": "glasses",
    "sales": "sales",
    "shears": "shears",
}


def _singular(word: str) -> str:
    lower = word.lower()
    if lower in _IRREGULAR:
        return _IRREGULAR[lower]
    if lower.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if lower.endswith(("ches", "shes", "xes", "sses")):
        return word[:-2]
    if lower.endswith("s") and not lower.endswith(("ss", "us", "is", "'s")) and len(word) > 3:
        return word[:-1]
    return word


def _without_qualifiers(words: list[str]) -> list[str]:
    """The words without what only narrows the choice; what remains is never empty."""
    qualifiers = WORDS.lists["qualifiers"]
    while len(words) > 1:
        taken = next(
            (n for n in (3, 2, 1) if n < len(words) and " ".join(words[:n]) in qualifiers), 0
        )
        if not taken or (
            len(words) - taken == 1 and _singular(words[-1]) in WORDS.lists["generic"]
        ):
            break
        words = words[taken:]
    return words


def _named_kind(words: list[str]) -> Kind | None:
    """The kind the longest phrase names, phrases at the end first."""
    for end in range(len(words), 0, -1):
        for start in range(end):
            phrase = [*words[start : end - 1], _singular(words[end - 1])]
            if len(phrase) == 1 and len(words) > 1 and phrase[0] in WORDS.lists["generic"]:
                continue
            for text in (" ".join(phrase), " ".join(words[start:end])):
                if text in WORDS.keywords:
                    return WORDS.kinds[WORDS.keywords[text]]
    return None


def _kind(words: list[str]) -> Kind:
    """The kind of a head noun phrase; what ends in "software" or "site" is never a thing."""
    last, kind = _singular(words[-1]), _named_kind(words)
    if kind is None:
        groups = [g for g in ("software", "service") if last in WORDS.lists[f"{g} words"]]
        return WORDS.kinds[f"generic {(*groups, 'goods')[0]}"]
    if kind.group in {"goods", "food", "title"}:
        if last in {"software", "app"}:
            return WORDS.kinds["generic software"]
        if last in {"site", "service", "company"}:
            return WORDS.kinds["generic service"]
    return kind


def _label(family: list[str], nouns: tuple[str, ...]) -> str:
    """The category's noun that product names of this family may carry, as a name shows it."""
    for noun in nouns:
        if _singular(noun.lower()).split()[-1] == family[-1] and len(noun) <= 18:
            return " ".join(
                word if word != word.lower() else word.capitalize() for word in noun.split()
            )
    return ""


@lru_cache(maxsize=4096)
def subject_of(text: str, nouns: tuple[str, ...]) -> Subject:
    """What a category is about, from its title without "Best" and its nouns."""
    found = _TAIL.search(text)
    head, tail = (text[: found.start()], text[found.start() :]) if found else (text, "")
    words = head.lower().split()
    family = _without_qualifiers(words)
    if len(family) == 1 and _singular(family[0]) in WORDS.lists["generic"]:
        family = tail.lower().split()[1:] or family
    kind = _kind(
        words if len(family) <= len(words) and family[-1] == words[-1] else family + words[-1:]
    )
    if kind.group in {"software", "service"}:
        while (
            len(family) > 1
            and _singular(family[-1]) in WORDS.lists["generic"]
            and family[-2] not in {"a", "of"}
        ):
            family = family[:-1]
    family = [*family[:-1], _singular(family[-1])]
    core = family[-2:] if family[-1] in WORDS.lists["vague"] else family[-1:]
    shown = head.split()
    if _singular(words[-1]) in WORDS.lists["units"]:
        shown[-1] = _singular(shown[-1])
    return Subject(
        head=" ".join(shown),
        noun=" ".join([*shown[:-1], _singular(shown[-1])]),
        tail=tail,
        family=" ".join(family),
        core=" ".join(core),
        label=_label(family, nouns),
        kind=kind,
    )


# ------------------------------------------------------------------ the products


def _title(draw: Random) -> str:
    """The title of a game or a book."""
    first, second, places = (WORDS.titles[name] for name in ("first", "second", "places"))
    form = draw.randrange(4)
    if form == 0:
        return f"The {draw.choice(first)} {draw.choice(second)}"
    if form == 1:
        return f"{draw.choice(first)} {draw.choice(second)}"
    if form == 2:
        return f"The {draw.choice(second)} of {draw.choice(places)}"
    one, other = draw.sample(second, 2)
    return f"{one} & {other}"


def _model(draw: Random, brand: str, tags: tuple[str, ...], scope: str) -> str:
    """A thing's name: a letter of its family and a number, a word, or a word and a number."""
    form, tag = draw.random(), draw.choice(tags)
    if form < 0.34:
        letter = scope[0].upper() if scope[0].isalpha() else "X"
        return f"{brand} {letter}{draw.choice((2, 3, 4, 5, 7, 9, 10, 20, 40, 55, 80, 200, 300))}"
    if form < 0.62:
        return f"{brand} {tag} {draw.choice((2, 3, 4, 5, 6, 8, 12, 20, 30, 45, 60))}"
    return f"{brand} {tag}" + draw.choice(("", "", "", " Pro", " Mini", " Plus", "+"))


def _place(draw: Random, brand: str, tags: tuple[str, ...], label: str) -> str:
    forms = [f"{brand} {draw.choice(tags)}", brand, f"Port {brand}", f"Lake {brand}"]
    return f"{brand} {label}" if label else draw.choice(forms)


def _name(kind: Kind, scope: str, label: str, slot: int) -> tuple[str, str]:
    """A product's name and the brand in it. Odd slots may hold the successor of the slot before."""
    draw = Random(seed("name", kind.name, scope, slot))
    if kind.group == "title":
        return (title := _title(draw)), title
    # a few brands are everywhere, most are rare
    brand = kind.brands[int(len(kind.brands) * draw.random() ** 1.5)]
    form = draw.random()
    alone = {"software": 0.4, "service": 0.6, "food": 0.3}.get(kind.group, 0.0)
    if kind.group == "place":
        name = _place(draw, brand, kind.tags, label)
    elif scope == "*" or form < alone:
        name = brand
    elif label and form < alone + 0.18:
        name = f"{brand} {label}"
    elif kind.group == "goods":
        name = _model(draw, brand, kind.tags, scope)
    else:
        name = f"{brand} {draw.choice(kind.tags)}"
    return name, brand


def _successor(name: str) -> str:
    """The next version of a name that ends in a number below ten: X4 → X5."""
    last = name[-1]
    if last.isdigit() and not name[-2].isdigit() and last != "9":
        return f"{name[:-1]}{int(last) + 1}"
    return name


def _domain(text: str) -> str:
    folded = unicodedata.normalize("NFKD", text.replace("&", " and ").replace("+", " plus "))
    plain = "".join(c for c in folded if c.isascii() and (c.isalnum() or c == " ")).lower()
    return "".join(plain.split()) + ".example"


@lru_cache(maxsize=16384)
def invent(kind_name: str, scope: str, label: str, slot: int) -> Invented:
    """The product in a numbered place of a family, a family's last word or, for ``*``, a kind."""
    kind = WORDS.kinds[kind_name]
    older = slot - 1 if slot % 4 == 1 and kind.group == "goods" else slot
    name, brand = _name(kind, scope, label, older)
    if older != slot:
        newer = _successor(name)
        name, brand = (newer, brand) if newer != name else _name(kind, scope, label, slot)
    launch = -1.0e9
    if slot == 2 and share("launches", kind_name, scope) < 0.35:
        launch = 45 + 900 * share("launch", kind_name, scope)
    fashionable = share("fashion", name) < (0.2 if scope == "*" else 0.07)
    return Invented(
        name=name,
        domain=_domain(name if kind.group in {"title", "place"} else brand),
        appeal=normal("appeal", kind_name, scope, slot),
        launch=launch,
        wave=80 + 60 * share("wave", name) if fashionable else 0,
    )
