"""What a schedule does about batches: when it looks, what it sends, what it leaves to be asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from batch_desk import NOW, ROUNDS, Desk, poll_of
from batching import Batching, serving
from msgspec.structs import replace

from store.polls.batches.files import Batches
from store.polls.batches.scheduling import BatchSchedule, not_under_way
from store.polls.due import DuePolls, Pair, look
from store.times import rfc3339

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime
    from pathlib import Path


@pytest.fixture(scope="module")
def served() -> Iterator[Batching]:
    """The provider, on a thread of the test's own process."""
    with serving() as server:
        yield server


class Scheduled:
    """A schedule's batches, over sixty categories."""

    def __init__(self, directory: Path, server: Batching) -> None:
        self.desk = Desk(directory, server.emptied())
        self.elapsed = 0.0
        self.schedule = BatchSchedule(Batches(directory), 60.0, lambda: self.elapsed)
        self.calls = self.desk.calls(60)

    def stands(self) -> DuePolls:
        """How polling stands."""
        slugs = [pair.slug for pair in self.calls]
        return look(slugs, self.desk.work().polling.states_of)[0]

    def left(self, due: Sequence[Pair]) -> list[str]:
        """The categories that are to be asked directly."""
        work = self.desk.work()
        return [p.slug for p in self.schedule.left_to_ask(due, self.stands(), ROUNDS, work)]

    def prove(self) -> None:
        """Let the first batch, of one question, be answered."""
        assert self.left(self.calls) == []
        self.desk.follow()

    def poll(self, pairs: Sequence[Pair], at: datetime) -> None:
        """Have these asked then."""
        record = self.desk.work().polling.record
        for pair in pairs:
            record([poll_of(pair, at)], rfc3339(at))


@pytest.fixture
def at_work(tmp_path: Path, served: Batching) -> Scheduled:
    """A schedule that begins."""
    return Scheduled(tmp_path / "data", served)


def test_many_due_pairs_go_in_a_batch(at_work: Scheduled) -> None:
    """One to try, which the others wait for; then all the rest, and none is left to ask."""
    at_work.desk.server.tell(responses={"looks": 1})
    assert at_work.left(at_work.calls) == []
    (first,) = at_work.desk.work().files.all()
    assert len(first.items) == 1
    assert at_work.left(at_work.calls[1:]) == []
    at_work.desk.follow()
    at_work.desk.follow()
    assert at_work.left(at_work.calls[1:]) == []
    assert [len(b.items) for b in at_work.desk.work().files.all()] == [1, 59]
    free = not_under_way(at_work.calls, at_work.schedule.files, at_work.desk.catalogue())
    assert free == at_work.calls[:1]
    assert at_work.left([]) == []


def test_few_due_pairs_are_asked_directly_once_they_have_waited(at_work: Scheduled) -> None:
    """Within an hour others may fall due and fill a batch; what was never asked does not wait."""
    at_work.prove()
    few = at_work.calls[1:50]
    assert at_work.left(few) == [pair.slug for pair in few]
    at_work.poll(few, NOW)
    at_work.desk.later(days=7, minutes=59, seconds=59)
    assert at_work.left(few) == []
    at_work.desk.later(seconds=1)
    assert at_work.left(few) == [pair.slug for pair in few]


def test_what_was_sent_is_logged_each_time(
    at_work: Scheduled, caplog: pytest.LogCaptureFixture
) -> None:
    """Though it is the same again; fifty are worth a batch."""
    caplog.set_level("INFO")
    at_work.prove()
    for count in (1, 2):
        assert at_work.left(at_work.calls[1:51]) == []
        at_work.desk.follow()
        at_work.desk.later(days=7)
        assert at_work.left(at_work.calls[51:53]) == ["c-51", "c-52"]
        said = [(one.levelname, one.getMessage()) for one in caplog.records]
        assert said == [
            ("INFO", "Responses: 1 sent in a batch"),
            *[("INFO", "Responses: 50 sent in a batch")] * count,
        ]


def test_a_batch_that_may_have_been_made_is_logged(
    at_work: Scheduled, caplog: pytest.LogCaptureFixture
) -> None:
    """With the reason for which nobody knows."""
    caplog.set_level("INFO")
    at_work.desk.server.tell(responses={"create": "drop"})
    at_work.left(at_work.calls)
    why = "The provider did not say whether it took the batch; it is looked for."
    said = f"Responses: 1 sent in a batch: {why}"
    assert [one.getMessage() for one in caplog.records] == [said]


def test_who_can_be_sent_no_batch_is_asked_directly(at_work: Scheduled) -> None:
    """The first was refused: all that is due goes the other way."""
    at_work.desk.server.tell(responses={"create": 400})
    assert at_work.left(at_work.calls) == []
    assert at_work.left(at_work.calls) == [pair.slug for pair in at_work.calls]


@pytest.mark.parametrize("change", [{"web_search": True}, {"api": "sample"}])
def test_who_has_no_queue_is_asked_directly(at_work: Scheduled, change: dict[str, Any]) -> None:
    """Models.json was edited while the schedule runs; `flask check` names the mistake."""
    assistant = replace(at_work.calls[0].assistant, **change)
    calls = [replace(pair, assistant=assistant) for pair in at_work.calls]
    assert at_work.left(calls) == [pair.slug for pair in calls]
    assert at_work.desk.work().files.all() == []


def test_a_cap_that_leaves_nothing_sends_nothing(
    at_work: Scheduled, caplog: pytest.LogCaptureFixture
) -> None:
    """The log says which; nothing is asked directly at twice the price."""
    at_work.desk.cap = 0.001
    for _ in range(3):
        assert at_work.left(at_work.calls) == []
    said = (
        "Responses: no batch was sent: daily_usd 0.001 of site.json leaves too little for a batch"
    )
    assert [(one.levelname, one.getMessage()) for one in caplog.records] == [("WARNING", said)]


def test_batches_are_looked_at_every_five_ticks(at_work: Scheduled) -> None:
    """And by one process at a time; what came of it is a run like any other."""
    at_work.desk.submit(at_work.desk.calls(2))
    work = at_work.desk.work()
    with work.polling.leases.batches("Responses"):
        assert at_work.schedule.look_after("Responses", work) is None
    at_work.elapsed = 299
    assert at_work.schedule.look_after("Responses", work) is None
    at_work.elapsed = 300
    assert at_work.schedule.names() == {"Responses"}
    summary = at_work.schedule.look_after("Responses", work)
    assert summary
    assert summary.outcomes["answered"] == 2
    assert at_work.schedule.names() == set()


def test_what_is_wrong_is_logged_once(at_work: Scheduled, caplog: pytest.LogCaptureFixture) -> None:
    """A sentence is a reason at its second look and until it is over, and fills no log."""
    desk = at_work.desk
    desk.submit(desk.calls(2))
    desk.server.book["batches"]["b1"]["unknown"] = 2
    at_work.schedule.look_after("Responses", desk.work())
    assert at_work.schedule.reasons() == [], "a line may fail once"
    at_work.elapsed += 300
    at_work.schedule.look_after("Responses", desk.work())
    assert "cannot be looked at" in at_work.schedule.reasons()[0]
    at_work.elapsed += 300
    assert caplog.text.count("cannot be looked at") == 1
    at_work.schedule.look_after("Responses", desk.work())
    assert at_work.schedule.reasons() == []


def test_another_process_sends_no_second_batch(at_work: Scheduled) -> None:
    """While one works on an assistant's batches, another leaves what is due to it."""
    with at_work.desk.work().polling.leases.batches("Responses"):
        assert at_work.left(at_work.calls) == []
    assert at_work.desk.server.book["batches"] == {}


def test_damaged_files_hide_no_names(at_work: Scheduled) -> None:
    """Where nobody knows what is under way, each assistant's own job says so."""
    at_work.desk.submit(at_work.desk.calls(1))
    for folder in ("batches", ".last-good/batches"):
        for path in (at_work.desk.directory / folder).iterdir():
            path.write_text("{}")
    assert at_work.schedule.names() == set()
    given: Any = at_work.calls
    with pytest.raises(OSError, match="damaged"):
        not_under_way(given, at_work.schedule.files, at_work.desk.catalogue())
