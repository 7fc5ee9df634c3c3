"""Runs what a unit of templates/deploy runs, in its directory and with its variables."""

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from builders import app_over


def printed(data: Path, file: str, *options: str, **settings: Any) -> str:
    """What ``flask deploy`` prints of a file."""
    environ = {"DATA_DIR": str(data), **settings.pop("environ", {})}
    app = app_over(data, environ=environ, **settings)
    done = app.test_cli_runner().invoke(args=["deploy", file, *options])
    assert done.exit_code == 0, done.output
    return done.stdout


class Unit:
    """A oneshot service; ``variables`` are what its environment file holds."""

    def __init__(self, text: str, **variables: str) -> None:
        self._directory = next(_values(text, "WorkingDirectory"), "/")
        own = dict(value.split("=", 1) for value in _values(text, "Environment"))
        self._environ = {"PATH": os.environ["PATH"], **own, **variables}
        lines = _values(text, "ExecStart")
        self._commands = [shlex.split(line.replace("$$", "$")) for line in lines]

    def begin(self) -> subprocess.Popen[str]:
        """Start its only command."""
        [command] = self._commands
        return self._start(command)

    def run(self) -> tuple[int, str]:
        """Run its commands, up to the first that fails; its exit code, and all output."""
        output = ""
        for command in self._commands:
            with self._start(command) as process:
                output += process.communicate(timeout=120)[0]
            if process.returncode:
                break
        return process.returncode, output

    def _start(self, command: list[str]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            command, cwd=self._directory, env=self._environ,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip


def _values(text: str, name: str) -> Iterator[str]:
    return (match[1] for match in re.finditer(rf"^{name}=(.*)$", text, re.MULTILINE))
