"""What answers cost: CPU per request beside a bare Flask app and a bare WSGI body.

    python tests/benchmarks/benchmark.py              100 categories, 26 weekly polls
    python tests/benchmarks/benchmark.py --data DIR   a data directory, such as scale.py fills
    python tests/benchmarks/benchmark.py --peer 'Datasette:http://127.0.0.1:8001/…' --pid 123
                                                      a server of somebody else, already running

All run on one gunicorn configuration, take turns, and are asked by wrk over loopback. The cost is
the CPU time of the server's processes per request, the median over rounds; a ratio above 1 is
cheaper than the bare Flask app. Needs wrk; with nginx, its cache and its static files are measured.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import NamedTuple

if __name__ == "__main__":
    tests = Path(__file__).resolve().parent.parent
    sys.path[:0] = [str(tests.parent), str(tests)]

from collections.abc import Iterator, Sequence

import scale
import servers
from builders import command

HELLO = """
from flask import Flask
app = Flask(__name__)
@app.get("/")
def hello():
    return "Hello, World!"
"""
BODY = """
from pathlib import Path
body = Path("body").read_bytes()
headers = [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
def app(environ, start_response):
    start_response("200 OK", headers)
    return [body]
"""
QUERIES = """
local queries, n = {{ {} }}, 0
request = function()
  n = n + 1
  return wrk.format(nil, "/api/v1/search?q=" .. queries[n % #queries + 1] .. "+" .. n)
end
"""


class Target(NamedTuple):
    """Something to ask for; ``options`` are wrk's."""

    name: str
    pid: int
    port: int
    path: str
    options: tuple[str, ...] = ()


class Cost(NamedTuple):
    """One round: CPU in microseconds per request, requests per second, p99 in milliseconds."""

    cpu: float
    rate: float
    p99: float


def ask(target: Target, seconds: int) -> Cost:
    """Let wrk ask for a while; what it cost the server."""
    url = f"http://127.0.0.1:{target.port}{target.path}"
    command = ["wrk", "-t1", "-c8", f"-d{seconds}s", "--latency", *target.options, url]
    before = servers.cpu_of(target.pid)
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    used = servers.cpu_of(target.pid) - before
    if bad := re.search(r"Non-2xx.*|Socket errors.*", said):
        print(f"{target.name}: {bad[0]}")  # noqa: T201
    requests = int(re.search(r"(\d+) requests in", said)[1])  # type: ignore[index]
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", said)[1])  # type: ignore[index]
    amount, unit = re.search(r"99%\s+([\d.]+)(us|ms|s)", said).groups()  # type: ignore[union-attr]
    scales = {"us": 0.001, "ms": 1.0, "s": 1000.0}
    return Cost(used / max(requests, 1) * 1e6, rate, float(amount) * scales[unit])


def bare(source: str, home: Path, body: bytes, port: int) -> list[str]:
    """The command that serves a bare application with the settings of ours."""
    home.mkdir()
    (home / "bare.py").write_text(source)
    (home / "body").write_bytes(body)
    (home / "settings.py").write_text(
        "workers, worker_class, threads, keepalive = 1, 'gthread', 8, 75\n"
        "control_socket_disable = True\n"
    )
    gunicorn = [sys.executable, "-m", "gunicorn", "-c", "settings.py"]
    return [*gunicorn, "-b", f"127.0.0.1:{port}", "bare:app"]


def targets(data: Path, home: Path, stack: ExitStack) -> Iterator[Target]:
    """Start every server and name what is asked of it."""
    ours = stack.enter_context(servers.gunicorn(data, home / "ours.log"))
    slug = min(path.stem for path in (data / "history").iterdir())
    best = f"/api/v1/best/{slug}.json"
    answer, us = ours.get(best), (ours.process.pid, ours.port)
    for name, source in (("hello", HELLO), ("wsgi", BODY)):
        port = servers.free_port()
        command = bare(source, home / name, answer.body, port)
        log = home / f"{name}.log"
        server = stack.enter_context(servers.running(command, port, {}, log, home / name))
        title = "bare Flask hello" if name == "hello" else "bare WSGI body"
        yield Target(title, server.process.pid, port, "/")
    script = home / "queries.lua"
    words = [path.stem.replace("-", "+") for path in sorted((data / "categories").iterdir())]
    script.write_text(QUERIES.format(", ".join(f'"{word}"' for word in words[:1000])))
    yield Target("best", *us, best)
    metrics = str(servers.free_port())
    metered = stack.enter_context(servers.gunicorn(data, home / "log", METRICS_PORT=metrics))
    yield Target("best, with metrics", metered.process.pid, metered.port, best)
    yield Target("best, gzip", *us, best, ("-H", "Accept-Encoding: gzip"))
    yield Target("best, 304", *us, best, ("-H", f"If-None-Match: {answer.headers['etag']}"))
    leader = json.loads(answer.body)["combined"][0]["slug"]
    yield Target("product", *us, f"/api/v1/product/{leader}.json")
    yield Target("page", *us, f"/best/{slug}")
    yield Target("unknown slug, 404", *us, "/api/v1/best/no-such-thing.json")
    yield Target("history of 100", *us, f"/api/v1/history?slug={slug}&limit=100")
    yield Target("search, all different", *us, "/", ("-s", str(script)))
    yield Target("search, repeated", *us, f"/api/v1/search?q={words[0]}")
    if servers.NGINX:
        yield from behind_nginx(ours, answer.body, best, home, stack)


def behind_nginx(
    ours: servers.Server, body: bytes, best: str, home: Path, stack: ExitStack
) -> Iterator[Target]:
    """The shipped configuration, and a static file from the same server."""
    port, static = servers.free_port(), servers.free_port()
    data, app = servers.ROOT / "data", f"127.0.0.1:{ours.port}"
    environ = {"DATA_DIR": str(data)}
    site = command(data, "deploy", "nginx.conf", "--app", app, environ=environ).stdout
    home.chmod(0o755)
    (home / "files").mkdir()
    (home / "files" / "body.json").write_bytes(body)
    site += f"server {{ listen 127.0.0.1:{static}; root {home}/files; access_log {home}/s.log; }}\n"
    server = stack.enter_context(servers.nginx(site, home / "nginx", port))
    yield Target("nginx static file", server.process.pid, static, "/body.json")
    yield Target("best, nginx cache", server.process.pid, port, best)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--peer", action="append", default=[], metavar="NAME:URL")
    parser.add_argument("--pid", action="append", default=[], type=int)
    asked = parser.parse_args()
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        data = asked.data or home / "data"
        if not asked.data:
            scale.fill(data, weeks=26, most=100)
        found = [*targets(data, home, stack), *peers(asked.peer, asked.pid)]
        report(measure(found, asked.rounds, asked.seconds))


def peers(named: Sequence[str], pids: Sequence[int]) -> Iterator[Target]:
    """Servers of somebody else, by name, address and process."""
    for one, pid in zip(named, pids, strict=True):
        name, _, url = one.partition(":")
        port, path = re.search(r":(\d+)(/.*)", url).groups()  # type: ignore[union-attr]
        yield Target(name, pid, int(port), path)


def measure(found: Sequence[Target], rounds: int, seconds: int) -> dict[str, list[Cost]]:
    """Ask all in turn, round after round, after one short round to warm up."""
    costs: dict[str, list[Cost]] = {target.name: [] for target in found}
    for target in found:
        ask(target, 1)
    for _ in range(rounds):
        for target in found:
            costs[target.name].append(ask(target, seconds))
            time.sleep(0.2)
    return costs


def report(costs: dict[str, list[Cost]]) -> None:
    """Print a table; the ratio is how many times cheaper than the bare Flask app."""
    hello = median(cost.cpu for cost in costs["bare Flask hello"])
    print(f"{'':24} {'CPU µs':>8} {'x hello':>8} {'req/s':>8} {'p99 ms':>8}")  # noqa: T201
    for name, rounds in costs.items():
        cpu, rate, p99 = (median(column) for column in zip(*rounds, strict=True))
        print(f"{name:24} {cpu:8.0f} {hello / cpu:8.2f} {rate:8.0f} {p99:8.1f}")  # noqa: T201


if __name__ == "__main__":
    main()
