"""A file that breaks: its last good version while the process lives, closed doors at a start."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from broken import SLIPS, Broken, write_one_of_each
from builders import (
    answered,
    app_over,
    append,
    bodies,
    client_over,
    command,
    store_over,
    withhold,
    write_data,
    write_json,
)
from click import ClickException
from faults import UnreadableFiles, replace_os
from mcp_rankings import text_of
from processes import ROOT, environment

from store.files import DataDirectoryError, Files
from store.records import FOLDERS
from store.store import Store

GOVERNING = ("site.json", "models.json", "withheld.json", "topics.json")
SLUR = "A slur that nobody may see"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """One good file of every kind; the first poll of crm-software is withheld."""
    return write_one_of_each(tmp_path / "data")


def spoil(path: Path, way: str) -> None:
    """Break a file in its third line, or take it away."""
    if way == "missing":
        path.unlink()
    else:
        path.write_text('{\n  "version": 1,\n  // mine\n}\n', encoding="utf-8")


SERVERS = {
    "flask": ("flask", "run", "--port", "0"),
    "gunicorn": (
        "gunicorn",
        "-c",
        "python:store.gunicorn",
        "-b",
        "127.0.0.1:0",
        "app:create_app()",
    ),
}


@pytest.mark.parametrize(
    ("server", "way", "name"),
    [("flask", "broken", "site.json"), ("gunicorn", "missing", "models.json")],
)
def test_a_server_without_a_good_governing_file_says_a_sentence_and_exits_with_1(
    data: Path, server: str, way: str, name: str
) -> None:
    """Which file, where in it and why, and no stack trace; the next test has each of them."""
    spoil(data / name, way)
    done = subprocess.run(
        [sys.executable, "-m", *SERVERS[server]], cwd=ROOT, env=environment(data),
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    *_, last = done.stderr.splitlines()
    sentence = json.loads(last)["message"] if server == "gunicorn" else last.partition(" ")[2]
    place = f"{name}:1:1: the file is" if way == "missing" else f"{name}:3:3: JSON has no comments"
    assert sentence.startswith(place)
    assert sentence.endswith(f"(without a good {name} nothing is shown or asked)")
    assert "Traceback" not in done.stderr
    assert done.stderr.count(name) == 2  # both in that sentence


@pytest.mark.parametrize("name", GOVERNING)
@pytest.mark.parametrize("way", ["missing", *(slip.name for slip in SLIPS[::9])])
def test_without_a_good_governing_file_nothing_is_shown_asked_or_published(
    data: Path, name: str, way: str
) -> None:
    """Every command that would names the file and exits with 1; check and schema work."""
    if way == "missing":
        (data / name).unlink()
    else:
        next(slip for slip in SLIPS if slip.name == way).write(data / name)
    before = {path: path.read_bytes() for path in (data / "history").iterdir()}
    with pytest.raises(ClickException, match=rf"^{name}:\d+:\d+: .* nothing is shown or asked\)$"):
        app_over(data)
    refused = (
        ["poll", "--due"], ["poll", "--status"], ["names", "queue"], ["dataset"],
        ["deploy", "nginx.conf"],
    )  # fmt: skip
    for arguments in (*refused, ["export", str(data.parent / "tree")]):
        done = command(data, *arguments)
        assert done.exit_code == 1, arguments
        assert f"{name}:" in done.stderr, arguments
    done = command(data, "check")
    assert done.exit_code == 1
    assert f"{name}:" in done.stdout
    assert command(data, "schema").exit_code == 0
    assert not (data.parent / "tree").exists()
    assert {path: path.read_bytes() for path in (data / "history").iterdir()} == before


@pytest.mark.parametrize("way", ["missing", "broken"])
@pytest.mark.parametrize("name", GOVERNING)
def test_a_governing_file_that_breaks_while_a_server_runs_changes_no_answer(
    data: Path, name: str, way: str
) -> None:
    """Its last good version stays, health names the file, and nothing is published."""
    app = app_over(data)
    store: Store = app.extensions["store"]
    before, text = bodies(store), (data / name).read_text(encoding="utf-8")
    spoil(data / name, way)
    store.reload()
    assert bodies(store) == before
    health = app.test_client().get("/healthz").get_json()
    assert health["status"] == "degraded"
    (problem,) = health["problems"]
    assert problem.startswith(f"{name}:")
    assert [p.file for p in store.snapshot.unpublishable] == [name]
    blocker = store.snapshot.blocks_polling
    assert (blocker is not None) == (name in ("site.json", "models.json"))
    (data / name).write_text(text, encoding="utf-8")
    store.reload()
    assert store.problems == ()


@pytest.mark.parametrize("way", ["missing", "broken", "unreadable", "a folder"])
def test_what_is_withheld_never_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """Neither while a server runs nor at a start, whatever becomes of withheld.json."""
    polls = [answered("A", [SLUR]), answered("B", ["Good"])]
    data = write_data(tmp_path / "data", polls=polls)
    path = withhold(data, polls[0].id)
    app = app_over(data)
    store: Store = app.extensions["store"]
    before = bodies(store)
    if way == "unreadable":
        replace_os(monkeypatch, UnreadableFiles(path.name, call="open", error=errno.EACCES))
        os.utime(path)
    elif way == "a folder":
        path.unlink()
        path.mkdir()
    else:
        spoil(path, way)
    for _ in range(2):
        store.reload()
        assert bodies(store) == before
    shown = app.test_client().get("/api/v1/history?slug=crm-software").text
    assert (SLUR in shown, "Insults a person" in shown) == (False, True)
    with pytest.raises(ClickException, match=r"^withheld\.json:\d+:\d+: "):
        app_over(data)
    done = command(data, "withhold", polls[1].id, "--reason", "Wrong.")
    assert done.exit_code == 1
    assert "Error: Mend this first: withheld.json:" in done.stderr


@pytest.mark.parametrize(
    ("name", "paths"),
    {
        "categories/vpn.json": ("api/v1/best/vpn.json", "best/vpn", "feeds/best/vpn.atom"),
        "categories/new.json": ("api/v1/best/new.json", "best/new"),
        "products/zoho-crm.json": (
            "api/v1/product/zoho-crm.json", "product/zoho-crm", "product/zoho-crm/polls",
        ),
        "products/never-named.json": ("api/v1/product/never-named.json", "product/never-named"),
        "labs/by-hand.json": ("labs/by-hand",),
    }.items(),
)  # fmt: skip
def test_a_file_that_is_bad_at_a_start_leaves_its_own_address_503(
    data: Path, name: str, paths: tuple[str, ...]
) -> None:
    """With the reason, wherever one asks, and every other address is served."""
    (data / name).write_text("{", encoding="utf-8")
    client = client_over(data)
    for path in paths:
        answer = client.get(f"/{path}")
        assert answer.status_code == 503, path
        assert f"{name}:1:2:" in answer.text
    assert client.get("/api/v1/best/crm-software.json").status_code == 200
    assert len(client.get("/api/v1/history?slug=vpn").get_json()) == 2
    assert client.get("/healthz").get_json()["status"] == "degraded"
    if name.startswith("products"):
        for spelling in {Path(name).stem, "Zoho-CRM" if "zoho" in name else Path(name).stem}:
            assert f"{name}:1:2:" in text_of(client, "get_product", slug=spelling)


@pytest.mark.parametrize("slip", SLIPS[::9], ids=lambda slip: slip.name)
def test_a_product_file_that_comes_broken_changes_nothing(data: Path, slip: Broken) -> None:
    """A slip in a new file takes no product off the air that was fine without one."""
    app = app_over(data)
    store: Store = app.extensions["store"]
    before = bodies(store)
    path = write_json(data / "products/pipe.json", {"version": 1, "name": "Pipe"})
    slip.write(path)
    store.reload()
    assert bodies(store) == before
    assert app.test_client().get("/api/v1/product/pipe.json").status_code == 200
    assert {problem.file for problem in store.problems} == {"products/pipe.json"}


@pytest.mark.parametrize("folder", FOLDERS)
@pytest.mark.parametrize("way", ["gone", "a file", "a link"])
def test_a_folder_that_cannot_be_looked_into_counts_as_it_was(
    data: Path, folder: str, way: str
) -> None:
    """While a server runs, whatever stands in its place; after a start no category is gone."""
    store = store_over(data)
    before = bodies(store)
    (data / folder).rename(data / ".away")
    if way == "a file":
        (data / folder).write_text("", encoding="utf-8")
    elif way == "a link":
        (data / folder).symlink_to(".away")
    store.reload()
    assert bodies(store) == before
    assert [problem.file for problem in store.problems] == [folder]
    client = client_over(data)
    assert client.get("/api/v1/best/vpn.json").status_code == (
        503 if folder == "categories" else 200
    )
    named = {problem.file for problem in client.application.extensions["store"].problems}
    assert (folder in named) == (way != "gone" or folder == "categories")


def test_a_directory_that_cannot_be_listed_is_no_directory_without_withholdings(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the start it is refused; later what was known of it stays, withheld.json included."""
    store = store_over(data)
    before = bodies(store)
    really = os.scandir

    def refuse(path: Any) -> Any:
        if path == data:
            raise PermissionError(13, "Permission denied")
        return really(path)

    monkeypatch.setattr(os, "scandir", refuse)
    store.reload()
    assert bodies(store) == before
    with pytest.raises(DataDirectoryError, match="cannot be read: Permission denied"):
        Files(data).scan()


def test_invented_answers_are_never_taken_for_real_ones(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A sample that is called real is an error everywhere, stays labelled, and is left alone."""
    data = write_data(tmp_path / "data", models=["A", "B"])
    assert command(data, "poll", "--all", "--at", "2026-11-02T06:00:00Z").exit_code == 0
    app = app_over(data)
    store: Store = app.extensions["store"]
    real = {"api": "chat", "base_url": "https://provider.example/v1", "model": "m", "key_env": "K"}
    write_json(data / "models.json", {"version": 1, "models": [{"name": "Real", **real}]})
    write_json(data / "site.json", {"version": 1, "name": "Real rankings", "sample": False})
    said = 'site.json:1:1: "sample" is not true, and history holds 2 invented answers'
    store.reload()
    again = app_over(data)
    assert sum(said in message for message in caplog.messages) == 2  # the look and the start
    for one in (app, again):
        client = one.test_client()
        assert client.get("/healthz").get_json()["status"] == "degraded"
        assert client.get("/healthz").get_json()["problems"][0].startswith(said)
        for path in ("/", "/best/crm-software", "/llms.txt", "/api/v1/README.md"):
            assert "invented" in client.get(path).text, path
        snapshot = one.extensions["store"].snapshot
        assert str(snapshot.blocks_polling).startswith(said)
    done = command(data, "check")
    assert done.exit_code == 1
    assert said in done.stdout
    assert "begin the real site in a directory of its own (`flask init DIR`)" in done.stdout
    tree = data.parent / "tree"
    for arguments in (["poll", "--all"], ["poll", "--due", "--dry-run"], ["export", str(tree)]):
        done = command(data, *arguments)
        assert done.exit_code == 1, arguments
        assert said in done.stderr, arguments
    assert command(data, "dataset").exit_code == 1
    write_json(data / "site.json", {"version": 1, "name": "A sample", "sample": True})
    assert "invented answers" not in command(data, "check").stdout


def test_invented_answers_stay_labelled_while_their_history_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was last read stays served, and so does what it is."""
    data = write_data(tmp_path / "data", models=["A"])
    assert command(data, "poll", "--all", "--at", "2026-11-02T06:00:00Z").exit_code == 0
    write_json(data / "site.json", {"version": 1, "name": "Real rankings"})
    app = app_over(data)
    client, store = app.test_client(), app.extensions["store"]
    assert "invented" in client.get("/").text
    replace_os(monkeypatch, UnreadableFiles("crm-software.jsonl"))
    append(data, [answered("B", ["Zoho CRM"], "2026-11-09T06:00:00Z")])
    store.reload()
    assert store.snapshot.damage["crm-software"]
    for path in ("/", "/best/crm-software"):
        assert "invented" in client.get(path).text, path
