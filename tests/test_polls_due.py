"""When a pair is due, and in which order pairs are asked."""

import sys
import threading
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import get_args

import pytest
from builders import answered, append, category, edit, failed, question_of, withhold, write_data
from faults import UnreadableFiles, replace_os

from store.category_history import CLOCK_TOLERANCE
from store.files import Files
from store.history import History, Log
from store.polls.clocks import Clock
from store.polls.due import (
    AT_ONCE,
    Pair,
    PollingReader,
    PollingState,
    due_at,
    lacking,
    series_length,
)
from store.rankings.certainty import Certainty, Level
from store.rankings.poll_states import CategoryStates, PairState, poll_states
from store.records import Assistant, FailureKind, Site

T = datetime(2026, 11, 2, 6, tzinfo=UTC)


def rounds_of(every_days: int, samples: int = 1, at_first: int = 1) -> Site:
    """A site.json that says so of rounds."""
    return Site(
        version=1, name="x", poll_every_days=every_days, samples_per_round=samples,
        samples_at_first=at_first,
    )  # fmt: skip


WEEKLY = rounds_of(7)


def at(**offset: float) -> str:
    """A time after T, as history writes it."""
    return (T + timedelta(**offset)).strftime("%Y-%m-%dT%H:%M:%SZ")


def due(*kinds: str | None, every_days: int = 7) -> timedelta | None:
    """How long after the last of these polls (``None``: answered) the pair is due."""
    polls = [
        answered("A", ["X"], at(hours=n)) if kind is None else failed("A", kind, at(hours=n))
        for n, kind in enumerate(kinds)
    ]
    time = due_at(rounds_of(every_days), poll_states(polls).get("A"))
    return None if time == AT_ONCE else time - T - timedelta(hours=len(kinds) - 1)


def test_an_answer_holds_for_the_interval_and_what_we_broke_off_not_at_all() -> None:
    """After a success the regular interval counts, whatever failed before."""
    assert due() is None
    assert due(None, "interrupted") is None
    assert due("timeout", "timeout", None) == timedelta(days=7)
    assert due(None, every_days=3) == timedelta(days=3)


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


# A history as a table reads it: a letter for each poll and the hours between them. "v" and "w" are
# answers of two served models, "t" a timeout, "r" a refusal, "i" an interrupted poll.
MADE = {"t": "timeout", "r": "refusal", "i": "interrupted"}
HOUR, DAY = 1, 24


def state_after(*steps: str | int) -> PairState:
    """Where a pair stands after such a history, whose last poll is at ``T``."""
    hours = sum(step for step in steps if isinstance(step, int))
    polls = []
    for step in steps:
        if isinstance(step, int):
            hours -= step
        elif step in MADE:
            polls.append(failed("A", MADE[step], at(hours=-hours)))
        else:
            polls.append(answered("A", ["X"], at(hours=-hours), served_model=step))
    return poll_states(polls)["A"]


NOW, LATER, WEEK = -CLOCK_TOLERANCE, timedelta(hours=6), timedelta(days=7)
ONE, THREE, FIRST = rounds_of(7), rounds_of(7, samples=3), rounds_of(7, at_first=3)


@pytest.mark.parametrize(
    ("rounds", "steps", "wait", "taken", "left"),
    [
        (ONE, ("v",), WEEK, 1, 0),
        (THREE, ("v",), NOW, 1, 2),
        (THREE, ("v", HOUR, "v"), NOW, 2, 1),
        (THREE, ("v", HOUR, "v", HOUR, "v"), WEEK, 3, 0),
        # answers that lie a week apart are of two rounds, however much the first one lacked
        (THREE, ("v", HOUR, "v", 7 * DAY, "v"), NOW, 1, 2),
        (THREE, ("v", 6 * DAY, "v", 6 * DAY, "v"), WEEK, 3, 0),
        # a failure waits as ever, and one of no use ends the round
        (THREE, ("v", HOUR, "t"), LATER, 1, 2),
        (THREE, ("v", HOUR, "t", LATER // timedelta(hours=1), "v"), NOW, 2, 1),
        (THREE, ("v", HOUR, "r"), WEEK, 1, 2),
        (THREE, ("v", HOUR, "r", 7 * DAY, "v"), NOW, 1, 2),
        # at first three, then one
        (FIRST, ("v",), NOW, 1, 2),
        (FIRST, ("v", HOUR, "v", HOUR, "v"), WEEK, 3, 0),
        (FIRST, ("v", HOUR, "v", HOUR, "v", 7 * DAY, "v"), WEEK, 1, 0),
        (FIRST, ("v", 7 * DAY, "v"), NOW, 1, 1),
        (FIRST, ("v", 7 * DAY, "v", HOUR, "v"), WEEK, 2, 0),
        # three again once the served model is another one
        (FIRST, ("v", HOUR, "v", HOUR, "v", 7 * DAY, "w"), NOW, 1, 2),
        (FIRST, ("v", HOUR, "v", HOUR, "v", 7 * DAY, "w", HOUR, "w"), NOW, 2, 1),
        (FIRST, ("v", HOUR, "v", HOUR, "v", 7 * DAY, "w", HOUR, "w", HOUR, "w"), WEEK, 3, 0),
        # a provider that serves now this, now that is not asked for ever
        (FIRST, ("v", HOUR, "w", HOUR, "v"), WEEK, 3, 0),
        (THREE, ("v", HOUR, "w", HOUR, "v"), WEEK, 3, 0),
    ],
)
def test_a_round_takes_so_many_answers(
    rounds: Site, steps: tuple[str | int, ...], wait: timedelta, taken: int, left: int
) -> None:
    """A pair is due again at once until its round is complete, then after the interval."""
    state = state_after(*steps)
    assert due_at(rounds, state) - T == wait
    assert (series_length(rounds, state), max(lacking(rounds, state), 0)) == (taken, left)


def test_an_interrupted_repeat_is_due_at_once() -> None:
    """And the answers before it are not asked for again."""
    state = state_after("v", HOUR, "v", HOUR, "i")
    assert due_at(THREE, state) == AT_ONCE
    assert lacking(THREE, state, T) == 1


def test_a_round_that_is_over_is_not_filled_up() -> None:
    """What is due after the interval is a round of its own."""
    state = state_after("v", HOUR, "v")
    assert lacking(THREE, state, T + WEEK - timedelta(seconds=1)) == 1
    assert lacking(THREE, state, T + WEEK) == 3
    assert lacking(FIRST, state_after("v", HOUR, "v", HOUR, "v"), T + WEEK) == 1
    assert (lacking(FIRST, None, T), series_length(FIRST, None, T)) == (3, 0)


# ---------------------------------------------------------------- what is due


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


def reader_of(data: Path, now: datetime = T) -> PollingReader:
    """The reader of a data directory at a time."""
    return PollingReader(History(data / "history"), Clock(lambda: now))


def state_in(data: Path, now: datetime = T) -> PollingState:
    """What is due by the files."""
    return reader_of(data, now).read(Files(data).scan())


def slugs(pairs: list[Pair]) -> list[str]:
    """The slugs of pairs, in order."""
    return [pair.slug for pair in pairs]


def test_due_pairs_come_longest_waiting_first(data: Path) -> None:
    """Never polled first, then the oldest; equals by slug; what is not due stays out."""
    stands = state_in(data)
    pairs = [pair(slug) for slug in ("twin", "new", "old", "never")]
    assert slugs(stands.due(pairs, WEEKLY, T)) == ["never", "old", "twin"]
    assert slugs(stands.due(pairs, WEEKLY, T + timedelta(days=6))) == [
        "never",
        "old",
        "twin",
        "new",
    ]
    assert slugs(stands.longest_waiting_first(pairs)) == ["never", "twin", "old", "new"]
    just_before = T + timedelta(days=6, seconds=-1)
    assert "new" not in slugs(stands.due(pairs, WEEKLY, just_before))


def test_a_round_is_counted_with_the_answers_it_lacks(data: Path) -> None:
    """So that its cost and its length are known before."""
    append(data, [answered("A", ["X"], at(), slug="old")])
    stands, pairs = state_in(data), [pair(slug) for slug in ("new", "old", "twin", "never")]
    due = stands.due(pairs, THREE, T)
    assert slugs(due) == ["never", "twin", "new", "old"]
    rest = Counter(slugs(stands.rest_of_series(due, THREE, T)))
    assert rest == {"never": 3, "twin": 3, "new": 2, "old": 2}


def test_only_what_changed_is_read(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What did not change is not read again; what another process appended is."""
    reader, catalogue = reader_of(data), Files(data).scan()
    reader.read(catalogue)
    read: list[str] = []
    original = reader.history.read

    def reading(slug: str) -> Log:
        read.append(slug)
        return original(slug)

    monkeypatch.setattr(reader.history, "read", reading)
    reader.read(catalogue)
    assert read == ["never"], "no file can be compared with none"
    append(data, [answered("A", ["X"], at(), slug="old")])
    stands = reader.read(catalogue)
    assert sorted(read) == ["never", "never", "old"]
    assert stands.states["old"].ever["A"].polled_at == at()


def test_what_cannot_be_read_is_not_due(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody knows what was asked nothing is paid for again; it is read when it can be."""
    reader, catalogue = reader_of(data), Files(data).scan()
    reader.read(catalogue)
    append(data, [answered("A", ["X"], at(), slug="old")])
    with monkeypatch.context() as patched:
        replace_os(patched, UnreadableFiles("old.jsonl"))
        for stands in (state_in(data), reader.read(catalogue)):
            sentences = [str(error) for error in stands.unread]
            assert sentences == ["history/old.jsonl:1:1: cannot be read: Input/output error"]
            assert stands.due([pair("old")], WEEKLY, T + timedelta(days=30)) == []
    for stands in (state_in(data), reader.read(catalogue)):
        assert stands.unread == []
        assert stands.due([pair("old")], WEEKLY, T) == []
        assert slugs(stands.due([pair("old")], WEEKLY, T + timedelta(days=7))) == ["old"]


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
    state = state_in(data).states["new"].current["A"]
    assert (state.polled_at, state.failed_at) == (at(), ())


def test_a_new_question_is_due_at_once(data: Path) -> None:
    """Polls of another wording hold nobody up, but money spent on them is spent."""
    pairs = [pair("new")]
    assert state_in(data).due(pairs, WEEKLY, T) == []
    path = data / "categories" / "new.json"
    edit(path, question="Which is best?")
    assert state_in(data).due(pairs, WEEKLY, T) == pairs
    assert [state.failure for state in state_in(data).of_assistant("B")] == ["auth"]
    tried = failed("A", "timeout", at(hours=-1), slug="new", question="Which is best?")
    append(data, [tried])
    assert state_in(data).due(pairs, WEEKLY, T) == []
    assert state_in(data).due(pairs, WEEKLY, T + timedelta(hours=5)) == pairs
    edit(path, question="So?", former_questions=[question_of("new")])
    assert state_in(data).due(pairs, WEEKLY, T) == []


def test_where_a_poll_is_yet_to_come_nothing_is_asked(data: Path) -> None:
    """Until it is withheld; then it is as if it had never been, whatever the calendar allows."""
    wrong = answered("B", ["X"], "9000-12-31T23:59:59Z", slug="old")
    append(data, [wrong])
    pairs = [pair("old"), pair("old", "B")]
    stands = state_in(data)
    [error] = stands.unread
    assert str(error).startswith("history/old.jsonl:2:1: a poll of 9000-12-31T23:59:59Z, which is")
    assert stands.due(pairs, WEEKLY, T) == []
    withhold(data, wrong.id)
    assert slugs(state_in(data).due(pairs, WEEKLY, T)) == ["old", "old"]
    assert due_at(rounds_of(3650), poll_states([wrong])["B"]).year == 9010


def test_a_withheld_poll_was_asked_all_the_same(data: Path) -> None:
    """Taking an answer out of sight does not pay for another one."""
    [stored, _] = History(data / "history").read("new").polls
    withhold(data, stored.poll.id)
    assert state_in(data).due([pair("new")], WEEKLY, T) == []


def test_damage_holds_nobody_up(data: Path) -> None:
    """A copied line is no poll, so what it repeats decides."""
    path = data / "history" / "new.jsonl"
    path.write_bytes(path.read_bytes() + (data / "history" / "old.jsonl").read_bytes())
    assert slugs(state_in(data).due([pair("new")], WEEKLY, T + timedelta(days=6))) == ["new"]


def test_a_renamed_assistant_is_not_asked_again(data: Path) -> None:
    """Its polls under a former name are its own."""
    models = [{"name": "Z", "api": "sample", "former_names": ["A"]}]
    edit(data / "models.json", models=models)
    assert state_in(data).due([pair("new", "Z")], WEEKLY, T) == []
    assert slugs(state_in(data).due([pair("old", "Z")], WEEKLY, T)) == ["old"]


# ---------------------------------------------------------------- what is not clear


def certainty(level: Level, **runs: int) -> Certainty:
    """A certainty of this level, where each assistant answered on so many days."""
    answers = sum(runs.values())
    return Certainty(level, answers, runs, "", "", {}, (), (), began_anew=False, ahead_of_first=())


CERTAINTIES = {
    "p": certainty("clear", A=1, B=1),
    "q": certainty("unmeasured", A=1),
    "r": certainty("open", A=5, B=4),
    "s": certainty("contradicted", A=4, B=4),
}
PAIRS = [pair(slug, model) for slug in CERTAINTIES for model in "AB"]


@pytest.mark.parametrize(
    ("most", "day", "asked"),
    [(9, 21, "rA rB sA sB qA qB"), (5, 21, "rB sA sB qA qB"), (1, 21, "qB"), (9, 20, "")],
)
def test_open_categories_are_asked_first_and_clear_ones_never(
    most: int, day: int, asked: str
) -> None:
    """Nobody who answered on so many days already, and nobody twice on one day, the 20th."""
    polls = [answered(model, ["X"], "2026-11-20T06:00:00Z") for model in "AB"]
    stands = PollingState(dict.fromkeys(CERTAINTIES, CategoryStates.of(polls, category())))
    pairs = stands.unclear(PAIRS, most, CERTAINTIES, f"2026-11-{day}")
    assert " ".join(f"{pair.slug}{pair.assistant.name}" for pair in pairs) == asked


def test_a_days_cost_is_summed_while_another_thread_looks(tmp_path: Path) -> None:
    """A server's assistants share one reader, and each looks at the first time it is its turn."""
    titles = {f"c-{number:03}": {"title": f"Best thing {number}"} for number in range(200)}
    data = write_data(tmp_path / "data", categories=titles)
    catalogue, before = Files(data).scan(), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(10):
            reader = reader_of(data)
            look = threading.Thread(target=reader.read, args=[catalogue])
            look.start()
            while look.is_alive():
                assert reader.usd_on("2026-11-02") == {}
    finally:
        sys.setswitchinterval(before)
