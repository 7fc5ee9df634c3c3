"""Where batches begin to be late, lost, forgotten, refused or too many: the last that is not."""

from __future__ import annotations

import json
import os
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from batch_desk import APIS, NOW, Desk
from batching import Batching, serving
from builders import category

from store.files import Catalogue
from store.polls import runner
from store.polls.batches import files, work
from store.polls.batches.files import Asking, Batch, Batches, BatchFileError, under_way
from store.polls.batches.standing import Standing, late_ones, open_batches, standing
from store.polls.batches.submitting import is_certain, is_well, said
from store.polls.batches.work import ProviderLine
from store.polls.providers import Response
from store.polls.sending import Limits, Lost
from store.records import Assistant, Site
from store.times import rfc3339

if TYPE_CHECKING:
    from collections.abc import Iterator

SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)


@pytest.fixture(scope="module")
def served() -> Iterator[Batching]:
    """The provider, on a thread of the test's own process."""
    with serving() as server:
        yield server


@pytest.fixture
def desk(tmp_path: Path, served: Batching) -> Desk:
    """A fresh data directory and a provider that does as it should."""
    return Desk(tmp_path / "data", served.emptied())


def only(desk: Desk) -> Batch:
    """The one batch."""
    (batch,) = desk.work().files.all()
    return batch


def test_a_batch_is_late_after_26_hours_and_lost_after_50(desk: Desk) -> None:
    """Not at the very second; what was given up stays so, though it was cancelled as well."""
    desk.server.tell(responses={"end": "stuck"})
    desk.submit(desk.calls(1))
    desk.later(hours=26)
    assert (desk.follow().wrong, late_ones([only(desk)], desk.now)) == ([], [])
    assert desk.server.book["asked"][-1][0] == "GET"
    desk.now += SECOND
    late = [f"A batch of Responses is with its provider since 2026-11-20T06:00:00Z ({1:016x})."]
    assert (desk.follow().wrong, late_ones([only(desk)], desk.now)) == (late, late)
    method, address = desk.server.book["asked"][-1]
    assert (method, address.endswith("/v1/batches/b1/cancel")) == ("POST", True)
    desk.later(hours=24, seconds=-1)
    assert desk.follow().wrong == late
    assert desk.states() == ["submitted"]
    desk.now += SECOND
    desk.follow()
    assert (only(desk).state, only(desk).why) == (
        "lost",
        "It neither ended nor could be cancelled.",
    )
    assert late_ones([only(desk)], desk.now) == []


def test_a_stuck_batch_that_nobody_looked_at_is_lost_at_once(desk: Desk) -> None:
    """After 50 hours it is not cancelled any more: the attempt would bring it back to life."""
    desk.server.tell(responses={"end": "stuck"})
    desk.submit(desk.calls(1))
    desk.later(hours=51)
    desk.follow()
    assert desk.states() == ["lost"]
    assert desk.server.book["asked"][-1][0] == "GET"


def test_what_is_over_is_remembered_for_31_days(desk: Desk) -> None:
    """As long as a provider may still have its results, and a day."""
    desk.submit(desk.calls(1))
    desk.follow()
    desk.later(days=31)
    desk.follow()
    assert desk.states() == ["collected"]
    desk.now += SECOND
    desk.follow()
    assert desk.states() == []
    assert [*desk.directory.rglob("0*.json")] == []


@pytest.mark.parametrize(("early", "state"), [(600, "collected"), (601, "intended")])
def test_a_providers_clock_may_be_ten_minutes_behind(desk: Desk, early: int, state: str) -> None:
    """A batch from before that is none of ours, whatever its label."""
    clock = {"at": NOW.timestamp() - early}
    desk.server.tell(responses={"create": "drop"}, clock=clock)
    desk.submit(desk.calls(1))
    desk.follow()
    desk.follow()
    assert desk.states() == [state]


def test_one_that_was_never_made_is_looked_for_during_26_hours(desk: Desk) -> None:
    """Then no more; why it is void stands in its file."""
    desk.server.tell(responses={"create": "lose"})
    desk.submit(desk.calls(1))
    for _ in range(2):
        desk.follow()
        desk.later(minutes=15)
    assert only(desk).why == "The provider never got it, so nothing was asked."
    for hours, looks in ((26, 0), (-1 / 3600, 1)):
        desk.now = NOW if hours == 26 else desk.now
        desk.later(hours=hours)
        before = len(desk.server.book["asked"])
        assert desk.follow().wrong == []
        assert len(desk.server.book["asked"]) == before + looks


def test_what_failed_after_it_was_found_late_is_over(desk: Desk) -> None:
    """It is not looked at again, and gives back what it held once."""
    desk.server.tell(responses={"create": "drop", "lag": 1, "end": "failed"})
    desk.submit(desk.calls(1))
    desk.follow()
    desk.follow()
    assert (only(desk).state, only(desk).remote) == ("void", "b1")
    account = desk.work().polling.accounts[0]
    assert account.reserve(1_000_000)
    before = len(desk.server.book["asked"])
    assert desk.follow().wrong == []
    assert (len(desk.server.book["asked"]), desk.taken()) == (before, 1.0)


def test_one_that_cannot_be_looked_for_is_lost_after_50_hours(desk: Desk) -> None:
    """And that is said; until then, and to the second, it is under way."""
    desk.server.tell(responses={"create": "drop"})
    desk.submit(desk.calls(1))
    desk.server.broken = True
    try:
        desk.later(hours=50)
        desk.follow()
        assert desk.states() == ["intended"]
        desk.now += SECOND
        desk.follow()
    finally:
        desk.server.broken = False
    assert only(desk).state == "lost"
    assert only(desk).why == "Its provider did not say whether there is such a batch."


def test_fifty_pages_are_searched(desk: Desk) -> None:
    """A list that does not end says nothing of a batch, and takes no more time than that."""
    desk.submit(desk.calls(1))
    desk.follow()
    desk.server.tell(responses={"create": "void"}, list={"endless": True})
    desk.submit(desk.calls(2)[1:])
    before = len(desk.server.book["asked"])
    desk.follow()
    assert len(desk.server.book["asked"]) == before + 50
    assert [each.missed_at for each in desk.work().files.all()] == [None, None]


@pytest.mark.parametrize("api", APIS)
def test_a_batch_is_found_on_any_page(desk: Desk, api: str) -> None:
    """Others of the same minutes stand before it or behind it."""
    calls = desk.calls(7, api)
    for count in range(6):
        behaviour = {"create": "drop"} if count == 3 else {}
        desk.server.tell(**{api: behaviour})
        desk.submit(calls[count : count + (2 if count == 3 else 1)])
    assert desk.states().count("intended") == 1
    for _ in range(2):
        desk.follow(api)
    assert set(desk.states()) == {"collected"}


def test_a_hundred_pages_of_results_are_read(desk: Desk) -> None:
    """One with more has no end, and that is said."""
    desk.server.tell(xai={"results": "endless"})
    desk.submit(desk.calls(1, "xai"))
    before = len(desk.server.book["asked"])
    assert desk.follow("xai").wrong == [
        "The results of a batch of Xai cannot be had: The provider's results have no end."
    ]
    assert len(desk.server.book["asked"]) == before + 1 + 100


@pytest.mark.parametrize(
    ("status", "well", "certain"),
    [(199, False, False), (200, True, False), (299, True, False), (300, False, True),
     (400, False, True), (407, False, True), (408, False, False), (409, False, False),
     (410, False, True), (499, False, True), (500, False, False)],
)  # fmt: skip
def test_what_a_status_says_of_a_batch(status: int, *, well: bool, certain: bool) -> None:
    """Whether it is there, or surely is not."""
    came = Response(status, {}, b"{}")
    assert (is_well(came), is_certain(came)) == (well, certain)
    assert not is_well(Lost("network", "lost"))
    assert [is_certain(Lost("network", "lost", free)) for free in (True, False)] == [True, False]


@pytest.mark.parametrize("create", [408, 409])
def test_a_refusal_that_may_be_none_is_looked_into(desk: Desk, create: int) -> None:
    """A time-out or a conflict on the provider's side: the batch may be there all the same."""
    desk.server.tell(responses={"create": create})
    assert desk.submit(desk.calls(1)).asked == 1
    assert desk.states() == ["intended"]


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 422, 429])
def test_a_bad_key_spent_money_and_a_rate_are_no_refusal(desk: Desk, status: int) -> None:
    """They pass; what says anything else turns batches off."""
    desk.server.tell(responses={"create": status})
    desk.submit(desk.calls(1))
    assert (only(desk).state, only(desk).refused) == ("void", status in (400, 404, 422))


def test_of_a_providers_words_300_characters_are_kept() -> None:
    """As much as a sentence needs."""
    body = json.dumps({"error": {"message": "x" * 400}}).encode()
    assert said(Response(400, {}, body)) == ('The provider answered HTTP 400: "' + "x" * 400)[:300]


def test_a_batch_is_cut_where_a_cap_ends(desk: Desk) -> None:
    """What comes first is sent; nothing cheaper behind it is preferred."""
    calls = desk.calls(3)
    long = category("Best c-01 " + "x" * 100)
    calls[1] = msgspec.structs.replace(calls[1], category=long)
    desk.cap = 0.04158
    assert desk.submit(calls).asked == 1
    assert [item.slug for item in only(desk).items] == ["c-00"]


def test_results_may_be_larger_than_an_answer(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """64 MiB, or as much as an answer may have."""
    sizes: list[int] = []
    real = runner.sender_for

    def recording(assistant: Any, deps: Any) -> Any:
        sizes.append(deps.limits.size)
        return real(assistant, deps)

    monkeypatch.setattr(work, "sender_for", recording)
    for size in (1_000, 100 << 20):
        ProviderLine(desk.assistant(), desk.work(limits=Limits(size=size)).polling)
    assert sizes == [64 << 20, 100 << 20]


@pytest.mark.parametrize(("told", "most"), [
    ({"results": "missing"}, 1), ({"results": "differing"}, 0), ({"errors": 400}, 0),
    ({"end": "expired", "answered": 2}, 0),
])  # fmt: skip
def test_an_item_that_may_have_cost_something_counts_as_the_most(
    desk: Desk, told: dict[str, Any], most: int
) -> None:
    """One without a result may have been answered; a refused or expired one was not."""
    desk.server.tell(responses=told)
    desk.submit(desk.calls(3))
    each = only(desk).reserved / 3e6
    desk.follow()
    answered = sum(poll.pick is not None for poll in desk.polls())
    unsure = 3 - answered if told.get("results") else 0
    assert desk.taken() == pytest.approx(answered * 0.0022 + unsure * each)
    assert unsure >= most


def batch(state: str, **fields: Any) -> Batch:
    """A batch of an assistant, made at noon."""
    assistant = Assistant(name="A", api="messages", base_url="https://api.example/v1", model="m")
    given = {"assistant": assistant, "key": "a" * 16, "intended_at": "2026-11-20T12:00:00Z"}
    base: dict[str, Any] = {**given, "reserved": 10_000_001, "items": (Asking("a", "A?"),) * 3}
    return Batch(**{**base, "state": state, **fields})


NOON = datetime.fromisoformat("2026-11-20T12:00:00Z")
OVER: dict[str, Any] = {"over_at": "2026-11-20T12:00:00Z"}
GOOD = batch("collected", over_at="2026-11-19T12:00:00Z")
HUNDRED = msgspec.structs.replace(GOOD.assistant, api="gemini")


@pytest.mark.parametrize(
    ("batches", "after", "expected"),
    [
        ([], HOUR, Standing(1)),
        ([batch("intended")], HOUR, Standing(
            0, "the first batch, of one question, is on its way", waits=True)),
        ([GOOD], HOUR, Standing(200)),
        ([GOOD, batch("submitted")], HOUR, Standing(200)),
        ([batch("void", why="no.", **OVER)], HOUR - SECOND, Standing(
            0, "batches rest for an hour: no.")),
        ([batch("void", why="no.", **OVER)], HOUR, Standing(1)),
        ([batch("lost", why="no.", **OVER)], HOUR - SECOND, Standing(
            0, "batches rest for an hour: no.")),
        ([GOOD, batch("void", why="no.", **OVER)], HOUR - SECOND, Standing(
            0, "batches rest for an hour: no.")),
        ([GOOD, batch("void", why="no.", refused=True, **OVER)], HOUR, Standing(200)),
        ([batch("void", why="no.", refused=True, **OVER)], 99 * HOUR, Standing(
            0, "batches are off, for the first was refused: no.")),
        ([batch("collected", late=True, **OVER)], 24 * HOUR - SECOND, Standing(
            0, "batches rest for a day, for one came late or was cancelled")),
        ([batch("collected", late=True, **OVER)], 24 * HOUR, Standing(200)),
        ([GOOD, batch("submitted", late=True)], HOUR, Standing(200)),
        ([batch("collected", late=True, **OVER), batch("void", why="no.", **OVER)], SECOND,
         Standing(0, "batches rest for an hour: no.")),
    ],
)  # fmt: skip
def test_how_an_assistant_stands(
    batches: list[Batch], after: timedelta, expected: Standing
) -> None:
    """By its batches so far: the newest that says anything counts."""
    assert standing(GOOD.assistant, batches, NOON + after) == expected


@pytest.mark.parametrize("changed", [
    {"model": "other"}, {"base_url": "https://other.example"}, {"extra": {"x": 1}}, {"api": "chat"},
])  # fmt: skip
def test_another_model_or_address_begins_anew(changed: dict[str, Any]) -> None:
    """What one said is no word on the other; a new price or name is none."""
    other = msgspec.structs.replace(GOOD.assistant, **changed)
    assert standing(other, [GOOD], NOON) == Standing(1)
    same = msgspec.structs.replace(GOOD.assistant, name="New", rpm=1)
    assert standing(same, [GOOD], NOON) == Standing(200)


def test_gemini_takes_a_hundred_at_a_time() -> None:
    """Its results come with the batch, and stay small that way."""
    proven = msgspec.structs.replace(GOOD, assistant=HUNDRED)
    assert standing(HUNDRED, [proven], NOON) == Standing(100)


def test_how_batches_stand_in_words() -> None:
    """From the oldest that is open; what is over does not count."""
    later = batch("intended", intended_at="2026-11-20T13:00:00Z", done=1)
    found = open_batches([GOOD, later, batch("submitted", done=2)], NOON + 90 * SECOND)
    assert found
    assert msgspec.to_builtins(found) == {
        "count": 2, "asked": 6, "done": 3, "since": "2026-11-20T12:00:00Z",
        "directAfter": "2026-11-21T14:00:00Z", "usdAtMost": 20.000002, "hours": 0.03,
    }  # fmt: skip
    assert str(found) == (
        "2 batches: 6 asked 2 min ago, 3 done, direct after 11-21 14:00Z, at most 20.00 USD"
    )
    for after, passed in ((HOUR, "1 h"), (HOUR - 36 * SECOND, "59 min"), (-HOUR, "0 min")):
        one = open_batches([batch("submitted")], NOON + after)
        assert str(one).startswith(f"1 batch: 3 asked {passed} ago, 0 done, ")


def test_open_batches_weigh_on_every_day_and_lost_ones_on_their_last(desk: Desk) -> None:
    """To the micro-dollar."""
    lost = batch("lost", key="b" * 16, reserved=500_000, **OVER)
    kept = desk.work().files
    for each in (batch("intended"), lost, batch("collected", key="c" * 16, **OVER)):
        kept.write(each)
    known = files.with_reserves(kept, lambda day: 1.0 if day == "2026-11-20" else 0.0)
    assert [known(f"2026-11-{day}") for day in (19, 20, 21)] == [10.000001, 11.500001, 10.000001]


def test_a_former_name_that_is_given_again_is_its_new_owners() -> None:
    """Only what is nowhere else is taken for the renamed."""
    site = Site(version=1, name="Site")
    new = category("Best new", former_slugs=("a", "b"))
    categories = {"new": new, "a": category("Best a")}
    catalogue = Catalogue(site, (), categories, {}, {}, (), (), {}, frozenset(), ())
    items = (Asking("a", "A?"), Asking("b", "B?"))
    name = GOOD.name
    assert under_way([batch("submitted", items=items)], catalogue) == {("a", name), ("new", name)}
    assert under_way([batch("void", items=items, **OVER)], catalogue) == frozenset()


WRITTEN = """{
  "version": 1,
  "key": "0000000000000001",
  "state": "submitted",
  "assistant": %s,
  "intended_at": "2026-11-20T06:00:00Z",
  "reserved": %d,
  "items": [
    {
      "slug": "c-00",
      "question": "What is the best c-00?",
      "repeat": 0
    }
  ],
  "remote": "b1",
  "done": 0,
  "missed_at": null,
  "not_ours": [],
  "cancelled_at": null,
  "over_at": null,
  "why": null,
  "late": false,
  "refused": false,
  "seal": "%s"
}
"""


def test_what_a_batchs_file_says(desk: Desk) -> None:
    """All of it, and in the copy the same."""
    desk.submit(desk.calls(1))
    text = (desk.directory / "batches" / f"{1:016x}.json").read_text()
    given = json.loads(text)
    about = json.dumps(given["assistant"], indent=2).replace("\n", "\n  ")
    assert text == WRITTEN % (about, given["reserved"], given["seal"])
    copy = desk.directory / ".last-good" / "batches" / f"{1:016x}.json"
    assert copy.read_text() == text


SEALED = """{"version":1,"key":"00000000000000aa","state":"void","assistant":{"name":"A",
"api":"chat","model":"m"},"intended_at":"2026-11-20T06:00:00Z","reserved":0,"items":[],"seal":"%s"}"""


def test_a_file_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    """Its seal is what it was: of its content alone, however it is laid out."""
    (tmp_path / "batches").mkdir()
    file = tmp_path / "batches" / "00000000000000aa.json"
    file.write_text(SEALED % "ffffffff")
    with pytest.raises(BatchFileError) as raised:
        Batches(tmp_path).all()
    assert str(raised.value) == (
        "batches/00000000000000aa.json is damaged and has no good copy, so that nobody knows what "
        "is asked already; restore it, or delete it if what it asked may be asked and paid for "
        "again"
    )
    file.write_text(SEALED % "1500abe3")
    assert [each.key for each in Batches(tmp_path).all()] == ["00000000000000aa"]


def test_batches_come_oldest_first(tmp_path: Path) -> None:
    """By time, then by key, whatever their files are called."""
    kept = Batches(tmp_path)
    for key, hour in (("a", 3), ("c", 1), ("b", 1)):
        kept.write(batch("void", key=key * 16, intended_at=f"2026-11-20T0{hour}:00:00Z"))
    assert [each.key[0] for each in kept.all()] == ["b", "c", "a"]


def test_a_batch_is_on_disk_before_it_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file, its folder, and the first time the folder's own entry."""
    synced: list[str] = []
    real = os.fsync

    def fsync(handle: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{handle}").readlink()).removeprefix(f"{tmp_path}"))
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    kept = Batches(tmp_path)
    kept.write(batch("intended"))
    first = [path for path in synced if ".last-good" not in path]
    assert first[0] == ""
    assert first[1].startswith("/batches/")
    assert "/batches" in first[2:]
    synced.clear()
    handles = sum(1 for _ in Path("/proc/self/fd").iterdir())
    kept.write(batch("submitted"))
    kept.write(batch("submitted", done=1))
    assert sum(1 for _ in Path("/proc/self/fd").iterdir()) == handles
    assert "" not in synced
    assert "/batches" in synced
    assert oct((tmp_path / "batches").stat().st_mode)[-3:] == "750"
    assert oct((tmp_path / "batches" / f"{'a' * 16}.json").stat().st_mode)[-3:] == "640"


def test_times_are_in_utc(desk: Desk) -> None:
    """And to the second."""
    desk.submit(desk.calls(1))
    assert only(desk).intended_at == rfc3339(NOW) == "2026-11-20T06:00:00Z"
