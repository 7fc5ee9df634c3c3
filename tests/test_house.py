"""The house keeps its own rules: shape, examples, versions, and the files at the top."""

import ast
import doctest
import importlib
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.version import Version

ROOT = Path(__file__).parent.parent

TOP_LEVEL = {"app.py", "pyproject.toml", "store", "templates", "tests", "data", "README.md"}


def _with_examples() -> list[str]:
    files = sorted((ROOT / "store").rglob("*.py"))
    with_any = (file for file in files if ">>> " in file.read_text(encoding="utf-8"))
    dotted = (".".join(file.relative_to(ROOT).with_suffix("").parts) for file in with_any)
    return [name.removesuffix(".__init__") for name in dotted]


@pytest.mark.parametrize("module", _with_examples())
def test_the_examples_in_docstrings_are_true(module: str) -> None:
    """What a docstring shows as an example is what the function returns."""
    failed, tried = doctest.testmod(importlib.import_module(module))
    assert tried
    assert not failed


FLOORS = {
    "certifi": "2024.7.4",
    "gunicorn": "22.0",
    "idna": "3.15",
    "jinja2": "3.1.6",
    "requests": "2.32.4",
    "urllib3": "2.7",
    "werkzeug": "3.1.6",
}
"""The first version of each without the holes that pyproject.toml names."""


@pytest.mark.parametrize("package", FLOORS)
def test_no_version_with_a_known_hole_is_installed(package: str) -> None:
    """Whatever else is installed, pip takes no older version of what strangers' bytes reach."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    floors = dict(each.split(",")[0].split(">=") for each in project["dependencies"])
    assert Version(floors[package]) >= Version(FLOORS[package])


def test_the_top_level_is_what_the_user_asked_for() -> None:
    """Beside dotfiles, the top level holds exactly the seven entries that were wished for."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    entries = {line.partition("/")[0] for line in listed.splitlines()}
    assert {entry for entry in entries if not entry.startswith(".")} <= TOP_LEVEL


def test_types_are_prepared_while_there_is_one_thread() -> None:
    """Msgspec prepares a type at its first use, and crashes the process if two threads do (0.22).

    So whatever requests and polls decode has a decoder that is made on import.
    """
    prepared, used = set(), {}
    for path in [*(ROOT / "store/web").rglob("*.py"), *(ROOT / "store/polls").rglob("*.py")]:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        in_functions = {
            id(each)
            for function in ast.walk(tree)
            if isinstance(function, ast.FunctionDef)
            for each in ast.walk(function)
        }
        for call in (each for each in ast.walk(tree) if isinstance(each, ast.Call)):
            name = ast.unparse(call.func)
            if name == "msgspec.json.Decoder" and id(call) not in in_functions:
                prepared.add(ast.unparse(call.args[0]))
            elif name in ("msgspec.json.decode", "msgspec.json.Decoder") and call.keywords:
                used[ast.unparse(call.keywords[0].value)] = path.name
            elif name == "msgspec.convert":
                used[ast.unparse(call.args[1])] = path.name
    del used["Poll"]  # store.line_codec has its decoder
    assert {kind: name for kind, name in used.items() if kind not in prepared} == {}


def test_nothing_that_is_kept_depends_on_the_clock() -> None:
    """What does is a body with ``may_be_kept=False``, or `flask verify` could not make it again."""
    asks = re.compile(r"\btime\.time\(|\.now\(|\.today\(|\butc_now\(")
    modules = (ROOT / "store/web").rglob("*.py")
    assert {m.name for m in modules if asks.search(m.read_text(encoding="utf-8"))} == {"health.py"}
