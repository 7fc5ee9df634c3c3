"""Figures over all categories, once more, from their definitions alone; nothing of ours.

Each function gives, by label, a value with the ends of its interval and what it was counted in.
"""

import json
import math
from copy import copy
from fractions import Fraction
from itertools import combinations, groupby, pairwise
from pathlib import Path
from typing import Any

from certainty_figures import overlap, wilson
from recomputation import Recomputation, rules_of

Figure = tuple[float, list[float], int]
LEVELS = {
    "clear": "Clear lead",
    "open": "Too close to call",
    "contradicted": "Unsettled",
    "unmeasured": "Asked too few times",
}


def share(parts: list[Any]) -> Figure:
    """The mean of numbers from 0 to 1."""
    value = math.fsum(map(float, parts)) / len(parts)
    return value, wilson(value, len(parts)), len(parts)


def by_rule(recomputed: Recomputation) -> dict[str, Figure]:
    """In how many rankings each rule puts nothing before the first product."""
    says: dict[str, list[bool]] = {}
    for slug in recomputed.categories:
        counted = recomputed.counted(slug)
        lists = {model: recomputed.list_of(slug, poll) for model, (poll, _) in counted.items()}
        if lists:
            first = recomputed.combined(lists)[0]["id"]
            for rule, agrees in rules_of(lists, first).items():
                says.setdefault(rule, []).append(agrees)
    return {rule: share(own) for rule, own in says.items()}


def noise(recomputed: Recomputation) -> tuple[dict[str, Figure], list[float]]:
    """How often an assistant that is asked again has the same #1; and the means over everything."""
    every: list[tuple[float, float, float]] = []
    firsts: dict[str, list[float]] = {}
    for slug in recomputed.categories:
        for model, run in recomputed.runs(slug).items():
            pairs = list(combinations([answer for _, answer in run[:5]], 2))
            if not pairs:
                continue
            same = sum(_first(a) == _first(b) for a, b in pairs) / len(pairs)
            alike = sum(a == b for a, b in pairs) / len(pairs)
            both = [(sorted(a, key=a.__getitem__), sorted(b, key=b.__getitem__)) for a, b in pairs]
            every.append((same, alike, float(sum(overlap(a, b) for a, b in both) / len(pairs))))
            firsts.setdefault(model, []).append(same)
    means = [math.fsum(column) / len(every) for column in zip(*every, strict=True)]
    return {model: share(own) for model, own in sorted(firsts.items())}, means


def _first(answer: dict[str, int]) -> str:
    return min(answer, key=answer.__getitem__)


def standing(recomputed: Recomputation) -> list[Figure]:
    """How many first places stand after one more answer, two more … five more."""
    reigns: list[tuple[int, bool]] = []
    for slug, polls in recomputed.polls.items():
        cells: dict[tuple[str, str, str], dict[str, str]] = {}
        for poll in polls:
            if poll["pick"] is not None:
                cell = poll["model"], poll["wording"], poll.get("instrument") or ""
                days = cells.setdefault(cell, {})
                days[poll["polledAt"][:10]] = next(iter(recomputed.list_of(slug, poll)))
        for days in cells.values():
            lengths = [len(list(group)) for _, group in groupby(days[day] for day in sorted(days))]
            reigns += [(n, True) for n in lengths[:-1]] + [(lengths[-1], False)]
    steps: list[Figure] = []
    stand, greenwood = Fraction(1), Fraction()
    for t in range(1, 6):
        ended = sum(over and n == t for n, over in reigns)
        seen = sum(n >= t if over else n > t for n, over in reigns)
        if not seen:
            break
        stand *= Fraction(seen - ended, seen)
        if ended < seen:
            greenwood += Fraction(ended, seen * (seen - ended))
        of = (1 - stand) / (stand * greenwood) if 0 < stand < 1 else Fraction(seen)
        steps.append((float(stand), wilson(float(stand), float(of)), seen))
    return steps


def record(recomputed: Recomputation, directory: Path) -> dict[str, Figure]:
    """How often the next round of a category had the same #1, by the level before."""
    heads = directory / "proof" / "heads.jsonl"
    lines = heads.read_text(encoding="utf-8").splitlines() if heads.exists() else []
    closed = max((json.loads(line).get("day", "") for line in lines), default="")
    agreed: dict[str, list[bool]] = {}
    for slug in recomputed.categories:
        rounds = [r for r in _rounds(recomputed, slug) if r[0] <= closed]
        for (_, question, firsts, level), (_, asked, following, _) in pairwise(rounds):
            if question == asked:
                agreed.setdefault(LEVELS[level], []).append(firsts == following)
    return {words: share(own) for words, own in agreed.items()}


def _rounds(recomputed: Recomputation, slug: str) -> list[tuple[str, str | None, set[str], str]]:
    """The days with answers: the wording that stood, who was #1, and the level at their ends."""
    rounds = []
    polls = recomputed.polls[slug]
    for day in sorted({poll["polledAt"][:10] for poll in polls if poll["pick"] is not None}):
        past = copy(recomputed)
        past.polls = {slug: [poll for poll in polls if poll["polledAt"][:10] <= day]}
        counted = past.counted(slug)
        if counted:
            combined = past.combined({m: past.list_of(slug, p) for m, (p, _) in counted.items()})
            firsts = {entry["id"] for entry in combined if entry["place"] == 1}
            level = past.certainty(slug).level(combined[0]["id"], tied=len(firsts) > 1)
            rounds.append((day, past.wording(slug), firsts, level))
    return rounds
