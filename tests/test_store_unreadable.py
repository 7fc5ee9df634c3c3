"""A history file that cannot be read just now: its category stays as it was, and comes back."""

import errno
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from builders import (
    answered,
    app_over,
    append,
    bodies,
    close_days,
    command,
    prepared,
    same_as_fresh,
    withhold,
    write_data,
    write_json,
)
from click import ClickException
from faults import UnreadableFiles, replace_os
from flask import Flask

from store.history import History, HistoryError
from store.polls.clocks import Clock
from store.polls.due import PollingReader
from store.store import Store

FILE = "crm-software.jsonl"
BEST = "/api/v1/best/crm-software.json"
WAYS = {
    "too many open files": ("open", errno.EMFILE, "Too many open files"),
    "not for us": ("open", errno.EACCES, "Permission denied"),
    "a bad disk": ("pread", errno.EIO, "Input/output error"),
}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_data(
        tmp_path / "data",
        categories={slug: {"title": f"Best {slug}"} for slug in ("crm-software", "help-desk")},
        polls=[
            answered(model, ["Zoho CRM", "HubSpot"], slug=slug)
            for slug in ("crm-software", "help-desk")
            for model in "AB"
        ],
    )


@pytest.fixture
def app(data: Path) -> Flask:
    """A server over it."""
    return app_over(data)


@pytest.fixture
def store(app: Flask) -> Store:
    """Its store, the files read."""
    held: Store = app.extensions["store"]
    held.reload()
    return held


def poll_elsewhere(data: Path) -> None:
    """Another process appends."""
    append(data, [answered("C", ["Pipedrive"], "2026-11-09T06:00:00Z")])


@pytest.mark.parametrize("way", WAYS)
def test_it_stays_served_and_comes_back(
    data: Path,
    app: Flask,
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    way: str,
) -> None:
    """Every byte stays, the file and the reason are told once, nothing is rebuilt in vain."""
    call, error, reason = WAYS[way]
    before = bodies(store)
    poll_elsewhere(data)
    problem = f"history/{FILE}:1:1: cannot be read: {reason}"
    with monkeypatch.context() as patched, caplog.at_level(logging.WARNING):
        replace_os(patched, UnreadableFiles(FILE, call=call, error=error))
        store.reload()
        held = store.snapshot
        for _ in range(3):
            store.reload()
        assert store.snapshot is held
        assert bodies(store) == before
        health = app.test_client().get("/healthz").get_json()
        assert (health["status"], health["problems"]) == ("degraded", [problem])
        assert [record.getMessage() for record in caplog.records] == [problem]
        check = app.test_cli_runner().invoke(args=["check"])
        assert check.exit_code == 1
        assert problem in check.output
    store.reload()
    assert "C" in app.test_client().get(BEST).get_json()["answers"]
    assert same_as_fresh(store, data)


def test_what_is_withheld_meanwhile_is_not_shown(
    data: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A text that somebody had withheld does not stay for want of a file to read."""
    poll = store.history.read("crm-software").polls[0].poll
    withhold(data, poll.id)
    with monkeypatch.context() as patched:
        replace_os(patched, UnreadableFiles(FILE))
        store.reload()
        assert "best/crm-software.json" not in prepared(store)
    store.reload()
    assert same_as_fresh(store, data)


def test_one_of_two_files_is_enough_to_keep_what_was_shown(
    data: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A renamed category whose old file cannot be read keeps its polls from both."""
    fields: dict[str, Any] = {"title": "Best help", "former_slugs": ["crm-software"]}
    (data / "categories/crm-software.json").unlink()
    write_json(data / "categories/help-desk.json", {"version": 1, "question": "?", **fields})
    store.reload()
    before = bodies(store)
    append(data, [answered("C", ["Pipedrive"], "2026-11-09T06:00:00Z", slug="help-desk")])
    with monkeypatch.context() as patched:
        replace_os(patched, UnreadableFiles(FILE))
        poll_elsewhere(data)
        store.reload()
        assert bodies(store) == before
    store.reload()
    assert same_as_fresh(store, data)


def test_a_history_that_cannot_be_looked_into_stays_served(
    data: Path, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    """A folder that is none, or somebody else's, is named with the reason until it is back."""
    before, folder = bodies(store), data / "history"
    folder.rename(data / "elsewhere")
    folder.touch()
    for _ in range(3):
        store.keep_current()
    assert bodies(store) == before
    (problem,) = store.problems
    reason = "the folder history cannot be looked into: Not a directory"
    assert str(problem) == f"history:1:1: {reason}; what it last held stays served"
    (told,) = caplog.records
    assert (told.getMessage(), told.exc_info) == (str(problem), None)
    folder.unlink()
    (data / "elsewhere").rename(folder)
    store.keep_current()
    assert store.problems == ()


@pytest.mark.parametrize(
    "command",
    [
        ["check"],
        ["poll", "--due"],
        ["poll", "--status"],
        ["names", "queue"],
        ["withhold", "0", "--reason", "x"],
    ],
)
def test_commands_say_that_a_history_cannot_be_looked_into(
    data: Path, app: Flask, command: list[str]
) -> None:
    """Each with one sentence and 1, none with a traceback."""
    (data / "history").rename(data / "elsewhere")
    (data / "history").touch()
    done = app.test_cli_runner().invoke(args=command)
    assert done.exit_code == 1
    assert "the folder history cannot be looked into: Not a directory" in done.output
    assert done.exception is None or isinstance(done.exception, SystemExit)
    with pytest.raises(ClickException, match="cannot be looked into: Not a directory"):
        app_over(data)


def test_lines_of_today_that_vanish_are_missed(app: Flask, store: Store, data: Path) -> None:
    """No ledger has them yet, but this process read them: served on, told, and not asked again."""
    before, client = client_body(app), app.test_client()
    lines = (data / "history" / FILE).read_bytes()
    first, second, _ = lines.split(b"\n")
    for rest in (first + b"\n", second + b"\n" + first + b"\n", None):
        if rest is None:
            (data / "history" / FILE).unlink()
        else:
            (data / "history" / FILE).write_bytes(rest)
        store.reload()
        assert client_body(app) == before
        reasons = client.get("/healthz").get_json()["reasons"]
        assert any("when it was last read it had 2 lines" in reason for reason in reasons)
        reader = PollingReader(store.history, Clock())
        with pytest.raises(HistoryError, match="restart the server to go on without them"):
            reader.states_of("crm-software", store.snapshot.catalogue)
    (data / "history" / FILE).write_bytes(lines)
    store.reload()
    assert client.get("/healthz").get_json()["status"] == "ok"


def test_a_present_verdict_reads_no_history(tmp_path: Path) -> None:
    """Else a ranking whose file shrank would be refused where nobody has asked for it before."""
    polls = [answered("A", ["X"]), answered("B", ["X"], "2026-11-03T06:00:00Z")]
    app = app_over(write_data(tmp_path, models="AB", polls=polls))
    file = tmp_path / "history" / FILE
    file.write_bytes(file.read_bytes().splitlines(keepends=True)[0])
    app.extensions["store"].reload()
    assert app.test_client().get(BEST).status_code == 200


def test_pages_of_a_broken_history_show_what_is_known(app: Flask, store: Store, data: Path) -> None:
    """A ranking without what is new in it, a product without these answers, which it says."""
    poll_elsewhere(data)
    store.reload()
    client = app.test_client()
    assert "What changed since" in client.get("/best/crm-software").text
    (data / "history" / FILE).write_bytes(b"")
    store.reload()
    assert "What changed since" not in client.get("/best/crm-software").text
    told = "Not listed, for their history cannot be read just now: Best crm-software."
    evidence = client.get("/product/hubspot/polls").text
    assert told in evidence
    assert "2 of 4 answers" in evidence
    assert "The newest" not in evidence


def test_a_withheld_poll_of_a_history_that_cannot_be_read_is_not_called_unknown(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody knows which polls it has."""
    withhold(data, History(data / "history").read("crm-software").polls[0].poll.id)
    replace_os(monkeypatch, UnreadableFiles(FILE, call="open", error=errno.EACCES))
    assert {problem.file for problem in Store(data).problems} == {f"history/{FILE}"}


@pytest.mark.parametrize("which", [lambda lines: lines.splitlines()[0], lambda _: b"{"])
def test_a_damaged_line_may_be_taken_away_again(
    app: Flask, store: Store, data: Path, which: Callable[[bytes], bytes]
) -> None:
    """It counted nowhere, so nothing is missed once the file is as it was."""
    path, client = data / "history" / FILE, app.test_client()
    lines = path.read_bytes()
    for body, status in ((lines + which(lines) + b"\n", "degraded"), (lines, "ok")):
        path.write_bytes(body)
        store.reload()
        assert client.get("/healthz").get_json()["status"] == status


def client_body(app: Flask) -> bytes:
    """Return the verdict as it is served."""
    return bytes(app.test_client().get(BEST).data)


def test_an_accepted_loss_excuses_no_other(tmp_path: Path) -> None:
    """Nor does it blind a running server to lines of today that vanish later."""
    old = [answered("A", ["x"], f"2026-11-0{day}T06:00:00Z") for day in (2, 3)]
    data = write_data(tmp_path / "d", polls=old)
    close_days(data, "2026-11-05")
    path, history = data / "history" / FILE, History(data / "history")
    assert len(history.read("crm-software").polls) == 2
    first = path.read_bytes().splitlines(keepends=True)[0]
    path.write_bytes(first)
    assert history.read("crm-software").is_lost
    command(data, "check", "--accept-history", "crm-software", "--reason", "disk")
    history.signatures()
    assert not history.read("crm-software").is_lost
    append(data, [answered("A", ["y"], "2026-11-20T06:00:00Z")])
    assert len(history.read("crm-software").polls) == 2
    path.write_bytes(first)
    assert history.read("crm-software").is_lost
