"""The service's own experiments: each figure with its n, none where nothing can be counted."""

from collections.abc import Sequence

import pytest
from builders import answered, category

from store.rankings import aggregates, experiments, leaderboards
from store.rankings.agreement import Repeats
from store.rankings.certainty import wilson
from store.rankings.changes import Streak
from store.rankings.experiments import Experiment, survival
from store.rankings.names import Names
from store.rankings.rounds import TrackRecord
from store.records import Poll, Site
from store.web.listings import COMPUTED

SITE = Site(version=1, name="Test")
NO_RECORD = TrackRecord({}, "")


def compute(*categories: Sequence[Poll], made_by_a: str = "") -> dict[str, Experiment]:
    """The experiments over categories with these polls, by slug; A's maker makes a product."""
    read = [
        aggregates.gather(f"c{i}", category(), polls, Names({}))
        for i, polls in enumerate(categories)
    ]
    made = [
        leaderboards.board(aggregate, "ABCD", SITE, {id_: id_ for id_ in aggregate.ids})
        for aggregate in read
    ]
    boards = [board for board in made if board]
    repeats: dict[str, list[Repeats]] = {}
    for board in boards:
        for model, own in board.repeatability.repeats.items() if board.repeatability else ():
            repeats.setdefault(model, []).append(own)
    streaks = [streak for aggregate in read for streak in aggregate.streaks]
    makers, made_by = ({"A": "acme"}, {made_by_a: "acme"}) if made_by_a else ({}, {})
    computed = experiments.compute(boards, streaks, makers, made_by, repeats, NO_RECORD)
    return {experiment.slug: experiment for experiment in computed}


def said(**lists: str) -> list[Poll]:
    return [answered(model, named.split()) for model, named in lists.items()]


def test_where_nothing_can_be_counted_there_is_no_experiment() -> None:
    """No category, too few of them, or nobody to compare with: nothing is claimed."""
    assert compute() == {}
    assert compute(*[said(A="X", B="X")] * 4) == {}
    assert set(compute(*[said(A="X")] * 9)) == {"would-another-rule-choose-another"}
    assert set(compute(*[said(A="X", B="X")] * 5)) == {
        "agreement-on-first",
        "would-another-rule-choose-another",
    }


def test_agreement_on_first_counts_the_labels() -> None:
    """Shares of unanimous, majority and split categories, with the number of categories."""
    found = compute(
        *[said(A="X", B="X", C="X")] * 3,
        *[said(A="X", B="X", C="Y")] * 2,
        *[said(A="X", B="Y", C="Z")],
        said(A="X"),
    )
    assert found["agreement-on-first"].finding == (
        "All assistants name the same #1 in 50.0% of rankings, more than half of them in 33.3%, "
        "fewer in 16.7% (n = 6 categories)."
    )
    assert found["agreement-on-first"].date == "2026-11-02"


def weekly(picks: str, question: str = "What is best?") -> list[Poll]:
    return [
        answered("A", [pick], f"2026-10-{day:02}T06:00:00Z", question=question)
        for day, pick in zip((5, 12, 19, 26), picks.split(), strict=False)
    ]


def test_how_long_a_first_place_lasts_counts_those_not_lost_yet() -> None:
    """Of four that were followed one is lost at once, of two followed further one at the third."""
    found = compute(weekly("X X X Y"), weekly("X X X X"), weekly("X"), weekly("X Y Y"))
    lasts = found["how-long-a-first-place-lasts"]
    assert lasts.finding == (
        "Of first places, 75.0% still stand after one more answer, 75.0% after 2 and 37.5% after 3 "
        "(n = 4 first places, 2 of them not lost yet)."
    )
    assert [(bar.value, bar.n) for bar in lasts.bars] == [(0.75, 4), (0.75, 2), (0.375, 2)]
    assert lasts.date == "2026-10-26"
    assert "how-long-a-first-place-lasts" not in compute(weekly("X"), weekly("Y"))


def test_how_noisy_an_answer_is_does_not_depend_on_how_often_one_asks() -> None:
    """Each question to an assistant weighs as much, whatever the pairs: 1, and four times 0."""
    found = compute(weekly("X X X X"), *[weekly("X Y")] * 4)["how-noisy-is-one-answer"]
    assert found.finding == (
        "Asked the same question twice, an assistant names the same #1 in 20.0% and gives the same "
        "list in 20.0% of cases; its two lists overlap by 20% on average "
        "(n = 5 questions to one assistant, 10 pairs of answers)."
    )
    assert [(bar.label, bar.value, bar.n) for bar in found.bars] == [("A", 0.2, 5)]


def test_other_rules_are_counted_over_all_rankings() -> None:
    """In one of five Dowdall, plurality and Condorcet put another product first."""
    alike, other = said(A="X Y"), said(A="Y X U V W", B="Y X V W U", C="W X U V Z")
    found = compute(*[alike] * 4, other)["would-another-rule-choose-another"]
    assert found.finding == (
        "In 80.0% of rankings no usual way of counting puts another product before the #1 "
        "(n = 5 rankings)."
    )
    assert {bar.label: (bar.value, bar.n) for bar in found.bars} == {
        "5-4-3-2-1": (1, 5),
        "plurality": (0.8, 5),
        "top three": (1, 5),
        "named at all": (1, 5),
        "Dowdall": (0.8, 5),
        "Formula 1": (1, 5),
        "Condorcet": (0.8, 5),
    }


def test_an_own_maker_s_effect_is_told_from_ten_categories_on() -> None:
    """In points, with their sign and Student's interval; under ten it would mean nothing."""
    lists = said(A="X Y", B="Y X")
    assert "own-maker" not in compute(*[lists] * 9, made_by_a="=x")
    own = compute(*[lists] * 10, made_by_a="=x")["own-maker"]
    assert own.finding == (
        "Assistants give their own maker’s products 1.00 points more than the others do "
        "(95%: +0.86 to +1.14; n = 10 categories)."
    )
    assert own.figure(own.bars[0].value) == "+1.00"


def test_our_record_tells_whether_the_next_round_agreed() -> None:
    """By level, with the number of rounds; without a clear one it says so."""
    record = TrackRecord({"open": [True, False], "clear": [True] * 3 + [False]}, "2026-10-26")
    found = {e.slug: e for e in experiments.compute([], [], {}, {}, {}, record)}["track-record"]
    assert found.finding == (
        "When we said clear, the next round agreed in 3 of 4 "
        "(6 rounds of all levels had a next one)."
    )
    assert (found.date, found.counted) == ("2026-10-26", "rounds")
    assert [(bar.label, bar.value, bar.n) for bar in found.bars] == [
        ("Clear lead", 0.75, 4),
        ("Too close to call", 0.5, 2),
    ]
    assert experiments.track_record_sentence(NO_RECORD) == (
        "No ranking with a clear lead has had another round yet"
    )


def test_every_finding_quotes_its_n() -> None:
    """No figure without the number it rests on, none without its question."""
    found = compute(*[[*said(A="X", B="X", C="Y"), *weekly("X X Y Y")]] * 6)
    assert len(found) == 3
    for experiment in found.values():
        assert "n = " in experiment.finding
        assert experiment.finding.endswith(".")
        assert experiment.slug in COMPUTED


def test_every_question_has_a_method_in_words() -> None:
    """What is asked ends as a question, what is done as a sentence."""
    for question in COMPUTED.values():
        assert question.title.endswith("?")
        assert question.method.endswith(".")


def test_first_places_stand_as_kaplan_and_meier_say() -> None:
    """Their shares and standard errors for the 21 patients under 6-MP of Freireich (1963).

    Weeks are answers, a relapse is a first place lost, and who was still well has not lost it.
    """
    lost = [6, 6, 6, 7, 10, 13, 16, 22, 23]
    lasting = [6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35]
    found = survival(
        [Streak("", weeks, over=True) for weeks in lost]
        + [Streak("", weeks + 1, over=False) for weeks in lasting],
        40,
    )
    published = {5: (1, 0), 6: (0.8571, 0.0764), 7: (0.8067, 0.0869), 10: (0.7529, 0.0963)}
    published |= {13: (0.6902, 0.1068), 22: (0.5378, 0.1282), 23: (0.4482, 0.1346)}
    for weeks, (share, error) in published.items():
        step = found[weeks - 1]
        assert step.value == pytest.approx(share, abs=5e-5)
        size = share * (1 - share) / error**2 if error else step.n
        assert step.interval == pytest.approx(wilson(share * size, size), abs=5e-4)
    assert [found[weeks - 1].n for weeks in (1, 6, 7, 10, 23)] == [21, 21, 17, 15, 6]
    assert len(found) == 35
    assert survival([], 5) == []
