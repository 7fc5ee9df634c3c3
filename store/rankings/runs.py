"""Runs: each assistant's answers that can be compared, day by day (store/README.md, Certainty).

A run is one assistant's successful answers in a row to one wording, asked for with one instrument
and given by one served version: whatever of these changes starts a run anew.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime
from fractions import Fraction
from itertools import combinations_with_replacement, islice
from math import lcm
from typing import Literal, Self

from msgspec import Struct

from store.rankings.merging import PLACES, LoggedAnswer, RunKey, points
from store.rankings.names import ProductId
from store.records import MAX_SAMPLES

DAY = 86_400
"""Seconds of a day."""

MAX_DAYS = 260
"""Days of a run that count, the newest: five years of weeks, or a year of working days."""

WINDOW_ANSWERS = MAX_SAMPLES
"""Answers of a run that presence and overlap look at: at one a week they span a month."""

MOST_PRODUCTS = 0xFFFF
"""Products of a category up to which a place takes two bytes in a log."""

Renewal = Literal["instrument", "record", "version", "question"]
"""The reason why a run began anew: another instrument; the first recorded one ("record"); another
served version; another wording."""


class VersionChange(Struct, frozen=True):
    """The versions that a provider says it served before and since."""

    model: str
    before: str
    after: str

    @classmethod
    def of(cls, model: str, before: str | None, after: str | None) -> Self | None:
        """Return the change, if both versions are known and differ."""
        return cls(model, before, after) if before and after and before != after else None


class AnswerLog(Struct, frozen=True, gc=False):
    """All answers of a category in order of appending, as columns: some twenty bytes an answer.

    ``key_numbers`` has, for each answer, the position of its key in ``keys``. ``times`` are seconds
    since 1970. ``places`` are five numbers an answer, from rank 1: the position of a product in
    ``products``, counted from 1, or 0 where there is none.
    """

    products: tuple[ProductId, ...]
    keys: tuple[RunKey, ...]
    key_numbers: array[int]
    times: array[int]
    places: array[int]

    @classmethod
    def of(cls, answers: Iterable[LoggedAnswer]) -> Self:
        """Write down answers, oldest first."""
        products: dict[ProductId, int] = {}
        keys: dict[RunKey, int] = {}
        key_numbers, times, rows = array("I"), array("q"), array("I")
        for answer in answers:
            key_numbers.append(keys.setdefault(answer.key, len(keys)))
            times.append(int(datetime.fromisoformat(answer.polled_at).timestamp()))
            for product in answer.places:
                number = products.setdefault(product, len(products) + 1) if product else 0
                rows.append(number)
        narrow = array("H", rows) if len(products) <= MOST_PRODUCTS else rows
        return cls(tuple(products), tuple(keys), key_numbers, times, narrow)

    def __iter__(self) -> Iterator[LoggedAnswer]:
        """Iterate over the answers, oldest first."""
        return map(self._answer, range(len(self.key_numbers)))

    def since(self, day: date) -> Iterator[LoggedAnswer]:
        """Iterate over the answers of a UTC day and of later ones, in order of appending."""
        start = datetime.combine(day, datetime.min.time(), UTC).timestamp()
        return (self._answer(at) for at, time in enumerate(self.times) if time >= start)

    def _answer(self, at: int) -> LoggedAnswer:
        row = self.places[PLACES * at : PLACES * (at + 1)]
        names = tuple([self.products[number - 1] if number else None for number in row])
        time = datetime.fromtimestamp(self.times[at], UTC)
        return LoggedAnswer(self._key(at), time.isoformat()[:19] + "Z", names)

    def runs(self, question: str, models: Sequence[str]) -> dict[str, Run]:
        """Return, for each assistant, the run that ends with its newest answer to a wording."""
        return {model: self._run(question, model) for model in models}

    def _run(self, question: str, model: str) -> Run:
        numbers = {number for number, key in enumerate(self.keys) if key.model == model}
        own = [at for at, number in enumerate(self.key_numbers) if number in numbers]
        while self._key(own[-1]).question != question:
            own.pop()
        key = self._key(own[-1])
        start = len(own) - 1
        while start and self._key(own[start - 1]) is key:  # equal keys are one object
            start -= 1
        run = Run(key, self._key(own[start - 1]) if start else None)
        for at in own[start:]:
            run.add(self._answer(at))
        return run

    def _key(self, at: int) -> RunKey:
        return self.keys[self.key_numbers[at]]


class Run:
    """One assistant's comparable answers, and the sums that comparing products needs.

    ``before`` is the key of the assistant's last answer before the run, if there was one. A
    product's points on a day are their mean over that day's answers, so that
    asking twice on one day sharpens the day and never stands for more days. Sums are whole numbers
    of 1/``scale`` points, and of its square: equal means are exactly equal.
    """

    def __init__(self, key: RunKey, before: RunKey | None = None) -> None:
        self.key = key
        self.before = before
        self.days: deque[list[LoggedAnswer]] = deque()
        self.scale = 1
        self.sums: dict[ProductId, int] = {}
        self._cross_sums: dict[tuple[ProductId, ProductId], int] = {}

    def add(self, answer: LoggedAnswer) -> None:
        """Take in the next answer."""
        day = [answer]
        if self.days and self.days[-1][0].polled_at[:10] == answer.polled_at[:10]:
            day = self.days.pop()
            self._count(day, -1)  # taken out whole, counted again with one more
            day = [*day, answer]
        elif len(self.days) == MAX_DAYS:
            self._count(self.days.popleft(), -1)
        self.days.append(day)
        self._count(day, 1)

    def _count(self, day: Sequence[LoggedAnswer], sign: int) -> None:
        """Add the points of a day to the sums, or take them out again."""
        if self.scale % len(day):
            factor = lcm(self.scale, len(day)) // self.scale
            self.scale *= factor
            self.sums = {key: value * factor for key, value in self.sums.items()}
            # Products of two numbers of points grow with the square.
            self._cross_sums = {key: v * factor * factor for key, v in self._cross_sums.items()}
        unit = self.scale // len(day)
        totals: dict[ProductId, int] = {}
        for answer in day:
            for rank, product in enumerate(answer.places, start=1):
                if product:
                    totals[product] = totals.get(product, 0) + points(rank) * unit
        sums, crosses = self.sums, self._cross_sums
        for product, number in totals.items():
            sums[product] = sums.get(product, 0) + sign * number
        for pair in combinations_with_replacement(sorted(totals), 2):
            crosses[pair] = crosses.get(pair, 0) + sign * totals[pair[0]] * totals[pair[1]]

    def mean_points(self, product: ProductId) -> Fraction:
        """Return the mean points of a product over the days."""
        return Fraction(self.sums.get(product, 0), self.scale * len(self.days))

    def squared_deviations(self, one: ProductId, other: ProductId) -> float:
        """Return the sum of squared deviations of two products' daily difference from its mean."""
        sums, crosses, n = self.sums, self._cross_sums, len(self.days)
        pair = (one, other) if one < other else (other, one)  # as they are counted
        total = crosses.get((one, one), 0) + crosses.get((other, other), 0)
        total -= 2 * crosses.get(pair, 0)
        difference = sums.get(one, 0) - sums.get(other, 0)
        return (n * total - difference * difference) / (n * self.scale * self.scale)

    @property
    def renewal(self) -> Renewal | None:
        """The change with which the run began, if there were answers before and it is known."""
        if self.before is None:
            return None
        if self.before.instrument != self.key.instrument:
            return "instrument" if self.before.instrument else "record"
        if VersionChange.of(self.key.model, self.before.version, self.key.version):
            return "version"
        return "question" if self.before.question != self.key.question else None

    @property
    def named(self) -> list[ProductId]:
        """Every product that an answer of the run names."""
        return [product for product, total in self.sums.items() if total]

    @property
    def answers(self) -> Iterator[LoggedAnswer]:
        """The answers, newest first."""
        return (answer for day in reversed(self.days) for answer in reversed(day))

    @property
    def window(self) -> list[LoggedAnswer]:
        """The newest answers of the run, newest first, five at most."""
        return list(islice(self.answers, WINDOW_ANSWERS))
