"""What counts of a category's history files, in which order, and as whose."""

from collections.abc import Container, Sequence
from datetime import UTC, datetime, timedelta

import msgspec
from builders import answered
from hypothesis import given
from hypothesis import strategies as st

from store.category_history import (
    doubt_clock,
    from_the_future,
    in_order,
    latest_time,
    sound_polls,
    under_present_names,
)
from store.history import Log, PollLine
from store.records import Poll
from store.text import rfc3339

NOW = datetime(2026, 11, 2, 6, tzinfo=UTC)


def at(day: int) -> str:
    """A day of November."""
    return f"2026-11-{day:02}T06:00:00Z"


def poll(day: int, model: str = "A", slug: str = "new") -> Poll:
    """An answer of that day."""
    return answered(model, ["X"], at(day), slug=slug)


def log(file: str, *polls: Poll) -> Log:
    """A file that holds these polls, a line each."""
    return Log(file, tuple(PollLine(poll, file, 0, 0, n) for n, poll in enumerate(polls, start=1)))


def ordered(*files: Sequence[Poll], withheld: Container[str] = ()) -> list[str]:
    """The days of the polls of files in the order in which they were appended."""
    rows = [stored for n, polls in enumerate(files) for stored in log(str(n), *polls).polls]
    return [s.poll.polled_at[8:10].lstrip("0") for s in in_order(rows, withheld)]


def test_a_line_counts_once_and_in_its_own_category() -> None:
    """Repeats, in whichever of the files, and other categories' polls are damage by line."""
    one, two = poll(1, slug="old"), poll(2)
    stray = poll(3, slug="stray")
    rows, problems = sound_polls([log("old", one, one), log("new", two, one, stray, two)])
    assert [(stored.file, stored.poll) for stored in rows] == [("old", one), ("new", two)]
    found = [str(problem).replace("a damaged record is left out: ", "") for problem in problems]
    assert found == [
        "history/old.jsonl:2:1: its id stands already in line 1 of history/old.jsonl",
        "history/new.jsonl:2:1: its id stands already in line 1 of history/old.jsonl",
        'history/new.jsonl:3:1: it is a poll of "stray", which is not what this file is about',
        "history/new.jsonl:4:1: its id stands already in line 1 of history/new.jsonl",
    ]


def test_no_message_is_as_long_as_what_it_is_about() -> None:
    """A slug that is none is not repeated, however long it is."""
    _, [problem] = sound_polls([log("new", poll(1, slug="x" * 5000))])
    assert "a poll of something else, which" in problem.message


def test_files_are_merged_by_time_and_each_keeps_its_order() -> None:
    """A category that was renamed there and back has lines of both files in turn."""
    assert ordered([poll(2), poll(6)], [poll(1), poll(5), poll(7)]) == ["1", "2", "5", "6", "7"]
    assert ordered([poll(9), poll(1), poll(5)]) == ["9", "1", "5"], "whatever times one file bears"


def test_a_withheld_poll_moves_nothing_in_the_order() -> None:
    """One under a wrong clock stays beside its neighbours, wherever in its file it stands."""
    wrong = poll(30)
    for place in range(3):
        own = [poll(1), poll(3)]
        own.insert(place, wrong)
        found = ordered(own, [poll(2), poll(4)], withheld={wrong.id})
        assert [day for day in found if day != "30"] == ["1", "2", "3", "4"]
        assert found.index("30") == [0, 1, 3][place]


@given(st.lists(st.lists(st.integers(1, 9), max_size=5), max_size=3), st.sets(st.integers(0, 14)))
def test_every_file_keeps_its_order_and_nothing_is_lost(
    files: list[list[int]], hidden: set[int]
) -> None:
    """Merging is a permutation that respects every file, times and withholdings as they may be."""
    rows = [
        PollLine(poll(day, f"{n} {i}"), str(n), i, i, i)
        for n, days in enumerate(files)
        for i, day in enumerate(days)
    ]
    withheld = {stored.poll.id for i, stored in enumerate(rows) if i in hidden}
    found = in_order(rows, withheld)
    for number in range(len(files)):
        own = [row for row in rows if row.file == str(number)]
        assert [row for row in found if row.file == str(number)] == own
    assert len(found) == len(rows)


def test_what_is_yet_to_come_is_told_unless_it_is_withheld() -> None:
    """Ten minutes are two clocks' difference; later is a wrong one."""
    assert latest_time(NOW) == "2026-11-02T06:10:00Z"
    late = answered("A", ["X"], "2026-11-02T06:10:01Z", slug="new")
    rows, _ = sound_polls([log("new", poll(1), late)])
    assert [stored.poll for stored in from_the_future(rows, (), NOW)] == [late]
    assert from_the_future(rows, {late.id}, NOW) == []
    assert from_the_future(rows, (), NOW + timedelta(seconds=1)) == []


def test_a_clock_is_doubted_where_it_is_rather_that_than_a_record() -> None:
    """Several categories' newest polls are later, or all that there are; one of many is its own."""
    late, later = (rfc3339(NOW + timedelta(hours=n)) for n in (1, 2))
    doubt = doubt_clock({"a": late, "b": later}, 300, NOW)
    assert doubt is not None
    assert f"it says {rfc3339(NOW)}, and history has an answer of {later}. Set it: `time" in doubt
    assert doubt.endswith("Not polled until then: 2 of 300 categories")
    assert doubt_clock({"a": late}, 1, NOW) is not None
    assert doubt_clock({"a": late}, 2, NOW) is None
    assert doubt_clock({}, 2, NOW) is None


def test_a_poll_is_its_assistants_under_the_present_name() -> None:
    """A former name leads to the present one; all else stays as it was written."""
    old = poll(1, "Old")
    [known] = under_present_names([old], {"Old": "New"})
    assert known == msgspec.structs.replace(old, model="New")
    assert under_present_names([old], {"Other": "New"}) == under_present_names([old], {}) == [old]
