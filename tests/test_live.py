"""Curating a service while it serves: whole processes, real editors, real load."""

from __future__ import annotations

import json
import random
import shutil
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import Request, urlopen

import pytest
from broken import KINDS, SLIPS, mend, write_one_of_each
from builders import answered, app_over, write_data, write_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parent.parent
pytestmark = pytest.mark.slow


class Served:
    """A server process over a data directory, and its log."""

    def __init__(self, port: int, log: Path) -> None:
        self.base = f"http://127.0.0.1:{port}"
        self.log = log

    def get(self, path: str) -> bytes:
        """A body; any status but 200 raises."""
        request = Request(self.base + path, headers={"Connection": "close"})  # noqa: S310
        with urlopen(request, timeout=30) as answer:  # noqa: S310
            body: bytes = answer.read()
            return body

    def json(self, path: str) -> Any:
        """A decoded body."""
        return json.loads(self.get(path))


@contextmanager
def serve(directory: Path, *args: str, program: str = "") -> Iterator[Served]:
    """Run ``flask run`` or a program of ours over a directory until the block ends."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    log = directory.with_name("server.log")
    command = [sys.executable, "-m", "flask", "--app", str(ROOT / "app.py"), "run"]
    command += ["--port", str(port)]
    if program:
        command = [sys.executable, str(ROOT / "tests" / program), str(directory), str(port), *args]
    environ = {"DATA_DIR": str(directory), "PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    environ["FLASK_SKIP_DOTENV"] = "1"
    with log.open("wb") as file:
        process = subprocess.Popen(command, env=environ, stdout=file, stderr=file)
    served = Served(port, log)
    try:
        until(lambda: _answers(served), 60)
        yield served
    finally:
        process.terminate()
        process.wait(30)


def _answers(served: Served) -> bool:
    try:
        served.get("/healthz")
    except OSError:
        return False
    return True


def report(figure: str) -> None:
    """Say what was measured; `pytest -s` shows it."""
    sys.stdout.write(f"\n{figure}\n")


def until(holds: Callable[[], bool], seconds: float) -> float:
    """Wait for something; return how long it took, in seconds."""
    start = time.monotonic()
    while not holds():
        assert time.monotonic() - start < seconds, f"not within {seconds} s"
        time.sleep(0.05)
    return time.monotonic() - start


PATHS = (
    "/api/v1/best/crm-software.json",
    "/api/v1/best/vpn.json",
    "/api/v1/product/zoho-crm.json",
    "/api/v1/history?slug=vpn",
    "/api/v1/search?q=vpn",
    "/api/v1/categories.json",
    "/api/v1/changes.json",
    "/api/v1/mentions.json",
    "/api/v1/instruments.json",
    "/api/v1/labs.json",
    "/api/v1/openapi.json",
)


def test_every_mistake_in_every_kind_of_file_beside_a_running_server(tmp_path: Path) -> None:
    """Answers stay byte for byte; check, log and /healthz name file and line within 5 s."""
    directory = write_one_of_each(tmp_path / "data")
    texts = {kind: (directory / kind).read_text(encoding="utf-8") for kind in KINDS}
    shell = app_over(directory).test_cli_runner()
    slowest = 0.0
    with serve(directory) as served:
        before = {path: served.get(path) for path in PATHS}
        for slip in SLIPS:
            for kind in KINDS:
                slip.write(directory / kind)
            wanted = {f"{kind}:{slip.line(text)}:" for kind, text in texts.items()}

            def named(wanted: set[str] = wanted) -> bool:
                problems = served.json("/healthz")["problems"]
                return all(any(p.startswith(start) for p in problems) for start in wanted)

            slowest = max(slowest, until(named, 5))
            assert {path: served.get(path) for path in PATHS} == before, slip.name
            said = shell.invoke(args=["check"]).stdout
            logged = served.log.read_text(encoding="utf-8")
            for start in wanted:
                assert start in said, slip.name
                assert start in logged, slip.name
            for kind, text in texts.items():
                mend(directory / kind, text)
            until(lambda: served.json("/healthz")["status"] == "ok", 10)
            assert {path: served.get(path) for path in PATHS} == before, slip.name
    report(f"{len(SLIPS)} mistakes x {len(KINDS)} kinds; slowest named after {slowest:.1f} s")


def test_one_bad_file_of_the_catalogue_leaves_the_others_served(tmp_path: Path) -> None:
    """At the start every other category of 1,425 is served, and the bad one is named."""
    directory = tmp_path / "data"
    shutil.copytree(ROOT / "data", directory)
    (directory / "categories" / "vpn.json").write_text("{", encoding="utf-8")
    with serve(directory) as served:
        health = served.json("/healthz")
        assert (health["status"], health["categories"]) == ("degraded", 1424)
        assert [p.split(": ")[0] for p in health["problems"]] == ["categories/vpn.json:1:2"]
        assert len(served.json("/api/v1/categories.json")) == 1424


def text_of(number: int, padding: int) -> str:
    """A category file whose every field carries one number, long enough to be seen half written."""
    record = {
        "version": 1,
        "title": f"Best VPN {number}",
        "question": f"What is the best VPN {number}?",
        "aliases": [f"alias {i} of {number}" for i in range(padding)],
        "topic": f"VPN {number}",
    }
    return json.dumps(record, indent=2) + "\n"


def by_shell(path: Path, text: str) -> None:
    """Save as ``>`` does: empty the same file, then write it."""
    subprocess.run(["sh", "-c", 'cat > "$0"', str(path)], input=text.encode(), check=True)


def by_sed(path: Path, text: str) -> None:
    """Save as ``sed -i`` does: write another file, rename it over the first."""
    number = json.loads(text)["title"].split()[-1]
    script = f"s/(VPN|of) [0-9]+/\\1 {number}/"
    subprocess.run(["sed", "-E", "-i", script, str(path)], check=True)


def by_vim(path: Path, text: str) -> None:
    """Save as vim does, with its own swap and backup files."""
    number = json.loads(text)["title"].split()[-1]
    change = rf"%s/\v(VPN|of) \d+/\1 {number}/"
    vim = ["vim", "-u", "NONE", "-es", "--cmd", "set backup writebackup", "-c", change, "-c", "wq"]
    subprocess.run([*vim, str(path)], check=True, timeout=60)


def by_rename(path: Path, text: str) -> None:
    """Save as careful editors do: a whole new file takes the old one's place."""
    draft = path.with_name(f"{path.name}.tmp")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)


def in_pieces(path: Path, text: str) -> None:
    """Save as nobody should: a piece at a time, with rests."""
    with path.open("w", encoding="utf-8") as file:
        for start in range(0, len(text), 1 + len(text) // 5):
            file.write(text[start : start + 1 + len(text) // 5])
            file.flush()
            time.sleep(0.03)


@pytest.mark.parametrize(
    "save", [by_vim, by_sed, by_shell, by_rename, in_pieces], ids=lambda save: save.__name__
)
def test_fifty_saves_under_load_mix_no_versions(
    tmp_path: Path, save: Callable[[Path, str], None]
) -> None:
    """However an editor saves, no answer holds two versions and none fails."""
    if save is by_vim and not shutil.which("vim"):
        pytest.skip("vim is not installed here")
    directory = write_data(
        tmp_path / "data",
        categories={"vpn": {"title": "Best VPN"}},
        polls=[answered("A", ["X", "Y"], slug="vpn"), answered("B", ["Y"], slug="vpn")],
    )
    path = directory / "categories" / "vpn.json"
    path.write_text(text_of(0, 300), encoding="utf-8")
    stop, seen, failed = threading.Event(), set(), []

    def read(served: Served) -> None:
        while not stop.is_set():
            try:
                body = served.json("/api/v1/best/vpn.json")
                number = body["title"].split()[-1]
                if body["question"] != f"What is the best VPN {number}?":
                    failed.append(body["question"])
                if f"for VPN {number} on" not in body["verdict"]:
                    failed.append(body["verdict"])
                seen.add(int(number))
            except (OSError, ValueError) as error:
                failed.append(repr(error))

    with serve(directory) as served:
        readers = [threading.Thread(target=read, args=(served,)) for _ in range(3)]
        for reader in readers:
            reader.start()
        chance = random.Random(5)
        for number in range(1, 51):
            save(path, text_of(number, 300))
            time.sleep(chance.uniform(0.01, 0.6))
        until(lambda: served.json("/api/v1/best/vpn.json")["title"] == "Best VPN 50", 10)
        stop.set()
        for reader in readers:
            reader.join(30)
        logged = served.log.read_text(encoding="utf-8")
    assert failed == []
    assert 50 in seen
    assert "categories/vpn.json:" not in logged, "a file that was being written was believed"
    report(f"{save.__name__}: {len(seen)} of 51 versions were seen by readers")


def test_an_edit_of_the_full_catalogue_under_load_is_served_soon(tmp_path: Path) -> None:
    """At 200 requests a second an edit is served within 3 s, and no thread waits for it."""
    directory, ticks = tmp_path / "data", tmp_path / "ticks.json"
    shutil.copytree(ROOT / "data", directory)
    slugs = sorted(path.stem for path in (directory / "categories").iterdir())
    path = directory / "categories" / "vpn.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    stop, failed, sent = threading.Event(), [], []
    took = []

    def title_of(served: Served) -> object:
        return served.json("/api/v1/best/vpn.json")["title"]

    def load(served: Served, share: int) -> None:
        chance, due = random.Random(share), time.monotonic()
        while not stop.is_set():
            due += 0.02
            time.sleep(max(0.0, due - time.monotonic()))
            try:
                served.get(f"/api/v1/best/{chance.choice(slugs)}.json")
                sent.append(time.monotonic())
            except OSError as error:
                failed.append(repr(error))

    with serve(directory, str(ticks), program="ticking_server.py") as served:
        time.sleep(6)  # past the first look, which freezes what is there
        readers = [threading.Thread(target=load, args=(served, i)) for i in range(4)]
        for reader in readers:
            reader.start()
        start = time.time()
        time.sleep(20)
        between = time.time()
        for number in range(8):
            write_json(path, {**record, "title": f"Best VPN {number}"})
            took.append(until(lambda: title_of(served) == f"Best VPN {number}", 20))  # noqa: B023
            time.sleep(3)
        end = time.time()
        stop.set()
        for reader in readers:
            reader.join(30)
    late = json.loads(ticks.read_text(encoding="utf-8"))
    control = [delay for at, delay in late if start < at < between]
    edited = [delay for at, delay in late if between < at < end]
    rate = len(sent) / (end - start)
    report(f"{rate:.0f} requests/s; edits served after {min(took):.1f} to {max(took):.1f} s")
    for name, delays in (("control", control), ("edits", edited)):
        delays.sort()
        shown = [f"{delay:.0f}" for delay in delays[-5:]]
        report(f"{name}: {len(delays)} ticks over 5 ms late, the worst {', '.join(shown)} ms")
    assert failed == []
    assert max(took) < 10
