"""Invented products: a numbered place of a family always holds the same one."""

import unicodedata
from functools import lru_cache
from random import Random

from msgspec import Struct

from sample.draws import normal, seed, share
from sample.words import KINDS, TITLES, Kind


class Invented(Struct, frozen=True):
    """An invented product. ``launch`` and ``wave`` are days; ``wave`` is 0 without a trend."""

    name: str
    domain: str
    appeal: float
    launch: float
    wave: float


def _title(draw: Random) -> str:
    first, second, places = (TITLES[name] for name in ("first", "second", "places"))
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
        forms = [f"{brand} {draw.choice(kind.tags)}", brand, f"Port {brand}", f"Lake {brand}"]
        name = f"{brand} {label}" if label else draw.choice(forms)
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
    kind = KINDS[kind_name]
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
