"""What is put in place by a rename: when that fails, all is as it was, and a sentence says so."""

import errno
import itertools
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from broken import write_one_of_each
from builders import answered, append, command, contents, write_data
from faults import failing_names

from store.files import Files
from store.history import History
from store.publishing.directories import is_whole


def error(nth: int) -> int:
    """What is wrong with the disk at the nth call: in turn it is full and bad."""
    return (errno.ENOSPC, errno.EIO)[nth % 2]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """One category, with the schemas of its files."""
    directory = write_data(tmp_path / "data", polls=[answered("A", ["Alpha", "Beta", "Delta"])])
    assert command(directory, "schema").exit_code == 0
    return directory


def said(data: Path, *arguments: str) -> str:
    """What a command says below the name of its data directory."""
    return command(data, *arguments).output.removeprefix(f"Data: {data}\n")


def test_a_withholding_that_fails_leaves_every_file(data: Path) -> None:
    """Nothing half written, nothing lost, no draft left, and one sentence."""
    [line, *_] = History(data / "history").read("crm-software").polls
    arguments = ("withhold", line.poll.id, "--reason", "Wrong.")
    assert failures(data, lambda: said(data, *arguments)) >= 1


def test_an_init_that_fails_leaves_nothing(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A directory that could not be filled is as it was before, so that it can be filled again."""
    few = write_one_of_each(tmp_path / "few")
    monkeypatch.setattr("store.cli.starting.SHIPPED_DATA", few)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / ".notes").write_text("mine", encoding="utf-8")
    for directory in (tmp_path / "new", tmp_path / "mine"):
        init = partial(command, data, "init", str(directory))
        assert failures(tmp_path, lambda: init().output) >= 1  # noqa: B023 - called here
        assert Files(directory).scan().problems == ()


def test_an_export_that_fails_leaves_the_last_one(data: Path, tmp_path: Path) -> None:
    """What readers are served is whole, the last tree or the next, and no half tree takes room."""
    home, seen = tmp_path / "tree", list[bool]()
    assert command(data, "export", str(home)).exit_code == 0
    for nth in itertools.count(1):
        append(data, [answered("A", [f"Alpha {nth}"], "2026-11-09T06:00:00Z")])
        before = contents((home / "current").resolve())
        with failing_names(nth, error(nth), ("rename", "replace", "symlink")) as calls:
            done = command(data, "export", str(home))
        after = contents((home / "current").resolve())
        for trees in (home / "trees", data / "dataset/trees"):
            assert not list(trees.glob(".*"))
        assert is_whole((data / "dataset/current").resolve())
        if calls.total() < nth:
            assert (done.exit_code, after != before) == (0, True)
            break
        assert after == before
        why = os.strerror(error(nth))
        wrong = (
            f"{home} cannot be written: {why}",
            f"The dataset was not written: {data / 'dataset'} cannot be written: {why}.",
        )
        said = [each for each in done.stderr.splitlines() if "without Parquet" not in each]
        assert said in [[f"Data: {data}", f"Error: {each}"] for each in wrong]
        seen.append(wrong[0] in done.stderr)
    steps = 4  # the folder's name, what it was made from, the link, the link's name
    assert seen == [False] * steps + [True] * steps  # first of the dataset, then of the tree


def test_a_tree_has_its_name_only_when_it_is_on_the_disk(data: Path, tmp_path: Path) -> None:
    """After a power cut no half tree is what readers see; what was there before is not flushed."""
    assert command(data, "export", str(tmp_path / "tree")).exit_code == 0
    append(data, [answered("A", ["Gamma"], "2026-11-09T06:00:00Z")])
    fsync, rename = os.fsync, os.rename
    synced, named = set[str](), list[str]()

    def note(handle: int) -> None:
        synced.add(str(Path(f"/proc/self/fd/{handle}").readlink()))
        fsync(handle)

    def check(source: Path, target: Path) -> None:
        for path in [source, *source.rglob("*")]:
            assert (str(path) in synced) == (path.is_dir() or path.stat().st_nlink == 1), path
        named.append(target.parent.parent.name)
        rename(source, target)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "fsync", note)
        patched.setattr(os, "rename", check)
        assert command(data, "export", str(tmp_path / "tree")).exit_code == 0
    assert named == ["dataset", "tree"]


def failures(home: Path, act: Callable[[], str]) -> int:
    """Do something with one more of its calls failing each time, until it succeeds.

    Each time every file at home must be there as it was, and no other; returns how often.
    """
    for nth in itertools.count(1):
        before = contents(home)
        with failing_names(nth, error(nth)) as calls:
            said = act()
        if calls.total() < nth:
            assert contents(home) != before
            return nth - 1
        assert contents(home) == before, calls
        assert os.strerror(error(nth)) in said
        assert said.count("\n") <= 1
    raise AssertionError
