"""Certainty: how far a ranking can be trusted."""

import datetime as dt
from collections.abc import Callable, Sequence
from itertools import repeat

import pytest
from builders import answered
from certainty_figures import Figures
from hypothesis import given
from hypothesis import strategies as st
from leaderboards import answers, board_of, name_of, sentences_of

from store.rankings import certainty, sentences
from store.rankings.certainty import Comparison, student
from store.rankings.experiments import own_maker_advantages
from store.rankings.leaderboards import Leaderboard
from store.rankings.merging import LoggedAnswer, ProductsByRank, RunKey
from store.rankings.runs import MAX_DAYS, Run
from store.records import Poll, Site

RULES = Site(version=1, name="Test", drop_after_days=20)
EXAMPLE = "XYZVW XYZWV YXZVU · XZWYV YXZUW XYWZU · YXWZV XYZWU YWXZU · XWYZU ZXYWV XYZVU"
"""Three answers of four assistants, newest first."""


def run_of(answers: Sequence[ProductsByRank], model: str = "A", per_day: int = 1) -> Run:
    """An assistant's run of these answers, oldest first, so many a day."""
    key = RunKey(model, "What is best?", None, "v1")
    run = Run(key)
    for number, places in enumerate(answers):
        day = 739_000 + number // per_day
        run.add(LoggedAnswer(key, f"{date(day)}T06:00:00Z", places))
    return run


def date(day: int) -> str:
    return dt.date.fromordinal(day).isoformat()


def comparison_of(*runs: Run) -> Comparison:
    named = {product for run in runs for product in run.named}
    return Comparison(runs, {product: product.lower() for product in named})


def runs_of(text: str) -> list[Run]:
    """The runs of an example, which tells each assistant's answers newest first."""
    return [
        run_of([tuple(answer) for answer in reversed(part.split())], model)
        for model, part in zip("ABCD", text.split("·"), strict=False)
    ]


def rounded(interval: tuple[float, ...]) -> list[float]:
    return [round(end, 4) for end in interval]


def test_the_worked_example_holds_to_four_decimals() -> None:
    """The example that the methodology tells: means, who is ahead, ranges, shares, intervals."""
    runs = runs_of(EXAMPLE)
    comparison = comparison_of(*runs)
    means = {p: round(comparison.mean_points(p), 4) for p in comparison.order}
    assert means == {"X": 18, "Y": 16, "Z": 11.6667, "W": 8.3333, "V": 3.3333, "U": 2.6667}
    pairs = [("X", "Y"), ("X", "W"), ("X", "V"), ("Y", "V"), ("Z", "U")]
    told = {
        pair: (round(comparison.lead(*pair), 4), round(comparison.threshold(*pair), 4))
        for pair in pairs
    }
    assert told == {
        ("X", "Y"): (2, 12.8299),
        ("X", "W"): (9.6667, 13.1391),
        ("X", "V"): (14.6667, 11.5104),
        ("Y", "V"): (12.6667, 11.9664),
        ("Z", "U"): (9, 12.8299),
    }
    assert comparison.contenders == ["X", "Y", "Z", "W"]
    assert comparison.level("X", tied=False) == "open"
    assert comparison.ranges() == {
        "X": (1, 4), "Y": (1, 4), "Z": (1, 6), "W": (1, 6), "V": (3, 6), "U": (3, 6)
    }  # fmt: skip
    windows = [[answer.places for answer in run.window] for run in runs]
    assert rounded(certainty.presence(windows, "X").interval) == [0.7575, 1]
    assert rounded(certainty.presence(windows, "W").interval) == [0.5520, 0.9530]
    assert rounded(certainty.firsts(windows, "X").interval) == [0.3195, 0.8067]


PLACES = st.permutations("ABCDEFG").flatmap(
    lambda order: st.integers(1, 5).map(lambda n: (*order[:n], *[None] * (5 - n)))
)
RUNS = st.lists(
    st.tuples(st.lists(PLACES, min_size=3, max_size=9), st.integers(1, 3)), min_size=1, max_size=4
).map(lambda drawn: [run_of(places, str(i), per_day) for i, (places, per_day) in enumerate(drawn)])


@given(RUNS)
def test_the_relation_is_what_its_definition_says(runs: list[Run]) -> None:
    """Sums that grow answer by answer give what the days give that are compared afresh."""
    comparison = comparison_of(*runs)
    told = {
        run.key.model: [
            (a.polled_at[:10], {p: i for i, p in enumerate(a.places, 1) if p}) for a in run.answers
        ]
        for run in runs
    }
    figures = Figures(told, str.lower)
    for one in comparison.order:
        assert figures.mean(one) == pytest.approx(comparison.mean_points(one))
        assert figures.range(one) == list(comparison.ranges()[one])
        for tied in (True, False):
            assert figures.level(one, tied=tied) == comparison.level(one, tied=tied)


def test_the_newest_260_days_count() -> None:
    """A run never grows longer, and its sums forget what it has left behind."""
    answers: list[ProductsByRank] = [("X", None, None, None, None)] * 40
    answers += repeat(("Y", "Z", None, None, None), MAX_DAYS)
    run = run_of(answers)
    assert len(run.days) == MAX_DAYS
    assert run.named == ["Y", "Z"]
    assert run.mean_points("Y") == 5


def board(*polls: Poll, models: str = "ABCD") -> Leaderboard:
    found = board_of(polls, models, RULES)
    assert found
    return found


def polls(text: str, **fields: str) -> list[Poll]:
    """The answers of an example as polls, a day apart."""
    oldest_first = (" ".join(reversed(part.split())) for part in text.split("·"))
    return answers("·".join(oldest_first), **fields)


def sentence(found: Leaderboard) -> str:
    """The sentence of a board, as the answers tell it."""
    return sentences.certainty_sentence(found, name_of)


KINDS = {
    "too close to call": EXAMPLE,
    "too close to call with five": "XABCD XBCDE XCDEA · XDEAB XEABC XABCD · "
    "XBCDE XCDEA XDEAB · XEABC XABCD XBCDE",
    "too close to call, as many points": f"XYZ {'YXZ XYZ ' * 3} · WYX {'XYZ YXZ ' * 3}",
    "too close to call, others named first": "YX XYZ YXZ · YXZ XYZ XYZ · XZ YXZ XYZ · ZX XYZ XYZ",
    "too close to call, as many points, others named first": "YX XY YX XY · YX XY XY YX · "
    "ZVWX YX XY XY",
    "too close to call, with one contender behind": f"{'YX ' * 5}{'Z ' * 5} · {'ZX ' * 10}",
    "clear lead": " · ".join(["X X X X X"] * 4),
    "clear lead, others named first": " · ".join(
        [f"{newest} {'XYZ ' * 20}" for newest in ("YX", "YX", "XZ", "ZX")]
    ),
    "unsettled": " · ".join([f"YX {'XY ' * 20}"] * 4),
    "unsettled, others named first": " · ".join(
        [f"{newest} {'YZ ' * 11}" for newest in ("YX", "YX", "X", "ZX")]
    ),
    "tied, one ahead": f"YX {'XAB ' * 6} · XY {'XCD ' * 6}",
    "tied, another ahead": f"YX {'ZYX ' * 20} · XY {'ZXY ' * 20}",
    "tied": f"YX {'XY YX ' * 3} · XY {'XY YX ' * 3}",
    "one on too few days": "XY XY XY · XY XY",
    "both on too few days": "XY XY XY · XY XY XY",
    "each on too few days": "XY · XY XY",
    "once": "XY · XY",
    "one of two too old to count": f"{'XY ' * 30} · {'. ' * 29} ZX",
    "one of three too old to count": f"{'XY ' * 30} · {'XY ' * 30} · {'. ' * 29} ZX",
}


def test_each_level_is_told_as_it_was_read_and_approved(
    snapshot: Callable[[str, str], None],
) -> None:
    """In every sentence: one file shows them all, to be read by people."""
    texts = {kind: sentences_of(board(*polls(days))) for kind, days in KINDS.items()}
    texts["another wording"] = sentences_of(board(*polls(EXAMPLE, question="Which?")))
    day = [answered(model, ["X"], f"2026-10-01T0{n}:00:00Z") for model in "AB" for n in (6, 7)]
    texts["twice on a day"] = sentences_of(board(*day))
    text = "\n\n".join(f"# {kind}\n{own}" for kind, own in texts.items())
    snapshot("certainty.txt", f"{text}\n")


V1, OLD_WAY = {"served_model": "v1"}, {"instrument": "0" * 12}


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        ({}, {"served_model": "v2"}, "A on one; B on two"),
        (V1, {"served_model": "v2"}, "A on one since its version changed; B on two"),
        (V1, {"served_model": "v2"}, "A and B on one each since their versions changed"),
        (OLD_WAY, {"instrument": "1" * 12}, "A on one since the way of asking changed; B on two"),
        ({}, OLD_WAY, "A on one since it is recorded how it is asked; B on two"),
        ({}, V1, "A and B on one each"),
        (V1, {}, "A and B on one each"),
        ({"question": "Which?"}, {}, "A and B on one each since the question changed"),
    ],
)
def test_another_version_or_instrument_starts_the_run_anew(
    before: dict[str, str], now: dict[str, str], expected: str
) -> None:
    """Only its own answers are compared, also once it is back; none equals none."""
    old = polls("XY XY · XY XY", **before)
    who = "AB" if "each" in expected else "A"
    new = [answered(model, ["Y"], "2026-09-09T06:00:00Z", **now) for model in who]
    found = board(*old, *new)
    if who == "A":
        assert found.certainty.runs == board(*old, *new, old[0]).certainty.runs == {"A": 1, "B": 2}
    assert sentence(found) == f"Asked on too few days to tell: {expected}."


def test_of_products_tied_at_the_top_the_first_by_name_has_the_level() -> None:
    """A tie is never clear, and contradicted where the one that is listed first is behind."""
    tie = (
        "XYZ YXZ YXZ YXZ YXZ YXZ YXZ YXZ YXZ YXZ YXZ YXZ · YXZ YXZ YXZ YXZ YXZ YXZ YXZ YXZ YXZ YXZ"
    )
    never = board(*polls(f"YX {'XAB ' * 30} · XY {'XCD ' * 30}"))
    assert (never.certainty.contenders, never.certainty.level) == (("=x",), "open")
    found = board(*polls(tie))
    assert {entry.tied for entry in found.entries[:2]} == {True}
    assert found.entries[0].product == "=x"
    assert (found.certainty.level, found.certainty.ahead_of_first) == ("contradicted", ("=y",))
    verdict = sentences.product_verdict(
        found, found.entries[1], name_of, site="Test", leaderboards=1, source="here"
    )
    assert "#1 of 3, level with X, for CRM software on Test, though over 22 answers Y is" in verdict


def test_an_own_maker_is_compared_with_the_assistants_of_others() -> None:
    """Five points from its own assistants, none from the others, siblings counted with neither."""
    found = board(*polls("XYZ XYZ · XYZ XYZ · ZYV ZYV · ZYV ZYV"))
    makers = {"A": "acme", "B": "acme", "C": "other"}
    assert own_maker_advantages([found], makers, {"=x": "acme"}) == [5]
    assert own_maker_advantages([found], makers, {"=z": "other"}) == [
        pytest.approx(5 - (3 + 3 + 5) / 3)
    ]
    assert own_maker_advantages([found], makers, {"=x": "nobody"}) == []
    assert own_maker_advantages([found], dict.fromkeys("ABCD", "acme"), {"=x": "acme"}) == []


def test_students_quantiles_go_on_beyond_the_table() -> None:
    """At 31, 40, 60 and 120 degrees of freedom within 0.002 of the printed tables."""
    for freedom, printed in ((31, 2.040), (40, 2.021), (60, 2.000), (120, 1.980)):
        assert abs(student(freedom) - printed) <= 0.002


def test_what_is_merged_does_not_depend_on_who_is_configured_first() -> None:
    """Level, contenders and ranges are the same in every order of assistants."""
    polled = polls(EXAMPLE)
    one, other = board(*polled), board(*polled, models="DCBA")
    assert one.certainty == other.certainty
    assert one.ranges == other.ranges
