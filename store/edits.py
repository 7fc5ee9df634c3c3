"""What a curator's edit made of names and questions, and which names two product files claim."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from store.files import Files
    from store.json_positions import JsonPath
    from store.rankings.names import NameClaim, Names, Spelling
    from store.records import Problem
    from store.snapshot import Snapshot

log = logging.getLogger(__name__)


def tell_edits(before: Snapshot, after: Snapshot) -> None:
    """Log what an edit made of names and questions: warnings, which no server leaves out."""
    for message in reworded(before, after):
        log.warning("%s", message)
    if count := len(_moved(_addresses(before), _addresses(after))):
        names = "1 name" if count == 1 else f"{count:,} names"
        log.warning("an edit moved %s to other products; see `flask check`", names)


def _addresses(snapshot: Snapshot) -> dict[tuple[str, Spelling], str]:
    """Return category and spelling → address of the product that it stands for, if it has one."""
    slugs = {id_: profile.slug for id_, profile in snapshot.products.items()}
    slugs |= {slug: slug for slug in snapshot.catalogue.products}
    return {
        (category, spelling): slugs[id_]
        for category, aggregate in snapshot.aggregates.items()
        for spelling, id_ in aggregate.resolved.items()
        if id_ in slugs
    }


def _moved(
    before: Mapping[tuple[str, Spelling], str], after: Mapping[tuple[str, Spelling], str]
) -> set[str]:
    """Return the names that stand for a product at another address than before."""
    return {place[1][0] for place, old in before.items() if after.get(place, old) != old}


def claimed_at(claim: NameClaim, names: Names) -> JsonPath:
    """Where a product file makes a claim: its name, or one of its aliases."""
    product = names.products[claim.slug]
    if claim.title == product.name:
        return ("name",)
    return ("aliases", product.aliases.index(claim.title))


def name_clashes(names: Names, files: Files) -> Iterator[Problem]:
    """Every name or alias that more than one product file claims, at each of its places."""
    for claims in names.contested():
        for claim in claims:
            others = [f"products/{other.slug}.json" for other in claims if other.slug != claim.slug]
            yield files.problem_at(
                f"products/{claim.slug}.json",
                claimed_at(claim, names),
                f'"{claim.title}" is also claimed by {", ".join(sorted(set(others)))}; '
                "until one gives it up it belongs to neither, and ranks as a product of its own",
            )


def reworded(before: Snapshot, after: Snapshot) -> Iterator[str]:
    """What is to be said of every category whose question became another one."""
    for slug, board in after.leaderboards.items():
        earlier = before.leaderboards.get(slug)
        if board.next_question and earlier and earlier.next_question != board.next_question:
            yield (
                f"categories/{slug}.json: a new question: each assistant is due to be asked it "
                "(`flask check` says what that costs), and the answers to the one before stand "
                "until all have answered; if both mean the same, list that in former_questions"
            )
