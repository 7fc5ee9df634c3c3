"""The service's own experiments, computed from the history whenever it changes.

Each finding quotes its figures with their n. What is asked, and how the figures are computed, is
in ``templates/labs.json``, by slug. An experiment without enough data is left out.
"""

from __future__ import annotations

from collections import Counter
from math import sqrt
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from msgspec import Struct

from store.rankings import own_maker, rules
from store.rankings.agreement import by_pair
from store.rankings.changes import survival
from store.rankings.intervals import student, wilson
from store.rankings.repeatability import Noise
from store.rankings.sentences import LEVELS, listed, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from store.rankings.aggregates import CategoryAggregate
    from store.rankings.intervals import Interval
    from store.rankings.leaderboards import Leaderboard
    from store.rankings.names import ProductId
    from store.rankings.repeatability import Repeats
    from store.rankings.rounds import TrackRecord

MIN_BOARDS = 5
"""Categories under which a share would mislead, so that no experiment is shown; a judgement."""

PACK = 3
"""Answers of a category from which one can stand alone against a majority."""

MIN_OWN = 10
"""Categories with an own maker's product under which its effect is not told: its interval would
be over a point wide to either side."""

LONGEST = 5
"""Further answers through which first places are followed; few are known for longer."""

LEAST_DEVIATION = 0.2
"""Points below which a standard deviation over categories is not believed."""


class Bar(Struct, frozen=True):
    """A figure of an experiment with its 95 % interval, and what it was counted in."""

    label: str
    value: float
    interval: Interval
    n: int


class Chart(Struct, frozen=True):
    """The figures of an experiment: shares from 0 to 1, or points between ``low`` and ``high``."""

    what: str
    bars: tuple[Bar, ...]
    counted: str = "categories"
    low: float = 0.0
    high: float = 1.0

    def figure(self, value: float) -> str:
        """A value as it is written: a share in percent, points with their sign."""
        return f"{value:.1%}" if self.low == 0 else f"{value:+.2f}"


class Experiment(Struct, frozen=True):
    """A question put to the data; ``date`` is that of the newest poll it rests on, YYYY-MM-DD."""

    slug: str
    finding: str
    date: str
    chart: Chart | None = None


def compute(
    leaderboards: Sequence[Leaderboard],
    aggregates: Sequence[CategoryAggregate],
    makers: Mapping[str, str],
    made_by: Mapping[ProductId, str],
    repeats: Mapping[str, Sequence[Repeats]],
    record: TrackRecord,
) -> tuple[Experiment, ...]:
    """Return what the data can answer; ``makers`` and ``repeats`` by model, others by product."""
    shared = [board for board in leaderboards if board.agreement]
    packs = [board for board in leaderboards if len(board.counted) >= PACK]
    found = []
    if len(shared) >= MIN_BOARDS:
        found += [_agreement_on_first(shared), _overlap_of_lists(shared)]
    if len(packs) >= MIN_BOARDS:
        found.append(_outsider(packs))
    if len(leaderboards) >= MIN_BOARDS:
        found.append(_rules(leaderboards))
    noise = Noise.of([each for own in repeats.values() for each in own])
    if noise and noise.n >= MIN_BOARDS:
        repeated = [board for board in leaderboards if board.repeatability]
        found.append(_noise(noise, repeats, _newest(repeated)))
    if record.agreed:
        found.append(_track_record(record))
    if advantages := own_maker.advantages(leaderboards, makers, made_by):
        found.append(_own_maker(advantages, _newest(leaderboards)))
    return (*found, *_survival(aggregates), *_confirmed_changes(aggregates))


def _noise(noise: Noise, repeats: Mapping[str, Sequence[Repeats]], date: str) -> Experiment:
    """How far one assistant's answers to one question differ."""
    pairs = sum([each.pairs for own in repeats.values() for each in own])
    return Experiment(
        slug="how-noisy-is-one-answer",
        finding=(
            f"Asked the same question twice, an assistant names the same #1 in "
            f"{noise.same_first:.1%} and gives the same list in {noise.same_list:.1%} of cases; "
            f"its two lists overlap by {noise.overlap:.0%} on average "
            f"(n = {noise.n:,} questions to one assistant, {pairs:,} pairs of answers)."
        ),
        date=date,
        chart=Chart(
            "Asked twice, the same #1",
            tuple(
                _share_bar(model, [each.same_first for each in repeats[model]])
                for model in sorted(repeats)
            ),
            counted="questions",
        ),
    )


def _rules(leaderboards: Sequence[Leaderboard]) -> Experiment:
    """How often other usual rules of counting have the same #1."""
    n = len(leaderboards)
    whole = sum([all(board.rules.values()) for board in leaderboards])
    agreeing = {
        rule: [board.rules[rule] for board in leaderboards if rule in board.rules]
        for rule in (*rules.POINTS, rules.CONDORCET)
    }
    return Experiment(
        slug="would-another-rule-choose-another",
        finding=(
            f"In {_share(whole, n)} of rankings no usual way of counting puts another product "
            f"before the #1 (n = {n:,} rankings)."
        ),
        date=_newest(leaderboards),
        chart=Chart(
            "Rankings where the rule has the same #1",
            tuple(_share_bar(rule, agrees) for rule, agrees in agreeing.items() if agrees),
            counted="rankings",
        ),
    )


def _track_record(record: TrackRecord) -> Experiment:
    """Whether the next round agreed, by what we had said."""
    every = [agreed for own in record.agreed.values() for agreed in own]
    bars = [
        _share_bar(words, record.agreed[level])
        for level, words in LEVELS.items()
        if level in record.agreed
    ]
    return Experiment(
        slug="track-record",
        finding=f"{track_record_sentence(record)} (n = {len(every):,} rounds with a next one).",
        date=record.until,
        chart=Chart("The next round had the same #1", tuple(bars), counted="rounds"),
    )


def track_record_sentence(record: TrackRecord) -> str:
    """Return how often the next round agreed with what was clear, without its full stop."""
    clear = record.agreed.get("clear")
    if not clear:
        return "No ranking with a clear lead has had another round yet"
    return f"When we said clear, the next round agreed in {sum(clear):,} of {len(clear):,}"


def _own_maker(advantages: Sequence[float], date: str) -> Experiment:
    """What an assistant gives its own maker's products beyond the others."""
    n = len(advantages)
    told = f"Too little to say: n = {n} categories with such a product, {MIN_OWN} are needed."
    chart = None
    if n >= MIN_OWN:
        bar = _mean_bar("own maker", advantages)
        low, high = bar.interval
        told = (
            f"Assistants give their own maker’s products {abs(bar.value):.2f} points "
            f"{'more' if bar.value >= 0 else 'fewer'} than the others do (95%: {low:+.2f} to "
            f"{high:+.2f}; n = {n} categories)"
        ) + ("." if low > 0 or high < 0 else ", which chance could explain.")
        chart = Chart("More points than from the others", (bar,), low=-5.0, high=5.0)
    return Experiment(
        slug="own-maker",
        finding=told,
        date=date,
        chart=chart,
    )


def _mean_bar(label: str, values: Sequence[float]) -> Bar:
    """The mean over categories and Student's interval."""
    mean, n = fmean(values), len(values)
    deviation = max(stdev(values), LEAST_DEVIATION) if n > 1 else LEAST_DEVIATION
    half = student(max(n - 1, 1)) * deviation / sqrt(n)
    return Bar(label, mean, (mean - half, mean + half), n)


def _share_bar(label: str, shares: Sequence[float]) -> Bar:
    """The mean of shares over categories and Wilson's interval."""
    n = len(shares)
    return Bar(label, sum(shares) / n, wilson(sum(shares), n), n)


def _agreement_on_first(leaderboards: Sequence[Leaderboard]) -> Experiment:
    labels = Counter([board.agreement.label for board in leaderboards if board.agreement])
    n = len(leaderboards)
    return Experiment(
        slug="agreement-on-first",
        finding=(
            f"All assistants name the same #1 in {_share(labels['unanimous'], n)} of rankings, "
            f"more than half of them in {_share(labels['majority'], n)}, fewer in "
            f"{_share(labels['split'], n)} (n = {n:,} categories)."
        ),
        date=_newest(leaderboards),
        chart=Chart(
            "Categories by agreement on #1",
            tuple(
                _share_bar(label, [b.agreement.label == label for b in leaderboards if b.agreement])
                for label in ("unanimous", "majority", "split")
            ),
        ),
    )


def _overlap_of_lists(leaderboards: Sequence[Leaderboard]) -> Experiment:
    overlaps = by_pair(board.agreement for board in leaderboards)
    means = {pair: fmean(values) for pair, values in overlaps.items()}
    pairs = sorted(means, key=lambda pair: (-means[pair], pair))
    most, least = pairs[0], pairs[-1]
    if most == least:
        told = f"Only {' and '.join(most)} can be compared"
    elif f"{means[most]:.2f}" == f"{means[least]:.2f}":
        told = f"The lists of every two assistants are equally alike ({means[most]:.2f})"
    else:
        told = ", ".join(
            f"{' and '.join(pair)} are {what} alike ({means[pair]:.2f}, n = {len(overlaps[pair])})"
            for pair, what in ((most, "most"), (least, "least"))
        )
    every = [overlap for values in overlaps.values() for overlap in values]
    return Experiment(
        slug="overlap-of-lists",
        finding=(
            f"{told}. The mean of all comparisons is {fmean(every):.2f} "
            f"(n = {len(every):,} comparisons)."
        ),
        date=_newest(leaderboards),
        chart=Chart(
            "Mean overlap of two assistants’ lists",
            tuple(
                _mean_bar(f"{first} and {second}", overlaps[first, second])
                for first, second in pairs
                if len(overlaps[first, second]) >= MIN_BOARDS
            ),
        ),
    )


def _outsider(leaderboards: Sequence[Leaderboard]) -> Experiment:
    """Which model stands alone against a #1 that all the others share."""
    asked = Counter(model for board in leaderboards for model in board.models)
    alone = Counter(board.outsider for board in leaderboards if board.outsider)
    order = sorted(asked, key=lambda model: (-alone[model] / asked[model], model))
    shares = ", ".join(f"{model} in {_share(alone[model], asked[model])}" for model in order)
    return Experiment(
        slug="who-leaves-the-pack",
        finding=f"Alone against all others: {shares} (n = {len(leaderboards):,} categories).",
        date=_newest(leaderboards),
    )


def _survival(aggregates: Sequence[CategoryAggregate]) -> Iterator[Experiment]:
    """How long a #1 holds."""
    followed = [s for aggregate in aggregates for s in aggregate.streaks if s.followed]
    steps = survival(followed, LONGEST)
    if not steps:
        return
    lasting = sum([not streak.over for streak in followed])
    later = [f"{step.share:.1%} after {step.answers}" for step in (*steps[1:2], *steps[2:][-1:])]
    standing = listed([f"{steps[0].share:.1%} still stand after one more answer", *later])
    yield Experiment(
        slug="how-long-a-first-place-lasts",
        finding=(
            f"Of first places, {standing} (n = {plural(len(followed), 'first place')}, "
            f"{lasting:,} of them not lost yet)."
        ),
        date=max([streak.end for streak in followed])[:10],
        chart=Chart(
            "First places that still stand",
            tuple(
                Bar(
                    f"after {plural(step.answers, 'more answer')}",
                    step.share,
                    step.interval,
                    step.streaks,
                )
                for step in steps
            ),
            counted="first places followed so long",
        ),
    )


def _confirmed_changes(aggregates: Sequence[CategoryAggregate]) -> Iterator[Experiment]:
    """How often a new #1 is named again."""
    changes = [change for aggregate in aggregates for change in aggregate.changes]
    if not changes:
        return
    confirmed = sum([change.confirmed for change in changes])
    yield Experiment(
        slug="how-often-a-change-is-confirmed",
        finding=(
            f"Of changes of an assistant’s #1, {_share(confirmed, len(changes))} have been "
            f"confirmed by its next answer (n = {plural(len(changes), 'change')})."
        ),
        date=max([change.current_at for change in changes])[:10],
    )


def _newest(leaderboards: Sequence[Leaderboard]) -> str:
    return max([board.newest for board in leaderboards])[:10]


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}%"
