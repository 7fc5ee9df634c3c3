"""History that shrank or vanished: missed by name, served while it is known, never paid again."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mcp_rankings
import pytest
from builders import (
    answered,
    app_over,
    append,
    bodies,
    client_over,
    edit,
    output,
    same_as_fresh,
    store_over,
    withhold,
    write_data,
    write_json,
)
from flask import Flask
from flask.testing import FlaskClient

from store.history import HistoryError
from store.ledger import LedgerError, Proof
from store.store import Store

SLUG = "crm-software"
BEST = f"/api/v1/best/{SLUG}.json"
TIMES = ("2026-11-02T06:00:00Z", "2026-11-09T06:00:00Z")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two categories with four polls each, and one that was never polled."""
    slugs = (SLUG, "help-desk")
    return write_data(
        tmp_path / "data",
        categories={slug: {"title": f"Best {slug}"} for slug in (*slugs, "new")},
        models=("A", "B"),
        polls=[
            answered(model, ["Zoho CRM", "HubSpot"], at, slug=slug)
            for slug in slugs
            for at in TIMES
            for model in "AB"
        ],
    )


def serve(data: Path) -> Store:
    """A server that has just started; all that there is was closed."""
    Proof(data).close("2026-11-20")
    store = store_over(data)
    assert store.problems == ()
    return store


def accept(data: Path, which: str, exit_code: int = 0) -> list[str]:
    """The lines of the command that takes history as it is, but for that with the directory."""
    arguments = ("check", "--accept-history", which, "--reason", "a disk died")
    return output(data, *arguments, exit_code=exit_code).splitlines()[1:]


def tool_error(client: FlaskClient, tool: str, **arguments: Any) -> str:
    """The text of a tool's error over MCP."""
    message = mcp_rankings.call(tool, **arguments)
    result = client.post("/mcp", json=message).get_json()["result"]
    assert result["isError"]
    return str(result["content"][0]["text"])


def lines_of(path: Path, *numbers: int) -> list[bytes]:
    """These lines of a file, newlines included."""
    lines = path.read_bytes().splitlines(keepends=True)
    return [lines[number] for number in numbers]


def edit_last(path: Path) -> None:
    """Change a word of the last line, as a person may who finds it wrong."""
    *others, last = lines_of(path, 0, 1, 2, 3)
    path.write_bytes(b"".join([*others, last.replace(b"HubSpot", b"Hub Spot")]))


def make_a_folder(path: Path) -> None:
    """Put a folder in a file's place."""
    path.unlink()
    path.mkdir()


LOSSES: dict[str, Callable[[Path], object]] = {
    "deleted": lambda path: path.unlink(),
    "cut at a line": lambda path: path.write_bytes(b"".join(lines_of(path, 0, 1))),
    "cut inside a line": lambda path: path.write_bytes(path.read_bytes()[:-300]),
    "lines swapped": lambda path: path.write_bytes(b"".join(lines_of(path, 0, 1, 3, 2))),
    "emptied": lambda path: path.write_bytes(b""),
    "replaced by another": lambda path: shutil.copy(path.with_name("help-desk.jsonl"), path),
    "last line edited": edit_last,
    "made a folder": make_a_folder,
}


def problem_of(store: Store) -> str:
    """The one problem of a store, which is an error that names the file."""
    (problem,) = store.problems
    assert (problem.file, problem.severity) == (f"history/{SLUG}.jsonl", "error")
    return problem.message


@pytest.mark.parametrize("way", LOSSES)
def test_what_was_known_stays_served_and_what_is_restored_counts_again(
    data: Path, way: str
) -> None:
    """Every byte stays while the process lives; the file back in its place ends the error."""
    store = serve(data)
    before, path = bodies(store), data / f"history/{SLUG}.jsonl"
    backup = path.read_bytes()
    LOSSES[way](path)
    for _ in range(2):
        store.reload()
        assert bodies(store) == before
    if way != "made a folder":
        assert f"flask check --accept-history {SLUG}" in problem_of(store)
    other = store_over(data)
    assert problem_of(other) == problem_of(store)
    if path.is_dir():
        path.rmdir()
    path.write_bytes(backup)
    for held in (store, other, store_over(data)):
        held.reload()
        assert held.problems == ()
        assert bodies(held) == before


@pytest.mark.parametrize("way", LOSSES)
@pytest.mark.parametrize("looked", [False, True], ids=["at once", "later"])
def test_no_part_of_lost_evidence_is_shown_as_all_of_it(
    data: Path, way: str, *, looked: bool
) -> None:
    """Whoever reads lines is told whose are missing; nothing tells where this machine has them."""
    serve(data)
    app = app_over(data)
    client = app.test_client()
    LOSSES[way](data / f"history/{SLUG}.jsonl")
    if looked:
        app.extensions["store"].reload()
    polls = f"/api/v1/history?slug={SLUG}"
    evidence = client.get("/product/zoho-crm/polls")
    for answer in (client.get(polls), client.get(f"{polls}&limit=1"), evidence):
        if looked and answer is evidence:  # those of other categories are listed, and this is told
            assert "Not listed, for their history cannot be read just now: " in answer.text
            continue
        assert answer.status_code == 503
        assert f"{SLUG}.jsonl" in answer.text
        assert "/healthz names what" in answer.text
        assert str(data) not in answer.text
    assert f"{SLUG}.jsonl" in tool_error(client, "get_poll_history", slug=SLUG, limit=1)
    assert client.get(BEST).status_code == 200


@pytest.mark.parametrize("way", LOSSES)
def test_after_a_restart_it_is_unavailable_and_nothing_of_it_is_polled(
    data: Path, way: str
) -> None:
    """503 with the reason everywhere, never "no successful poll"; the others go on."""
    serve(data)
    path = data / f"history/{SLUG}.jsonl"
    LOSSES[way](path)
    left = path.read_bytes() if path.is_file() else None
    client = client_over(data)
    for address in (BEST, f"/best/{SLUG}", f"/feeds/best/{SLUG}.atom"):
        answer = client.get(address)
        assert answer.status_code == 503, address
        assert f"history/{SLUG}.jsonl" in answer.text
    history = client.get(f"/api/v1/history?slug={SLUG}")
    assert (history.status_code, history.mimetype) == (503, "application/problem+json")
    assert f"history/{SLUG}.jsonl" in tool_error(client, "get_best_in_category", slug=SLUG)
    assert client.get("/api/v1/best/help-desk.json").status_code == 200
    assert client.get("/healthz").get_json()["status"] == "degraded"
    for chosen in (("--due",), (SLUG,), ("--all",)):
        report = output(data, "poll", *chosen, exit_code=1)
        assert f"history/{SLUG}.jsonl:1:1: " in report
        assert "its category is left alone" in report
    assert (path.read_bytes() if path.is_file() else None) == left
    assert output(data, "check", exit_code=1).count(f"history/{SLUG}.jsonl:1:1: ") == 1


@pytest.mark.parametrize("way", [way for way in LOSSES if way != "made a folder"])
def test_what_is_accepted_counts_as_it_is(data: Path, way: str) -> None:
    """By a command; running servers take it in, and none of them brings the loss back."""
    servers = [serve(data), store_over(data)]
    path = data / f"history/{SLUG}.jsonl"
    LOSSES[way](path)
    for held in servers:
        held.reload()
    [line] = accept(data, SLUG)
    lines = path.read_bytes().count(b"\n") if path.exists() else 0
    assert f"history/{SLUG}.jsonl counts as it is: {lines} line" in line
    for held in servers:
        held.reload()
    fresh = store_over(data)
    for held in servers:
        assert bodies(held) == bodies(fresh)
        assert held.problems == fresh.problems
    assert not [p for p in fresh.problems if "--accept-history" in p.message]
    output(data, "poll", "--due", "--at", "2026-11-20T06:00:00Z")


def test_the_folder_gone_is_one_error_and_nothing_at_all_is_polled(data: Path) -> None:
    """A disk that is not mounted: also a category that was never polled is left alone."""
    before = bodies(store := serve(data))
    for away in (data / "history").rename(data / "away"), None:
        if away is None:
            (data / "history").mkdir()  # the mount point
        store.reload()
        assert bodies(store) == before
        (problem,) = store.problems
        assert problem.file == "history"
        client = client_over(data)
        for slug in (SLUG, "help-desk", "new"):
            assert client.get(f"/api/v1/best/{slug}.json").status_code == 503
        assert output(data, "poll", "--due", exit_code=1).count("its category is left alone") == 1
        assert "history:1:1: every file in it is gone" in output(data, "check", exit_code=1)
        assert not list((data / "history").glob("*"))
    (data / "history").rmdir()
    (data / "away").rename(data / "history")
    store.reload()
    assert store.problems == ()


def statuses(client: FlaskClient, *addresses: str) -> dict[str, int]:
    """What each of these addresses answers."""
    return {address: client.get(address).status_code for address in addresses}


def routed(app: Flask) -> set[str]:
    """An address of every rule that can be asked for without knowing more."""
    named = {"slug": SLUG, "name": "site.css", "product": "zoho-crm"}
    queries = {"/search": "?q=crm", "/api/v1/search": "?q=crm", "/search/suggest": "?q=crm"}
    adapter = app.url_map.bind("localhost")
    paths = [
        adapter.build(rule.endpoint, {key: named[key] for key in rule.arguments})
        for rule in app.url_map.iter_rules()
        if "GET" in (rule.methods or ())
    ]
    return {f"{path}{queries.get(path, '')}" for path in paths}


@pytest.mark.parametrize("way", ["folder", "each file", "line ends"])
def test_without_any_history_nothing_that_follows_from_it_is_said(data: Path, way: str) -> None:
    """After a restart no list is empty and nothing is unknown: all say why, the probe too."""
    serve(data)
    backup = shutil.copytree(data / "history", data / "backup")
    if way == "folder":
        shutil.rmtree(data / "history")
    else:
        for path in (data / "history").iterdir():
            text = path.read_bytes().replace(b"\n", b"\r")
            path.write_bytes(text if way == "line ends" else b"")
    app = app_over(data)
    client = app.test_client()
    found = statuses(client, *routed(app), "/product/zoho-crm", "/api/v1/product/zoho-crm.json")
    alone = {"/healthz", "/livez", "/static/site.css"}
    assert found.pop("/data/site.css") == 404  # no file of a dataset, whatever the history
    assert found == {address: 200 if address in alone else 503 for address in found}
    assert {"/", "/readyz", "/llms.txt", "/feeds/changes.atom", "/changes"} <= found.keys() - alone
    for address in ("/", "/api/v1/categories.json", "/readyz", "/feeds/changes.json"):
        assert "until this is mended: history" in client.get(address).text
    assert statuses(client, "/BEST/NOBODY") == {"/BEST/NOBODY": 308}
    assert client.get("/").mimetype == "text/html"
    assert client.get("/api/v1/mentions.json").mimetype == "application/problem+json"
    assert "until this is mended: history" in tool_error(client, "list_categories")
    assert "until this is mended: history" in tool_error(client, "get_product", slug="zoho-crm")
    shutil.copytree(backup, data / "history", dirs_exist_ok=True)
    app.extensions["store"].reload()
    assert statuses(client, "/", "/readyz") == {"/": 200, "/readyz": 200}


def test_a_product_that_may_be_named_in_lost_history_is_not_unknown(data: Path) -> None:
    """As long as some is lost; what nothing knows of categories stays unknown."""
    append(data, [answered("A", ["Only Here"], TIMES[-1])])
    serve(data)
    (data / f"history/{SLUG}.jsonl").unlink()
    client = client_over(data)
    record, page = "/api/v1/product/only-here.json", "/product/only-here"
    for address in (record, page, "/product/only-here/polls"):
        answer = client.get(address)
        assert (answer.status_code, f"history/{SLUG}.jsonl" in answer.text) == (503, True)
    assert f"history/{SLUG}.jsonl" in tool_error(client, "get_product", slug="only-here")
    known = {"/product/zoho-crm": 200, "/changes": 200, "/readyz": 200, "/best/nobody": 404}
    assert statuses(client, *known) == known
    accept(data, SLUG)
    assert client_over(data).get(record).status_code == 404


EDITS: dict[str, Callable[[Path], object]] = {
    "a question": lambda data: edit(data / f"categories/{SLUG}.json", question="Which CRM?"),
    "a product file": lambda data: write_json(
        data / "products/hub.json", {"version": 1, "name": "Hub", "aliases": ["HubSpot"]}
    ),
    "a former name": lambda data: edit(
        data / "models.json",
        models=[
            {"name": "Z", "api": "sample", "former_names": ["A"]},
            {"name": "B", "api": "sample"},
        ],
    ),
    "a withholding": lambda data: withhold(data, "0" * 16),
    "a deletion": lambda data: (data / f"categories/{SLUG}.json").unlink(),
}


@pytest.mark.parametrize("what", EDITS)
def test_what_was_known_stays_served_until_an_edit_touches_it(data: Path, what: str) -> None:
    """An edit is never half applied: its answer is then the one after a restart."""
    edit(data / f"categories/{SLUG}.json", former_slugs=["crm"])
    store = serve(data)
    before, path = bodies(store), data / f"history/{SLUG}.jsonl"
    text = path.read_bytes()
    path.unlink()
    store.reload()
    write_json(data / "products/hubby.json", {"version": 1, "name": "Nobody names it"})
    store.reload()
    assert bodies(store) == before
    EDITS[what](data)
    store.reload()
    assert store.snapshot.fault_of(SLUG)
    assert same_as_fresh(store, data)
    path.write_bytes(text)
    store.reload()
    assert not store.snapshot.fault_of(SLUG)
    assert same_as_fresh(store, data)


def test_a_history_of_damage_alone_makes_no_product_elsewhere_doubtful(data: Path) -> None:
    """A category where no line can be read is 503 and says why; what nothing names is unknown."""
    path = data / f"history/{SLUG}.jsonl"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r"))
    client = client_over(data)
    assert statuses(client, "/product/nobody", "/") == {"/product/nobody": 404, "/": 200}
    answer = client.get(BEST)
    assert answer.status_code == 503
    assert "a damaged record is left out" in answer.text


def test_all_of_it_can_be_accepted(data: Path) -> None:
    """An operator who begins anew says so once."""
    serve(data)
    shutil.rmtree(data / "history")
    files = [line.split()[0] for line in accept(data, "--all")]
    assert files == [f"history/{SLUG}.jsonl", "history/help-desk.jsonl"]
    assert client_over(data).get(BEST).status_code == 404
    assert accept(data, "--all") == ["No history is lost."]


def test_accepting_says_what_it_cannot_do(data: Path) -> None:
    """A slug that nobody knows, a file that has lost nothing."""
    assert accept(data, SLUG) == [f"history/{SLUG}.jsonl has lost nothing."]
    serve(data)
    assert "No history was ever seen" in "".join(accept(data, "crm", exit_code=2))
    assert accept(data, SLUG) == [f"history/{SLUG}.jsonl has lost nothing."]


def test_a_deleted_categorys_history_is_missed_too(data: Path) -> None:
    """What is served as gone is served from a file that may not vanish unseen."""
    (data / f"categories/{SLUG}.json").unlink()
    store = serve(data)
    (data / f"history/{SLUG}.jsonl").unlink()
    store.reload()
    assert "the file is gone" in problem_of(store)
    assert client_over(data).get(BEST).status_code == 503
    accept(data, SLUG)
    store.reload()
    assert client_over(data).get(BEST).status_code == 404
    assert bodies(store) == bodies(store_over(data))


@pytest.mark.parametrize("damaged", [None, b"", b"{\n", b'{"day":"2026-11-02"}\n'])
def test_a_damaged_ledger_is_named_and_left(data: Path, damaged: bytes | None) -> None:
    """Whoever starts then cannot say what is lost, and says that; put back, it counts again."""
    running = serve(data)
    before = bodies(running)
    path, away = data / "proof/ledger.jsonl", data / "away"
    shutil.copytree(path.parent, away)
    shutil.rmtree(path.parent) if damaged is None else path.write_bytes(damaged)
    running.reload()
    assert bodies(running) == before
    client = client_over(data)
    assert client.get(BEST).status_code == 503
    assert client.get("/healthz").get_json()["status"] == "degraded"
    for arguments in (("check",), ("poll", "help-desk")):
        report = output(data, *arguments, exit_code=1)
        assert "\nproof/" in report
        assert "put the folder proof back from a copy" in report
    with pytest.raises(HistoryError, match="--accept-history --all"):
        append(data, [answered("A", ["X"], "2026-12-01T06:00:00Z")])
    with pytest.raises(LedgerError):
        Proof(data).close("2026-12-01")
    assert (path.read_bytes() if path.exists() else None) == damaged
    shutil.copytree(away, path.parent, dirs_exist_ok=True)
    running.reload()
    assert running.problems == store_over(data).problems == ()


@pytest.mark.parametrize("lost", [(), (SLUG,), (SLUG, "help-desk")])
def test_a_damaged_ledger_is_begun_anew_when_all_is_accepted(
    data: Path, lost: tuple[str, ...]
) -> None:
    """On an operator's word; one category's does not speak for the others."""
    serve(data)
    for slug in lost:
        (data / f"history/{slug}.jsonl").unlink()
    shutil.copy(data / "site.json", data / f"history/{SLUG} (copy).jsonl")  # no file of ours
    (data / "proof/ledger.jsonl").write_bytes(b"{\n")
    store = store_over(data)
    words = ("check", "--accept-history", "--all", "--reason", "caf\udce9")
    assert "A reason is UTF-8 text" in output(data, *words, exit_code=2)
    refusal = "".join(accept(data, "help-desk", exit_code=1))
    assert "flask check --accept-history --all" in refusal
    assert (data / "proof/ledger.jsonl").read_bytes() == b"{\n"
    accept(data, "--all")
    entries = [json.loads(s) for s in (data / "proof/ledger.jsonl").read_text().splitlines()]
    assert {entry["file"] for entry in entries} == {SLUG, "help-desk"} - set(lost)
    assert {(entry["accepted"], entry["was"], entry["reason"]) for entry in entries} <= {
        (True, "", "a disk died")
    }
    store.reload()
    assert store.problems == store_over(data).problems == ()
