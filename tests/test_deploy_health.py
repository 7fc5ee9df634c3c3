"""What the timer runs every minute tells a person of each change once, also of a dead process."""

import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import servers
from builders import answered, write_data
from deployed import Unit, printed
from processes import until

from store.ledger import Proof

pytestmark = pytest.mark.skipif(
    not (shutil.which("curl") and shutil.which("jq")), reason="curl or jq is not installed"
)

WELL = (1, "All is well.\n")
NOTHING_NEW = (0, "")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    titles = {slug: {"title": f"Best {slug}"} for slug in ("crm-software", "vpn")}
    polls = [answered("A", ["X"], slug=slug) for slug in titles]
    directory = write_data(tmp_path / "data", categories=titles, polls=polls)
    Proof(directory).close(polls[0].polled_at[:10])
    return directory


def unit_of(data: Path, port: int, **variables: str) -> Unit:
    """What the timer starts, for a service that listens there."""
    text = printed(data, "rankings-health.service", "--app", f"127.0.0.1:{port}")
    assert " /run/rankings-health/last\n" in text
    return Unit(text.replace("/run/rankings-health", str(data.parent)), **variables)


@pytest.mark.skipif(not shutil.which("shellcheck"), reason="shellcheck is not installed")
def test_shellcheck_finds_nothing() -> None:
    """The linter of shell scripts is content with every rule."""
    script = servers.ROOT / "templates" / "deploy" / "health.sh"
    done = subprocess.run(["shellcheck", str(script)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def silent(port: int) -> tuple[int, str]:
    """What is said of a service that does not answer."""
    return 1, f"http://127.0.0.1:{port}/healthz?strict does not answer with its health.\n"


def test_each_change_is_told_once(data: Path, tmp_path: Path) -> None:
    """Well, degraded, degraded by more, well again, dead, alive: once each, with the reasons."""
    category = data / "categories" / "vpn.json"
    good, history = category.read_bytes(), data / "history" / "crm-software.jsonl"
    with servers.gunicorn(data, tmp_path / "log") as server:

        def problems() -> int:
            count: int = json.loads(server.get("/healthz").body)["problemCount"]
            return count

        before, unit = problems(), unit_of(data, server.port)
        assert unit.run() == NOTHING_NEW
        category.write_text("{")
        until(lambda: problems() == before + 1)
        code, reasons = unit.run()
        assert code == 1
        assert reasons.startswith("The data has 1 error: categories/vpn.json:1:2: ")
        assert unit.run() == NOTHING_NEW
        history.rename(data / "away")
        until(lambda: problems() == before + 2)
        code, reasons = unit.run()
        assert code == 1
        assert "history/crm-software.jsonl" in reasons
        assert "categories/vpn.json" in reasons
        category.write_bytes(good)
        (data / "away").rename(history)
        until(lambda: problems() == before)
        assert unit.run() == WELL
        assert unit.run() == NOTHING_NEW
    assert unit.run() == silent(server.port)
    assert unit.run() == NOTHING_NEW
    with servers.gunicorn(data, tmp_path / "log", server.port):
        assert unit.run() == WELL


class Answers(BaseHTTPRequestHandler):
    """Somebody who says what a test wants."""

    body = b""

    def do_GET(self) -> None:
        """Say it."""
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def port() -> Iterator[int]:
    server = HTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    "body", [b"", b"<html>502 Bad Gateway", b"{}", b'{"status": "degraded"}', b"[]", b'"ok"']
)
def test_only_health_is_health(data: Path, port: int, body: bytes) -> None:
    """An empty answer, a proxy's page or a stranger on the port is never taken for well."""
    Answers.body = body
    assert unit_of(data, port).run() == silent(port)


def test_what_goes_up_by_itself_is_no_change(data: Path, port: int) -> None:
    """One line for an assistant that fails for days; a second assistant is another."""
    unit = unit_of(data, port)

    def look(*reasons: str) -> tuple[int, str]:
        Answers.body = json.dumps({"status": "degraded", "reasons": reasons}).encode()
        return unit.run()

    assert look("GPT failed in its last 9 polls.") == (1, "GPT failed in its last 9 polls.\n")
    assert look("GPT failed in its last 10 polls.") == NOTHING_NEW
    more = ("GPT failed in its last 11 polls.", r"Grok is \n paused; $(false).")
    assert look(*more) == (1, "".join(f"{reason}\n" for reason in more))
    assert look(more[1]) == (1, f"{more[1]}\n")


@pytest.mark.parametrize("missing", ["curl", "jq"])
def test_a_program_that_is_missing_is_named(data: Path, port: int, missing: str) -> None:
    """Rather than a service that would be well."""
    Answers.body = b'{"status": "ok", "reasons": []}'
    programs = data.parent / "bin"
    programs.mkdir()
    for name in {"cat", "tr", "curl", "jq"} - {missing}:
        (programs / name).symlink_to(str(shutil.which(name)))
    unit = unit_of(data, port, PATH=str(programs))
    code, output = unit.run()
    assert (code, output.splitlines()[-1]) == (1, "curl or jq is not installed.")
    (programs / missing).symlink_to(str(shutil.which(missing)))
    assert unit.run() == WELL
