"""Batches end to end, against a provider on loopback that counts what it would send a bill for."""

from __future__ import annotations

import errno
import shutil
from collections import Counter
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from batch_desk import APIS, NOW, STEPS, Desk, apis_but, poll_of
from batching import Batching, serving
from builders import category
from faults import failing_names

from store.files import Catalogue
from store.history import History, HistoryError
from store.ledger import Proof
from store.polls import answer_parsing
from store.polls.batches import following
from store.polls.batches.files import Batches, BatchFileError, under_way
from store.polls.batches.standing import Standing, open_batches, standing
from store.polls.batches.submitting import Submitted, said
from store.polls.providers import Response
from store.polls.runner import IN_A_BATCH, LEFT, run
from store.polls.spending import RunAccount
from store.records import Site
from store.times import rfc3339

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def served() -> Iterator[Batching]:
    """The provider, on a thread of the test's own process."""
    with serving() as server:
        yield server


@pytest.fixture
def desk(tmp_path: Path, served: Batching) -> Desk:
    """A fresh data directory and a provider that does as it should."""
    return Desk(tmp_path / "data", served.emptied())


@pytest.mark.parametrize("api", APIS)
def test_a_batch_is_sent_and_collected(desk: Desk, api: str) -> None:
    """Each question of a batch is one record with its own answer, at the price of batches."""
    desk.server.tell(**{api: {"looks": 1, "results": "shuffled"}})
    assert desk.submit(desk.calls(5, api)) == Submitted(5)
    assert desk.states() == ["submitted"]
    assert desk.follow(api).summary.polled == 0
    came = desk.follow(api)
    assert dict(came.summary.outcomes) == {"answered": 5}
    assert came.wrong == []
    assert desk.states() == ["collected"]
    bills = desk.server.book["bills"]
    for poll in desk.polls():
        number = int((poll.pick or "").removeprefix("Bill "))
        assert bills[number - 1][1] == poll.question
        assert poll.usage
        assert poll.usage.usd == pytest.approx((700 * 2 + 300 * 10) / 2e6)
        assert poll.latency_ms is None
        assert poll.served_model == api
    assert {note for poll in desk.polls() for note in poll.notes} == {
        f"batch {1:016x}-{n}" for n in range(5)
    }
    assert desk.follow(api).summary.polled == 0


def test_what_a_batch_asks_is_left_alone_and_is_paid_by_no_cap_twice(desk: Desk) -> None:
    """While a batch is on its way its pairs are nobody else's, and its whole cost is reserved."""
    calls = desk.calls(3)
    desk.server.tell(responses={"looks": 9})
    desk.submit(calls)
    work = desk.work()
    asked = run(calls, msgspec.structs.replace(work.polling, under_way=desk.under_way))
    assert dict(asked["Responses"].outcomes) == {IN_A_BATCH: 3}
    (batch,) = work.files.all()
    assert desk.taken() == batch.reserved / 1e6 > 3 * 0.02
    desk.later(days=1)
    assert desk.taken() == batch.reserved / 1e6, "midnight forgot it"
    desk.server.tell(responses={})
    desk.server.book["batches"]["b1"]["looks"] = 0
    desk.follow()
    assert desk.taken() == pytest.approx(3 * 0.0022)


def test_a_cap_shrinks_a_batch_and_then_forbids_it(desk: Desk) -> None:
    """No batch can cost more than is left, today and after midnight."""
    desk.cap = 0.05
    desk.server.tell(responses={"looks": 9})
    assert desk.submit(desk.calls(5)).asked == 2
    assert desk.submit(desk.calls(5)[2:]) == Submitted(
        why="daily_usd 0.05 of site.json leaves too little for a batch"
    )
    desk.later(days=1)
    assert desk.submit(desk.calls(5)[2:]).asked == 0
    assert len(desk.server.book["batches"]) == 1


def test_a_pair_that_another_poller_has_is_not_sent(desk: Desk) -> None:
    """Who asks a pair directly just now, or has asked it, keeps it; the rest is sent."""
    calls = desk.calls(4)
    work = desk.work()
    work.polling.record([poll_of(calls[1], NOW)], rfc3339(NOW))
    with work.polling.leases.lease("c-00", "Responses"):
        assert desk.submit(calls).asked == 2
    (batch,) = desk.work().files.all()
    assert [item.slug for item in batch.items] == ["c-02", "c-03"]
    assert desk.taken() == batch.reserved / 1e6
    desk.follow()
    with work.polling.leases.lease("c-00", "Responses"):
        assert desk.submit(calls).why == "None of them is due any more."
    assert desk.states() == ["collected"]


def test_repeats_are_items_of_their_own(desk: Desk) -> None:
    """A round of three answers is three items with their numbers, and three records."""
    desk.submit(desk.calls(2, times=3))
    (batch,) = Batches(desk.directory).all()
    assert [(item.slug, item.repeat) for item in batch.items] == [
        ("c-00", 0), ("c-01", 0), ("c-00", 1), ("c-01", 1), ("c-00", 2), ("c-01", 2),
    ]  # fmt: skip
    desk.follow()
    assert set(desk.bills().values()) == {3}
    assert len({poll.pick for poll in desk.polls()}) == 6


DISTURBED = {
    "shuffled": {"answered": 4},
    "missing": {"answered": 3, "http": 1},
    "doubled": {"answered": 4},
    "differing": {"answered": 3, "http": 1},
    "foreign": {"answered": 4},
    "garbled": {"answered": 4},
}


@pytest.mark.parametrize("how", DISTURBED)
@pytest.mark.parametrize("api", APIS)
def test_results_are_matched_by_their_ids_alone(desk: Desk, api: str, how: str) -> None:
    """Shuffled, missing, doubled, differing, foreign: no answer goes to another question."""
    desk.server.tell(**{api: {"results": how}})
    desk.submit(desk.calls(4, api))
    assert dict(desk.follow(api).summary.outcomes) == DISTURBED[how]
    bills = desk.server.book["bills"]
    for poll in (p for p in desk.polls() if p.pick):
        number = int((poll.pick or "").removeprefix("Bill "))
        assert bills[number - 1][1] == poll.question
    assert desk.states() == ["collected"]


@pytest.mark.parametrize("api", apis_but("gemini"))
def test_results_without_end_are_not_read_for_ever(desk: Desk, api: str) -> None:
    """They are left where they are, with a sentence, and tried again; nothing is recorded."""
    desk.server.tell(**{api: {"results": "endless"}})
    desk.submit(desk.calls(3, api))
    wrong = desk.follow(api).wrong
    assert wrong[0].startswith(f"The results of a batch of {api.title()} cannot be had: The ")
    assert desk.states() == ["submitted"]
    desk.server.tell(**{api: {}})
    desk.follow(api)
    assert len(desk.polls()) == 3


@pytest.mark.parametrize("api", apis_but("xai"))
def test_an_item_fails_as_it_would_by_itself(desk: Desk, api: str) -> None:
    """An item's error is a failure of the kind that its status has, and costs nothing."""
    desk.server.tell(**{api: {"errors": 429}})
    desk.submit(desk.calls(4, api))
    assert dict(desk.follow(api).summary.outcomes) == {"answered": 2, "rate_limited": 2}
    assert desk.taken() == pytest.approx(2 * 0.0022)


def test_a_key_that_went_bad_rests_the_assistant_once(desk: Desk) -> None:
    """Of items that fail for good only the first says so; the assistant rests as after a poll."""
    desk.server.tell(messages={"errors": 500}, responses={"errors": 401})
    desk.submit(desk.calls(4))
    summary = desk.follow().summary
    assert (summary.outcomes["auth"], summary.rest) == (2, 6 * 3600)
    assert len([p for p in desk.polls() if isinstance(p.cooldown_until, str)]) == 1


@pytest.mark.parametrize(("end", "failure"), [("expired", "timeout"), ("cancelled", "interrupted")])
@pytest.mark.parametrize("api", apis_but("xai"))
def test_what_was_answered_before_the_end_is_not_lost(
    desk: Desk, api: str, end: str, failure: str
) -> None:
    """A batch that expired or was cancelled still gives what is billed; the rest failed so."""
    desk.server.tell(**{api: {"end": end, "answered": 1}})
    desk.submit(desk.calls(3, api))
    assert dict(desk.follow(api).summary.outcomes) == {"answered": 1, failure: 2}
    assert desk.taken() == pytest.approx(0.0022), "what was not asked cost nothing"
    (batch,) = desk.work().files.all()
    assert batch.late
    assert standing(batch.assistant, [batch], desk.now) == Standing(
        0, "batches rest for a day, for one came late or was cancelled"
    )


@pytest.mark.parametrize("api", apis_but("messages"))
def test_a_batch_that_failed_before_it_ran_asks_nothing(desk: Desk, api: str) -> None:
    """Its pairs are free again, nothing is recorded or paid, and it is said why."""
    desk.server.tell(**{api: {"end": "failed"}})
    desk.submit(desk.calls(3, api))
    why = "token_limit_exceeded: too many"
    said = {"gemini": "it gave no reason", "xai": "JSONL file validation failed: line 1: no"}
    sentence = f"The provider's batch failed before it ran ({said.get(api, why)})."
    assert desk.follow(api).wrong == [f"{api.title()}: {sentence}"]
    assert desk.states() == ["void"]
    assert desk.polls() == []
    assert desk.taken() == 0
    (batch,) = desk.work().files.all()
    desk.later(days=20)
    off = standing(batch.assistant, [batch], desk.now)
    assert off == Standing(0, f"batches are off, for the first was refused: {sentence}")


def test_a_completed_batch_without_files_is_waited_for(desk: Desk) -> None:
    """Both files null: its results may come yet; after 26 hours each question failed."""
    desk.server.tell(responses={"results": "none"})
    desk.submit(desk.calls(2))
    assert desk.follow().wrong == []
    assert desk.states() == ["submitted"]
    desk.later(hours=27)
    assert dict(desk.follow().summary.outcomes) == {"http": 2}


def test_a_results_url_elsewhere_is_not_followed(desk: Desk) -> None:
    """Nothing is asked of another host, and our key stays here."""
    desk.server.tell(messages={"elsewhere": True})
    desk.submit(desk.calls(2, "messages"))
    assert dict(desk.follow("messages").summary.outcomes) == {"answered": 2}
    paths = [path for _, path in desk.server.book["asked"]]
    assert paths[-1].endswith("/v1/messages/batches/b1/results")


@pytest.mark.parametrize("api", APIS)
def test_a_new_batch_may_be_unknown_for_a_while(desk: Desk, api: str) -> None:
    """404 right after it was made is a sentence and another look, not a loss."""
    desk.server.tell(**{api: {"unknown": 2}})
    desk.submit(desk.calls(2, api))
    for _ in range(2):
        (wrong,) = desk.follow(api).wrong
        assert "cannot be looked at: The provider answered HTTP 404" in wrong
    assert dict(desk.follow(api).summary.outcomes) == {"answered": 2}


def test_a_batch_of_another_project_is_given_up_as_paid(desk: Desk) -> None:
    """404 to the last: after 50 hours it is lost, and its reserve counts as spent that day."""
    desk.submit(desk.calls(2))
    desk.server.book["batches"]["b1"]["unknown"] = 99
    desk.later(hours=49)
    desk.follow()
    assert desk.states() == ["submitted"]
    desk.later(hours=2)
    desk.follow()
    (batch,) = desk.work().files.all()
    assert (batch.state, batch.why) == (
        "lost",
        "The provider does not know it (is the key of another project?).",
    )
    assert desk.taken() == batch.reserved / 1e6
    desk.later(days=1)
    assert desk.taken() == 0


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("create", ["drop", "500"])
def test_a_batch_whose_making_had_no_answer_is_found(desk: Desk, api: str, create: str) -> None:
    """It was made and the line was lost: it is found among others, adopted, and paid once."""
    desk.server.tell(**{api: {}})
    desk.submit(desk.calls(1, api)[:1])
    desk.follow(api)
    desk.server.tell(**{api: {"create": create, "looks": 2}})
    came = desk.submit(desk.calls(4, api)[1:])
    assert came.why == "The provider did not say whether it took the batch; it is looked for."
    assert desk.states() == ["collected", "intended"]
    desk.server.tell(**{api: {}})
    if api == "messages":
        desk.follow(api)
        assert desk.states()[1] == "intended", "its ids can prove it only when it has ended"
    else:
        desk.follow(api)
        assert desk.states()[1] == "submitted", "its label says at once whose it is"
    desk.follow(api)
    desk.follow(api)
    assert desk.states() == ["collected", "collected"]
    assert set(desk.bills().values()) == {1}
    assert len(desk.polls()) == 4


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("create", ["lose", "void"])
def test_a_batch_that_was_never_made_frees_its_pairs(desk: Desk, api: str, create: str) -> None:
    """Two searches in vain a quarter of an hour apart say so; one does not."""
    desk.server.tell(**{api: {"create": create}})
    desk.submit(desk.calls(2, api))
    desk.follow(api)
    desk.later(minutes=14)
    desk.follow(api)
    assert desk.states() == ["intended"]
    desk.later(minutes=1)
    desk.follow(api)
    assert desk.states() == ["void"]
    assert desk.taken() == 0
    assert desk.bills() == {}


def test_a_list_that_lags_still_brings_it_to_light(desk: Desk) -> None:
    """One that was given up too early is collected as well: what was billed is in history."""
    desk.server.tell(responses={"create": "drop", "lag": 3, "end": "hang"})
    desk.submit(desk.calls(2))
    for _ in range(2):
        desk.follow()
        desk.later(minutes=16)
    assert desk.states() == ["void"]
    account = desk.work().polling.accounts[0]
    assert account.reserve(1_000_000)
    desk.follow()
    assert desk.states() == ["void"]
    desk.follow()
    assert desk.states() == ["submitted"]
    assert desk.taken() > 1.04, "what it may cost is held again"
    desk.server.book["batches"]["b1"]["end"] = "completed"
    desk.follow()
    assert desk.states() == ["collected"]
    assert desk.taken() == pytest.approx(1 + 2 * 0.0022)
    assert len(desk.polls()) == 2


def test_a_refused_first_batch_turns_batches_off(desk: Desk) -> None:
    """Who takes none is asked directly until models.json changes; a bad key is not that."""
    assistant = desk.assistant()
    assert standing(assistant, [], NOW) == Standing(1)
    desk.server.tell(responses={"create": 401})
    assert "HTTP 401" in (desk.submit(desk.calls(1)).why or "")
    batches = desk.work().files.all()
    assert "rest for an hour" in (standing(assistant, batches, NOW).why or "")
    desk.later(hours=2)
    assert standing(assistant, batches, desk.now) == Standing(1)
    desk.server.tell(responses={"create": 400, "why": "API key not valid."})
    desk.submit(desk.calls(1))
    desk.later(hours=2)
    assert standing(assistant, desk.work().files.all(), desk.now) == Standing(1)
    desk.server.tell(responses={"create": 400})
    desk.submit(desk.calls(1))
    batches = desk.work().files.all()
    why = standing(assistant, batches, desk.now + timedelta(days=20)).why
    assert why == (
        "batches are off, for the first was refused: "
        'The provider answered HTTP 400: "no batches of this model"'
    )
    assert standing(desk.assistant(model="other"), batches, desk.now) == Standing(1)


def test_the_first_batch_is_waited_for(desk: Desk) -> None:
    """Whether batches work is seen by one question; then they take two hundred."""
    assistant = desk.assistant()
    desk.submit(desk.calls(1))
    assert standing(assistant, desk.work().files.all(), NOW).waits
    desk.follow()
    assert standing(assistant, desk.work().files.all(), NOW) == Standing(200)


@pytest.mark.parametrize("api", apis_but("xai"))
def test_a_late_batch_is_cancelled_and_collected(desk: Desk, api: str) -> None:
    """After 26 hours it is ended; until it has, nothing of it is free."""
    desk.server.tell(**{api: {"end": "hang", "answered": 1}})
    desk.submit(desk.calls(3, api))
    desk.later(hours=25.9)
    assert desk.follow(api).wrong == []
    desk.later(hours=0.2)
    (wrong,) = desk.follow(api).wrong
    since = f"since {rfc3339(NOW)} ({1:016x})"
    assert wrong == f"A batch of {api.title()} is with its provider {since}."
    assert desk.states() == ["submitted"]
    assert dict(desk.follow(api).summary.outcomes) == {"answered": 1, "interrupted": 2}


def test_what_was_cancelled_at_xai_may_be_answered_nonetheless(desk: Desk) -> None:
    """It says that all is cancelled, and seconds later that it is answered and billed."""
    desk.server.tell(xai={"end": "revert"})
    desk.submit(desk.calls(2, "xai"))
    desk.later(hours=26.1)
    desk.follow("xai")
    assert desk.follow("xai").summary.polled == 0
    assert desk.states() == ["submitted"]
    assert dict(desk.follow("xai").summary.outcomes) == {"answered": 2}


@pytest.mark.parametrize("by_hand", [False, True])
def test_what_stays_cancelled_at_xai_is_interrupted(desk: Desk, *, by_hand: bool) -> None:
    """A quarter of an hour after it was cancelled, here or in xAI's console."""
    desk.server.tell(xai={"end": "cancelled" if by_hand else "hang"})
    desk.submit(desk.calls(2, "xai"))
    desk.later(hours=1 if by_hand else 26.1)
    desk.follow("xai")
    desk.later(minutes=14)
    assert desk.follow("xai").summary.polled == 0
    desk.later(minutes=1)
    assert dict(desk.follow("xai").summary.outcomes) == {"interrupted": 2}
    assert desk.taken() == 0


def test_what_was_cancelled_at_xai_is_collected_however_late(desk: Desk) -> None:
    """After 50 hours nothing settles any more: what can be read is recorded."""
    desk.server.tell(xai={"end": "cancelled", "answered": 1})
    desk.submit(desk.calls(2, "xai"))
    desk.later(hours=51)
    assert dict(desk.follow("xai").summary.outcomes) == {"answered": 1, "interrupted": 1}


def test_a_stuck_batch_is_given_up(desk: Desk) -> None:
    """One that cannot even be cancelled is lost after 50 hours, and its pairs are free."""
    desk.server.tell(responses={"end": "stuck"})
    desk.submit(desk.calls(2))
    desk.later(hours=49)
    desk.follow()
    assert len(desk.under_way()) == 2
    desk.later(hours=2)
    desk.follow()
    assert desk.states() == ["lost"]
    assert desk.under_way() == frozenset()


def test_a_clock_that_was_set_back_is_patient(desk: Desk) -> None:
    """A batch from the future is as good as new."""
    desk.submit(desk.calls(2))
    desk.later(days=-3)
    assert dict(desk.follow().summary.outcomes) == {"answered": 2}


@pytest.mark.parametrize("spoilt", ["deleted", "edited", "cut", "all deleted"])
def test_a_file_that_was_touched_by_hand_is_read_from_its_copy(desk: Desk, spoilt: str) -> None:
    """What is on its way stays known, and a sentence says what to put back."""
    desk.server.tell(responses={"looks": 1})
    desk.submit(desk.calls(2))
    file = desk.directory / "batches" / f"{1:016x}.json"
    if spoilt == "deleted":
        file.unlink()
    elif spoilt == "all deleted":
        shutil.rmtree(file.parent)
    else:
        data = file.read_bytes()
        file.write_bytes(data[:40] if spoilt == "cut" else data.replace(b"c-01", b"c-77"))
    assert len(desk.under_way()) == 2
    assert desk.work().files.mended() == [
        (
            f"batches/{1:016x}.json was edited or deleted; its copy in .last-good/batches is used: "
            "put that back in its place"
        )
    ]
    desk.follow()
    desk.follow()
    assert {poll.slug for poll in desk.polls()} == {"c-00", "c-01"}


def test_without_a_good_copy_nothing_is_asked(desk: Desk) -> None:
    """Nobody knows what is under way, and the sentence says what to do."""
    desk.submit(desk.calls(1))
    for folder in ("batches", ".last-good/batches"):
        (desk.directory / folder / f"{1:016x}.json").write_text("{}")
    with pytest.raises(BatchFileError, match="damaged and has no good copy"):
        desk.under_way()
    deps = msgspec.structs.replace(desk.work().polling, under_way=desk.under_way)
    summary = run(desk.calls(1), deps)["Responses"]
    assert dict(summary.outcomes) == {LEFT: 1}
    assert "restore it, or delete it" in summary.reasons[LEFT]


def test_late_answers_land_where_they_were_asked(desk: Desk) -> None:
    """A renamed category and assistant are still under way; records bear what was asked."""
    desk.submit(desk.calls(1))
    batches = desk.work().files.all()
    renamed = category("Best new", former_slugs=("c-00",))
    site = Site(version=1, name="Site")
    new = desk.assistant(name="New", former_names=("Responses",))
    catalogue = Catalogue(site, (new,), {"new": renamed}, {}, {}, (), (), {}, frozenset(), ())
    assert under_way(batches, catalogue) == {("new", "New")}
    desk.follow()
    (poll,) = desk.polls()
    assert (poll.slug, poll.model, poll.question) == (
        "c-00", "Responses", "What is the best c-00?",
    )  # fmt: skip


def test_no_key_is_in_what_is_kept(desk: Desk) -> None:
    """Neither in batches nor in their copies, though the provider was sent it."""
    desk.submit(desk.calls(2))
    desk.follow()
    kept = [p.read_bytes() for p in desk.directory.rglob("*") if p.is_file()]
    assert len(kept) > 4
    assert not any(b"canary" in data for data in kept)


def test_what_is_long_over_is_forgotten(desk: Desk) -> None:
    """After 31 days, when no provider has its results any more."""
    desk.submit(desk.calls(1))
    desk.follow()
    desk.later(days=30)
    desk.follow()
    assert desk.states() == ["collected"]
    desk.later(days=2)
    desk.follow()
    assert desk.states() == []


@pytest.mark.parametrize("api", ["responses", pytest.param("messages", marks=pytest.mark.slow)])
def test_a_full_disk_loses_and_doubles_nothing(desk: Desk, api: str) -> None:
    """Whichever step of sending or collecting finds the disk full, each question is paid once."""
    failed = 0
    for nth in STEPS:
        before = len(desk.server.book["bills"])
        calls = [msgspec.structs.replace(c, slug=f"{c.slug}-{nth}") for c in desk.calls(2, api)]
        with failing_names(nth, errno.ENOSPC, names=("replace",)), suppress(OSError, HistoryError):
            desk.submit(calls)
            failed += 1
            desk.follow(api)
            failed += 1
        for _ in range(4):
            with suppress(HistoryError):
                desk.follow(api)
            desk.later(minutes=16)
        assert all(state in ("collected", "void") for state in desk.states())
        new = [p for p in desk.polls() if p.slug.endswith(f"-{nth}")]
        assert len(new) == len(desk.server.book["bills"]) - before
        desk.later(hours=1)
    assert failed < 2 * len(STEPS)


def test_a_record_that_cannot_be_written_is_tried_again(desk: Desk) -> None:
    """History that fails half-way keeps what it has; the next look adds the rest, none twice."""
    desk.submit(desk.calls(4))
    history = History(desk.directory / "history")
    count = iter(range(99))

    def record(polls: Any, now: str) -> Any:
        if next(count) == 2:
            raise HistoryError("c-02.jsonl cannot be written")
        return history.append(polls, now)

    with pytest.raises(HistoryError):
        desk.follow(record=record)
    assert len(desk.polls()) == 2
    assert desk.states() == ["submitted"]
    desk.follow()
    assert len(desk.polls()) == len({poll.pick for poll in desk.polls()}) == 4


def test_by_a_wrong_clock_nothing_is_sent_or_recorded(desk: Desk) -> None:
    """Before 2020: no batch, no look, and a sentence each time."""
    desk.submit(desk.calls(1))
    desk.now -= timedelta(days=9000)
    why = desk.submit(desk.calls(2)[1:]).why
    assert why == "This machine's clock says 2002-03-31T06:00:00Z; nothing is sent until it is set."
    assert desk.follow().wrong == [why]
    assert desk.states() == ["submitted"]


def test_a_provider_whose_date_differs_is_not_believed(desk: Desk) -> None:
    """A look that brings a date of another day ends there; nothing is recorded meanwhile."""
    desk.submit(desk.calls(2))
    before, desk.server.dated = desk.polls(), "Fri, 20 Nov 2026 09:00:00 GMT"
    try:
        (wrong,) = desk.follow().wrong
    finally:
        desk.server.dated = None
    assert wrong.endswith("Nothing is sent until they agree.")
    assert desk.polls() == before
    desk.follow()
    assert len(desk.polls()) == 2


def test_without_its_key_a_batch_waits(desk: Desk) -> None:
    """The sentence says which variable's name to look at; the batch is not lost."""
    desk.submit(desk.calls(1))
    (wrong,) = desk.follow(secret={}.get).wrong
    assert wrong == (
        "A batch of Responses cannot be looked after: Responses: the environment variable that its "
        "key_env names is not set."
    )
    assert desk.states() == ["submitted"]


def test_a_search_that_gets_no_list_says_nothing(desk: Desk) -> None:
    """Only a whole list can say that a batch was never made; after 50 hours it is lost."""
    desk.server.tell(responses={"create": "drop"})
    desk.submit(desk.calls(1))
    desk.server.broken = True
    try:
        for _ in range(3):
            desk.follow()
            desk.later(hours=1)
        assert desk.states() == ["intended"]
        desk.later(hours=50)
        desk.follow()
    finally:
        desk.server.broken = False
    assert desk.states() == ["lost"]


def test_a_list_without_end_is_not_read_for_ever(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says nothing of a batch that is not on its first pages."""
    monkeypatch.setattr(following, "MOST_PAGES", 1)
    for count in range(3):
        desk.submit(desk.calls(4)[count : count + 1])
    desk.server.tell(responses={"create": "void"})
    desk.submit(desk.calls(4)[3:])
    desk.follow()
    (batch,) = [b for b in desk.work().files.all() if b.state == "intended"]
    assert batch.missed_at is None


def test_another_batch_of_that_size_is_not_taken_for_ours(desk: Desk) -> None:
    """At Anthropic only the ids of results prove whose a batch is; others are read once."""
    stranger = Desk(desk.directory.with_name("other"), desk.server)
    stranger.keys = (key for key in ["f" * 16])
    stranger.submit(stranger.calls(2, "messages"))
    desk.server.tell(messages={"create": "void"})
    desk.submit(desk.calls(2, "messages"))
    desk.follow("messages")
    (batch,) = desk.work().files.all()
    assert batch.not_ours == ("b1",)
    desk.server.book["batches"]["b1"]["results"] = None
    desk.later(minutes=16)
    desk.follow("messages")
    assert desk.states() == ["void"]
    desk.server.tell()
    later = Desk(desk.directory.with_name("later"), desk.server)
    later.keys = (key for key in ["e" * 16])
    later.submit(later.calls(2, "messages"))
    desk.follow("messages")
    (batch,) = desk.work().files.all()
    assert (batch.state, batch.not_ours) == ("void", ("b1", "b2")), "it is not read at each look"


def test_results_of_a_suspect_that_cannot_be_read_prove_nothing(desk: Desk) -> None:
    """The batch stays under way until they can."""
    desk.server.tell(messages={"create": "drop"})
    desk.submit(desk.calls(2, "messages"))
    desk.server.tell(messages={"results": "endless"})
    desk.follow("messages")
    assert desk.states() == ["intended"]
    desk.server.tell(messages={})
    desk.follow("messages")
    assert desk.states() == ["collected"]


def test_a_cancelled_batch_is_cancelled_again_while_it_lives(desk: Desk) -> None:
    """When it was first cancelled stays written; one that cannot be cancelled says why."""
    desk.server.tell(responses={"end": "stuck"})
    desk.submit(desk.calls(1))
    desk.later(hours=27)
    desk.follow()
    (first,) = desk.work().files.all()
    desk.later(hours=1)
    desk.follow()
    (second,) = desk.work().files.all()
    assert first.cancelled_at == second.cancelled_at == "2026-11-21T09:00:00Z"


def test_a_look_that_fails_is_tried_again(desk: Desk) -> None:
    """Nothing follows from a server error, though 50 hours have passed."""
    desk.submit(desk.calls(1))
    desk.later(hours=51)
    desk.server.broken = True
    try:
        (wrong,) = desk.follow().wrong
    finally:
        desk.server.broken = False
    assert wrong == (
        'A batch of Responses cannot be looked at: The provider answered HTTP 503: "broken"'
    )
    assert desk.states() == ["submitted"]


def test_an_upload_without_an_id_makes_no_batch(desk: Desk) -> None:
    """What was not uploaded cannot be asked: its pairs are free at once."""
    desk.server.broken = True
    try:
        came = desk.submit(desk.calls(1))
    finally:
        desk.server.broken = False
    assert came == Submitted(why='The provider answered HTTP 503: "broken"')
    assert desk.states() == ["void"]
    assert said(Response(200, {}, b'{"x": 1}')) == (
        "The provider answered HTTP 200, but nothing that could be used."
    )


def test_a_stopped_process_sends_nothing_more(desk: Desk) -> None:
    """A batch that was not sent yet is over at once; no record says `interrupted`."""
    desk.stop.set()
    assert desk.submit(desk.calls(1)) == Submitted(why="It was stopped before it was sent.")
    assert (desk.states(), desk.polls()) == (["void"], [])


def test_what_one_cap_gave_another_may_forbid(desk: Desk) -> None:
    """Then all is given back, and nothing is sent."""
    account = RunAccount(1)
    taken = desk.work().polling.accounts[0]

    class Racing(RunAccount):
        def left(self) -> int:
            return 10**9

    calls = desk.calls(1)
    came = desk.submit(calls, accounts=[account, taken, Racing(0)])
    assert (came.asked, account.spent, desk.taken()) == (0, 0, 0)
    assert desk.server.book["batches"] == {}


def test_history_that_cannot_be_read_sends_and_collects_nothing(desk: Desk) -> None:
    """Nobody knows what was asked or recorded; the batch waits until somebody does."""

    def unread(_slug: str) -> Any:
        raise HistoryError("history/c-00.jsonl:1:1: cannot be read")

    assert desk.submit(desk.calls(1), states_of=unread).why == "None of them is due any more."
    desk.submit(desk.calls(1))
    (desk.directory / "history" / "c-00.jsonl").mkdir()
    (sentence,) = desk.follow().wrong
    assert sentence.startswith("1 of 1 answers in a batch of Responses are not recorded: history/")
    assert sentence.endswith("c-00.jsonl:1:1: cannot be read: it is not a regular file.")
    assert desk.states() == ["submitted"]
    (desk.directory / "history" / "c-00.jsonl").rmdir()
    desk.follow()
    assert desk.states() == ["collected"]


def lose(file: Path) -> None:
    """Cut a history file short, as if its disk had."""
    file.write_bytes(b"")


def put_a_directory(file: Path) -> None:
    """Put a directory in a file's place."""
    file.unlink(missing_ok=True)
    file.mkdir()


@pytest.mark.parametrize("spoil", [lose, put_a_directory])
def test_one_lost_history_keeps_no_other_answer(desk: Desk, spoil: Callable[[Path], None]) -> None:
    """The others are recorded, once; nothing is downloaded again until that file is restored."""
    file = desk.directory / "history" / "c-01.jsonl"
    calls = desk.calls(4)
    desk.work().polling.record([poll_of(calls[1], NOW)], rfc3339(NOW))
    Proof(desk.directory).close("2026-11-20")
    whole = file.read_bytes()
    desk.later(days=8)
    desk.submit(calls)
    spoil(file)
    for _ in range(3):
        (sentence,) = desk.follow().wrong
        assert sentence.startswith("1 of 4 answers in a batch of Responses are not recorded: hist")
        desk.later(minutes=5)
    downloads = [path for method, path in desk.server.book["asked"] if "/content" in path]
    assert len(downloads) == 1
    assert Counter(p.slug for p in desk.polls() if p.slug != "c-01") == {
        "c-00": 1,
        "c-02": 1,
        "c-03": 1,
    }
    assert desk.states() == ["submitted"]
    if file.is_dir():
        file.rmdir()
    file.write_bytes(whole)
    assert desk.follow().wrong == []
    assert Counter(poll.slug for poll in desk.polls())["c-01"] == 2
    assert desk.states() == ["collected"]
    assert len({poll.pick for poll in desk.polls()}) == 5


def test_a_lost_history_holds_a_batch_for_two_days(desk: Desk) -> None:
    """What nobody restored by then is lost, and counts as paid; the sentence stays with it."""
    desk.submit(desk.calls(2))
    put_a_directory(desk.directory / "history" / "c-00.jsonl")
    desk.follow()
    desk.later(hours=51)
    desk.follow()
    (batch,) = desk.work().files.all()
    assert (batch.state, len(desk.polls())) == ("lost", 1)
    assert str(batch.why).startswith("Not all of its answers were recorded: history/c-00.jsonl")


def test_what_cannot_be_recorded_is_in_no_batch(desk: Desk) -> None:
    """A file that cannot be appended to is tried before the question is sent; the others are."""

    def check(slug: str, _now: str) -> None:
        if slug == "c-01":
            raise HistoryError("c-01.jsonl cannot be written: Permission denied")

    assert desk.submit(desk.calls(3), check_appendable=check).asked == 2
    (batch,) = desk.work().files.all()
    assert [item.slug for item in batch.items] == ["c-00", "c-02"]


def test_one_odd_result_does_not_keep_the_others(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What nobody thought of is a failure of its own, with a trace in the log."""
    real, count = answer_parsing.read, iter(range(9))

    def read(text: str) -> Any:
        if next(count) == 1:
            raise ZeroDivisionError
        return real(text)

    monkeypatch.setattr(answer_parsing, "read", read)
    desk.submit(desk.calls(3))
    assert dict(desk.follow().summary.outcomes) == {"answered": 2, "http": 1}
    assert "in a batch failed unexpectedly: Traceback" in caplog.text


def test_what_was_not_written_down_holds_nothing(desk: Desk) -> None:
    """A full disk before anything is sent takes nothing from the day's cap."""
    (desk.directory / "batches").write_text("in the way", encoding="utf-8")
    with pytest.raises(OSError, match=r"File exists|Not a directory"):
        desk.submit(desk.calls(2))
    assert desk.taken() == 0
    assert desk.server.book["asked"] == []


def test_how_far_a_batch_is_stays_written(desk: Desk) -> None:
    """What a look finds is what `--status` says until the next one."""
    desk.server.tell(responses={"end": "hang"})
    desk.submit(desk.calls(3))
    desk.server.book["batches"]["b1"]["done"] = 2
    desk.follow()
    desk.later(hours=3)
    desk.submit(desk.calls(4)[3:])
    batches = desk.work().files.all()
    assert [batch.done for batch in batches] == [2, 0]
    assert str(open_batches(batches, desk.now)) == (
        "2 batches: 4 asked 3 h ago, 2 done, direct after 11-21 08:00Z, at most 0.08 USD"
    )
    assert open_batches([], desk.now) is None
    desk.server.book["batches"]["b1"]["end"] = "completed"
    desk.follow()
    assert [batch.done for batch in desk.work().files.all()] == [3, 0]
