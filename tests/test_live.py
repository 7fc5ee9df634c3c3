"""Curating a service while it serves: whole processes, real editors, real load."""

import json
import random
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from builders import answered, question_of, write_data, write_json
from conftest import Report
from processes import environment, until
from servers import ROOT, Server, free_port, running

pytestmark = pytest.mark.slow


def serve(directory: Path, *command: str) -> AbstractContextManager[Server]:
    """A server over a directory: ``flask run``, or a program of ours."""
    port = free_port()
    words = [part.replace("PORT", str(port)) for part in command]
    words = words or ["-m", "flask", "run", "--port", str(port)]
    environ = environment(directory, PYTHONPATH=str(ROOT))
    return running([sys.executable, *words], port, environ, directory.with_name("server.log"))


def read_json(server: Server, path: str) -> Any:
    """The JSON at an address; any status but 200 is an error."""
    answer = server.get(path)
    if answer.status != 200:
        raise OSError(answer.status)
    return json.loads(answer.body)


def text_of(number: int, padding: int) -> str:
    """A category file whose every field carries one number, long enough to be seen half written."""
    record = {
        "version": 1,
        "title": f"Best VPN {number}",
        "question": question_of("vpn"),
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


def in_pieces(path: Path, text: str) -> None:
    """Save as nobody should: a piece at a time, with rests."""
    with path.open("w", encoding="utf-8") as file:
        for start in range(0, len(text), 1 + len(text) // 5):
            file.write(text[start : start + 1 + len(text) // 5])
            file.flush()
            time.sleep(0.03)


@pytest.mark.parametrize(
    "save", [by_vim, by_sed, by_shell, in_pieces], ids=lambda save: save.__name__
)
def test_fifty_saves_under_load_mix_no_versions(
    tmp_path: Path, save: Callable[[Path, str], None], report: Report
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

    def read(server: Server) -> None:
        while not stop.is_set():
            try:
                body = read_json(server, "/api/v1/best/vpn.json")
                number = body["title"].split()[-1]
                if f"for VPN {number} on" not in body["verdict"]:
                    failed.append(body["verdict"])
                seen.add(int(number))
            except (OSError, ValueError) as error:
                failed.append(repr(error))

    with serve(directory) as server:
        readers = [threading.Thread(target=read, args=(server,)) for _ in range(3)]
        for reader in readers:
            reader.start()
        chance = random.Random(5)
        for number in range(1, 51):
            save(path, text_of(number, 300))
            time.sleep(chance.uniform(0.01, 0.6))
        until(lambda: read_json(server, "/api/v1/best/vpn.json")["title"] == "Best VPN 50", 10)
        stop.set()
        for reader in readers:
            reader.join(30)
        logged = (tmp_path / "server.log").read_text(encoding="utf-8")
    assert failed == []
    assert 50 in seen
    assert "categories/vpn.json:" not in logged, "a file that was being written was believed"
    report(f"{save.__name__}: {len(seen)} of 51 versions were seen by readers")


def test_an_edit_of_the_full_catalogue_under_load_is_served_soon(
    tmp_path: Path, report: Report
) -> None:
    """At 200 requests a second an edit is served within 3 s, and no thread waits for it."""
    directory, ticks = tmp_path / "data", tmp_path / "ticks.json"
    shutil.copytree(ROOT / "data", directory)
    slugs = sorted(path.stem for path in (directory / "categories").iterdir())
    path = directory / "categories" / "vpn.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    stop, failed, sent = threading.Event(), [], []
    took = []

    def title_of(server: Server) -> object:
        return read_json(server, "/api/v1/best/vpn.json")["title"]

    def load(server: Server, share: int) -> None:
        chance, due = random.Random(share), time.monotonic()
        while not stop.is_set():
            due += 0.02
            time.sleep(max(0.0, due - time.monotonic()))
            try:
                read_json(server, f"/api/v1/best/{chance.choice(slugs)}.json")
                sent.append(time.monotonic())
            except OSError as error:
                failed.append(repr(error))

    program = str(ROOT / "tests/ticking_server.py")
    with serve(directory, program, str(directory), "PORT", str(ticks)) as server:
        time.sleep(6)  # past the first look, which freezes what is there
        readers = [threading.Thread(target=load, args=(server, i)) for i in range(4)]
        for reader in readers:
            reader.start()
        start = time.time()
        time.sleep(20)
        between = time.time()
        for number in range(8):
            write_json(path, {**record, "title": f"Best VPN {number}"})
            saved = time.monotonic()
            until(lambda: title_of(server) == f"Best VPN {number}", 20)  # noqa: B023
            took.append(time.monotonic() - saved)
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
