"""The sample assistants' words, as ``words.json`` holds them."""

from importlib import resources
from typing import Any

import msgspec
from msgspec import Struct

from sample.draws import seed


class Trait(Struct, frozen=True):
    """One thing that can be said of a product; all but ``noun`` are clauses or noun phrases."""

    noun: str
    strength: str
    weakness: str
    fix: str


class Kind(Struct, frozen=True):
    """A kind of category; the first ``own`` of its ``traits`` are its own, the rest its class's."""

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


def _group(name: str, of: str) -> str:
    """How products of a kind are named: games and books by titles, the others by their class."""
    if name in {"videogame", "boardgame", "book"}:
        return "title"
    return {"wear": "goods", "play": "goods", "dev": "software"}.get(of, of)


_RAW: dict[str, Any] = msgspec.json.decode(
    resources.files(__package__).joinpath("words.json").read_bytes()
)


def _kind(name: str, told: dict[str, Any]) -> Kind:
    own, common = told["traits"], _RAW["classes"][told["class"]]
    traits = tuple(Trait(*line.split("|")) for line in own + common)
    brands = sorted(_RAW["brands"][told["brands"]], key=lambda brand: seed(name, brand))
    return Kind(
        name=name,
        group=_group(name, told["class"]),
        brands=tuple(brands[:26]),
        tags=tuple(_RAW["tags"][told["brands"]]),
        own=len(own) or len(traits),
        traits=traits,
    )


KINDS = {name: _kind(name, told) for name, told in _RAW["kinds"].items()}
KEYWORDS = {
    phrase: name
    for name, told in _RAW["kinds"].items()
    for phrase in filter(None, told["words"].split(", "))
}
"""Which kind a phrase means."""
LISTS = {name: frozenset(told.split(", ")) for name, told in _RAW.items() if isinstance(told, str)}
TITLES: dict[str, list[str]] = _RAW["titles"]
SINGULARS: dict[str, str] = _RAW["singulars"]
VOICES = msgspec.convert(_RAW["voices"], dict[str, Voice])
