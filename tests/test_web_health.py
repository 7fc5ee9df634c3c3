"""``/healthz``: what an operator needs to know, and nothing that should stay inside."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from broken import write_one_of_each
from builders import answered, app_over, failed, write_data

from store.web import health

if TYPE_CHECKING:
    from pathlib import Path

    from flask import Flask


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
    """Counts, ages, and each assistant's last poll and last answer."""
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
        "categories": 1,
        "ranked": 1,
        "polls": 3,
        "lastPoll": "2026-11-03T06:00:01Z",
        "assistants": [
            {
                "name": "A",
                "lastPoll": "2026-11-03T06:00:00Z",
                "lastAnswer": "2026-11-02T06:00:00Z",
            },
            {"name": "B", "lastPoll": "2026-11-03T06:00:01Z", "lastAnswer": None},
            {"name": "C", "lastPoll": None, "lastAnswer": None},
        ],
        "damage": {"files": 0, "records": 0},
        "problemCount": 0,
        "problems": [],
        "scheduler": None,
    }


def test_problems_and_damage_are_told(directory: Path) -> None:
    """A bad file and a damaged record make it degraded, each with its place."""
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


def test_a_warning_does_not_degrade(directory: Path) -> None:
    """What does no harm is told and is no fault."""
    (directory / "model.json").write_text("{}", encoding="utf-8")
    body = healthz(app_over(directory))
    assert (body["status"], body["problemCount"]) == ("ok", 1)


def test_a_data_directory_that_went_is_told_without_its_path(directory: Path) -> None:
    """The last good state stays served; where the data was is nobody's business."""
    app = app_over(directory)
    before = app.test_client().get("/api/v1/categories.json").data
    directory.rename(directory.with_name("away"))
    app.extensions["store"].reload()
    body = healthz(app)
    assert body["status"] == "degraded"
    assert "cannot be read any more" in body["problems"][0]
    assert str(directory.parent) not in json.dumps(body)
    assert app.test_client().get("/api/v1/categories.json").data == before


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


def test_the_scheduler_speaks_for_itself(directory: Path) -> None:
    """Where a scheduler runs, its own word is in the answer."""
    app = app_over(directory)
    app.extensions["scheduler"] = lambda: {"alive": True}
    assert healthz(app)["scheduler"] == {"alive": True}


def test_no_file_can_break_the_answer(directory: Path) -> None:
    """Half characters and line ends in keys and file names are told like anything else."""
    text = '{"version": 1, "\\ud83d\\n": 1}'
    (directory / "categories" / "vpn.json").write_text(text, encoding="utf-8")
    (directory / "categories" / os.fsdecode(b"\xff\n.json")).write_text(text, encoding="utf-8")
    body = healthz(app_over(directory))
    assert body["status"] == "degraded"
    assert all(line.isprintable() for line in body["problems"])
