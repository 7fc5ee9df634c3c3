"""``/healthz``: what an operator needs to know, and nothing that should stay inside."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest
from broken import write_one_of_each
from builders import answered, app_over, failed, write_data
from flask import Flask

from store.rankings.poll_states import ScheduleStatus
from store.records import Poll
from store.web import health


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """One good file of every kind."""
    return write_one_of_each(tmp_path / "data")


def healthz(app: Flask) -> dict[str, Any]:
    """The answer, which is 200 whatever it says."""
    answer = app.test_client().get("/healthz", headers={"Host": "10.0.0.1"})
    assert answer.status_code == 200
    assert answer.headers["Cache-Control"] == "no-store"
    body: dict[str, Any] = answer.get_json()
    return body


def test_all_is_well(tmp_path: Path) -> None:
    """Counts and ages; no money, and nothing of what an assistant said or how it failed."""
    polls = [
        answered("A", ["X"], "2026-11-02T06:00:00Z"),
        failed("A", "timeout", "2026-11-03T06:00:00Z"),
        failed("B", "auth", "2026-11-03T06:00:01Z"),
    ]
    app = app_over(write_data(tmp_path / "data", models=["A", "B", "C"], polls=polls))
    body = healthz(app)
    assert body.pop("snapshotAge") < 60
    assert body.pop("lookedAgo") < 60
    assert body == {
        "status": "ok",
        "reasons": [],
        "categories": 1,
        "ranked": 1,
        "polls": 3,
        "lastPoll": "2026-11-03T06:00:01Z",
        "exportAge": None,
        "damage": {"files": 0, "records": 0},
        "problemCount": 0,
        "problems": [],
        "history": {"lines": 3, "closed": 0, "root": ANY},
    }


def test_problems_and_damage_are_told(directory: Path) -> None:
    """A bad file and a damaged record make it degraded, each with its place; no warning does."""
    (directory / "model.json").write_text("{}", encoding="utf-8")
    warned = healthz(app_over(directory))
    assert (warned["status"], warned["problemCount"]) == ("ok", 1)
    (directory / "model.json").unlink()
    (directory / "categories" / "vpn.json").write_text("{", encoding="utf-8")
    path = directory / "history" / "crm-software.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"pick":"Pipe"', b'"pick":"Pope"'))
    body = healthz(app_over(directory))
    assert body["status"] == "degraded"
    assert body["damage"] == {"files": 1, "records": 1}
    assert [line.split(": ")[0] for line in body["problems"]] == [
        "categories/vpn.json:1:2",
        "history/crm-software.jsonl:2:1",
    ]


def test_files_that_nobody_looks_at_degrade(directory: Path) -> None:
    """If the watcher ever ended, what is served could be old, and it is said."""
    store = app_over(directory).extensions["store"]
    assert health.examine(store, store.looked_at + 59, None).status == "ok"
    assert health.examine(store, store.looked_at + 60, None).status == "degraded"


def test_very_many_problems_are_counted_and_the_first_shown(directory: Path) -> None:
    """The answer stays small however much is wrong."""
    for i in range(150):
        (directory / "categories" / f"c{i}.json").write_text("", encoding="utf-8")
    body = healthz(app_over(directory))
    assert (body["problemCount"], len(body["problems"])) == (150, 100)


class State(ScheduleStatus, frozen=True):
    """What a scheduler might say."""

    alive: bool = True
    polling: bool = True
    since: str = "2026-11-01T06:00:00Z"
    reasons: tuple[str, ...] = ()


NOW = datetime(2026, 11, 10, 6, tzinfo=UTC)


def examined(
    directory: Path, now: datetime = NOW, schedule: State | None = None
) -> tuple[str, tuple[str, ...]]:
    """Status and reasons at a time, the files looked at just before."""
    store = app_over(directory).extensions["store"]
    store.looked_at = now.timestamp()
    report = health.examine(store, now.timestamp(), schedule)
    return report.status, report.reasons


def test_the_scheduler_speaks_for_itself(directory: Path) -> None:
    """Where a scheduler runs, its own word is in the answer, and what is wrong with it degrades."""
    app = app_over(directory)
    since = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    app.extensions["scheduler"] = lambda: State(since=since, reasons=("A is paused.",))
    body = healthz(app)
    assert body["status"] == "degraded"
    assert "A is paused." in body["reasons"]


def failures(hour: int) -> list[Poll]:
    """Ten failed polls in a row of one assistant, over two categories."""
    slugs = ("crm", "vpn")
    return [
        failed("A", "http", f"2026-11-09T{hour:02}:00:{n:02}Z", slug=slugs[n % 2])
        for n in range(10)
    ]


@pytest.mark.parametrize(
    ("polls", "reasons"),
    [
        (
            [answered("A", ["X"], "2026-11-09T07:00:00Z", slug="crm"), *failures(8)],
            ("A failed in its last 10 polls, since 2026-11-09T08:00:00Z.",),
        ),
        ([*failures(6), answered("A", ["X"], "2026-11-09T07:00:00Z", slug="crm")], ()),
        ([], ()),
    ],
)
def test_an_assistant_that_no_longer_answers_degrades(
    tmp_path: Path, polls: list[Poll], reasons: tuple[str, ...]
) -> None:
    """Ten failures in a row over all categories, or silence for twice the interval, is said."""
    titles = {slug: {"title": f"Best {slug}"} for slug in ("crm", "vpn")}
    data = write_data(tmp_path / "data", categories=titles, models=("A",), polls=polls)
    assert examined(data, schedule=State()) == ("degraded" if reasons else "ok", reasons)
    assert examined(data)[0] == "ok", "where nothing is polled on schedule nobody is missed"
    if not polls:  # the wait begins when the scheduler did
        later = datetime(2026, 11, 15, 6, 0, 1, tzinfo=UTC)
        assert examined(data, later, State())[1] == ("A has not answered for 14 days.",)


@pytest.mark.parametrize(("sample", "status"), [(False, "degraded"), (True, "ok")])
def test_a_record_from_the_future_is_told(tmp_path: Path, *, sample: bool, status: str) -> None:
    """A wrong clock shows; on a sample, whose times are pretended, it is only worth knowing."""
    late = answered("A", ["X"], "2026-11-10T06:10:01Z")
    old = answered("A", ["X"], "2026-11-02T06:00:00Z", slug="vpn")
    for polls, sentence in (
        ([late, old], "2026-11-10T06:10:01Z, which is yet to come"),
        ([late], "This machine's clock is probably wrong: it says 2026-11"),
    ):
        data = write_data(tmp_path / f"{len(polls)}", polls=polls, sample=sample)
        assert examined(data)[0] == status
        store = app_over(data).extensions["store"]
        for minutes, told in ((0, 1), (1, 0)):
            now = (NOW + timedelta(minutes=minutes)).timestamp()
            problems = health.examine(store, now, None).problems
            assert sum(sentence in problem for problem in problems) == told


def test_a_monitor_may_ask_strictly(directory: Path) -> None:
    """``?strict`` answers 503 with the same body when something needs a person."""
    client = app_over(directory).test_client()
    assert client.get("/healthz?strict").status_code == 200
    (directory / "categories" / "vpn.json").write_text("{", encoding="utf-8")
    client = app_over(directory).test_client()
    answer = client.get("/healthz?strict")
    assert answer.status_code == 503
    [reason] = answer.get_json()["reasons"]
    assert reason.startswith("The data has 1 error: categories/vpn.json:1:2: ")
    assert client.get("/healthz").status_code == 200


def test_alive_and_ready(directory: Path) -> None:
    """A process that answers is alive; it is ready once there is something to serve."""
    app = app_over(directory)
    client = app.test_client()
    for path in ("/livez", "/readyz"):
        answer = client.get(path, headers={"Host": "10.0.0.1"})
        assert (answer.status_code, answer.get_json()) == (200, {"status": "ok"})
        assert answer.headers["Cache-Control"] == "no-store"
    app.extensions["store"].made_at = 0.0
    assert client.get("/livez").status_code == 200
    answer = client.get("/readyz")
    assert (answer.status_code, answer.get_json()) == (503, {"status": "starting"})


def test_no_file_can_break_the_answer(directory: Path) -> None:
    """Half characters and line ends in keys and file names are told like anything else."""
    text = '{"version": 1, "\\ud83d\\n": 1}'
    (directory / "categories" / "vpn.json").write_text(text, encoding="utf-8")
    (directory / "categories" / os.fsdecode(b"\xff\n.json")).write_text(text, encoding="utf-8")
    body = healthz(app_over(directory))
    assert body["status"] == "degraded"
    assert all(line.isprintable() for line in body["problems"])
