"""README.md: what it promises is what there is."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from store.web.routes import ROUTES

if TYPE_CHECKING:
    from flask import Flask

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """The fenced blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("program", blocks("python"))
def test_the_programs_run(program: str) -> None:
    """A reader who checks the history with the given program finds that it holds."""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_an_id_can_be_checked_in_a_shell() -> None:
    """The given line of shell prints the id that the record itself says."""
    [program] = blocks("bash")
    done = subprocess.run(["bash", "-c", program], cwd=ROOT, capture_output=True, check=True)
    file = ROOT / "data" / "history" / "humidifier.jsonl"
    record = json.loads(file.read_bytes().partition(b"\n")[0])
    assert done.stdout.decode().strip() == record["id"]


def test_every_route_is_listed() -> None:
    """Whoever reads the table of endpoints knows them all."""
    listed = set(re.findall(r"^\| `(/[^`?]*)", README, re.MULTILINE))
    assert {route.path for route in ROUTES} <= listed


def test_every_command_is_named_and_has_help(app: Flask) -> None:
    """No command of ours is a secret, and each says what it does."""
    with click.Context(app.cli) as context:
        names = app.cli.list_commands(context)
        assert names
        for name in names:
            command = app.cli.get_command(context, name)
            assert command
            assert command.help, name
            assert f"flask {name}" in README, name


def test_every_setting_is_listed() -> None:
    """Every variable that the settings read stands in the README's table."""
    source = (ROOT / "store" / "settings.py").read_text(encoding="utf-8")
    read = set(re.findall(r'env(?:iron)?(?:\.get\(|\[)"([A-Z_]+)"', source))
    assert read - {"LISTENING_AT"} <= set(re.findall(r"^\| `([A-Z_]+)`", README, re.MULTILINE))
    assert read, "the settings read no variable any more; this test looks in the wrong place"


def test_the_test_command_is_what_ci_runs() -> None:
    """The script that decides takes its command from the README, so that both are one."""
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "<!-- test command -->" in script
    assert "<!-- test command -->" in README
