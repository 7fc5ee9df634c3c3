"""A server for measurements: serves a data directory, and notes how late a 1 ms ticker comes.

Usage: python ticking_server.py DATA_DIR PORT REPORT. On SIGTERM it writes REPORT: a JSON list of
[Unix time, delay in ms] of every tick that came over 5 ms late.
"""

import json
import signal
import sys
import threading
import time
from pathlib import Path

from werkzeug.serving import make_server

from app import create_app
from store.gunicorn import put_requests_first
from store.settings import Settings

LATE = 0.005


def tick(late: list[tuple[float, float]], stop: threading.Event) -> None:
    """Sleep for a millisecond again and again; note how much longer it took."""
    last = time.perf_counter()
    while not stop.is_set():
        time.sleep(0.001)
        now = time.perf_counter()
        if now - last - 0.001 > LATE:
            late.append((time.time(), (now - last - 0.001) * 1000))
        last = now


def main(directory: str, port: str, report: str) -> None:
    """Serve until SIGTERM."""
    base = f"http://127.0.0.1:{port}"
    app = create_app(Settings(data_dir=Path(directory), base_url=base))
    put_requests_first()  # as a worker of gunicorn does
    app.extensions["watcher"].ensure_running()
    server = make_server("127.0.0.1", int(port), app, threaded=True)
    late: list[tuple[float, float]] = []
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
    threading.Thread(target=tick, args=(late, stop)).start()
    server.serve_forever()
    stop.set()
    Path(report).write_text(json.dumps(late), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
