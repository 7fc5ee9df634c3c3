"""The application as people run it: ``flask run`` and gunicorn, as processes over real data."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from builders import app_over, write_data, write_json
from processes import environment
from servers import ROOT, free_port, running
from small_world import write_small_world

from app import create_app
from store.settings import Settings
from store.text import URL_RULE

FLASK = [sys.executable, "-m", "flask", "--app", "app", "run"]
GUNICORN = [sys.executable, "-m", "gunicorn", "-c", "python:store.gunicorn", "app:create_app()"]
WARNING = "BASE_URL is not set: published addresses begin with "
BEST = "/api/v1/best/crm-software.json"
WAIT = 30
WITH_DOTENV = {"PYTHONPATH": str(ROOT), "FLASK_SKIP_DOTENV": ""}


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep this machine's own settings from processes of ours."""
    names = ("BASE_URL", "HOSTS", "LISTENING_AT", "FLASK_DEBUG", "GUNICORN_CMD_ARGS", "DATA_DIR")
    for name in names:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The little world's data directory, for processes."""
    return write_small_world(tmp_path_factory.mktemp("processes") / "data")


@pytest.mark.parametrize("server", ["flask", "gunicorn"])
def test_a_server_publishes_its_own_address(data: Path, tmp_path: Path, server: str) -> None:
    """Without BASE_URL every address begins with host and port of the command; one line says so."""
    port, log = free_port(), tmp_path / "log"
    command = [*GUNICORN, "-b", f"127.0.0.1:{port}"]
    if server == "flask":
        command = [*FLASK, "--host", "0.0.0.0", "--port", str(port)]  # noqa: S104
    with running(command, port, {"DATA_DIR": str(data)}, log) as process:
        verdict = json.loads(process.get(BEST).body)
    assert verdict["url"] == f"http://127.0.0.1:{port}/best/crm-software"
    lines = log.read_text().splitlines()
    (warning,) = [line for line in lines if "BASE_URL" in line]
    assert warning.rstrip('"}').endswith(f"{WARNING}http://127.0.0.1:{port}")
    assert [line for line in lines if f"Data: {data}" in line]
    assert "Traceback" not in log.read_text()


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


@pytest.mark.parametrize("closed", ["home/data", "home"])
def test_a_data_directory_that_may_not_be_read_is_not_called_empty(
    tmp_path: Path, closed: str
) -> None:
    """Whoever runs the service as another user is told that, not to fill the directory anew."""
    directory = write_data(tmp_path / "home/data")
    (tmp_path / closed).chmod(0)
    command = [sys.executable, "-m", "flask", "--app", "app"]
    for words in (["check"], ["run", "--port", str(free_port())]):
        done = subprocess.run(
            as_nobody([*command, *words]), cwd=ROOT, env=environment(directory),
            capture_output=True, text=True, timeout=WAIT, check=False,
        )  # fmt: skip
        assert done.returncode == 1
        assert done.stderr.startswith(("Data: ", "Error: the data directory"))
        reason = f"the data directory {directory} cannot be read: Permission denied"
        assert done.stderr.splitlines()[-1].removesuffix(".") == f"Error: {reason}"
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
        port, log = free_port(), tmp_path / "log"
        command = as_nobody([*FLASK, "--port", str(port)])
        with running(command, port, {"DATA_DIR": str(directory)}, log) as process:
            verdict = json.loads(process.get(BEST).body)
            health = json.loads(process.get("/healthz").body)
    finally:
        for path, mode in modes.items():
            path.chmod(mode)
    assert verdict["slug"] == "crm-software"
    assert health["status"] == "ok"
    assert "Traceback" not in log.read_text()
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
    before = store.problems
    directory.rename(tmp_path / "gone")
    store.reload()
    assert client.get("/api/v1/best/crm-software.json").status_code == 200
    assert "what it last held stays served" in store.problems[0].message
    health = client.get("/healthz")
    assert health.get_json()["status"] == "degraded"
    assert str(tmp_path) not in health.text
    (tmp_path / "gone").rename(directory)
    store.reload()
    assert store.problems == before


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


def test_gunicorn_gives_the_bytes_of_the_app_and_reads_dotenv(
    dotenv: Path, data: Path, tmp_path: Path
) -> None:
    """What tests see in-process is what readers get, and BASE_URL that is set is not warned of.

    The nearest .env upwards is read, as flask does; the environment's own values stand.
    """
    port, host = free_port(), {"Host": "from-dotenv.example"}
    environ = {"BASE_URL": "https://real.example", **WITH_DOTENV}
    command = [*GUNICORN, "-b", f"127.0.0.1:{port}"]
    client = app_over(data, base_url="https://real.example").test_client()
    with running(command, port, environ, tmp_path / "log", dotenv) as process:
        for path in (BEST, "/api/v1/history?slug=crm-software", "/api/v1/openapi.json"):
            answer, ours = process.get(path, host), client.get(path)
            assert (answer.body, answer.headers["etag"]) == (ours.data, ours.headers["ETag"])
    assert "BASE_URL" not in (tmp_path / "log").read_text()


def test_gunicorn_never_guesses_what_a_dotenv_said(dotenv: Path) -> None:
    """An unreadable .env may say which data to serve: no sample is served in its place."""
    (dotenv.parent / ".env").write_bytes(b"DATA_DIR=/srv/real\nKEY=\xe4\n")
    done = subprocess.run(
        [*GUNICORN, "-b", "127.0.0.1:0"], cwd=dotenv, env={**os.environ, **WITH_DOTENV},
        capture_output=True, text=True, timeout=WAIT, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert ".env cannot be read: " in done.stderr
    assert "KEY" not in done.stderr
    assert "Traceback" not in done.stderr


def test_gunicorn_adds_no_polls_to_the_sample() -> None:
    """As `flask run`: one sentence says what to set, and no stack trace stands beside it."""
    own = {k: v for k, v in os.environ.items() if k != "DATA_DIR"}
    done = subprocess.run(
        [*GUNICORN, "-b", "127.0.0.1:0"], cwd=ROOT,
        env={**own, "POLL_ENABLED": "1", "FLASK_SKIP_DOTENV": "1"},
        capture_output=True, text=True, timeout=WAIT, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert '"message": "POLL_ENABLED is 1, but DATA_DIR is not set, and' in done.stderr
    assert "Traceback" not in done.stderr


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
