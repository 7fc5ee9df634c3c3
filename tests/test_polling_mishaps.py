"""What befalls an unlucky operator who polls: real commands and servers, and an unkind provider."""

import errno
import json
import os
import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from builders import answered, app_over, append, failed
from processes import call, flask_here, polls, served, until, write_real
from replaying import Replaying, answer_text, envelope

from store.text import rfc3339

FAST = {"POLL_ENABLED": "1", "POLL_TICK_SECONDS": "0.1"}


def data_of(tmp_path: Path, provider: Replaying, count: int, **fields: Any) -> Path:
    """A data directory of so many categories that Grok is asked about, one at a time."""
    slugs = [f"c-{n}" for n in range(count)]
    fields = {"names": ["Grok"], "concurrency": 1, **fields}
    return write_real(tmp_path / "data", provider.url, slugs, **fields)


def reasons(url: str) -> str:
    """Why a server is degraded."""
    return " ".join(call(f"{url}/healthz")["reasons"])


# ------------------------------------------------------------------ money


def stating(given: int, made: int) -> dict[str, Any]:
    """A step of the provider: a good answer that is said to have taken so many tokens."""
    body = envelope("chat", answer_text(["Alpha"]), "grok")
    return {"body": body | {"usage": {"prompt_tokens": given, "completion_tokens": made}}}


@pytest.mark.parametrize("kept", [True, False], ids=["sum kept", "sum deleted"])
def test_what_a_provider_states_is_charged_and_pauses_it(
    tmp_path: Path, provider: Replaying, *, kept: bool
) -> None:
    """Forty times the reserve is spent, whatever the cap: it is said, and nothing more is asked."""
    data = data_of(tmp_path, provider, 4, daily_usd=0.5)
    provider.follow({"grok": [stating(50_000, 150_000)]})
    done = flask_here(data, "poll", "--all")
    assert (done.exit_code, len(provider.seen)) == (1, 1)
    assert "Grok: 1 answered, 3 not asked, 1.6000 USD" in done.output
    assert re.search("  paused until 20.*Z: it cost 1.6 USD; 0.04", done.output)
    assert [poll.usage and poll.usage.usd for poll in polls(data)] == [1.6]
    if not kept:
        (data / ".locks" / "spent.json").unlink()
    status = flask_here(data, "poll", "--status")
    assert status.exit_code == 1
    assert "Grok is paused until 20" in status.output
    assert ": it cost 1.6 USD; 0.04" in status.output
    assert "Spent today: 1.60 of 0.5 USD." in status.output
    assert flask_here(data, "poll", "c-3").output.count("is reached until 00:00 UTC") == 1
    assert len(provider.seen) == 1


def test_a_damaged_sum_asks_nothing_until_it_is_mended(tmp_path: Path, provider: Replaying) -> None:
    """Command and status say which file to delete; then what history has of today counts."""
    data = data_of(tmp_path, provider, 2, daily_usd=0.05)
    assert flask_here(data, "poll", "c-0").exit_code == 0
    spent = data / ".locks" / "spent.json"
    spent.write_text('{"day": "20')
    why = "daily_usd 0.05 of site.json cannot be kept: .locks/spent.json is damaged. Delete it, and"
    for arguments in (["c-1"], ["--due"], ["--status"]):
        done = flask_here(data, "poll", *arguments)
        assert (done.exit_code, why in done.output) == (1, True), arguments
    assert len(provider.seen) == 1
    check = flask_here(data, "check")
    assert (check.exit_code, ".locks/spent.json:1:1: .locks/spent.json is" in check.output) == (
        1,
        True,
    )
    spent.unlink()
    assert flask_here(data, "poll", "c-1").exit_code == 0
    today = datetime.now(UTC).date().isoformat()
    assert json.loads(spent.read_text()) == {"day": today, "micros": {"Grok": 8800}}


def test_searches_without_a_price_are_refused_under_a_cap(
    tmp_path: Path, provider: Replaying
) -> None:
    """Else they would bill as free: `check` names the member, and nothing is asked."""
    data = data_of(tmp_path, provider, 1, daily_usd=1, web_search=True)
    for command in (["check"], ["poll", "--all"]):
        done = flask_here(data, *command)
        said = "has no usd_per_thousand_searches, which daily_usd of site.json needs"
        assert (done.exit_code, said in done.output) == (1, True)
    assert provider.seen == []


# ------------------------------------------------------------------ history that takes no poll


def unappendable(data: Path) -> Path:
    """Let the first category's history be read, but its torn end not be set aside."""
    (data / "history" / "c-0.jsonl").write_bytes(b'{"v":1,"id":"')
    in_the_way = data / "history" / "c-0.jsonl.torn"
    in_the_way.mkdir()
    return in_the_way


def questions(provider: Replaying) -> Counter[str]:
    """How often each question was asked."""
    return Counter(one["question"] for one in provider.seen)


WHY = "c-0.jsonl cannot be written: Is a directory"


def test_a_file_that_takes_no_poll_is_not_paid_for(tmp_path: Path, provider: Replaying) -> None:
    """A command asks about all others, names it and ends with 1, as often as it is called."""
    data = data_of(tmp_path, provider, 3)
    unappendable(data)
    for _ in range(2):
        done = flask_here(data, "poll", "--due")
        assert done.exit_code == 1
        assert f"  not asked: {WHY}\n" in done.output
        assert len(polls(data, torn=True)) == 2
    assert questions(provider) == {"What is the best c-1?": 1, "What is the best c-2?": 1}


def test_a_file_that_takes_no_poll_keeps_a_server_from_no_other(
    tmp_path: Path, provider: Replaying
) -> None:
    """The pair that waits longest is left alone, in health by name; mended it is asked soon."""
    data = data_of(tmp_path, provider, 3, names=["Grok", "GPT"])
    in_the_way = unappendable(data)
    with served(data, **FAST) as (url, _):
        until(lambda: len(polls(data, torn=True)) == 4)
        until(lambda: WHY in reasons(url))
        assert "paused" not in reasons(url)
        assert set(questions(provider)) == {"What is the best c-1?", "What is the best c-2?"}
        in_the_way.rmdir()
        until(lambda: len(polls(data, torn=True)) == 6)
        until(lambda: call(f"{url}/healthz")["status"] == "ok")
    assert set(questions(provider).values()) == {2}


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk without room; see test_full_disk.py for one that really is."""

    def refuse(**_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("store.disk.TemporaryFile", refuse)
    monkeypatch.setattr("store.disk.disk_usage", lambda _: SimpleNamespace(free=9999))


@pytest.mark.usefixtures("full")
def test_a_full_disk_asks_nothing_and_is_named(tmp_path: Path, provider: Replaying) -> None:
    """Not the cap but the disk is at fault: exit 1, for `check` too, and nothing is paid."""
    data = data_of(tmp_path, provider, 2, daily_usd=5)
    for arguments in (["--due"], ["c-0"]):
        done = flask_here(data, "poll", *arguments)
        assert (done.exit_code, "daily_usd" in done.output) == (1, False)
        assert "so that no poll could be recorded: No space left on device." in done.output
    for arguments in (["check"], ["poll", "--status"]):
        done = flask_here(data, *arguments)
        assert done.exit_code == 1
        assert (
            "history:1:1: its disk is full, so that nothing is polled: make room\n" in done.output
        )
    assert provider.seen == []


# ------------------------------------------------------------------ pauses


def test_a_pause_outlives_the_process_and_ends_with_an_answer(
    tmp_path: Path, provider: Replaying
) -> None:
    """A server that is started again heeds it; an answer to anybody ends it in that server."""
    data = data_of(tmp_path, provider, 3)
    append(data, [failed("Grok", "auth", ago(1), slug="c-0", cooldown_until=ago(-5))])
    with served(data, **FAST) as (url, _):
        until(lambda: "Grok is paused until 20" in reasons(url))
        done = flask_here(data, "poll", "--due")
        assert (done.exit_code, "Grok: nothing was asked\n" in done.stdout) == (1, True)
        assert '; `flask poll --due --model "Grok"` asks one question first.\n' in done.stdout
        assert provider.seen == []
        done = flask_here(data, "poll", "--due", "--model", "Grok")
        assert (done.exit_code, " answered" in done.output) == (0, True), done.output
        until(lambda: call(f"{url}/healthz")["status"] == "ok")
        until(lambda: len(polls(data)) == 3)  # the server may ask the last one; c-0 is not due


@pytest.mark.parametrize(
    ("arguments", "step", "code", "sent"),
    [(("--all", "--model", "Grok"), {"status": 400}, 1, 1), (("c-0", "c-1", "c-2"), {}, 0, 3)],
)
def test_one_question_goes_through_a_pause(
    tmp_path: Path, provider: Replaying, arguments: tuple[str, ...], step: Any, code: int, sent: int
) -> None:
    """Though more could be asked at once: its answer lets the others go, its failure none."""
    data = data_of(tmp_path, provider, 3, concurrency=4)
    append(data, [failed("Grok", "auth", ago(1), slug="c-0", cooldown_until=ago(-5))])
    provider.follow({"grok": [step]} if step else {})
    done = flask_here(data, "poll", *arguments)
    assert (done.exit_code, len(provider.seen)) == (code, sent), done.output


def ago(hours: float) -> str:
    """The time so many hours ago."""
    return rfc3339(datetime.now(UTC) - timedelta(hours=hours))


# ------------------------------------------------------------------ a slow clock


def test_a_slow_clock_is_one_sentence_that_says_what_to_do(
    tmp_path: Path, provider: Replaying
) -> None:
    """By how much it is wrong and how to set it; nobody is advised to withhold good answers."""
    data = data_of(tmp_path, provider, 9, daily_usd=5)
    for n in range(7):
        append(data, [answered("Grok", ["X"], ago(n - 74), slug=f"c-{n}")])
    append(data, [answered("Grok", ["X"], ago(100), slug="c-7")])
    doubt = "This machine's clock is probably wrong: it says 20"
    remedy = "Set it: `timedatectl` says whether it follows a time server, `timedatectl set-ntp"
    for arguments, code, lines in (
        (["poll", "c-0"], 1, 3),
        (["poll", "--all", "--dry-run"], 1, 4),
        (["poll", "--status"], 1, 5),
        (["check"], 1, None),
    ):
        done = flask_here(data, *arguments)
        assert done.exit_code == code, done.output
        assert done.output.count(doubt) == 1
        assert done.output.count(remedy) == 1
        assert "7 of 8 categories" in done.output
        assert "withhold" not in done.output
        assert lines is None or len(done.output.splitlines()) == lines, done.output
    assert done.stdout.startswith(f".:1:1: {doubt}")
    assert provider.seen == []
    [problem] = app_over(data).test_client().get("/healthz").get_json()["problems"]
    assert problem.startswith(f".:1:1: {doubt}")
