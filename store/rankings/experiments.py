"""The service's own experiments, computed from the history whenever it changes.

Each finding quotes its figures with their n, and each method says how they were computed. An
experiment without enough data is left out.
"""

from __future__ import annotations

from collections import Counter
from math import sqrt
from statistics import fmean, median, stdev
from typing import TYPE_CHECKING

from msgspec import Struct

from store.rankings import own_maker
from store.rankings.intervals import student, wilson

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from store.rankings.aggregates import CategoryAggregate
    from store.rankings.intervals import Interval
    from store.rankings.leaderboards import Leaderboard
    from store.rankings.names import ProductId
    from store.rankings.repeatability import Repeatability, Repeats

MIN_BOARDS = 5
"""Categories under which a share would mislead, so that no experiment is shown; a judgement."""

PACK = 3
"""Answers of a category from which one can stand alone against a majority."""


MIN_OWN = 10
"""Categories with an own maker's product under which its effect is not told: its interval would
be over a point wide to either side."""

LONGEST = 5
"""Polls of a reign from which its chart no longer tells lengths apart; few last longer."""

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
    title: str
    method: str
    finding: str
    date: str
    chart: Chart | None = None


def compute(
    leaderboards: Sequence[Leaderboard],
    aggregates: Sequence[CategoryAggregate],
    makers: Mapping[str, str],
    made_by: Mapping[ProductId, str],
) -> tuple[Experiment, ...]:
    """Every experiment that the data can answer; ``makers`` by model, ``made_by`` by product."""
    shared = [board for board in leaderboards if board.agreement]
    packs = [board for board in leaderboards if len(board.counted) >= PACK]
    found = []
    if len(shared) >= MIN_BOARDS:
        found += [_agreement_on_first(shared), _overlap_of_lists(shared)]
    if len(packs) >= MIN_BOARDS:
        found.append(_outsider(packs))
    repeated = [(board, known) for board in leaderboards if (known := board.repeatability)]
    if len(repeated) >= MIN_BOARDS:
        found.append(_noise(repeated))
    rounds = [
        (board, known.same_winner) for board, known in repeated if known.same_winner is not None
    ]
    if len(rounds) >= MIN_BOARDS:
        found.append(_second_round(rounds))
    if advantages := own_maker.advantages(leaderboards, makers, made_by):
        found.append(_own_maker(advantages, _newest(leaderboards)))
    return (*found, *_streaks(aggregates), *_repeats_that_differ(aggregates))


def _noise(repeated: Sequence[tuple[Leaderboard, Repeatability]]) -> Experiment:
    """How far one assistant's answers to one question differ."""
    by_model: dict[str, list[Repeats]] = {}
    for _, known in repeated:
        for model, repeats in known.repeats.items():
            by_model.setdefault(model, []).append(repeats)
    every = [repeats for found in by_model.values() for repeats in found]
    pairs = sum([repeats.pairs for repeats in every])
    return Experiment(
        slug="how-noisy-is-one-answer",
        title="How noisy is one answer?",
        method=(
            "Take each assistant’s last answers to one question by one served version, five at "
            "most, and compare every two of them: whether they name the same #1, whether the lists "
            "are the same, and their average overlap. The chart shows the mean over categories "
            "of the share of pairs, with Wilson’s interval at 95% over categories; the finding "
            "counts all pairs alike, so that categories asked more often weigh more."
        ),
        finding=(
            f"Asked the same question twice, an assistant names the same #1 in "
            f"{_share(sum([r.same_first for r in every]), pairs)} and gives the same list in "
            f"{_share(sum([r.same_list for r in every]), pairs)} of cases; its two lists overlap "
            f"by {fmean([r.overlap for r in every]):.0%} on average "
            f"(n = {pairs:,} pairs of answers, {len(repeated):,} categories)."
        ),
        date=_newest([board for board, _ in repeated]),
        chart=Chart(
            "Asked twice, the same #1",
            tuple(
                _share_bar(model, [r.same_first / r.pairs for r in by_model[model]])
                for model in sorted(by_model)
            ),
        ),
    )


def _second_round(rounds: Sequence[tuple[Leaderboard, bool]]) -> Experiment:
    """How often the round before had the same merged #1."""
    by_level: dict[str, list[bool]] = {"all": [same for _, same in rounds]}
    for level in ("clear", "open", "contradicted"):
        by_level[level] = [same for board, same in rounds if board.certainty.level == level]
    return Experiment(
        slug="how-often-a-second-round-agrees",
        title="How often does a second round agree?",
        method=(
            "In every category whose assistants have all answered on two days, merge everybody’s "
            "newest answers and, apart from that, everybody’s newest of earlier days; count how "
            "often both have the same #1, with Wilson’s interval at 95%. The level of a category "
            "rests on the same answers, so it explains rather than foretells."
        ),
        finding=(
            f"Two rounds in a row put the same product first in "
            f"{_share(sum(by_level['all']), len(rounds))} of categories "
            f"(n = {len(rounds):,} categories)."
        ),
        date=_newest([board for board, _ in rounds]),
        chart=Chart(
            "Two rounds, the same #1",
            tuple(_share_bar(level, same) for level, same in by_level.items() if same),
        ),
    )


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
        title="Do assistants favour their maker?",
        method=(
            "In every category where a product is made by the company behind one of the "
            "assistants, as product files and models.json tell, take that assistant’s mean points "
            "for it over its last answers less the mean of the others’; then the mean over "
            "categories with Student’s interval at 95%. Points go from 5 for a #1 to 1 for a #5."
        ),
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
        title="How often do the assistants agree on #1?",
        method=(
            "For every category that at least two assistants answered, count the product with the "
            "most first places: all of them (unanimous), more than half (majority), fewer (split)."
        ),
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
    overlaps: dict[tuple[str, str], list[float]] = {}
    for board in leaderboards:
        for pair, overlap in board.agreement.overlaps.items() if board.agreement else ():
            overlaps.setdefault(pair, []).append(overlap)
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
        title="How much do two assistants’ lists overlap?",
        method=(
            "Average overlap (from 0, disjoint, to 1, identical; higher places weigh more) of two "
            "assistants’ lists in every category that both answered, then the mean over categories."
        ),
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
        title="Which assistant most often stands alone?",
        method=(
            "For every category that at least three assistants answered, see whether exactly one "
            "names another #1 than the one all others share; count that per assistant, as a share "
            "of the categories it answered."
        ),
        finding=f"Alone against all others: {shares} (n = {len(leaderboards):,} categories).",
        date=_newest(leaderboards),
    )


def _streaks(aggregates: Sequence[CategoryAggregate]) -> Iterator[Experiment]:
    """How long a #1 holds, over the streaks that ended."""
    followed = [r for aggregate in aggregates for r in aggregate.streaks if r.over or r.polls > 1]
    ended = [streak for streak in followed if streak.over]
    if not ended:
        return
    polls = median([streak.polls for streak in ended])
    yield Experiment(
        slug="how-long-a-first-place-lasts",
        title="How long does an assistant’s #1 last?",
        method=(
            "Follow each assistant’s #1 through its successful polls of one question, of each day "
            "the last. A reign ends when another product takes over; its length is the number of "
            "its polls. Reigns seen in one poll only and not yet ended are left out; those that "
            "still last are not counted as ended."
        ),
        finding=(
            f"In {len(ended):,} of {len(followed):,} cases a first place was lost, in half of them "
            f"after at most {_number(polls, 'answer')} (n = {_number(len(ended), 'ended reign')})."
        ),
        date=max([streak.end for streak in followed])[:10],
        chart=Chart(
            "Ended reigns by their length",
            (
                *(
                    _share_bar(_number(length, "poll"), [s.polls == length for s in ended])
                    for length in range(1, LONGEST)
                ),
                _share_bar(f"{LONGEST} polls or more", [s.polls >= LONGEST for s in ended]),
            ),
            counted="ended reigns",
        ),
    )


def _repeats_that_differ(aggregates: Sequence[CategoryAggregate]) -> Iterator[Experiment]:
    """How often #1 changes: changes per repeated answer."""
    changes = [change for aggregate in aggregates for change in aggregate.changes]
    streaks = [streak for aggregate in aggregates for streak in aggregate.streaks]
    repeats = sum([streak.polls - (not streak.over) for streak in streaks])
    if not changes:
        return
    confirmed = sum([change.confirmed for change in changes])
    yield Experiment(
        slug="how-often-a-first-place-flips",
        title="How often does asking again bring another #1?",
        method=(
            "Compare every successful poll with the same assistant’s previous successful poll of "
            "the same question, of each day the last. A change is confirmed when the next answer "
            "names the new #1 again and the last confirmed #1 was another."
        ),
        finding=(
            f"{_share(len(changes), repeats)} of repeated answers named another #1; "
            f"{confirmed:,} of {_number(len(changes), 'change')} confirmed "
            f"(n = {_number(repeats, 'repeated answer')})."
        ),
        date=max([streak.end for streak in streaks])[:10],
    )


def _newest(leaderboards: Sequence[Leaderboard]) -> str:
    return max([board.newest for board in leaderboards])[:10]


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}%"


def _number(number: float, what: str) -> str:
    return f"{number:,g} {what}" if number == 1 else f"{number:,g} {what}s"
