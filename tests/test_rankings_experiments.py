"""The service's own experiments: each figure with its n, none where nothing can be counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from builders import answered, category

from store.rankings import aggregates, experiments, leaderboards
from store.rankings.names import Names
from store.records import Site

if TYPE_CHECKING:
    from collections.abc import Sequence

    from store.rankings.experiments import Experiment
    from store.records import Poll

SITE = Site(version=1, name="Test")


def compute(*categories: Sequence[Poll]) -> dict[str, Experiment]:
    """The experiments over categories with these polls, by slug."""
    read = [
        aggregates.read(f"c{i}", category(), polls, Names({})) for i, polls in enumerate(categories)
    ]
    made = [
        leaderboards.board(aggregate, "ABCD", SITE, {id_: id_ for id_ in aggregate.ids})
        for aggregate in read
    ]
    found = experiments.compute([board for board in made if board], read, {}, {})
    return {experiment.slug: experiment for experiment in found}


def said(**lists: str) -> list[Poll]:
    return [answered(model, named.split()) for model, named in lists.items()]


def test_where_nothing_can_be_counted_there_is_no_experiment() -> None:
    """No category, too few of them, or nobody to compare with: nothing is claimed."""
    assert compute() == {}
    assert compute(*[said(A="X", B="X")] * 4) == {}
    assert compute(*[said(A="X")] * 9) == {}
    assert set(compute(*[said(A="X", B="X")] * 5)) == {"agreement-on-first", "overlap-of-lists"}


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


def test_overlap_names_the_most_and_the_least_alike() -> None:
    """Means by pair and over all comparisons, each with its n."""
    found = compute(*[said(A="X", B="X", C="Y")] * 5)["overlap-of-lists"]
    assert found.finding == (
        "A and B are most alike (1.00, n = 5), B and C are least alike (0.00, n = 5). "
        "The mean of all comparisons is 0.33 (n = 15 comparisons)."
    )
    pair = compute(*[said(A="X", B="X")] * 5)["overlap-of-lists"]
    assert pair.finding == (
        "Only A and B can be compared. The mean of all comparisons is 1.00 (n = 5 comparisons)."
    )
    same = compute(*[said(A="X", B="X", C="X")] * 5)["overlap-of-lists"]
    assert same.finding.startswith("The lists of every two assistants are equally alike (1.00). ")


def test_who_leaves_the_pack_is_one_against_all_others() -> None:
    """Three that differ are no pack, two against two neither; shares are of what each answered."""
    found = compute(
        *[said(A="X", B="X", C="Y")] * 2,
        *[said(A="X", B="Y", C="Z")],
        *[said(A="X", B="Y", C="Y", D="X")],
        *[said(A="Y", B="X", C="X", D="X")],
        said(A="X", B="Y"),
    )["who-leaves-the-pack"]
    assert found.finding == (
        "Alone against all others: C in 40.0%, A in 20.0%, B in 0.0%, D in 0.0% (n = 5 categories)."
    )


def weekly(picks: str, question: str = "What is best?") -> list[Poll]:
    return [
        answered("A", [pick], f"2026-10-{day:02}T06:00:00Z", question=question)
        for day, pick in zip((5, 12, 19, 26), picks.split(), strict=False)
    ]


def test_how_long_a_first_place_lasts_counts_ended_reigns() -> None:
    """Reigns that could be followed, those that ended, and how long these held."""
    found = compute(weekly("X X X Y"), weekly("X X X X"), weekly("X"))
    assert found["how-long-a-first-place-lasts"].finding == (
        "In 1 of 2 cases a first place was lost, in half of them after at most 3 answers "
        "(n = 1 ended reign)."
    )
    assert found["how-long-a-first-place-lasts"].date == "2026-10-26"


def test_how_often_a_first_place_flips_counts_repeated_answers() -> None:
    """The first answer to each question repeats nothing."""
    found = compute(weekly("X Y Y X"), [*weekly("X X"), *weekly("Z Z", "What is finest?")])
    assert found["how-often-a-first-place-flips"].finding == (
        "40.0% of repeated answers named another #1; 1 of 2 changes confirmed "
        "(n = 5 repeated answers)."
    )
    assert "how-often-a-first-place-flips" not in compute(weekly("X X X"))


def test_every_finding_quotes_its_n() -> None:
    """No figure without the number it rests on, no method without words."""
    found = compute(*[[*said(A="X", B="X", C="Y"), *weekly("X X Y Y")]] * 6)
    assert len(found) == 5
    for experiment in found.values():
        assert "n = " in experiment.finding
        assert experiment.method.endswith(".")
        assert experiment.finding.endswith(".")
        assert experiment.title.endswith("?")
