"""Runs over many pairs: each asked once, recorded once, and paused where asking is of no use."""

from __future__ import annotations

import errno
import itertools
import threading
from collections import Counter
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import TYPE_CHECKING, Any

import pytest
from builders import answered, append, category, failed, states_in
from faults import UnreadableFiles, failing_names, replace_os
from processes import until
from replaying import Replaying, answer_text, envelope

from store.history import History, HistoryError
from store.polls import answer_parsing
from store.polls.clocks import Clock
from store.polls.due import Pair, Rounds
from store.polls.leases import Leases
from store.polls.runner import LEFT, NOT_DUE, Dependencies, RunSummary, run
from store.polls.sending import Limits
from store.polls.spending import DailyAccount, RunAccount
from store.rankings.poll_states import PollStates
from store.records import Assistant, Pick, Poll, Usage, Withholding
from store.times import rfc3339

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path


NOW = datetime(2026, 11, 20, 6, tzinfo=UTC)
WHERE = {"slug": "c-00", "question": category().question}


@pytest.fixture(scope="module")
def provider() -> Iterator[Replaying]:
    """A provider on a thread of the test's own process."""
    with Replaying() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield server
        server.gate("end").set()
        server.shutdown()
        thread.join()


class Desk:
    """A data directory, a runner over it, and what came of a run."""

    def __init__(self, directory: Path, server: Replaying) -> None:
        (directory / "history").mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.server = server
        self.history = History(directory / "history")
        self.leases = Leases(directory / ".locks")
        self.stop = threading.Event()
        self.done = 0

    def pairs(self, slugs: int, *models: str, **fields: Any) -> list[Pair]:
        """Pairs of so many categories and these models."""
        base = {"api": "chat", "base_url": f"{self.server.url}/v1", "rpm": 1_000_000}
        prices = {"usd_per_million_input": 2.0, "usd_per_million_output": 10.0}
        return [
            Pair(
                f"c-{n:02}",
                category(),
                Assistant(**{"name": m, "model": m, **base, **prices, **fields}),
            )
            for n in range(slugs)
            for m in models
        ]

    def run(
        self, pairs: list[Pair], *, only_due: bool = False, **deps: Any
    ) -> dict[str, RunSummary]:
        """Run them, at ``NOW`` unless given another clock."""
        clock = deps.get("clock", Clock(lambda: NOW))
        base: dict[str, Any] = {
            "record": self.history.append,
            "check_appendable": self.history.check_appendable,
            "states_of": lambda slug: states_in(self.history, slug, clock.now()),
            "leases": self.leases,
            "secret": {"KEY": "sk-canary"}.get,
            "stop": self.stop,
            "clock": clock,
            "limits": Limits(attempts=1),
        }
        rounds = deps.pop("rounds", Rounds(7) if only_due else None)
        in_order = deps.pop("in_order", False)
        return run(
            pairs, Dependencies(**{**base, **deps}), rounds, done=self._count, in_order=in_order
        )

    def _count(self) -> None:
        self.done += 1

    def recorded(self) -> Counter[tuple[str, str, str | None]]:
        """How often each pair was recorded with which failure."""
        return Counter(
            (stored.poll.slug, stored.poll.model, stored.poll.failure)
            for slug in self.history.signatures()
            for stored in self.history.read(slug).polls
        )


@pytest.fixture
def desk(tmp_path: Path, provider: Replaying) -> Desk:
    """A fresh data directory and a provider that answers well."""
    provider.follow({})
    provider.seen.clear()
    provider.gates.clear()
    return Desk(tmp_path / "data", provider)


def test_every_pair_is_asked_and_recorded_once(desk: Desk) -> None:
    """Three assistants over twelve categories are thirty-six records, each of the right pair."""
    summaries = desk.run(desk.pairs(12, "a", "b", "c"))
    assert set(desk.recorded().values()) == {1}
    assert len(desk.recorded()) == len(desk.server.seen) == desk.done == 36
    assert {name: dict(summary.outcomes) for name, summary in summaries.items()} == {
        name: {"answered": 12} for name in "abc"
    }
    assert summaries["a"].polled == 12
    assert summaries["a"].usd == pytest.approx(12 * 0.0044)
    assert (summaries["a"].paused, summaries["a"].rest) == (None, None)


def test_a_record_has_the_time_of_its_appending(desk: Desk) -> None:
    """``polledAt`` is when the record is written."""
    desk.run(desk.pairs(1, "a"))
    assert desk.history.read("c-00").polls[0].poll.polled_at == "2026-11-20T06:00:00Z"


def test_an_assistant_is_asked_by_as_many_threads_as_it_takes(desk: Desk) -> None:
    """No more than ``concurrency`` requests of one assistant are on their way at once."""
    desk.server.follow({"a": [{"gate": "hold"}]})
    flying: list[int] = []

    def watch() -> None:
        while len(desk.server.seen) < 3:
            threading.Event().wait(0.005)
        threading.Event().wait(0.1)
        flying.append(len(desk.server.seen))
        desk.server.gate("hold").set()

    threading.Thread(target=watch, daemon=True).start()
    desk.run(desk.pairs(9, "a", concurrency=3))
    assert flying == [3]
    assert len(desk.server.seen) == 9


def test_only_what_is_due_is_asked(desk: Desk) -> None:
    """Due-ness is read again under the claim: what another poller did meanwhile is skipped."""
    append(desk.directory, [answered("a", ["X"], "2026-11-19T06:00:00Z", **WHERE)])
    append(desk.directory, [failed("b", "schema", "2026-11-19T06:00:00Z", **WHERE)])
    summaries = desk.run(desk.pairs(2, "a", "b"), only_due=True)
    assert dict(summaries["a"].outcomes) == {"answered": 1, NOT_DUE: 1}
    assert dict(summaries["b"].outcomes) == {"answered": 1, NOT_DUE: 1}
    assert {one["question"] for one in desk.server.seen} == {"What is the best CRM software?"}
    assert summaries["a"].polled == 1


def test_a_pair_that_is_due_exactly_now_is_asked(desk: Desk) -> None:
    """The interval is over when it is over."""
    append(desk.directory, [answered("a", ["X"], "2026-11-13T06:00:00Z", slug="c-00")])
    assert dict(desk.run(desk.pairs(1, "a"), only_due=True)["a"].outcomes) == {"answered": 1}


@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_pair_given_several_times_is_asked_as_often(desk: Desk, concurrency: int) -> None:
    """Each answer is a record with an id of its own, however many threads ask."""
    pairs = desk.pairs(2, "a", "b", concurrency=concurrency) * 3
    summaries = desk.run(pairs)
    assert {name: dict(each.outcomes) for name, each in summaries.items()} == {
        name: {"answered": 6} for name in "ab"
    }
    assert set(desk.recorded().values()) == {3}
    assert len(desk.server.seen) == desk.done == 12
    ids = [s.poll.id for slug in ("c-00", "c-01") for s in desk.history.read(slug).polls]
    assert len(set(ids)) == 12


def test_repeats_come_after_every_first_answer(desk: Desk) -> None:
    """When money or time ends, each category has one answer before any has two."""
    pairs = desk.pairs(4, "a", concurrency=1) * 2
    desk.run(pairs, accounts=[RunAccount(0.065)], in_order=True)  # several threads may overtake
    assert sorted(desk.recorded().values()) == [1, 1, 2, 2]


def test_a_round_is_filled_and_no_more(desk: Desk) -> None:
    """What another poller added meanwhile is not asked again: due-ness is read before each."""
    append(desk.directory, [answered("a", ["X"], "2026-11-20T05:00:00Z", **WHERE)])
    rounds = Rounds(7, samples=3)
    assert desk.run(desk.pairs(1, "a") * 3, rounds=rounds)["a"].outcomes == {
        "answered": 2,
        NOT_DUE: 1,
    }
    assert desk.run(desk.pairs(1, "a") * 3, rounds=rounds)["a"].outcomes == {NOT_DUE: 3}
    assert desk.done == 6


def test_answers_that_are_the_same_fill_a_round_too(desk: Desk) -> None:
    """Though the second of two equal ones bears a time that is yet to come."""
    same = Poll(slug="c-00", model="a", question=category().question, pick="X",
                ranking=(Pick(1, "X", None, None, ()),), latency_ms=1)  # fmt: skip

    def record(polls: Sequence[Poll], now: str) -> Sequence[Poll]:
        return desk.history.append([same for _ in polls], now)

    run = desk.run(desk.pairs(1, "a") * 3, rounds=Rounds(7, samples=3), record=record)
    assert run["a"].outcomes == {"answered": 3}
    times = [stored.poll.polled_at for stored in desk.history.read("c-00").polls]
    assert times == [f"2026-11-20T06:00:0{n}Z" for n in range(3)]


@pytest.mark.parametrize("due", [True, False])
def test_a_failure_ends_a_round_for_now(desk: Desk, *, due: bool) -> None:
    """A due pair waits as after any failure; a pair that was named is asked as often as told."""
    desk.server.follow({"a": [{"picks": ["X"]}, {"text": "no"}, {"picks": ["Y"]}]})
    rounds = Rounds(7, samples=4) if due else None
    summary = desk.run(desk.pairs(1, "a") * 4, rounds=rounds)["a"]
    rest = {LEFT: 2} if due else {}
    assert summary.outcomes == {"answered": 1 if due else 3, "parse": 1, **rest}
    assert desk.done == 4


def test_a_stop_between_repeats_loses_and_doubles_nothing(desk: Desk) -> None:
    """What was answered stays, what was on its way is one record, the next run asks the rest."""
    desk.server.follow({"a": [{"picks": ["X"]}, {"picks": ["Y"]}, {"gate": "never"}]})
    rounds = Rounds(7, samples=4)

    def stop() -> None:
        until(lambda: len(desk.server.seen) == 3)
        desk.stop.set()

    threading.Thread(target=stop, daemon=True).start()
    summary = desk.run(desk.pairs(1, "a") * 4, rounds=rounds)["a"]
    desk.server.gate("never").set()
    assert summary.outcomes == {"answered": 2, "interrupted": 1, LEFT: 1}
    desk.stop.clear()
    desk.server.follow({})
    assert desk.run(desk.pairs(1, "a") * 4, rounds=rounds)["a"].outcomes == {
        "answered": 2,
        NOT_DUE: 2,
    }
    assert desk.recorded() == {("c-00", "a", None): 4, ("c-00", "a", "interrupted"): 1}


def test_two_runs_at_once_fill_a_round_together(desk: Desk) -> None:
    """Whatever each of two pollers asks, a round has as many answers as it takes."""
    other = Desk(desk.directory, desk.server)
    pairs = desk.pairs(6, "a", "b") * 3
    threads = [
        threading.Thread(target=lambda d=d: d.run(list(pairs), rounds=Rounds(7, samples=3)))
        for d in (desk, other)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    desk.run(pairs, rounds=Rounds(7, samples=3))
    assert set(desk.recorded().values()) == {3}
    assert len(desk.server.seen) == 36


def test_a_pause_leaves_the_repeats_too(desk: Desk) -> None:
    """After a bad key nothing is asked again, and all that was meant to be is counted."""
    desk.server.follow({"a": [{"picks": ["X"]}, {"status": 401}]})
    summary = desk.run(desk.pairs(2, "a", concurrency=1) * 3)["a"]
    assert summary.outcomes == {"answered": 1, "auth": 1, LEFT: 4}
    assert desk.done == 6


def test_a_leased_pair_is_left_to_its_holder(desk: Desk) -> None:
    """Nobody asks what another poller is asking now; when it is free again, it may be asked."""
    with desk.leases.lease("c-00", "a") as first, desk.leases.lease("c-00", "b") as other:
        assert (first, other) == (True, True)
        with desk.leases.lease("c-00", "a") as second:
            assert second is False
        assert (desk.leases.held("a"), desk.leases.held("c")) == (1, 0)
        assert dict(desk.run(desk.pairs(1, "a"))["a"].outcomes) == {NOT_DUE: 1}
    assert desk.leases.held("a") == 0
    assert dict(desk.run(desk.pairs(1, "a"))["a"].outcomes) == {"answered": 1}


def test_two_runs_at_once_never_ask_twice(desk: Desk) -> None:
    """Whoever comes second finds the pair claimed or done."""
    other = Desk(desk.directory, desk.server)
    pairs = desk.pairs(15, "a", "b")
    summaries: list[dict[str, RunSummary]] = []
    threads = [
        threading.Thread(target=lambda d=d: summaries.append(d.run(list(pairs), only_due=True)))
        for d in (desk, other)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(desk.server.seen) == 30
    assert set(desk.recorded().values()) == {1}
    assert sum(t.outcomes["answered"] for both in summaries for t in both.values()) == 30


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        ({"status": 401}, "auth"),
        ({"status": 402}, "quota"),
        ({"status": 404}, "http"),
        ({"status": 429, "headers": {"retry-after": "900"}}, "rate_limited"),
    ],
)
def test_what_every_poll_would_meet_pauses_its_assistant(
    desk: Desk, step: dict[str, Any], kind: str
) -> None:
    """One failure and one clear line, not a thousand; the others go on; the rest waits."""
    desk.server.follow({"a": [step]})
    summaries = desk.run(desk.pairs(6, "a", "b", concurrency=1))
    assert dict(summaries["a"].outcomes) == {kind: 1, LEFT: 5}
    assert dict(summaries["b"].outcomes) == {"answered": 6}
    assert summaries["a"].polled == 1
    status = step["status"]
    assert summaries["a"].paused == f"The provider answered HTTP {status}"
    assert summaries["a"].rest == (900 if kind == "rate_limited" else 21_600)
    until = "2026-11-20T06:15:00Z" if kind == "rate_limited" else "2026-11-20T12:00:00Z"
    cooldowns = [
        stored.poll.cooldown_until
        for slug in desk.history.signatures()
        for stored in desk.history.read(slug).polls
        if stored.poll.model == "a"
    ]
    assert cooldowns == [until]


def test_a_spent_cap_leaves_the_rest(desk: Desk) -> None:
    """What the cap does not cover is left for next time, and the summary says which cap."""
    accounts = [RunAccount(0.045)]
    summaries = desk.run(desk.pairs(5, "a", concurrency=1), accounts=accounts)
    assert dict(summaries["a"].outcomes) == {"answered": 1, LEFT: 4}
    assert summaries["a"].paused == "--max-usd 0.045 leaves too little for another poll"
    assert summaries["a"].rest is None


def test_a_cap_is_used_up_however_many_are_on_their_way(desk: Desk) -> None:
    """0.0407 USD are reserved for a poll of 0.0044: fourteen fit, and not only the first two."""
    summaries = desk.run(desk.pairs(20, "a", "b", concurrency=4), accounts=[RunAccount(0.1)])
    assert summaries["a"].outcomes + summaries["b"].outcomes == {"answered": 14, LEFT: 26}
    assert {summary.paused for summary in summaries.values()} == {
        "--max-usd 0.1 leaves too little for another poll"
    }


def test_what_waits_for_money_when_it_is_stopped_is_not_sent(desk: Desk) -> None:
    """The polls under way are recorded as interrupted, those that waited are left."""
    desk.server.follow({"a": [{"gate": "never"}]})

    def stop() -> None:
        until(lambda: len(desk.server.seen) == 2)
        desk.stop.set()

    threading.Thread(target=stop, daemon=True).start()
    summary = desk.run(desk.pairs(5, "a", concurrency=4), accounts=[RunAccount(0.1)])["a"]
    desk.server.gate("never").set()
    assert summary.outcomes == {"interrupted": 2, LEFT: 3}
    assert len(desk.server.seen) == 2


def test_what_cannot_be_read_is_not_asked(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A category whose history cannot be read may have been asked: nothing is sent for it."""
    append(desk.directory, [answered("a", ["X"], rfc3339(NOW), slug="c-00")])
    replace_os(monkeypatch, UnreadableFiles("c-00.jsonl"))
    summaries = desk.run(desk.pairs(2, "a"), only_due=True)
    assert dict(summaries["a"].outcomes) == {LEFT: 1, "answered": 1}
    assert len(desk.server.seen) == 1
    assert desk.recorded()["c-01", "a", None] == 1


@pytest.mark.parametrize("steps", [[{"picks": ["X"]}], [{"status": 503}, {"picks": ["X"]}]])
def test_a_sum_that_cannot_be_written_loses_no_answer(
    desk: Desk, steps: list[dict[str, Any]]
) -> None:
    """Whenever the day's sum cannot be put in place: what is sent is recorded, else it is said."""
    for nth in itertools.count(1):
        desk.server.follow({"a": steps})
        desk.server.seen.clear()
        account = DailyAccount(9, desk.directory, lambda: "2026-11-20", lambda _: 0.0)
        deps: dict[str, Any] = {"accounts": [account], "limits": Limits(attempts=2)}
        before = sum(desk.recorded().values())
        with failing_names(nth, errno.EIO) as calls:
            summary = desk.run(desk.pairs(1, "a"), **deps)["a"]
        recorded = sum(desk.recorded().values()) - before
        assert recorded == bool(desk.server.seen), calls
        if not recorded:
            assert desk.server.seen == []
            assert summary.paused == "daily_usd 9 of site.json cannot be kept: Input/output error"
        if calls.total() < nth:
            break
    assert nth > len(steps)


def test_a_stop_leaves_what_was_not_begun(desk: Desk) -> None:
    """Requests on their way end as ``interrupted`` records, the rest is not asked at all."""
    desk.server.follow({"a": [{"gate": "never"}]})

    def watch() -> None:
        while len(desk.server.seen) < 2:
            threading.Event().wait(0.005)
        desk.stop.set()

    threading.Thread(target=watch, daemon=True).start()
    summaries = desk.run(desk.pairs(7, "a", concurrency=2))
    assert dict(summaries["a"].outcomes) == {"interrupted": 2, LEFT: 5}
    assert sum(desk.recorded().values()) == 2
    desk.server.gate("never").set()


def test_what_cannot_be_recorded_is_not_asked_any_more(desk: Desk) -> None:
    """After the first record that fails nothing more is paid for, and the fault surfaces."""

    def record(*_: Any) -> Any:
        raise HistoryError("c-00.jsonl cannot be written: No space left on device")

    with pytest.raises(HistoryError):
        desk.run(desk.pairs(20, "a", "b", concurrency=1), record=record)
    assert len(desk.server.seen) <= 4, "per assistant one recorded and one on its way"
    assert desk.leases.held("a") == 0


@pytest.mark.parametrize("fault", [RecursionError, ZeroDivisionError, MemoryError])
def test_a_fault_of_the_program_is_one_failed_poll(
    desk: Desk,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    fault: type[Exception],
) -> None:
    """What nobody thought of ends no run: it is one record, one trace without the key, and paid."""

    def break_down(text: str) -> None:
        if "Odd" in text:
            raise fault("sk-canary and more")

    monkeypatch.setattr(
        "store.polls.asking.answer_parsing.read", _before(break_down, answer_parsing.read)
    )
    desk.server.follow({"a": [{"picks": ["Odd"]}, {"picks": ["Alpha"]}]})
    account = RunAccount(1)
    summaries = desk.run(desk.pairs(4, "a", "b", concurrency=1, key_env="KEY"), accounts=[account])
    assert dict(summaries["a"].outcomes) == {"http": 1, "answered": 3}
    assert dict(summaries["b"].outcomes) == {"answered": 4}
    assert len(desk.server.seen) == 8
    assert sum(desk.recorded().values()) == 8
    assert account.spent == 8 * 4400, "the provider had counted before"
    assert "sk-canary" not in caplog.text
    assert caplog.text.count("Traceback") == 1
    assert summaries["a"].reasons == {
        "http": "The provider's reply could not be worked on; the log says why."
    }


def _before(first: Callable[[str], None], then: Callable[[str], Any]) -> Callable[[str], Any]:
    def both(text: str) -> Any:
        first(text)
        return then(text)

    return both


def dated(when: datetime, step: dict[str, Any]) -> dict[str, Any]:
    """A step of the provider whose reply has a date."""
    body = envelope("chat", answer_text(["Alpha"]), "a")
    return {"body": body, "headers": {"Date": format_datetime(when, usegmt=True)}, **step}


def test_a_clock_that_does_not_fit_the_providers_is_found_out_once(desk: Desk) -> None:
    """The reply is a failure at the provider's time; after it nothing is sent, to anybody."""
    theirs = NOW + timedelta(minutes=11)
    desk.server.follow({"a": [dated(theirs, {})], "b": [dated(theirs, {})]})
    clock = Clock(lambda: NOW)
    summary = desk.run(desk.pairs(5, "a", concurrency=1), clock=clock)["a"]
    assert dict(summary.outcomes) == {"http": 1, LEFT: 4}
    assert summary.paused is not None
    assert summary.paused.endswith("Nothing is sent until they agree.")
    [slug] = desk.history.signatures()
    [stored] = desk.history.read(slug).polls
    assert (stored.poll.polled_at, stored.poll.usage) == (rfc3339(theirs), Usage(700, 300, 0.0044))
    assert desk.run(desk.pairs(5, "b"), clock=clock)["b"].outcomes == {LEFT: 5}
    assert len(desk.server.seen) == 1
    desk.server.follow({"b": [dated(theirs, {})]})
    right = Clock(lambda: theirs)
    assert desk.run(desk.pairs(1, "b"), clock=right)["b"].outcomes == {"answered": 1}


def test_a_date_far_beyond_keeps_no_category_from_being_asked(desk: Desk) -> None:
    """A day ahead may be our clock; a century is the provider's, and is in no record."""
    for slug, theirs in (("c-00", NOW + timedelta(days=1)), ("c-01", NOW + timedelta(days=36500))):
        desk.server.follow({"a": [dated(theirs, {})]})
        [pair] = [pair for pair in desk.pairs(2, "a") if pair.slug == slug]
        assert desk.run([pair])["a"].outcomes == {"http": 1}
    times = [
        stored.poll.polled_at for s in ("c-00", "c-01") for stored in desk.history.read(s).polls
    ]
    assert times == [rfc3339(NOW + timedelta(days=1)), rfc3339(NOW)]


def test_the_providers_time_never_goes_back_in_a_file(desk: Desk) -> None:
    """A misfit in the past is recorded no earlier than the record before it."""
    before = rfc3339(NOW - timedelta(hours=1))
    append(desk.directory, [answered("b", ["X"], before, slug="c-00")])
    desk.server.follow({"a": [dated(NOW - timedelta(hours=2), {})]})
    desk.run(desk.pairs(1, "a"))
    assert [s.poll.polled_at for s in desk.history.read("c-00").polls] == [before, before]


def test_a_misfit_is_not_asked_again_at_once(desk: Desk) -> None:
    """Neither a status that may pass nor the provider's own word makes it a retry."""
    step = dated(NOW + timedelta(days=1), {"status": 503})
    step["headers"]["x-should-retry"] = "true"
    desk.server.follow({"a": [step]})
    summary = desk.run(desk.pairs(1, "a"), limits=Limits(attempts=4))["a"]
    assert dict(summary.outcomes) == {"http": 1}
    assert len(desk.server.seen) == 1


def test_nothing_is_asked_behind_a_categorys_newest_record(desk: Desk) -> None:
    """Its own category is left, the others are asked; a withheld record moves nothing."""
    ahead = answered("b", ["X"], rfc3339(NOW + timedelta(minutes=11)), slug="c-00")
    append(desk.directory, [ahead])
    for only_due in (True, False):
        summary = desk.run(desk.pairs(2, "a", concurrency=1), only_due=only_due)["a"]
        assert summary.outcomes[LEFT] == 1
        assert summary.paused is None
        assert "history/c-00.jsonl:1:1: a poll of 2026-11-20T06:11" in summary.reasons[LEFT]
    assert {one["question"] for one in desk.server.seen} == {"What is the best CRM software?"}
    assert {slug for slug, model, _ in desk.recorded() if model == "a"} == {"c-01"}
    gone = {ahead.id: Withholding(reason="Wrong clock.", date=NOW.date())}
    known = states_in(desk.history, "c-00", NOW, gone)
    summary = desk.run(desk.pairs(1, "a"), states_of=lambda _: known)["a"]
    assert dict(summary.outcomes) == {"answered": 1}


def test_a_clock_that_was_never_set_asks_nobody(desk: Desk) -> None:
    """Neither a provider nor a sample assistant, whose records would have that time."""
    never = Clock(lambda: datetime(1970, 1, 2, tzinfo=UTC))
    sample = [Pair("c-00", category(), Assistant(name="s", api="sample"))]
    summaries = desk.run([*desk.pairs(2, "a"), *sample], clock=never)
    assert {name: dict(t.outcomes) for name, t in summaries.items()} == {
        "a": {LEFT: 2},
        "s": {LEFT: 1},
    }
    assert desk.server.seen == []
    assert not desk.recorded()


def test_in_order_is_one_after_the_other(desk: Desk) -> None:
    """A run in order asks each pair in its place, whoever is asked."""
    pairs = desk.pairs(4, "a", "b")
    deps = Dependencies(
        record=desk.history.append,
        check_appendable=desk.history.check_appendable,
        states_of=lambda _: PollStates(),
        leases=desk.leases,
        secret=lambda _: None,
        stop=desk.stop,
        clock=Clock(lambda: NOW),
    )
    run(pairs, deps, in_order=True)
    assert [one["model"] for one in desk.server.seen] == ["a", "b"] * 4
