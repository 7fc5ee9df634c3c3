"""Leader changes: when another product leads by more than chance (store/README.md, Certainty).

The raw #1 changes in 28 to 61 of 100 simulated rounds without any real change, this leader in 0.1
at most. It is slow: silence is not stability.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from msgspec import Struct

from store.rankings.certainty import PointTable, places_of
from store.rankings.windows import VersionChange

if TYPE_CHECKING:
    from collections.abc import Mapping

    from store.rankings.names import ProductId
    from store.rankings.windows import Window


class LeaderChange(Struct, frozen=True):
    """Another product leads alone, over so many ``answers``.

    ``cause`` is the change of version with which it coincides, of the assistant whose answers are
    over half of the shift.
    """

    before: ProductId
    after: ProductId
    answers: int
    cause: VersionChange | None


class LeaderChanges:
    """Follows the leader through a category's windows as they were, oldest first."""

    def __init__(self) -> None:
        self._leader: ProductId | None = None
        self._windows: Mapping[str, Window] = {}

    def next(
        self, windows: Mapping[str, Window], slugs: Mapping[ProductId, str]
    ) -> LeaderChange | None:
        """What changed since a leader last stood alone; ``None`` while none does."""
        if any(len(window.answers) == 1 for window in windows.values()):
            return None
        contenders = PointTable(places_of(windows), slugs).contenders
        if len(contenders) > 1:
            return None
        before, then = self._leader, self._windows
        self._leader, self._windows = contenders[0], windows
        if before is None or before == contenders[0]:
            return None
        answers = sum(len(window.answers) for window in windows.values())
        cause = _cause(before, contenders[0], then, windows)
        return LeaderChange(before, contenders[0], answers, cause)


def _cause(
    before: ProductId, after: ProductId, then: Mapping[str, Window], now: Mapping[str, Window]
) -> VersionChange | None:
    """The change of version of the assistant that brought over half of the shift, if it had one.

    Assistants that came or went since brought, or took, all of their lead.
    """
    shifts = {
        model: _lead(after, before, now.get(model)) - _lead(after, before, then.get(model))
        for model in now.keys() | then.keys()
    }
    model = max(sorted(shifts), key=shifts.__getitem__)
    if 2 * shifts[model] <= sum(shifts.values()):
        return None
    if model not in then or model not in now:
        return None
    return VersionChange.of(model, then[model].version, now[model].version)


def _lead(one: ProductId, other: ProductId, window: Window | None) -> Fraction:
    """How many points one product has more than another in a window's answers, in the mean."""
    if window is None:
        return Fraction(0)
    return window.mean_points(one) - window.mean_points(other)
