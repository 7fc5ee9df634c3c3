"""Fixtures every Flask reader expects, and a copy of the shipped data to play with."""

import gc
import json
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from builders import app_over, prepared
from flask import Flask
from flask.testing import FlaskClient, FlaskCliRunner
from hypothesis import HealthCheck, settings
from polling_world import PollingWorld
from replaying import Replaying, serving
from small_world import write_small_world
from werkzeug.routing import Rule

from store.rankings import names
from store.settings import SHIPPED_DATA
from store.web.pages import pictures

SNAPSHOTS = Path(__file__).parent / "snapshots"

# No .env that lies about decides anything here or in the processes that tests start.
os.environ["FLASK_SKIP_DOTENV"] = "1"

# Bytecode is kept, or each of a hundred processes would compile the whole service.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A shell that runs the suite in the background has it ignore Ctrl-C, and so all that it starts.
signal.signal(signal.SIGINT, signal.default_int_handler)

MEMORY = Path("/dev/shm")  # noqa: S108 - where Linux has a file system in memory
"""Where temporary files go if there is room: a tenth of the suite's CPU was the disk's."""

if MEMORY.is_dir() and "TMPDIR" not in os.environ and shutil.disk_usage(MEMORY).free >= 1 << 30:
    os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)

# No timed assertions, and the same examples on every run: a red suite can be repeated, and a busy
# machine makes none. For more and other ones: `pytest --hypothesis-profile=long`.
UNTIMED: dict[str, Any] = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("suite", **UNTIMED, derandomize=True, max_examples=25)
settings.register_profile("long", **UNTIMED, max_examples=2_000)
settings.load_profile("suite")


def _compile_each_rule_once() -> None:
    """Let the suite's applications share what Werkzeug compiles from the same rule.

    It is much for each of 35 rules of 2,000 applications, a quarter of all CPU.
    """
    compile_rule = Rule.compile
    shared = ("_parts", "_trace", "_converters", "arguments")
    builders = ("_build", "_build_unknown")
    compiled: dict[object, tuple[dict[str, Any], dict[str, Any]]] = {}

    def compile_once(rule: Rule) -> None:
        key = (rule.rule, rule.subdomain, rule.merge_slashes, repr(rule.defaults))
        if key not in compiled:
            compile_rule(rule)
            kept = {name: getattr(rule, name) for name in shared}
            compiled[key] = kept, {name: getattr(rule, name).__func__ for name in builders}
        kept, functions = compiled[key]
        vars(rule).update(kept)
        vars(rule).update({name: made.__get__(rule) for name, made in functions.items()})

    Rule.compile = compile_once  # type: ignore[assignment,method-assign]


_compile_each_rule_once()


def _draw_each_picture_once() -> None:
    """Let exports share what resvg draws from the same source: half of what each of them costs."""
    if draw := pictures.rasteriser():
        draw_once = cache(draw)
        pictures.rasteriser = lambda: draw_once  # type: ignore[assignment]


_draw_each_picture_once()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-snapshots", action="store_true", help="Write tests/snapshots/ anew.")


def pytest_collection_finish() -> None:
    """Let no full collection walk what stays to the end: every module, and hypothesis's tables.

    Tests make little garbage in cycles: collecting as often as usual is a twentieth of all CPU.
    """
    gc.freeze()
    gc.set_threshold(50_000, 50, 100)


@pytest.fixture(scope="module", autouse=True)
def do_not_wait_for_the_disk(request: pytest.FixtureRequest) -> Iterator[None]:
    """Nothing is synced in the suite's own process but by the tests of history."""
    with pytest.MonkeyPatch.context() as patched:
        if request.module.__name__ != "test_history":
            patched.setattr(os, "fsync", lambda _: None)
            patched.setattr(os, "sync", lambda: None)
        yield


@pytest.fixture
def snapshot(pytestconfig: pytest.Config) -> Callable[[str, str], None]:
    """Compares a text with the file of that name in tests/snapshots/."""

    def compare(name: str, text: str) -> None:
        path = SNAPSHOTS / name
        if pytestconfig.getoption("--update-snapshots"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        expected = path.read_text(encoding="utf-8") if path.exists() else ""
        assert text == expected, f"{name} differs; if that is meant: pytest --update-snapshots"

    return compare


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Flask:
    """The application over the little data directory of `small_world`."""
    return app_over(write_small_world(tmp_path_factory.mktemp("small") / "data"))


@pytest.fixture
def reader(small: Flask) -> FlaskClient:
    """A reader of the little world."""
    return small.test_client()


@pytest.fixture(scope="session")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the shipped data that no test changes."""
    directory = tmp_path_factory.mktemp("shipped") / "data"
    shutil.copytree(SHIPPED_DATA, directory, ignore=shutil.ignore_patterns(".locks"))
    return directory


@pytest.fixture(scope="session")
def app(shipped: Path) -> Flask:
    """The application over the shipped data."""
    app = app_over(shipped)
    gc.freeze()  # as a server does: it stays to the end, and every full collection would walk it
    return app


@pytest.fixture(scope="session")
def verdicts(app: Flask) -> dict[str, Any]:
    """The verdict of every ranked category of the shipped data, by slug."""
    return _bodies(app, "best")


@pytest.fixture(scope="session")
def product_records(app: Flask) -> dict[str, Any]:
    """The record of every product that a poll of the shipped data names, by slug."""
    return _bodies(app, "product")


def _bodies(app: Flask, kind: str) -> dict[str, Any]:
    """What is at every address of a kind; HTTP adds nothing to a body but headers."""
    found = prepared(app.extensions["store"]).items()
    return {
        path.removeprefix(f"{kind}/").removesuffix(".json"): json.loads(encoded)
        for path, encoded in found
        if path.startswith(f"{kind}/")
    }


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    """A reader of the shipped data."""
    return app.test_client()


@pytest.fixture
def runner(app: Flask) -> FlaskCliRunner:
    """A shell for the commands, over the shipped data."""
    return app.test_cli_runner()


Report = Callable[[str], None]


@pytest.fixture
def report(capsys: pytest.CaptureFixture[str]) -> Report:
    """Prints a figure that a long run found, past pytest's capture."""

    def print_it(text: str) -> None:
        with capsys.disabled():
            print(f"\n{text}")  # noqa: T201 - the figure is what the run is for

    return print_it


@pytest.fixture
def one_digit() -> Iterator[None]:
    """One digit of the digest instead of six, so that addresses collide all the time."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(names, "_DIGITS", 1)
        patched.setattr(names, "_AS_HASHED", re.compile("-[0-9a-f]$"))
        yield


@pytest.fixture
def provider() -> Iterator[Replaying]:
    """A provider that nobody has asked anything yet, on a thread of the test's own process."""
    with serving() as server:
        yield server


@pytest.fixture
def session(tmp_path: Path, provider: Replaying) -> PollingWorld:
    """Three categories and four assistants."""
    return PollingWorld(tmp_path / "data", provider.url)
