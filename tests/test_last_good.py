"""Last good versions outlive the process: what was good before a restart is served after it."""

from __future__ import annotations

import json
import os
import shutil
import threading
from typing import TYPE_CHECKING, Any

import pytest
from broken import KINDS, SLIPS, Broken, mend, write_one_of_each
from builders import app_over, bodies, command, write_json
from click import ClickException
from faults import failing_names
from processes import started, until

from store.data_file import FOLDERS
from store.files import CRITICAL, DataDirectoryError, Files
from store.last_good import FOLDER

if TYPE_CHECKING:
    from pathlib import Path

    from flask.testing import FlaskClient

    from store.memory import Store


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """One good file of every kind."""
    return write_one_of_each(tmp_path / "data")


def store_over(data: Path) -> Store:
    """The store of a server that has just started."""
    store: Store = app_over(data).extensions["store"]
    return store


def serve(data: Path) -> dict[str, bytes]:
    """A server's life: it starts, keeps what is good and ends; all that it answered."""
    store = store_over(data)
    store.keep()
    assert store.problems == ()
    return bodies(store)


@pytest.mark.parametrize(
    "command",
    [
        ("flask", "run", "--port", "0"),
        ("gunicorn", "-c", "python:store.gunicorn", "-b", "127.0.0.1:0", "app:create_app()"),
    ],
    ids=["flask", "gunicorn"],
)
def test_a_server_that_nobody_asks_keeps_what_is_good(data: Path, command: tuple[str, ...]) -> None:
    """Copies and marks are there soon after the start, without a single request."""
    with started(data, *command) as process:
        until((data / FOLDER / "site.json").exists)
        assert (data / FOLDER / "withheld.json").exists()
        process.terminate()
        process.wait(30)


@pytest.mark.parametrize("slip", SLIPS[::5], ids=lambda slip: slip.name)
def test_no_mistake_changes_an_answer_across_a_restart(data: Path, slip: Broken) -> None:
    """All kinds of file broken at once and the server restarted: every byte stays."""
    before = serve(data)
    texts = {kind: (data / kind).read_text(encoding="utf-8") for kind in KINDS}
    for kind in KINDS:
        slip.write(data / kind)
    after = store_over(data)
    assert bodies(after) == before
    assert {problem.file for problem in after.problems} == set(KINDS)
    after.keep()
    assert bodies(store_over(data)) == before
    for kind, text in texts.items():
        mend(data / kind, text)
    assert store_over(data).problems == ()


@pytest.mark.parametrize("name", CRITICAL)
def test_a_file_that_governs_and_goes_is_missed_across_a_restart(data: Path, name: str) -> None:
    """Deleting it changes nothing but is an error that says what to do."""
    before = serve(data)
    (data / name).unlink()
    after = store_over(data)
    assert bodies(after) == before
    (problem,) = after.problems
    assert (problem.file, problem.severity) == (name, "error")
    assert "the file is missing" in problem.message


def test_a_withheld_json_that_goes_at_run_time_withholds_on(data: Path) -> None:
    """What was withheld never comes back for want of a file; an empty one takes it back."""
    store = store_over(data)
    before = bodies(store)
    (data / "withheld.json").unlink()
    store.reload()
    assert bodies(store) == before
    (problem,) = store.problems
    assert "write one with no entries if that is meant" in problem.message
    write_json(data / "withheld.json", {"version": 1, "withheld": {}})
    store.reload()
    store.keep()
    assert store.problems == ()
    (data / "withheld.json").unlink()
    assert store_over(data).problems == ()


@pytest.mark.parametrize(
    "kind", ["categories/vpn.json", "products/zoho-crm.json", "labs/by-hand.json", "synonyms.json"]
)
def test_a_deleted_file_takes_its_copy_along(data: Path, kind: str) -> None:
    """Deleted is deleted, also when a broken file of the name comes later."""
    serve(data)
    assert (data / FOLDER / kind).read_bytes() == (data / kind).read_bytes()
    store = store_over(data)
    store.keep()
    (data / kind).unlink()
    store.reload(lambda: None)
    store.keep()
    assert not (data / FOLDER / kind).exists()
    deleted = bodies(store)
    (data / kind).write_text("{", encoding="utf-8")
    assert [problem.file for problem in store_over(data).problems] == [kind]
    assert deleted == bodies(store_over(data))


def test_what_was_deleted_while_nobody_served_is_deleted(data: Path) -> None:
    """A server that starts without a file, its folder being there, does not bring it back."""
    serve(data)
    (data / "categories/vpn.json").unlink()
    store = store_over(data)
    assert list(store.snapshot.catalogue.categories) == ["crm-software"]
    store.keep()
    assert not (data / FOLDER / "categories/vpn.json").exists()


@pytest.mark.parametrize("folder", FOLDERS)
@pytest.mark.parametrize("way", ["gone", "a file", "a link"])
def test_a_folder_that_cannot_be_looked_into_counts_as_its_copies(
    data: Path, folder: str, way: str
) -> None:
    """Whatever stands in its place, after a restart its files are in use and it is named."""
    before = serve(data)
    (data / folder).rename(data / ".away")
    if way == "a file":
        (data / folder).write_text("", encoding="utf-8")
    elif way == "a link":
        (data / folder).symlink_to(".away")
    after = store_over(data)
    assert bodies(after) == before
    assert [problem.file for problem in after.problems] == [folder]
    after.keep()
    assert bodies(store_over(data)) == before
    shutil.rmtree(data / FOLDER / folder)
    if way == "gone" and folder != "categories":
        assert store_over(data).problems == ()


@pytest.mark.parametrize("name", CRITICAL)
@pytest.mark.parametrize("slip", [SLIPS[0], SLIPS[-4], SLIPS[-3], SLIPS[-2]], ids=lambda s: s.name)
def test_without_a_good_version_of_what_governs_nothing_is_shown_or_asked(
    data: Path, name: str, slip: Broken
) -> None:
    """Serving, polling, exporting and curating names refuse with one sentence; check works."""
    slip.write(data / name)
    with pytest.raises(
        ClickException, match=rf"^{name}:\d+:\d+: .* no good version of it is known"
    ):
        app_over(data)
    for option in ("--due", "--status"):
        done = command(data, "poll", option)
        assert done.exit_code == 1, option
        assert f"Nothing was asked, for {name} has mistakes" in done.output
    done = command(data, "names", "queue")
    assert (done.exit_code, done.stderr.count("\n")) == (1, 2)
    assert name in done.output
    done = command(data, "check")
    assert done.exit_code == 1
    assert f"{name}:" in done.output
    assert command(data, "schema").exit_code == 0


def test_a_file_that_governs_and_may_not_be_read_refuses_too(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lacking permission for withheld.json shows nothing that is withheld."""
    really = os.open

    def refuse(path: Any, *args: Any, **kwargs: Any) -> int:
        if str(path).endswith("data/withheld.json"):
            raise PermissionError(13, "Permission denied")
        return really(path, *args, **kwargs)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(ClickException, match=r"withheld.json:1:1: cannot be read: Permission"):
        app_over(data)


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
    with pytest.raises(DataDirectoryError, match="cannot be looked into: Permission denied"):
        Files(data).scan()


def test_nothing_is_polled_while_site_json_is_bad(data: Path) -> None:
    """Its last good version is served, and its cap may not be what is meant any more."""
    serve(data)
    (data / "site.json").write_text("{", encoding="utf-8")
    done = command(data, "poll", "--due")
    assert done.exit_code == 1
    assert "Nothing was asked, for site.json has mistakes:\n  site.json:1:2: " in done.output


def test_withholding_does_not_replace_what_is_lost(data: Path) -> None:
    """A new withheld.json with one entry would show all that the missing one withheld."""
    serve(data)
    withheld = json.loads((data / "withheld.json").read_text(encoding="utf-8"))["withheld"]
    polls = store_over(data).history.read("vpn").polls
    (data / "withheld.json").unlink()
    done = command(data, "withhold", polls[0].poll.id, "--reason", "Wrong.")
    assert done.exit_code == 1
    assert "Error: Mend this first: withheld.json:1:1: the file is missing" in done.stderr
    assert not (data / "withheld.json").exists()
    assert withheld


def test_only_what_changed_is_written(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server writes a copy once; a second one and the same one again write none."""
    placed: list[str] = []
    really = os.replace

    def note(draft: Path, path: Path) -> None:
        placed.append(path.name)
        really(draft, path)

    monkeypatch.setattr(os, "replace", note)
    store = store_over(data)
    store.keep()
    assert {"site.json", "vpn.json"} <= set(placed)
    placed.clear()
    store.keep()
    store_over(data).keep()
    assert placed == []
    text = (data / "categories/vpn.json").read_text(encoding="utf-8").replace("VPN", "VPNs")
    (data / "categories/vpn.json").write_text(text, encoding="utf-8")
    store.reload()
    store.keep()
    assert placed == ["vpn.json"]


def test_a_kill_between_draft_and_name_leaves_the_last_copy(data: Path) -> None:
    """Half a copy is never taken for one, and is in nobody's way."""
    before = serve(data)
    store = store_over(data)
    text = (data / "site.json").read_text(encoding="utf-8")
    (data / "site.json").write_text(text.replace("Test", "Two"), encoding="utf-8")
    store.reload()
    (data / FOLDER / ".site.json.draft").write_text('{"version"', encoding="utf-8")
    (data / "site.json").write_text("{", encoding="utf-8")
    assert bodies(store_over(data)) == before
    store.keep()
    assert not (data / FOLDER / ".site.json.draft").exists()
    assert store_over(data).snapshot.catalogue.site.name == "Consensus Two"


@pytest.mark.parametrize("spoil", [b"", b"{", b'{"version": 1}', b"\0" * 99])
def test_a_damaged_copy_is_none(data: Path, spoil: bytes) -> None:
    """What a power cut left of a copy is not used: then what governs fails closed."""
    serve(data)
    (data / FOLDER / "withheld.json").write_bytes(spoil)
    (data / "withheld.json").write_text("{", encoding="utf-8")
    with pytest.raises(ClickException, match=r"withheld\.json"):
        app_over(data)


def test_where_nothing_can_be_written_there_is_one_warning(
    data: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The service is well, the operator told once, and all is kept when it can be."""
    (data / FOLDER).write_text("in the way", encoding="utf-8")
    store = store_over(data)
    for _ in range(3):
        store.keep()
        store.reload()
    (problem,) = store.problems
    assert (problem.file, problem.severity) == (FOLDER, "warning")
    ours = threading.get_ident()
    assert [r.getMessage() for r in caplog.records if r.thread == ours] == [str(problem)]
    assert app_over(data).test_client().get("/healthz").get_json()["status"] == "ok"
    (data / FOLDER).unlink()
    store.keep()
    assert store.problems == ()
    assert (data / FOLDER / "site.json").exists()


def test_any_write_of_a_copy_may_fail(data: Path) -> None:
    """However far it came, it is a warning; the next time everything is kept."""
    store = store_over(data)
    for nth in range(1, 4):
        with failing_names(nth, 28, ("replace",), of=str(data)):
            store.keep()
        assert [problem.file for problem in store.problems] == [FOLDER]
    store.keep()
    assert store.problems == ()
    assert not [path for path in (data / FOLDER).rglob("*") if path.name.endswith(".draft")]
    assert bodies(store_over(data)) == bodies(store)


def test_two_servers_keep_the_same(data: Path) -> None:
    """Neither undoes what the other has kept, whichever saw the edit first."""
    one, two = store_over(data), store_over(data)
    one.keep()
    two.keep()
    text = (data / "site.json").read_text(encoding="utf-8")
    (data / "site.json").write_text(text.replace("Test", "Two"), encoding="utf-8")
    one.reload()
    one.keep()
    two.keep()  # it has not looked yet
    (data / "site.json").write_text("{", encoding="utf-8")
    two.reload()
    two.keep()
    assert store_over(data).snapshot.catalogue.site.name == "Consensus Two"


def refuse_to_open(monkeypatch: pytest.MonkeyPatch, end: str, fault: OSError) -> None:
    """Let whatever ends so be there and not be opened."""
    really = os.open

    def refuse(path: Any, *args: Any, **kwargs: Any) -> int:
        if str(path).endswith(end):
            raise OSError(fault.errno, fault.strerror, path)
        return really(path, *args, **kwargs)

    monkeypatch.setattr(os, "open", refuse)


@pytest.mark.parametrize("name", ["withheld.json"])
@pytest.mark.parametrize("fault", [PermissionError(13, "Permission denied"), OSError(5, "Broken")])
def test_a_copy_that_may_not_be_read_is_not_taken_for_none(
    data: Path, monkeypatch: pytest.MonkeyPatch, name: str, fault: OSError
) -> None:
    """Who cannot know what was withheld or lost is told so, and shows, says and asks nothing."""
    serve(data)
    refuse_to_open(monkeypatch, f"{FOLDER}/{name}", fault)
    sentence = rf"^{FOLDER}/{name} cannot be read: {fault.strerror}; "
    with pytest.raises(ClickException, match=sentence):
        app_over(data)
    for arguments in (["check"], ["poll", "--due"], ["export", str(data.parent / "tree")]):
        done = command(data, *arguments)
        assert done.exit_code == 1, arguments
        assert f"{FOLDER}/{name} cannot be read: {fault.strerror}" in done.output
        todo = "run as the user whose it is" if fault.errno == 13 else "mend that"
        assert f"what was last good is in it, so {todo}" in done.output
        assert str(data / FOLDER) not in done.output
    assert not (data.parent / "tree").exists()


def test_a_folder_of_copies_that_may_not_be_read_is_not_taken_for_none(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the categories are away too, nobody says that there never were any."""
    serve(data)
    shutil.rmtree(data / "categories")
    really = os.scandir

    def refuse(path: Any) -> Any:
        if path == data / FOLDER / "categories":
            raise PermissionError(13, "Permission denied", path)
        return really(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(DataDirectoryError, match=f"^{FOLDER}/categories cannot be read: Perm"):
        Files(data).scan()


@pytest.mark.parametrize("name", ["withheld.json"])
@pytest.mark.parametrize("kind", ["folder", "link"])
def test_what_stands_in_a_copys_place_is_not_taken_for_none(
    data: Path, name: str, kind: str
) -> None:
    """It is named, and the server does not begin anew beside it."""
    serve(data)
    path = data / FOLDER / name
    path.rename(data / ".away")
    if kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(data / ".away")
    with pytest.raises(ClickException, match=f"^{FOLDER}/{name} cannot be read: "):
        app_over(data)


def client_over(data: Path) -> FlaskClient:
    """A reader of a server that has just started."""
    return app_over(data).test_client()


def test_a_category_whose_file_is_broken_and_unknown_is_not_gone(data: Path) -> None:
    """Nobody deleted it: 503 with the reason, wherever one asks, and its history is served."""
    (data / "categories/vpn.json").write_text("{", encoding="utf-8")
    client = client_over(data)
    for path in ("/api/v1/best/vpn.json", "/best/vpn", "/feeds/best/vpn.atom"):
        answer = client.get(path)
        assert answer.status_code == 503, path
        assert b"categories/vpn.json:1:2:" in answer.data
    assert len(client.get("/api/v1/history?slug=vpn").get_json()) == 2


def test_without_the_categories_folder_none_is_gone(data: Path) -> None:
    """A folder that is away is no deletion of everything in it."""
    shutil.rmtree(data / "categories")
    assert client_over(data).get("/api/v1/best/vpn.json").status_code == 503
