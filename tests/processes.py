"""Real processes for tests: ``flask run``, gunicorn, ``flask poll``; and patience."""

import json
import os
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from builders import command, write_data, write_json
from click.testing import Result
from servers import free_port

from store.history import History
from store.records import Poll

ROOT = Path(__file__).parent.parent
CANARY = "sk-canary-7e0f9c"
REAL = (("GPT", "responses"), ("Claude", "messages"), ("Gemini", "gemini"), ("Grok", "chat"))

Value = TypeVar("Value")


def until(look: Callable[[], Value], seconds: float = 120) -> Value:
    """Look again and again until something is there; fail after so many seconds."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < deadline, f"still nothing after {seconds} s"
        time.sleep(0.1)
    return found


def at_once(*tasks: Callable[[], object]) -> None:
    """Carry out each task on a thread of its own, all at the same time, to their ends."""
    threads = [threading.Thread(target=task) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def call(url: str, body: object = None) -> Any:
    """A GET, or a POST of JSON; the answer's JSON."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data)  # noqa: S310 - an address of the tests' own
    with urllib.request.urlopen(request, timeout=120) as response:  # noqa: S310
        return json.load(response)


def reached(url: str) -> Any:
    """The JSON at an address, or ``None`` while it is not there."""
    try:
        return call(url)
    except (urllib.error.URLError, ConnectionError):
        return None


def write_real(directory: Path, url: str, slugs: Sequence[str], **fields: Any) -> Path:
    """A data directory whose four assistants are asked at an address, one in each format."""
    titles = {slug: {"title": f"Best {slug}"} for slug in slugs}
    site = {name: fields.pop(name) for name in ("daily_usd",) if name in fields}
    names = fields.pop("names", [name for name, _ in REAL])
    write_data(directory, categories=titles, models=(), sample=False, **site)
    (directory / "history").mkdir()
    prices = {"usd_per_million_input": 2, "usd_per_million_output": 10}
    base = {"base_url": f"{url}/v1", "key_env": "POLL_TEST_KEY", "rpm": 1_000_000, **prices}
    models = [
        {"name": name, "api": api, "model": name.lower(), **base, **fields}
        for name, api in REAL
        if name in names
    ]
    write_json(directory / "models.json", {"version": 1, "models": models})
    return directory


def environment(directory: Path, **more: str) -> dict[str, str]:
    """The environment of a process of ours."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("POLL_", "FLASK_"))}
    own = {"DATA_DIR": str(directory), "POLL_TEST_KEY": CANARY, "FLASK_SKIP_DOTENV": "1"}
    return {**clean, **own, **more}


def flask(directory: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """A ``flask`` command that runs to its end."""
    return subprocess.run(
        [sys.executable, "-m", "flask", *arguments],
        cwd=ROOT,
        env=environment(directory, **more),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def flask_here(directory: Path, *arguments: str) -> Result:
    """A ``flask`` command in this process: where what it does matters, not that it is a process."""
    return command(directory, *arguments, base_url=None, environ=environment(directory))


@contextmanager
def started(directory: Path, *command: str, **more: str) -> Iterator[subprocess.Popen[str]]:
    """A process of ours; killed afterwards if it still runs. Its output goes to ``<dir>.log``."""
    with directory.with_suffix(".log").open("a") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", *command],
            cwd=ROOT,
            env=environment(directory, **more),
            stdout=output,
            stderr=output,
            text=True,
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait(30)


@contextmanager
def served(
    directory: Path, *command: str, **more: str
) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A server of ours that answers; its address and process."""
    port = str(free_port())
    filled = [part.replace("PORT", port) for part in command or ("flask", "run", "--port", "PORT")]
    with started(directory, *filled, **more) as process:
        url = f"http://127.0.0.1:{port}"
        until(lambda: reached(f"{url}/api/v1/changes.json"))
        yield url, process


def polls(directory: Path, *, torn: bool = False) -> list[Poll]:
    """Every poll in a data directory's history, which has no fault; or ``torn`` ends at most."""
    history = History(directory / "history")
    logs = [history.read(slug) for slug in sorted(history.signatures())]
    problems = [p for log in logs for p in log.problems if p.severity == "error" or not torn]
    assert not problems, problems
    return [stored.poll for log in logs for stored in log.polls]
