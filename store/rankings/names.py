"""Product names: when two spellings are one product, and what a product is called in an address.

Nothing is ever merged by a fuzzy score. A spelling has a *key*; a product owns the keys of its
name and aliases; a key claimed twice belongs to nobody (store/README.md, Names). A spelling that
no product file owns stands for a provisional product of its own, known by its key.
"""

import hashlib
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice

from msgspec import Struct
from slugify import slugify

from store.records import Product
from store.text import IGNORABLE, MAX_SLUG

_DIGITS = 6
"""Hex digits of a digest in a slug: 16.7 million values; published, so never to be changed."""
_AS_HASHED = re.compile(rf"-[0-9a-f]{{{_DIGITS}}}$")

_IGNORED = re.compile(f"[™®©℠{IGNORABLE}]")
_SPELLED_OUT = {"+": " plus ", "#": " sharp ", "&": " and "}
_BARE_SCRIPTS = ("LATIN", "GREEK", "CYRILLIC")
_ASCII_SIGNS = dict.fromkeys(code for code in range(128) if not chr(code).isalnum())
_BETWEEN_DIGITS = re.compile(r"(?<=\d)[\W_]+(?=\d)")

ProductId = str
"""A product file's slug, or ``=`` and the key of a provisional product's name."""

Spelling = tuple[str, str | None]
"""A product's name as a model wrote it, and the domain it gave."""


NAMED = "name or alias"
"""The rule by which a curator names a product; every other rule infers it."""


class Resolution(Struct, frozen=True):
    """The product that a spelling stands for, and the rule that says so."""

    product: ProductId
    rule: str


class NameClaim(Struct, frozen=True, order=True):
    """A key that a product file owns, and the name or alias it comes from."""

    key: str
    slug: str
    title: str


class _Form(Struct, frozen=True):
    """A way to write a product: ``rest``, with its maker in ``front`` where the title lacks it.

    ``by_maker`` says that the maker was added or removed; ``rest`` must then be unambiguous alone.
    """

    slug: str
    rest: str
    front: str = ""
    by_maker: bool = False


def key(name: str) -> str:
    """Return what spellings of one name have in common: letters and digits, plainly written.

    Whatever separates two digits is kept as one ``.``, so that ``3.1`` is not ``31``.

    >>> key("Café-Crème™ 3.1"), key("C++"), key("AT&T")
    ('cafecreme3.1', 'cplusplus', 'atandt')
    """
    if _is_simple(name):  # most names are, and each is looked at several times
        return name.replace(" ", "").lower()
    parts = _BETWEEN_DIGITS.split(_without_accents(_plain(name).casefold()))
    return ".".join(map(_joined, parts)) or name.casefold()


def slug(name: str) -> str:
    """Return the first choice of a name's address, which another product may bear.

    It is the plain one, or ends in six hex digits of its key's SHA-256 if another name may have the
    plain one too, or if that ends as if it had digits (store/README.md, Names).

    >>> slug("Zoho CRM"), slug("Größe 3.1")
    ('zoho-crm', 'grosse-3-1')
    """
    return next(slugs(name))


# Where these rules change, `aggregates._addresses` has to go on yielding what they gave before.
def slugs(name: str) -> Iterator[str]:
    """Yield every address that a name can have, in order of preference, without end.

    After :func:`slug` comes the one with six digits of the digest, then one with all, which no
    other name has. A product file may still have that slug; then follows the digest of the digest.
    """
    plain, own_key = _transliterated(name), key(name)
    digest = _digest(own_key)
    hashed = _with_digits(plain, digest[:_DIGITS])
    yield hashed if _AS_HASHED.search(plain) or not _is_own(plain, own_key) else plain
    yield hashed
    while True:
        yield _with_digits(plain, digest)
        digest = _digest(digest)


def plain_slug(name: str) -> str | None:
    """Return the address of a name without a digest; ``None`` if another name has it too."""
    plain = _transliterated(name)
    return plain if _is_own(plain, key(name)) else None


def _is_own(plain: str, own_key: str) -> bool:
    """Return whether a plain slug is short enough and has the key of its name."""
    return len(plain) <= MAX_SLUG and key(plain) == own_key


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _with_digits(plain: str, digits: str) -> str:
    front = plain[: MAX_SLUG - 1 - len(digits)].strip("-")
    return f"{front}-{digits}" if front else digits


def _transliterated(name: str) -> str:
    if _is_simple(name):
        return "-".join(name.lower().split())
    slugified: str = slugify(_plain(name))
    return slugified


def provisional(name: str) -> ProductId:
    """Return the identity of a product that no file owns."""
    return f"={key(name)}"


def without_nouns(name: str, nouns: Sequence[str]) -> str:
    """Return a name without the category's nouns at its end; never empty.

    >>> without_nouns("Zoho CRM Software", ["CRM", "software"])
    'Zoho'
    """
    words = name.split()
    endings = _endings(tuple(nouns))
    while words:
        alike = endings.get(key(words[-1]), ())
        ending = next((ending for ending in alike if _end_in(words, ending)), None)
        if ending is None:
            break
        del words[-len(ending) :]
    return " ".join(words)


class Names:
    """The names of the product files, by which spellings are resolved exactly and explainably."""

    def __init__(self, products: Mapping[str, Product]) -> None:
        self.products = products
        self._owned: defaultdict[str, set[NameClaim]] = defaultdict(set)
        self._forms: defaultdict[str, set[str]] = defaultdict(set)
        self._by_last_word: defaultdict[str, list[_Form]] = defaultdict(list)
        self._by_domain: defaultdict[str, set[str]] = defaultdict(set)
        self._forms_without_nouns: dict[tuple[str, ...], Mapping[str, set[str]]] = {}
        for slug_, product in products.items():
            for title in (product.name, *product.aliases):
                self._owned[key(title)].add(NameClaim(key(title), slug_, title))
                for form in _forms(slug_, title, product.maker):
                    self._forms[key(f"{form.front} {form.rest}")].add(slug_)
                    self._by_last_word[key(form.rest.split()[-1])].append(form)
            if product.domain and product.domain_is_product:
                self._by_domain[product.domain].add(slug_)

    def contested_keys(self) -> list[tuple[NameClaim, ...]]:
        """Return the keys that names of several products claim, each with its claims."""
        return [
            tuple(sorted(claims))
            for claims in self._owned.values()
            if len({claim.slug for claim in claims}) > 1
        ]

    def resolve(self, name: str, domain: str | None, nouns: Sequence[str]) -> Resolution:
        """Return the product that a model's spelling stands for in a category with these nouns."""
        own_key = key(name)
        owners = {claim.slug for claim in self._owned.get(own_key, ())}
        if len(owners) == 1:
            return Resolution(owners.pop(), NAMED)
        if owners:
            return Resolution(f"={own_key}", "claimed by several products")
        match tuple(self._alike(name, own_key, tuple(nouns))):  # two would be a guess
            case (owner,) if not (
                self._contradicts_domain(owner, domain) or self.is_excluded(owner, name)
            ):
                return Resolution(owner, "name without maker or noun")
        match tuple(self._by_domain.get(domain or "", ())):
            case (owner,) if not self.is_excluded(owner, name):
                return Resolution(owner, "domain is the product")
        return Resolution(f"={own_key}", "own name")

    def _alike(self, name: str, own_key: str, nouns: tuple[str, ...]) -> set[str]:
        """Return the products whose names are this one but for a maker or the category's nouns."""
        rest = without_nouns(name, nouns)
        keys = {own_key, own_key if rest == name else key(rest)}
        tables = (self._forms, self._without_nouns(nouns))
        return {owner for table in tables for key_ in keys for owner in table.get(key_, ())}

    def _contradicts_domain(self, owner: str, domain: str | None) -> bool:
        """Return whether a model gave a different domain from the product's file."""
        # A missing domain contradicts nothing; assistants often give none.
        own = self.products[owner].domain
        return bool(own and domain and own != domain)

    def is_excluded(self, owner: str, name: str) -> bool:
        """Return whether a product's file lists this name, by its slug, in ``not_same_as``."""
        apart = self.products[owner].not_same_as
        return bool(apart) and (
            key(name) in map(key, apart) or not {*islice(slugs(name), 3)}.isdisjoint(apart)
        )

    def _without_nouns(self, nouns: tuple[str, ...]) -> Mapping[str, set[str]]:
        """Return by key the products with a form that ends in a category's nouns, without them."""
        if nouns not in self._forms_without_nouns:
            table: defaultdict[str, set[str]] = defaultdict(set)
            for last in _endings(nouns):
                for form in self._by_last_word.get(last, ()):
                    rest = without_nouns(form.rest, nouns)
                    if not form.by_maker or _is_unambiguous(rest):
                        table[key(f"{form.front} {rest}")].add(form.slug)
            self._forms_without_nouns[nouns] = dict(table)
        return self._forms_without_nouns[nouns]


def _forms(slug: str, title: str, maker: str | None) -> Iterator[_Form]:
    """Yield a title as it is, and without its maker in front, or with it where it is not there."""
    yield _Form(slug, title)
    if not maker:
        return
    words = title.split()
    splits = ((" ".join(words[:i]), " ".join(words[i:])) for i in range(1, len(words)))
    rest = next((rest for front, rest in splits if key(front) == key(maker)), None)
    if rest is None and _is_unambiguous(title):
        yield _Form(slug, title, front=maker, by_maker=True)
    elif rest and _is_unambiguous(rest):
        yield _Form(slug, rest, by_maker=True)


@lru_cache(maxsize=10_000)
def _endings(nouns: tuple[str, ...]) -> Mapping[str, list[tuple[str, ...]]]:
    """Return a category's nouns as the keys of their words, by the last one, the longest first."""
    endings: defaultdict[str, list[tuple[str, ...]]] = defaultdict(list)
    # The longest first: "CRM software" goes whole before "software" alone.
    for ending in sorted({tuple(map(key, noun.split())) for noun in nouns}, key=len, reverse=True):
        endings[ending[-1]].append(ending)
    return dict(endings)


def _end_in(words: Sequence[str], ending: Sequence[str]) -> bool:
    """Return whether words end so, and something stands before it."""
    return len(words) > len(ending) and [*map(key, words[-len(ending) :])] == [*ending]


def _is_unambiguous(rest: str) -> bool:
    """Return whether a name is unambiguous without its maker: it has a digit or two words."""
    return len(rest.split()) > 1 or any(char.isdigit() for char in rest)


def _plain(name: str) -> str:
    """Return a name in NFKC, with ``+ # &`` as words, without trademark and hidden signs."""
    text = name if name.isascii() else unicodedata.normalize("NFKC", _IGNORED.sub("", name))
    for sign, word in _SPELLED_OUT.items():
        text = text.replace(sign, word)
    return text


def _is_simple(name: str) -> bool:
    """Return whether a name is of ASCII letters and spaces alone, so that no rule applies to it."""
    return name.isascii() and name.replace(" ", "").isalpha()


def _joined(text: str) -> str:
    """Return the letters, marks and numbers of a text."""
    if text.isascii():
        return text.translate(_ASCII_SIGNS)
    return "".join([char for char in text if unicodedata.category(char)[0] in "LMN"])


def _without_accents(text: str) -> str:
    """Return a text without the marks of Latin, Greek and Cyrillic; elsewhere they are letters."""
    if text.isascii():
        return text
    letters: list[str] = []
    bare = False
    for char in unicodedata.normalize("NFD", text):
        if unicodedata.combining(char):
            if not bare:
                letters.append(char)
        else:
            bare = unicodedata.name(char, "").startswith(_BARE_SCRIPTS)
            letters.append(char)
    return unicodedata.normalize("NFC", "".join(letters))
