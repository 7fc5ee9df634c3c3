"""What an operator's machines are told: metrics, the watchdog of systemd."""

from __future__ import annotations

from typing import TYPE_CHECKING

from store.monitoring import watchdog

if TYPE_CHECKING:
    from flask import Flask


def begin(app: Flask) -> None:
    """Tell them what the settings ask for, once a serving process has its scheduler."""
    store, settings = app.extensions["store"], app.extensions["settings"]
    watchdog.begin(store, settings.environ)
    if settings.metrics_port:
        from store.monitoring import metrics  # noqa: PLC0415 - most servers have none

        metrics.begin(app, settings.metrics_port)
