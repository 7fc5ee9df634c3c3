"""The README's chapter for curators, executed as it stands over a part of the shipped data."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
HEADING = "## Curating"
CATEGORIES = ("crm-software", "accounting-software-for-small-business", "humidifier")
PATIENCE = 20  # seconds for an edit to be served on a busy machine


def chapter() -> str:
    """The text from the chapter's heading to the next of its rank; empty if there is none."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(rf"^{HEADING}\n.*?(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    return found.group() if found else ""


def steps() -> list[tuple[str, list[str]]]:
    """Each block of commands with the lines that its output must hold."""
    blocks = re.findall(r"^```(sh|text)\n(.*?)^```$", chapter(), re.DOTALL | re.MULTILINE)
    found: list[tuple[str, list[str]]] = []
    for language, block in blocks:
        if language == "sh":
            found.append((block, []))
        else:
            found[-1][1].extend(block.splitlines())
    return [step for step in found if "flask run" not in step[0]]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A few categories of the shipped data, with their history."""
    if not chapter():
        pytest.skip(f'README.md has no chapter "{HEADING}" yet')
    for program in ("bash", "curl", "git"):
        if not shutil.which(program):
            pytest.skip(f"the chapter uses {program}, which is not installed here")
    directory = tmp_path / "curated"
    (directory / "categories").mkdir(parents=True)
    (directory / "history").mkdir()
    for path in (ROOT / "data").glob("*.json"):
        shutil.copy(path, directory)
    for slug in CATEGORIES:
        shutil.copy(ROOT / "data" / "categories" / f"{slug}.json", directory / "categories")
        shutil.copy(ROOT / "data" / "history" / f"{slug}.jsonl", directory / "history")
    return directory


@pytest.fixture
def shell(directory: Path, tmp_path: Path) -> Iterator[list[str]]:
    """Bash with the service running beside it, as the chapter's reader has it."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    flask = [sys.executable, "-m", "flask", "--app", str(ROOT / "app.py")]
    environ = {**os.environ, "DATA_DIR": str(directory), "BASE_URL": ""}
    with (tmp_path / "log").open("wb") as log:
        server = subprocess.Popen(
            [*flask, "run", "--port", str(port)], env=environ, stdout=log, stderr=log
        )
    try:
        yield [str(port), " ".join(flask), str(directory), str(tmp_path)]
    finally:
        server.terminate()
        server.wait(10)


def run(commands: str, shell: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a block with this test's port, interpreter and places."""
    port, flask, directory, scratch = shell
    for written, meant in (
        ("/tmp/", f"{scratch}/"),  # noqa: S108 - what the README writes
        ("127.0.0.1:5000", f"127.0.0.1:{port}"),
        (".venv/bin/flask", flask),
    ):
        commands = commands.replace(written, meant)
    done = subprocess.run(
        ["bash", "-u", "-c", commands],
        env={**os.environ, "DATA_DIR": directory},
        capture_output=True,
        text=True,
        check=False,
    )
    done.stdout = (done.stdout + done.stderr).replace(f"127.0.0.1:{port}", "127.0.0.1:5000")
    return done


def test_the_chapter_does_what_it_says(shell: list[str]) -> None:
    """Each example, run in order beside a live service, has the effect printed below it."""
    assert len(steps()) >= 15
    for commands, expected in steps():
        deadline = time.monotonic() + PATIENCE
        done = run(commands, shell)
        while "curl" in commands and expected and not _holds(done.stdout, expected):
            assert time.monotonic() < deadline, f"{commands}\n{done.stdout}"
            time.sleep(0.1)
            done = run(commands, shell)
        assert _holds(done.stdout, expected), f"{commands}\n{done.stdout}"
        assert done.returncode == 0 or expected, f"{commands}\n{done.stdout}"


def _holds(output: str, expected: list[str]) -> bool:
    return all(line in output for line in expected)
