"""systemd is told what is so: ready once a worker answers, well while the files are looked at."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import servers
from builders import app_over, write_data
from processes import environment

from store import monitoring
from store.store import Store

SILENCE = 0.5
"""Seconds; the interval in these tests is a tenth of one."""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    found: Store = app_over(write_data(tmp_path / "data")).extensions["store"]
    yield found
    found.looked_at = 0.0  # so that its thread says nothing in other tests


@pytest.fixture
def systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """What systemd listens on; the environment names it, as a unit's does."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.settimeout(30)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        monkeypatch.setenv("WATCHDOG_USEC", "100000")
        yield listening


@pytest.mark.parametrize("looked_ago", [0, 3600])
def test_it_is_told_while_the_files_are_looked_at(
    store: Store, systemd: socket.socket, looked_ago: int
) -> None:
    """Twice in its interval; a service that no longer looks falls silent and is restarted."""
    store.looked_at = time.time() - looked_ago
    monitoring.notify(store, os.environ)
    assert systemd.recv(100) == b"READY=1"
    if looked_ago:
        assert is_silent(systemd)
    else:
        assert [systemd.recv(100), systemd.recv(100)] == [b"WATCHDOG=1"] * 2


@pytest.mark.parametrize("environ", [{}, {"NOTIFY_SOCKET": "/x"}, {"WATCHDOG_USEC": "1"}])
def test_elsewhere_nobody_is_told(
    store: Store, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where systemd did not ask, there is no thread."""
    monkeypatch.setattr("store.monitoring.threading.Thread", None)
    monitoring.notify(store, environ)


def test_a_worker_that_hangs_falls_silent(tmp_path: Path, systemd: socket.socket) -> None:
    """It is the worker that says it is ready, not gunicorn before anybody can answer."""
    systemd.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    with servers.gunicorn(write_data(tmp_path / "data"), tmp_path / "log") as server:
        first, who, *_ = systemd.recvmsg(100, 100)
        worker = int.from_bytes(who[0][2][:4], sys.byteorder)
        assert (first, worker) == (b"READY=1", servers.tree_of(server.process.pid)[1])
        assert systemd.recv(100) == b"WATCHDOG=1"
        os.kill(worker, signal.SIGSTOP)
        assert is_silent(systemd)
        os.kill(worker, signal.SIGCONT)
        assert systemd.recv(100) == b"WATCHDOG=1"


def test_what_cannot_start_is_never_called_ready(tmp_path: Path, systemd: socket.socket) -> None:
    """So ``systemctl start`` says that it failed."""
    env = environment(write_data(tmp_path / "data"), METRICS_PORT="no port")
    command = [sys.executable, "-m", "gunicorn", "-c", "python:store.gunicorn", "-b", "127.0.0.1:0"]
    ended = subprocess.run(
        [*command, "app:create_app()"], cwd=servers.ROOT, env=env, capture_output=True, check=False
    )
    assert ended.returncode, "it ends, and systemd starts it again"
    assert is_silent(systemd)


def is_silent(systemd: socket.socket) -> bool:
    """Whether nothing more comes after what is on its way."""
    systemd.settimeout(0)
    with suppress(BlockingIOError):
        while systemd.recv(100):
            pass
    systemd.settimeout(SILENCE)
    try:
        return not systemd.recv(100)
    except TimeoutError:
        return True
    finally:
        systemd.settimeout(30)
