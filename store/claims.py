"""Who claims which name: what two files, or two assistants, cannot both have."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from store.records import Category, Product

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from store.json_positions import JsonPath
    from store.records import DataFile, Models


class Claim(NamedTuple):
    """A slug in a folder, as an address or a former one."""

    folder: str
    slug: str


def claims_of(name: str, record: DataFile | None) -> dict[Claim, JsonPath]:
    """Every slug that a file claims, with its place in it: its own (no place), and former ones."""
    if not isinstance(record, Category | Product):
        return {}
    folder, _, file = name.partition("/")
    former: dict[Claim, JsonPath] = {
        Claim(folder, slug): ("former_slugs", i) for i, slug in enumerate(record.former_slugs)
    }
    return {**former, Claim(folder, file.removesuffix(".json")): ()}


def disputed(records: Mapping[str, DataFile | None]) -> dict[Claim, dict[str, JsonPath]]:
    """Every slug that more than one file claims, with its place in each."""
    found: dict[Claim, dict[str, JsonPath]] = {}
    for name, record in records.items():
        for claim, place in claims_of(name, record).items():
            found.setdefault(claim, {})[name] = place
    return {claim: places for claim, places in found.items() if len(places) > 1}


def shared_names(models: Models) -> Iterator[tuple[JsonPath, str]]:
    """Where an assistant claims a name, present or former, of another, and what to say of it."""
    owners: dict[str, int] = {}
    for i, assistant in enumerate(models.models):
        if owners.setdefault(assistant.name, i) != i:
            yield ("models", i, "name"), "two assistants have this name; give this one its own"
    for i, assistant in enumerate(models.models):
        for place, former in enumerate(assistant.former_names):
            if owners.setdefault(former, i) != i:
                message = "another assistant bears or claims this former name; take it out of one"
                yield ("models", i, "former_names", place), message
