"""What each assistant does: what it recommends, how steadily, and how often it fails."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from msgspec import Struct

from store.rankings.repeatability import Noise

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from store.rankings.aggregates import CategoryAggregate
    from store.rankings.leaderboards import Leaderboard
    from store.rankings.names import ProductId
    from store.rankings.repeatability import Repeats
    from store.records import FailureKind, Poll


class Service(Struct, frozen=True, gc=False):
    """A version that a provider said it served; times of its first and last answer."""

    version: str | None
    first: str
    last: str
    answers: int


class Tally(Struct, frozen=True, gc=False):
    """One assistant's polls of one category, or of all; ``services`` oldest first."""

    answers: int
    failures: Mapping[FailureKind, int]
    services: tuple[Service, ...]

    @property
    def failed(self) -> int:
        """Polls that brought no answer."""
        return sum(self.failures.values())

    @property
    def asked(self) -> int:
        """All polls."""
        return self.answers + self.failed


class AssistantProfile(Struct, frozen=True):
    """An assistant over all categories.

    ``counted`` are the rankings that count it, ``stale`` those where its answer is old. Of those
    with other assistants, ``shared``, it ranks the most frequent #1 first in ``agreeing``.
    ``firsts`` and ``named`` are products by how many rankings it puts them first in, or names
    them in. ``noise`` says how alike its answers to one question are.
    """

    model: str
    tally: Tally
    counted: int
    stale: int
    agreeing: int
    shared: int
    firsts: Counter[ProductId]
    named: Counter[ProductId]
    noise: Noise | None


def tallies(polls: Iterable[Poll]) -> dict[str, Tally]:
    """What came of each assistant's polls of a category, oldest first."""
    by_model: dict[str, list[Poll]] = {}
    for poll in polls:
        by_model.setdefault(poll.model, []).append(poll)
    return {model: _tally(own) for model, own in by_model.items()}


def _tally(polls: Sequence[Poll]) -> Tally:
    failures: dict[FailureKind, int] = {}
    times: defaultdict[str | None, list[str]] = defaultdict(list)
    for poll in polls:
        if poll.failure == "withheld":
            continue  # it counts nowhere
        if poll.failure:
            failures[poll.failure] = failures.get(poll.failure, 0) + 1
        else:
            times[poll.served_model].append(poll.polled_at)
    services = [Service(version, min(at), max(at), len(at)) for version, at in times.items()]
    return Tally(sum(map(len, times.values())), failures, tuple(services))


def total(tallies: Iterable[Tally]) -> Tally:
    """Several categories' polls as one; versions by the time of their first answer."""
    answers = 0
    failures: Counter[FailureKind] = Counter()
    services: dict[str | None, Service] = {}
    for tally in tallies:
        answers += tally.answers
        failures.update(tally.failures)
        for each in tally.services:
            known = services.get(each.version, each)
            services[each.version] = Service(
                each.version,
                min(known.first, each.first),
                max(known.last, each.last),
                each.answers + (known.answers if known is not each else 0),
            )
    order = sorted(services.values(), key=lambda each: (each.first, each.version or ""))
    return Tally(answers, failures, tuple(order))


def profile(
    model: str,
    leaderboards: Iterable[Leaderboard],
    aggregates: Iterable[CategoryAggregate],
    repeats: Sequence[Repeats],
) -> AssistantProfile:
    """One assistant over all categories; polls of deleted ones count in its tally."""
    own = [(board, a) for board in leaderboards for a in board.counted if a.model == model]
    agreeing = [
        answer.answered.first == board.agreement.product for board, answer in own if board.agreement
    ]
    return AssistantProfile(
        model=model,
        tally=total(a.tallies[model] for a in aggregates if model in a.tallies),
        counted=len(own),
        stale=sum(answer.stale for _, answer in own),
        agreeing=sum(agreeing),
        shared=len(agreeing),
        firsts=Counter(answer.answered.first for _, answer in own),
        named=Counter(product for _, answer in own for product in answer.picks),
        noise=Noise.of(repeats),
    )
