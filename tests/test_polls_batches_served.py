"""Batches in real servers: direct and batched assistants mixed, and `flask poll` beside them."""

from __future__ import annotations

import json
import signal
import time
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from builders import write_json
from processes import call, flask, polls, served, started, until, write_real
from test_polls_batches_killed import BatchProvider

from store.polls.batches.files import Batches

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

    from conftest import Report

MODELS = ("gpt", "claude", "gemini", "grok")
FAST = {"POLL_ENABLED": "1", "POLL_TICK_SECONDS": "0.2"}
GUNICORN = ("gunicorn", "-c", "python:store.gunicorn", "app:create_app()", "-b", "127.0.0.1:PORT")


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[BatchProvider]:
    """The provider, as a process."""
    provider = BatchProvider(tmp_path / "book.json")
    yield provider
    provider.kill()


def mixed(tmp_path: Path, provider: BatchProvider, count: int, **site: Any) -> Path:
    """A data directory where GPT and Claude are asked in batches, Gemini and Grok directly."""
    slugs = [f"c-{n:03}" for n in range(count)]
    data = write_real(tmp_path / "data", provider.url, slugs, **site)
    models = json.loads((data / "models.json").read_text())
    for assistant in models["models"]:
        assistant["batch"] = assistant["name"] in ("GPT", "Claude")
    write_json(data / "models.json", models)
    return data


def bills(provider: BatchProvider) -> Counter[tuple[str, str]]:
    """How often each model was paid for each question."""
    return Counter((model, question) for model, question, _ in provider.book["bills"])


@pytest.mark.slow
def test_a_server_asks_and_collects_batches(tmp_path: Path, provider: BatchProvider) -> None:
    """One question first, then the rest together; who takes no batches is asked directly."""
    data = mixed(tmp_path, provider, 52)
    with served(data, *GUNICORN, **FAST) as (url, _):
        until(lambda: len(polls(data)) == 52 * 4, 60)
        assert call(f"{url}/healthz")["reasons"] == []
    assert set(bills(provider).values()) == {1}
    hows = Counter((model, how) for model, _, how in provider.book["bills"])
    assert hows["gpt", "batch"] >= 51
    assert hows["claude", "batch"] >= 51
    assert (hows["gemini", "direct"], hows["grok", "direct"]) == (52, 52)
    log = data.with_suffix(".log").read_text()
    assert "GPT: 1 sent in a batch" in log
    assert "GPT: 51 sent in a batch" in log


@pytest.mark.slow
def test_health_and_log_know_a_late_batch(tmp_path: Path, provider: BatchProvider) -> None:
    """A batch that is with its provider for more than 26 hours makes the service degraded."""
    data = mixed(tmp_path, provider, 1)
    provider.tell(gpt={"end": "stuck"})
    assert flask(data, "poll", "c-000", "--batch", "--model", "GPT").returncode == 0
    files = Batches(data)
    (batch,) = files.all()
    long_ago = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 27 * 3600))
    files.write(msgspec.structs.replace(batch, intended_at=long_ago))
    with served(data, *GUNICORN, **FAST) as (url, _):
        until(lambda: "A batch of GPT is" in str(call(f"{url}/healthz")["reasons"]))
        assert call(f"{url}/healthz")["status"] == "degraded"
    assert "A batch of GPT is with its provider since 20" in (data.with_suffix(".log").read_text())


def test_who_left_models_json_is_collected_all_the_same(
    tmp_path: Path, provider: BatchProvider
) -> None:
    """Answers of an assistant that is configured no more are recorded under its name."""
    data = mixed(tmp_path, provider, 2)
    assert flask(data, "poll", "c-000", "--batch", "--model", "GPT").returncode == 0
    models = json.loads((data / "models.json").read_text())
    models["models"] = [m for m in models["models"] if m["name"] == "Grok"]
    write_json(data / "models.json", models)
    with served(data, *GUNICORN, **FAST):
        until(lambda: {poll.model for poll in polls(data)} == {"GPT", "Grok"})


@contextmanager
def three_servers(data: Path) -> Iterator[list[subprocess.Popen[str]]]:
    """Three server processes on one data directory."""
    with (
        served(data, *GUNICORN, **FAST) as (_, one),
        served(data, *GUNICORN, **FAST) as (_, two),
        served(data, "flask", "run", "--port", "PORT", **FAST) as (_, three),
    ):
        yield [one, two, three]


@pytest.mark.slow
def test_three_servers_and_commands_killed_at_random(
    tmp_path: Path, provider: BatchProvider, report: Report
) -> None:
    """Servers and `flask poll` die by `kill -9` over and over: one bill and one record a pair."""
    data = mixed(tmp_path, provider, 60, daily_usd=5)
    behaviour: dict[str, Any] = {"looks": 1, "pause": {"create": 0.2}, "results": "shuffled"}
    provider.tell(gpt=behaviour, claude=behaviour)
    kills = 0
    for turn in range(6):
        with three_servers(data) as servers:
            for _ in range(4):
                with started(data, "flask", "poll", "--due", "--batch") as process:
                    time.sleep(0.7 + 0.13 * kills % 1.1)
                    process.kill()
                    process.wait(10)
                    kills += 1
            servers[turn % 3].send_signal(signal.SIGKILL)
            kills += 1
            if turn == 3:
                provider.kill()
                provider.start(provider.port)
    far_back(data)
    with three_servers(data):
        assert flask(data, "poll", "--due").returncode in (0, 1)
        until(lambda: far_back(data) and len(good(data)) == 240, 120)
    batched = Counter((m, q) for m, q, how in provider.book["bills"] if how == "batch")
    assert set(batched.values()) == {1}
    picks = Counter(poll.pick for poll in polls(data) if poll.pick)
    assert set(picks.values()) == {1}
    numbers = [int((pick or "").removeprefix("Bill ")) for pick in picks]
    missing = set(range(1, len(provider.book["bills"]) + 1)) - set(numbers)
    unrecorded = [provider.book["bills"][number - 1] for number in missing]
    assert all(how == "direct" for _, _, how in unrecorded), "killed while on its way, as ever"
    report(
        f"{kills} kills: {len(batched)} batched bills, {len(unrecorded)} direct ones lost by kills"
    )


def good(data: Path) -> set[tuple[str, str]]:
    """The pairs that have an answer."""
    return {(poll.slug, poll.model) for poll in polls(data) if poll.pick}


def far_back(data: Path) -> bool:
    """Let batches be looked for since a quarter of an hour, so that nobody has to wait for it."""
    files = Batches(data)
    for batch in files.all():
        if batch.state == "intended" and batch.missed_at:
            past = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 1000))
            if batch.missed_at > past:
                files.write(msgspec.structs.replace(batch, missed_at=past))
    return True
