"""The five READMEs: what they promise is what there is."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from flask import Flask
from processes import served, until

from store.web.openapi import ENDPOINTS

ROOT = Path(__file__).parent.parent
FOLDERS = ("", "data", "store", "store/cli", "tests")
READMES = {folder: (ROOT / folder / "README.md").read_text(encoding="utf-8") for folder in FOLDERS}
README = READMES[""]
MOST_LINES = {"": 140, "data": 150, "store/cli": 150, "tests": 150}
"""The front page is read in one sitting, the others hold what somebody looks up."""


def blocks(language: str, folder: str = "data", heading: str = "") -> list[str]:
    """The fenced blocks of one language in a README, or in one chapter of it."""
    text = READMES[folder]
    if heading:
        text = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("folder", MOST_LINES)
def test_the_readmes_are_short(folder: str) -> None:
    """Whoever comes here for the first time reads at most 140 lines, and finds the rest."""
    assert len(READMES[folder].splitlines()) <= MOST_LINES[folder]


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_link_leads_somewhere(folder: str) -> None:
    """A relative link in a README names a file that is there, and a heading that it has."""
    for target in re.findall(r"\]\(([^):#]*(?:#[^)]*)?)\)", READMES[folder]):
        path, _, heading = target.partition("#")
        file = ROOT / folder / path if path else ROOT / folder / "README.md"
        assert file.exists(), target
        assert not heading or heading in anchors(file.read_text(encoding="utf-8")), target


def anchors(text: str) -> set[str]:
    """The fragments by which a Markdown file's headings are reached."""
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


def test_every_citation_of_the_decisions_names_a_section() -> None:
    """What a module says stands in store/README.md under a name does stand there."""
    sections = set(re.findall(r"^\*\*(.*?)\.\*\*", READMES["store"], re.MULTILINE))
    files = [*(ROOT / "store").rglob("*.py"), *(ROOT / "tests").glob("*.py")]
    cited = {
        section
        for file in files
        for section in re.findall(r"store/README\.md,\s+(\w+)\)", file.read_text(encoding="utf-8"))
    }
    assert cited
    assert cited <= sections


def test_the_map_of_the_code_is_complete() -> None:
    """Each module and package of the code stands in the tree of store/README.md, and no other."""
    tree = re.search(r"^```tree\n(.*?)^```$", READMES["store"], re.DOTALL | re.MULTILINE)
    assert tree
    drawn: set[str] = set()
    folders: list[str] = []
    for line in tree[1].splitlines():
        name = line.split()[0]
        depth = (len(line) - len(line.lstrip())) // 2
        folders[depth:] = [name]
        drawn.add("".join(folders))
    code = [ROOT / "app.py", *(ROOT / "store").rglob("*.py")]
    modules = {str(file.relative_to(ROOT)) for file in code if file.name != "__init__.py"}
    packages = {f"{file.parent.relative_to(ROOT)}/" for file in code if file.name == "__init__.py"}
    assert {name for name in drawn if name.endswith((".py", "/"))} == modules | packages
    assert all((ROOT / name).exists() for name in drawn)


def test_the_table_of_changes_names_files_that_are_there() -> None:
    """Who looks up where a change goes is sent to no file that is gone or was never there."""
    chapter = READMES["store"].partition("\n## Where a change goes\n")[2].partition("\n## ")[0]
    named = set(re.findall(r"`([\w/.]+\.(?:py|html|json|md))`", chapter))
    assert named
    roots = (ROOT / "store", ROOT / "tests", ROOT, ROOT / "data")
    assert [
        name for name in sorted(named) if not any((root / name).is_file() for root in roots)
    ] == []


def _members() -> dict[str, set[str]]:
    """What modules and classes define, by the name of each."""
    members: dict[str, set[str]] = {}
    for file in [*(ROOT / "store").rglob("*.py"), ROOT / "tests/recomputation.py"]:
        module = file.parent.name if file.stem == "__init__" else file.stem
        bodies = [(module, ast.parse(file.read_text(encoding="utf-8")).body)]
        for name, body in bodies:
            defined = members.setdefault(name, set())
            for statement in body:
                if isinstance(statement, ast.ClassDef):
                    bodies.append((statement.name, statement.body))
                if isinstance(statement, ast.ClassDef | ast.FunctionDef):
                    defined.add(statement.name)
                elif isinstance(statement, ast.Assign | ast.AnnAssign):
                    stored = (node for node in ast.walk(statement) if isinstance(node, ast.Name))
                    defined |= {node.id for node in stored if isinstance(node.ctx, ast.Store)}
    return members


def test_the_table_of_changes_names_what_the_code_defines() -> None:
    """Each function, class and constant is in the module, or class, that stands before it."""
    chapter = READMES["store"].partition("\n## Where a change goes\n")[2].partition("\n## ")[0]
    members = _members()
    anywhere = set().union(*members.values())
    named = re.findall(r"`(?:[\w/.]*?(\w+)\.)?(\w+)`", chapter)
    missing = {
        f"{owner}.{name}"
        for owner, name in named
        if name not in ("py", "md", "json", "html", "toml")
        and name not in (members.get(owner, set()) if owner else anywhere)
    }
    assert missing == set()


@pytest.mark.parametrize("program", blocks("python"))
def test_the_programs_run(program: str) -> None:
    """A reader who checks the history with the given program finds that it holds."""
    where = ROOT / "data" if '"proof/' in program else ROOT
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=where, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def run_in_shell(
    commands: str, directory: Path, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run commands of a README in a directory, with the ``flask`` of this checkout."""
    flask = f"{sys.executable} -m flask --app {ROOT}/app.py"
    return subprocess.run(
        ["bash", "-eu", "-c", commands.replace(".venv/bin/flask", flask)],
        cwd=directory, env={**os.environ, **variables},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.slow
def test_going_live_works_as_printed(tmp_path: Path) -> None:
    """The commands of the chapter, in order in one shell, but for what asks or serves."""
    lines = "".join(blocks("sh", "", "Going live")).splitlines()
    asking = re.compile(r"poll (crm-software|--due|--try)|gunicorn -c")
    kept = [line for line in lines if not asking.search(line)]
    assert len(lines) - len(kept) == 4
    for folder in ("srv", "etc/nginx/conf.d", "etc/systemd/system"):
        (tmp_path / folder).mkdir(parents=True)
    commands = re.sub("(?<= )/(srv|etc)/", rf"{tmp_path}/\1/", "\n".join(kept))
    commands = re.sub("(?<==)/srv/", f"{tmp_path}/srv/", commands).replace("=…", "=a-key")
    done = run_in_shell(commands, tmp_path)
    assert done.returncode == 0, done.stderr
    works_on = {line for line in done.stderr.splitlines() if line.startswith("Data: ")}
    assert works_on == {f"Data: {tmp_path}/srv/consensus"}
    for path in ("etc/nginx/conf.d/rankings.conf", "etc/systemd/system/rankings.service"):
        told = (tmp_path / path).read_text(encoding="utf-8")
        assert f" /{path}" in told.partition("\n")[0], "it names the file that it was put into"


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")
def test_curating_works_as_printed(shipped: Path, tmp_path: Path) -> None:
    """The chapter's edits beside a live service, and what its requests then print."""
    data = shutil.copytree(shipped, tmp_path / "curated")
    edits, requests = blocks("sh", heading="Curating")
    [printed] = blocks("text", heading="Curating")
    with served(data, BASE_URL="") as (url, _):
        done = run_in_shell(edits, tmp_path, DATA_DIR=str(data))
        assert done.returncode == 0, done.stderr

        def is_as_printed() -> bool:
            commands = requests.replace("http://127.0.0.1:5000", url)
            output = run_in_shell(commands, tmp_path).stdout.replace(url, "http://127.0.0.1:5000")
            return all(line in output for line in printed.splitlines())

        until(is_as_printed, 20)


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
    assert {route.path for route in ENDPOINTS} <= listed


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
    """Every variable that the settings read stands in the operator's table."""
    source = (ROOT / "store" / "settings.py").read_text(encoding="utf-8")
    read = set(re.findall(r'env(?:iron)?(?:\.get\(|\[)"([A-Z_]+)"', source))
    cells = re.findall(r"^\| (`[^|]*)\|", READMES["store/cli"], re.MULTILINE)
    assert read - {"LISTENING_AT"} <= set(re.findall("`([A-Z_]+)`", " ".join(cells)))
    assert read, "the settings read no variable any more; this test looks in the wrong place"


def test_the_test_command_is_what_ci_runs() -> None:
    """The script that decides takes its command from the README, so that both are one."""
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "<!-- test command -->" in script
    assert "<!-- test command -->" in README
