"""Polling that is killed or ended in the middle: `pytest -m slow tests/test_polls_endurance.py`."""

import random
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from conftest import Report
from processes import flask, polls, served, started, until, write_real
from replaying import SILENT, Replaying

from store.gunicorn import graceful_timeout

pytestmark = pytest.mark.slow


MODELS = ("gpt", "claude", "gemini", "grok")


def slugs(count: int) -> list[str]:
    """So many categories."""
    return [f"c-{n:04}" for n in range(count)]


def pairs_of(data: Path) -> Counter[tuple[str, str]]:
    """How often each pair was recorded."""
    return Counter((poll.slug, poll.model) for poll in polls(data))


def until_more_is_asked(provider: Replaying) -> None:
    """Wait until a run has sent its first request."""
    seen = len(provider.seen)
    until(lambda: len(provider.seen) > seen)


def test_killed_fifty_times_nothing_is_lost_or_doubled(tmp_path: Path, provider: Replaying) -> None:
    """`kill -9` at random moments, then the same command: every pair ends with one record."""
    data = write_real(tmp_path / "data", provider.url, slugs(600), concurrency=2)
    provider.follow({model: [{"delay": 0.05, "picks": ["Alpha"]}] for model in MODELS})
    draw = random.Random(50)
    before_kill: set[str] = set()
    kills = 0
    while kills < 50:
        with started(data, "flask", "poll", "--due") as process:
            until_more_is_asked(provider)
            time.sleep(draw.uniform(0, 0.25))
            process.kill()
            process.wait(10)
        kills += 1
        ids = [poll.id for poll in polls(data)]
        assert len(ids) == len(set(ids))
        assert before_kill <= set(ids), "a record that was there is gone"
        before_kill = set(ids)
    assert flask(data, "poll", "--due").returncode == 0
    assert len(pairs_of(data)) == 2400
    assert set(pairs_of(data).values()) == {1}
    repeats = len(provider.seen) - 2400
    print(f"{repeats} requests were repeated after 50 kills")  # noqa: T201 - the figure
    at_once = 4 * len(MODELS)
    assert repeats <= 50 * at_once, "only what was asked and not yet recorded is asked again"


GUNICORN = ("gunicorn", "-c", "python:store.gunicorn", "app:create_app()")
SERVERS = {
    "gunicorn": (*GUNICORN, "-b", "127.0.0.1:PORT"),
    "flask run": ("flask", "run", "--port", "PORT"),
    "flask poll": ("flask", "poll", "--due"),
}


@pytest.mark.parametrize("what", SERVERS)
def test_ended_in_the_middle_of_polls(
    tmp_path: Path, provider: Replaying, report: Report, what: str
) -> None:
    """After SIGTERM every request the provider saw is one record, and the next start goes on.

    One provider answers at once, two take 2 s, one never answers.
    """
    data = write_real(tmp_path / "data", provider.url, slugs(6), concurrency=2)
    slow: list[dict[str, Any]] = [{"delay": 2, "picks": ["Alpha"]}]
    provider.follow({"gpt": slow, "claude": [SILENT], "gemini": slow})
    told = {"POLL_ENABLED": "1", "POLL_TICK_SECONDS": "0.1"}
    begun = (
        started(data, *SERVERS[what])
        if what == "flask poll"
        else served(data, *SERVERS[what], **told)
    )
    with begun as running:
        process = running if isinstance(running, subprocess.Popen) else running[1]
        until(lambda: Counter(one["model"] for one in provider.seen)["gpt"] > 2)
        signalled = time.monotonic()
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        took = time.monotonic() - signalled
    kept = polls(data)
    sent = Counter((one["model"], one["question"]) for one in provider.seen)
    assert Counter((poll.model.lower(), poll.question) for poll in kept) == sent
    assert set(sent.values()) == {1}
    outcomes = Counter((poll.model, poll.failure) for poll in kept)
    assert {failure for _, failure in outcomes} == {None, "interrupted"}
    report(f"{what}: gone {took:.1f} s after SIGTERM; {dict(outcomes)}")
    assert took < graceful_timeout

    provider.follow({})
    assert flask(data, "poll", "--due").returncode == 0
    answered = Counter((poll.slug, poll.model) for poll in polls(data) if poll.failure is None)
    assert len(answered) == 24
    assert set(answered.values()) == {1}
