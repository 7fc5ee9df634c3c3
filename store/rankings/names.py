"""Product names: when two spellings are one product, and what a product is called in an address.

Nothing is ever merged by a fuzzy score. A spelling has a *key*; a product owns the keys of its
name and aliases; a key claimed twice belongs to nobody (CONTRACT section 7). A spelling that no
product file owns stands for a provisional product of its own, known by its key.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import defaultdict
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct
from slugify import slugify

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from store.records import Product

MAX_SLUG = 100

_TRADE_SIGNS = re.compile("[™®©℠]")
_SPELLED_OUT = {"+": " plus ", "#": " sharp ", "&": " and "}
_BARE_SCRIPTS = ("LATIN", "GREEK", "CYRILLIC")
_BETWEEN_DIGITS = re.compile(r"(?<=\d)[^\w]+(?=\d)|(?<=\d)_+(?=\d)")

ProductId = str
"""A product file's slug, or ``=`` and the key of a provisional product's name."""


class Resolution(Struct, frozen=True):
    """The product that a spelling stands for, and the rule that says so."""

    product: ProductId
    rule: str


class Claim(Struct, frozen=True, order=True):
    """A key that a product file owns, and the name or alias it comes from."""

    key: str
    slug: str
    title: str


@lru_cache(maxsize=100_000)
def key(name: str) -> str:
    """What two spellings of one name have in common: letters and digits, plainly written.

    Whatever separates two digits is kept as one ``.``, so that ``3.1`` is not ``31``.
    """
    text = _spell_out(unicodedata.normalize("NFKC", _TRADE_SIGNS.sub("", name)).casefold())
    text = _BETWEEN_DIGITS.sub("\0", _without_accents(text))
    kept = "".join(
        "." if char == "\0" else char for char in text if char == "\0" or _is_of_a_word(char)
    )
    return kept or name.casefold()


@lru_cache(maxsize=100_000)
def slug(name: str) -> str:
    """The address of a name; six hex digits of its key's hash tell apart what a slug cannot."""
    text = unicodedata.normalize("NFKC", _TRADE_SIGNS.sub("", name))
    plain: str = slugify(_spell_out(text))
    if len(plain) <= MAX_SLUG and key(plain) == key(name):
        return plain
    return hashed_slug(name)


def hashed_slug(name: str) -> str:
    """The address of a name whose plain slug is not its own."""
    digest = hashlib.sha256(key(name).encode()).hexdigest()[:6]
    plain: str = slugify(_spell_out(name), max_length=MAX_SLUG - 7)
    return f"{plain}-{digest}" if plain else digest


def provisional(name: str) -> ProductId:
    """The identity of a product that no file owns."""
    return f"={key(name)}"


def without_nouns(name: str, nouns: Iterable[str]) -> str:
    """A name without the category's nouns at its end; never empty."""
    endings = sorted({tuple(map(key, noun.split())) for noun in nouns}, key=len, reverse=True)
    words = name.split()
    keys = [key(word) for word in words]
    shortened = True
    while shortened:
        shortened = False
        for ending in endings:
            if len(keys) > len(ending) and tuple(keys[-len(ending) :]) == ending:
                keys = keys[: -len(ending)]
                shortened = True
    return " ".join(words[: len(keys)])


class Names:
    """Resolves spellings by the product files, exactly and explainably."""

    def __init__(self, products: Mapping[str, Product]) -> None:
        self.products = products
        self._titles = [
            (slug, title)
            for slug, product in products.items()
            for title in (product.name, *product.aliases)
        ]
        self._owned = _by_key(Claim(key(title), slug, title) for slug, title in self._titles)
        self._with_maker = _by_key(self._maker_claims())
        self._by_domain = defaultdict(set)
        for slug_, product in products.items():
            if product.domain and product.domain_is_product:
                self._by_domain[product.domain].add(slug_)
        self._by_last_word = defaultdict(list)
        for slug_, title in self._titles:
            self._by_last_word[key(title.split()[-1])].append((slug_, title))
        self._short: dict[tuple[str, ...], dict[str, set[Claim]]] = {}

    def contested(self) -> list[tuple[Claim, ...]]:
        """The keys of names and aliases that several products claim, each with its claims."""
        return [
            tuple(sorted(claims))
            for claims in self._owned.values()
            if len({claim.slug for claim in claims}) > 1
        ]

    def resolve(self, name: str, domain: str | None, nouns: Sequence[str]) -> Resolution:
        """The product that a model's spelling stands for in a category with these nouns."""
        own = self._owned.get(key(name), set())
        if owners := {claim.slug for claim in own}:
            if len(owners) == 1:
                return Resolution(owners.pop(), "name or alias")
            return Resolution(provisional(name), "claimed by several products")
        matches = self._by_variant(name, tuple(nouns))
        owners = {owner for owner in matches if not self._blocked(owner, domain)}
        if len(owners) == 1:
            return Resolution(owners.pop(), "name without maker or noun")
        at_domain = self._by_domain.get(domain, set()) if domain else set()
        if len(at_domain) == 1:
            return Resolution(next(iter(at_domain)), "domain is the product")
        return Resolution(provisional(name), "own name")

    def _by_variant(self, name: str, nouns: tuple[str, ...]) -> set[str]:
        keys = {key(name), key(without_nouns(name, nouns))}
        tables = (self._owned, self._with_maker, self._without_nouns(nouns))
        return {claim.slug for table in tables for each in keys for claim in table.get(each, ())}

    def _blocked(self, owner: str, domain: str | None) -> bool:
        """Whether a model gave another site than the product's, which no likeness outweighs."""
        own = self.products[owner].domain
        return bool(own and domain and own != domain)

    def _maker_claims(self) -> Iterator[Claim]:
        """Each title with its maker taken away where it stands in front, put there where not."""
        for slug_, title in self._titles:
            maker = self.products[slug_].maker
            if not maker:
                continue
            words, front = title.split(), len(maker.split())
            if key(" ".join(words[:front])) == key(maker):
                rest = " ".join(words[front:])
                if _tells_apart(rest):
                    yield Claim(key(rest), slug_, title)
            elif _tells_apart(title):
                yield Claim(key(f"{maker} {title}"), slug_, title)

    def _without_nouns(self, nouns: tuple[str, ...]) -> dict[str, set[Claim]]:
        """The keys of all titles that end in one of a category's nouns, without them."""
        if not nouns:
            return {}
        if nouns not in self._short:
            endings = sorted({key(noun.split()[-1]) for noun in nouns})
            shortened = (
                (slug_, title, without_nouns(title, nouns))
                for ending in endings
                for slug_, title in self._by_last_word.get(ending, ())
            )
            self._short[nouns] = _by_key(
                Claim(key(short), slug_, title) for slug_, title, short in shortened
            )
        return self._short[nouns]


def _by_key(claims: Iterable[Claim]) -> dict[str, set[Claim]]:
    table: defaultdict[str, set[Claim]] = defaultdict(set)
    for claim in claims:
        table[claim.key].add(claim)
    return dict(table)


def _tells_apart(rest: str) -> bool:
    """Whether a name still says which product it is without its maker."""
    return len(rest.split()) > 1 or any(char.isdigit() for char in rest)


def _spell_out(text: str) -> str:
    for sign, word in _SPELLED_OUT.items():
        text = text.replace(sign, word)
    return text


def _is_of_a_word(char: str) -> bool:
    return unicodedata.category(char)[0] in "LMN"


def _without_accents(text: str) -> str:
    """Letters of Latin, Greek and Cyrillic without their marks; marks elsewhere are letters."""
    if text.isascii():
        return text
    kept: list[str] = []
    bare = False
    for char in unicodedata.normalize("NFD", text):
        if unicodedata.combining(char):
            if not bare:
                kept.append(char)
        else:
            bare = unicodedata.name(char, "").startswith(_BARE_SCRIPTS)
            kept.append(char)
    return unicodedata.normalize("NFC", "".join(kept))
