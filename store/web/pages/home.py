"""The home page: where assistants agree, where not, and findings."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from store.rankings.changes import Change
from store.rankings.leaderboards import Leaderboard
from store.rankings.sentences import level_in_words, listed, number_in_words
from store.site_summary import RankedTopic
from store.web.pages.answer_box import squares_now
from store.web.pages.routes import page
from store.web.queries import Query
from store.web.view import View

RACES = 4
CHANGES, CATEGORIES = 10, 4
"""Confirmed changes that are looked at, the newest, and how many of their categories are shown."""
MIN_CATEGORIES = 10
"""Categories below which a share of them is not worth a headline."""


@page("/", "home.html")
def home(view: View, query: Query) -> dict[str, Any]:  # noqa: ARG001
    """Show what is new, where assistants agree and where not."""
    summary = view.snapshot.summary
    ranked = summary.ranked
    latest: dict[tuple[str, str], Change] = {}  # a later change ends what held
    for change in summary.changes:
        latest.setdefault((change.slug, change.model), change)
    confirmed = (change for change in latest.values() if change.confirmed)
    by_category: dict[str, list[Change]] = {}
    for change in islice(confirmed, CHANGES):
        by_category.setdefault(change.slug, []).append(change)
    agreed, divided = _agreed(ranked)[:RACES], _divided(ranked)
    examples = [*divided, *agreed] or ranked
    return {
        "agreed": [(board, _front_runners(board, view), squares_now(board)) for board in agreed],
        "divided": [(board, _front_runners(board, view), squares_now(board)) for board in divided],
        # Short names are those that a visitor knows at first sight.
        "examples": sorted(examples, key=lambda b: len(b.category.subject))[:RACES],
        "findings": list(_findings(view)),
        "groups": _groups(summary.topics),
        "confirmed": list(islice(by_category.items(), CATEGORIES)),
    }


def _agreed(ranked: Iterable[Leaderboard]) -> list[Leaderboard]:
    """Return the unanimous rankings, those with a clear lead first, then by how alike lists are."""
    unanimous = [b for b in ranked if b.agreement and b.agreement.label == "unanimous"]
    return sorted(unanimous, key=lambda b: (b.certainty.level != "clear", -_overlap(b)))


def _divided(ranked: Iterable[Leaderboard]) -> list[Leaderboard]:
    """Return the closest rankings, a tie and an unsettled one among them where there are."""
    measured = [b for b in ranked if b.certainty.level in ("open", "contradicted")]
    split = [b for b in measured if b.agreement and b.agreement.label != "unanimous"]
    split.sort(key=_gap)
    # Read backwards, the dict ends with the closest ranking of each kind.
    kinds = {level_in_words(board) + str(len(board.winners) > 1): board for board in split[::-1]}
    chosen = [*kinds.values(), *(board for board in split if board not in kinds.values())]
    return sorted(chosen[:RACES], key=_gap)


def _gap(board: Leaderboard) -> tuple[int, float]:
    """Return the points between the first two places, then how alike whole lists are."""
    scores = [entry.score for entry in board.entries[:2]]
    return scores[0] - scores[-1], _overlap(board)


def _overlap(board: Leaderboard) -> float:
    return board.agreement.overlap if board.agreement else 1.0


def _front_runners(board: Leaderboard, view: View) -> str:
    """Return who is first in a few words; all that cannot be told apart, or how many they are."""
    contenders = [view.name(board.entries[0].product), *map(view.name, board.certainty.rivals)]
    if len(board.winners) > 1:
        return listed([view.name(product) for product in board.winners])
    leader = view.name(board.entries[0].product)
    if board.certainty.level == "contradicted":
        return f"{leader} now, {view.name(board.certainty.ahead_of_first[0])} over all answers"
    if board.certainty.level != "open":
        return leader
    if len(contenders) == 2:  # noqa: PLR2004 - one or the other
        return " or ".join(contenders)
    return f"{number_in_words(len(contenders)).capitalize()} may be first"


def _findings(view: View) -> Iterator[tuple[str, str, str]]:
    """Yield up to three findings: a figure for large type, its sentence, the page that has more.

    None rests on a handful of categories.
    """
    summary = view.snapshot.summary
    labels = [board.agreement.label for board in summary.ranked if board.agreement]
    if len(labels) >= MIN_CATEGORIES:
        share = labels.count("unanimous") / len(labels)
        assistants = number_in_words(len(view.snapshot.models))
        everybody = f"all {assistants} assistants"
        if any(board.missing for board in summary.ranked):
            everybody = "all assistants that answered"
        rankings = f"In {share:.0%} of rankings {everybody}"
        yield _one_in(share), f"{rankings} name the same product first.", "labs/agreement-on-first"
    if summary.mean_repeats and summary.mean_repeats.n >= MIN_CATEGORIES:
        share = 1 - summary.mean_repeats.same_first
        often = f"names another product first {share:.0%} of the time"
        sentence = f"Ask an assistant the same question twice, and it {often}."
        yield _one_in(share), sentence, "labs/how-noisy-is-one-answer"
    clear = len(summary.levels["clear"])
    measured = len(summary.ranked) - len(summary.levels["unmeasured"])
    if measured >= MIN_CATEGORIES:
        those = f"{clear / measured:.0%} have a leader that is not just luck"
        sentence = f"Of the rankings asked often enough to tell, {those}."
        yield f"{clear:,} of {measured:,}", sentence, "methodology#certainty"


def _one_in(share: float) -> str:
    """Return a share as people say it, where that is at most five points off.

    >>> _one_in(.21), _one_in(.41), _one_in(.7)
    ('1 in 5', '41%', '70%')
    """
    one_in = round(1 / share) if share else 1
    return f"1 in {one_in}" if one_in > 1 and abs(1 / one_in - share) <= 0.05 else f"{share:.0%}"  # noqa: PLR2004


def _groups(topics: Iterable[RankedTopic]) -> dict[str | None, list[RankedTopic]]:
    """Return the topics with something ranked under their groups, both in the order of the file."""
    groups: dict[str | None, list[RankedTopic]] = {}
    for topic in topics:
        if topic.parts:
            groups.setdefault(topic.group, []).append(topic)
    return groups
