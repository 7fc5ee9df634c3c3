"""What metrics cost: CPU per request of ``best`` with METRICS_PORT and without, in turn.

    python tests/benchmarks/metrics_cost.py [--rounds 8] [--scrapes 0] [--every 0]

With ``--scrapes N`` the metrics are then scraped N times, ``--every`` so many seconds and with a
request each, and what the process's memory grew by is printed: 3,600 are what an hour of
Prometheus at one a second asks.
"""

import argparse
import sys
import tempfile
import time
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from statistics import median

if __name__ == "__main__":
    tests = Path(__file__).resolve().parent.parent
    sys.path[:0] = [str(tests.parent), str(tests)]

import benchmark
import servers

SETTLED = 0.06
"""Seconds of CPU in two that a server may take asked nothing; looking at files takes 0.03."""


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--scrapes", type=int, default=0)
    parser.add_argument("--every", type=float, default=0)
    asked = parser.parse_args()
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        port = servers.free_port()
        data = servers.ROOT / "data"
        plain = stack.enter_context(servers.gunicorn(data, home / "plain.log"))
        metered = servers.gunicorn(data, home / "counted.log", METRICS_PORT=str(port))
        counted = stack.enter_context(metered)
        path = "/api/v1/best/crm-software.json"
        targets = [
            benchmark.Target(name, server.process.pid, server.port, path)
            for name, server in (("without", plain), ("with", counted))
        ]
        for server in (plain, counted):
            settle(server)
        costs = benchmark.measure(targets, asked.rounds, 3)
        without, with_ = (median(cost.cpu for cost in costs[t.name]) for t in targets)
        pairs = zip(costs["without"], costs["with"], strict=True)
        more = median(b.cpu / a.cpu for a, b in pairs) - 1
        print(f"{without:.1f} µs without, {with_:.1f} µs with metrics: {more:+.1%}")  # noqa: T201
        if asked.scrapes:
            scrape(counted, port, asked.scrapes, asked.every)


def settle(server: servers.Server) -> None:
    """Wait until answers are made ahead: the server that began later would seem the dearer one."""
    before = -1.0
    while server.cpu() - before > SETTLED:
        before = server.cpu()
        time.sleep(2)


def scrape(server: servers.Server, port: int, times: int, every: float) -> None:
    """Scrape again and again; what memory grew by after the first tenth."""
    before = 0.0
    for n in range(times):
        if n == times // 10:
            before = server.memory()
        time.sleep(every)
        server.get("/api/v1/best/crm-software.json")
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            answer.read()
    print(f"{times} scrapes: {server.memory() - before:+.1f} MB")  # noqa: T201


if __name__ == "__main__":
    main()
