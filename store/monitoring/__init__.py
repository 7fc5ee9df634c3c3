"""Monitoring: metrics for Prometheus, readiness and watchdog signals for systemd.

With ``WatchdogSec=`` in the unit, systemd restarts a service that falls silent for so long; a
worker that hangs alone is replaced by gunicorn before. Sources: sd_notify(3),
sd_watchdog_enabled(3).
"""

import logging
import threading
import time
from collections.abc import Mapping

from flask import Flask
from gunicorn.systemd import sd_notify

from store.store import Store
from store.web.health import UNSEEN_AFTER

log = logging.getLogger(__name__)


def begin(app: Flask) -> None:
    """Start what the settings ask for; every server calls this, ``flask run`` and gunicorn."""
    store, settings = app.extensions["store"], app.extensions["settings"]
    notify(store, settings.environ)
    if settings.metrics_port:
        from store.monitoring import metrics  # noqa: PLC0415 - most servers have none

        metrics.begin(app, settings.metrics_port)


def notify(store: Store, environ: Mapping[str, str]) -> None:
    """Say that we answer, then, twice in each interval, that the store is current."""
    sd_notify("READY=1", log)
    interval = environ.get("WATCHDOG_USEC", "")
    if environ.get("NOTIFY_SOCKET") and interval.isdigit() and int(interval):
        every = int(interval) / 2e6
        threading.Thread(target=_tell, args=[store, every], name="watchdog", daemon=True).start()


def _tell(store: Store, every: float) -> None:
    while threading.main_thread().is_alive():
        if time.time() - store.looked_at < UNSEEN_AFTER:
            sd_notify("WATCHDOG=1", log)
        time.sleep(every)
