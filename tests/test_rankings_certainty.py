"""Certainty: how far a ranking can be trusted."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import pytest
from builders import answered, category
from certainty_figures import first_of
from hypothesis import given
from hypothesis import strategies as st

from store.rankings import aggregates, certainty, leaderboards, sentences
from store.rankings.intervals import student
from store.rankings.leader_changes import LeaderChanges
from store.rankings.names import Names
from store.rankings.own_maker import advantages
from store.rankings.windows import Window, WindowedAnswer
from store.records import Poll, Site

if TYPE_CHECKING:
    from store.rankings.windows import Places

RULES = Site(version=1, name="Test", drop_after_days=20)
EXAMPLE = "XYZVW XYZWV YXZVU · XZWYV YXZUW XYWZU · YXWZV XYZWU YWXZU · XWYZU ZXYWV XYZVU"
"""Three answers of four assistants, newest first."""


def answers(text: str) -> list[list[Places]]:
    return [[tuple(answer) for answer in each.split()] for each in text.split("·")]


def slugs(windows: list[list[Places]]) -> dict[str, str]:
    return {p: p.lower() for p in certainty.named(windows)}


def rounded(interval: tuple[float, float]) -> list[float]:
    return [round(end, 4) for end in interval]


def test_the_worked_example_holds_to_four_decimals() -> None:
    """The example that the methodology tells: means, ranges, contenders, shares, intervals."""
    windows = answers(EXAMPLE)
    table = certainty.PointTable(windows, slugs(windows))
    means = {p: round(table.mean[p] / certainty.UNIT, 4) for p in table.order}
    assert means == {"X": 18, "Y": 16, "Z": 11.6667, "W": 8.3333, "V": 3.3333, "U": 2.6667}
    assert table.contenders == ["X", "Y"]
    pairs = {"X": (1, 2), "Y": (1, 2), "Z": (3, 4), "W": (3, 4), "V": (5, 6), "U": (5, 6)}
    assert table.ranges == pairs
    share = certainty.first_share(windows, slugs(windows), "X")
    assert share
    assert (share.first_in, share.combinations, round(share.share, 4)) == (65, 81, 0.8025)
    assert rounded(share.interval) == [0.2893, 0.9759]
    assert rounded(certainty.presence(windows, "X").interval) == [0.7575, 1]
    assert rounded(certainty.presence(windows, "W").interval) == [0.5520, 0.9530]
    assert rounded(certainty.firsts(windows, "X").interval) == [0.3195, 0.8067]


PLACES = st.permutations("ABCDEFG").flatmap(
    lambda order: st.integers(1, 5).map(lambda n: (*order[:n], *[None] * (5 - n)))
)
WINDOWS = st.lists(st.lists(PLACES, min_size=1, max_size=3), min_size=1, max_size=4)


@given(WINDOWS)
def test_first_places_are_those_of_merging_each_combination(windows: list[list[Places]]) -> None:
    """Counting in packed numbers finds what merging every combination finds."""
    told = slugs(windows)
    counted = certainty.winners(windows, told)
    for row in product(*windows):
        lists = [{p: rank for rank, p in enumerate(places, 1) if p} for places in row]
        counted[first_of(lists, told.__getitem__)] -= 1
    assert not +counted
    assert not -counted


@given(WINDOWS.filter(lambda windows: all(len(each) > 1 for each in windows)))
def test_no_product_is_ahead_of_one_that_may_be_first(windows: list[list[Places]]) -> None:
    """Ranges, contenders and the order of mean points never contradict one another."""
    table = certainty.PointTable(windows, slugs(windows))
    best = {p: low for p, (low, _) in table.ranges.items()}
    assert table.contenders[0] == table.order[0]
    assert best[table.order[0]] == 1
    for one in table.order:
        assert table.ranges[one][0] <= table.order.index(one) + 1 <= table.ranges[one][1]
        for other in table.order:
            assert not (table.is_ahead(one, other) and table.is_ahead(other, one))
            if table.is_ahead(one, other):
                assert table.mean[one] > table.mean[other]


def board(*polls: Poll, models: str = "ABCD") -> leaderboards.Leaderboard:
    aggregate = aggregates.read("crm", category(), polls, Names({}))
    slugs = {id_: id_.removeprefix("=") for id_ in aggregate.ids}
    found = leaderboards.board(aggregate, models, RULES, slugs)
    assert found
    return found


def polls(text: str, **fields: str) -> list[Poll]:
    """The answers of an example as polls, a day apart, oldest first."""
    found = []
    for model, each in zip("ABCD", text.split("·"), strict=False):
        for day, names in enumerate(reversed(each.split()), 1):
            at = f"2026-10-{day:02}T06:00:00Z"
            found.append(answered(model, list(names), at, **fields))
    return sorted(found, key=lambda poll: poll.polled_at)


def sentence(found: leaderboards.Leaderboard) -> str:
    """The sentence of a board, as the answers tell it."""
    told = {id_: id_.removeprefix("=").upper() for id_ in found.slugs}
    share = certainty.first_share(found.answers, found.slugs, found.certainty.first)
    return sentences.certainty(found.certainty, found.firsts, found.windows, told, share)


SENTENCES = {
    EXAMPLE: "Open: X and Y cannot be told apart (12 answers, 95 %). X comes first in 65 of 81 "
    "combinations of the assistants' last answers.",
    "XYZ XYZ XYZ · XZY XYZ XYZ · XYZ XYZ XZY · XYZ XYZ XYZ": "Clear: over 12 answers X is ahead "
    "of every other product by more than chance. X comes first in 81 of 81 combinations of the "
    "assistants' last answers.",
    "XY XY XY · XY XY XY": "Open: X and Y cannot be told apart (6 answers, 95 %). X comes first in "
    "9 of 9 combinations of the assistants' last answers, but so few answers may all be luck.",
    "XY XY · XY XY": "Open: X and Y cannot be told apart (4 answers, 95 %).",
    "ABCDE BACDE · FGHAB GFHAB": "Open: A, B, F, G and 2 more cannot be told apart (4 answers, "
    "95 %).",
    "YX XY XY XY XY · YX XY XY XY XY · YX XY XY XY XY · XY XY XY XY XY": "Contradicted: the latest "
    "answers put Y first, but over 20 answers X is ahead of it by more than chance.",
    "XY · XY XY": "Not measured yet: A has answered once.",
    "XY · XY": "Not measured yet: A and B have each answered once.",
}


@pytest.mark.parametrize(("text", "expected"), SENTENCES.items())
def test_each_level_has_its_sentence(text: str, expected: str) -> None:
    """What is sure is told in words that name the products and what was counted."""
    assert sentence(board(*polls(text))) == expected


def test_a_new_version_starts_the_window_anew() -> None:
    """Answers by another served version are not compared; none is no version and equals none."""
    old = polls("XY XY · XY XY")
    new = answered("A", ["Y"], "2026-10-09T06:00:00Z", served_model="v2")
    found = board(*old, new)
    assert [len(window.answers) for window in found.windows.values()] == [1, 2]
    assert sentence(found) == "Not measured yet: A has one answer that can be compared."
    named = [*polls("XY XY · XY XY", served_model="v1"), new]
    assert (
        sentence(board(*named))
        == "Not measured yet: A has answered once since its version changed."
    )
    back = answered("A", ["X"], "2026-10-10T06:00:00Z", served_model="v1")
    assert len(board(*named, back).windows["A"].answers) == 1


def test_another_wording_starts_the_window_anew() -> None:
    """Only answers to the question that stands are compared."""
    old = polls("XY XY", question="Which one was it?")
    found = board(*old, *polls("XY"), models="A")
    assert len(found.windows["A"].answers) == 1


def test_answers_that_are_too_old_are_not_compared() -> None:
    """An answer over ``drop_after_days`` older than the newest of all is left out."""
    early = answered("A", ["X"], "2026-09-01T06:00:00Z")
    found = board(early, *polls("XY XY · XY XY"))
    assert [len(window.answers) for window in found.windows.values()] == [2, 2]


def test_five_answers_are_compared_at_most() -> None:
    """The newest five, however many there are, failures not counted."""
    found = board(*polls("XY XY XY YX YX YX YX"), models="A")
    assert [places[0] for places in found.answers[0]] == ["=x", "=x", "=x", "=y", "=y"]


def test_a_product_named_twice_keeps_its_better_rank() -> None:
    """The lower row is no place: those below it keep their ranks."""
    polled = [answered("A", ["X", "Y", "x", "Z"], f"2026-10-0{day}T06:00:00Z") for day in (1, 2)]
    found = board(*polled, models="A")
    assert found.answers[0][0] == ("=x", "=y", None, "=z", None)
    table = certainty.PointTable(found.answers, found.slugs)
    assert table.mean["=z"] == 2 * certainty.UNIT


@pytest.mark.parametrize(("number", "each"), [(1, 5), (4, 5), (5, 4), (6, 3)])
def test_as_many_answers_are_combined_as_1024_ways_allow(number: int, each: int) -> None:
    """Five of four assistants, four of five, three of six; of seven none."""
    windows: list[list[Places]] = [[("X", "Y", None, None, None)] * 5] * number
    found = certainty.first_share(windows, {"X": "x", "Y": "y"}, "X")
    assert found
    assert found.combinations == found.first_in == each**number
    assert certainty.first_share([*windows[:1]] * 7, {"X": "x", "Y": "y"}, "X") is None


def test_equal_lists_of_everybody_are_as_alike_as_can_be() -> None:
    """Self-overlap and relative overlap are 1, and the round before had the same #1."""
    found = board(*polls("XYZ XYZ · XYZ XYZ")).repeatability
    assert found
    assert (found.own_overlap, found.relative_overlap, found.same_winner) == (1, 1, True)
    assert [(r.pairs, r.same_first, r.same_list) for r in found.repeats.values()] == [(1, 1, 1)] * 2
    assert board(*polls("XYZ · XYZ")).repeatability is None


def test_a_second_round_is_of_another_day() -> None:
    """Everybody's newest answers are compared with the newest of days before, not of that day."""
    early = polls("YX YX · YX YX")
    late = [answered(m, ["X", "Y"], f"2026-10-09T06:00:0{i}Z") for m in "AB" for i in range(2)]
    assert board(*early, *late).repeatability.same_winner is False  # type: ignore[union-attr]
    assert board(*late).repeatability.same_winner is None  # type: ignore[union-attr]
    first_alike = board(*polls("XYZ XZY")).repeatability
    assert first_alike
    assert [(r.same_first, r.same_list) for r in first_alike.repeats.values()] == [(1, 0)]


def test_products_tied_at_the_top_are_all_the_published_first() -> None:
    """No order of slugs makes a tie contradicted: the one that answers bear out is meant."""
    tie = "XYZ YXZ YXZ YXZ YXZ · YXZ YXZ YXZ YXZ YXZ"
    found = board(*polls(tie))
    assert {entry.tied for entry in found.entries[:2]} == {True}
    assert found.entries[0].product == "=x"
    assert (found.certainty.level, found.certainty.first) == ("clear", "=y")
    assert "Y is ahead of every other product" in sentence(found)
    assert "by more than chance, though the latest answers tie it with X." in sentence(found)
    assert "Y comes first in" in sentence(found)


def test_an_age_that_shortens_a_window_is_no_change_of_version() -> None:
    """What is too old is left out, and the sentence does not blame a version."""
    old = [answered("A", ["X"], "2026-09-01T06:00:00Z", served_model="v1")]
    early = answered("A", ["X"], "2026-09-02T06:00:00Z", served_model="v2")
    found = board(*old, early, *polls("XY · XY XY", served_model="v2"))
    assert sentence(found) == "Not measured yet: A has one answer that can be compared."


def window(text: str, version: str = "v1") -> Window:
    return Window(
        tuple(WindowedAnswer("2026-10-01T06:00:00Z", tuple(each)) for each in text.split()),
        version,
        None,
        renewed=False,
    )


SLUGS = {product: product for product in "XYZVWU"}
LITTLE, WHOLLY = "YXZ YXZ XYZ", "YZVWU YZVWU YZVWU"
"""Answers of which a third, and of which none, still puts X before Y."""


def test_another_leader_is_announced_once_it_stands_alone() -> None:
    """Not while several cannot be told apart, nor where the same one leads again."""
    watch = LeaderChanges()
    rounds = ("XYZ XYZ XYZ", "XYZ YXZ XZY", "YXZ XYZ XYZ", "YXZ YXZ YXZ", "YXZ YXZ YXZ")
    found = [watch.next(dict.fromkeys("ABCD", window(each)), SLUGS) for each in rounds]
    [change] = [change for change in found if change]
    assert (found.index(change), change.before, change.after, change.answers) == (3, "X", "Y", 12)
    assert change.cause is None


@pytest.mark.parametrize(
    ("now", "cause"),
    [
        ({"A": window(WHOLLY, "v2"), **dict.fromkeys("BCD", window(LITTLE))}, "A"),
        ({"A": window("YXZ YXZ YXZ", "v2"), **dict.fromkeys("BCD", window("YXZ YXZ"))}, None),
        ({"A": window(WHOLLY), **dict.fromkeys("BCD", window(LITTLE))}, None),
        ({"A": window(LITTLE, "v2"), **dict.fromkeys("BCDEF", window(WHOLLY))}, None),
    ],
    ids=["one version", "everybody", "no version", "others joined"],
)
def test_only_a_version_that_brought_most_of_the_shift_is_named(
    now: dict[str, Window], cause: str | None
) -> None:
    """Over half of the shift, counting assistants that joined."""
    watch = LeaderChanges()
    assert watch.next(dict.fromkeys("ABCD", window("XYZ XYZ XYZ")), SLUGS) is None
    found = watch.next(now, SLUGS)
    assert found
    assert (found.cause and found.cause.model) == cause


def test_an_own_maker_is_compared_with_the_assistants_of_others() -> None:
    """Five points from its own assistants, none from the others, siblings counted with neither."""
    found = board(*polls("XYZ XYZ · XYZ XYZ · ZYV ZYV · ZYV ZYV"))
    makers = {"A": "acme", "B": "acme", "C": "other"}
    assert advantages([found], makers, {"=x": "acme"}) == [5]
    assert advantages([found], makers, {"=z": "other"}) == [pytest.approx(5 - (3 + 3 + 5) / 3)]
    assert advantages([found], makers, {"=x": "nobody"}) == []
    assert advantages([found], dict.fromkeys("ABCD", "acme"), {"=x": "acme"}) == []


def test_students_quantiles_go_on_beyond_the_table() -> None:
    """At 31, 40, 60 and 120 degrees of freedom within 0.002 of the printed tables."""
    for freedom, printed in ((31, 2.040), (40, 2.021), (60, 2.000), (120, 1.980)):
        assert abs(student(freedom) - printed) <= 0.002


def test_what_is_merged_does_not_depend_on_who_is_configured_first() -> None:
    """Level, contenders and ranges are the same in every order of assistants."""
    polled = polls(EXAMPLE)
    one, other = board(*polled), board(*polled, models="DCBA")
    assert one.certainty == other.certainty
    assert (
        certainty.PointTable(one.answers, one.slugs).ranges
        == certainty.PointTable(other.answers, other.slugs).ranges
    )
