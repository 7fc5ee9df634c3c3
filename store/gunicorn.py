"""Production settings: ``gunicorn -c python:store.gunicorn 'app:create_app()'``.

One worker holds the data and answers with threads; put a proxy in front (see README.md).
"""

from __future__ import annotations

import gc
import os
from typing import Any

from store.web.hosts import address

workers = 1
worker_class = "gthread"
threads = 8
timeout = 60
graceful_timeout = 20
keepalive = 15


def post_fork(server: Any, worker: Any) -> None:
    """Let the application know where it listens, for addresses when BASE_URL is not set."""
    gc.disable()  # until the data is loaded; see post_worker_init
    listener = worker.sockets[0].getsockname()
    if isinstance(listener, tuple):
        scheme = "https" if server.cfg.is_ssl else "http"
        os.environ["LISTENING_AT"] = address(listener[0], listener[1], scheme)


def post_worker_init(worker: Any) -> None:  # noqa: ARG001 - gunicorn calls it so
    """Spare the collector what was loaded: it is there to stay."""
    gc.freeze()
    gc.enable()
