"""The ``flask`` commands together: what all of them say."""

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from builders import app_over, write_data
from flask import Flask

ROOT = Path(__file__).parent.parent

COMMANDS = {
    "check": "",
    "dataset": "",
    "deploy": "",
    "export": "tree",
    "meaning": "",
    "names explain": "X",
    "names queue": "",
    "poll": "--status",
    "schema": "",
    "search": "x",
    "withhold": "0123456789abcdef --reason x",
}
"""Every command that works on the data directory, with arguments that it takes."""

ELSEWHERE = {"init", "verify", "version"}
"""Those that work on a directory that their arguments name, that they make, or on none."""


@pytest.fixture
def app(tmp_path: Path) -> Flask:
    return app_over(write_data(tmp_path / "data"))


def leaves(group: click.Group, context: click.Context) -> Iterator[str]:
    """The names of a group's commands, those of its groups spelt in full."""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from (f"{name} {leaf}" for leaf in leaves(command, context))
        else:
            yield name


def test_all_commands_are_looked_at(app: Flask) -> None:
    """The table above leaves none out."""
    with click.Context(app.cli) as context:
        assert set(leaves(app.cli, context)) == COMMANDS.keys() | ELSEWHERE


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_says_which_data_it_works_on(
    app: Flask, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line, first, and not where programs read."""
    monkeypatch.chdir(tmp_path)
    arguments = [*command.split(), *COMMANDS[command].split()]
    done = app.test_cli_runner().invoke(args=arguments)
    assert done.stderr.startswith(f"Data: {tmp_path / 'data'}\n")
    assert done.output.count("Data: ") == 1
    assert "Data: " not in done.stdout


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("kind", ["missing", "a file"])
def test_no_command_works_on_what_is_no_directory(
    app: Flask, tmp_path: Path, command: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A typing mistake in DATA_DIR is told, with the way out, and nothing is made there."""
    monkeypatch.chdir(tmp_path)
    shutil.rmtree(tmp_path / "data")
    if kind == "a file":
        (tmp_path / "data").write_text("no directory")
    arguments = [*command.split(), *COMMANDS[command].split()]
    done = app.test_cli_runner().invoke(args=arguments)
    faults = {
        "missing": "does not exist; `flask init",
        "a file": "is not a directory; set DATA_DIR",
    }
    assert (done.exit_code, done.stdout) == (1, "")
    assert f"Error: the data directory {tmp_path / 'data'} {faults[kind]}" in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data"] * (kind == "a file")


def test_a_relative_directory_is_told_in_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever is in another directory than they think sees it."""
    monkeypatch.chdir(tmp_path)
    write_data(tmp_path / "data")
    relative = (tmp_path / "data").relative_to(tmp_path)
    done = app_over(relative).test_cli_runner().invoke(args=["check"])
    assert done.stderr.startswith(f"Data: {tmp_path / 'data'}\n")


def test_the_version_is_ours_beside_flasks(app: Flask) -> None:
    """The one of pyproject.toml, which is also that of the OpenAPI document."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    done = app.test_cli_runner().invoke(args=["version"])
    assert done.exit_code == 0
    first, *rest = done.stdout.splitlines()
    assert first == f"Consensus ranking API {project['version']}"
    assert [line.split()[0] for line in rest] == ["Python", "Flask", "Werkzeug"]
    description = app.test_client().get("/api/v1/openapi.json").get_json()
    assert description["info"]["version"] == project["version"]


def test_a_shell_learns_what_can_be_typed_from_no_data(tmp_path: Path) -> None:
    """Completion answers alone, and does not read what a server would: there is none here."""
    asked = {"_FLASK_COMPLETE": "bash_complete", "COMP_WORDS": "flask p", "COMP_CWORD": "1"}
    program = "import sys; from flask.cli import cli; cli.main(prog_name='flask')"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **asked, "DATA_DIR": str(tmp_path / "none"), "BASE_URL": ""},
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("plain,poll\n", "")


def test_help_is_of_no_data(app: Flask) -> None:
    """Asking for help works on nothing."""
    done = app.test_cli_runner().invoke(args=["poll", "--help"])
    assert "Data: " not in done.output
