"""The chapter for curators in data/README.md, run as it stands over a part of the shipped data."""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import servers

ROOT = Path(__file__).parent.parent
HEADING = "## Curating"
CATEGORIES = ("crm-software", "accounting-software-for-small-business", "humidifier")
ADDRESS = "127.0.0.1:5000"
END = "--- the block has ended with"
PATIENCE = 20  # seconds for an edit to be served on a busy machine


def chapter() -> str:
    """The text from the chapter's heading to the next of its rank."""
    text = (ROOT / "data" / "README.md").read_text(encoding="utf-8")
    found = re.search(rf"^{HEADING}\n.*?(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    assert found
    return found.group()


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
    for program in ("bash", "curl", "git"):
        if not shutil.which(program):
            pytest.skip(f"the chapter uses {program}, which is not installed here")
    directory = tmp_path / "curated"
    (directory / "categories").mkdir(parents=True)
    (directory / "history").mkdir()
    (directory / "proof").mkdir()
    (directory / "proof/ledger.jsonl").touch()
    for path in (ROOT / "data").glob("*.json"):
        shutil.copy(path, directory)
    for slug in CATEGORIES:
        shutil.copy(ROOT / "data" / "categories" / f"{slug}.json", directory / "categories")
        shutil.copy(ROOT / "data" / "history" / f"{slug}.jsonl", directory / "history")
    return directory


class Shell:
    """One bash for the whole chapter, in a directory that has ``.venv/bin/flask``."""

    def __init__(self, process: subprocess.Popen[str], port: int, scratch: Path) -> None:
        self._process = process
        self._meant = (("/tmp/", f"{scratch}/"), (ADDRESS, f"127.0.0.1:{port}"))  # noqa: S108

    def run(self, commands: str) -> tuple[str, int]:
        """What a block prints, as if this were the reader's machine, and how it ends."""
        for written, meant in self._meant:
            commands = commands.replace(written, meant)
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{commands}\nprintf '\\n{END} %s\\n' $?\n")
        self._process.stdin.flush()
        printed = ""
        for line in self._process.stdout:
            if line.startswith(END):
                _, meant = self._meant[1]
                return printed.replace(meant, ADDRESS), int(line.removeprefix(END))
            printed += line
        raise AssertionError(f"the shell has ended: {printed}")


@pytest.fixture
def shell(directory: Path, tmp_path: Path) -> Iterator[Shell]:
    """Bash with the service running beside it, as the chapter's reader has it."""
    port = servers.free_port()
    command = tmp_path / "checkout" / ".venv" / "bin" / "flask"
    command.parent.mkdir(parents=True)
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m flask --app {ROOT}/app.py "$@"\n')
    command.chmod(0o755)
    environ = {**os.environ, "DATA_DIR": str(directory), "BASE_URL": ""}
    with (
        servers.running(
            [str(command), "run", "--port", str(port)], port, environ, tmp_path / "log"
        ),
        subprocess.Popen(
            ["bash", "-u"], cwd=tmp_path / "checkout", env=environ, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        ) as bash,
    ):  # fmt: skip
        try:
            yield Shell(bash, port, tmp_path)
        finally:
            bash.kill()


@pytest.mark.slow
def test_the_chapter_does_what_it_says(shell: Shell) -> None:
    """Each example, pasted in order into one shell beside a live service, does as printed."""
    assert len(steps()) == 2
    for commands, expected in steps():
        deadline = time.monotonic() + PATIENCE
        printed, code = shell.run(commands)
        while "curl" in commands and expected and not _holds(printed, expected):
            assert time.monotonic() < deadline, f"{commands}\n{printed}"
            time.sleep(0.5)
            printed, code = shell.run(commands)
        assert _holds(printed, expected), f"{commands}\n{printed}"
        assert code == 0 or expected, f"{commands}\n{printed}"


def _holds(output: str, expected: list[str]) -> bool:
    return all(line in output for line in expected)
