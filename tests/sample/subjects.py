"""What a category is about, from its title and nouns."""

import re
from functools import lru_cache

from msgspec import Struct

from sample.words import KEYWORDS, KINDS, LISTS, SINGULARS, Kind

_TAIL = re.compile(r"(?<!quote)(?<!speech)(?<!text) (?:for|under|with|without|that|to) ")


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


def _singular(word: str) -> str:
    lower = word.lower()
    if lower in SINGULARS:
        return SINGULARS[lower]
    if lower.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if lower.endswith(("ches", "shes", "xes", "sses")):
        return word[:-2]
    if lower.endswith("s") and not lower.endswith(("ss", "us", "is", "'s")) and len(word) > 3:
        return word[:-1]
    return word


def _without_qualifiers(words: list[str]) -> list[str]:
    """The words without what only narrows the choice; what remains is never empty."""
    qualifiers = LISTS["qualifiers"]
    while len(words) > 1:
        taken = next(
            (n for n in (3, 2, 1) if n < len(words) and " ".join(words[:n]) in qualifiers), 0
        )
        if not taken or (len(words) - taken == 1 and _singular(words[-1]) in LISTS["generic"]):
            break
        words = words[taken:]
    return words


def _named_kind(words: list[str]) -> Kind | None:
    """The kind the longest phrase names, phrases at the end first."""
    for end in range(len(words), 0, -1):
        for start in range(end):
            phrase = [*words[start : end - 1], _singular(words[end - 1])]
            if len(phrase) == 1 and len(words) > 1 and phrase[0] in LISTS["generic"]:
                continue
            for text in (" ".join(phrase), " ".join(words[start:end])):
                if text in KEYWORDS:
                    return KINDS[KEYWORDS[text]]
    return None


def _kind(words: list[str]) -> Kind:
    """The kind of a head noun phrase; what ends in "software" or "site" is never a thing."""
    last, kind = _singular(words[-1]), _named_kind(words)
    if kind is None:
        groups = [g for g in ("software", "service") if last in LISTS[f"{g} words"]]
        return KINDS[f"generic {(*groups, 'goods')[0]}"]
    if kind.group in {"goods", "food", "title"}:
        if last in {"software", "app"}:
            return KINDS["generic software"]
        if last in {"site", "service", "company"}:
            return KINDS["generic service"]
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
    if len(family) == 1 and _singular(family[0]) in LISTS["generic"]:
        family = tail.lower().split()[1:] or family
    kind = _kind(
        words if len(family) <= len(words) and family[-1] == words[-1] else family + words[-1:]
    )
    if kind.group in {"software", "service"}:
        while (
            len(family) > 1
            and _singular(family[-1]) in LISTS["generic"]
            and family[-2] not in {"a", "of"}
        ):
            family = family[:-1]
    family = [*family[:-1], _singular(family[-1])]
    core = family[-2:] if family[-1] in LISTS["vague"] else family[-1:]
    shown = head.split()
    if _singular(words[-1]) in LISTS["units"]:
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
