"""The whole loop as processes: a provider is asked over HTTP, a server shows the verdict."""

import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from builders import answered, app_over, append
from processes import (
    CANARY,
    call,
    flask,
    flask_here,
    polls,
    reached,
    served,
    started,
    until,
    write_real,
)
from replaying import Replaying

from store.files import Files
from store.polls.asking import keep_instrument


@pytest.fixture
def data(tmp_path: Path, provider: Replaying) -> Path:
    """A data directory of two categories whose assistants are asked at the provider."""
    return write_real(tmp_path / "data", provider.url, ["crm-software", "vpn"])


def everybody(*names: str) -> dict[str, Any]:
    """A script by which all four assistants rank these products."""
    return {model: [{"picks": list(names)}] for model in ("gpt", "claude", "gemini", "grok")}


BEST = "/api/v1/best/crm-software.json"


def top(url: str) -> str | None:
    """The first product of the served verdict, once there is one."""
    found = reached(f"{url}{BEST}")
    return found["combined"][0]["product"] if found else None


def test_from_a_poll_to_a_verdict_a_change_and_a_mention(data: Path, provider: Replaying) -> None:
    """`flask poll` asks four formats over HTTP; a running server shows what they said, twice.

    Of two answers on one day the newest counts as the change from an earlier day's. By itself the
    server asks nobody: it was not told to.
    """
    gpt = next(each for each in Files(data).scan().assistants if each.name == "GPT")
    asked_with = keep_instrument(data, gpt, None)
    append(data, [answered("GPT", ["Gamma"], "2026-01-05T06:00:00Z", instrument=asked_with)])
    with served(data, POLL_TICK_SECONDS="0.1") as (url, _):
        assert top(url) == "Gamma"
        assert "No server polls on schedule" in flask_here(data, "poll", "--status").stdout
        provider.follow(everybody("Alpha", "Beta"))
        first = flask(data, "poll", "crm-software")
        assert first.returncode == 0, first.stderr
        assert "GPT: 1 answered, 0.0044 USD" in first.stdout
        best = f"{url}{BEST}"
        until(lambda: list(call(best)["answers"]) == ["GPT", "Claude", "Gemini", "Grok"])
        verdict = call(best)
        assert "Alpha #1 for" in verdict["verdict"]

        provider.follow(everybody("Beta", "Alpha"))
        assert flask_here(data, "poll", "crm-software", "--model", "GPT").exit_code == 0

        def changed() -> list[tuple[str, str, str]]:
            listed = call(f"{url}/api/v1/changes.json")["changes"]
            return [(change["model"], change["from"], change["to"]) for change in listed]

        until(lambda: changed() == [("GPT", "Gamma", "Beta")])

        def mentioned() -> dict[str, int]:
            listed = call(f"{url}/api/v1/mentions.json")["products"]
            return {one["name"]: one["mentions"] for one in listed}

        until(lambda: mentioned() == {"Alpha": 5, "Beta": 5, "Gamma": 1})
    assert len(provider.seen) == 5


def test_a_failure_leaves_the_last_good_answer_in_place(data: Path, provider: Replaying) -> None:
    """A failed poll is in the history, and the ranking keeps what that assistant said before."""
    provider.follow(everybody("Alpha", "Beta"))
    flask_here(data, "poll", "crm-software")
    before = app_over(data).test_client().get(BEST).get_json()
    assert before["combined"][0]["product"] == "Alpha"
    provider.follow({**everybody("Alpha", "Beta"), "claude": [{"status": 400}]})
    done = flask_here(data, "poll", "crm-software")
    assert done.exit_code == 0
    assert "Claude: 1 http" in done.stdout
    client = app_over(data).test_client()
    newest = client.get("/api/v1/history?slug=crm-software&model=Claude").get_json()[0]
    assert (newest["pick"], newest["ranking"], newest["failure"]) == (None, [], "http")
    assert client.get(BEST).get_json()["perModel"]["Claude"] == before["perModel"]["Claude"]


def test_two_commands_ask_one_assistant_in_turn(data: Path, provider: Replaying) -> None:
    """While one process asks an assistant, another says that it waits, and asks after it."""
    provider.follow({"gpt": [{"gate": "first", "picks": ["Alpha"]}, {"picks": ["Beta"]}]})
    command = ("flask", "poll", "crm-software", "--model", "GPT")
    with started(data, *command) as first:
        until(lambda: provider.seen)
        with started(data, *command) as second:
            log = data.with_suffix(".log")
            until(lambda: "another process asks it; waiting for its turn" in log.read_text())
            assert len(provider.seen) == 1
            provider.gate("first").set()
            assert (first.wait(60), second.wait(60)) == (0, 0)
    assert [poll.pick for poll in polls(data)] == ["Alpha", "Beta"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_poll_with_one_record(
    data: Path, provider: Replaying, number: signal.Signals
) -> None:
    """What is on its way when the signal comes is one ``interrupted`` record; a new run goes on."""
    provider.follow({"gpt": [{"gate": "never-opened"}]})
    with started(data, "flask", "poll", "--due", "--model", "GPT") as process:
        until(lambda: len(provider.seen) >= 2)
        process.send_signal(number)
        assert process.wait(60) == 1
    assert "Stopped before all was asked" in data.with_name(f"{data.name}.log").read_text()
    assert [poll.failure for poll in polls(data)] == ["interrupted"] * 2
    provider.follow({})
    assert flask_here(data, "poll", "--due", "--model", "GPT").exit_code == 0
    assert Counter(poll.failure for poll in polls(data)) == {"interrupted": 2, None: 2}


FAULTS: tuple[dict[str, Any], ...] = (
    {"status": 400, "headers": {"x-request-id": CANARY}, "body": {"error": CANARY}},
    {"text": f"my key is {CANARY}"},
    {"text": f'{{"{CANARY}": 1}}'},
    {"picks": [f"Alpha {CANARY}"]},
    {"status": 307, "headers": {"Location": f"http://{CANARY}.example/"}},
)
LASTING: tuple[dict[str, Any], ...] = (
    {"status": 401, "body": {"error": {"message": f"bad key {CANARY}"}}},
    {"status": 402, "body": f"no JSON {CANARY}"},
)


def test_a_key_is_written_nowhere(tmp_path: Path, provider: Replaying) -> None:
    """Through every failure, no byte of the data directory or of any output holds the key."""
    slugs = [f"c-{n}" for n in range(len(FAULTS) + 1)]
    data = write_real(tmp_path / "data", provider.url, slugs, concurrency=1)
    models = ("gpt", "claude", "gemini", "grok")
    provider.follow({m: [*FAULTS, LASTING[n % 2]] for n, m in enumerate(models)})
    done = flask(data, "poll", "--all")
    outputs = [done.stdout + done.stderr]
    for words in (["poll", "--status"], ["poll", "--all", "--dry-run"], ["check"]):
        outputs += [flask_here(data, *words).output]
    with served(data) as (url, _):
        outputs += [str(call(f"{url}/api/v1/history?slug=c-1")), str(reached(f"{url}/healthz"))]
    files = [path for path in data.parent.rglob("*") if path.is_file()]
    assert any(path.suffix == ".log" for path in files)
    assert any(path.suffix == ".jsonl" for path in files)
    assert len(polls(data)) == 4 * len(slugs)
    for path in files:
        assert CANARY.encode() not in path.read_bytes(), path
    assert not any(CANARY in text for text in outputs)
    key = {one["headers"].get("authorization") for one in provider.seen if one["api"] == "chat"}
    assert key == {f"Bearer {CANARY}"}, "the key did go where it belongs"
