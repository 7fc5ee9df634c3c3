"""The sample assistants' words, as ``words.json`` holds them."""

from __future__ import annotations

from importlib import resources
from typing import Any

import msgspec
from msgspec import Struct

from store.polls.sample.draws import seed


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


class Voice(Struct, frozen=True):
    """How an assistant writes: templates by what they are for, and its usual latency in ms."""

    latency_ms: int
    first: tuple[str, ...]
    others: tuple[str, ...]
    fixes: tuple[str, ...]
    misses: tuple[str, ...]
    caveats: tuple[str, ...]


class Words(Struct, frozen=True):
    """All of ``words.json``; ``keywords`` say which kind a phrase means."""

    kinds: dict[str, Kind]
    keywords: dict[str, str]
    lists: dict[str, frozenset[str]]
    titles: dict[str, list[str]]
    singulars: dict[str, str]
    voices: dict[str, Voice]


def _group(name: str, of: str) -> str:
    """How products of a kind are named: games and books by titles, the others by their class."""
    if name in {"videogame", "boardgame", "book"}:
        return "title"
    return {"wear": "goods", "play": "goods", "dev": "software"}.get(of, of)


def read_words() -> Words:
    """The word lists, read once, when the module is imported."""
    raw: dict[str, Any] = msgspec.json.decode(
        resources.files(__package__).joinpath("words.json").read_bytes()
    )
    kinds, keywords = {}, {}
    for name, told in raw["kinds"].items():
        own, common = told["traits"], raw["classes"][told["class"]]
        traits = tuple(Trait(*line.split("|")) for line in own + common)
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
    voices = msgspec.convert(raw["voices"], dict[str, Voice])
    return Words(kinds, keywords, lists, raw["titles"], raw["singulars"], voices)


WORDS = read_words()
