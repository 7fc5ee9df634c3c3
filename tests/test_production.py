"""Days of production in minutes: reloads, crashes and slow clients under load."""

import hashlib
import http.client
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
import servers
from builders import answered, command, write_data
from conftest import Report

pytestmark = pytest.mark.slow

needs_nginx = pytest.mark.skipif(not servers.NGINX, reason="nginx is not installed")
needs_wrk = pytest.mark.skipif(not shutil.which("wrk"), reason="wrk is not installed")

BEST = "/api/v1/best/crm-software.json"

RELOADING = """
import sys, threading, time
sys.path[:0] = [{root!r}, {tests!r}]
from pathlib import Path
from app import create_app
from builders import write_json
from store.settings import Settings
data = Path({data!r})
app = create_app(Settings(data_dir=data, base_url="https://rankings.example"))

def reload():
    for n in range(1, {times} + 1):
        title = f"Best version {{n}}"
        value = {{"version": 1, "title": title, "question": f"What is the best version {{n}}?"}}
        write_json(data / "categories/crm-software.json", value)
        app.extensions["store"].reload()
        time.sleep(0.02)
    (data.parent / "done").touch()

threading.Thread(target=reload, daemon=True).start()
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    names = [f"Product {letter}" for letter in "ABCDE"]
    return write_data(
        tmp_path / "data",
        categories={"crm-software": {"title": "Best version 0"}},
        polls=[answered(model, names) for model in "ABCD"],
    )


class Load:
    """Readers who ask one address again and again, each on a kept connection."""

    def __init__(self, port: int, check: Callable[[http.client.HTTPResponse, bytes], Any]) -> None:
        self.outcomes: Counter[Any] = Counter()
        self._port, self._check = port, check
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self, readers: int, per_second: float) -> None:
        """Begin; ``per_second`` is the rate of all readers together."""
        for _ in range(readers):
            thread = threading.Thread(target=self._read, args=[readers / per_second])
            thread.start()
            self._threads.append(thread)

    def stop(self) -> None:
        """End, and wait until every reader has."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _read(self, pause: float) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=10)
        while not self._stop.wait(pause):
            try:
                connection.request("GET", BEST)
                answer = connection.getresponse()
                outcome = self._check(answer, answer.read())
            except (OSError, http.client.HTTPException) as error:
                outcome = repr(error)
                connection.close()
            self.outcomes[outcome] += 1
        connection.close()


def of_one_version(answer: http.client.HTTPResponse, body: bytes) -> Any:
    """The status, or what is wrong: a body that mixes versions, or does not fit its tag."""
    tag = f'W/"{hashlib.blake2b(body, digest_size=8).hexdigest()}"'
    if answer.status == 200 and answer.headers["ETag"] != tag:
        return "the tag is not the body's"
    versions = set(re.findall(rb"version (\d+)", body))
    return answer.status if len(versions) == 1 else f"versions {versions}"


def test_a_thousand_reloads_under_load(data: Path, tmp_path: Path, report: Report) -> None:
    """200 requests a second see no error, no mixed body and no tag of another version."""
    program = RELOADING.format(
        root=str(servers.ROOT), tests=str(servers.ROOT / "tests"), data=str(data), times=1000
    )
    (tmp_path / "reloading.py").write_text(program)
    port = servers.free_port()
    command = [sys.executable, "-m", "gunicorn", "-w1", "-k", "gthread", "--threads", "8"]
    command += ["-b", f"127.0.0.1:{port}", "reloading:app"]
    with servers.running(command, port, {}, tmp_path / "log", tmp_path):
        load = Load(port, of_one_version)
        load.start(readers=8, per_second=200)
        while not (tmp_path / "done").exists():
            time.sleep(0.1)
        load.stop()
    report(f"1,000 reloads under load: {dict(load.outcomes)}")
    assert load.outcomes.keys() == {200}


@needs_wrk
def test_a_million_requests_leave_the_memory_as_it_was(
    data: Path, tmp_path: Path, report: Report
) -> None:
    """RSS grows by less than 5 % in them, once the cache is full of searches never seen again."""
    script = tmp_path / "mix.lua"
    script.write_text(
        'local paths = {"/api/v1/best/crm-software.json", "/api/v1/product/product-a.json",\n'
        '  "/api/v1/history?slug=crm-software", "/api/v1/changes.json", "/api/v1/nope"}\n'
        "local run, n = os.time(), 0\n"
        "request = function() n = n + 1\n"
        '  local words = "crm+" .. run .. "+" .. n\n'
        '  if n % 7 == 0 then return wrk.format(nil, "/api/v1/search?q=" .. words) end\n'
        "  return wrk.format(nil, paths[n % #paths + 1]) end\n"
    )
    with servers.gunicorn(data, tmp_path / "log") as server:

        def ask(requests: int) -> None:
            asked = 0
            while asked < requests:
                command = ["wrk", "-t1", "-c8", "-d20s", "-s", str(script)]
                command += [f"http://127.0.0.1:{server.port}"]
                said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
                asked += int((re.search(r"(\d+) requests in", said) or [0, 0])[1])

        def resident() -> int:
            status = f"/proc/{servers.tree_of(server.process.pid)[1]}/status"
            with open(status, encoding="ascii") as file:  # noqa: PTH123 - no file of ours
                return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))

        ask(400_000)
        before = resident()
        ask(1_000_000)
        after = resident()
    report(f"1,000,000 requests: RSS {before:,} kB, then {after:,} kB")
    assert after < before * 1.05


def proxied(data: Path, app: int) -> str:
    """The shipped nginx configuration before an application."""
    return command(data, "deploy", "nginx.conf", "--app", f"127.0.0.1:{app}").stdout


@needs_nginx
def test_nine_thousand_idle_or_slow_clients_harm_nobody(
    data: Path, tmp_path: Path, report: Report
) -> None:
    """Behind the shipped nginx, probes take under 100 ms while 9,000 clients hold connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if hard < 19_500:
        pytest.skip(f"only {hard} open files are allowed here")
    port = servers.free_port()
    with ExitStack() as stack:
        app = stack.enter_context(servers.gunicorn(data, tmp_path / "log"))
        site = proxied(data, app.port)
        proxy = stack.enter_context(servers.nginx(site, tmp_path / "nginx", port))
        for kind, sent in (
            ("idle", b""),
            ("slow headers", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "),
            ("slow bodies", b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\n{"),
        ):
            held = []
            try:
                for _ in range(9_000):
                    held.append(socket.create_connection(("127.0.0.1", port), timeout=10))
                    held[-1].sendall(sent)
                times = []
                for n in range(40):
                    begun = time.monotonic()
                    path = BEST if n % 2 else f"/api/v1/search?q=crm{n}"  # cached, and not
                    assert proxy.get(path).status == 200
                    times.append(time.monotonic() - begun)
                worst = max(times) * 1000
                report(f"9,000 clients, {kind}: 40 probes, worst {worst:.0f} ms")
                assert worst < 100
            finally:
                for one in held:
                    one.close()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@needs_nginx
def test_a_replica_may_die_and_another_reload(data: Path, tmp_path: Path, report: Report) -> None:
    """Behind the shipped nginx: kill -9 one, HUP the other; lost is only what a death cut short."""
    ports, port = [servers.free_port(), servers.free_port()], servers.free_port()
    site = proxied(data, ports[0]).replace("proxy_cache rankings;", "proxy_cache off;")
    one = f"server 127.0.0.1:{ports[0]} max_fails=1 fail_timeout=2s;"
    site = site.replace(one, f"{one}\n{one.replace(str(ports[0]), str(ports[1]))}")
    with ExitStack() as stack:
        first = stack.enter_context(servers.gunicorn(data, tmp_path / "one.log", ports[0]))
        second = stack.enter_context(servers.gunicorn(data, tmp_path / "two.log", ports[1]))
        stack.enter_context(servers.nginx(site, tmp_path / "nginx", port))
        load = Load(port, lambda answer, _: answer.status)
        load.start(readers=16, per_second=400)
        for _ in range(5):
            time.sleep(1)
            with suppress(ProcessLookupError):
                os.kill(servers.tree_of(first.process.pid)[1], signal.SIGKILL)
            time.sleep(3)
            second.process.send_signal(signal.SIGHUP)
        time.sleep(3)
        load.stop()
    report(f"5 x kill -9 of a replica's worker and HUP of the other: {dict(load.outcomes)}")
    cut_short = [outcome for outcome in load.outcomes.elements() if outcome != 200]
    assert all(str(outcome).startswith("IncompleteRead") for outcome in cut_short)
    assert len(cut_short) <= 5, "one for each worker killed"


def test_a_server_that_is_stopped_ends_what_it_began(data: Path, tmp_path: Path) -> None:
    """SIGTERM under load: requests under way are answered, and the process is gone in time."""
    with servers.gunicorn(data, tmp_path / "log") as server:
        load = Load(server.port, lambda answer, _: answer.status)
        load.start(readers=8, per_second=400)
        time.sleep(1)
        server.process.send_signal(signal.SIGTERM)
        begun = time.monotonic()
        assert server.process.wait(20) == 0
        took = time.monotonic() - begun
        load.stop()
    assert took < 20
    refused = [o for o in load.outcomes if o != 200]
    assert all("refused" in str(o) or "reset" in str(o) or "Remote" in str(o) for o in refused)
