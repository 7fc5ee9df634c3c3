"""The service's own experiments, computed from the history whenever it changes.

Each finding quotes its figures with their n. What is asked, and how the figures are computed, is
in ``templates/labs.json``, by slug. An experiment without enough data is left out.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from math import sqrt
from statistics import fmean, stdev

from msgspec import Struct

from store.rankings.agreement import CONDORCET, POINTS, Repeats
from store.rankings.certainty import Interval, student, wilson
from store.rankings.changes import Streak
from store.rankings.leaderboards import Leaderboard
from store.rankings.merging import points
from store.rankings.names import ProductId
from store.rankings.rounds import TrackRecord
from store.rankings.runs import Run
from store.rankings.sentences import LEVELS, listed, plural

MIN_BOARDS = 5
"""Categories under which a share would mislead, so that no experiment is shown; a judgement."""

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


class Experiment(Struct, frozen=True):
    """A question put to the data; ``date`` is that of the newest poll it rests on, YYYY-MM-DD.

    ``bars`` are the figures of ``what`` it asks: shares from 0 to 1, unless they are points. The
    ``n`` of a bar counts what ``counted`` names.
    """

    slug: str
    finding: str
    date: str
    what: str
    bars: tuple[Bar, ...]
    counted: str = "categories"
    in_points: bool = False

    def figure(self, value: float) -> str:
        """Return a value as it is written: a share in percent, points with their sign."""
        return f"{value:+.2f}" if self.in_points else f"{value:.1%}"


def compute(
    leaderboards: Sequence[Leaderboard],
    streaks: Sequence[Streak],
    makers: Mapping[str, str],
    made_by: Mapping[ProductId, str],
    repeats: Mapping[str, Sequence[Repeats]],
    record: TrackRecord,
) -> tuple[Experiment, ...]:
    """Return what the data can answer; ``made_by`` is by product, other mappings by model."""
    experiments = []
    if sum([board.agreement is not None for board in leaderboards]) >= MIN_BOARDS:
        experiments.append(_agreement_on_first(leaderboards))
    if len(leaderboards) >= MIN_BOARDS:
        experiments.append(_rules(leaderboards))
    mean = Repeats.mean([repeat for own in repeats.values() for repeat in own])
    if mean and mean.n >= MIN_BOARDS:
        repeated = [board for board in leaderboards if board.repeatability]
        experiments.append(_repeatability(mean, repeats, _newest(repeated)))
    if record.agreed:
        experiments.append(_track_record(record))
    advantages = own_maker_advantages(leaderboards, makers, made_by)
    if len(advantages) >= MIN_OWN:
        experiments.append(_own_maker(advantages, _newest(leaderboards)))
    followed = [streak for streak in streaks if streak.followed]
    if followed:
        experiments.append(_survival(followed))
    return tuple(experiments)


def _repeatability(
    mean: Repeats, repeats: Mapping[str, Sequence[Repeats]], date: str
) -> Experiment:
    """Return how far one assistant's answers to one question differ."""
    pairs = sum([repeat.n for own in repeats.values() for repeat in own])
    return Experiment(
        slug="how-noisy-is-one-answer",
        finding=(
            f"Asked the same question twice, an assistant names the same #1 in "
            f"{mean.same_first:.1%} and gives the same list in {mean.same_list:.1%} of cases; "
            f"its two lists overlap by {mean.overlap:.0%} on average "
            f"(n = {mean.n:,} questions to one assistant, {pairs:,} pairs of answers)."
        ),
        date=date,
        what="Asked twice, the same #1",
        bars=tuple(
            _share_bar(model, [repeat.same_first for repeat in repeats[model]])
            for model in sorted(repeats)
        ),
        counted="questions",
    )


def _rules(leaderboards: Sequence[Leaderboard]) -> Experiment:
    """Return how often other usual rules of counting have the same #1."""
    n = len(leaderboards)
    whole = sum([all(board.rules.values()) for board in leaderboards])
    agreeing = {
        rule: [board.rules[rule] for board in leaderboards if rule in board.rules]
        for rule in (*POINTS, CONDORCET)
    }
    return Experiment(
        slug="would-another-rule-choose-another",
        finding=(
            f"In {_share(whole, n)} of rankings no usual way of counting puts another product "
            f"before the #1 (n = {n:,} rankings)."
        ),
        date=_newest(leaderboards),
        what="Rankings where the rule has the same #1",
        bars=tuple(_share_bar(rule, agrees) for rule, agrees in agreeing.items() if agrees),
        counted="rankings",
    )


def _track_record(record: TrackRecord) -> Experiment:
    """Return whether the next round agreed, by what we had said."""
    n = sum([len(agreed) for agreed in record.agreed.values()])
    return Experiment(
        slug="track-record",
        finding=f"{track_record_sentence(record)} ({n:,} rounds of all levels had a next one).",
        date=record.until,
        what="The next round had the same #1",
        bars=tuple(
            _share_bar(words, record.agreed[level])
            for level, words in LEVELS.items()
            if level in record.agreed
        ),
        counted="rounds",
    )


def track_record_sentence(record: TrackRecord) -> str:
    """Return how often the next round agreed with what was clear, without its full stop."""
    clear = record.agreed.get("clear")
    if not clear:
        return "No ranking with a clear lead has had another round yet"
    return f"When we said clear, the next round agreed in {sum(clear):,} of {len(clear):,}"


def _agreement_on_first(leaderboards: Sequence[Leaderboard]) -> Experiment:
    """Return how often all, or most, assistants have the same #1."""
    shared = [board for board in leaderboards if board.agreement]
    labels = [board.agreement.label for board in leaderboards if board.agreement]
    n, count = len(labels), Counter(labels)
    return Experiment(
        slug="agreement-on-first",
        finding=(
            f"All assistants name the same #1 in {_share(count['unanimous'], n)} of rankings, "
            f"more than half of them in {_share(count['majority'], n)}, fewer in "
            f"{_share(count['split'], n)} (n = {n:,} categories)."
        ),
        date=_newest(shared),
        what="Categories by agreement on #1",
        bars=tuple(
            _share_bar(label, [own == label for own in labels])
            for label in ("unanimous", "majority", "split")
        ),
    )


def _survival(followed: Sequence[Streak]) -> Experiment:
    """Return how long a #1 holds, by those that were followed."""
    bars = survival(followed, LONGEST)  # the first is always there: each was followed once
    lasting = sum([not streak.over for streak in followed])
    # Of the rest the second step and the last: more figures would not be read.
    numbered = list(enumerate(bars, start=1))
    later = [f"{bar.value:.1%} after {n}" for n, bar in (*numbered[1:2], *numbered[2:][-1:])]
    standing = listed([f"{bars[0].value:.1%} still stand after one more answer", *later])
    return Experiment(
        slug="how-long-a-first-place-lasts",
        finding=(
            f"Of first places, {standing} (n = {plural(len(followed), 'first place')}, "
            f"{lasting:,} of them not lost yet)."
        ),
        date=max([streak.end for streak in followed])[:10],
        what="First places that still stand",
        bars=tuple(bars),
        counted="first places followed so long",
    )


def survival(streaks: Collection[Streak], most: int) -> list[Bar]:
    """Return how many first places stand after 1, 2 … further answers, at most so many.

    By Kaplan and Meier: a streak that has not ended counts as long as it was followed. The interval
    is Wilson's for a sample whose share would vary as much as Greenwood's variance says; ``n`` are
    the streaks that were followed for that long.
    """
    followed = Counter(streak.followed for streak in streaks)  # leave the sample after so many
    ended = Counter(streak.polls for streak in streaks if streak.over)
    steps: list[Bar] = []
    share, hazard, standing = 1.0, 0.0, len(streaks)
    for answers in range(1, most + 1):
        standing -= followed[answers - 1]
        if not standing:
            break
        lost = ended[answers]
        share *= 1 - lost / standing
        # The sum of Greenwood's variance; where the last one falls it would be infinite.
        hazard += lost / (standing * (standing - lost)) if lost < standing else 0.0
        size = (1 - share) / (share * hazard) if 0 < share < 1 else standing
        interval = wilson(share * size, size)
        steps.append(Bar(f"after {plural(answers, 'more answer')}", share, interval, standing))
    return steps


def _own_maker(advantages: Sequence[float], date: str) -> Experiment:
    """Return what an assistant gives its own maker's products beyond the others."""
    # A category is one observation, however many pairs it has: they share its answers.
    mean, n = fmean(advantages), len(advantages)
    # A floor, for a few categories that happen to be equal prove no certainty.
    half = student(n - 1) * max(stdev(advantages), LEAST_DEVIATION) / sqrt(n)
    low, high = mean - half, mean + half
    doubt = "." if low > 0 or high < 0 else ", which chance could explain."
    return Experiment(
        slug="own-maker",
        finding=(
            f"Assistants give their own maker’s products {abs(mean):.2f} points "
            f"{'more' if mean >= 0 else 'fewer'} than the others do (95%: {low:+.2f} to "
            f"{high:+.2f}; n = {n} categories){doubt}"
        ),
        date=date,
        what="More points than from the others",
        bars=(Bar("own maker", mean, (low, high), n),),
        in_points=True,
    )


def own_maker_advantages(
    leaderboards: Iterable[Leaderboard],
    makers: Mapping[str, str],
    made_by: Mapping[ProductId, str],
) -> list[float]:
    """Return per category the points that assistants give their maker's products beyond the others.

    ``makers`` are by model, ``made_by`` by product. A category's figure is the mean over all such
    pairs of assistant and product; categories without one are left out.
    """
    figures = []
    for board in leaderboards if makers and made_by else ():
        own = [product for product in board.slugs if product in made_by]
        runs = board.runs() if own else {}
        advantages: list[Fraction] = []
        for product in own:
            means = {model: _mean_points(run, product) for model, run in runs.items()}
            maker = made_by[product]
            makers_own = [value for model, value in means.items() if makers.get(model) == maker]
            others = [value for model, value in means.items() if makers.get(model) != maker]
            # Where nobody names it, equal zeros would only dilute the figure.
            if others and any(means.values()):
                others_mean = sum(others, Fraction(0)) / len(others)
                advantages += [value - others_mean for value in makers_own]
        if advantages:
            figures.append(fmean(advantages))
    return figures


def _mean_points(run: Run, product: ProductId) -> Fraction:
    """Return the mean points of a product over the window; none where it is not named."""
    ranks = [a.places.index(product) + 1 for a in run.window if product in a.places]
    return Fraction(sum(map(points, ranks)), len(run.window))


def _share_bar(label: str, shares: Sequence[float]) -> Bar:
    """Return the mean of shares over categories with Wilson's interval."""
    n = len(shares)
    return Bar(label, sum(shares) / n, wilson(sum(shares), n), n)


def _newest(leaderboards: Sequence[Leaderboard]) -> str:
    return max([board.newest for board in leaderboards])[:10]


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}%"
