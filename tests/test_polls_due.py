"""When a pair is due, and in which order pairs are asked."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, get_args

import msgspec
import pytest
from builders import answered, append, category, failed, question_of, write_data, write_json
from faults import UnreadableFiles

from store import history
from store.files import Files
from store.history import History, Log
from store.polls.due import ALWAYS, RESTS, Agenda, Pair, Standing, due_at, standing
from store.polls.edges import pasts_of
from store.records import Assistant, FailureKind, Poll, Usage
from store.sealing import seal

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

T = datetime(2026, 11, 2, 6, tzinfo=UTC)


def at(**offset: float) -> str:
    """A time after T, as history writes it."""
    return (T + timedelta(**offset)).strftime("%Y-%m-%dT%H:%M:%SZ")


def due(*kinds: str | None, every_days: int = 7) -> timedelta | None:
    """How long after the last of these polls (``None``: answered) the pair is due."""
    polls = [
        answered("A", ["X"], at(hours=n)) if kind is None else failed("A", kind, at(hours=n))
        for n, kind in enumerate(kinds)
    ]
    time = due_at(standing(polls), every_days)
    return None if time == ALWAYS else time - T - timedelta(hours=len(kinds) - 1)


def test_never_polled_is_due_at_once() -> None:
    """A pair without a record waits for nothing."""
    assert due() is None


def test_an_answer_holds_for_the_interval() -> None:
    """After a success the regular interval counts, whatever failed before."""
    assert due(None) == timedelta(days=7)
    assert due("timeout", "timeout", None) == timedelta(days=7)
    assert due(None, every_days=3) == timedelta(days=3)


def test_interrupted_is_due_at_once() -> None:
    """What we broke off ourselves is asked again at once."""
    assert due(None, "interrupted") is None


@pytest.mark.parametrize("kind", get_args(FailureKind))
def test_each_kind_of_failure_has_its_wait(kind: str) -> None:
    """Failures of the line are tried after six hours, answers of no use after the interval."""
    if kind == "interrupted":
        return
    line = {"network", "timeout", "http", "rate_limited", "quota", "auth"}
    assert due(kind) == (timedelta(hours=6) if kind in line else timedelta(days=7))


def test_failures_in_a_row_double_the_wait_up_to_the_interval() -> None:
    """6, 12, 24, 48, 96 hours, then the interval; a success starts anew."""
    hours = [due(*["timeout"] * n) for n in range(1, 9)]
    assert hours == [timedelta(hours=h) for h in (6, 12, 24, 48, 96, 168, 168, 168)]
    assert due("timeout", "timeout", None, "http") == timedelta(hours=6)
    assert due(None, "timeout", "schema", "http") == timedelta(hours=24)
    assert due(*["timeout"] * 40, every_days=3650) == timedelta(days=3650)
    assert due("timeout", every_days=1) == timedelta(hours=6)
    assert due(*["timeout"] * 9, every_days=1) == timedelta(days=1)


def test_a_standing_tells_the_last_poll_and_the_last_success() -> None:
    """What ``--status`` shows follows from a pair's polls alone."""
    paid = Usage(10, 10, 0.25)
    polls = [
        answered("A", ["X"], at(), usage=paid),
        answered("A", ["X"], at(days=1), usage=paid),
        msgspec.structs.replace(
            failed("A", "auth", at(days=1, hours=1)),
            notes=("sent 2 times", f"{RESTS}2026-11-03T13:00:00Z"),
            usage=Usage(1, 1, None),
        ),
    ]
    stands = standing(polls)
    assert stands is not None
    assert msgspec.to_builtins(stands) == {
        "polled_at": at(days=1, hours=1),
        "failure": "auth",
        "error": "It failed: auth.",
        "rests_until": "2026-11-03T13:00:00Z",
        "failed_at": (at(days=1, hours=1),),
        "answered_at": at(days=1),
        "usd": 0.25,
    }
    never = standing([failed("A")])
    assert never is not None
    assert (never.answered_at, never.failures, never.rests_until) == (None, 1, None)


# ------------------------------------------------------------------ the agenda


def pair(slug: str, model: str = "A") -> Pair:
    """A pair of a sample assistant."""
    return Pair(slug, category(), Assistant(name=model, api="sample"))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Three categories: one polled long ago, one lately, one never."""
    titles = {slug: {"title": f"Best {slug}"} for slug in ("old", "new", "never", "twin")}
    polls = [
        answered("A", ["X"], at(days=-20), slug="old"),
        answered("A", ["X"], at(days=-1), slug="new"),
        answered("A", ["X"], at(days=-20), slug="twin"),
        failed("B", "auth", at(days=-1), slug="new"),
    ]
    return write_data(tmp_path / "data", categories=titles, models=("A", "B"), polls=polls)


def agenda_of(data: Path, now: datetime = T) -> Agenda:
    """An agenda that has looked."""
    agenda = Agenda(History(data / "history"))
    agenda.look(pasts_of(Files(data).scan()), now)
    return agenda


def slugs(pairs: list[Pair]) -> list[str]:
    """The slugs of pairs, in order."""
    return [pair.slug for pair in pairs]


def test_due_pairs_come_longest_waiting_first(data: Path) -> None:
    """Never polled first, then the oldest; equals by slug; what is not due stays out."""
    agenda = agenda_of(data)
    pairs = [pair(slug) for slug in ("twin", "new", "old", "never")]
    assert slugs(agenda.due(pairs, 7, T)) == ["never", "old", "twin"]
    assert slugs(agenda.due(pairs, 7, T + timedelta(days=6))) == ["never", "old", "twin", "new"]
    just_before = T + timedelta(days=6, seconds=-1)
    assert "new" not in slugs(agenda.due(pairs, 7, just_before))


def test_all_pairs_come_longest_waiting_first(data: Path) -> None:
    """With ``--all`` what was left out last time comes first, and nothing is left out."""
    pairs = [pair(slug) for slug in ("new", "twin", "old", "never")]
    assert slugs(agenda_of(data).longest_waiting_first(pairs)) == ["never", "twin", "old", "new"]


def test_the_agenda_reads_only_what_changed(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second look opens the one file that grew, and sees the new poll."""
    log = History(data / "history")
    agenda = Agenda(log)
    files = pasts_of(Files(data).scan())
    agenda.look(files, T)
    read: list[str] = []
    original = log.read

    def reading(slug: str) -> Log:
        read.append(slug)
        return original(slug)

    monkeypatch.setattr(log, "read", reading)
    agenda.look(files, T)
    assert read == []
    append(data, [answered("A", ["X"], at(), slug="old")])
    agenda.look(files, T)
    assert read == ["old"]
    stands = agenda.of("old", "A")
    assert stands is not None
    assert stands.polled_at == at()


def test_what_cannot_be_read_is_not_due(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody knows what was asked nothing is paid for again; it is read when it can be."""
    files = pasts_of(Files(data).scan())
    fresh, seasoned = Agenda(History(data / "history")), agenda_of(data)
    append(data, [answered("A", ["X"], at(), slug="old")])
    with monkeypatch.context() as patched:
        patched.setattr(history, "os", UnreadableFiles("old.jsonl"))
        for agenda in (fresh, seasoned):
            said = [str(error) for error in agenda.look(files, T)]
            assert said == ["history/old.jsonl:1:1: cannot be read: Input/output error"]
            assert agenda.due([pair("old")], 7, T + timedelta(days=30)) == []
    for agenda in (fresh, seasoned):
        assert agenda.look(files, T) == []
        assert agenda.due([pair("old")], 7, T) == []
        assert slugs(agenda.due([pair("old")], 7, T + timedelta(days=7))) == ["old"]


def test_former_slugs_count(tmp_path: Path) -> None:
    """What was polled under a former slug is not asked again under the new one."""
    data = write_data(
        tmp_path / "data",
        categories={"new": {"title": "Best new", "former_slugs": ["old"]}},
        polls=[
            answered("A", ["X"], at(hours=-1), slug="old", question=question_of("new")),
            answered("A", ["X"], at(), slug="new"),
        ],
    )
    stands = agenda_of(data).of("new", "A")
    assert stands is not None
    assert (stands.polled_at, stands.failures) == (at(), 0)


def test_a_new_question_is_due_at_once(data: Path) -> None:
    """Polls of another wording hold nobody up, but money spent on them is spent."""
    files = Files(data)
    agenda = agenda_of(data)
    pairs = [pair("new")]
    assert agenda.due(pairs, 7, T) == []
    path = data / "categories" / "new.json"
    asked = json.loads(path.read_text(encoding="utf-8"))
    write_json(path, {**asked, "question": "Which is best?"})
    agenda.look(pasts_of(files.scan()), T)
    assert agenda.due(pairs, 7, T) == pairs
    assert [stands.failure for stands in agenda.of_model("B")] == ["auth"]
    tried = failed("A", "timeout", at(hours=-1), slug="new", question="Which is best?")
    append(data, [tried])
    agenda.look(pasts_of(files.scan()), T)
    assert agenda.due(pairs, 7, T) == []
    assert agenda.due(pairs, 7, T + timedelta(hours=5)) == pairs
    write_json(path, {**asked, "question": "So?", "former_questions": [asked["question"]]})
    agenda.look(pasts_of(files.scan()), T)
    assert agenda.due(pairs, 7, T) == []


def test_where_a_poll_is_yet_to_come_nothing_is_asked(data: Path) -> None:
    """Until it is withheld; then it is as if it had never been, whatever the calendar allows."""
    wrong = answered("B", ["X"], "9000-12-31T23:59:59Z", slug="old")
    append(data, [wrong])
    files = Files(data)
    agenda = Agenda(History(data / "history"))
    [said] = agenda.look(pasts_of(files.scan()), T)
    assert str(said).startswith("history/old.jsonl:2:1: a poll of 9000-12-31T23:59:59Z, which is")
    pairs = [pair("old"), pair("old", "B")]
    assert (agenda.due(pairs, 7, T), agenda.known(pairs)) == ([], [])
    why = {wrong.id: {"reason": "wrong clock", "date": "2026-11-02"}}
    write_json(data / "withheld.json", {"version": 1, "withheld": why})
    assert agenda.look(pasts_of(files.scan()), T) == []
    assert slugs(agenda.due(pairs, 7, T)) == ["old", "old"]
    stands = standing([wrong])
    assert due_at(stands, 3650).year == 9010


def test_a_withheld_poll_was_asked_all_the_same(data: Path) -> None:
    """Taking an answer out of sight does not pay for another one."""
    [stored, _] = History(data / "history").read("new").polls
    why = {stored.poll.id: {"reason": "A slur", "date": "2026-11-02"}}
    write_json(data / "withheld.json", {"version": 1, "withheld": why})
    assert agenda_of(data).due([pair("new")], 7, T) == []


def test_damage_holds_nobody_up(data: Path) -> None:
    """A copied line is no poll, so what it repeats decides."""
    path = data / "history" / "new.jsonl"
    path.write_bytes(path.read_bytes() + (data / "history" / "old.jsonl").read_bytes())
    assert slugs(agenda_of(data).due([pair("new")], 7, T + timedelta(days=6))) == ["new"]


def test_a_renamed_assistant_is_not_asked_again(data: Path) -> None:
    """Its polls under a former name are its own."""
    models = [{"name": "Z", "api": "sample", "former_names": ["A"]}]
    write_json(data / "models.json", {"version": 1, "models": models})
    assert agenda_of(data).due([pair("new", "Z")], 7, T) == []
    assert slugs(agenda_of(data).due([pair("old", "Z")], 7, T)) == ["old"]


def test_money_is_summed_over_one_day(tmp_path: Path) -> None:
    """The day's cost is that of all pairs, on that UTC day only, unknown costs as nothing."""

    def paid(usd: float | None, time: str, **fields: Any) -> Poll:
        poll = answered("A", ["X"], time, usage=Usage(1, 1, usd), **fields)
        return seal(poll, time)[0]

    data = write_data(
        tmp_path / "data",
        categories={slug: {"title": f"Best {slug}"} for slug in ("a", "b")},
        polls=[
            paid(5, "2026-11-01T23:59:59Z", slug="a"),
            paid(1, "2026-11-02T00:00:00Z", slug="a"),
            paid(2, "2026-11-02T23:59:59Z", slug="a"),
            paid(4, "2026-11-02T12:00:00Z", slug="b"),
            paid(None, "2026-11-02T13:00:00Z", slug="b"),
        ],
    )
    agenda = agenda_of(data, T + timedelta(days=1))
    assert agenda.usd_on("2026-11-02") == 7
    assert agenda.usd_on("2026-11-01") == 0


class _Read(dict[str, Standing]):
    """One category's standings; whoever reads them has another thread look meanwhile."""

    meanwhile: Callable[[], object]

    def values(self) -> Any:
        """The standings, after somebody looked."""
        self.meanwhile()
        return super().values()


def test_who_reads_is_not_disturbed_by_who_looks(tmp_path: Path) -> None:
    """A look that finds new categories changes nothing under a reader's hands."""
    slugs = {slug: {"title": f"Best {slug}"} for slug in ("c-0", "c-1")}
    polls = [answered("A", ["X"], at(), slug="c-0"), answered("A", ["X"], slug="c-1")]
    pasts = pasts_of(Files(write_data(tmp_path, categories=slugs, polls=polls)).scan())
    agenda = Agenda(History(tmp_path / "history"))
    agenda.look({"c-0": pasts["c-0"]}, T + timedelta(days=1))
    held = _Read(agenda._ever["c-0"])  # noqa: SLF001 - the race is staged, not waited for
    held.meanwhile = lambda: agenda.look(pasts, T + timedelta(days=1))
    agenda._ever = {"c-0": held}  # noqa: SLF001 - likewise
    assert agenda.usd_on(at()[:10]) == 0
    assert len(agenda.of_model("A")) == 2
