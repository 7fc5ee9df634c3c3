"""systemd is told that all is well for as long as it is."""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING

import pytest
from builders import app_over, write_data

from store.monitoring import watchdog

if TYPE_CHECKING:
    from pathlib import Path

    from store.memory import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    found: Store = app_over(write_data(tmp_path / "data")).extensions["store"]
    return found


@pytest.mark.parametrize("looked_ago", [0, 3600])
def test_it_is_told_while_the_files_are_looked_at(
    store: Store, tmp_path: Path, looked_ago: int
) -> None:
    """Twice in its interval; a service that no longer looks falls silent and is restarted."""
    address = str(tmp_path / "notify")
    store.looked_at = time.time() - looked_ago
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(address)
        systemd.settimeout(5 if not looked_ago else 0.2)
        watchdog.begin(store, {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "100000"})
        if looked_ago:
            with pytest.raises(TimeoutError):
                systemd.recv(100)
        else:
            assert [systemd.recv(100), systemd.recv(100)] == [b"WATCHDOG=1"] * 2


@pytest.mark.parametrize("environ", [{}, {"NOTIFY_SOCKET": "/x"}, {"WATCHDOG_USEC": "1"}])
def test_elsewhere_nobody_is_told(
    store: Store, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where systemd did not ask, there is no thread."""
    monkeypatch.setattr("store.monitoring.watchdog.threading.Thread", None)
    watchdog.begin(store, environ)
