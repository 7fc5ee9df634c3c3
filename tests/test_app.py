"""The application as people run it: ``flask run`` and gunicorn, as processes over real data."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pytest
from builders import app_over, write_data, write_json
from small_world import write_small_world

from app import create_app
from store.settings import Settings
from store.text import URL_RULE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT = Path(__file__).parent.parent
FLASK = [sys.executable, "-m", "flask", "--app", "app", "run"]
GUNICORN = [sys.executable, "-m", "gunicorn", "-c", "python:store.gunicorn", "app:create_app()"]
WARNING = "BASE_URL is not set: published addresses begin with "
WAIT = 30


def environment(data: Path, **more: str) -> dict[str, str]:
    """What a process of ours finds: this machine's own settings do not reach it."""
    ours = ("BASE_URL", "HOSTS", "LISTENING_AT", "FLASK_APP", "FLASK_DEBUG", "GUNICORN_CMD_ARGS")
    kept = {name: value for name, value in os.environ.items() if name not in ours}
    return {**kept, "DATA_DIR": str(data), "PYTHONUNBUFFERED": "1", **more}


def free_port(host: str = "127.0.0.1") -> int:
    """A port nobody listens on at this moment."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def served(
    command: Sequence[str], env: dict[str, str], ready: str, cwd: Path = ROOT
) -> Iterator[list[str]]:
    """A server process; what it printed until it said it was ready, and in the end everything."""
    process = subprocess.Popen(
        command, cwd=cwd, env=env, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    lines: list[str] = []
    assert process.stderr is not None
    try:
        for line in process.stderr:
            lines.append(line)
            if ready in line:
                break
        yield lines
    finally:
        process.terminate()
        lines += process.stderr
        process.wait(WAIT)
        process.stderr.close()


def assert_warned_once(lines: list[str], base: str) -> None:
    """Assert that one line, plain or JSON, says which base URL is published."""
    (line,) = [line for line in lines if "BASE_URL" in line]
    assert line.rstrip('"}\n').endswith(WARNING + base)


def get(address: str) -> Any:
    """The JSON at an address."""
    with urllib.request.urlopen(address, timeout=WAIT) as answer:  # noqa: S310 - our own
        return json.load(answer)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The little world's data directory, for processes."""
    return write_small_world(tmp_path_factory.mktemp("processes") / "data")


@pytest.mark.parametrize(
    ("host", "published"),
    [("0.0.0.0", "127.0.0.1"), ("::1", "[::1]")],  # noqa: S104
)
def test_flask_run_publishes_its_own_address(data: Path, host: str, published: str) -> None:
    """Without BASE_URL every address begins with host and port of the command; one line says so."""
    port = free_port(host)
    base = f"http://{published}:{port}"
    command = [*FLASK, "--host", host, "--port", str(port)]
    with served(command, environment(data), "Running on") as lines:
        reached = f"http://{'[::1]' if ':' in host else '127.0.0.1'}:{port}"
        verdict = get(f"{reached}/api/v1/best/crm-software.json")
    assert verdict["url"] == f"{base}/best/crm-software"
    assert_warned_once(lines, base)
    assert f"Data: {data}\n" in lines
    assert not [line for line in lines if "Traceback" in line]


def test_gunicorn_publishes_its_own_address(data: Path) -> None:
    """The same from gunicorn's bind, even where the system chose the port."""
    with served([*GUNICORN, "-b", "[::1]:0"], environment(data), "Booting worker") as lines:
        (port,) = re.findall(r"Listening at: http://\S+:(\d+) ", "".join(lines))
        base = f"http://[::1]:{port}"
        verdict = get(f"{base}/api/v1/best/crm-software.json")
    assert verdict["url"] == f"{base}/best/crm-software"
    assert [line for line in lines if f'"Data: {data}"' in line]
    assert_warned_once(lines, base)
    assert not [line for line in lines if "Traceback" in line]


def test_both_servers_give_the_same_bytes_as_the_app(data: Path) -> None:
    """What tests see in-process is what readers get from gunicorn, BASE_URL without a word."""
    client = app_over(data, base_url="https://rankings.example").test_client()
    env = environment(data, BASE_URL="https://rankings.example")
    with served([*GUNICORN, "-b", "127.0.0.1:0"], env, "Booting worker") as lines:
        (port,) = re.findall(r"Listening at: http://\S+:(\d+) ", "".join(lines))
        for path in ("best/crm-software.json", "history?slug=crm-software", "openapi.json"):
            address = f"http://127.0.0.1:{port}/api/v1/{path}"
            with urllib.request.urlopen(address, timeout=WAIT) as answer:
                ours = client.get(f"/api/v1/{path}")
                assert answer.read() == ours.data
                assert answer.headers["ETag"] == ours.headers["ETag"]
    assert not [line for line in lines if "BASE_URL" in line]


@pytest.mark.parametrize("kind", ["missing", "empty", "a file"])
def test_a_server_without_data_says_what_to_set(tmp_path: Path, kind: str) -> None:
    """Whatever stands in the data directory's place, the reason is one sentence."""
    directory = tmp_path / "data"
    if kind == "empty":
        directory.mkdir()
    elif kind == "a file":
        directory.write_text("no directory")
    with pytest.raises(click.ClickException, match="DATA_DIR") as refusal:
        app_over(directory)
    assert str(directory) in refusal.value.message
    assert "\n" not in refusal.value.message


@pytest.mark.parametrize("base_url", ["rankings.example", "https://x.example/?q"])
def test_a_base_url_that_is_none_is_refused(base_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistake in BASE_URL shows at the start and not in every address."""
    monkeypatch.setenv("BASE_URL", base_url)
    with pytest.raises(
        click.ClickException, match=rf"^BASE_URL must be {URL_RULE}$".replace("?", r"\?")
    ):
        create_app()


def test_a_data_directory_that_may_not_be_read_is_not_called_empty(tmp_path: Path) -> None:
    """Whoever runs the service as another user is told that, not to fill the directory anew."""
    directory = write_data(tmp_path / "data")
    directory.chmod(0)
    command = [sys.executable, "-m", "flask", "--app", "app"]
    for words in (["check"], ["run", "--port", str(free_port())]):
        done = subprocess.run(
            as_nobody([*command, *words]), cwd=ROOT, env=environment(directory),
            capture_output=True, text=True, timeout=WAIT, check=False,
        )  # fmt: skip
        assert done.returncode == 1
        assert f"Error: the data directory {directory} cannot be read" in done.stderr
        assert "Traceback" not in done.stderr


def test_a_read_only_data_directory_is_served(tmp_path: Path) -> None:
    """A process that may write nothing answers all the same, as on a read-only mount."""
    directory = write_small_world(tmp_path / "data")
    everything = [directory, *directory.rglob("*")]
    before = {path: path.stat().st_mtime_ns for path in everything}
    modes = {path: path.stat().st_mode for path in everything}
    for path in everything:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        command = [*FLASK, "--port", str(port := free_port())]
        with served(as_nobody(command), environment(directory), "Running on") as lines:
            verdict = get(f"http://127.0.0.1:{port}/api/v1/best/crm-software.json")
            health = get(f"http://127.0.0.1:{port}/healthz")
    finally:
        for path, mode in modes.items():
            path.chmod(mode)
    assert verdict["slug"] == "crm-software"
    assert health["status"] == "ok"
    assert not [line for line in lines if "Traceback" in line]
    after = {path: path.stat().st_mtime_ns for path in [directory, *directory.rglob("*")]}
    assert after == before


def as_nobody(command: list[str]) -> list[str]:
    """The command without the power to write where the mode forbids it, if we are root."""
    if os.geteuid() != 0 or not (setpriv := shutil.which("setpriv")):
        return command
    return [setpriv, "--bounding-set=-all", "--inh-caps=-all", *command]


def test_a_data_directory_that_goes_away_is_no_path_told(tmp_path: Path) -> None:
    """The last good picture stays served; /healthz says degraded and where only to its operator."""
    directory = write_small_world(tmp_path / "data")
    app = app_over(directory)
    client = app.test_client()
    client.get("/healthz")
    store = app.extensions["store"]
    directory.rename(tmp_path / "gone")
    store.reload()
    assert client.get("/api/v1/best/crm-software.json").status_code == 200
    assert "what it last held stays served" in store.problems[0].message
    health = client.get("/healthz")
    assert health.get_json()["status"] == "degraded"
    assert str(tmp_path) not in health.text
    (tmp_path / "gone").rename(directory)
    store.reload()
    assert store.problems == ()


def test_site_json_may_give_the_base_url(tmp_path: Path) -> None:
    """The setting of the environment stands above that of the file."""
    directory = write_data(tmp_path / "data", base_url="https://from-file.example/")
    unset = create_app(Settings(data_dir=directory)).test_client()
    document = unset.get("/api/v1/openapi.json").get_json()
    assert document["servers"] == [{"url": "https://from-file.example"}]
    assert unset.get("/healthz", headers={"Host": "from-file.example"}).status_code == 200
    setting = create_app(Settings(data_dir=directory, base_url="https://set.example"))
    document = setting.test_client().get("/api/v1/openapi.json").get_json()
    assert document["servers"] == [{"url": "https://set.example"}]


def test_a_changed_site_is_seen_without_a_restart(tmp_path: Path) -> None:
    """Trusted hosts, addresses and links follow site.json."""
    directory = write_data(tmp_path / "data")
    app = create_app(Settings(data_dir=directory))
    client = app.test_client()
    later = {"Host": "later.example"}
    assert client.get("/api/v1/labs.json", headers=later).status_code == 400
    site = {"version": 1, "name": "Other", "licence": "CC0 1.0", "hosts": ["later.example"]}
    write_json(directory / "site.json", {**site, "base_url": "https://rankings.example"})
    app.extensions["store"].reload()
    answer = client.get("/api/v1/labs.json", headers=later)
    assert answer.status_code == 200
    assert "publicdomain/zero" in answer.headers["Link"]
    assert "<https://rankings.example/labs>" in answer.headers["Link"]


def test_the_checkouts_sample_is_not_polled_on_schedule_by_accident(tmp_path: Path) -> None:
    """A server that polls has been told where, even if that is the sample."""
    with pytest.raises(click.ClickException, match="POLL_ENABLED is 1, but DATA_DIR is not set"):
        create_app(Settings.from_env({"POLL_ENABLED": "1"}))
    create_app(Settings.from_env({"POLL_ENABLED": "1", "DATA_DIR": str(write_data(tmp_path))}))


@pytest.fixture
def dotenv(data: Path, tmp_path: Path) -> Path:
    """A directory below one whose .env holds settings."""
    text = f"DATA_DIR='{data}'\nBASE_URL=https://dotenv.example\nHOSTS=from-dotenv.example\n"
    (tmp_path / ".env").write_text(text)
    (tmp_path / "below").mkdir()
    return tmp_path / "below"


def without_settings(**more: str) -> dict[str, str]:
    """A process's environment that leaves everything to .env."""
    env = environment(Path("unset"), PYTHONPATH=str(ROOT))
    return {**{n: v for n, v in env.items() if n not in ("DATA_DIR", "FLASK_SKIP_DOTENV")}, **more}


EACH_IN_TURN = """
import json, os, sys
from contextlib import suppress
from flask import cli
for env in json.load(sys.stdin):
    os.environ.clear()
    os.environ.update(env)
    with suppress(SystemExit):
        cli.main()
"""


def test_flask_reads_dotenv(dotenv: Path, data: Path, tmp_path: Path) -> None:
    """The nearest .env upwards of where the command runs; the environment's own values stand."""
    other = write_data(tmp_path / "other")
    told = {
        data: without_settings(),
        other: without_settings(DATA_DIR=str(other)),
        ROOT / "data": without_settings(FLASK_SKIP_DOTENV="1"),
    }
    flask = [sys.executable, "-c", EACH_IN_TURN, "--app", str(ROOT / "app.py"), "deploy"]
    done = subprocess.run(
        flask, cwd=dotenv, env=without_settings(), input=json.dumps([*told.values()]),
        capture_output=True, text=True, timeout=WAIT, check=False,
    )  # fmt: skip
    said = [line for line in done.stderr.splitlines() if line.startswith("Data: ")]
    assert said == [f"Data: {directory}" for directory in told], done.stderr


def test_gunicorn_reads_dotenv(dotenv: Path) -> None:
    """As flask does, so that a setting in .env holds for the server too."""
    env = without_settings(BASE_URL="https://real.example")
    with served([*GUNICORN, "-b", "127.0.0.1:0"], env, "Booting worker", dotenv) as lines:
        (port,) = re.findall(r"Listening at: http://\S+:(\d+) ", "".join(lines))
        best = f"http://127.0.0.1:{port}/api/v1/best/crm-software.json"
        asked = urllib.request.Request(best, headers={"Host": "from-dotenv.example"})
        with urllib.request.urlopen(asked, timeout=WAIT) as answer:  # noqa: S310 - our own
            verdict = json.load(answer)
    assert verdict["url"] == "https://real.example/best/crm-software"


def test_gunicorn_never_guesses_what_a_dotenv_said(dotenv: Path) -> None:
    """An unreadable .env may say which data to serve: no sample is served in its place."""
    (dotenv.parent / ".env").write_bytes(b"DATA_DIR=/srv/real\nKEY=\xe4\n")
    done = subprocess.run(
        [*GUNICORN, "-b", "127.0.0.1:0"],
        cwd=dotenv,
        env=without_settings(),
        capture_output=True,
        text=True,
        timeout=WAIT,
        check=False,
    )
    assert done.returncode != 0
    assert ".env cannot be read: " in done.stderr
    assert "KEY" not in done.stderr
    assert "Traceback" not in done.stderr


def test_settings_do_not_show_keys() -> None:
    """The environment they keep for API keys stays out of logs and traces."""
    settings = Settings.from_env({"SECRET_KEY": "hidden", "BASE_URL": "https://x.example"})
    assert "hidden" not in repr(settings)
    assert "data_dir" in repr(settings)


def test_a_server_that_does_not_poll_loads_nothing_for_it(tmp_path: Path) -> None:
    """What commands and polls import would take a tenth of the start and of the memory."""
    write_small_world(tmp_path / "data")
    program = (
        "import sys; from app import create_app; create_app(); "
        "print({'requests', 'apscheduler'} & sys.modules.keys() or 'nothing')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT, env=environment(tmp_path / "data"), capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "nothing\n"
