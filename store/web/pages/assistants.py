"""What the pages of the assistants show."""

from collections import Counter
from collections.abc import Mapping
from itertools import islice
from typing import Any

from msgspec import Struct

from store.rankings.names import ProductId
from store.rankings.products import ProductProfile
from store.records import FailureKind
from store.web import lookup
from store.web.pages.contexts import pick_changes
from store.web.pages.routes import page
from store.web.queries import OfSlug, Query
from store.web.view import View

SHORT_LIST, LONG_LIST = 6, 10

FAILURES: Mapping[FailureKind, str] = {
    "network": "its provider could not be reached",
    "timeout": "no answer in time",
    "http": "its provider answered with an error",
    "rate_limited": "its provider asked us to slow down",
    "quota": "what we may spend there was used up",
    "auth": "its provider refused our key",
    "refusal": "it declined to answer",
    "empty": "it answered nothing",
    "truncated": "its answer was cut off",
    "parse": "its answer was not in the form asked for",
    "schema": "its answer lacked something asked for, or held something impossible",
    "interrupted": "we were stopped while it answered",
}
"""Why a poll failed, as the end of a sentence for readers."""


class Cell(Struct, frozen=True):
    """Two assistants of the matrix: their mean overlap, 0 to 1, in ``boards`` categories."""

    other: str
    slug: str
    overlap: float | None
    boards: int


@page("/models", "models.html")
def models(view: View, query: Query) -> dict[str, Any]:  # noqa: ARG001
    """Show all assistants, and how far each two agree."""
    summary = view.snapshot.summary
    return {
        "profiles": [(slug, summary.assistants[m]) for slug, m in summary.model_slugs.items()],
        "matrix": matrix(view),
        "retired": summary.retired,
    }


@page("/models/<slug>", "model.html")
def model(view: View, query: OfSlug) -> dict[str, Any]:
    """Show what an assistant recommends, how steadily, and how often it fails."""
    name = lookup.model(view, query.slug)
    snapshot, summary = view.snapshot, view.snapshot.summary
    profile = summary.assistants[name]
    changes = [change for change in summary.changes if change.model == name]
    kinds = sorted(profile.tally.failures.items(), key=lambda each: (-each[1], each[0]))
    return {
        "slug": query.slug,
        "profile": profile,
        "favourites": _top(profile.firsts, snapshot.products),
        "named": _top(profile.named, snapshot.products),
        "failures": [(kind.replace("_", " "), FAILURES[kind], count) for kind, count in kinds],
        "changes": len(changes),
        "confirmed": sum(change.confirmed for change in changes),
        "flips": list(islice(pick_changes(changes, snapshot), SHORT_LIST)),
        "others": next(row for model, _, row in matrix(view) if model == name),
    }


def matrix(view: View) -> list[tuple[str, str, list[Cell]]]:
    """Per assistant, the mean overlap of its lists with each other assistant's."""
    slugs, means = view.snapshot.summary.model_slugs, view.snapshot.summary.overlaps
    none = (None, 0)
    return [
        (
            model,
            slug,
            [
                Cell(other, other_slug, *means.get((min(model, other), max(model, other)), none))
                for other_slug, other in slugs.items()
            ],
        )
        for slug, model in slugs.items()
    ]


def _top(
    counts: Counter[ProductId], products: Mapping[ProductId, ProductProfile]
) -> list[tuple[ProductProfile, int]]:
    """The most frequent products, by name among equals."""
    found = [(products[id_], count) for id_, count in counts.items() if id_ in products]
    found.sort(key=lambda each: (-each[1], each[0].slug))
    return found[:LONG_LIST]
