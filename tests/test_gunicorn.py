"""The service as it runs in production: what strangers send it, and how it stops."""

import json
import os
import random
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import hostile
import pytest
import servers
from builders import answered, write_data
from conftest import Report

HEAD = re.compile(rb"HTTP/1\.[01] (\d{3}) ")
OURS = re.compile(rb"https://rankings\.example/[^\s>]*")
"""An address of ours, which may hold what was asked for."""


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("gunicorn") / "log"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, log: Path) -> Iterator[servers.Server]:
    names = [f"Product {letter}" for letter in "ABCDE"]
    data = write_data(
        tmp_path_factory.mktemp("data") / "data",
        categories={slug: {"title": f"Best {slug}"} for slug in ("crm-software", "help-desk")},
        polls=[answered(model, names) for model in "ABCD"],
    )
    with servers.gunicorn(data, log) as running:
        yield running


def send(port: int, request: bytes, wait: float = 10) -> bytes:
    """Send raw bytes and take all that comes back until the server closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=wait) as connection:
        received = b""
        try:
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
            while part := connection.recv(65_536):
                received += part
        except TimeoutError:
            raise
        except OSError:  # refused in the middle of a body that nobody wants
            pass
        return received


def check(request: bytes, received: bytes) -> int:
    """What must hold whatever was sent; the status, 0 where the connection was just closed."""
    received = received.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n")
    if not received:
        return 0
    found = HEAD.match(received)
    assert found, (request[:300], received[:300])
    status = int(found[1])
    assert status < 500 or status == 501, (request[:300], received[:600])
    head, _, body = received.partition(b"\r\n\r\n")
    for secret in (b"Traceback", b"/site-packages/", str(servers.ROOT).encode()):
        assert secret not in received, (request[:300], received)
    if b"text/html" not in head:  # not a refusal of gunicorn's own, which is for nginx to see
        assert b"access-control-allow-origin: *" in head.lower(), (request[:300], head)
        assert b"\r\nset-cookie" not in head.lower()  # a Location may repeat it, encoded
        elsewhere = OURS.sub(b"", head)
        assert b"evil" not in elsewhere, (request[:300], head)
        assert b"nosniff" in elsewhere, (request[:300], head)
    if status >= 400 and b"application/problem+json" in head:
        if body:
            length = re.search(rb"(?i)content-length: (\d+)", head)
            assert length
            assert json.loads(body[: int(length[1])])["status"] == status
        assert b"no-store" in head
    return status


def attack(server: servers.Server, log: Path, seeds: range) -> dict[int, int]:
    """Send a hostile request for each seed; how often each status came."""
    found: dict[int, int] = {}
    for seed in seeds:
        request = hostile.request(random.Random(seed))
        status = check(request, send(server.port, request))
        found[status] = found.get(status, 0) + 1
    healthy = json.loads(server.get("/healthz").body)
    assert healthy["status"] == "ok"
    errors = [line for line in log.read_text().splitlines() if '"level": "error"' in line]
    assert errors == []
    return dict(sorted(found.items()))


CHUNKED = (
    b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
)


@pytest.mark.parametrize(
    "body",
    [
        b"ZZ\r\n{}\r\n0\r\n\r\n",
        b"-2\r\n{}\r\n0\r\n\r\n",
        b"2;;;=\r\n{}\r\n0\r\n\r\n",
        b"2\r\n{}XX0\r\n\r\n",
        b"2\r\n{}\r\n0\r\nno colon\r\n\r\n",
        b"2\r\n{}\r\n0\r\n" + b"X: y\r\n" * 300 + b"\r\n",
    ],
)
def test_a_malformed_chunk_is_the_senders_fault(
    server: servers.Server, log: Path, body: bytes
) -> None:
    """A problem detail that says so, with status 400, and not a line in the log."""
    before = log.read_text()
    received = send(server.port, CHUNKED + body)
    assert check(CHUNKED + body, received) == 400
    assert b"its chunks are not as HTTP has them" in received
    assert log.read_text() == before


STARTED = """
import gc, sys
from types import SimpleNamespace
before = gc.get_freeze_count(), sys.getswitchinterval()
import store.cli
from app import create_app
from store import gunicorn
app = create_app()
assert before == (gc.get_freeze_count(), sys.getswitchinterval())
gunicorn.post_worker_init(SimpleNamespace(wsgi=app))
assert gc.get_freeze_count() > 10_000
assert sys.getswitchinterval() < before[1]
"""


def test_only_a_worker_puts_requests_first(tmp_path: Path) -> None:
    """It spares its data the collector; ``flask run`` and commands stay as Python is."""
    data = write_data(tmp_path / "data", polls=[answered("A", ["X"])])
    environ = {**os.environ, "DATA_DIR": str(data), "BASE_URL": "https://rankings.example"}
    command = [sys.executable, "-c", STARTED]
    subprocess.run(command, cwd=servers.ROOT, env=environ, check=True)


class TestHostileTraffic:
    """Nothing that is sent brings a 5xx, a stack trace, a hang or an answer without headers."""

    def test_what_is_logged_is_one_line_of_json(self, server: servers.Server, log: Path) -> None:
        """Whatever a stranger sends, a log line is one JSON object."""
        send(server.port, b"GET /\r\nfoo HTTP/9\r\n\r\n")
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        assert all({"time", "level", "logger", "message"} <= line.keys() for line in lines)

    def test_a_few_hundred_requests(self, server: servers.Server, log: Path) -> None:
        """Odd methods, paths, queries, headers and bodies, over raw sockets."""
        found = attack(server, log, range(600))
        assert {200, 400, 404, 405} <= found.keys(), "the attack did not get through"

    @pytest.mark.slow
    def test_tens_of_thousands(self, server: servers.Server, log: Path, report: Report) -> None:
        """The same, 30,000 times."""
        report(f"hostile requests by status: {attack(server, log, range(1000, 31_000))}")
