"""Production settings: ``gunicorn -c python:store.gunicorn 'app:create_app()'``.

One worker holds the data and answers with threads. It is never public: a proxy in front
(``flask deploy nginx.conf``) keeps slow clients away from the threads. Times are in seconds.
"""

import gc
import json
import logging
import os
import signal
import sys
from datetime import UTC, datetime
from typing import Any

from flask.cli import load_dotenv
from flask.helpers import get_load_dotenv
from gunicorn.glogging import Logger
from gunicorn.http.errors import ParseException

from store import monitoring
from store.files import DataDirectoryError, Files
from store.settings import Settings, SettingsError
from store.text import rfc3339
from store.web.errors import handle_malformed_body
from store.web.hosts import address

bind = "127.0.0.1:8000"
workers = 1  # a second one would hold everything twice; more machines serve more readers
worker_class = "gthread"
threads = 8
timeout = 60
graceful_timeout = 20  # what a request or a poll under way has to end after SIGTERM
keepalive = 75  # longer than nginx keeps its end, so that it never uses a connection just closed
max_requests = 0  # recycling would end the polls of the worker that runs the schedule
control_socket_disable = True
forwarder_headers = ""  # no client says where the application is mounted


SWITCH_INTERVAL = 0.001
"""Seconds for which the watcher may keep the interpreter from a request (Python's default: 0.005).

Beside derivations, a reader's p99 is half as long.
"""


class JsonFormatter(logging.Formatter):
    """The format of our logs: one line of JSON a record, with its stack trace if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, without the newline."""
        line = {
            "time": rfc3339(datetime.fromtimestamp(record.created, UTC)),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


class JsonLogger(Logger):  # type: ignore[misc] # gunicorn has no types
    """One log for gunicorn's messages and ours; requests are logged by the proxy."""

    def setup(self, cfg: Any) -> None:
        """Write every record of the process to the error log's handler."""
        super().setup(cfg)
        for handler in self.error_log.handlers:
            handler.setFormatter(JsonFormatter())
        root = logging.getLogger()
        root.handlers[:] = self.error_log.handlers
        root.setLevel(self.error_log.level)


logger_class = JsonLogger


def on_starting(server: Any) -> None:
    """Keep gunicorn from telling systemd that it is ready; a worker does, once it can answer.

    Where a worker could not start, end at once with the sentence: it would leave a stack trace.
    """
    server.notify_socket = os.environ.pop("NOTIFY_SOCKET", None)
    try:
        _read_dotenv()
        settings = Settings.from_env()
        settings.check_schedule()
        Files(settings.data_dir).scan().check_governing()
    except (DataDirectoryError, SettingsError) as error:
        server.log.critical("%s", error)
        sys.exit(1)


def post_fork(server: Any, worker: Any) -> None:
    """Let the application know where it listens: for links when BASE_URL is not set."""
    if server.notify_socket:
        os.environ["NOTIFY_SOCKET"] = server.notify_socket
    listener = worker.sockets[0].getsockname()
    if isinstance(listener, tuple):
        scheme = "https" if server.cfg.is_ssl else "http"
        os.environ["LISTENING_AT"] = address(listener[0], listener[1], scheme)


def _read_dotenv() -> None:
    """Read ``.env`` as the ``flask`` command does; the environment's own values stand.

    Raises:
        SettingsError: it cannot be read, and may say which data to serve.
    """
    try:
        if get_load_dotenv():
            load_dotenv()
    except (OSError, ValueError) as error:
        hint = "mend it, or set FLASK_SKIP_DOTENV=1 to leave it out"
        raise SettingsError(f".env cannot be read: {error}; {hint}") from None


def post_worker_init(worker: Any) -> None:
    """Watch the files, stand by to poll, and tell the operator's machines.

    With POLL_ENABLED=1 every worker is ready, and one of all polls.
    """
    put_requests_first()
    # A chunked body is taken apart as it is read, which is when the application asks for it.
    worker.wsgi.register_error_handler(ParseException, handle_malformed_body)
    extensions = worker.wsgi.extensions
    extensions["watcher"].ensure_running()
    if extensions["settings"].poll_enabled:
        from store.polls.schedule import begin  # noqa: PLC0415 - most servers do not poll

        worker.schedule = begin(extensions, signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)
    monitoring.begin(worker.wsgi)


def put_requests_first() -> None:
    """Keep what was loaded from the collector, and the watcher from holding the interpreter.

    A full collection of the shipped data would stop all threads for half a second.
    """
    gc.collect()
    gc.freeze()
    sys.setswitchinterval(SWITCH_INTERVAL)


def worker_exit(server: Any, worker: Any) -> None:  # noqa: ARG001 - gunicorn calls it so
    """Let polls that are under way be recorded before the worker is gone."""
    if hasattr(worker, "schedule"):
        worker.schedule.stop()
