"""Pace: each day's #1 with its level, and when another product leads by more than chance."""

from collections.abc import Mapping

import pytest
from leaderboards import answers, board_of, name_of

from store.rankings.names import ProductId
from store.rankings.rounds import Round, TrackRecord, first_place_change, track_record
from store.rankings.sentences import leader_change
from store.records import Poll


def rounds(*polls: Poll) -> tuple[Round, ...]:
    board = board_of(polls)
    assert board
    last = board.rounds[-1]
    assert ([*last.winners], last.level) == (board.winners, board.certainty.level)
    return board.rounds


@pytest.mark.parametrize(
    ("versions", "cause"), [("v1 v2", "A"), ("v1 v1", None)], ids=["another version", "none"]
)
def test_only_a_version_that_brought_most_of_the_shift_is_named(
    versions: str, cause: str | None
) -> None:
    """Over half of the shift came from the assistant whose served version changed."""
    before, after = versions.split()
    old = answers(" · ".join(["XYZ " * 9] + ["XYZ " * 9] * 3), served_model=before)
    rest = " · ".join(["."] + ["YXZ XYZ YXZ " * 20] * 3)
    a = answers("YUVWZ " * 60, 10, served_model=after)
    others = answers(rest, 10, served_model=before)
    in_order = sorted([*old, *a, *others], key=lambda poll: poll.polled_at)
    found = [played.leader_change for played in rounds(*in_order)]
    [change] = [change for change in found if change]
    assert (change.before, change.after) == ("=x", "=y")
    assert (change.cause and change.cause.model) == cause
    end = "; this coincides with A's change from v1 to v2." if cause else "by more than chance."
    assert leader_change(change, name_of).endswith(end)


def test_another_first_is_told_only_of_what_can_be_compared() -> None:
    """Of the same assistants, asked in the same way, and where no #1 of before is left."""

    def change(before: str, now: str, *instruments: Mapping[str, str | None]) -> bool:
        days = zip(
            ("2026-09-01", "2026-09-08"), instruments or ({}, {}), (before, now), strict=True
        )
        rounds = [
            Round(day, "What?", own, tuple(firsts), "open", None) for day, own, firsts in days
        ]
        return first_place_change(rounds, "2026-09-08") is not None

    assert change("X", "Y")
    assert change("XY", "ZW")
    assert not change("XY", "Y")
    assert not change("X", "XY")
    assert not change("X", "Y", {"A": None}, {"A": None, "B": None})
    assert not change("X", "Y", {"A": "0"}, {"A": "1"})


def test_our_record_compares_closed_rounds_of_one_question() -> None:
    """What is not closed, and what answers another question, is compared with nothing."""
    category_rounds = [
        Round("2026-09-01", "What?", {}, (ProductId("X"),), "open", None),
        Round("2026-09-02", "What?", {}, (ProductId("X"),), "clear", None),
        Round("2026-09-03", "What?", {}, (ProductId("Y"),), "clear", None),
        Round("2026-09-05", "Which?", {}, (ProductId("Y"),), "open", None),
        Round("2026-09-06", "Which?", {}, (ProductId("X"),), "clear", None),
    ]
    everything = track_record([category_rounds, category_rounds[:1]], "2026-09-30")
    assert everything == TrackRecord({"open": [True, False], "clear": [False]}, "2026-09-06")
    assert track_record([category_rounds], "2026-09-05") == TrackRecord(
        {"open": [True], "clear": [False]}, "2026-09-03"
    )
    assert track_record([category_rounds], "") == TrackRecord({}, "")


@pytest.mark.parametrize(
    ("firsts", "agreed"),
    [("X XY", False), ("Y XY", False), ("XY X", False), ("XY Y", False), ("XY XY", True)],
)
def test_a_tie_agrees_with_the_same_tie_alone(firsts: str, *, agreed: bool) -> None:
    """Whichever of its products comes first by name."""
    tie = [
        Round(f"2026-09-0{day}", "What?", {}, tuple(map(ProductId, winners)), "clear", None)
        for day, winners in enumerate(firsts.split(), 1)
    ]
    assert track_record([tie], "2026-09-30").agreed == {"clear": [agreed]}
