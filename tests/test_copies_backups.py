"""A backup is whole or is the one before, and nothing that was lost replaces what is kept."""

from __future__ import annotations

import errno
import json
import random
import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from broken import write_one_of_each
from builders import answered, app_over, append, command, write_data
from processes import ROOT, environment, flask_here

from store.copies import backups
from store.copies.places import Folder

if TYPE_CHECKING:
    from pathlib import Path

NOW = "2026-11-20T06:00:00Z"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """One good file of every kind, as a server leaves it."""
    directory = write_one_of_each(tmp_path / "data")
    app_over(directory).extensions["store"].keep()
    return directory


def contents(directory: Path) -> dict[str, bytes]:
    """Every file that a backup has, by name."""
    marks = ".last-good/history.json"
    files = (path for path in directory.rglob("*") if path.is_file())
    found = {str(path.relative_to(directory)): path.read_bytes() for path in files}
    return {n: data for n, data in found.items() if not n.startswith((".locks", ".pulled", marks))}


def run(directory: Path, name: str, place: Path, *, fails: bool = False) -> str:
    """A command's words; ``fails`` says whether it should."""
    done = flask_here(directory, name, str(place))
    assert done.exit_code == fails, done.output
    return done.output


def test_what_is_restored_is_what_was_backed_up(data: Path, tmp_path: Path) -> None:
    """Every byte and time, the last good versions, today's spending; no key and no lock."""
    (data / ".env").write_text("SECRET=1")
    (data / ".locks").mkdir(exist_ok=True)
    (data / ".locks" / "spent.json").write_text('{"day":"2026-11-20","micros":5}')
    said = run(data, "backup", tmp_path / "there")
    assert " new. Proof: 4 lines, root " in said
    new = tmp_path / "new"
    run(new, "restore", tmp_path / "there")
    (data / ".env").unlink()
    assert {**contents(new), "proof/.lock": b""} == contents(data)
    assert (new / ".locks" / "spent.json").read_text() == '{"day":"2026-11-20","micros":5}'
    name = "categories/crm-software.json"
    assert (new / name).stat().st_mtime_ns == (data / name).stat().st_mtime_ns
    assert not any(b"SECRET" in path.read_bytes() for path in (tmp_path / "there").rglob("*/*"))
    assert command(new, "check").exit_code == 0


def test_only_what_changed_is_written(data: Path, tmp_path: Path) -> None:
    """A second backup adds the objects of changed files; the one before can still be read."""
    place = Folder(tmp_path / "there")
    backups.back_up(data, place, NOW, "1")
    assert backups.back_up(data, place, NOW, "1")[1] == 0
    append(data, [answered("A", ["X"], "2026-11-19T06:00:00Z")])
    assert backups.back_up(data, place, NOW, "1")[1] == 1
    for n in range(3):
        (data / "LICENSE").write_text(f"{n}")
        backups.back_up(data, place, NOW, "1")
    found = backups.last(place)
    assert found
    objects = {path.name for path in (tmp_path / "there" / "objects").iterdir()}
    assert objects == found[0].objects | set(found[0].before), "older ones are taken away"


@pytest.mark.parametrize("loss", ["cut", "rewritten", "gone"])
def test_lost_history_replaces_nothing(data: Path, tmp_path: Path, loss: str) -> None:
    """A file that does not begin with what the backup holds is named, and the backup stays."""
    there = tmp_path / "there"
    run(data, "backup", there)
    before = (there / "backup.json").read_bytes()
    path = data / "history" / "crm-software.jsonl"
    whole = path.read_bytes()
    if loss == "gone":
        path.unlink()
    else:
        path.write_bytes(whole[:-20] if loss == "cut" else whole.replace(b"Pipe", b"Pope"))
    said = run(data, "backup", there, fails=True)
    assert "history/crm-software.jsonl does not begin with what the last backup" in said
    assert (there / "backup.json").read_bytes() == before
    run(tmp_path / "new", "restore", there)
    assert (tmp_path / "new" / "history" / "crm-software.jsonl").read_bytes() == whole


def test_a_line_that_is_being_written_waits(data: Path, tmp_path: Path) -> None:
    """A torn end is not copied: its repair would look like a loss to the next backup."""
    path = data / "history" / "crm-software.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"v":1,"id":"12')
    run(data, "backup", tmp_path / "there")
    path.write_bytes(whole)
    run(data, "backup", tmp_path / "there")
    run(tmp_path / "new", "restore", tmp_path / "there")
    assert (tmp_path / "new" / "history" / "crm-software.jsonl").read_bytes() == whole


def test_a_backup_is_not_kept_in_what_it_is_of(data: Path) -> None:
    """It would be lost with it, and the next would hold it too."""
    assert "would be lost with it" in run(data, "backup", data / "backup", fails=True)
    assert not (data / "backup").exists()


def test_a_full_disk_is_named(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed write itself does not say where."""
    run(data, "backup", tmp_path / "there")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(type(tmp_path), "write_bytes", full)
    new = tmp_path / "new"
    assert f"{new}: No space left on device" in run(new, "restore", tmp_path / "there", fails=True)
    assert not list(new.iterdir()), "nothing was put in place"


def test_a_directory_with_other_data_is_left_alone(data: Path, tmp_path: Path) -> None:
    """Restoring never writes over anything, be it beside a running service."""
    run(data, "backup", tmp_path / "there")
    append(data, [answered("A", ["X"], "2026-11-19T06:00:00Z")])
    before = contents(data)
    said = run(data, "restore", tmp_path / "there", fails=True)
    assert "already holds history/crm-software.jsonl" in said
    assert contents(data) == before


@pytest.mark.parametrize("harm", ["damaged", "missing"])
def test_a_backup_that_is_not_whole_is_refused(data: Path, tmp_path: Path, harm: str) -> None:
    """One bad object, and nothing is put in place."""
    run(data, "backup", tmp_path / "there")
    victim = sorted((tmp_path / "there" / "objects").iterdir())[3]
    victim.unlink() if harm == "missing" else victim.write_bytes(b"x")
    said = run(tmp_path / "new", "restore", tmp_path / "there", fails=True)
    assert f"is {harm} in the backup" in said
    assert contents(tmp_path / "new") == {}


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/../../x"])
def test_a_backup_cannot_reach_out(data: Path, tmp_path: Path, name: str) -> None:
    """A manifest that names a file outside is refused as a whole."""
    run(data, "backup", tmp_path / "there")
    path = tmp_path / "there" / "backup.json"
    found = json.loads(path.read_bytes())
    found["files"][name] = found["files"]["site.json"]
    path.write_text(json.dumps(found))
    assert "no file of a data directory" in run(
        tmp_path / "new", "restore", tmp_path / "there", fails=True
    )


def test_a_copy_follows_and_a_running_copy_shows_it(data: Path, tmp_path: Path) -> None:
    """A replica takes in new polls, edits and deletions, each whole and checked."""
    copy = tmp_path / "copy"
    (data / "categories" / "vpn.json").write_text(
        '{"version": 1, "title": "Best VPN", "question": "What is the best VPN?"}'
    )
    run(data, "backup", tmp_path / "there")
    run(copy, "pull", tmp_path / "there")
    store = app_over(copy).extensions["store"]
    store.keep()
    append(data, [answered("A", ["Zed"], "2026-11-19T06:00:00Z")])
    (data / "categories" / "vpn.json").unlink()
    run(data, "backup", tmp_path / "there")
    run(copy, "pull", tmp_path / "there")
    store.reload()
    assert "vpn" not in store.snapshot.catalogue.categories
    assert not [p for p in store.problems if p.severity == "error"]
    assert (copy / "history" / "crm-software.jsonl").read_bytes() == (
        data / "history" / "crm-software.jsonl"
    ).read_bytes()
    assert "0 written" in run(copy, "pull", tmp_path / "there")


def test_a_copy_is_never_replaced_by_less(data: Path, tmp_path: Path) -> None:
    """History that is longer or other here than there is refused; so is what was no copy."""
    run(data, "backup", tmp_path / "there")
    assert "already holds" in run(
        write_data(tmp_path / "own", polls=[answered("A", ["X"])]),
        "pull", tmp_path / "there", fails=True,
    )  # fmt: skip
    run(tmp_path / "copy", "pull", tmp_path / "there")
    append(tmp_path / "copy", [answered("A", ["X"], "2026-11-19T06:00:00Z")])
    before = contents(tmp_path / "copy")
    assert "does not begin with what is here" in run(
        tmp_path / "copy", "pull", tmp_path / "there", fails=True
    )
    assert contents(tmp_path / "copy") == before


def test_two_backups_to_one_place_do_not_mix(data: Path, tmp_path: Path) -> None:
    """Of two at once, the one that ends second is refused."""

    class Overtaken(Folder):
        def write(self, items, done=lambda: None) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
            super().write(items, done)
            if not done_once:
                done_once.append(True)
                backups.back_up(data, Folder(tmp_path / "there"), NOW, "first")

    done_once: list[bool] = []
    with pytest.raises(backups.BackupError, match="another backup"):
        backups.back_up(data, Overtaken(tmp_path / "there"), NOW, "second")
    found = backups.last(Folder(tmp_path / "there"))
    assert found
    assert found[0].made_by == "first"


@pytest.mark.slow
def test_killed_backups_and_restores_lose_nothing(tmp_path: Path) -> None:
    """After each of 30 kill -9 the last whole backup restores, and a rerun completes."""
    data, there = tmp_path / "data", tmp_path / "there"
    shutil.copytree(ROOT / "data", data)
    assert flask_here(data, "backup", str(there)).exit_code == 0
    chance, killed = random.Random(22), 0
    for n in range(30):
        what, target = ("backup", data) if n % 2 else ("restore", tmp_path / f"new{n}")
        if n % 2:
            for path in chance.sample(sorted((data / "categories").glob("*.json")), 400):
                path.write_bytes(path.read_bytes() + b"\n")
        process = subprocess.Popen(
            [sys.executable, "-m", "flask", what, str(there)],
            cwd=ROOT, env=environment(target), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        time.sleep(chance.uniform(0.6, 1.6))
        process.kill()
        killed += process.wait() == -9
        found = backups.last(Folder(there))
        assert found
        for digest in found[0].objects:
            assert (there / "objects" / digest).exists()
        if not n % 2:
            assert flask_here(target, "restore", str(there)).exit_code == 0
            assert contents(target).keys() == found[0].files.keys()
            shutil.rmtree(target)
    assert killed > 10, "else the runs were too short to be killed"
    assert flask_here(data, "backup", str(there)).exit_code == 0
