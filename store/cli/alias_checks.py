"""What ``flask check`` says of aliases and groups of synonyms that mislead searches."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from store.search.words import FILLERS, singular, words_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from store.files import Catalogue, Files
    from store.records import Category, Problem

COMMON_TO = 3
"""Titles of other categories that hold all of an alias's words, from which it says too little."""

REMEDY = "add what tells it apart, or move it to situations, which weigh less"


def remarks(catalogue: Catalogue, files: Files) -> Iterator[Problem]:
    """Warnings about aliases that send searches for other things to their category."""
    named: dict[tuple[str, ...], str] = {}
    holding: dict[str, set[str]] = defaultdict(set)
    for slug, category in catalogue.categories.items():
        named[words_of(category.title)] = slug
        for word in words_of(category.title):
            holding[singular(word)].add(slug)
    for slug, category in catalogue.categories.items():
        for i, alias in enumerate(category.aliases):
            owner = named.get(words_of(alias), slug)
            if owner != slug:
                message = f'"{alias}" is the title of {owner}; searches for that would come here'
            else:
                message = _says_too_little(alias, slug, category, holding)
            if message:
                path = f"categories/{slug}.json"
                yield files.problem_at(path, ("aliases", i), message, "warning")
    yield from _groups(catalogue, files, named)


def _groups(
    catalogue: Catalogue, files: Files, named: Mapping[tuple[str, ...], str]
) -> Iterator[Problem]:
    """Groups of synonyms that hold the titles of two categories: neither is told from the other."""
    for i, group in enumerate(catalogue.synonyms):
        owners = {phrase: named[words_of(phrase)] for phrase in group if words_of(phrase) in named}
        first = next(iter(owners.values()), None)
        for phrase, owner in owners.items():
            if owner != first:
                message = (
                    f'"{phrase}" is the title of {owner}, and this group has that of {first}, too; '
                    "searches for either find both, so take it out"
                )
                key = ("synonyms", i, group.index(phrase))
                yield files.problem_at("synonyms.json", key, message, "warning")


def _says_too_little(
    alias: str, slug: str, category: Category, holding: Mapping[str, set[str]]
) -> str:
    """Why an alias alone does not tell what it stands for, or nothing; initials always do."""
    telling = [singular(word) for word in words_of(alias) if word not in FILLERS]
    if "".join(telling) == "".join(word[0] for word in words_of(category.title)):
        return ""
    if not telling:
        return f'"{alias}" says nothing, for search passes over all its words; {REMEDY}'
    others = set.intersection(*(holding.get(word, set()) for word in telling)) - {slug}
    if len(others) < COMMON_TO:
        return ""
    shown = ", ".join(sorted(others)[:COMMON_TO])
    return (
        f'"{alias}" says too little: {len(others)} other titles have all words in it that tell '
        f"anything ({shown}{', …' if len(others) > COMMON_TO else ''}); {REMEDY}"
    )
