"""Leases: one holder at a time, whoever asks, and none after its holder's death."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from store.polls.leases import Leases, held, leased
from store.settings import SHIPPED_DATA

if TYPE_CHECKING:
    from pathlib import Path


def test_a_pair_has_one_holder(tmp_path: Path) -> None:
    """Another lease on it fails, one on another category or assistant does not."""
    leases = Leases(tmp_path / "locks")
    assert leases.held("A") == 0
    with leases.lease("crm", "A") as first, leases.lease("crm", "A") as again:
        assert (first, again) == (True, False)
        with leases.lease("vpn", "A") as other, leases.lease("crm", "B") as another:
            assert (other, another) == (True, True)
            assert (leases.held("A"), leases.held("B"), leases.held("C")) == (2, 1, 0)
    assert leases.held("A") == 0
    with leases.lease("crm", "A") as free:
        assert free


def test_few_files_hold_all_leases(tmp_path: Path) -> None:
    """However many pairs are asked, an assistant has one file, which stays empty."""
    leases = Leases(tmp_path)
    for number in range(50):
        with leases.lease(f"c-{number}", "A"):
            assert leases.held("A") == 1
    [file] = tmp_path.iterdir()
    assert file.stat().st_size == 0


def test_threads_exclude_each_other(tmp_path: Path) -> None:
    """A second thread of one process finds the lease taken, or waits for it if it is told to."""
    path = tmp_path / "lock"
    found: list[bool] = []
    order: list[object] = []

    def try_it() -> None:
        with leased(path) as had:
            found.append(had)

    def wait_for_it() -> None:
        with leased(path, wait=True) as had:
            order.append(had)

    with leased(path):
        trying, waiting = threading.Thread(target=try_it), threading.Thread(target=wait_for_it)
        trying.start()
        trying.join()
        waiting.start()
        order.append("released")
    waiting.join()
    assert (found, order) == ([False], ["released", True])


def test_a_copy_of_the_handle_holds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lease ends with its block, even if a process being started still shares the open file."""
    opened, copies = os.open, list[int]()

    def open_and_copy(*given: Any, **named: Any) -> int:
        copies.append(os.dup(handle := opened(*given, **named)))
        return handle

    with monkeypatch.context() as patched:
        patched.setattr("store.polls.leases.os.open", open_and_copy)
        with leased(tmp_path / "lock") as had:
            assert had
    try:
        with leased(tmp_path / "lock") as again:
            assert again
    finally:
        for copy in copies:
            os.close(copy)


def test_a_killed_process_holds_nothing(tmp_path: Path) -> None:
    """Processes exclude each other; the kernel releases what a killed one held."""
    program = (
        "import sys; from pathlib import Path; from store.polls.leases import Leases\n"
        "with Leases(Path(sys.argv[1])).lease('crm', 'A'): print('held', flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], cwd=SHIPPED_DATA.parent,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout
        assert process.stdout.readline() == "held\n"
        leases = Leases(tmp_path)
        assert leases.held("A") == 1
        with leases.lease("crm", "A") as had:
            assert not had
        process.kill()
        process.wait()
    assert leases.held("A") == 0
    with leases.lease("crm", "A") as had:
        assert had


def test_a_system_without_such_locks_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where they are missing nothing is asked, with a sentence."""
    monkeypatch.delattr(fcntl, "F_OFD_SETLK")
    with pytest.raises(OSError, match="polling needs open file description locks"):
        Leases(tmp_path).lease("crm", "A").__enter__()
    assert held(tmp_path / "none") == 0
