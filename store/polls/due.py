"""When each pair of category and assistant is due (store/README.md, Polls)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from msgspec import Struct

from store.history import HistoryError
from store.rankings.poll_states import usd_on

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from store.rankings.poll_states import PollState, PollStates
    from store.records import Assistant, Category

RETRIED_SOONER = frozenset({"network", "timeout", "http", "rate_limited", "quota", "auth"})
FIRST_RETRY = timedelta(hours=6)
ALWAYS = datetime.min.replace(tzinfo=UTC)


class Pair(Struct, frozen=True):
    """One question to one assistant."""

    slug: str
    category: Category
    assistant: Assistant


def due_at(state: PollState | None, every_days: int) -> datetime:
    """The time from which a pair is due again.

    At once without a poll or after an interrupted one; sooner after a failure of the line, later
    with each one in a row; else after the regular interval.
    """
    if state is None or state.failure == "interrupted":
        return ALWAYS
    regular = timedelta(days=every_days)
    last = datetime.fromisoformat(state.polled_at)
    if state.failure not in RETRIED_SOONER:
        return last + regular
    return last + min(regular, FIRST_RETRY * (1 << min(len(state.failed_at) - 1, 16)))


class DuePolls(Struct, frozen=True):
    """What is to be asked, from how polling stands in each category that is known."""

    states: Mapping[str, PollStates]

    def of(self, pair: Pair) -> PollState | None:
        """How a pair stands with the present question: another wording is due at once."""
        states = self.states.get(pair.slug)
        return states.present.get(pair.assistant.name) if states else None

    def of_model(self, model: str) -> list[PollState]:
        """How an assistant's pairs stand with whatever question, those that were ever polled."""
        return [held.ever[model] for held in self.states.values() if model in held.ever]

    def usd_on(self, day: str) -> float:
        """What the polls of a UTC day cost; see :func:`store.rankings.poll_states.usd_on`."""
        return usd_on(day, self.states.values())

    def known(self, pairs: Iterable[Pair]) -> list[Pair]:
        """The pairs whose history could be read; of others nobody knows what was asked."""
        return [pair for pair in pairs if pair.slug in self.states]

    def due(self, pairs: Iterable[Pair], every_days: int, now: datetime) -> list[Pair]:
        """The pairs known to be due, those waiting longest first."""
        times = [(due_at(self.of(p), every_days), p.slug, p) for p in self.known(pairs)]
        return [pair for time, _, pair in sorted(times, key=lambda t: t[:2]) if time <= now]

    def longest_waiting_first(self, pairs: Iterable[Pair]) -> list[Pair]:
        """The same pairs, those never asked first, then by their last poll's time."""

        def last(pair: Pair) -> str:
            state = self.of(pair)
            return state.polled_at if state else ""

        return sorted(pairs, key=last)


def look(
    slugs: Iterable[str], states_of: Callable[[str], PollStates]
) -> tuple[DuePolls, list[HistoryError]]:
    """How polling of these categories stands, and why that of others is not known."""
    states: dict[str, PollStates] = {}
    unknown: list[HistoryError] = []
    for slug in slugs:
        try:
            states[slug] = states_of(slug)
        except HistoryError as error:
            unknown.append(error)
    return DuePolls(states), unknown
