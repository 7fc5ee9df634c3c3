"""Leaderboards: one category's merged ranking as it stands."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from msgspec import Struct

from store.rankings import agreement, certainty, merging, rounds
from store.rankings.aggregates import CategoryAggregate
from store.rankings.agreement import Repeatability
from store.rankings.certainty import Certainty
from store.rankings.names import ProductId
from store.rankings.rounds import LeaderChange, Round
from store.rankings.runs import DAY, AnswerLog, Run
from store.records import Category, Site


class Leaderboard(Struct, frozen=True, dict=True):
    """A ranked category. ``newest`` is the time of the newest counted poll.

    ``question`` is the wording that was answered, ``next_question`` the file's if that differs.
    ``log`` are all answers of the category, ``slugs`` those of all products in them. ``polls``
    counts those of the configured models, in any wording, ``answers`` those that succeeded.
    """

    slug: str
    category: Category
    question: str
    next_question: str | None
    counted: tuple[merging.CountedAnswer, ...]
    missing: tuple[str, ...]
    entries: tuple[merging.Entry, ...]
    agreement: agreement.Agreement | None
    newest: str
    polls: int
    answers: int
    log: AnswerLog
    slugs: Mapping[ProductId, str]
    site: Site

    @property
    def subject(self) -> str:
        """The subject of the category, or the older wording that was asked."""
        return f"“{self.question}”" if self.next_question else self.category.subject

    @property
    def updated(self) -> str:
        """The UTC date of the newest counted poll."""
        return self.newest[:10]

    @cached_property
    def models(self) -> tuple[str, ...]:
        """The models that are counted, in configured order."""
        return tuple(answer.model for answer in self.counted)

    @cached_property
    def by_title(self) -> tuple[str, str]:
        """The order of leaderboards by title."""
        return self.category.title.casefold(), self.slug

    @cached_property
    def winners(self) -> list[ProductId]:
        """The #1, and every product tied with it."""
        return [entry.product for entry in self.entries if entry.place == 1]

    @cached_property
    def votes(self) -> Counter[ProductId]:
        """The number of counted models that rank each product #1."""
        return Counter(answer.answer.first for answer in self.counted)

    @cached_property
    def rules(self) -> Mapping[str, bool]:
        """By rule of counting, whether it puts nothing before the #1."""
        return agreement.compare_rules(self.entries)

    def runs(self) -> dict[str, Run]:
        """Return the run of each counted model."""
        # Not kept: the sums of all rankings together would fill the memory.
        return self.log.runs(self.question, self.models)

    @cached_property
    def certainty(self) -> Certainty:
        """The certainty of the first place; made when first needed, in a tenth of a millisecond."""
        first = self.entries[0]
        return certainty.assess(self.runs(), self.slugs, first.product, tied=first.tied)

    @cached_property
    def ranges(self) -> Mapping[ProductId, tuple[int, int]]:
        """The best and the worst rank that each product may have; none while not measured."""
        comparison = certainty.Comparison(list(self.runs().values()), self.slugs)
        return comparison.ranges() if comparison.is_measured else {}

    @cached_property
    def windows(self) -> Mapping[str, Sequence[merging.LoggedAnswer]]:
        """The newest answers of each counted model's run, newest first, five at most."""
        return {model: run.window for model, run in self.runs().items()}

    @cached_property
    def rounds(self) -> tuple[Round, ...]:
        """The days with answers, oldest first."""
        models = (*self.models, *self.missing)
        return tuple(
            rounds.replay_rounds(self.log, self.category.question, models, self.site, self.slugs)
        )

    @cached_property
    def leader_changes(self) -> tuple[LeaderChange, ...]:
        """The changes of the product that leads by more than chance, oldest first."""
        # Rounds take a tenth of a millisecond each: none are made where nothing can have led.
        is_measurable = len({time // DAY for time in self.log.times}) > certainty.FEWEST_DAYS
        if not is_measurable:
            return ()
        return tuple(day.leader_change for day in self.rounds if day.leader_change)

    @cached_property
    def repeatability(self) -> Repeatability | None:
        """The likeness of answers to one question; made when first needed, in a millisecond."""
        return agreement.repeatability(self.windows)


def leader_changes(boards: Iterable[Leaderboard]) -> list[tuple[Leaderboard, LeaderChange]]:
    """Return the changes of rankings' leaders, newest first."""
    changes = [(board, change) for board in boards for change in board.leader_changes]
    return sorted(changes, key=lambda pair: pair[1].date, reverse=True)


def board(
    answers: CategoryAggregate, models: Sequence[str], site: Site, slugs: Mapping[ProductId, str]
) -> Leaderboard | None:
    """Merge what the configured models answered to the wording that stands; ``None`` if nothing."""
    standing = answers.wordings.standing(models, site)
    if standing is None:
        return None
    current = answers.category.question
    counted = standing.answers
    entries = merging.merge(counted, slugs)
    models_counted = {answer.model for answer in counted}
    states = [answers.states[model] for model in models if model in answers.states]
    return Leaderboard(
        slug=answers.slug,
        category=answers.category,
        question=standing.question,
        next_question=None if standing.question == current else current,
        counted=counted,
        missing=tuple(model for model in models if model not in models_counted),
        entries=entries,
        agreement=agreement.measure(counted, entries),
        newest=standing.newest,
        polls=sum([state.polls for state in states]),
        answers=sum([state.successes for state in states]),
        log=answers.log,
        slugs=slugs,
        site=site,
    )
