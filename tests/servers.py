"""Real servers for tests and benchmarks: gunicorn over a data directory, nginx before it."""

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")


class Answer(NamedTuple):
    """What a server said; header names are lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The decoded body."""
        return json.loads(self.body)


class Server(NamedTuple):
    """A running server and where it listens."""

    process: subprocess.Popen[bytes]
    port: int

    def get(
        self,
        path: str,
        headers: Mapping[str, str] | None = None,
        method: str = "GET",
        wait: float = 60,
        body: bytes | None = None,
    ) -> Answer:
        """Ask on a connection of its own; ``wait`` is in seconds."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=wait)
        try:
            connection.request(method, path, body, dict(headers or {}))
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, found, answer.read())
        finally:
            connection.close()


def tree_of(pid: int) -> list[int]:
    """A process and its children."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *map(int, children)]


def cpu_of(pid: int) -> float:
    """Seconds of CPU that a process and its children have used."""
    stats = (Path(f"/proc/{one}/stat").read_text() for one in tree_of(pid))
    fields = (stat.rpartition(")")[2].split() for stat in stats)
    return sum(int(f[11]) + int(f[12]) for f in fields) / os.sysconf("SC_CLK_TCK")


def free_port() -> int:
    """A port that nothing listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def running(
    command: Sequence[str], port: int, environ: Mapping[str, str], log: Path, cwd: Path = ROOT
) -> Iterator[Server]:
    """A server process, from when it accepts connections until SIGTERM has ended it."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            list(command), cwd=cwd, env={**os.environ, **environ}, stdout=output, stderr=output
        )
    try:
        _wait_until_open(process, port, log)
        yield Server(process, port)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise


def gunicorn(
    data: Path, log: Path, port: int = 0, **environ: str
) -> AbstractContextManager[Server]:
    """The service as in production, over a data directory."""
    port = port or free_port()
    command = [sys.executable, "-m", "gunicorn", "-c", "python:store.gunicorn"]
    command += ["-b", f"127.0.0.1:{port}", "app:create_app()"]
    values = {"DATA_DIR": str(data), "BASE_URL": "https://rankings.example", **environ}
    return running(command, port, values, log)


def nginx(site: str, home: Path, port: int) -> AbstractContextManager[Server]:
    """Nginx with what ``flask deploy nginx.conf`` printed, in the foreground, on a port of its own.

    Below ``home`` are the folders that a plain Debian has, and none that it has not.
    """
    for folder in ("var/cache", "var/log/nginx"):
        (home / folder).mkdir(parents=True)
    own_ipv6 = f"listen [::1]:{port};" if has_ipv6() else ""
    site = site.replace("listen 80;", f"listen 127.0.0.1:{port};")
    site = site.replace("listen [::]:80;", own_ipv6).replace(" /var/", f" {home}/var/")
    (home / "site.conf").write_text(site)
    types = "/etc/nginx/mime.types"
    user = "user root;" if os.geteuid() == 0 else ""
    (home / "nginx.conf").write_text(
        f"daemon off; {user} worker_processes 1; worker_rlimit_nofile 19000; pid {home}/pid;\n"
        "events { worker_connections 18000; }\n"
        f"http {{ include {types}; error_log {home}/error.log warn;\n"
        f"client_body_temp_path {home}/body; proxy_temp_path {home}/proxy;\n"
        f"fastcgi_temp_path {home}/f; uwsgi_temp_path {home}/u; scgi_temp_path {home}/s;\n"
        f"include {home}/site.conf; }}\n"
    )
    command = [str(NGINX), "-p", str(home), "-e", f"{home}/error.log", "-c", f"{home}/nginx.conf"]
    return running(command, port, {}, home / "nginx.log")


def has_ipv6() -> bool:
    """Return whether this machine can listen on its own IPv6 address."""
    with suppress(OSError), socket.create_server(("::1", 0), family=socket.AF_INET6):
        return True
    return False


def _wait_until_open(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended: {log.read_text(errors='replace')[-2000:]}")
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1) as probe:
            probe.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
            if probe.recv(5) == b"HTTP/":
                return
        time.sleep(0.05)
    raise TimeoutError(log.read_text(errors="replace")[-2000:])
