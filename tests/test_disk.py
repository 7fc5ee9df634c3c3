"""Files are put in place whole: a reader finds the old bytes or the new ones, never a part."""

import os
import resource
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from faults import needs_root

from store.disk import append_lines, atomic_write, locked


def test_a_file_is_written_whole_with_its_mode(tmp_path: Path) -> None:
    """A new file has the mode that was asked for, and nothing is left beside it."""
    atomic_write(tmp_path / "a.json", b"one", 0o640)
    assert (tmp_path / "a.json").stat().st_mode & 0o777 == 0o640
    assert [each.name for each in tmp_path.iterdir()] == ["a.json"]


def test_a_file_that_is_there_keeps_its_mode(tmp_path: Path) -> None:
    """Who may read it is the operator's to say, not ours."""
    path = tmp_path / "a.json"
    path.write_bytes(b"one")
    path.chmod(0o600)
    atomic_write(path, b"two")
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"two", 0o600)


@needs_root
def test_what_root_begins_belongs_to_who_owns_the_folder(tmp_path: Path) -> None:
    """A service that runs as that user locks with it and appends to it later."""
    os.chown(tmp_path, 54_321, 12_345)
    append_lines(tmp_path / "a.jsonl", b"one\n")
    with locked(tmp_path / ".lock"):
        owners = {(each.stat().st_uid, each.stat().st_gid) for each in tmp_path.iterdir()}
    assert owners == {(54_321, 12_345)}


def test_a_write_that_fails_names_the_file(tmp_path: Path) -> None:
    """A full disk itself does not; what was there is as it was."""
    path = tmp_path / "a.json"
    path.write_bytes(b"one")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large") as raised:
            atomic_write(path, b"more than ten bytes")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert raised.value.filename == str(path)
    assert [each.name for each in tmp_path.iterdir()] == ["a.json"]
    assert path.read_bytes() == b"one"


def test_of_many_who_write_at_once_none_is_lost(tmp_path: Path) -> None:
    """Who holds the folder's lock may count on what the file holds."""
    path = tmp_path / "count"
    path.write_bytes(b"0")

    def add(_: int) -> None:
        with locked(tmp_path):
            atomic_write(path, b"%d" % (int(path.read_bytes()) + 1))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, range(200)))
    assert path.read_bytes() == b"200"
    assert [each.name for each in tmp_path.iterdir()] == ["count"]


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    """A link that somebody laid is replaced, never followed."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"mine")
    (tmp_path / "a.json").symlink_to(victim)
    atomic_write(tmp_path / "a.json", b"new")
    assert victim.read_bytes() == b"mine"
    assert not (tmp_path / "a.json").is_symlink()
