"""The watchdog of systemd: it is told that all is well while the files are looked at.

With ``WatchdogSec=`` in the unit, systemd restarts a service that falls silent for so long.
Source: sd_notify(3), sd_watchdog_enabled(3).
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from typing import TYPE_CHECKING

from store.web.health import UNSEEN_AFTER

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from store.memory import Store

log = logging.getLogger(__name__)


def begin(store: Store, environ: Mapping[str, str]) -> None:
    """Tell systemd, twice in its interval, as long as the store is kept current; else nobody."""
    address, interval = environ.get("NOTIFY_SOCKET"), environ.get("WATCHDOG_USEC", "")
    if not (address and interval.isdigit() and int(interval)):
        return
    # a name in the abstract namespace is written with @, and begins with a null byte
    place = f"\0{address[1:]}" if address.startswith("@") else address
    every = int(interval) / 2e6
    threading.Thread(
        target=_tell, args=[place, every, lambda: _is_watched(store)], name="watchdog", daemon=True
    ).start()


def _is_watched(store: Store) -> bool:
    return time.time() - store.looked_at < UNSEEN_AFTER


def _tell(place: str, every: float, is_well: Callable[[], bool]) -> None:
    while threading.main_thread().is_alive():
        if is_well():
            try:
                with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
                    line.sendto(b"WATCHDOG=1", place)
            except FileNotFoundError:
                return  # whoever listened is gone
            except OSError as error:
                log.warning("systemd cannot be told that all is well: %s", error.strerror)
        time.sleep(every)
